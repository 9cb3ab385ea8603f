"""The application that commands join, the options they share, and what an error becomes."""

from __future__ import annotations

import json
import sys
import traceback
from typing import Annotated, Any

import typer
from rich.console import Console

from ember_hw.cli import completion
from ember_hw.errors import EmberError

app = typer.Typer(
    name="ember-hw",
    help="Compiles PyTorch embeddings for a decoupled access-execute accelerator, and runs them.",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # help as plain text, the same in a terminal, a pipe and a log
    epilog="`ember-hw COMMAND --help` has examples. Exit codes: 0 success, 1 error, 2 wrong usage.",
)
results = Console(highlight=False)

Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
Config = Annotated[
    str,
    typer.Option(
        "--config",
        "-c",
        help="A preset's name, or a JSON file of parameters.",
        autocompletion=completion.presets,
    ),
]
OptLevel = Annotated[
    int,
    typer.Option(
        "--opt-level",
        "-O",
        help="0 sends elements, 1 vectors, 2 rows, 3 rows without their indices.",
        min=0,
        max=3,
    ),
]
Memory = Annotated[
    str,
    typer.Option(
        help="Model of the memory: ideal, random, ecpix5-ddr3, ulx3s-sdram, ddr4-2400, hbm2-pc or "
        "slow-link.",
        autocompletion=completion.memories,
    ),
]
Latency = Annotated[
    int | None,
    typer.Option(help="Cycles from a read to its data in the ideal memory.", show_default="100"),
]
Sink = Annotated[
    str,
    typer.Option(
        help="Execute side that drains the queues: ideal (never waits) or core-like.",
        autocompletion=completion.sinks,
    ),
]


def examples(*lines: str) -> str:
    """Return lines for the end of a command's help; click's mark in front keeps them apart."""
    return "\b\nExamples:\n" + "\n".join(f"  {line}" for line in lines)


@app.callback()
def _options(
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
) -> None:
    """Options that stand before the command."""
    _Errors.show_traceback = debug


class _Errors:
    show_traceback = False


def sentence(error: Exception) -> str:
    """Say what went wrong; for an error that nobody foresaw, also how to see where.

    Examples
    --------
    >>> sentence(ValueError("step must be at least 1, not 0"))
    'step must be at least 1, not 0'
    >>> sentence(KeyError("s0"))
    "internal error, KeyError: 's0'; `ember-hw --debug ...` shows where"
    >>> sentence(FileNotFoundError(2, "No such file or directory", "mine.json"))
    "file 'mine.json' can't be used: no such file or directory"
    """
    if isinstance(error, OSError) and error.filename is not None and error.strerror:
        return f"file {error.filename!r} can't be used: {error.strerror.lower()}"
    foreseen = (EmberError, OSError, TypeError, ValueError, IndexError, NotImplementedError)
    if isinstance(error, foreseen) and str(error):
        return str(error)
    return f"internal error, {type(error).__name__}: {error}; `ember-hw --debug ...` shows where"


def print_json(value: Any) -> None:
    """Print one JSON value on standard output."""
    typer.echo(json.dumps(value, indent=2))


def main() -> None:
    """Run the command in `sys.argv` and exit: 0 on success, 1 on an error, 2 on wrong usage."""
    try:
        app()
    except Exception as error:  # the last place that can turn an error into a sentence
        if _Errors.show_traceback:
            traceback.print_exc()
        else:
            print(f"ember-hw: {sentence(error)}", file=sys.stderr)  # noqa: T201  (no markup, no wrapping)
        sys.exit(1)
