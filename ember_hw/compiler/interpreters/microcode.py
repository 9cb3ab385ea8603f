"""What microcode means: bound microcode run on memory, level by level, in NumPy.

The result is what the access unit's two queues deliver, in chunks. The rules:

- A request enters unit 0 once, with its arguments as inherited values; requests run one after
  another. A unit below is entered for each iteration of the unit above; where that has none, the
  token above passes as it is, without events of this level.
- A unit that is entered evaluates its bounds on its inherited values. Without an iteration it makes
  one token with its begin and end; else one token an iteration: iterate always, begin on the first,
  end on the last. The begin and iterate of levels above ride on the first token, their ends on the
  last.
- Values are 32 bits, two's complement. A level's own values exist where its iterate is set; they
  are 0 elsewhere, which no program may rely on. Where an export is 0, the inherited value of the
  same number passes.
- A token of the innermost unit yields a bundle if one of its events is in `issue.events` or it is
  the request's last, then the rows whose event masks it meets, in the order of their entries.
- Rows take values as unsigned. A stream that is fed by the input queue takes its next line where
  the number of the line that it reads changes, and where a request begins.

The first fault in the order of the program (of a token: streams in order, then the pair value,
then row entries) ends the run. A fault's address is the byte address that memory did not answer;
where a number leads outside it is that: the element's low word or the row's index, and for
VALUE_TOO_WIDE the value's low word.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from ember_hw.compiler.backend.check_microcode import check_microcode
from ember_hw.compiler.interpreters.microcode_issue import Chunk, Issue
from ember_hw.compiler.interpreters.microcode_memory import Memory
from ember_hw.compiler.interpreters.microcode_plan import plan_of
from ember_hw.compiler.interpreters.microcode_tokens import Tokens
from ember_hw.compiler.interpreters.microcode_unit import Unit
from ember_hw.config import LINE_BYTES
from ember_hw.isa import ISA_VERSION, Microcode
from ember_hw.registers import NO_UNIT, FaultCode, fault_error

CHUNK_TOKENS = 1 << 16
CHUNK_ROW_BYTES = 1 << 25

NO_LINES: Mapping[tuple[int, int], NDArray[np.uint8]] = {}


class Machine:
    """A bound program on memory, ready to run: what is the same in all runs is worked out once.

    Parameters
    ----------
    microcode : Microcode
        What `Program.bind` returned.
    regions : sequence of (int, uint8 array)
        Memory: base address and bytes of each region. What they hold is read in each run.
    chunk_tokens : int
        Tokens of one level worked on at a time.
    chunk_row_bytes : int
        Bytes of rows in a chunk, unless one token alone has more.
    is_checked : bool
        Whether `check_microcode` has seen the program, as it has what `Nest.bind` returned.

    Raises
    ------
    DeviceError
        The access unit would refuse the microcode with a fault.
    ProgramError
        The microcode breaks a rule of `check_microcode`.
    """

    def __init__(
        self,
        microcode: Microcode,
        regions: Sequence[tuple[int, NDArray[np.uint8]]],
        *,
        chunk_tokens: int = CHUNK_TOKENS,
        chunk_row_bytes: int = CHUNK_ROW_BYTES,
        is_checked: bool = False,
    ) -> None:
        config = microcode.config
        if microcode.get("header", "version") != ISA_VERSION:
            raise fault_error(FaultCode.BAD_VERSION, NO_UNIT)
        plans = plan_of(microcode)
        is_chain = [plan.level for plan in plans] == [*range(len(plans))]
        if not plans or not is_chain or not all(plan.record["step"] for plan in plans):
            raise fault_error(FaultCode.ILLEGAL_MICROCODE, NO_UNIT)
        if not is_checked:
            check_microcode(microcode)
        memory = Memory(regions, bus_bytes=config.bus_bytes)
        self._exports = config.exports
        self._units = [Unit(plan, config, memory, chunk_tokens) for plan in plans]
        self._issue = Issue(microcode, memory, chunk_row_bytes)
        self._latest: tuple[list[Sequence[int]], Tokens] | None = None

    def run(
        self,
        requests: Sequence[Sequence[int]] = ((),),
        lines: Mapping[tuple[int, int], NDArray[np.uint8]] = NO_LINES,
    ) -> Iterator[Chunk]:
        """Run the program; a run ends before the next one begins. See `execute`."""
        for (unit, stream), content in lines.items():
            if content.dtype != np.uint8 or content.ndim != 2 or content.shape[1] != LINE_BYTES:
                raise ValueError(
                    f"lines of unit {unit}, stream {stream} must be uint8 of shape "
                    f"(N, {LINE_BYTES}), not {content.dtype} of shape {content.shape}"
                )
        tokens: Iterator[Tokens] = iter([self._start(requests)])
        for unit in self._units:
            tokens = unit.run(tokens, lines)
        return self._issue.run(tokens)

    def _start(self, requests: Sequence[Sequence[int]]) -> Tokens:
        """Return a token for each request; for the same requests those of the run before."""
        given = [*requests]
        if self._latest is None or self._latest[0] != given:
            count = len(given)
            inherited = _arguments(given, self._exports)
            start = Tokens(np.zeros(count, np.uint32), np.ones(count, np.bool_), inherited)
            self._latest = given, start
        return self._latest[1]


def execute(
    microcode: Microcode,
    regions: Sequence[tuple[int, NDArray[np.uint8]]],
    *,
    requests: Sequence[Sequence[int]] = ((),),
    lines: Mapping[tuple[int, int], NDArray[np.uint8]] = NO_LINES,
    chunk_tokens: int = CHUNK_TOKENS,
    chunk_row_bytes: int = CHUNK_ROW_BYTES,
    is_checked: bool = False,
) -> Iterator[Chunk]:
    """Run a bound program.

    Parameters
    ----------
    microcode : Microcode
        What `Program.bind` returned.
    regions : sequence of (int, uint8 array)
        Memory: base address and bytes of each region.
    requests : sequence of sequences of int
        Arguments of each request, as signed or unsigned 32-bit values; those left out are 0. One
        request without arguments if absent.
    lines : mapping of (unit, stream) to uint8 (N, 64)
        What the input queue brings to the streams that it feeds, in order.
    chunk_tokens : int
        Tokens of one level worked on at a time.
    chunk_row_bytes : int
        Bytes of rows in a chunk, unless one token alone has more.
    is_checked : bool
        Whether `check_microcode` has seen the program, as it has what `Nest.bind` returned.

    Yields
    ------
    Chunk
        Bundles and their rows, in order; the end of level 0 ends a request. A chunk before a fault
        may be delivered; the result of the run is void nevertheless.

    Raises
    ------
    DeviceError
        The access unit would stop with a fault. MEMORY_STALLED: the input queue has no line left.
    ProgramError
        The microcode breaks a rule of `check_microcode`.
    ValueError
        A request has more arguments than the config has, or one that is not 32 bits wide; or an
        array of lines has another shape.
    """
    machine = Machine(
        microcode,
        regions,
        chunk_tokens=chunk_tokens,
        chunk_row_bytes=chunk_row_bytes,
        is_checked=is_checked,
    )
    return machine.run(requests, lines)


def _arguments(requests: Sequence[Sequence[int]], exports: int) -> list[NDArray[np.int32]]:
    """Return each argument of all requests."""
    arguments = np.zeros((exports, len(requests)), np.int32)
    for number, request in enumerate(requests):
        if len(request) > exports:
            raise ValueError(
                f"arguments of request {number} must be at most {exports}, not {len(request)}"
            )
        for position, value in enumerate(request):
            if not -(1 << 31) <= value < 1 << 32:
                raise ValueError(
                    f"argument {position} of request {number} must be 32 bits wide, not {value!r}"
                )
            arguments[position, number] = (int(value) + (1 << 31)) % (1 << 32) - (1 << 31)
    return list(arguments)
