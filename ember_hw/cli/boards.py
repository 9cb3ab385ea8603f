"""The commands that speak with boards: `devices` and `selftest`."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from ember_hw.cli.application import Json, app, examples, print_json, results
from ember_hw.cli.progress import Steps

if TYPE_CHECKING:
    from ember_hw.boards.host.finder import FoundBoard

Simulated = Annotated[
    bool,
    typer.Option("--simulated", help="A board that is simulated, behind a pseudo-terminal."),
]

#: Columns of `devices`, by the names of `FoundBoard.to_dict`.
_COLUMNS = (
    *("board", "serial", "port", "link", "gateware_id", "config", "memory", "memory_bytes"),
    *("state", "proof"),
)


@app.command(epilog=examples("ember-hw devices", "ember-hw devices --simulated --json"))
def devices(simulated: Simulated = False, as_json: Json = False) -> None:
    """List the boards that are connected.

    Only ports whose USB chip is one of a known board are opened.
    """
    with Steps() as step:
        step("looking for boards")
        from ember_hw.boards.host.finder import find_boards

        found = list(find_boards())
        if simulated:
            step("starting the simulated board (its model is compiled once on a machine)")
            found += _simulated(step)
    facts = [one.to_dict() for one in found]
    if as_json:
        print_json(facts)
    elif not facts:
        typer.echo("no board is connected; `ember-hw devices --simulated` shows a simulated one")
    else:
        from rich.table import Table

        table = Table(*(name.replace("_", " ") for name in _COLUMNS), box=None)
        for one in facts:
            table.add_row(*(str(one.get(name, "-")) for name in _COLUMNS))
        results.print(table)
        for proof, text in {
            one["proof"]: one["proof_text"] for one in facts if "proof" in one
        }.items():
            typer.echo(f"{proof}: {text}")


@app.command(
    epilog=examples(
        "ember-hw selftest                     of the board that is connected",
        "ember-hw selftest --board ulx3s --memory-bytes 33554432",
        "ember-hw selftest --simulated",
    )
)
def selftest(
    board: Annotated[
        str, typer.Option(help="Name of the board.", show_default="the one that is connected")
    ] = "",
    serial: Annotated[
        str | None, typer.Option(help="Serial number, where there are several boards.")
    ] = None,
    simulated: Simulated = False,
    memory_bytes: Annotated[
        int | None,
        typer.Option(help="Bytes of memory to test.", show_default="1 MiB, 4 KiB if simulated"),
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of what is written and looked up.", min=0)] = 0,
    as_json: Json = False,
) -> None:
    """Test a board: memory, lookups, link.

    What lies in its memory is overwritten. Exit code 1 if a test fails.
    """
    with Steps() as step:
        step("opening the board")
        from ember_hw.boards.simulated.board import BOARD
        from ember_hw.host.backends.board import Backend
        from ember_hw.host.backends.selftest import run_selftest

        name = BOARD if simulated else board
        backend = Backend(None, board=name, serial=serial, progress=step.detail)
        try:
            most = backend.board.description.memory_bytes
            chosen = memory_bytes or min(most, 4096 if name == BOARD else 1 << 20)
            verdicts = list(run_selftest(backend, memory_bytes=chosen, seed=seed, watcher=step))
        finally:
            backend.close()
    is_good = all(verdict.is_good for verdict in verdicts)
    if as_json:
        print_json({"ok": is_good, "tests": [asdict(verdict) for verdict in verdicts]})
    else:
        for verdict in verdicts:
            mark = "✓" if verdict.is_good else "✗"
            typer.echo(f"{mark} {verdict.test:<15}{verdict.detail}")
    if not is_good:
        raise typer.Exit(1)


def _simulated(step: Steps) -> list[FoundBoard]:
    from ember_hw.boards.host.finder import Candidate, look
    from ember_hw.boards.simulated.board import (
        PATIENCE_SECONDS,
        TIMEOUT_SECONDS,
        start_simulated_board,
    )

    with start_simulated_board(progress=step.detail) as terminal:
        step("asking it what it is")
        candidate = Candidate(terminal.port, "simulated")
        times = {"timeout_seconds": TIMEOUT_SECONDS, "patience_seconds": PATIENCE_SECONDS}
        return [look(candidate, **times)]
