"""The reduce unit, verilated: whole queues in, whole results out."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from amaranth.back import verilog
from amaranth.hdl import Cat, Module, Shape
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out
from numpy.typing import NDArray

from ember_hw.config import AcceleratorConfig
from ember_hw.rtl.execute.reduce_unit import ReduceUnit
from ember_hw.rtl.execute.tests.reduce_cases import Case, row_beats
from ember_hw.rtl.layouts import bundle_layout, row_beat_layout
from ember_hw.sim.verilated import verilated


def program_bits(dut: ReduceUnit) -> list:
    """Return the unit's inputs that the microcode sets, in the order of `program_value`."""
    parts = [dut.header, *dut.steps, *dut.row_events, dut.told_events]
    return [part.as_value() if isinstance(part, data.View) else part for part in parts]


def program_value(case: Case, dut: ReduceUnit) -> int:
    """Return what those inputs are for a case."""
    entries = range(dut.config.row_entries)
    values = [_pack(dut.header.shape(), case.records["reduce"])]
    values += [_pack(dut.steps[r].shape(), case.records[f"reduce{r}"]) for r in entries]
    values += [case.records[f"row{r}"]["events"] for r in entries]
    values += [case.records["issue"]["events"]]
    bits, position = 0, 0
    for part, value in zip(program_bits(dut), values, strict=True):
        bits |= value << position
        position += len(part)
    return bits


def _pack(layout: data.StructLayout, values: Mapping[str, int]) -> int:
    return sum(int(values[name]) << field.offset for name, field in layout)


class _Top(wiring.Component):
    """The unit with one port a queue and one for all of the program."""

    def __init__(self, unit: ReduceUnit):
        self.unit = unit
        config = unit.config
        bundle_bits = Shape.cast(bundle_layout(config)).width
        row_bits = Shape.cast(row_beat_layout(config)).width
        program = sum(len(part) for part in program_bits(unit))
        ports: dict[str, object] = {"program": In(program)}
        for name, bits in (("bundle", bundle_bits), ("row", row_bits)):
            ports |= {f"{name}_valid": In(1), f"{name}_ready": Out(1), name: In(bits)}
        ports |= {"result_valid": Out(1), "result_ready": In(1), "result": Out(row_bits)}
        super().__init__({**ports, "ended": Out(1), "misfit": Out(1), "legal": Out(1)})

    def elaborate(self, platform):
        m = Module()
        m.submodules.unit = unit = self.unit
        m.d.comb += Cat(*program_bits(unit)).eq(self.program)
        for name in ("bundle", "row"):
            port = getattr(unit, name)
            m.d.comb += [
                port.valid.eq(getattr(self, f"{name}_valid")),
                getattr(self, f"{name}_ready").eq(port.ready),
                port.payload.as_value().eq(getattr(self, name)),
            ]
        m.d.comb += [
            self.result_valid.eq(unit.result.valid),
            unit.result.ready.eq(self.result_ready),
            unit.taken.eq(unit.bundle.valid & unit.bundle.ready & unit.bundle.payload.last),
            self.result.eq(unit.result.payload.as_value()),
            self.ended.eq(unit.ended),
            self.misfit.eq(unit.fault.valid),
            self.legal.eq(unit.legal),
        ]
        return m


_HARNESS = r"""
#include "Vtop.h"
#include <cstddef>
#include <cstdint>
#include <cstring>

template <typename Port> void put(Port& port, const uint32_t* words) {
    std::memcpy(&port, words, sizeof(Port));
}
template <typename Port> void get(const Port& port, uint32_t* words) {
    std::memcpy(words, &port, sizeof(Port));
}
static uint64_t state;
static bool chance(uint32_t of_256) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (state >> 56) < of_256;
}
// counts: cycles, bundles taken, beats taken, results, ended, misfit, legal, first beat, last beat
extern "C" void run(const uint32_t* program, const uint32_t* bundles, size_t bundle_count,
                    const uint32_t* rows, size_t row_count, uint32_t* results, size_t result_room,
                    size_t words, uint64_t seed, const uint32_t* stalls, size_t max_cycles,
                    size_t patience, uint64_t* counts) {
    Vtop top;
    state = seed * 2 + 1;
    std::memset(counts, 0, 9 * sizeof(uint64_t));
    put(top.program, program);
    top.rst = 1;
    for (int i = 0; i < 4; ++i) {
        top.clk = 0; top.eval(); top.clk = 1; top.eval();
        top.rst = 0;
    }
    size_t idle = 0;
    bool bundle_shown = false, row_shown = false;
    for (size_t cycle = 0; cycle < max_cycles && idle < patience; ++cycle) {
        bundle_shown = bundle_shown || !chance(stalls[0]);
        row_shown = row_shown || !chance(stalls[1]);
        top.bundle_valid = bundle_shown && counts[1] < bundle_count;
        top.row_valid = row_shown && counts[2] < row_count;
        top.result_ready = !chance(stalls[2]);
        if (top.bundle_valid) put(top.bundle, bundles + words * counts[1]);
        if (top.row_valid) put(top.row, rows + words * counts[2]);
        top.clk = 0;
        top.eval();
        ++idle;
        const bool bundle_moves = top.bundle_valid && top.bundle_ready;
        const bool row_moves = top.row_valid && top.row_ready;
        if (top.result_valid && top.result_ready && counts[3] < result_room) {
            get(top.result, results + words * counts[3]++);
            idle = 0;
        }
        counts[4] += top.ended;
        counts[5] += top.misfit;
        counts[6] = top.legal;
        top.clk = 1;
        top.eval();
        if (bundle_moves) { ++counts[1]; bundle_shown = false; idle = 0; }
        if (row_moves) {
            if (!counts[2]) counts[7] = cycle;
            counts[8] = cycle;
            ++counts[2]; row_shown = false; idle = 0;
        }
        counts[0] = cycle;
    }
}
"""


@cache
def _library(config: AcceleratorConfig, forwards: bool | None) -> ctypes.CDLL:
    top = _Top(ReduceUnit(config=config, forwards=forwards))
    text = verilog.convert(top, name="top", emit_src=False)
    return verilated("reduce", text, _HARNESS, optimise="-O1")


@dataclass(frozen=True)
class Outcome:
    """What came out.

    Attributes
    ----------
    results : list of uint32 (D,)
    cycles : int
        Until all was taken and given.
    row_cycles : int
        From the first beat of a row that was taken to the last.
    bundles, beats : int
        How many were taken.
    ended, misfits : int
        Cycles with those strobes.
    legal : bool
    """

    results: list[NDArray[np.uint32]]
    cycles: int
    row_cycles: int
    bundles: int
    beats: int
    ended: int
    misfits: int
    legal: bool


def run_reduce(
    case: Case,
    config: AcceleratorConfig,
    *,
    forwards: bool | None = None,
    seed: int = 0,
    stalls: Sequence[float] = (0.0, 0.0, 0.0),
    max_cycles: int = 10_000_000,
    patience: int = 200,
) -> Outcome:
    """Return what the unit makes of a case.

    Parameters
    ----------
    stalls : three floats
        Chance that a cycle has no bundle, no beat of a row, no room for a result.
    patience : int
        Cycles after which all is over if nothing moves.
    """
    library = _library(config, forwards)
    shapes = (bundle_layout(config), row_beat_layout(config))
    words = max(-(-Shape.cast(shape).width // 32) for shape in shapes) + 1
    scalar_bits = 32 * config.bundle_scalars
    bundles = [
        events
        | int.from_bytes(np.array(scalars, "<u4").tobytes(), "little") << config.events
        | last << (config.events + scalar_bits)
        for events, scalars, last in case.bundles
    ]
    rows = [_pack(shapes[1], beat) for beat in row_beats(case, config)]
    room = 2 * len(rows) + 600 * len(bundles) + 8
    results = np.zeros((min(room, 1 << 20), words), np.uint32)
    counts = np.zeros(9, np.uint64)
    dut = ReduceUnit(config=config)
    dut._MustUse__used = True

    def pointer(array):
        return array.ctypes.data_as(ctypes.c_void_p)

    arrays = [_words([program_value(case, dut)], 8), _words(bundles, words), _words(rows, words)]
    percent = np.array([int(256 * stall) for stall in stalls], np.uint32)
    library.run(
        pointer(arrays[0]),
        *(pointer(arrays[1]), ctypes.c_size_t(len(bundles))),
        *(pointer(arrays[2]), ctypes.c_size_t(len(rows))),
        *(pointer(results), ctypes.c_size_t(len(results))),
        *(ctypes.c_size_t(words), ctypes.c_uint64(seed), pointer(percent)),
        *(ctypes.c_size_t(max_cycles), ctypes.c_size_t(patience), pointer(counts)),
    )
    cycles, bundles_taken, beats, given, ended, misfits, legal, first, last = map(int, counts)
    return Outcome(
        results=_rows(results[:given], config),
        cycles=cycles,
        row_cycles=last - first + 1,
        bundles=bundles_taken,
        beats=beats,
        ended=ended,
        misfits=misfits,
        legal=bool(legal),
    )


def _words(values: Sequence[int], words: int) -> NDArray[np.uint32]:
    text = b"".join(value.to_bytes(4 * words, "little") for value in values)
    return np.frombuffer(text or bytes(4 * words), np.uint32)


def _rows(beats: NDArray[np.uint32], config: AcceleratorConfig) -> list[NDArray[np.uint32]]:
    """Return the rows that beats make; one without an end is left out."""
    lanes = config.bus_bytes // 4
    facts = beats[:, lanes].astype(np.int64)
    byte_bits = config.bus_bytes.bit_length()
    counts, ends = facts & ((1 << byte_bits) - 1), facts >> byte_bits & 1
    rows, first = [], 0
    for end in np.flatnonzero(ends):
        numbers = beats[first : end + 1, :lanes].reshape(-1)
        left = (int(end) - first) * config.bus_bytes + int(counts[end])
        rows.append(numbers[: left // 4])
        first = int(end) + 1
    return rows
