"""What microcode means: bound microcode run on memory, level by level, in NumPy.

The result is what the access unit's two queues deliver, in chunks. The rules:

- Unit 0 is entered once. A unit below is entered for each iteration of the unit above; where that
  has none, the token above passes as it is, without events of this level.
- A unit that is entered evaluates its bounds on its inherited values. Without an iteration it makes
  one token with its begin and end; else one token an iteration: iterate always, begin on the first,
  end on the last. The begin and iterate of levels above ride on the first token, their ends on the
  last.
- Values are 32 bits, two's complement. A level's own values exist where its iterate is set; they
  are 0 elsewhere, which no program may rely on.
- A token of the innermost unit yields a bundle if one of its events is in `issue.events` or it is
  the program's last, then the rows whose event masks it meets, in the order of their entries.

The first fault in the order of the program (of a token: streams in order, then the pair value,
then row entries) ends the run. A fault's address is the element's or row's byte address; where a
row is at fault it is the index, for VALUE_TOO_WIDE the value's low word.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from ember_hw.compiler.backend.check_microcode import check_microcode
from ember_hw.compiler.interpreters.microcode_issue import Chunk, Issue
from ember_hw.compiler.interpreters.microcode_memory import Memory
from ember_hw.compiler.interpreters.microcode_tokens import FirstFault, Tokens
from ember_hw.errors import DeviceError
from ember_hw.isa import (
    ISA_VERSION,
    AluOperation,
    BoundSource,
    Event,
    Microcode,
    Source,
    event_bit,
)
from ember_hw.registers import FaultCode, fault_error

CHUNK_TOKENS = 1 << 16
CHUNK_ROW_BYTES = 1 << 25

_INT32 = np.iinfo(np.int32)
_LOW_WORD = (1 << 32) - 1


def execute(
    microcode: Microcode,
    regions: Sequence[tuple[int, NDArray[np.uint8]]],
    *,
    chunk_tokens: int = CHUNK_TOKENS,
    chunk_row_bytes: int = CHUNK_ROW_BYTES,
) -> Iterator[Chunk]:
    """Run a bound program.

    Parameters
    ----------
    microcode : Microcode
        What `Program.bind` returned.
    regions : sequence of (int, uint8 array)
        Memory: base address and bytes of each region.
    chunk_tokens : int
        Tokens of one level worked on at a time.
    chunk_row_bytes : int
        Bytes of rows in a chunk, unless one token alone has more.

    Yields
    ------
    Chunk
        Bundles and their rows, in order. A chunk before a fault may be delivered; the result of
        the run is void nevertheless.

    Raises
    ------
    DeviceError
        The access unit would stop with a fault.
    ProgramError
        The microcode breaks a rule of `check_microcode`.
    """
    config = microcode.config
    if microcode.get("header", "version") != ISA_VERSION:
        raise fault_error(FaultCode.BAD_VERSION)
    enabled = [microcode.get(f"unit{k}", "enable") for k in range(config.traversal_units)]
    units = sum(enabled)
    steps = [microcode.get(f"unit{k}", "step") for k in range(units)]
    lengths = [
        microcode.get(f"row{r}", "length")
        for r in range(config.row_entries)
        if microcode.get(f"row{r}", "events")
        and microcode.get(f"row{r}", "length_source") == Source.IMMEDIATE
    ]
    if not units or 0 in enabled[:units] or 0 in steps or 0 in lengths:
        raise fault_error(FaultCode.ILLEGAL_MICROCODE)
    check_microcode(microcode)

    memory = Memory(regions, bus_bytes=config.bus_bytes)
    zero = np.zeros(1, np.int32)
    start = Tokens(np.zeros(1, np.uint32), np.ones(1, np.bool_), [zero] * config.exports)
    tokens: Iterator[Tokens] = iter([start])
    for k in range(units):
        tokens = _Unit(microcode, k, memory, chunk_tokens).run(tokens)
    return Issue(microcode, memory, chunk_row_bytes).run(tokens)


class _Unit:
    """One traversal unit with its streams and its ALU."""

    def __init__(self, microcode: Microcode, level: int, memory: Memory, chunk: int) -> None:
        config = microcode.config
        self.level, self.memory, self.chunk = level, memory, chunk
        self.record = microcode.records[f"unit{level}"]
        self.address_mask = (1 << config.address_width_bits) - 1
        self.streams = [
            microcode.records[f"unit{level}.stream{s}"] for s in range(config.streams_per_unit)
        ]
        self.exports = [self.record[f"export{i}"] for i in range(config.exports)]
        self.inherited_slot = config.streams_per_unit + 2
        self.own = [np.uint32(1 << event_bit(event, level, config)) for event in Event]
        self.rides_first = np.uint32(0)
        self.rides_last = np.uint32(0)
        for above in range(level):
            begin, iterate, end = (1 << event_bit(event, above, config) for event in Event)
            self.rides_first |= np.uint32(begin | iterate)
            self.rides_last |= np.uint32(end)

    def run(self, batches: Iterator[Tokens]) -> Iterator[Tokens]:
        """Turn tokens of the unit above into tokens of this one; raise at the first fault."""
        for parents in batches:
            lower, upper = self._bounds(parents.values)
            step = self.record["step"]
            trips = np.where(parents.iterates, np.maximum((upper - lower + step - 1) // step, 0), 0)
            children = np.maximum(trips, 1)
            if not len(children):  # the unit above stopped at its first token
                continue
            ends = np.cumsum(children)
            for start in range(0, int(ends[-1]), self.chunk):
                stop = min(start + self.chunk, int(ends[-1]))
                first = int(np.searchsorted(ends, start, side="right"))
                last = int(np.searchsorted(ends, stop - 1, side="right"))
                counts = children[first : last + 1].copy()
                counts[0] = ends[first] - start
                counts[-1] -= ends[last] - stop
                parent = np.repeat(np.arange(first, last + 1), counts)
                ordinal = np.arange(start, stop) - (ends - children)[parent]
                tokens, error = self._tokens(
                    parents, parent, ordinal, lower=lower, trips=trips, children=children
                )
                yield tokens
                if error is not None:
                    raise error

    def _bounds(
        self, inherited: list[NDArray[np.int32]]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        get = self.record
        shape = inherited[0].shape
        if get["lower_source"] == Source.SLOT:
            lower = inherited[get["lower_slot"] - self.inherited_slot].astype(np.int64)
        else:
            lower = np.full(shape, get["lower_immediate"], np.int64)
        if get["upper_source"] == BoundSource.SLOT:
            upper = inherited[get["upper_slot"] - self.inherited_slot].astype(np.int64)
        elif get["upper_source"] == BoundSource.LOWER_PLUS:
            upper = lower + get["upper_immediate"]
        else:
            upper = np.full(shape, get["upper_immediate"], np.int64)
        return lower, upper

    def _tokens(
        self,
        parents: Tokens,
        parent: NDArray[np.intp],
        ordinal: NDArray[np.int64],
        *,
        lower: NDArray[np.int64],
        trips: NDArray[np.int64],
        children: NDArray[np.int64],
    ) -> tuple[Tokens, DeviceError | None]:
        """Return the tokens before the first fault, and the fault."""
        is_first = ordinal == 0
        is_last = ordinal == children[parent] - 1
        entered = parents.iterates[parent]
        iterates = trips[parent] > 0
        above, zero = parents.events[parent], np.uint32(0)
        begin, iterate, end = self.own
        events = np.where(is_first, above & self.rides_first, zero)
        events |= np.where(is_last, above & self.rides_last, zero)
        events |= np.where(is_first & entered, begin, zero)
        events |= np.where(is_last & entered, end, zero)
        events |= np.where(iterates, iterate, zero)

        inherited = [value[parent] for value in parents.values]
        first_fault = FirstFault(len(parent))
        induction = (lower[parent] + ordinal * self.record["step"]).astype(np.int32)
        live = np.flatnonzero(iterates)
        if len(live) == len(parent):
            slots = self._values(induction, inherited, live, first_fault)
        else:
            here = [value[live] for value in inherited]
            slots = self._values(induction[live], here, live, first_fault)
            for number in range(self.inherited_slot):
                spread = np.zeros(len(parent), np.int32)
                spread[live] = slots[number]
                slots[number] = spread
            slots[self.inherited_slot :] = inherited
        exports = [slots[slot] for slot in self.exports]
        tokens = Tokens(events, iterates, exports)
        return tokens.first(first_fault.token), first_fault.error

    def _values(
        self,
        induction: NDArray[np.int32],
        inherited: list[NDArray[np.int32]],
        tokens: NDArray[np.intp],
        first_fault: FirstFault,
    ) -> list[NDArray[np.int32]]:
        """Return the values of all slots, for tokens that iterate."""
        unused = np.zeros(len(induction), np.int32)
        slots = [induction, *[unused] * (self.inherited_slot - 1), *inherited]
        for s, stream in enumerate(self.streams):
            if stream["enable"]:
                slots[1 + s] = self._load(s, slots, tokens, first_fault)
        alu = self.inherited_slot - 1
        if self.record["pair"]:
            ahead = [induction + np.int32(self.record["step"]), *slots[1:]]
            slots[alu] = self._load(0, ahead, tokens, first_fault)
        else:
            slots[alu] = self._compute(slots)
        return slots

    def _load(
        self,
        number: int,
        slots: list[NDArray[np.int32]],
        tokens: NDArray[np.intp],
        first_fault: FirstFault,
    ) -> NDArray[np.int32]:
        get, size_log2 = self.streams[number], self.streams[number]["size"]
        offsets = (slots[get["slot"]].astype(np.int64) << get["shift"]) + get["first"]
        if get["second_enable"]:
            offsets += slots[get["second_slot"]].astype(np.int64) * get["second_pitch"]
        blamed = get["base"] + offsets
        addresses = blamed & self.address_mask

        is_outside = (offsets < 0) | (offsets + (1 << size_log2) > get["region_bytes"])
        unmapped = ~is_outside & (self.memory.find(addresses, 1 << size_log2) < 0)
        loaded = self.memory.load(addresses, size_log2, bool(get["signed"]))
        is_wide = ~is_outside & ((loaded < _INT32.min) | (loaded > _INT32.max))
        where = (self.level, number)
        outside = FaultCode.STREAM_OUT_OF_BOUNDS
        first_fault.note(outside, *where, is_outside, tokens, blamed)
        first_fault.note(FaultCode.READ_DECODE_ERROR, *where, unmapped, tokens, addresses)
        first_fault.note(FaultCode.VALUE_TOO_WIDE, *where, is_wide, tokens, loaded & _LOW_WORD)
        return loaded.astype(np.int32)

    def _compute(self, slots: list[NDArray[np.int32]]) -> NDArray[np.int32]:
        get = self.record
        a = slots[get["alu_a_slot"]]
        b = slots[get["alu_b_slot"]]
        if get["alu_b_source"] == Source.IMMEDIATE:
            b = np.full(a.shape, get["alu_immediate"], np.int32)
        match AluOperation(get["alu_operation"]):
            case AluOperation.ADD:
                return a + b
            case AluOperation.SUB:
                return a - b
            case AluOperation.MUL:
                return a * b
            case AluOperation.SHL:
                return a << (b & 31)
