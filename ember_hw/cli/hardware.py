"""The commands at the hardware's level: `verilog`, `build`, `asm` and `disasm`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ember_hw.cli.application import Config, Json, app, examples, print_json
from ember_hw.cli.files import check_output, read_config, read_utf8
from ember_hw.cli.progress import Steps, notes


@app.command(
    epilog=examples(
        "ember-hw verilog -o rtl/",
        "ember-hw verilog -c mine.json -o rtl/",
        "ember-hw verilog --package ip/ -c small",
    )
)
def verilog(
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Folder for Verilog and config.")
    ] = None,
    package: Annotated[
        Path | None,
        typer.Option(
            "--package",
            help="Folder for a package: IP-XACT, FuseSoC and a C driver with a simulation, too.",
        ),
    ] = None,
    config: Config = "default",
) -> None:
    """Write the access unit as Verilog.

    The top has flat AXI names; the config it was made for lies beside it. Give --output, --package
    or both.
    """
    if output is None and package is None:
        raise typer.BadParameter("--output or --package must be given")
    parameters = read_config(config)
    with Steps() as step:
        from ember_hw.boards.ip_package import write_package, write_verilog

        written: list[Path] = []
        if output is not None:
            step("converting Amaranth to Verilog")
            written += write_verilog(parameters, output)
        if package is not None:
            step("packaging the access unit")
            written += write_package(parameters, package, step.detail)
    for path in written:
        typer.echo(str(path))


@app.command(
    epilog=examples(
        "ember-hw build ulx3s -o build/ulx3s",
        "ember-hw build ulx3s -o build/ulx3s --memory block --seed 2",
        "ember-hw build ecpix5 -o build/ecpix5",
    )
)
def build(
    board: Annotated[str, typer.Argument(help="A board: ulx3s or ecpix5.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for the files.")],
    config: Annotated[
        str | None,
        typer.Option("--config", "-c", help="A preset or a JSON file.", show_default="the board's"),
    ] = None,
    memory: Annotated[
        str | None,
        typer.Option(
            help="The board's memory: sdram or block; of ecpix5 ddr3 or ddr3-cpu.",
            show_default="the board's first",
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the placer.", min=1)] = 1,
    as_json: Json = False,
) -> None:
    """Build a board's bitstream with open tools.

    Writes top.bit and report.json. Takes ten minutes; what is built is kept, so a second run is
    short. The tools come with pip install 'ember-hw[boards]', DDR3 with 'ember-hw[boards,ddr3]'.
    """
    with Steps() as step:
        step("looking up the board")
        from ember_hw.boards.bitstream.build import build as build_gateware
        from ember_hw.boards.bitstream.target import board as find_board

        gateware = build_gateware(
            find_board(board),
            output,
            config=None if config is None else read_config(config),
            memory=memory,
            seed=seed,
            watcher=step,
        )
    report = gateware.report
    if as_json:
        print_json(report)
        return
    for name, one in report["resources"].items():
        typer.echo(f"{name:5} {one['used']:7,} of {one['available']:,} ({one['share']:.0%})")
    for name, clock in report["clocks"].items():
        typer.echo(f"{name:5} {clock['fmax_mhz']:g} MHz of {clock['target_mhz']:g} MHz needed")
    typer.echo(f"{gateware.bitstream} (gateware {report['gateware_id']})")


@app.command(epilog=examples("ember-hw asm bag.txt -o bag.bin --config tiny"))
def asm(
    source: Annotated[
        Path, typer.Argument(help="Text of a microcode.", exists=True, dir_okay=False)
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="Where the words go.")],
    config: Config = "default",
) -> None:
    """Assemble microcode.

    Text in, little-endian 32-bit words out.
    """
    import numpy as np

    from ember_hw.isa import assemble

    check_output(output)
    words = assemble(read_utf8(source), read_config(config)).encode()
    output.write_bytes(np.array(words, dtype="<u4").tobytes())
    notes.print(f"{output}: {len(words)} words")


@app.command(
    epilog=examples("ember-hw disasm bag.ember", "ember-hw disasm bag.bin --config tiny > bag.txt")
)
def disasm(
    source: Annotated[
        Path,
        typer.Argument(help="A program, or words of a microcode.", exists=True, dir_okay=False),
    ],
    config: Config = "default",
) -> None:
    """Disassemble microcode.

    --config is that of bare words; a program knows its own.
    """
    import zipfile

    from ember_hw.compiler.program import Program
    from ember_hw.errors import AssemblyError
    from ember_hw.isa import Microcode, disassemble

    if zipfile.is_zipfile(source):
        program = Program.load(source)
        texts = [disassemble(nest.microcode) for nest in program.nests]
        if len(texts) > 1:
            texts = [f"# {nest.name}\n{t}" for nest, t in zip(program.nests, texts, strict=True)]
        typer.echo("".join(texts), nl=False)
    else:
        content = source.read_bytes()
        if len(content) % 4:
            raise AssemblyError(f"{source} must hold whole 32-bit words, not {len(content)} bytes")
        words = [int.from_bytes(content[at : at + 4], "little") for at in range(0, len(content), 4)]
        typer.echo(disassemble(Microcode.decode(words, read_config(config))), nl=False)
