from __future__ import annotations

import pytest

from ember_hw import isa, registers
from ember_hw.registers import Counter, FaultCode, State
from ember_hw.rtl.axi import Response
from ember_hw.rtl.register_file import RegisterFile
from ember_hw.rtl.tests.harness import CONFIG, Bench

OKAY, ERROR = Response.OKAY.value, Response.SLAVE_ERROR.value
FAULT = {"code": FaultCode.INDEX_OUT_OF_RANGE, "unit": 0x12, "stream": 0x34}
FAULT_ADDRESS = 0x9876_5432_10FE


class Host(Bench):
    """A register file, its microcode window backed by a memory, and a host with seeded pauses."""

    def __init__(self, *, seed: int = 0, stall: float = 0.0, state: State = State.IDLE):
        super().__init__(RegisterFile(config=CONFIG), seed=seed)
        self.stall = stall
        self.memory = {address: 0x1000 + address for address in range(registers.MICROCODE_WORDS)}
        self.counters = [0x0123_0000_0000 * (i + 1) + i + 7 for i in range(len(Counter))]
        self.starts = self.watch(self.dut.start)
        self.aborts = self.watch(self.dut.abort)
        self.process(self._surroundings(state), background=True)

    def _surroundings(self, state: State):
        dut = self.dut

        async def surroundings(ctx):
            ctx.set(dut.state, state)
            ctx.set(dut.fault, FAULT | {"address": FAULT_ADDRESS})
            while True:
                _, _, counter, address, write, word = await ctx.tick().sample(
                    dut.counter_select,
                    dut.microcode_address,
                    dut.microcode_write,
                    dut.microcode_write_data,
                )
                ctx.set(dut.counter_value, self.counters[counter])
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
}


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
        for counter in Counter:
            address = registers.counter_address(counter)
            value = host.counters[counter]
            assert (await host.read(ctx, address))[1:] == (OKAY, value & 0xFFFF_FFFF)
            host.counters[counter] += 1 << 40  # the high word is of the moment of the low one
            assert (await host.read(ctx, address + 4))[1:] == (OKAY, value >> 32)
        for word in (0, 1, 77, registers.MICROCODE_WORDS - 1):
            address = registers.MICROCODE_ADDRESS + 4 * word
            assert (await host.read(ctx, address))[1:] == (OKAY, 0x1000 + word)
        for address in (0x020, 0x0FC, registers.counter_address(Counter.HIGH_TOKENS) + 8, 0x7FC):
            assert (await host.read(ctx, address))[1] == ERROR

    host.process(reader)
    host.run(3000)


def test_a_read_takes_three_cycles():
    host = Host()

    async def reader(ctx):
        assert (await host.read(ctx, registers.MAGIC.address))[0] == 4  # rvalid after three

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


RUNNING, RESETTING, DRAINING = State.RUNNING, State.RESETTING, State.DRAINING
START, ABORT = registers.CONTROL_START, registers.CONTROL_ABORT
CONTROL, WINDOW = registers.CONTROL.address, registers.MICROCODE_ADDRESS


@pytest.mark.parametrize(
    ("state", "address", "word", "strobe", "response", "starts", "aborts"),
    [
        (State.IDLE, CONTROL, START, 0xF, OKAY, 1, 0),
        (State.DONE, CONTROL, START, 0xF, OKAY, 1, 0),
        (State.FAULTED, CONTROL, START, 0xF, OKAY, 1, 0),
        (State.IDLE, CONTROL, START | ABORT, 0xF, OKAY, 1, 1),
        (RUNNING, CONTROL, ABORT, 0xF, OKAY, 0, 1),
        (RUNNING, CONTROL, START, 0xF, ERROR, 0, 0),
        (RUNNING, CONTROL, START | ABORT, 0xF, ERROR, 0, 0),
        (DRAINING, CONTROL, START, 0xF, ERROR, 0, 0),
        (RESETTING, CONTROL, START, 0xF, ERROR, 0, 0),
        (State.IDLE, CONTROL, START, 0x7, ERROR, 0, 0),
        (State.IDLE, CONTROL, START, 0x0, ERROR, 0, 0),
        (State.IDLE, WINDOW, 5, 0xE, ERROR, 0, 0),
        (RUNNING, WINDOW, 5, 0xF, ERROR, 0, 0),
        (DRAINING, WINDOW, 5, 0xF, ERROR, 0, 0),
        (RESETTING, WINDOW, 5, 0xF, ERROR, 0, 0),
        (State.IDLE, registers.MAGIC.address, 5, 0xF, ERROR, 0, 0),
        (State.IDLE, registers.STATUS.address, 5, 0xF, ERROR, 0, 0),
        (State.IDLE, registers.COUNTERS_ADDRESS, 5, 0xF, ERROR, 0, 0),
        (State.IDLE, 0x0FC, 5, 0xF, ERROR, 0, 0),
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
