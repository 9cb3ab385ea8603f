from __future__ import annotations

import math
import time

import numpy as np
import pytest

from ember_hw.compiler.interpreters import Counts, interpret
from ember_hw.compiler.interpreters.tests import bag_texts
from ember_hw.compiler.interpreters.tests.evaluate import run, whole
from ember_hw.errors import UnsupportedError


def test_results_come_back_in_order_with_no_queue_traffic() -> None:
    text = "func.func @f(%a: index, %b: f32) -> (f32, index) { func.return %b, %a : f32, index }"
    result = run(text, 3, 0.5)
    assert result.results == (np.float32(0.5), 3)
    assert result.counts == Counts()


def test_function_that_is_not_there_is_refused() -> None:
    message = "function must be one that the module defines (eb_sum), not 'eb_mean'"
    with pytest.raises(ValueError, match=whole(message)):
        interpret(bag_texts.parse(bag_texts.SCF), "eb_mean", [])


def test_declaration_is_refused() -> None:
    with pytest.raises(
        ValueError, match=whole("function must be one that the module defines (none), not 'f'")
    ):
        run("func.func private @f()")


def test_wrong_number_of_arguments_is_refused() -> None:
    with pytest.raises(ValueError, match=whole("number of arguments of 'eb_sum' must be 5, not 0")):
        interpret(bag_texts.parse(bag_texts.SCF), "eb_sum", [])


def test_op_without_a_meaning_is_refused() -> None:
    message = "op must be one that the interpreters execute, not 'math.erf'"
    with pytest.raises(UnsupportedError, match=whole(message)) as caught:
        run("func.func @f(%a: f32) { %r = math.erf %a : f32 func.return }", 1.0)
    assert caught.value.node == "math.erf"


def test_overflow_and_invalid_are_values_not_warnings() -> None:
    text = """
    func.func @f(%a: f32) -> (f32, f32) {
      %i = arith.mulf %a, %a : f32
      %n = arith.subf %i, %i : f32
      func.return %i, %n : f32, f32
    }"""
    infinite, nan = run(text, 1e30).results
    assert infinite == math.inf
    assert math.isnan(nan)


def test_inner_op_takes_about_ten_microseconds() -> None:
    module = bag_texts.parse(bag_texts.SCF)
    table, out = np.ones((4, 64), np.float32), np.zeros((1, 64), np.float32)
    arguments = [np.array([0, 40]), np.zeros(40, np.int64), table, out, 1]

    start = time.process_time()
    interpret(module, "eb_sum", arguments)
    elapsed = time.process_time() - start

    # Four ops an element; a generous bound, for a machine that is busy.
    assert elapsed / (40 * 64 * 4) < 50e-6
