"""The command `bench`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from ember_hw.cli import completion
from ember_hw.cli.application import app, examples
from ember_hw.cli.progress import Steps


@app.command(
    epilog=examples(
        "ember-hw bench                             lists the suites",
        "ember-hw bench gather --quick",
        "ember-hw bench gather --only '512-bit/*/64 B/*' --json gather.json",
        "ember-hw bench area --check                exit code 1 if a bar is missed",
    )
)
def bench(
    suite: Annotated[
        str | None,
        typer.Argument(
            help="Name of a suite.", show_default="lists them", autocompletion=completion.suites
        ),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="A selection that ends within a minute.")
    ] = False,
    check: Annotated[
        bool, typer.Option("--check", help="End with exit code 1 if a bar is missed.")
    ] = False,
    only: Annotated[
        str, typer.Option(help="Pattern, as of file names, of the workloads to measure.")
    ] = "*",
    seed: Annotated[int, typer.Option(help="Seed of every random number.", min=0)] = 0,
    every_row: Annotated[
        bool, typer.Option("--all", help="Print every row, however many.")
    ] = False,
    json_file: Annotated[
        Path | None,
        typer.Option("--json", help="Where the result goes as JSON.", dir_okay=False),
    ] = None,
) -> None:
    """Measure, and compare with limits and bars.

    Every result is simulated, synthesised or modelled; its rows name the models.
    """
    from ember_hw.bench.registry import Job, all_suites, suite_of
    from ember_hw.bench.result import summarise
    from ember_hw.bench.table import as_table, describe

    if suite is None:
        for one in all_suites().values():
            typer.echo(f"{one.name:<12}{one.summary}")
        return
    chosen = suite_of(suite)
    if json_file is not None:
        json_file.touch()  # a file that can't be written is refused now, not after the run
    with Steps() as step:
        step(f"loading suite {suite}")
        result = chosen.run(Job(watcher=step, quick=quick, seed=seed, only=only))
    if json_file is not None:
        json_file.write_text(json.dumps(result.to_dict(), indent=2) + "\n")
    typer.echo(as_table(result, every_row=every_row))
    typer.echo(describe(result, every_row=every_row))
    if check and summarise(result.rows).below_bar:
        raise typer.Exit(1)
