"""Every arithmetic block beside the others, verilated, as a function of arrays."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Mapping

import numpy as np
from amaranth.back import verilog
from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from numpy.typing import NDArray

from ember_hw.rtl.execute.float_combine import Combine, FloatCombine
from ember_hw.rtl.execute.float_convert import FloatFromInteger, FloatNarrow, FloatWiden
from ember_hw.rtl.execute.float_format import BFLOAT16, FLOAT16, FloatFormat
from ember_hw.rtl.execute.float_multiply import FloatMultiply
from ember_hw.sim.verilated import verilated

COMBINES = {
    "add": Combine.SUM,
    "maximum": Combine.MAXIMUM,
    "take_a": Combine.TAKE_A,
    "take_b": Combine.TAKE_B,
}


def blocks() -> dict[str, tuple[wiring.Component, tuple[str, ...], str]]:
    """Return each block with its inputs, which take the low bits of a and b, and its output."""

    def narrow(target: FloatFormat):
        return FloatNarrow(target=target), ("number",), "narrow"

    def widen(source: FloatFormat):
        return FloatWiden(source=source), ("number",), "wide"

    return {
        **{name: (FloatCombine(), ("a", "b"), "result") for name in COMBINES},
        "multiply": (FloatMultiply(), ("a", "b"), "product"),
        "to_fp16": narrow(FLOAT16),
        "to_bf16": narrow(BFLOAT16),
        "from_fp16": widen(FLOAT16),
        "from_bf16": widen(BFLOAT16),
        "from_int8": (FloatFromInteger(), ("integer",), "number"),
    }


class Pipelines(wiring.Component):
    """Gives a and b to every block."""

    def __init__(self) -> None:
        self.blocks = blocks()
        super().__init__({"a": In(32), "b": In(32), **{name: Out(32) for name in self.blocks}})

    def elaborate(self, platform):
        m = Module()
        for name, (block, inputs, output) in self.blocks.items():
            m.submodules[name] = block
            if name in COMBINES:
                m.d.comb += block.operation.eq(COMBINES[name])
            for source, port in zip((self.a, self.b), inputs, strict=False):
                target = getattr(block, port)
                m.d.comb += target.eq(source[: len(target)])
            m.d.comb += getattr(self, name).eq(getattr(block, output))
        return m


_HARNESS = """
#include "Vtop.h"
#include <cstddef>
#include <cstdint>
extern "C" void run(const uint32_t* a, const uint32_t* b, uint32_t* out, size_t cycles) {
    Vtop top;
    top.rst = 0;
    for (size_t i = 0; i < cycles; ++i) {
        top.a = a[i];
        top.b = b[i];
        top.clk = 0;
        top.eval();
        STORE
        top.clk = 1;
        top.eval();
    }
}
"""


def _library(text: str, outputs: Iterable[str]) -> ctypes.CDLL:
    stores = "".join(
        f"out[{number} * cycles + i] = top.{name}; " for number, name in enumerate(outputs)
    )
    return verilated("pipelines", text, _HARNESS.replace("STORE", stores), optimise="-O2")


def run_pipelines(a: NDArray[np.uint32], b: NDArray[np.uint32]) -> Mapping[str, NDArray[np.uint32]]:
    """Return what each block makes of a[i], b[i], uint32 (N,) by its name."""
    top = Pipelines()
    known = top.blocks
    library = _library(verilog.convert(top, name="top"), known)
    slack = max(block.cycles for block, _, _ in known.values())
    cycles = a.size + slack
    padded = [np.concatenate([x, np.zeros(slack, np.uint32)]) for x in (a, b)]
    out = np.empty((len(known), cycles), np.uint32)
    pointers = [x.ctypes.data_as(ctypes.c_void_p) for x in (*padded, out)]
    library.run(*pointers, ctypes.c_size_t(cycles))
    return {
        name: out[number, block.cycles : block.cycles + a.size]
        for number, (name, (block, _, _)) in enumerate(known.items())
    }
