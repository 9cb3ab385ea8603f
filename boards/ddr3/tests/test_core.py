"""The core on a board: ports, pads and registers with the host's initialisation and a CPU's."""

from __future__ import annotations

import re
from dataclasses import replace
from types import SimpleNamespace

import pytest
from amaranth.back import rtlil
from amaranth.hdl import Const, IOPort, Module

from ember_hw.boards.ddr3 import core as core_module
from ember_hw.boards.ddr3.chip import CHIPS
from ember_hw.boards.ddr3.core import DdrCore
from ember_hw.boards.ddr3.generate import Order
from ember_hw.boards.ddr3.litedram_script import MODULE
from ember_hw.boards.ddr3.memory import DdrMemory
from ember_hw.boards.ddr3.tests.memory_setup import CONFIG
from ember_hw.rtl.tests.harness import refuses

CHIP = CHIPS["ecpix5"]
ORDER = Order(kind="core", chip=CHIP, ports=2, clock_mhz=75.0)


def _pads() -> SimpleNamespace:
    single = {name: SimpleNamespace(io=IOPort(1, name=name)) for name in ("a", "ba", "dq", "rst")}
    for name in ("ras", "cas", "we", "clk_en", "odt", "dm"):
        single[name] = SimpleNamespace(io=IOPort(1, name=name))
    pairs = {name: SimpleNamespace(p=IOPort(1, name=name)) for name in ("clk", "dqs")}
    return SimpleNamespace(**single, **pairs)


def _connected(order: Order, monkeypatch: pytest.MonkeyPatch) -> tuple[set[str], dict[str, str]]:
    """Return the ports of the core that are connected, and the files that the platform got."""
    files: dict[str, str] = {}
    platform = SimpleNamespace(add_file=files.__setitem__)
    monkeypatch.setattr(core_module, "generate", lambda order, needed_for: {"core.v": order.kind})
    m = Module()
    m.submodules.memory = memory = DdrMemory(chip=CHIP, ports=order.ports, config=CONFIG)
    m.submodules.core = core = DdrCore(
        order=order, memory=memory, clock=Const(0), reset=Const(0), pads=_pads()
    )
    m.domains += core.domain
    text = rtlil.convert(m, platform=platform, ports=[], emit_src=False)
    cell = text[text.index(f"cell \\{MODULE}") :]
    return set(re.findall(r"connect \\(\S+)", cell[: cell.index("\n  end\n")])), files


def test_host_has_all_registers(monkeypatch: pytest.MonkeyPatch):
    connected, files = _connected(ORDER, monkeypatch)
    assert files == {"core.v": "core"}
    assert {"wb_ctrl_adr", "wb_ctrl_ack", "ddram_reset_n", "ddram_dqs_p"} <= connected
    assert {"user_port_0_rdata_data", "user_port_1_cmd_addr"} <= connected
    assert not {name for name in connected if name.startswith("uart")}
    assert "ddram_cs_n" not in connected  # the board ties it


def test_with_a_cpu_the_host_reads_how_it_ended(monkeypatch: pytest.MonkeyPatch):
    connected, _ = _connected(replace(ORDER, cpu="vexriscv"), monkeypatch)
    assert not {name for name in connected if name.startswith("wb_ctrl")}
    assert {"uart_tx_ready", "uart_rx_valid", "uart_rx_data", "init_done"} <= connected


@pytest.mark.parametrize(
    ("changes", "found"),
    [({"ports": 4}, "a core with 4"), ({"kind": "controller"}, "a controller with 2")],
)
def test_order_that_does_not_fit_the_memory_is_refused(changes, found):
    memory = DdrMemory(chip=CHIP, ports=2, config=CONFIG)
    memory._MustUse__used = True
    with refuses(f"order must be for a core with 2 ports, not for {found}"):
        DdrCore(
            order=replace(ORDER, **changes),
            memory=memory,
            clock=Const(0),
            reset=Const(0),
            pads=_pads(),
        )
