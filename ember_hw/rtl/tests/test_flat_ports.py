from __future__ import annotations

from amaranth.lib.wiring import Out

from ember_hw.rtl import axi, flat_ports
from ember_hw.rtl.tests.harness import CONFIG

FULL = CONFIG.with_changes(memory_ports=2, index_port_bits=64, input_queue=1)


def test_one_memory_port_has_no_number():
    assert flat_ports.memory_prefixes(CONFIG) == ["m_axi"]
    assert flat_ports.memory_prefixes(FULL) == ["m_axi0", "m_axi1"]


def test_names_and_directions_are_those_of_the_signature():
    members = flat_ports.flat_members("m_axi3", axi.ReadSignature(CONFIG))
    assert members["m_axi3_arvalid"].flow is Out
    assert members["m_axi3_rdata"].flow is not Out
    assert set(members) == {f"m_axi3_{name}" for name in axi.ReadSignature(CONFIG).members}


def test_a_queues_port_of_a_unit_has_its_number_before_the_signal():
    one, third = flat_ports.queue_members(FULL), flat_ports.queue_members(FULL, "2")
    assert next(iter(third)) == "m_axis_bundle2_tdata"
    assert [name.replace("2_", "_") for name in third] == list(one)


def test_bundles_and_rows_of_a_reduce_unit_stay_inside():
    members = flat_ports.queue_members(CONFIG.with_changes(execute="reduce"), "1")
    signals = ("tdata", "tkeep", "tlast", "tvalid", "tready")
    assert list(members) == [f"m_axis_result1_{signal}" for signal in signals]
    assert members["m_axis_result1_tready"].flow is not Out


def test_results_in_memory_leave_by_a_port_of_writes():
    config = CONFIG.with_changes(execute="reduce", results="memory")
    assert flat_ports.queue_members(config) == {}
    members = flat_ports.memory_members(config)
    assert members["m_axi_result_awaddr"].flow is Out
    assert members["m_axi_result_bvalid"].flow is not Out
    assert {"m_axi_result_awqos"} - set(members) == set()
    axi3 = flat_ports.memory_members(config.with_changes(memory_protocol="axi3"))
    assert set(axi3) - set(members) == {"m_axi_result_wid"}
