"""The command `report`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ember_hw.cli.application import Json, app, examples, print_json
from ember_hw.cli.files import read_report
from ember_hw.cli.progress import Steps


@app.command(
    epilog=examples(
        "ember-hw report run.json                   as text; `run --json` writes run.json",
        "ember-hw report run.json -o run.html       one file, with pictures",
        "ember-hw report run.json -o run.png        the pictures alone",
    )
)
def report(
    file: Annotated[
        Path,
        typer.Argument(help="What `run --json` printed.", exists=True, dir_okay=False),
    ],
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="Where it goes: an .html page, a .png picture, .json or .txt.",
            dir_okay=False,
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Show the report of a run, as text or with pictures.

    The page has no script and needs no network.
    """
    from ember_hw.cli.results import check_report_path, write_report

    if output is not None:
        check_report_path(output)
    shown = read_report(file)
    if output is not None:
        with Steps() as step:
            step(f"writing {output}")
            write_report(shown, output)
    if as_json:
        print_json(shown.to_dict())
    elif output is None:
        typer.echo(str(shown))
