"""Microcode run token by token on Python integers: slow, but it tells all there is to know.

Besides bundles and rows it finds which values are not defined, every fault that hardware may meet
first (`collect`), what is read, and the order in which the input queue is to bring its lines. The
fast interpreter and hardware are compared with it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ember_hw.compiler.interpreters.scalar_values import (
    Fault,
    Response,
    Stopped,
    TooLongError,
    UndefinedError,
    Unknown,
    Value,
    wrap,
)
from ember_hw.config import LINE_BYTES, AcceleratorConfig
from ember_hw.isa import (
    ISA_VERSION,
    AluOperation,
    BoundSource,
    Event,
    Microcode,
    Source,
    StreamSource,
    event_bit,
)
from ember_hw.registers import NO_UNIT, FaultCode


@dataclass
class Scalar:
    """Runs requests.

    Parameters
    ----------
    microcode : Microcode
    regions : sequence of (int, bytes)
        Memory.
    requests : sequence of sequences of int
        Arguments of each; those left out are 0.
    lines : mapping of (unit, stream) to sequence of bytes
        What the input queue brings, in lines of 64 bytes.
    errors : sequence of Response
        Parts of memory that answer with an error.
    collect : bool
        Go on after a fault, without what depends on it.
    most_tokens : int
        Leaf tokens after which the run is given up.

    Attributes
    ----------
    bundles : list of (events, scalars)
    rows : list of bytes
    faults : list of Fault
    taken : list of (unit, stream)
        Who takes each line of the input queue, in the order in which the queue must bring them:
        that of the program, but that a unit in pair mode awaits all lines of its next iteration
        before the units below go on.
    lines_read : list of (unit, stream, int)
        Byte address of each line read from memory.
    rows_read : list of (entry, address, bytes)
        Each row read.
    leaf_tokens : int
        Tokens of the innermost unit, of all requests.
    """

    microcode: Microcode
    regions: Sequence[tuple[int, bytes]]
    requests: Sequence[Sequence[int]] = ((),)
    lines: Mapping[tuple[int, int], Sequence[bytes]] = field(
        default_factory=dict[tuple[int, int], Sequence[bytes]]
    )
    errors: Sequence[Response] = ()
    collect: bool = False
    most_tokens: int = 1000
    bundles: list[tuple[int, tuple[Value, ...]]] = field(
        default_factory=list[tuple[int, tuple[Value, ...]]]
    )
    rows: list[bytes] = field(default_factory=list[bytes])
    faults: list[Fault] = field(default_factory=list[Fault])
    taken: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    lines_read: list[tuple[int, int, int]] = field(default_factory=list[tuple[int, int, int]])
    rows_read: list[tuple[int, int, int]] = field(default_factory=list[tuple[int, int, int]])
    leaf_tokens: int = 0

    @property
    def config(self) -> AcceleratorConfig:
        """What the program was made for."""
        return self.microcode.config

    def run(self) -> None:
        """Run all requests.

        Raises
        ------
        Stopped
            A fault, unless they are collected.
        UndefinedError
            The program relies on a value that is not defined.
        TooLongError
            It has more than `most_tokens`.
        """
        config, get = self.config, self.microcode.get
        self.found: set[Fault] = set()
        enabled = [get(f"unit{k}", "enable") for k in range(config.traversal_units)]
        self.units = sum(enabled)
        steps = [get(f"unit{k}", "step") for k in range(self.units)]
        if get("header", "version") != ISA_VERSION:
            self._fault(FaultCode.BAD_VERSION, NO_UNIT, 0, 0)
            return
        if not self.units or 0 in enabled[: self.units] or 0 in steps:
            self._fault(FaultCode.ILLEGAL_MICROCODE, NO_UNIT, 0, 0)
            return
        self.previous: dict[tuple[int, int], int] = {}
        self.ordered: dict[tuple[int, int], int] = {}
        self.counts: dict[tuple[int, int], int] = {}
        self.told = self.microcode.get("issue", "events") | self._bit(Event.END, 0)
        self.unit_records = [self.microcode.records[f"unit{k}"] for k in range(self.units)]
        self.stream_records = [
            [self.microcode.records[f"unit{k}.stream{s}"] for s in range(config.streams_per_unit)]
            for k in range(self.units)
        ]
        self.sorted_regions = sorted(self.regions, key=lambda region: region[0])
        self.bases = [base for base, _ in self.sorted_regions]
        self.row_records = [self.microcode.records[f"row{r}"] for r in range(config.row_entries)]
        for request in self.requests:
            self.previous.clear()
            self.ordered.clear()
            arguments = [wrap(value) for value in request]
            self._token(0, 0, True, [*arguments, *[0] * (config.exports - len(arguments))])

    def _bit(self, event: Event, level: int) -> int:
        return 1 << event_bit(event, level, self.config)

    def _fault(
        self, code: FaultCode, unit: int, stream: int, address: int, size_bytes: int = 1
    ) -> None:
        fault = Fault(code, unit, stream, address, address + size_bytes)
        if fault not in self.found:
            self.found.add(fault)
            self.faults.append(fault)
        if not self.collect:
            raise Stopped(fault)

    def _token(self, level: int, events: int, iterates: bool, values: list[Value]) -> None:
        """Take a token of the unit above `level`."""
        if level == self.units:
            self._issue(events, values)
            return
        get = self.unit_records[level]
        nothing: list[Value] = [Unknown.UNDEFINED] * (self.config.streams_per_unit + 2)
        if not iterates:
            self._token(level + 1, events, False, self._exports(level, nothing, values))
            return
        lower: Value = get["lower_immediate"]
        if get["lower_source"] == Source.SLOT:
            lower = values[get["lower_export"]]
        upper: Value = get["upper_immediate"]
        if get["upper_source"] == BoundSource.SLOT:
            upper = values[get["upper_export"]]
        if Unknown.BAD in (lower, upper):
            return
        if isinstance(lower, Unknown) or isinstance(upper, Unknown):
            raise UndefinedError(f"bounds of unit {level}")
        if get["upper_source"] == BoundSource.LOWER_PLUS:
            upper += lower
        begin, iterate, end = (self._bit(event, level) for event in Event)
        if lower >= upper:
            exports = self._exports(level, nothing, values)
            self._token(level + 1, events | begin | end, False, exports)
            return
        opening = sum(self._bit(e, k) for k in range(level) for e in (Event.BEGIN, Event.ITERATE))
        closing = sum(self._bit(Event.END, k) for k in range(level))
        for induction in range(lower, upper, get["step"]):
            here = iterate
            if induction == lower:
                here |= begin | events & opening
            if induction + get["step"] >= upper:
                here |= end | events & closing
            own = self._own(level, wrap(induction), values)
            if get["pair"] and induction + get["step"] < upper:
                self._announce(level, wrap(induction + get["step"]), values)
            self._token(level + 1, here, True, self._exports(level, own, values))

    def _exports(self, level: int, own: list[Value], values: list[Value]) -> list[Value]:
        get = self.unit_records[level]
        choices = [get[f"export{i}"] for i in range(self.config.exports)]
        return [own[c - 1] if c else values[i] for i, c in enumerate(choices)]

    def _own(self, level: int, induction: int, values: list[Value]) -> list[Value]:
        """Return induction value, streams and ALU of one iteration."""
        get = self.unit_records[level]
        own: list[Value] = [induction]
        for s, stream in enumerate(self.stream_records[level]):
            is_on = stream["enable"]
            own.append(self._load(level, s, induction, values) if is_on else Unknown.UNDEFINED)
        if get["pair"]:
            return [*own, self._load(level, 0, wrap(induction + get["step"]), values)]
        a, b = own[get["alu_a_slot"]], [*own, *values][get["alu_b_slot"]]
        if get["alu_b_source"] == Source.IMMEDIATE:
            b = get["alu_immediate"]
        if isinstance(a, Unknown) or isinstance(b, Unknown):
            return [*own, Unknown.BAD if Unknown.BAD in (a, b) else Unknown.UNDEFINED]
        match AluOperation(get["alu_operation"]):
            case AluOperation.ADD:
                result = a + b
            case AluOperation.SUB:
                result = a - b
            case AluOperation.MUL:
                result = a * b
            case AluOperation.RSUB:
                result = b - a
        return [*own, wrap(result)]

    def _element(self, level: int, stream: int, induction: int, values: list[Value]) -> Value:
        """Return the number of an element."""
        get = self.stream_records[level][stream]
        element = get["first"] + (induction if get["induction"] else 0)
        if get["outer_enable"]:
            outer = values[get["outer_export"]]
            if outer is Unknown.BAD:
                return outer
            if isinstance(outer, Unknown):
                raise UndefinedError(f"outer element of unit {level}, stream {stream}")
            element += outer * get["outer_pitch"]
        return element

    def _load(self, level: int, stream: int, induction: int, values: list[Value]) -> Value:
        get = self.stream_records[level][stream]
        size = 1 << get["size"]
        element = self._element(level, stream, induction, values)
        if isinstance(element, Unknown):
            return element
        if not 0 <= element < get["elements"]:
            self._fault(FaultCode.STREAM_OUT_OF_BOUNDS, level, stream, element % (1 << 32))
            return Unknown.BAD
        address = get["base"] + element * size
        if address >> self.config.address_width_bits:
            self._fault(FaultCode.ADDRESS_OVERFLOW, level, stream, element % (1 << 32))
            return Unknown.BAD
        if get["source"] == StreamSource.QUEUE:
            data = self._take(level, stream, address, size)
        else:
            data = self._read_element(level, stream, address, size)
        if data is None:
            return Unknown.BAD
        value = int.from_bytes(data, "little", signed=bool(get["signed"] or size >= 4))
        if value != wrap(value):
            self._fault(FaultCode.VALUE_TOO_WIDE, level, stream, value % (1 << 32))
            return Unknown.BAD
        return value

    def _take(self, level: int, stream: int, address: int, size_bytes: int) -> bytes | None:
        """Return an element from its line of the input queue."""
        who, line = (level, stream), address // LINE_BYTES
        if self.previous.get(who) != line:
            self.previous[who] = line
            self.counts[who] = self.counts.get(who, 0) + 1
        self._order(who, line)
        brought = self.lines.get(who, ())
        if self.counts[who] > len(brought):
            self._fault(FaultCode.MEMORY_STALLED, NO_UNIT, 0, 0)
            return None
        return brought[self.counts[who] - 1][address % LINE_BYTES :][:size_bytes]

    def _announce(self, level: int, induction: int, values: list[Value]) -> None:
        """Note the lines of the next iteration, which a unit in pair mode awaits."""
        for stream, get in enumerate(self.stream_records[level]):
            if get["enable"] and get["source"] == StreamSource.QUEUE:
                element = self._element(level, stream, induction, values)
                if not isinstance(element, Unknown):
                    address = get["base"] + (element << get["size"])
                    self._order((level, stream), address // LINE_BYTES)

    def _order(self, who: tuple[int, int], line: int) -> None:
        """Note who needs a line of the input queue next."""
        if self.ordered.get(who) != line:
            self.ordered[who] = line
            self.taken.append(who)

    def _read_element(self, level: int, stream: int, address: int, size_bytes: int) -> bytes | None:
        """Return an element from its line of memory."""
        who, line = (level, stream), address // LINE_BYTES * LINE_BYTES
        if self.previous.get(who) != line:
            self.previous[who] = line
            self.lines_read.append((*who, line))
        return self._read(*who, address, size_bytes, (line, line + LINE_BYTES))

    def _read(
        self, unit: int, stream: int, address: int, size_bytes: int, span: tuple[int, int]
    ) -> bytes | None:
        """Return bytes of memory; None if a beat of the span that is read is answered by an error.

        Where faults are collected, one may be reported by any address in the span.
        """
        codes = {
            error.code
            for error in self.errors
            if error.base < span[1] and span[0] < error.base + error.size_bytes
        }
        data = None
        place = bisect_right(self.bases, address) - 1
        if place >= 0:
            base, content = self.sorted_regions[place]
            if address + size_bytes <= base + len(content):
                data = content[address - base : address - base + size_bytes]
        if data is None:
            codes.add(FaultCode.READ_DECODE_ERROR)
        begin, end = span if self.collect else (address, address + 1)
        for code in sorted(codes):
            self._fault(code, unit, stream, begin, end - begin)
        return None if codes else data

    def _issue(self, events: int, values: list[Value]) -> None:
        self.leaf_tokens += 1
        if self.leaf_tokens > self.most_tokens:
            raise TooLongError(f"more than {self.most_tokens} tokens")
        unsigned = [v if isinstance(v, Unknown) else v % (1 << 32) for v in values]
        if events & self.told:
            scalars = unsigned[: self.config.bundle_scalars]
            self.bundles.append((events & self.told, tuple(scalars)))
        for entry, record in enumerate(self.row_records):
            if events & record["events"]:
                row = self._row(entry, unsigned)
                if row is not None:
                    self.rows.append(row)

    def _row(self, entry: int, unsigned: list[Value]) -> bytes | None:
        get, config = self.row_records[entry], self.config
        names = ["pitch", "length", "rows"]
        numbers = {name: get[name] for name in names}
        used = {name: get[f"{name}_export"] for name in names if get[f"{name}_source"]}
        used["index"] = get["index_export"]
        if get["base_source"] == Source.SLOT:
            used["base"] = get["base_export"]
        if get["offset_enable"]:
            used["offset"] = get["offset_export"]
        for name, export in used.items():
            value = unsigned[export]
            if value is Unknown.BAD:
                return None
            if isinstance(value, Unknown):
                raise UndefinedError(f"{name} of row {entry}")
            numbers[name] = value
        index, pitch, length = numbers["index"], numbers["pitch"], numbers["length"]
        if index >= numbers["rows"]:
            self._fault(FaultCode.INDEX_OUT_OF_RANGE, NO_UNIT, entry, index)
            return None
        offset, whole = 0, length
        if get["offset_enable"]:
            offset, whole = numbers["offset"] << get["offset_size"], get["clip"]
        fetched = min(length, whole - offset)
        begin = (numbers.get("base", 0) << 6) + index * pitch + offset
        if get["base"] + get["region_bytes"] > 1 << config.address_width_bits:
            self._fault(FaultCode.ADDRESS_OVERFLOW, NO_UNIT, entry, index)
            return None
        if (
            min(length, fetched) <= 0
            or length >> 16
            or pitch >> 20
            or whole > pitch
            or (pitch | offset) % config.bus_bytes
            or begin + fetched > get["region_bytes"]
        ):
            self._fault(FaultCode.ROW_OUT_OF_BOUNDS, NO_UNIT, entry, index)
            return None
        address = get["base"] + begin
        self.rows_read.append((entry, address, fetched))
        beats = -(-fetched // config.bus_bytes)
        span = (address, address + beats * config.bus_bytes)
        return self._read(NO_UNIT, entry, address, fetched, span)
