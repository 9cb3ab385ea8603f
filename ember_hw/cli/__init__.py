"""`ember-hw`: the command line.

Each command imports what it needs when it runs, so that `--help` and errors of usage come at once.
Results go to standard output, progress and errors to standard error.
"""

from __future__ import annotations

import json
import sys
import traceback
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from ember_hw.cli.files import load_model, read_arrays, read_config
from ember_hw.cli.progress import Steps, notes
from ember_hw.errors import EmberError

app = typer.Typer(
    name="ember-hw",
    help="Compiles PyTorch embeddings for a decoupled access-execute accelerator, and runs them.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # help as plain text, the same in a terminal, a pipe and a log
    epilog="`ember-hw COMMAND --help` has examples. Exit codes: 0 success, 1 error, 2 wrong usage.",
)
results = Console(highlight=False)

Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
Config = Annotated[
    str, typer.Option("--config", "-c", help="A preset's name, or a JSON file of parameters.")
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
Memory = Annotated[str, typer.Option(help="Model of the memory: ideal.")]
Latency = Annotated[
    int | None,
    typer.Option(help="Cycles from a read to its data in the ideal memory.", show_default="100"),
]
Sink = Annotated[
    str,
    typer.Option(help="Execute side that drains the queues: ideal (never waits) or core-like."),
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


@app.command(
    epilog=examples(
        "ember-hw demo",
        "ember-hw demo --latency 400                what a slow memory costs",
        "ember-hw demo --sink core-like -O 2        an in-order core takes the rows",
        "ember-hw demo --json > demo.json",
    )
)
def demo(
    seed: Annotated[int, typer.Option(help="Seed of the table's values.", min=0)] = 0,
    opt_level: OptLevel = 3,
    memory: Memory = "ideal",
    latency: Latency = None,
    sink: Sink = "ideal",
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

        result = run.run(step, seed=seed, opt_level=opt_level, memory=chosen, sink=sink)
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


@app.command(
    "compile",
    epilog=examples(
        "ember-hw compile model.py:bag -o bag.ember",
        "ember-hw compile model.py:bag -o bag.ember --inputs request.npz --seed 7 -O 2",
    ),
)
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
    seed: Annotated[
        int | None,
        typer.Option(help="Seeds torch before FILE.py runs; the program and its reports name it."),
    ] = None,
    opt_level: OptLevel = 3,
    config: Config = "default",
    as_json: Json = False,
) -> None:
    """Compile a PyTorch module to a program."""
    parameters = read_config(config)
    with Steps() as step:
        step(f"loading {model}")
        from dataclasses import replace

        import ember_hw

        module, calls = load_model(model, seed)
        if inputs is not None:
            calls = tuple(read_arrays(inputs).values())
        step("compiling")
        program = ember_hw.compile(module, calls, opt_level=opt_level, config=parameters)
        program = replace(program, seed=seed)
        step(f"writing {output}")
        program.save(output)
    facts = {
        "program": str(output),
        "bytes": output.stat().st_size,
        "seed": seed,
        "opt_level": program.opt_level,
        "config": program.config.name,
        "inputs": program.model.get("input_names", []),
        "microcode_words": len(program.microcode.encode()),
        "ir_lines": {level: len(text.splitlines()) for level, text in program.ir.items()},
    }
    if as_json:
        print_json(facts)
    else:
        for name, value in facts.items():
            typer.echo(f"{name.replace('_', ' '):<24}{value}")


@app.command(
    epilog=examples(
        "ember-hw run bag.ember --inputs request.npz --backend verilator --verify",
        "ember-hw run bag.ember --inputs request.npz -b interpreter -o pooled.npy --json",
        "ember-hw run bag.ember --inputs request.npz -b verilator --latency 400 --sink core-like",
        "ember-hw run bag.ember --inputs request.npz -b verilator --trace run.vcd --trace-end 500",
    )
)
def run(
    program: Annotated[
        Path, typer.Argument(help="What `compile` wrote.", exists=True, dir_okay=False)
    ],
    inputs: Annotated[
        Path,
        typer.Option(
            help="An .npz: arrays with the names of the module's inputs, or unnamed ones in order.",
            exists=True,
            dir_okay=False,
        ),
    ],
    backend: Annotated[str, typer.Option("--backend", "-b", help="interpreter or verilator.")],
    memory: Memory = "ideal",
    latency: Latency = None,
    sink: Sink = "ideal",
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Where the pooled rows go, an .npy.")
    ] = None,
    verify: Annotated[bool, typer.Option("--verify", help="Compare with the reference.")] = False,
    trace: Annotated[
        Path | None,
        typer.Option(help="Where a trace of every signal goes, a .vcd; needs a slower model."),
    ] = None,
    trace_start: Annotated[
        int | None,
        typer.Option(help="First cycle of the trace, from the program's start.", show_default="0"),
    ] = None,
    trace_end: Annotated[
        int | None,
        typer.Option(help="Cycle before which it ends.", show_default="1,000 after the first"),
    ] = None,
    as_json: Json = False,
) -> None:
    """Run a program on a backend and report.

    With --verify a difference from the reference is an error.
    """
    from ember_hw.cli.machine import choose_memory, choose_trace

    chosen = choose_memory(memory, latency)
    options = choose_trace(trace, trace_start, trace_end)
    with Steps() as step:
        step(f"reading {program}")
        import numpy as np

        import ember_hw
        from ember_hw.host.launch import make_request

        loaded = ember_hw.load(program)
        arrays: Any = read_arrays(inputs)
        if all(name.startswith("arr_") for name in arrays):  # what numpy calls unnamed ones
            arrays = tuple(arrays.values())
        request = make_request(loaded, arrays)  # a wrong one is refused before a model is built
        step(f"opening {backend} (a model is built once on a machine)")
        with ember_hw.open_device(
            backend,
            config=loaded.config,
            memory=chosen,
            sink=sink,
            progress=step.detail,
            **options,
        ) as device:
            step("running")
            pooled = device.run(loaded, arrays, progress=step.reached)
            report = device.report
        facts = report.to_dict()
        if output is not None:
            step(f"writing {output}")
            np.save(output, pooled)
        if verify:
            step("comparing with the reference")
            from ember_hw.host.reference import count_mismatches, exact

            (table,) = loaded.tables.values()
            facts["mismatches"] = count_mismatches(pooled, exact(table, request))
    if as_json:
        print_json(facts)
    else:
        typer.echo(str(report))
        if verify:
            typer.echo(f"{'exact reference':<24}{facts['mismatches']} of {len(pooled)} bags differ")
    if facts.get("mismatches"):
        raise typer.Exit(1)


@app.command(epilog=examples("ember-hw verilog -o rtl/", "ember-hw verilog -c mine.json -o rtl/"))
def verilog(
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for the files.")],
    config: Config = "default",
) -> None:
    """Write the access unit as Verilog.

    The top has flat AXI names; the config it was made for lies beside it.
    """
    parameters = read_config(config)
    with Steps() as step:
        step("converting Amaranth to Verilog")
        from ember_hw.rtl.emit_verilog import TOP_NAME, emit_verilog

        text = emit_verilog(parameters)
    output.mkdir(parents=True, exist_ok=True)
    written = {
        f"{TOP_NAME}.v": text,
        "config.json": json.dumps(parameters.to_dict(), indent=2) + "\n",
    }
    for name, content in written.items():
        (output / name).write_text(content)
        typer.echo(str(output / name))


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

    words = assemble(source.read_text(), read_config(config)).encode()
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
        microcode = Program.load(source).microcode
    else:
        content = source.read_bytes()
        if len(content) % 4:
            raise AssemblyError(f"{source} must hold whole 32-bit words, not {len(content)} bytes")
        words = [int.from_bytes(content[at : at + 4], "little") for at in range(0, len(content), 4)]
        microcode = Microcode.decode(words, read_config(config))
    typer.echo(disassemble(microcode), nl=False)
