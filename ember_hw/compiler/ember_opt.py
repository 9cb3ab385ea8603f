"""`ember-opt`: read IR text, run passes, print IR text.

`ember-opt --opt-level 3 bag.mlir` is all the way from scf to the assembler's text; `--passes` names
passes one by one.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TextIO

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.printer import Printer
from xdsl.utils.arg_spec import parse_pipeline
from xdsl.utils.exceptions import (
    ArgSpecParseError,
    DiagnosticException,
    PassFailedException,
    VerifyException,
)

from ember_hw.compiler.backend.dlc_to_au import DlcToAu
from ember_hw.compiler.dialects import make_context
from ember_hw.compiler.ir_text import parse_module, rewrite_reference_text, verify_module
from ember_hw.compiler.pipeline import OPT_LEVELS, PASSES, pipeline, vector_length_of
from ember_hw.compiler.transforms.access_slice import decoupling_report
from ember_hw.config import PRESETS, AcceleratorConfig
from ember_hw.errors import CheckError, CompileError, EmberError

_SPLIT = "// -----"


def main(arguments: Sequence[str] | None = None) -> int:
    """
    Run the command line.

    Parameters
    ----------
    arguments : sequence of str, optional
        The arguments; by default those of the process.

    Returns
    -------
    int
        Exit code: 0 if every part of the input went through every pass.
    """
    options = _argument_parser().parse_args(arguments)
    try:
        if options.opt_level is None:
            passes = make_passes(options.passes)
        else:
            passes = passes_to_au(options.opt_level, AcceleratorConfig.preset(options.config))
        text, name = _read(options.file)
        if options.reference:
            text = rewrite_reference_text(text)
    except (EmberError, OSError) as error:
        sys.stderr.write(f"error: {error}\n")
        return 1
    failed = False
    for index, (part, lines_above) in enumerate(_parts(text, split=options.split_input_file)):
        if index:
            sys.stdout.write(f"{_SPLIT}\n")
        try:
            _run(part, lines_above, name, passes, options)
        except (EmberError, VerifyException, PassFailedException, DiagnosticException) as error:
            message = f"error: {' '.join(str(error).split())}\n"
            if options.verify_diagnostics:
                sys.stdout.write(message)
            else:
                sys.stderr.write(message)
                failed = True
    return 1 if failed else 0


def make_passes(pipeline: str) -> list[ModulePass]:
    """
    Return the passes of a pipeline text such as `scf-to-slc,slc-vectorizer{vector-length=8}`.

    Raises
    ------
    CompileError
        A name isn't a pass, or an option isn't one of it; the message lists the choices.
    """
    passes: list[ModulePass] = []
    try:
        for spec in parse_pipeline(pipeline):
            if spec.name not in PASSES:
                choices = ", ".join(sorted(PASSES))
                raise CompileError(f"pass must be one of {choices}, not {spec.name!r}")
            passes.append(PASSES[spec.name].from_spec(spec))
    except ArgSpecParseError as error:
        raise CompileError(
            f"pipeline must be pass{{option=value}},pass, not {pipeline!r}"
        ) from error
    except ValueError as error:
        raise CompileError(f"options in {pipeline!r} must fit their passes: {error}") from error
    return passes


def passes_to_au(opt_level: int, config: AcceleratorConfig) -> list[ModulePass]:
    """Return the passes of an opt level from scf to the program of a config's access unit."""
    steps = pipeline(opt_level, vector_length_of(config), hardware=True)
    return [*(step.module_pass for step in steps), DlcToAu(config.name)]


def run_passes(
    context: Context,
    module: ModuleOp,
    passes: Sequence[ModulePass],
    *,
    verify_each: bool = True,
    print_after_all: TextIO | None = None,
) -> None:
    """
    Run passes over a module in place.

    Parameters
    ----------
    context : Context
        The dialects.
    module : ModuleOp
        Verified IR.
    passes : sequence of ModulePass
        Run in this order.
    verify_each : bool
        Whether to verify the module after each pass.
    print_after_all : text stream, optional
        Where to print the IR after each pass.
    """
    for module_pass in passes:
        module_pass.apply(context, module)
        if print_after_all is not None:
            print_after_all.write(f"{_SPLIT} IR after {module_pass.name}\n{module!s}\n")
        if verify_each:
            verify_module(module)


def _argument_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="ember-opt",
        description="Reads IR text, runs passes, prints IR text.",
        epilog=_list_of_passes(),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("file", nargs="?", default="-", help="IR text; - or nothing reads stdin")
    what_to_run = parser.add_mutually_exclusive_group()
    what_to_run.add_argument(
        "-p", "--passes", default="", help="passes in order: name,name{option=value}"
    )
    what_to_run.add_argument(
        "-O",
        "--opt-level",
        type=int,
        choices=OPT_LEVELS,
        help="every pass of this level, from scf to au",
    )
    parser.add_argument(
        "--config",
        choices=PRESETS,
        default="default",
        help="access unit that --opt-level compiles for",
    )
    parser.add_argument(
        "--print-ir-after-all", action="store_true", help="IR after each pass, to stderr"
    )
    parser.add_argument(
        "--print-decoupling",
        action="store_true",
        help="what scf the access unit runs, and why not the rest, to stderr",
    )
    parser.add_argument(
        "--print-generic", action="store_true", help="print the generic form of every op"
    )
    parser.add_argument(
        "--verify-each",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="verify the IR after each pass",
    )
    parser.add_argument(
        "--split-input-file", action="store_true", help=f"parts between lines '{_SPLIT}'"
    )
    parser.add_argument(
        "--verify-diagnostics", action="store_true", help="print errors instead of failing"
    )
    parser.add_argument(
        "--reference", action="store_true", help="accept the printed form of the reference"
    )
    return parser


def _list_of_passes() -> str:
    """Say what each pass does, in the first sentence of its docstring."""
    lines = ["passes:"]
    for name, pass_type in PASSES.items():
        summary, _, _ = (pass_type.__doc__ or "").strip().partition("\n\n")
        lines.append(f"  {name:<22} {' '.join(summary.split())}")
    return "\n".join(lines)


def _read(file: str) -> tuple[str, str]:
    name = "<stdin>" if file == "-" else file
    try:
        return (sys.stdin.read() if file == "-" else Path(file).read_text("utf-8")), name
    except UnicodeDecodeError as error:
        raise CheckError(f"{name} must be text in UTF-8: {error}") from error


def _parts(text: str, *, split: bool) -> list[tuple[str, int]]:
    """Return the parts of the text and the number of lines above each."""
    if not split:
        return [(text, 0)]
    parts: list[tuple[str, int]] = []
    lines_above = 0
    for part in text.split(_SPLIT):
        parts.append((part, lines_above))
        lines_above += part.count("\n")
    return parts


def _run(
    text: str,
    lines_above: int,
    name: str,
    passes: Sequence[ModulePass],
    options: argparse.Namespace,
) -> None:
    context = make_context()
    module = parse_module("\n" * lines_above + text, name, context)
    if options.print_decoupling:
        for decision in decoupling_report(module):
            sys.stderr.write(f"{decision}\n")
    run_passes(
        context,
        module,
        passes,
        verify_each=options.verify_each,
        print_after_all=sys.stderr if options.print_ir_after_all else None,
    )
    Printer(sys.stdout, print_generic_format=options.print_generic).print_op(module)
    sys.stdout.write("\n")


if __name__ == "__main__":
    sys.exit(main())
