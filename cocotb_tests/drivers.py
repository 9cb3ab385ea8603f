"""A bench around the flat top: host, memory, execute side, and seeded stalls on every channel."""

from __future__ import annotations

import json
import logging
import os
import random
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, RisingEdge
from cocotbext.axi import (
    AddressSpace,
    AxiLiteBus,
    AxiLiteMaster,
    AxiReadBus,
    AxiResp,
    AxiSlaveRead,
    AxiStreamBus,
    AxiStreamSink,
    MemoryRegion,
)

from cocotb_tests.monitors import Monitor, Seen
from cocotb_tests.responder import ReadResponder
from cocotb_tests.runner import CONFIG_VARIABLE
from ember_hw.config import AcceleratorConfig
from ember_hw.host.launch import Launch
from ember_hw.host.memory_layout import Region
from ember_hw.isa import Microcode
from ember_hw.registers import (
    CONTROL,
    CONTROL_ABORT,
    CONTROL_START,
    FAULT,
    FAULT_ADDRESS_HIGH,
    FAULT_ADDRESS_LOW,
    MICROCODE_ADDRESS,
    STATUS,
    Counter,
    FaultCode,
    State,
    counter_address,
)

PERIOD_NS = 10
#: Cycles after which a program that goes on is given up.
MOST_CYCLES = 30_000
_RESET_CYCLES = 4

#: Decorates the tests of a bench; a test that hangs fails after 100,000 cycles.
bench_test = cocotb.test(timeout_time=1, timeout_unit="ms")


def named(values: Iterable[Any]) -> list[cocotb.Param]:
    """Return values for `cocotb.parametrize` that the tests' names show."""
    return [cocotb.Param(value, str(value)) for value in values]


def bench_config() -> AcceleratorConfig:
    """Return the config that this simulation was built for."""
    return AcceleratorConfig.from_dict(json.loads(os.environ[CONFIG_VARIABLE]))


class Stalls:
    """A pause generator: stalls of 1 to 8 cycles, so that queues fill and drain.

    Parameters
    ----------
    name : str
        Of the channel; with the seed it makes the sequence.
    share : float
        Share of cycles that are stalled, 0 to 1.
    """

    def __init__(self, name: str, share: float) -> None:
        self._random = random.Random(f"{cocotb.RANDOM_SEED} {name}")
        self._share = share

    def __iter__(self) -> Iterator[bool]:
        while True:
            stalled = self._random.random() < self._share
            for _ in range(self._random.choice((1, 1, 2, 3, 8))):
                yield stalled


class FaultyRegion(MemoryRegion):
    """Memory that can't be read at some addresses: cocotbext-axi answers SLVERR.

    Parameters
    ----------
    bad : sequence of int
        Offsets of the beats that fail.
    """

    def __init__(self, content: bytearray, bad: Sequence[int]) -> None:
        super().__init__(len(content), mem=content)
        self._bad = frozenset(bad)

    async def _read(self, address: int, length: int, **kwargs: Any) -> Any:
        if address in self._bad:
            raise ValueError(f"offset {address:#x} can't be read")
        return await super()._read(address, length, **kwargs)


class Bench:
    """The access unit with cocotbext-axi on all ports.

    Parameters
    ----------
    dut : handle of the flat top
    stall_share : float
        Share of stalled cycles on every channel.
    memory : ReadResponder, optional
        Answers the reads instead of cocotbext-axi.
    """

    def __init__(
        self, dut: Any, *, stall_share: float = 0.3, memory: ReadResponder | None = None
    ) -> None:
        logging.getLogger("cocotb.access_unit").setLevel(logging.WARNING)
        self.dut = dut
        self.config = bench_config()
        dut.rst.value = 0
        self._clock = Clock(dut.clk, PERIOD_NS, "ns")
        self._clock.start()
        self.monitor = Monitor(dut, self.config)
        self.host = AxiLiteMaster(AxiLiteBus.from_prefix(dut, "s_axil"), dut.clk, dut.rst)
        # The unit resets the sinks, which then forget the part of a frame that they have.
        queues: dict[str, Any] = {"reset": dut.m_axis_aresetn, "reset_active_level": False}
        bus = AxiStreamBus.from_prefix(dut, "m_axis_bundle")
        self.bundles = AxiStreamSink(bus, dut.clk, byte_size=8, **queues)
        bus = AxiStreamBus.from_prefix(dut, "m_axis_row")
        self.rows = AxiStreamSink(bus, dut.clk, **queues)
        self.responder = memory
        self.memory: AxiSlaveRead | None = None
        if memory is None:
            bus = AxiReadBus.from_prefix(dut, "m_axi")
            self.memory = AxiSlaveRead(bus, dut.clk, dut.rst, target=AddressSpace())
        self.set_stalls(stall_share)

    def set_stalls(self, share: float) -> None:
        """Stall every channel for that share of the cycles; 0: none."""
        write: Any = self.host.write_if
        read: Any = self.host.read_if
        channels: dict[str, Any] = {
            "aw": write.aw_channel,
            "w": write.w_channel,
            "b": write.b_channel,
            "ar": read.ar_channel,
            "r": read.r_channel,
            "bundle": self.bundles,
            "row": self.rows,
        }
        if self.memory is not None:
            channels["memory ar"] = self.memory.ar_channel
            channels["memory r"] = self.memory.r_channel
        for name, channel in channels.items():
            channel.set_pause_generator(iter(Stalls(name, share)) if share else None)
            channel.pause = False

    async def reset(self) -> None:
        """Reset the unit and all models; await that it is idle."""
        self.dut.rst.value = 1
        await ClockCycles(self.dut.clk, _RESET_CYCLES)
        self.dut.rst.value = 0
        await RisingEdge(self.dut.clk)
        for sink in (self.bundles, self.rows):
            sink.clear()
        await self.state_is(State.IDLE)
        self.monitor.clear()

    # Host

    async def try_write(self, address: int, data: bytes) -> AxiResp:
        """Write bytes; return the answer."""
        answer: Any = await self.host.write(address, data)
        return answer.resp

    async def try_read(self, address: int) -> tuple[AxiResp, int]:
        """Read a word; return the answer and the word."""
        answer: Any = await self.host.read(address, 4)
        return answer.resp, int.from_bytes(answer.data, "little")

    async def write(self, address: int, value: int) -> None:
        """Write a register that must accept it."""
        response = await self.try_write(address, value.to_bytes(4, "little"))
        assert response == AxiResp.OKAY, f"write of {value:#x} to {address:#x}: {response!r}"

    async def read(self, address: int) -> int:
        """Read a register that must be readable."""
        response, value = await self.try_read(address)
        assert response == AxiResp.OKAY, f"read of {address:#x}: {response!r}"
        return value

    async def state(self) -> State:
        """Return STATUS.state."""
        return State(await self.read(STATUS.address) & 7)

    async def state_is(self, *wanted: State, most_cycles: int = MOST_CYCLES) -> State:
        """Await one of some states."""
        end = self.monitor.cycles + most_cycles
        while (state := await self.state()) not in wanted:
            assert self.monitor.cycles < end, (
                f"state must be {' or '.join(s.name for s in wanted)} within {most_cycles} "
                f"cycles, not {state.name}, {self.monitor.outstanding} reads in flight"
            )
        return state

    async def load(self, microcode: Microcode) -> None:
        """Write a program."""
        for number, word in enumerate(microcode.encode()):
            await self.write(MICROCODE_ADDRESS + 4 * number, word)

    async def start(self) -> None:
        """Start the program."""
        await self.write(CONTROL.address, CONTROL_START)

    async def abort(self) -> None:
        """Stop the program."""
        await self.write(CONTROL.address, CONTROL_ABORT)

    async def fault(self) -> tuple[FaultCode, int, int, int]:
        """Return code, unit, stream and address of the latest fault."""
        word = await self.read(FAULT.address)
        address = await self.read(FAULT_ADDRESS_LOW.address)
        address |= await self.read(FAULT_ADDRESS_HIGH.address) << 32
        return FaultCode(word & 0x1F), word >> 8 & 0xFF, word >> 16 & 0xFF, address

    async def counters(self) -> dict[Counter, int]:
        """Return all counters."""
        values: dict[Counter, int] = {}
        for counter in Counter:
            low = await self.read(counter_address(counter))
            values[counter] = low | await self.read(counter_address(counter) + 4) << 32
        return values

    # Memory

    def map(self, regions: Sequence[Region], bad: Sequence[int] = ()) -> None:
        """Put regions into memory; nothing lies between them.

        Parameters
        ----------
        regions : sequence of Region
        bad : sequence of int
            Addresses of beats that can't be read.
        """
        regions = [region for region in regions if region.data.size]
        self.monitor.mapped = [(r.base, r.base + r.data.size) for r in regions]
        if self.responder is not None:
            self.responder.regions = [(r.base, r.data.tobytes()) for r in regions]
        if self.memory is not None:
            space = AddressSpace(1 << self.config.address_width_bits)
            for region in regions:
                content = bytearray(region.data.tobytes())
                faulty = FaultyRegion(content, [address - region.base for address in bad])
                space.register_region(faulty, region.base)
            self.memory.target = space

    # Programs

    async def begin(self, launch: Launch, bad: Sequence[int] = ()) -> None:
        """Map, load and start a program."""
        self.map(launch.regions, bad)
        await self.load(launch.microcode)
        self.monitor.clear()
        await self.start()

    async def end(self, wanted: State = State.DONE) -> Seen:
        """Await the end of a program; return what passed.

        The interrupt must have come once, no read be in flight, and nothing follow; what the sinks
        took must be what the monitor saw.
        """
        state = await self.state_is(State.DONE, State.FAULTED)
        if state is not wanted:
            raise AssertionError(f"{state.name}, not {wanted.name}: {await self.fault()}")
        seen = self.monitor.clear()
        assert seen.irqs == 1, f"the interrupt must come once, not {seen.irqs} times"
        assert self.monitor.outstanding == 0, f"{self.monitor.outstanding} reads are in flight"
        await ClockCycles(self.dut.clk, 20)
        later = self.monitor.clear()
        assert later == Seen(), f"nothing may follow the end of a program, but did: {later}"
        if wanted is State.FAULTED:
            for sink in (self.bundles, self.rows):
                sink.clear()
        else:
            assert seen.queue_reset_cycles == 0, "the queues must not be reset by a program's end"
            self._check_sinks(seen)
        return seen

    def _check_sinks(self, seen: Seen) -> None:
        bundle_bytes, bus_bytes = self.config.bundle_bytes, self.config.bus_bytes
        frame = self.bundles.recv_nowait()
        bundles = b"".join(data.to_bytes(bundle_bytes, "little") for data, _ in seen.bundles)
        assert bytes(frame.tdata) == bundles, "AxiStreamSink and monitor differ in bundles"
        rows: list[bytes] = []
        while not self.rows.empty():
            rows.append(bytes(self.rows.recv_nowait().tdata))
        kept = (
            data.to_bytes(bus_bytes, "little")[: keep.bit_length()]
            for data, keep, _ in seen.row_beats
        )
        assert b"".join(rows) == b"".join(kept), "AxiStreamSink and monitor differ in rows"
        lasts = sum(last for _, _, last in seen.row_beats)
        assert len(rows) == lasts, f"AxiStreamSink took {len(rows)} rows, not {lasts}"
        assert self.bundles.empty(), "bundles must be one frame"
