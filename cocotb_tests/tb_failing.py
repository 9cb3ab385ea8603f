"""Tests that fail, each in its way, so that `test_runner` can hold how the runner reports it."""

from __future__ import annotations

import os
from typing import Any

import cocotb
from cocotb.triggers import RisingEdge

from cocotb_tests.drivers import Bench, bench_test


@bench_test
async def test_that_passes(dut: Any) -> None:
    await Bench(dut).reset()


@bench_test
async def test_that_asserts(dut: Any) -> None:
    await Bench(dut).reset()
    assert dut.irq.value == 1, "an interrupt before any program"


@cocotb.test(timeout_time=2, timeout_unit="us")
async def test_that_hangs(dut: Any) -> None:
    await Bench(dut).reset()
    await RisingEdge(dut.irq)


@bench_test
async def test_whose_monitor_objects(dut: Any) -> None:
    """The bench answers a read that nobody asked for."""
    bench = Bench(dut)
    await bench.reset()
    dut.m_axi_rvalid.value = 1
    await RisingEdge(dut.irq)


@bench_test
async def test_that_ends_the_simulation(dut: Any) -> None:
    await Bench(dut).reset()
    os._exit(3)
