"""The AXI4-Lite port: what every register answers, what is refused, with the channels apart."""

from __future__ import annotations

import random
from typing import Any

import cocotb
from cocotb.triggers import ClockCycles, Combine
from cocotbext.axi import AxiResp

from cocotb_tests.drivers import Bench, bench_test
from cocotb_tests.lookups import GOOD, case_named, launch_case, run_and_check
from ember_hw import registers
from ember_hw.config import AcceleratorConfig
from ember_hw.isa import ISA_VERSION, Microcode, microcode_words
from ember_hw.registers import (
    ARGUMENTS_ADDRESS,
    CONTROL,
    CONTROL_START,
    MICROCODE_ADDRESS,
    MICROCODE_WORDS,
    REGISTERS,
    WATCHDOG,
    WATCHDOG_CYCLES,
    Counter,
    State,
    counter_address,
    counters,
)

_END = 1 << registers.ADDRESS_WIDTH_BITS


def _holes(config: AcceleratorConfig) -> tuple[int, ...]:
    """Return addresses that hold nothing."""
    return (
        REGISTERS[-1].address + 4,
        ARGUMENTS_ADDRESS - 4,
        ARGUMENTS_ADDRESS + 4 * config.exports,
        0x0FC,
        counter_address(counters(config)),
        MICROCODE_ADDRESS - 4,
    )


async def _refused_write(bench: Bench, address: int, data: bytes) -> None:
    response = await bench.try_write(address, data)
    assert response == AxiResp.SLVERR, f"write to {address:#x}: {response!r}"


@bench_test
async def test_identity(dut: Any) -> None:
    bench = Bench(dut)
    await bench.reset()
    assert await bench.read(registers.MAGIC.address) == registers.MAGIC_VALUE
    assert await bench.read(registers.ISA_VERSION.address) == ISA_VERSION
    assert await bench.read(registers.CONFIG_HASH.address) == bench.config.hash()
    assert await bench.state() is State.IDLE
    assert not any(await bench.counters())
    assert await bench.read(registers.REQUESTS.address) == 0
    assert await bench.read(registers.COMPLETED.address) == 0


@bench_test
async def test_what_is_not_writable_is_refused(dut: Any) -> None:
    bench = Bench(dut)
    await bench.reset()
    readable = [r.address for r in REGISTERS if r.access == "ro"]
    before = [await bench.read(address) for address in readable]
    for address in (*readable, counter_address(Counter.CYCLES), *_holes(bench.config)):
        await _refused_write(bench, address, b"\xff\xff\xff\xff")
    assert [await bench.read(address) for address in readable] == before
    assert await bench.state() is State.IDLE


@bench_test
async def test_what_is_not_readable_is_refused(dut: Any) -> None:
    bench = Bench(dut)
    await bench.reset()
    for address in (CONTROL.address, *_holes(bench.config)):
        response, _ = await bench.try_read(address)
        assert response == AxiResp.SLVERR, f"read of {address:#x}: {response!r}"


@bench_test
@cocotb.parametrize(first=(0, 1, 2, 3), count=(1, 2, 3))
async def test_write_of_a_part_of_a_word_is_refused(dut: Any, first: int, count: int) -> None:
    """A byte of CONTROL must not start, one of the window not change a word."""
    if first + count > 4:
        return
    bench = Bench(dut)
    await bench.reset()
    await bench.write(MICROCODE_ADDRESS, 0x1234_5678)
    await _refused_write(bench, MICROCODE_ADDRESS + first, b"\xff" * count)
    await _refused_write(bench, CONTROL.address + first, b"\x01" * count)
    assert await bench.read(MICROCODE_ADDRESS) == 0x1234_5678
    assert await bench.state() is State.IDLE


@bench_test
async def test_arguments_and_watchdog_read_back(dut: Any) -> None:
    bench = Bench(dut)
    await bench.reset()
    reset_values = {ARGUMENTS_ADDRESS + 4 * i: 0 for i in range(bench.config.exports)}
    reset_values[WATCHDOG.address] = WATCHDOG_CYCLES
    source = random.Random(cocotb.RANDOM_SEED)
    values = {address: source.getrandbits(32) for address in reset_values}
    for address, value in reset_values.items():
        assert await bench.read(address) == value
    for _ in range(3):  # so that each bit rises and falls
        values = {address: value ^ 0xFFFF_FFFF for address, value in values.items()}
        for address, value in values.items():
            await bench.write(address, value)
        for address in values:
            await _refused_write(bench, address, b"\x55")
        for address, value in values.items():
            assert await bench.read(address) == value
    await bench.reset()
    for address, value in reset_values.items():
        assert await bench.read(address) == value


@bench_test
async def test_microcode_reads_back(dut: Any) -> None:
    bench = Bench(dut)
    await bench.reset()
    source = random.Random(cocotb.RANDOM_SEED)
    words = [source.getrandbits(32) for _ in range(microcode_words(bench.config))]
    order = list(range(len(words)))
    for _ in range(3):  # so that each bit rises and falls
        words = [word ^ 0xFFFF_FFFF for word in words]
        source.shuffle(order)
        for number in order:
            await bench.write(MICROCODE_ADDRESS + 4 * number, words[number])
        for number, word in enumerate(words):
            assert await bench.read(MICROCODE_ADDRESS + 4 * number) == word
    # The rest of the window.
    for number in (len(words), MICROCODE_WORDS - 1):
        await bench.write(MICROCODE_ADDRESS + 4 * number, 0xFFFF_FFFF)
        assert await bench.read(MICROCODE_ADDRESS + 4 * number) == 0
    assert MICROCODE_ADDRESS + 4 * MICROCODE_WORDS == _END
    assert await bench.read(MICROCODE_ADDRESS) == words[0]


@bench_test
@cocotb.parametrize(share=(0.0, 0.5))
async def test_writes_and_reads_at_the_same_time(dut: Any, share: float) -> None:
    """The window has one address: neither of two accesses in a cycle may spoil the other."""
    bench = Bench(dut, stall_share=share)
    await bench.reset()
    launch = launch_case(GOOD, bench.config)
    words = launch.microcode.encode()
    await bench.load(launch.microcode)

    async def write() -> None:
        for _ in range(4):
            for number, word in enumerate(words):
                await bench.write(MICROCODE_ADDRESS + 4 * number, word)

    async def read() -> None:
        for _ in range(4):
            for number, word in reversed(list(enumerate(words))):
                found = await bench.read(MICROCODE_ADDRESS + 4 * number)
                assert found == word, f"word {number} must be {word:#x}, not {found:#x}"

    await Combine(cocotb.start_soon(write()), cocotb.start_soon(read()))
    await run_and_check(bench, launch, GOOD)


@bench_test
async def test_microcode_is_refused_while_a_program_runs(dut: Any) -> None:
    bench = Bench(dut, stall_share=0.0)
    await bench.reset()
    lookup = case_named("lengths_mixed")
    launch = launch_case(lookup, bench.config)
    bench.rows.pause = True  # so that it runs as long as this takes
    await bench.begin(launch)
    for number in range(microcode_words(bench.config)):
        await _refused_write(bench, MICROCODE_ADDRESS + 4 * number, b"\xff\xff\xff\xff")
    assert await bench.state() is State.RUNNING
    held = [
        await bench.read(MICROCODE_ADDRESS + 4 * number)
        for number in range(microcode_words(bench.config))
    ]
    assert Microcode.decode(held, bench.config) == launch.microcode
    bench.rows.pause = False
    await bench.end()
    await run_and_check(bench, launch, lookup)


@bench_test
async def test_start_is_refused_while_buffers_are_cleared(dut: Any) -> None:
    bench = Bench(dut, stall_share=0.0)
    await bench.reset()
    dut.rst.value = 1
    await ClockCycles(dut.clk, 2)
    dut.rst.value = 0
    await ClockCycles(dut.clk, 1)
    await _refused_write(bench, CONTROL.address, CONTROL_START.to_bytes(4, "little"))
    assert await bench.state_is(State.IDLE) is State.IDLE
    await run_and_check(bench, launch_case(GOOD, bench.config), GOOD)


@bench_test
async def test_high_word_of_a_counter_belongs_to_its_low_word(dut: Any) -> None:
    """Counters go on while a program runs; a pair is of one moment, and never goes back.

    What is read while it runs may be old by as many cycles as there are counters.
    """
    bench = Bench(dut, stall_share=0.0)
    await bench.reset()
    lookup = case_named("lengths_mixed")
    launch = launch_case(lookup, bench.config)
    bench.rows.pause = True
    await bench.begin(launch)
    address, first, latest = counter_address(Counter.CYCLES), bench.monitor.cycles, 0
    for _ in range(20):
        low = await bench.read(address)
        high = await bench.read(address + 4)
        assert high == 0
        assert low >= latest
        latest = low
    assert 0 < latest <= bench.monitor.cycles - first + 20
    bench.rows.pause = False
    await bench.end()
    await run_and_check(bench, launch, lookup)
