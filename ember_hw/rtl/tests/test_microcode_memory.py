from __future__ import annotations

import pytest
from amaranth.hdl import Value

from ember_hw import isa
from ember_hw.registers import MICROCODE_WORDS, FaultCode
from ember_hw.rtl.microcode_memory import MicrocodeMemory, record_name, register_paths
from ember_hw.rtl.tests.harness import CONFIG, Bench, unpack

LEGAL = {"unit0": {"enable": 1, "step": 1}}


def _write(dut: MicrocodeMemory, microcode: isa.Microcode):
    async def writer(ctx):
        ctx.set(dut.write, 1)
        for address, word in enumerate(microcode.encode()):
            ctx.set(dut.address, address)
            ctx.set(dut.write_data, word)
            await ctx.tick()
        ctx.set(dut.write, 0)
        await ctx.tick()

    return writer


def _random_microcode(bench: Bench) -> isa.Microcode:
    records = {
        path: {
            f.name: f.choices(bench.random.choice(list(f.choices)))
            if f.choices
            else bench.random.randint(f.least, f.most)
            for f in layout.fields
        }
        for path, layout in isa.layouts(CONFIG).items()
    }
    return isa.Microcode(CONFIG, records)


def test_record_names_are_identifiers():
    assert record_name("unit0.stream1") == "unit0_stream1"


@pytest.mark.parametrize("seed", [1, 2])
def test_records_show_what_was_written_and_words_read_back(seed: int):
    dut = MicrocodeMemory(config=CONFIG)
    bench = Bench(dut, seed=seed)
    microcode = _random_microcode(bench)
    words = microcode.encode()

    async def check(ctx):
        await _write(dut, microcode)(ctx)
        for path in register_paths(CONFIG):
            port = getattr(dut, record_name(path))
            record = unpack(port.shape(), ctx.get(Value.cast(port)))
            assert record == microcode.records[path], path
        for entry, events in enumerate(dut.row_events):
            fields = microcode.records[f"row{entry}"]
            ctx.set(dut.row_select, entry)
            assert unpack(dut.row.shape(), ctx.get(Value.cast(dut.row))) == fields
            assert ctx.get(events) == fields["events"]
        for address in range(len(words) + 3):
            ctx.set(dut.address, address)
            await ctx.tick()
            assert ctx.get(dut.read_data) == (words[address] if address < len(words) else 0)

    bench.process(check)
    bench.run(500)


def test_a_write_beyond_the_program_changes_nothing():
    dut = MicrocodeMemory(config=CONFIG)
    bench = Bench(dut, seed=3)
    microcode = _random_microcode(bench)
    words = microcode.encode()

    async def check(ctx):
        await _write(dut, microcode)(ctx)
        ctx.set(dut.write, 1)
        ctx.set(dut.write_data, 0xFFFF_FFFF)
        for address in range(len(words), MICROCODE_WORDS, 37):
            ctx.set(dut.address, address)
            await ctx.tick()
        ctx.set(dut.write, 0)
        for address, word in enumerate(words):
            ctx.set(dut.address, address)
            await ctx.tick()
            assert ctx.get(dut.read_data) == word

    bench.process(check)
    bench.run(500)


ILLEGAL = FaultCode.ILLEGAL_MICROCODE


@pytest.mark.parametrize(
    ("records", "verdict"),
    [
        (LEGAL, FaultCode.NONE),
        (LEGAL | {"unit1": {"enable": 1, "step": 1}}, FaultCode.NONE),
        (LEGAL | {"unit0": {"enable": 1, "step": 65535}}, FaultCode.NONE),
        (LEGAL | {"unit1": {"enable": 0, "step": 0}}, FaultCode.NONE),
        (LEGAL | {"row1": {"events": 1, "length": 0}}, FaultCode.NONE),  # RowAddress reports it
        (LEGAL | {"header": {"version": isa.ISA_VERSION + 1}}, FaultCode.BAD_VERSION),
        (LEGAL | {"header": {"version": 0}}, FaultCode.BAD_VERSION),
        ({}, ILLEGAL),
        ({"unit0": {"enable": 1}}, ILLEGAL),
        (LEGAL | {"unit1": {"enable": 1, "step": 0}}, ILLEGAL),
        ({"unit1": {"enable": 1, "step": 1}}, ILLEGAL),
        ({"header": {"version": 0}, "unit0": {"enable": 1}}, FaultCode.BAD_VERSION),
    ],
)
def test_verdict(records: dict, verdict: FaultCode):
    dut = MicrocodeMemory(config=CONFIG)
    bench = Bench(dut)

    async def check(ctx):
        await _write(dut, isa.Microcode(CONFIG, records))(ctx)
        await ctx.tick()
        assert ctx.get(dut.verdict) == verdict

    bench.process(check)
    bench.run(500)
