"""The commands of the first minutes: `demo` and `doctor`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ember_hw.cli.application import (
    Json,
    Latency,
    Memory,
    OptLevel,
    Sink,
    app,
    examples,
    print_json,
    results,
)
from ember_hw.cli.progress import Steps, notes


@app.command(
    epilog=examples(
        "ember-hw demo",
        "ember-hw demo --latency 400                what a slow memory costs",
        "ember-hw demo --sink core-like -O 2        an in-order core takes the rows",
        "ember-hw demo --execute fabric             pooled rows leave the chip, not raw rows",
        "ember-hw demo --json > demo.json",
    )
)
def demo(
    seed: Annotated[int, typer.Option(help="Seed of the table's values.", min=0)] = 0,
    opt_level: OptLevel = 3,
    memory: Memory = "ideal",
    latency: Latency = None,
    sink: Sink = "ideal",
    execute: Annotated[
        str, typer.Option(help="What pools the rows: host; or fabric, the reduce unit, beside it.")
    ] = "host",
    plot: Annotated[Path, typer.Option(help="Where the picture goes.")] = Path("ember-hw-demo.png"),
    as_json: Json = False,
) -> None:
    """Run the whole way on real data.

    Looks up 100,000 film ratings on the simulated access unit; checks, reports and draws.
    """
    from ember_hw.cli.machine import choose_memory

    chosen = choose_memory(memory, latency)
    with Steps() as step:
        step("loading PyTorch and the compiler")
        from ember_hw.demo import plots, run

        result = run.run(
            step, seed=seed, opt_level=opt_level, memory=chosen, sink=sink, execute=execute
        )
        step(f"drawing {plot}")
        plots.draw(result, plot)
    if as_json:
        print_json(result.to_dict())
    else:
        typer.echo(run.describe(result))
    if not result.is_right:
        raise typer.Exit(1)


@app.command(epilog=examples("ember-hw doctor", "ember-hw doctor --json"))
def doctor(as_json: Json = False) -> None:
    """Check every tool that is needed.

    Prints versions, and says what to do about a missing one.
    """
    from ember_hw.cli.doctor import Check, as_table, check_all, to_json

    checks: list[Check] = []
    with notes.status("") as status:
        for check in check_all():
            checks.append(check)
            status.update(f"{check.tool} {check.version or 'is missing'}")
    report = to_json(checks)
    if as_json:
        print_json(report)
    else:
        results.print(as_table(checks))
    if not report["ok"]:
        raise typer.Exit(1)
