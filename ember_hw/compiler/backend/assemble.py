"""The assembler: a program of the access-unit dialect becomes microcode.

Streams take their unit's records in text order (`au.next` moves its source to stream 0), rows the
row entries in text order, and each distinct value that is pushed takes one scalar of the bundle.
Values that are read further down take an export number (see `exports`). Integers become immediates;
arguments become patches, which the launch fills in, or registers, which each request fills in.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import Builtin
from xdsl.parser import Parser
from xdsl.utils.exceptions import ParseError, VerifyException

from ember_hw import isa
from ember_hw.compiler.backend.assemble_draft import Draft
from ember_hw.compiler.backend.assemble_rows import encode_pushes, encode_rows
from ember_hw.compiler.backend.assemble_units import encode_unit
from ember_hw.compiler.dialects.au import AU, ProgramOp, SlotKind
from ember_hw.compiler.dialects.au_program import AccessProgram, read_program
from ember_hw.compiler.program import Argument, Callback, Nest, Patch, Program
from ember_hw.config import AcceleratorConfig
from ember_hw.errors import AssemblyError


@dataclass(frozen=True)
class Assembly:
    """What the assembler makes of a program; the parts are those of `Nest` and `Program`."""

    name: str
    config: AcceleratorConfig
    microcode: isa.Microcode
    patches: tuple[Patch, ...]
    arguments: tuple[Argument, ...]
    registers: Mapping[str, int]
    callbacks: tuple[Callback, ...]

    def nest(self) -> Nest:
        """Return a nest without code for the execute side."""
        return Nest(
            name=self.name,
            microcode=self.microcode,
            patches=self.patches,
            registers=self.registers,
            callbacks=self.callbacks,
        )

    def program(self, *, opt_level: int, ir: Mapping[str, str] | None = None) -> Program:
        """Return a program of this one nest, without code for the execute side, or tables."""
        return Program(
            name=self.name,
            config=self.config,
            opt_level=opt_level,
            nests=(self.nest(),),
            arguments=self.arguments,
            ir=ir or {},
        )


def assemble(program: ProgramOp | AccessProgram, config: AcceleratorConfig) -> Assembly:
    """Assemble a verified program for a config.

    Parameters
    ----------
    program : ProgramOp or AccessProgram
        The op, or what `read_program` made of it.
    config : AcceleratorConfig
        Gives the limits, whatever target the program names.

    Raises
    ------
    AssemblyError
        The program exceeds a limit, or asks for what no record can say. The message names the op.
    """
    if isinstance(program, ProgramOp):
        program = read_program(program)
    draft = Draft(program, config)
    for level, unit in enumerate(program.units):
        encode_unit(draft, unit, level)
    encode_rows(draft)
    callbacks = encode_pushes(draft)
    registers = {
        draft.symbols[slot.number]: number
        for slot, number in draft.places.numbers.items()
        if slot.kind is SlotKind.ARGUMENT
    }
    return Assembly(
        name=program.name,
        config=config,
        microcode=isa.Microcode(config, draft.records),
        patches=tuple(draft.patches),
        arguments=tuple(
            Argument(argument.symbol, str(argument.type)) for argument in program.arguments
        ),
        registers=registers,
        callbacks=callbacks,
    )


def assemble_text(text: str, config: AcceleratorConfig | None = None) -> Assembly:
    """Assemble the text of one `au.program`.

    Parameters
    ----------
    text : str
        One program; `//` begins a comment.
    config : AcceleratorConfig, optional
        Gives the limits; absent, the preset that the program names as its target.

    Raises
    ------
    AssemblyError
        The text is not one legal program, its target is no preset, or see `assemble`.
    """
    context = Context()
    context.load_dialect(Builtin)
    context.load_dialect(AU)
    try:
        module = Parser(context, text).parse_module()
        module.verify()
    except (ParseError, VerifyException) as error:
        raise AssemblyError(f"text must be a legal au.program: {error}") from error
    programs = [op for op in module.body.block.ops if isinstance(op, ProgramOp)]
    if len(programs) != 1:
        raise AssemblyError(f"text must hold 1 au.program, not {len(programs)}")
    if config is None:
        try:
            config = AcceleratorConfig.preset(programs[0].target.data)
        except ValueError as error:
            raise AssemblyError(f"target of au.program: {error}") from error
    return assemble(programs[0], config)
