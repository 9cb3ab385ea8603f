from __future__ import annotations

import pytest

from ember_hw import isa, registers
from ember_hw.registers import Counter, FaultCode, State
from ember_hw.rtl.axi import Response
from ember_hw.rtl.register_file import COUNTER_BITS, RegisterFile
from ember_hw.rtl.tests.harness import CONFIG as NARROW
from ember_hw.rtl.tests.harness import Bench, payloads

CONFIG = NARROW.with_changes(address_width_bits=40)
OKAY, ERROR = Response.OKAY.value, Response.SLAVE_ERROR.value
RUNNING, RESETTING, DRAINING = State.RUNNING, State.RESETTING, State.DRAINING
START, ABORT = registers.CONTROL_START, registers.CONTROL_ABORT
JOINS = registers.CONTROL_JOINS
CONTROL, WINDOW = registers.CONTROL.address, registers.MICROCODE_ADDRESS
FAULT = {"code": FaultCode.INDEX_OUT_OF_RANGE, "unit": 0x12, "stream": 0x34}
FAULT_ADDRESS = 0x98_5432_10FE
COUNTERS = registers.counters(CONFIG)
#: Cycles from a counter's choice to its value.
COUNTER_CYCLES = 4


class Host(Bench):
    """A register file, its microcode window backed by a memory, and a host with seeded pauses."""

    def __init__(
        self,
        *,
        seed: int = 0,
        stall: float = 0.0,
        state: State = State.IDLE,
        may_start: int = 1,
        may_join: int = 1,
    ):
        super().__init__(RegisterFile(config=CONFIG), seed=seed)
        self.stall = stall
        self.memory = {address: 0x1000 + address for address in range(registers.MICROCODE_WORDS)}
        self.counters = [
            (0x0123_0000_0000 * (i + 1) + i + 7) % (1 << COUNTER_BITS) for i in range(COUNTERS)
        ]
        self.starts = self.watch(self.dut.start, self.dut.joins)
        self.aborts = self.watch(self.dut.abort)
        self.process(self._surroundings(state, may_start, may_join), background=True)

    def _surroundings(self, state: State, may_start: int, may_join: int):
        dut = self.dut

        async def surroundings(ctx):
            ctx.set(dut.state, state)
            ctx.set(dut.fault, FAULT | {"address": FAULT_ADDRESS})
            ctx.set(dut.requests, 5)
            ctx.set(dut.completed, 0xFEDC_BA98)
            ctx.set(dut.may_start, may_start)
            ctx.set(dut.may_join, may_join)
            ctx.set(dut.counters_settled, 1)
            chosen = [0] * (COUNTER_CYCLES - 1)
            while True:
                _, _, counter, address, write, word = await ctx.tick().sample(
                    dut.counter_select,
                    dut.microcode_address,
                    dut.microcode_write,
                    dut.microcode_write_data,
                )
                chosen.append(counter)
                number = chosen.pop(0)
                ctx.set(dut.counter_value, self.counters[number] if number < COUNTERS else 0)
                ctx.set(dut.microcode_read_data, self.memory[address])
                if write:
                    self.memory[address] = word

        return surroundings

    async def _offer(self, ctx, valid, ready, delay: int, fields: dict) -> None:
        for _ in range(delay):
            await ctx.tick()
        while self.random.random() < self.stall:
            await ctx.tick()
        for signal, value in fields.items():
            ctx.set(getattr(self.dut.bus, signal), value)
        ctx.set(valid, 1)
        await ctx.tick().until(ready)
        ctx.set(valid, 0)

    async def _take(self, ctx, valid, ready, *signals) -> tuple[int, ...]:
        cycles = 0
        shown = None
        while True:
            takes = self.random.random() >= self.stall
            ctx.set(ready, takes)
            _, _, is_valid, *values = await ctx.tick().sample(valid, *signals)
            cycles += 1
            if shown is not None:
                assert (is_valid, values) == (1, shown), f"seed {self.seed}: response let go"
            shown = values if is_valid else None
            if is_valid and takes:
                ctx.set(ready, 0)
                return cycles, *(int(getattr(value, "value", value)) for value in values)

    async def read(self, ctx, address: int) -> tuple[int, int, int]:
        """Return cycles from the address to the data, the response and the data."""
        bus = self.dut.bus
        await self._offer(ctx, bus.arvalid, bus.arready, 0, {"araddr": address})
        cycles, data, response = await self._take(ctx, bus.rvalid, bus.rready, bus.rdata, bus.rresp)
        return cycles, response, data

    def write(self, address: int, word: int, *, strobe: int = 0xF, lead: int = 0) -> list[int]:
        """Add a write whose address leads its data by `lead` cycles (or trails, if negative)."""
        bus, result = self.dut.bus, []

        async def send_address(ctx):
            await self._offer(ctx, bus.awvalid, bus.awready, max(0, -lead), {"awaddr": address})

        async def send_data(ctx):
            fields = {"wdata": word, "wstrb": strobe}
            await self._offer(ctx, bus.wvalid, bus.wready, max(0, lead), fields)

        async def take(ctx):
            cycles, response = await self._take(ctx, bus.bvalid, bus.bready, bus.bresp)
            result.extend([response, cycles])

        for part in (send_address, send_data, take):
            self.process(part)
        return result


VALUES = {
    registers.MAGIC: registers.MAGIC_VALUE,
    registers.ISA_VERSION: isa.ISA_VERSION,
    registers.CONFIG_HASH: CONFIG.hash(),
    registers.STATUS: State.IDLE,
    registers.FAULT: FaultCode.INDEX_OUT_OF_RANGE | 0x12 << 8 | 0x34 << 16,
    registers.FAULT_ADDRESS_LOW: FAULT_ADDRESS & 0xFFFF_FFFF,
    registers.FAULT_ADDRESS_HIGH: FAULT_ADDRESS >> 32,
    registers.REQUESTS: 5,
    registers.COMPLETED: 0xFEDC_BA98,
    registers.WATCHDOG: registers.WATCHDOG_CYCLES,
}


HOLES = (
    0x02C,
    0x03C,
    registers.ARGUMENTS_ADDRESS + 4 * CONFIG.exports,
    0x0FC,
    registers.counter_address(COUNTERS),
    registers.counter_address(COUNTERS) + 4,
    0x7FC,
)


@pytest.mark.parametrize(("seed", "stall"), [(0, 0.0), (1, 0.5), (2, 0.5)])
def test_every_register_counter_and_word_reads(seed: int, stall: float):
    host = Host(seed=seed, stall=stall)

    async def reader(ctx):
        for register in registers.REGISTERS:
            _, response, data = await host.read(ctx, register.address)
            if register.access == "wo":
                assert response == ERROR
            else:
                assert (response, data) == (OKAY, VALUES[register]), register.name
        for i in range(CONFIG.exports):
            address = registers.ARGUMENTS_ADDRESS + 4 * i
            assert (await host.read(ctx, address))[1:] == (OKAY, 0)
        for counter in range(COUNTERS):
            address = registers.counter_address(counter)
            value = host.counters[counter]
            assert (await host.read(ctx, address))[1:] == (OKAY, value & 0xFFFF_FFFF)
            host.counters[counter] ^= 1 << 40  # the high word is of the moment of the low one
            assert (await host.read(ctx, address + 4))[1:] == (OKAY, value >> 32)
        for word in (0, 1, 77, registers.MICROCODE_WORDS - 1):
            address = registers.MICROCODE_ADDRESS + 4 * word
            assert (await host.read(ctx, address))[1:] == (OKAY, 0x1000 + word)
        for address in HOLES:
            assert (await host.read(ctx, address))[1] == ERROR

    host.process(reader)
    host.run(3000)


def test_a_fault_address_of_32_bits_has_no_high_word():
    dut = RegisterFile(config=NARROW)
    bench = Bench(dut)

    async def reader(ctx):
        ctx.set(dut.fault, FAULT | {"address": 0xFFFF_FFFF})
        ctx.set(dut.bus.araddr, registers.FAULT_ADDRESS_HIGH.address)
        ctx.set(dut.bus.arvalid, 1)
        await ctx.tick()
        ctx.set(dut.bus.arvalid, 0)
        (data,) = await ctx.tick().sample(dut.bus.rdata).until(dut.bus.rvalid)
        assert data == 0

    bench.process(reader)
    bench.run(50)


def test_each_of_the_most_counters_has_its_address():
    config = CONFIG.with_changes(traversal_units=4, streams_per_unit=8, row_entries=8)
    dut = RegisterFile(config=config)
    bench = Bench(dut)

    async def reader(ctx):
        ctx.set(dut.bus.rready, 1)
        for counter in range(registers.counters(config)):
            ctx.set(dut.bus.araddr, registers.counter_address(counter))
            ctx.set(dut.bus.arvalid, 1)
            await ctx.tick().until(dut.bus.arready)
            ctx.set(dut.bus.arvalid, 0)
            assert ctx.get(dut.counter_select) == counter
            (response,) = await ctx.tick().sample(dut.bus.rresp).until(dut.bus.rvalid)
            assert response.value == OKAY

    bench.process(reader)
    bench.run(1000)


@pytest.mark.parametrize(
    "address", [registers.MAGIC.address, registers.COUNTERS_ADDRESS, registers.MICROCODE_ADDRESS]
)
def test_a_read_takes_five_cycles(address: int):
    host = Host()

    async def reader(ctx):
        assert (await host.read(ctx, address))[0] == 6  # rvalid after five

    host.process(reader)
    host.run(50)


def test_a_write_takes_two_cycles_from_its_later_half():
    host = Host()
    result = host.write(registers.MICROCODE_ADDRESS, 1, lead=0)
    host.run(50)
    assert result == [OKAY, 3]  # offered in the first, bvalid after two


@pytest.mark.parametrize("lead", [-3, -1, 0, 1, 3])
@pytest.mark.parametrize("seed", [0, 1])
def test_address_and_data_come_in_any_order(lead: int, seed: int):
    host = Host(seed=seed, stall=0.5 if seed else 0.0)
    result = host.write(registers.MICROCODE_ADDRESS + 4 * 9, 0xABCD_0123, lead=lead)
    host.run(200)
    assert result[0] == OKAY
    assert host.memory[9] == 0xABCD_0123


@pytest.mark.parametrize("state", [State.IDLE, State.DONE, State.FAULTED])
@pytest.mark.parametrize("half", [0, 4])
def test_at_rest_a_counter_is_read_once_it_has_settled(state: State, half: int):
    host = Host(state=state)
    value = host.counters[Counter.ROWS]
    host.counters[Counter.ROWS] = 0
    address = registers.counter_address(Counter.ROWS)

    async def reader(ctx):
        await ctx.tick()
        ctx.set(host.dut.counters_settled, 0)
        if half:
            # The high word is that of the low one, which waited.
            ctx.set(host.dut.counters_settled, 1)
            assert (await host.read(ctx, address))[1:] == (OKAY, 0)
            ctx.set(host.dut.counters_settled, 0)
            value_expected = 0
        else:
            value_expected = value & 0xFFFF_FFFF
        # What is no counter does not wait.
        assert (await host.read(ctx, registers.MAGIC.address))[0] == 6
        cycles, _, data = await host.read(ctx, address + half)
        assert cycles == 26
        assert data == value_expected

    async def settle(ctx):
        # 20 cycles after the counter's address was taken.
        taken = 0
        while taken < 2 + bool(half):
            _, _, moves = await ctx.tick().sample(host.dut.bus.arvalid & host.dut.bus.arready)
            taken += moves
        await ctx.tick().repeat(20)
        host.counters[Counter.ROWS] = value
        ctx.set(host.dut.counters_settled, 1)

    host.process(reader)
    host.process(settle, background=True)
    host.run(100)


@pytest.mark.parametrize("state", [State.RUNNING, State.DRAINING, State.RESETTING])
def test_while_a_program_runs_a_counter_is_read_at_once(state: State):
    host = Host(state=state)

    async def reader(ctx):
        await ctx.tick()
        ctx.set(host.dut.counters_settled, 0)
        assert (await host.read(ctx, registers.COUNTERS_ADDRESS))[0] == 6

    host.process(reader)
    host.run(50)


@pytest.mark.parametrize("state", [State.IDLE, State.RUNNING, State.DRAINING])
def test_arguments_and_watchdog_hold_what_was_written(state: State):
    host = Host(state=state)
    dut = host.dut
    ports = {registers.WATCHDOG.address: dut.watchdog}
    ports |= {registers.ARGUMENTS_ADDRESS + 4 * i: dut.arguments[i] for i in range(CONFIG.exports)}
    words = {address: 0x8000_0001 + 3 * address for address in ports}

    async def writer(ctx):
        for address, word in words.items():
            # Half a word is refused and changes nothing.
            for value, strobe in ((word, 0xF), (0, 0x3)):
                ctx.set(dut.bus.bready, 1)
                for name, field in (("awaddr", address), ("wdata", value), ("wstrb", strobe)):
                    ctx.set(getattr(dut.bus, name), field)
                ctx.set(dut.bus.awvalid, 1)
                ctx.set(dut.bus.wvalid, 1)
                await ctx.tick()
                ctx.set(dut.bus.awvalid, 0)
                ctx.set(dut.bus.wvalid, 0)
                (response,) = await ctx.tick().sample(dut.bus.bresp).until(dut.bus.bvalid)
                assert response.value == (OKAY if strobe == 0xF else ERROR)
        for address, word in words.items():
            assert ctx.get(ports[address]) == word
            assert (await host.read(ctx, address))[1:] == (OKAY, word)

    host.process(writer)
    host.run(400)


@pytest.mark.parametrize(
    ("word", "may_start", "response", "starts", "aborts"),
    [
        (START, 1, OKAY, 1, 0),
        (START, 0, ERROR, 0, 0),
        (ABORT, 1, OKAY, 0, 1),
        (ABORT, 0, OKAY, 0, 1),
        (START | ABORT, 1, OKAY, 1, 1),
        (START | ABORT, 0, ERROR, 0, 0),
        (0, 0, OKAY, 0, 0),
        (0xFFFF_FFF8, 1, OKAY, 0, 0),
    ],
)
@pytest.mark.parametrize("state", State)
@pytest.mark.parametrize("joins", [0, JOINS])
def test_a_start_is_taken_when_the_control_takes_one(
    state: State, word: int, may_start: int, response: int, starts: int, aborts: int, joins: int
):
    """One that joins looks at `may_join` alone, any other at `may_start`."""
    word |= joins
    may = {"may_start": may_start, "may_join": 1 - may_start}
    if joins:
        may = {"may_join": may_start, "may_start": 1 - may_start}
    host = Host(state=state, **may)
    result = host.write(CONTROL, word)
    host.run(50)
    assert result[0] == response
    assert payloads(host.starts) == [int(joins == JOINS)] * starts
    assert len(host.aborts) == aborts


@pytest.mark.parametrize(
    ("state", "address", "word", "strobe", "response", "starts", "aborts"),
    [
        (State.IDLE, CONTROL, START, 0x7, ERROR, 0, 0),
        (State.IDLE, CONTROL, START, 0x0, ERROR, 0, 0),
        (State.IDLE, WINDOW, 5, 0xE, ERROR, 0, 0),
        (RUNNING, WINDOW, 5, 0xF, ERROR, 0, 0),
        (DRAINING, WINDOW, 5, 0xF, ERROR, 0, 0),
        (RESETTING, WINDOW, 5, 0xF, ERROR, 0, 0),
        (State.IDLE, registers.MAGIC.address, 5, 0xF, ERROR, 0, 0),
        (State.IDLE, registers.STATUS.address, 5, 0xF, ERROR, 0, 0),
        (State.IDLE, registers.COUNTERS_ADDRESS, 5, 0xF, ERROR, 0, 0),
        (State.IDLE, registers.REQUESTS.address, 5, 0xF, ERROR, 0, 0),
        (State.IDLE, registers.COMPLETED.address, 5, 0xF, ERROR, 0, 0),
        *((State.IDLE, address, 5, 0xF, ERROR, 0, 0) for address in HOLES),
    ],
)
def test_what_a_write_does(
    state: State, address: int, word: int, strobe: int, response: int, starts: int, aborts: int
):
    host = Host(state=state)
    before = dict(host.memory)
    result = host.write(address, word, strobe=strobe)
    host.run(50)
    assert result[0] == response
    assert (len(host.starts), len(host.aborts)) == (starts, aborts)
    assert host.memory == before


@pytest.mark.parametrize("distance", range(9))
def test_a_write_beside_a_read_disturbs_neither(distance: int):
    """The window has one address; the write reaches it in each cycle of the read in turn."""
    host = Host()
    result = host.write(registers.MICROCODE_ADDRESS + 4 * 8, 0x5555, lead=4)

    async def reader(ctx):
        for _ in range(distance):
            await ctx.tick()
        address = registers.MICROCODE_ADDRESS + 4 * 3
        assert (await host.read(ctx, address))[1:] == (OKAY, 0x1003)

    host.process(reader)
    host.run(50)
    assert result[0] == OKAY
    assert host.memory[8] == 0x5555
