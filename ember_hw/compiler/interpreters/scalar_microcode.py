"""Microcode run token by token on Python integers: the oracle of the fast interpreter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from ember_hw.config import AcceleratorConfig
from ember_hw.isa import AluOperation, BoundSource, Event, Microcode, Source, event_bit
from ember_hw.registers import NO_UNIT, FaultCode


def wrap(value: int) -> int:
    """Return the 32-bit two's complement value with the same low bits."""
    return (value + (1 << 31)) % (1 << 32) - (1 << 31)


@dataclass
class Stopped(Exception):
    """A fault."""

    code: FaultCode
    unit: int
    stream: int
    address: int


class TooLong(Exception):
    """More tokens than a test wants to wait for."""


@dataclass
class Scalar:
    """Runs a program; `bundles` and `rows` are what it delivered."""

    microcode: Microcode
    regions: Sequence[tuple[int, bytes]]
    most_tokens: int = 1000
    bundles: list[tuple[int, tuple[int, ...]]] = field(
        default_factory=list[tuple[int, tuple[int, ...]]]
    )
    rows: list[bytes] = field(default_factory=list[bytes])
    leaf_tokens: int = 0

    @property
    def config(self) -> AcceleratorConfig:
        return self.microcode.config

    def run(self) -> None:
        units = range(self.config.traversal_units)
        self.units = sum(self.microcode.get(f"unit{k}", "enable") for k in units)
        self.token(0, 0, True, [0] * self.config.exports)

    def bit(self, event: Event, level: int) -> int:
        return 1 << event_bit(event, level, self.config)

    def token(self, level: int, events: int, iterates: bool, values: list[int]) -> None:
        """Take a token of the unit above `level`."""
        if level == self.units:
            self.issue(events, values)
            return
        get = self.microcode.records[f"unit{level}"]
        own = self.config.streams_per_unit + 2
        nothing = [0] * own + values
        if not iterates:
            self.token(level + 1, events, False, self.exports(level, nothing))
            return
        lower, upper = get["lower_immediate"], get["upper_immediate"]
        if get["lower_source"] == Source.SLOT:
            lower = nothing[get["lower_slot"]]
        if get["upper_source"] == BoundSource.SLOT:
            upper = nothing[get["upper_slot"]]
        elif get["upper_source"] == BoundSource.LOWER_PLUS:
            upper += lower
        begin, iterate, end = (self.bit(event, level) for event in Event)
        if lower >= upper:
            self.token(level + 1, events | begin | end, False, self.exports(level, nothing))
            return
        opening = sum(self.bit(e, k) for k in range(level) for e in (Event.BEGIN, Event.ITERATE))
        closing = sum(self.bit(Event.END, k) for k in range(level))
        for induction in range(lower, upper, get["step"]):
            here = iterate
            if induction == lower:
                here |= begin | events & opening
            if induction + get["step"] >= upper:
                here |= end | events & closing
            slots = self.slots(level, wrap(induction), values)
            self.token(level + 1, here, True, self.exports(level, slots))

    def exports(self, level: int, slots: list[int]) -> list[int]:
        get = self.microcode.records[f"unit{level}"]
        return [slots[get[f"export{i}"]] for i in range(self.config.exports)]

    def slots(self, level: int, induction: int, values: list[int]) -> list[int]:
        streams = self.config.streams_per_unit
        slots = [induction, *[0] * (streams + 1), *values]
        for s in range(streams):
            if self.microcode.get(f"unit{level}.stream{s}", "enable"):
                slots[1 + s] = self.load(level, s, slots)
        get = self.microcode.records[f"unit{level}"]
        a = slots[get["alu_a_slot"]]
        b = get["alu_immediate"]
        if get["alu_b_source"] == Source.SLOT:
            b = slots[get["alu_b_slot"]]
        if get["pair"]:
            result = self.load(level, 0, [wrap(induction + get["step"]), *slots[1:]])
        elif get["alu_operation"] == AluOperation.ADD:
            result = a + b
        elif get["alu_operation"] == AluOperation.SUB:
            result = a - b
        elif get["alu_operation"] == AluOperation.MUL:
            result = a * b
        else:
            result = a << b % 32
        slots[1 + streams] = wrap(result)
        return slots

    def load(self, level: int, stream: int, slots: list[int]) -> int:
        get = self.microcode.records[f"unit{level}.stream{stream}"]
        size = 1 << get["size"]
        offset = get["first"] + slots[get["slot"]] * (1 << get["shift"])
        if get["second_enable"]:
            offset += slots[get["second_slot"]] * get["second_pitch"]
        address = get["base"] + offset
        if not 0 <= offset <= get["region_bytes"] - size:
            blamed = address % (1 << 64)
            raise Stopped(FaultCode.STREAM_OUT_OF_BOUNDS, level, stream, blamed)
        data = self.read(address, size)
        if data is None:
            raise Stopped(FaultCode.READ_DECODE_ERROR, level, stream, address)
        value = int.from_bytes(data, "little", signed=bool(get["signed"] or size >= 4))
        if value != wrap(value):
            raise Stopped(FaultCode.VALUE_TOO_WIDE, level, stream, value % (1 << 32))
        return value

    def read(self, address: int, size: int) -> bytes | None:
        for base, content in self.regions:
            if base <= address and address + size <= base + len(content):
                return content[address - base : address - base + size]
        return None

    def issue(self, events: int, values: list[int]) -> None:
        self.leaf_tokens += 1
        if self.leaf_tokens > self.most_tokens:
            raise TooLong
        unsigned = [value % (1 << 32) for value in values]
        told = self.microcode.get("issue", "events") | self.bit(Event.END, 0)
        if events & told:
            numbers = range(self.config.bundle_scalars)
            chosen = [self.microcode.get("issue", f"scalar{i}_export") for i in numbers]
            self.bundles.append((events & told, tuple(unsigned[export] for export in chosen)))
        for entry in range(self.config.row_entries):
            if events & self.microcode.get(f"row{entry}", "events"):
                self.rows.append(self.row(entry, unsigned))

    def row(self, entry: int, unsigned: list[int]) -> bytes:
        get = self.microcode.records[f"row{entry}"]

        def operand(name: str) -> int:
            is_slot = get[f"{name}_source"] == Source.SLOT
            return unsigned[get[f"{name}_export"]] if is_slot else get[name]

        index, pitch, length = unsigned[get["index_export"]], operand("pitch"), operand("length")
        base = operand("base") * (64 if get["base_source"] == Source.SLOT else 1)
        if index >= operand("rows"):
            raise Stopped(FaultCode.INDEX_OUT_OF_RANGE, NO_UNIT, entry, index)
        offset, whole = 0, length
        if get["offset_enable"]:
            whole = get["clip"]
            offset = unsigned[get["offset_export"]] << get["offset_shift"]
            length = min(length, get["clip"] - offset) if length else 0
        is_illegal = length <= 0 or length >= 1 << 16 or pitch >= 1 << 20 or whole > pitch
        is_illegal |= base >= 1 << self.config.address_width_bits
        if is_illegal or (base | pitch | offset) % self.config.bus_bytes:
            raise Stopped(FaultCode.ROW_OUT_OF_BOUNDS, NO_UNIT, entry, index)
        address = (base + index * pitch + offset) % (1 << self.config.address_width_bits)
        data = self.read(address, length)
        if data is None:
            raise Stopped(FaultCode.READ_DECODE_ERROR, NO_UNIT, entry, address)
        return data
