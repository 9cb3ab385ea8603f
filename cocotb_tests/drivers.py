"""A bench around the flat top: host, memory, execute side, and seeded stalls on every channel."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterable, Sequence
from typing import Any

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, FallingEdge, RisingEdge
from cocotbext.axi import (
    AddressSpace,
    AxiLiteBus,
    AxiLiteMaster,
    AxiReadBus,
    AxiResp,
    AxiSlaveRead,
    AxiStreamBus,
    AxiStreamFrame,
    AxiStreamSink,
    AxiStreamSource,
)

from cocotb_tests.models import FaultyRegion, Stalls
from cocotb_tests.monitors import Monitor, Seen
from cocotb_tests.read_ports import read_ports
from cocotb_tests.responder import ReadResponder
from cocotb_tests.runner import CONFIG_VARIABLE
from ember_hw.config import AcceleratorConfig
from ember_hw.host.launch import Launch
from ember_hw.host.memory_layout import Region
from ember_hw.isa import Microcode
from ember_hw.registers import (
    ARGUMENTS_ADDRESS,
    COMPLETED,
    CONTROL,
    CONTROL_ABORT,
    CONTROL_JOINS,
    CONTROL_START,
    FAULT,
    FAULT_ADDRESS_HIGH,
    FAULT_ADDRESS_LOW,
    MICROCODE_ADDRESS,
    REQUESTS,
    STATUS,
    FaultCode,
    State,
    counter_address,
    counters,
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


class Bench:
    """The access unit with cocotbext-axi on all ports.

    With AXI3, which cocotbext-axi has not, `ReadResponder` answers the reads.

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
        # The unit resets sinks and source, which then forget the part of a frame that they have.
        queues: dict[str, Any] = {"reset": dut.m_axis_aresetn, "reset_active_level": False}
        bus = AxiStreamBus.from_prefix(dut, "m_axis_bundle")
        self.bundles = AxiStreamSink(bus, dut.clk, byte_size=8, **queues)
        bus = AxiStreamBus.from_prefix(dut, "m_axis_row")
        self.rows = AxiStreamSink(bus, dut.clk, **queues)
        self.words: AxiStreamSource | None = None
        if self.config.input_queue:
            bus = AxiStreamBus.from_prefix(dut, "s_axis_index")
            self.words = AxiStreamSource(bus, dut.clk, byte_size=8, **queues)
            cocotb.start_soon(self._lose_words(self.words))
        if memory is None and self.config.memory_protocol == "axi3":
            memory = ReadResponder(
                dut, self.config, seed=cocotb.RANDOM_SEED, stall_share=stall_share
            )
        self.responder = memory
        self.memories: list[AxiSlaveRead] = []
        if memory is None:
            for port in read_ports(self.config):
                bus = AxiReadBus.from_prefix(dut, port.prefix)
                self.memories.append(AxiSlaveRead(bus, dut.clk, dut.rst, target=AddressSpace()))
        self._arguments: list[int] = []
        self._started = 0
        self.set_stalls(stall_share)

    async def _lose_words(self, source: AxiStreamSource) -> None:
        """Drop what the input queue holds whenever the unit resets the queues."""
        while True:
            await FallingEdge(self.dut.m_axis_aresetn)
            source.clear()

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
        if self.words is not None:
            channels["words"] = self.words
        for number, memory in enumerate(self.memories):
            channels[f"memory ar {number}"] = memory.ar_channel
            channels[f"memory r {number}"] = memory.r_channel
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
        self._arguments = [0] * self.config.exports
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

    async def try_start(self) -> AxiResp:
        """Start a request with the arguments that the registers hold; return the answer.

        All requests of a program but the first join those before them.
        """
        command = CONTROL_START | (CONTROL_JOINS if self._started else 0)
        response = await self.try_write(CONTROL.address, command.to_bytes(4, "little"))
        self._started += response == AxiResp.OKAY
        return response

    async def start(self) -> None:
        """Start a request that must be taken."""
        response = await self.try_start()
        assert response == AxiResp.OKAY, f"start behind {self._started} requests: {response!r}"

    async def set_arguments(self, arguments: Sequence[int]) -> None:
        """Write the arguments of the next request that the registers don't hold yet.

        Parameters
        ----------
        arguments : sequence of int
            Signed or unsigned 32-bit values; those left out are 0.
        """
        wanted = [*arguments, *[0] * (self.config.exports - len(arguments))]
        for number, value in enumerate(wanted):
            if self._arguments[number] != value:
                await self.write(ARGUMENTS_ADDRESS + 4 * number, value & 0xFFFF_FFFF)
        self._arguments = wanted

    async def request(self, arguments: Sequence[int]) -> None:
        """Start a request; await that there is room for it."""
        end = self.monitor.cycles + MOST_CYCLES
        while await self.read(REQUESTS.address) == self.config.request_entries:
            assert self.monitor.cycles < end, f"no request ends within {MOST_CYCLES} cycles"
        await self.set_arguments(arguments)
        await self.start()

    def feed(self, lines: Iterable[tuple[int, bytes]]) -> None:
        """Let the input queue bring lines: number of the stream and 64 bytes."""
        assert self.words is not None, "the config has no input queue"
        for stream, line in lines:
            self.words.send_nowait(AxiStreamFrame(line, tdest=stream))

    async def abort(self) -> None:
        """Stop the program."""
        await self.write(CONTROL.address, CONTROL_ABORT)

    async def fault(self) -> tuple[FaultCode, int, int, int]:
        """Return code, unit, stream and address of the latest fault."""
        word = await self.read(FAULT.address)
        address = await self.read(FAULT_ADDRESS_LOW.address)
        address |= await self.read(FAULT_ADDRESS_HIGH.address) << 32
        return FaultCode(word & 0x1F), word >> 8 & 0xFF, word >> 16 & 0xFF, address

    async def counters(self) -> list[int]:
        """Return all counters."""
        values: list[int] = []
        for counter in range(counters(self.config)):
            low = await self.read(counter_address(counter))
            values.append(low | await self.read(counter_address(counter) + 4) << 32)
        return values

    # Memory

    def map(self, regions: Sequence[Region], bad: Sequence[int] = ()) -> None:
        """Put regions into memory; nothing lies between them.

        Parameters
        ----------
        regions : sequence of Region
        bad : sequence of int
            Addresses of beats that can't be read; not with `ReadResponder`, which has its own.
        """
        regions = [region for region in regions if region.data.size]
        self.monitor.map([(r.base, r.base + r.data.size) for r in regions])
        if self.responder is not None:
            self.responder.regions = [(r.base, r.data.tobytes()) for r in regions]
        if self.memories:
            space = AddressSpace(1 << self.config.address_width_bits)
            for region in regions:
                content = bytearray(region.data.tobytes())
                faulty = FaultyRegion(content, [address - region.base for address in bad])
                space.register_region(faulty, region.base)
            for memory in self.memories:
                memory.target = space

    # Programs

    async def prepare(self, launch: Launch, bad: Sequence[int] = ()) -> None:
        """Map and load a program, and set its arguments."""
        self.map(launch.regions, bad)
        await self.load(launch.microcode)
        await self.set_arguments(launch.arguments)
        await self.begin_series()

    async def begin_series(self, *, joins: bool = False) -> None:
        """Count requests and look at what passes from here on; the next start may join at once."""
        self._completed = await self.read(COMPLETED.address)
        self._started = int(joins)
        self.monitor.clear()

    async def begin(self, launch: Launch, bad: Sequence[int] = ()) -> None:
        """Map, load and start a program."""
        await self.prepare(launch, bad)
        await self.start()

    async def end(self, wanted: State = State.DONE, *, requests: int = 1) -> Seen:
        """Await the end of a program; return what passed.

        The interrupt must have come (once if it was one request), no read be in flight, and nothing
        follow; what the sinks took must be what the monitor saw.

        Parameters
        ----------
        wanted : State
            DONE or FAULTED.
        requests : int
            Requests that COMPLETED must count if the program ended; of one that was stopped, at
            most as many.
        """
        state = await self.state_is(State.DONE, State.FAULTED)
        if state is not wanted:
            raise AssertionError(f"{state.name}, not {wanted.name}: {await self.fault()}")
        seen = self.monitor.clear()
        assert 1 <= seen.irqs <= requests, f"{requests} requests, {seen.irqs} interrupts"
        assert self.monitor.outstanding == 0, f"{self.monitor.outstanding} reads are in flight"
        completed = await self.read(COMPLETED.address) - self._completed
        lasts = sum(last for _, last in seen.bundles)
        assert completed <= lasts, f"{completed} requests completed, {lasts} bundles were the last"
        most = requests if wanted is State.DONE else requests - 1
        assert most >= completed >= most * (wanted is State.DONE), f"{completed} requests completed"
        assert await self.read(REQUESTS.address) == 0
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
        frames: list[bytes] = []
        while not self.bundles.empty():
            frames.append(bytes(self.bundles.recv_nowait().tdata))
        bundles = b"".join(data.to_bytes(bundle_bytes, "little") for data, _ in seen.bundles)
        assert b"".join(frames) == bundles, "AxiStreamSink and monitor differ in bundles"
        lasts = sum(last for _, last in seen.bundles)
        assert len(frames) == lasts, f"AxiStreamSink took {len(frames)} frames, not {lasts}"
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
