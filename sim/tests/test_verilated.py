"""A block and its harness become a library, and what fails says why."""

from __future__ import annotations

import re

import pytest

from ember_hw.errors import ToolError
from ember_hw.sim.verilated import verilated

pytestmark = pytest.mark.verilator

_TOP = "module top(input [7:0] a, output [7:0] b); assign b = a + STEP; endmodule"
_HARNESS = """
#include "Vtop.h"
#include "offset.h"
extern "C" int next(int a) { Vtop top; top.a = a; top.eval(); return top.b + kOffset; }
"""


def test_library_runs_the_block_and_reads_its_headers():
    text = _TOP.replace("STEP", "8'd1")
    headers = {"offset.h": "constexpr int kOffset = 100;"}
    library = verilated("test", text, _HARNESS, optimise="-O0", headers=headers)
    assert library.next(6) == 107


def test_error_is_what_the_tool_said():
    message = "verilator must end with status 0, not 1:\n%Error: "
    with pytest.raises(ToolError, match=f"^{re.escape(message)}"):
        verilated("test", "module top(; endmodule", _HARNESS, optimise="-O0")


def test_error_of_the_compiler_is_what_it_said():
    message = r"^c\+\+ must end with status 0, not 1:\nharness.cpp:1:10: fatal error: nothing.h"
    with pytest.raises(ToolError, match=message):
        verilated("test", _TOP.replace("STEP", "8'd1"), "#include <nothing.h>", optimise="-O0")
