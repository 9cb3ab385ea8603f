"""The commands that make programs and run them: `compile` and `run`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, cast

import typer

from ember_hw.cli import completion
from ember_hw.cli.application import (
    Config,
    Json,
    Latency,
    Memory,
    OptLevel,
    Sink,
    app,
    examples,
    print_json,
)
from ember_hw.cli.files import check_output, load_model, read_arrays, read_config, read_text
from ember_hw.cli.progress import Steps


@app.command(
    "compile",
    epilog=examples(
        "ember-hw compile model.py:bag -o bag.ember",
        "ember-hw compile model.py:bag -o bag.ember --inputs request.npz --seed 7 -O 2",
        "ember-hw compile model.py:bag -o bag.ember --quantize weight=int8 --output-dtype float16",
        "ember-hw compile loops.mlir -o loops.ember --tables weights.npz",
        "ember-hw compile loops.mlir -o loops.ember --config reduce.json --execute fabric",
    ),
)
def compile_(
    model: Annotated[
        str,
        typer.Argument(
            metavar="FILE.py:NAME|FILE.mlir", help="A module in a file, or a function of scf loops."
        ),
    ],
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
    tables: Annotated[
        Path | None,
        typer.Option(
            help="Of a FILE.mlir: arguments that belong to the program, an .npz with their names.",
            exists=True,
            dir_okay=False,
        ),
    ] = None,
    quantize: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TABLE=FORMAT",
            help="Of a FILE.py: a table by its name, packed to int8 or int4; repeatable.",
        ),
    ] = None,
    output_dtype: Annotated[
        str | None,
        typer.Option(help="Of a FILE.py: float32, float16 or bfloat16, of rows that come back."),
    ] = None,
    opt_level: OptLevel = 3,
    config: Config = "default",
    execute: Annotated[
        str,
        typer.Option(help="What runs execute code, with a reduce unit: auto, host or fabric."),
    ] = "auto",
    as_json: Json = False,
) -> None:
    """Compile a PyTorch module, or loops of your own, to a program.

    docs/scf.md says which loops a FILE.mlir may hold.
    """
    parameters = read_config(config)
    check_output(output)
    with Steps() as step:
        step(f"loading {model}")
        from dataclasses import replace

        import ember_hw

        if model.endswith(".mlir"):
            if any(given is not None for given in (inputs, seed, quantize, output_dtype)):
                raise ValueError(
                    f"inputs, seed, quantize and output-dtype must be left out with {model}"
                )
            arguments = {} if tables is None else read_arrays(tables)
            step("compiling")
            program = ember_hw.compile_function(
                read_text(model),
                opt_level=opt_level,
                config=parameters,
                tables=arguments,
                execute=cast("Any", execute),  # checked there
            )
        else:
            if tables is not None:
                raise ValueError(f"tables must be left out with {model}, which has its own")
            formats = _formats(quantize or [])
            module, calls = load_model(model, seed)
            if inputs is not None:
                calls = tuple(read_arrays(inputs).values())
            step("compiling")
            program = ember_hw.compile(
                module,
                calls,
                opt_level=opt_level,
                config=parameters,
                execute=cast("Any", execute),  # checked there
                output_dtype=output_dtype,
                tables=formats,
            )
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
        "microcode_words": program.microcode_words,
        "placement": [list(nest) for nest in program.placement],
        "ir_lines": {level: len(text.splitlines()) for level, text in program.ir.items()},
    }
    if as_json:
        print_json(facts)
    else:
        for name, value in facts.items():
            typer.echo(f"{name.replace('_', ' '):<24}{value}")


def _formats(pairs: list[str]) -> dict[str, str]:
    """Return formats by the names of tables.

    Raises
    ------
    ValueError
        A pair isn't of the form TABLE=FORMAT.
    """
    found: dict[str, str] = {}
    for pair in pairs:
        name, is_pair, form = pair.rpartition("=")
        if not is_pair or not name:
            raise ValueError(f"quantize must be TABLE=FORMAT, as weight=int8, not {pair!r}")
        found[name] = form
    return found


@app.command(
    epilog=examples(
        "ember-hw run bag.ember --inputs request.npz --backend verilator --verify",
        "ember-hw run bag.ember --inputs request.npz -b interpreter -o pooled.npy --json",
        "ember-hw run bag.ember --inputs request.npz -b verilator --latency 400 --sink core-like",
        "ember-hw run bag.ember --inputs request.npz -b verilator --report run.html",
        "ember-hw run bag.ember --inputs request.npz -b verilator --trace run.vcd --trace-end 500",
        "ember-hw run bag.ember --inputs request.npz -b verilator --trace run.fst "
        "--trace-by lookups --trace-start 100 --trace-end 104",
    )
)
def run(
    program: Annotated[
        Path, typer.Argument(help="What `compile` wrote.", exists=True, dir_okay=False)
    ],
    inputs: Annotated[
        Path,
        typer.Option(
            help="An .npz: arrays with the names of the inputs, or unnamed ones in order.",
            exists=True,
            dir_okay=False,
        ),
    ],
    backend: Annotated[
        str,
        typer.Option(
            "--backend",
            "-b",
            help="interpreter, verilator, or board:NAME, as board:sim.",
            autocompletion=completion.backends,
        ),
    ],
    memory: Memory = "ideal",
    latency: Latency = None,
    sink: Sink = "ideal",
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", help="Where the result goes, an .npy; an .npz if it is several."
        ),
    ] = None,
    verify: Annotated[bool, typer.Option("--verify", help="Compare with the reference.")] = False,
    report_file: Annotated[
        Path | None,
        typer.Option(
            "--report", help="Where the report goes, too: an .html, .png, .json or .txt file."
        ),
    ] = None,
    trace: Annotated[
        Path | None,
        typer.Option(
            help="Where a trace of every signal goes, a .vcd or .fst; needs a slower model. A map "
            "of its names and a save file for GTKWave go beside it.",
        ),
    ] = None,
    trace_start: Annotated[
        int | None,
        typer.Option(help="First cycle or lookup of the trace.", show_default="0"),
    ] = None,
    trace_end: Annotated[
        int | None,
        typer.Option(
            help="The one before which it ends.", show_default="1,000 cycles or 10 lookups after"
        ),
    ] = None,
    trace_by: Annotated[
        str,
        typer.Option(
            help="What they count: cycles from the program's start, or lookups.",
            autocompletion=completion.windows,
        ),
    ] = "cycles",
    as_json: Json = False,
) -> None:
    """Run a program on a backend and report.

    With --verify a difference from the reference is an error.
    """
    from ember_hw.cli.machine import choose_memory, choose_trace
    from ember_hw.cli.results import check_report_path, differing_rows, write_report

    chosen = choose_memory(memory, latency)
    options = choose_trace(trace, trace_start, trace_end, trace_by)
    if output is not None:
        check_output(output)
    if report_file is not None:
        check_report_path(report_file)
    with Steps() as step:
        step(f"reading {program}")
        import numpy as np

        import ember_hw
        from ember_hw.compiler.element_dtypes import storable
        from ember_hw.host.bindings import binding_of

        loaded = ember_hw.load(program)
        arrays: Any = read_arrays(inputs)
        if all(name.startswith("arr_") for name in arrays):  # what numpy calls unnamed ones
            arrays = tuple(arrays.values())
        binding = binding_of(loaded)
        binding.request(loaded, arrays)  # a wrong one is refused before a model is built
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
            result = device.run(loaded, arrays, progress=step.reached)
            report = device.report
        facts = report.to_dict()
        if output is not None:
            step(f"writing {output}")
            if isinstance(result, tuple):
                np.savez(output, *(storable(rows) for rows in result))
            else:
                np.save(output, storable(result))
        if report_file is not None:
            step(f"writing {report_file}")
            write_report(report, report_file)
        rows = 0
        if verify:
            step("comparing with the reference")
            wanted = binding.reference(loaded, arrays)
            facts["mismatches"], rows = differing_rows(result, wanted)
    if as_json:
        print_json(facts)
    else:
        typer.echo(str(report))
        if verify:
            typer.echo(f"{'exact reference':<24}{facts['mismatches']} of {rows} rows differ")
    if facts.get("mismatches"):
        raise typer.Exit(1)
