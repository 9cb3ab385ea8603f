"""`ember-hw`: the command line.

Each command imports what it needs when it runs, so that `--help` and errors of usage come at once.
Results go to standard output, progress and errors to standard error.
"""

from __future__ import annotations

import json
import sys
import time
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from ember_hw.errors import EmberError

if TYPE_CHECKING:
    from ember_hw.config import AcceleratorConfig

app = typer.Typer(
    name="ember-hw",
    help="Compiles PyTorch embeddings for a decoupled access-execute accelerator; runs them there.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
results = Console(highlight=False)
notes = Console(stderr=True, highlight=False)

Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
Config = Annotated[
    str, typer.Option("--config", "-c", help="A preset's name, or a JSON file of parameters.")
]


@app.callback()
def _options(
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
) -> None:
    """Options that stand before the command."""
    _Errors.show_traceback = debug


class _Errors:
    show_traceback = False


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


def sentence(error: Exception) -> str:
    """Say what went wrong; for an error that nobody foresaw, also how to see where.

    Examples
    --------
    >>> sentence(ValueError("step must be at least 1, not 0"))
    'step must be at least 1, not 0'
    >>> sentence(KeyError("s0"))
    "internal error, KeyError: 's0'; `ember-hw --debug ...` shows where"
    """
    foreseen = (EmberError, OSError, TypeError, ValueError, IndexError, NotImplementedError)
    if isinstance(error, foreseen) and str(error):
        return str(error)
    return f"internal error, {type(error).__name__}: {error}; `ember-hw --debug ...` shows where"


def print_json(value: Any) -> None:
    """Print one JSON value on standard output."""
    typer.echo(json.dumps(value, indent=2))


def read_config(name: str) -> AcceleratorConfig:
    """Return the preset of that name, or the config in the JSON file of that path."""
    from ember_hw.config import AcceleratorConfig

    path = Path(name)
    if path.suffix == ".json":
        try:
            return AcceleratorConfig.from_dict(json.loads(path.read_text()))
        except json.JSONDecodeError as error:
            raise ValueError(f"config file {name} must be JSON, not text with: {error}") from None
    return AcceleratorConfig.preset(name)


class Steps:
    """Shows on standard error what runs now and how long each step took."""

    def __init__(self) -> None:
        self._status = notes.status("")
        self._text = ""
        self._began = 0.0

    def __enter__(self) -> Steps:
        self._status.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._end("✓" if kind is None else "✗")
        self._status.stop()

    def __call__(self, text: str) -> None:
        """End the step that runs and begin the next."""
        self._end("✓")
        self._text, self._began = text, time.monotonic()
        self._status.update(f"{text} ...")

    def _end(self, mark: str) -> None:
        if self._text:
            notes.print(f"{mark} {self._text}  {time.monotonic() - self._began:.1f} s")
        self._text = ""


def load_model(model: str) -> tuple[Any, Any]:
    """Run FILE.py and return what NAME is there, and its `example_inputs` (None without).

    Raises
    ------
    ValueError
        `model` isn't FILE.py:NAME, or the file has no such name.
    CompileError
        The file raises an exception.
    """
    import runpy

    from ember_hw.errors import CompileError

    file, colon, name = model.rpartition(":")
    if not colon or not name.isidentifier():
        raise ValueError(f"model must be FILE.py:NAME, not {model!r}")
    if not Path(file).is_file():
        raise ValueError(f"model must name a file that exists, not {file!r}")
    sys.path.insert(0, str(Path(file).resolve().parent))  # as `python FILE.py` does
    try:
        names = runpy.run_path(file)
    except Exception as error:
        raise CompileError(
            f"{file} must run without an exception, not end with {type(error).__name__}: {error}"
        ) from error
    if name not in names:
        known = [one for one in names if not one.startswith("_")]
        raise ValueError(f"{file} must define {name!r}; it defines {', '.join(known) or 'nothing'}")
    return names[name], names.get("example_inputs")


def read_arrays(path: Path) -> dict[str, Any]:
    """Return the arrays of an .npz file by name, in their order.

    Raises
    ------
    ValueError
        The file is another one, or holds Python objects.
    """
    import zipfile

    import numpy as np

    if not zipfile.is_zipfile(path):
        raise ValueError(
            f"inputs must be an .npz file, as numpy.savez writes it, not {str(path)!r}"
        )
    with np.load(path, allow_pickle=False) as arrays:
        return {name: arrays[name] for name in arrays.files}


@app.command()
def demo(
    seed: Annotated[int, typer.Option(help="Seed of the table's values.", min=0)] = 0,
    plot: Annotated[Path, typer.Option(help="Where the picture goes.")] = Path("ember-hw-demo.png"),
    as_json: Json = False,
) -> None:
    """Look up 100,000 film ratings on the simulated access unit; check, report and draw."""
    with Steps() as step:
        step("loading PyTorch and the compiler")
        from ember_hw.demo import plots, run

        result = run.run(seed, step)
        step(f"drawing {plot}")
        plots.draw(result, plot)
    if as_json:
        print_json(result.to_dict())
    else:
        typer.echo(run.describe(result))
    if not result.is_right:
        raise typer.Exit(1)


@app.command()
def doctor(as_json: Json = False) -> None:
    """Check every tool, print versions, and say what to do about a missing one."""
    from rich.table import Table

    from ember_hw.doctor import Check, check_all, to_json

    checks: list[Check] = []
    with notes.status("") as status:
        for check in check_all():
            checks.append(check)
            status.update(f"{check.tool} {check.version or 'is missing'}")
    report = to_json(checks)
    if as_json:
        print_json(report)
    else:
        table = Table("", "tool", "version", "for", box=None)
        table.add_column("where, or what to do", overflow="fold")
        for check in checks:
            mark = (
                "[red]✗[/]"
                if check.is_failure
                else "[yellow]-[/]"
                if check.version is None
                else "✓"
            )
            table.add_row(mark, check.tool, check.version or "missing", check.purpose, check.note)
        results.print(table)
    if not report["ok"]:
        raise typer.Exit(1)


@app.command("compile")
def compile_(
    model: Annotated[str, typer.Argument(metavar="FILE.py:NAME", help="A module in a file.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Where the program goes.")],
    inputs: Annotated[
        Path | None,
        typer.Option(
            help="Example inputs, an .npz with one array for each in order; "
            "otherwise FILE.py's `example_inputs`.",
            exists=True,
            dir_okay=False,
        ),
    ] = None,
    opt_level: Annotated[int, typer.Option("--opt-level", "-O", min=0, max=3)] = 3,
    config: Config = "default",
    as_json: Json = False,
) -> None:
    """Compile a PyTorch module to a program for the access unit."""
    with Steps() as step:
        step(f"loading {model}")
        import ember_hw

        module, examples = load_model(model)
        if inputs is not None:
            examples = tuple(read_arrays(inputs).values())
        step("compiling")
        program = ember_hw.compile(
            module, examples, opt_level=opt_level, config=read_config(config)
        )
        step(f"writing {output}")
        program.save(output)
    facts = {
        "program": str(output),
        "bytes": output.stat().st_size,
        "opt_level": program.opt_level,
        "config": program.config.name,
        "microcode_words": len(program.microcode.encode()),
        "ir_lines": {level: len(text.splitlines()) for level, text in program.ir.items()},
    }
    if as_json:
        print_json(facts)
    else:
        for name, value in facts.items():
            typer.echo(f"{name.replace('_', ' '):<24}{value}")


@app.command()
def verilog(
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for the files.")],
    config: Config = "default",
) -> None:
    """Write the access unit as Verilog with flat AXI names, and the config it was made for."""
    with Steps() as step:
        step("converting Amaranth to Verilog")
        from ember_hw.rtl.emit_verilog import TOP_NAME, emit_verilog

        parameters = read_config(config)
        text = emit_verilog(parameters)
    output.mkdir(parents=True, exist_ok=True)
    written = {
        f"{TOP_NAME}.v": text,
        "config.json": json.dumps(parameters.to_dict(), indent=2) + "\n",
    }
    for name, content in written.items():
        (output / name).write_text(content)
        typer.echo(str(output / name))


@app.command()
def asm(
    source: Annotated[
        Path, typer.Argument(help="Text of a microcode.", exists=True, dir_okay=False)
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="Where the words go.")],
    config: Config = "default",
) -> None:
    """Assemble microcode: text in, little-endian 32-bit words out."""
    import numpy as np

    from ember_hw.isa import assemble

    words = assemble(source.read_text(), read_config(config)).encode()
    output.write_bytes(np.array(words, dtype="<u4").tobytes())
    notes.print(f"{output}: {len(words)} words")


@app.command()
def disasm(
    source: Annotated[
        Path,
        typer.Argument(help="A program, or words of a microcode.", exists=True, dir_okay=False),
    ],
    config: Config = "default",
) -> None:
    """Disassemble microcode; `--config` is that of bare words, a program knows its own."""
    import zipfile

    from ember_hw.compiler.program import Program
    from ember_hw.errors import AssemblyError
    from ember_hw.isa import Microcode, disassemble

    if zipfile.is_zipfile(source):
        microcode = Program.load(source).microcode
    else:
        content = source.read_bytes()
        if len(content) % 4:
            raise AssemblyError(f"{source} must hold whole 32-bit words, not {len(content)} bytes")
        words = [int.from_bytes(content[at : at + 4], "little") for at in range(0, len(content), 4)]
        microcode = Microcode.decode(words, read_config(config))
    typer.echo(disassemble(microcode), nl=False)


if __name__ == "__main__":
    main()
