"""A whole access unit with a host, a memory and an execute side, for tests of programs."""

from __future__ import annotations

from dataclasses import dataclass, field

from ember_hw import isa, registers
from ember_hw.config import AcceleratorConfig
from ember_hw.isa import BoundSource, ElementSize, Event, Source
from ember_hw.registers import State
from ember_hw.rtl.access_unit import AccessUnit
from ember_hw.rtl.slots import inherited_slot
from ember_hw.rtl.tests.harness import CONFIG, Bench, ReadMemory, stamp, unpack

OFFSETS, INDICES, TABLE = 0x1000, 0x2000, 0x10_0000
PITCH, ROWS = 64, 500


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
    """

    bags: tuple[tuple[int, ...], ...]
    row_bytes: int = 20
    index_size: ElementSize = ElementSize.BYTES_4
    changes: tuple[tuple[str, str, int], ...] = ()

    def microcode(self, config: AcceleratorConfig = CONFIG) -> isa.Microcode:
        """Return the program: unit 0 walks bags in pair mode, unit 1 their indices."""
        lookups = sum(len(bag) for bag in self.bags)
        size = int(self.index_size)
        iterates = isa.event_mask([(Event.ITERATE, 1)], config)
        told = isa.event_mask([(Event.ITERATE, 1), (Event.END, 1)], config)
        offsets = {"enable": 1, "size": ElementSize.BYTES_4, "shift": 2, "base": OFFSETS}
        indices = {"enable": 1, "size": self.index_size, "shift": size, "base": INDICES}
        records = {
            "unit0": {
                "enable": 1,
                "pair": 1,
                "step": 1,
                "upper_immediate": len(self.bags),
                "export0": 1,
                "export1": config.streams_per_unit + 1,
                "export2": 0,
            },
            "unit0.stream0": offsets | {"region_bytes": 4 * (len(self.bags) + 1)},
            "unit1": {
                "enable": 1,
                "step": 1,
                "lower_source": Source.SLOT,
                "lower_slot": inherited_slot(0, config),
                "upper_source": BoundSource.SLOT,
                "upper_slot": inherited_slot(1, config),
                "export0": 1,
                "export1": inherited_slot(2, config),
            },
            "unit1.stream0": indices | {"region_bytes": lookups << size},
            "row0": {
                "events": iterates,
                "base": TABLE,
                "pitch": PITCH,
                "length": self.row_bytes,
                "rows": ROWS,
            },
            "issue": {"events": told, "scalar0_export": 1},
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

    def expected(self, config: AcceleratorConfig = CONFIG) -> tuple[list, list]:
        """Return (events, bag) of each bundle, and the bytes of each row, by plain loops."""
        told = config.traversal_units * int(Event.END) + 1, config.traversal_units + 1
        end, iterate = (1 << bit for bit in told)
        root_end = 1 << isa.event_bit(Event.END, 0, config)
        bundles, rows = [], []
        for number, bag in enumerate(self.bags):
            final = root_end if number == len(self.bags) - 1 else 0
            for position, index in enumerate(bag):
                last = position == len(bag) - 1
                bundles.append((iterate | (end | final if last else 0), number))
                rows.append(stamp(TABLE + index * PITCH, self.row_bytes))
            if not bag:
                bundles.append((end | final, number))
        if not self.bags:
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
        self.memory = ReadMemory(self, bus_bytes=config.bus_bytes, read=self._read, **memory)
        self.outcome = Outcome()
        self.loaded: list[int] = []
        self.rows_due, self.row, self.shown = 0, b"", {}
        self.irqs = self.watch(dut.irq)
        serve = self.memory.serve_axi(dut.memory, stall=stall)
        self.process(serve, background=True)
        self.process(self._execute_side, background=True)

    def _read(self, address: int, count: int) -> bytes:
        for base, content in self.regions.items():
            if base <= address < base + len(content):
                return content[address - base :][:count].ljust(count, b"\xee")
        return stamp(address, count)

    def forget(self) -> None:
        """Forget what a reset of the whole system makes forget."""
        self.memory.forget()
        self.loaded = []
        self.rows_due, self.row, self.shown = 0, b"", {}

    async def _execute_side(self, ctx):
        dut, iterate = self.dut, 1 << isa.event_bit(Event.ITERATE, 1, self.config)
        ports = {"bundle": dut.bundle, "row": dut.row}
        layouts = {name: port.payload.shape() for name, port in ports.items()}
        sampled = [x for port in ports.values() for x in (port.valid, port.payload.as_value())]
        while True:
            takes = {
                "bundle": self.rows_due == 0,
                "row": self.rows_due > 0,
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
        words = bags.microcode(self.config).encode()
        for number, word in enumerate(words):
            if number >= len(self.loaded) or self.loaded[number] != word:
                address = registers.MICROCODE_ADDRESS + 4 * number
                assert await self.write(ctx, address, word) == 0
        self.loaded = words

    async def start(self, ctx) -> None:
        """Start the program that was loaded."""
        self.outcome = Outcome()
        start = registers.CONTROL_START
        assert await self.write(ctx, registers.CONTROL.address, start) == 0

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
        await self.start(ctx)
        return await self.finish(ctx)

    async def fault(self, ctx) -> tuple[int, int, int, int]:
        """Read FAULT and FAULT_ADDRESS: code, unit, stream, address."""
        fault = await self.read(ctx, registers.FAULT.address)
        low = await self.read(ctx, registers.FAULT_ADDRESS_LOW.address)
        high = await self.read(ctx, registers.FAULT_ADDRESS_HIGH.address)
        return fault & 0x1F, fault >> 8 & 0xFF, fault >> 16 & 0xFF, high << 32 | low
