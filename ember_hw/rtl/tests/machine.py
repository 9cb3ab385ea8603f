"""A whole access unit with a host, memories and an execute side, for tests of programs."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from ember_hw import isa, registers
from ember_hw.config import LINE_BYTES, AcceleratorConfig
from ember_hw.isa import BoundSource, ElementSize, Event, Source, StreamSource
from ember_hw.registers import State
from ember_hw.rtl.access_unit import AccessUnit
from ember_hw.rtl.axi import Response
from ember_hw.rtl.tests.harness import CONFIG, Bench, ReadMemory, stamp, unpack

OFFSETS, INDICES, TABLE = 0x1000, 0x2000, 0x10_0000
PITCH, ROWS = 64, 500
#: What exports hold: the bag's number, then the bounds of its indices; below them an index.
_BAG, _FIRST, _END = range(3)
_INDEX = _FIRST


@dataclass(frozen=True)
class Bags:
    """The rows of some bags, fetched as an EmbeddingBag fetches them.

    Parameters
    ----------
    bags : tuple of tuples of int
        Indices of each bag.
    row_bytes : int
        Bytes of a row, at most `PITCH`.
    index_size : ElementSize
        Of the indices.
    cuts : tuple of int
        Bags after which the next request begins, if there are several.
    from_queue : bool
        The indices come through the input queue.
    changes : tuple of (path, field, value)
        What is different in the microcode.
    """

    bags: tuple[tuple[int, ...], ...]
    row_bytes: int = 20
    index_size: ElementSize = ElementSize.BYTES_4
    cuts: tuple[int, ...] = ()
    from_queue: bool = False
    changes: tuple[tuple[str, str, int], ...] = ()

    @property
    def requests(self) -> list[tuple[int, int]]:
        """Return the bags of each request: the first, and the one after the last."""
        return list(zip((0, *self.cuts), (*self.cuts, len(self.bags)), strict=True))

    def microcode(self, config: AcceleratorConfig = CONFIG) -> isa.Microcode:
        """Return the program: unit 0 walks bags in pair mode, unit 1 their indices.

        A request's arguments are its first bag and the one after its last.
        """
        lookups = sum(len(bag) for bag in self.bags)
        iterates = isa.event_mask([(Event.ITERATE, 1)], config)
        told = isa.event_mask([(Event.ITERATE, 1), (Event.END, 1)], config)
        stream = {"enable": 1, "induction": 1}
        offsets = {"size": ElementSize.BYTES_4, "base": OFFSETS, "elements": len(self.bags) + 1}
        indices = {"size": self.index_size, "base": INDICES, "elements": lookups, "signed": 1}
        source = StreamSource.QUEUE if self.from_queue else StreamSource.MEMORY
        records = {
            "unit0": {
                "enable": 1,
                "pair": 1,
                "step": 1,
                "lower_source": Source.SLOT,
                "lower_export": 0,
                "upper_source": BoundSource.SLOT,
                "upper_export": 1,
                f"export{_BAG}": 1,
                f"export{_FIRST}": 2,
                f"export{_END}": config.streams_per_unit + 2,
            },
            "unit0.stream0": stream | offsets,
            "unit1": {
                "enable": 1,
                "step": 1,
                "lower_source": Source.SLOT,
                "lower_export": _FIRST,
                "upper_source": BoundSource.SLOT,
                "upper_export": _END,
                f"export{_INDEX}": 2,
            },
            "unit1.stream0": stream | indices | {"source": source},
            "row0": {
                "events": iterates,
                "index_export": _INDEX,
                "base": TABLE,
                "region_bytes": ROWS * PITCH,
                "pitch": PITCH,
                "length": self.row_bytes,
                "rows": ROWS,
            },
            "issue": {"events": told},
        }
        for path, name, value in self.changes:
            records[path] = records.get(path, {}) | {name: value}
        return isa.Microcode(config, records)

    def regions(self) -> dict[int, bytes]:
        """Return offsets and indices as they lie in memory; the table is `stamp`."""
        offsets = [0]
        for bag in self.bags:
            offsets.append(offsets[-1] + len(bag))
        width = 1 << self.index_size
        flat = [index for bag in self.bags for index in bag]
        return {
            OFFSETS: b"".join(value.to_bytes(4, "little") for value in offsets),
            INDICES: b"".join((i & (1 << 8 * width) - 1).to_bytes(width, "little") for i in flat),
        }

    def queued_lines(self) -> list[bytes]:
        """Return the lines of indices that the requests take from the input queue, in order."""
        if not self.from_queue:
            return []
        regions = self.regions()
        offsets = memoryview(regions[OFFSETS]).cast("I")
        lines = []
        for first, end in self.requests:
            begin, stop = (offsets[bag] << self.index_size for bag in (first, end))
            for line in range(begin // LINE_BYTES, -(-stop // LINE_BYTES) if stop > begin else 0):
                content = regions[INDICES][line * LINE_BYTES :][:LINE_BYTES]
                lines.append(content.ljust(LINE_BYTES, b"\xee"))
        return lines

    def expected(self, config: AcceleratorConfig = CONFIG) -> tuple[list, list]:
        """Return (events, bag) of each bundle, and the bytes of each row, by plain loops."""
        told = config.traversal_units * int(Event.END) + 1, config.traversal_units + 1
        end, iterate = (1 << bit for bit in told)
        root_end = 1 << isa.event_bit(Event.END, 0, config)
        bundles, rows = [], []
        for first, stop in self.requests:
            for number in range(first, stop):
                bag = self.bags[number]
                final = root_end if number == stop - 1 else 0
                for position, index in enumerate(bag):
                    last = position == len(bag) - 1
                    bundles.append((iterate | (end | final if last else 0), number))
                    rows.append(stamp(TABLE + index * PITCH, self.row_bytes))
                if not bag:
                    bundles.append((end | final, number))
            if first == stop:
                bundles.append((root_end, None))
        return bundles, rows


@dataclass
class Outcome:
    """What a program brought: bundles (events, scalar 0), rows, and where it ended."""

    state: State = State.RUNNING
    bundles: list[tuple[int, int]] = field(default_factory=list)
    rows: list[bytes] = field(default_factory=list)
    ends: int = 0

    def agrees(self, bags: Bags, config: AcceleratorConfig = CONFIG) -> bool:
        """Compare with plain loops; a scalar that is not defined counts as equal."""
        bundles, rows = bags.expected(config)
        if len(bundles) != len(self.bundles) or rows != self.rows:
            return False
        return self.state == State.DONE and all(
            seen[0] == wanted[0] and wanted[1] in (None, seen[1])
            for seen, wanted in zip(self.bundles, bundles, strict=True)
        )


class Machine(Bench):
    """An access unit at work.

    The execute side takes a bundle, then its rows, then the next: it never takes a row early. When
    the queues are reset it starts afresh.
    """

    def __init__(
        self,
        *,
        seed: int = 0,
        config: AcceleratorConfig = CONFIG,
        stall: float = 0.0,
        wrap=lambda dut: dut,
        **memory,
    ):
        dut = AccessUnit(config=config)
        super().__init__(wrap(dut), seed=seed)
        self.dut, self.config, self.stall = dut, config, stall
        self.regions: dict[int, bytes] = {}
        self.queue: deque[int] = deque()
        self.outcome = Outcome()
        self.loaded: list[int] = []
        self.rows_due, self.row, self.shown = 0, b"", {}
        self.takes = True
        self.irqs = self.watch(dut.irq)
        ports = {dut.memory[i]: config.bus_bytes for i in range(config.memory_ports)}
        if config.index_port_bits:
            ports[dut.index_memory] = config.index_port_bits // 8
        self.memories = []
        for port, bus_bytes in ports.items():
            one = ReadMemory(self, bus_bytes=bus_bytes, read=self._read, **memory)
            self.process(one.serve_axi(port, stall=stall), background=True)
            self.memories.append(one)
        self.process(self._execute_side, background=True)
        if config.input_queue:
            self.process(self._feed, background=True)

    @property
    def is_idle(self) -> bool:
        """No memory has anything to answer."""
        return all(memory.is_idle for memory in self.memories)

    @property
    def asked(self) -> list[tuple[int, int, int]]:
        """Return address, beats and tag of all reads, port by port."""
        return [request for memory in self.memories for request in memory.requests]

    def fail(self, errors: dict[int, int]) -> None:
        """Set the responses of beats, by address."""
        for memory in self.memories:
            memory.errors = errors

    def _read(self, address: int, count: int) -> bytes:
        for base, content in self.regions.items():
            if base <= address < base + len(content):
                return content[address - base :][:count].ljust(count, b"\xee")
        return stamp(address, count)

    def forget(self) -> None:
        """Forget what a reset of the whole system makes forget."""
        for memory in self.memories:
            memory.forget()
        self.loaded = []
        self.queue.clear()
        self.rows_due, self.row, self.shown = 0, b"", {}

    async def _feed(self, ctx):
        """Put the words of the queued lines into the input queue, for unit 1's stream 0."""
        port = self.dut.index_queue
        while True:
            shows = bool(self.queue) and self.random.random() >= self.stall
            ctx.set(port.valid, shows)
            if shows:
                stream = self.config.streams_per_unit
                ctx.set(port.payload, {"data": self.queue[0], "stream": stream})
            ready = False
            while not ready:
                _, _, ready = await ctx.tick().sample(port.ready | ~port.valid)
            if shows:
                self.queue.popleft()

    async def _execute_side(self, ctx):
        dut, iterate = self.dut, 1 << isa.event_bit(Event.ITERATE, 1, self.config)
        ports = {"bundle": dut.bundle, "row": dut.row}
        layouts = {name: port.payload.shape() for name, port in ports.items()}
        sampled = [x for port in ports.values() for x in (port.valid, port.payload.as_value())]
        while True:
            takes = {
                "bundle": self.takes and self.rows_due == 0,
                "row": self.takes and self.rows_due > 0,
            }
            for name, port in ports.items():
                takes[name] = takes[name] and self.random.random() >= self.stall
                ctx.set(port.ready, takes[name])
            _, _, is_reset, *values = await ctx.tick().sample(dut.queue_reset, *sampled)
            if is_reset:
                assert not any(values[::2]), f"seed {self.seed}: a queue shows while it is reset"
                self.rows_due, self.row, self.shown = 0, b"", {}
                continue
            moved = {}
            for name, valid, bits in zip(ports, values[::2], values[1::2], strict=True):
                held = self.shown.get(name)
                assert held is None or (valid and bits == held), f"seed {self.seed}: {name} let go"
                self.shown[name] = bits if valid and not takes[name] else None
                if valid and takes[name]:
                    moved[name] = unpack(layouts[name], bits)
            if taken := moved.get("bundle"):
                self.outcome.bundles.append((taken["events"], taken["scalars"][0]))
                self.outcome.ends += taken["last"]
                self.rows_due += bool(taken["events"] & iterate)
            if taken := moved.get("row"):
                data = taken["data"].to_bytes(self.config.bus_bytes, "little")
                self.row += data[: taken["bytes"]]
                if taken["last"]:
                    self.outcome.rows.append(self.row)
                    self.rows_due, self.row = self.rows_due - 1, b""

    async def write(self, ctx, address: int, word: int) -> int:
        """Write a register; return the response."""
        bus = self.dut.bus
        for signal, value in ((bus.awaddr, address), (bus.wdata, word), (bus.wstrb, 0xF)):
            ctx.set(signal, value)
        ctx.set(bus.awvalid, 1)
        ctx.set(bus.wvalid, 1)
        ctx.set(bus.bready, 1)
        await ctx.tick()
        ctx.set(bus.awvalid, 0)
        ctx.set(bus.wvalid, 0)
        while not ctx.get(bus.bvalid):
            await ctx.tick()
        response = ctx.get(bus.bresp).value
        await ctx.tick()
        return response

    async def read(self, ctx, address: int) -> int:
        """Read a register."""
        bus = self.dut.bus
        ctx.set(bus.araddr, address)
        ctx.set(bus.arvalid, 1)
        ctx.set(bus.rready, 1)
        await ctx.tick()
        ctx.set(bus.arvalid, 0)
        while not ctx.get(bus.rvalid):
            await ctx.tick()
        data = ctx.get(bus.rdata)
        await ctx.tick()
        return data

    async def state(self, ctx) -> State:
        """Read STATUS."""
        return State(await self.read(ctx, registers.STATUS.address))

    async def load(self, ctx, bags: Bags) -> None:
        """Wait until the unit is at rest, and write the words that are not there yet."""
        while await self.state(ctx) in (State.RESETTING, State.DRAINING):
            pass
        self.regions = bags.regions()
        width = self.config.index_bits // 8
        for line in bags.queued_lines():
            for start in range(0, LINE_BYTES, width):
                self.queue.append(int.from_bytes(line[start : start + width], "little"))
        words = bags.microcode(self.config).encode()
        for number, word in enumerate(words):
            if number >= len(self.loaded) or self.loaded[number] != word:
                address = registers.MICROCODE_ADDRESS + 4 * number
                assert await self.write(ctx, address, word) == 0
        self.loaded = words

    async def start(self, ctx, bags: Bags) -> None:
        """Start the requests of the program that was loaded, each as soon as it has a place.

        All but the first join those before them; a fault ends the series.
        """
        self.outcome = Outcome()
        for request, arguments in enumerate(bags.requests):
            for number, value in enumerate(arguments):
                address = registers.ARGUMENTS_ADDRESS + 4 * number
                assert await self.write(ctx, address, value) == 0
            command = registers.CONTROL_START | (registers.CONTROL_JOINS if request else 0)
            start = registers.CONTROL.address, command
            while await self.write(ctx, *start) == Response.SLAVE_ERROR.value:
                state = await self.state(ctx)
                if state not in (State.RUNNING, State.DONE):
                    assert request, f"seed {self.seed}: the first start is refused in {state}"
                    return

    async def finish(self, ctx, polls: int = 250) -> Outcome:
        """Read STATUS until the program has ended, at most so many times."""
        for _ in range(polls):
            self.outcome.state = await self.state(ctx)
            if self.outcome.state in (State.DONE, State.FAULTED):
                break
        await ctx.tick()
        return self.outcome

    async def launch(self, ctx, bags: Bags) -> Outcome:
        """Load, start and finish a program."""
        await self.load(ctx, bags)
        await self.start(ctx, bags)
        return await self.finish(ctx)

    async def fault(self, ctx) -> tuple[int, int, int, int]:
        """Read FAULT and FAULT_ADDRESS: code, unit, stream, address."""
        fault = await self.read(ctx, registers.FAULT.address)
        low = await self.read(ctx, registers.FAULT_ADDRESS_LOW.address)
        high = await self.read(ctx, registers.FAULT_ADDRESS_HIGH.address)
        return fault & 0x1F, fault >> 8 & 0xFF, fault >> 16 & 0xFF, high << 32 | low
