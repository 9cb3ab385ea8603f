"""Configs check themselves, hash, and survive JSON."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ember_hw.config import EXECUTES, MEMORY_PROTOCOLS, PRESETS, RESULTS, AcceleratorConfig

RANGES = {
    "address_width_bits": (32, 56),
    "traversal_units": (1, 4),
    "streams_per_unit": (1, 8),
    "row_entries": (1, 8),
    "exports": (2, 16),
    "bundle_scalars": (1, 8),
    "outstanding_reads": (2, 512),
    "max_burst_beats": (1, 256),
    "reorder_buffer_beats": (16, 4096),
    "token_entries": (16, 1024),
    "lines_per_stream": (2, 256),
    "bundle_entries": (16, 4096),
    "descriptor_entries": (8, 64),
    "request_entries": (1, 16),
    "memory_ports": (1, 8),
    "port_interleave_bytes": (64, 1 << 40),
    "index_port_bits": (0, 512),
    "input_queue": (0, 1),
}


@st.composite
def configs(draw: st.DrawFn) -> AcceleratorConfig:
    """Any legal config."""

    def power_of_two(least: int, most: int) -> int:
        return 1 << draw(st.integers(least.bit_length() - 1, most.bit_length() - 1))

    data_width_bits = draw(st.sampled_from((64, 128, 256, 512)))
    values: dict[str, Any] = {
        name: draw(st.integers(*RANGES[name]))
        for name in (
            "address_width_bits",
            "traversal_units",
            "streams_per_unit",
            "row_entries",
            "exports",
            "outstanding_reads",
            "token_entries",
            "request_entries",
            "input_queue",
        )
    }
    values["bundle_scalars"] = draw(st.integers(1, min(8, values["exports"])))
    values["index_port_bits"] = draw(st.sampled_from((0, 64, 128, 256, 512)))
    values["memory_protocol"] = draw(st.sampled_from(MEMORY_PROTOCOLS))
    values["execute"] = draw(st.sampled_from(EXECUTES))
    if values["execute"] == "reduce":
        values["results"] = draw(st.sampled_from(RESULTS))
        values["int8_rows"] = draw(st.integers(0, 1))
        times = (0, 1, 2, 4) if values["int8_rows"] else (0, 1, 2)
        values["reduce_lanes"] = data_width_bits // 32 * draw(st.sampled_from(times))
        if values["reduce_lanes"] in (0, data_width_bits // 32):
            values["reduce_dot"] = draw(st.integers(0, 1))
    for name in (
        "reorder_buffer_beats",
        "lines_per_stream",
        "bundle_entries",
        "descriptor_entries",
        "memory_ports",
        "port_interleave_bytes",
    ):
        values[name] = power_of_two(*RANGES[name])
    most_beats = 4096 // (data_width_bits // 8)
    most_beats = min(most_beats, 16) if values["memory_protocol"] == "axi3" else most_beats
    longest = min(256, values["reorder_buffer_beats"] // 2, most_beats)
    values["max_burst_beats"] = draw(st.integers(1, longest))
    return AcceleratorConfig(name=draw(st.text()), data_width_bits=data_width_bits, **values)


def message(**changes: Any) -> str:
    with pytest.raises(ValueError, match=r"must be") as raised:
        AcceleratorConfig(**changes)
    return str(raised.value)


@pytest.mark.parametrize("value", [0, 32, 96, 1024, "512"])
def test_data_width_is_one_of_four(value: object) -> None:
    assert message(data_width_bits=value) == (
        f"data_width_bits must be one of 64, 128, 256, 512, not {value!r}"
    )


@pytest.mark.parametrize(("parameter", "least", "most"), [(n, *r) for n, r in RANGES.items()])
def test_parameter_stays_in_its_range(parameter: str, least: int, most: int) -> None:
    for value in (least - 1, most + 1, 2.5, "4", True, None):
        assert message(**{parameter: value}) == (
            f"{parameter} must be an integer from {least} to {most}, not {value!r}"
        )


def test_ranges_reach_their_ends() -> None:
    least: dict[str, Any] = {name: bounds[0] for name, bounds in RANGES.items()}
    most: dict[str, Any] = {name: bounds[1] for name, bounds in RANGES.items()}
    assert AcceleratorConfig(data_width_bits=512, **least).exports == 2
    assert AcceleratorConfig(data_width_bits=128, **most).exports == 16


@pytest.mark.parametrize(
    ("parameter", "value"),
    [
        ("reorder_buffer_beats", 500),
        ("lines_per_stream", 12),
        ("bundle_entries", 100),
        ("descriptor_entries", 24),
        ("memory_ports", 3),
        ("port_interleave_bytes", 96),
    ],
)
def test_buffer_is_a_power_of_two(parameter: str, value: int) -> None:
    expected = f"{parameter} must be a power of two, not {value}"
    assert message(**{parameter: value}) == expected


@pytest.mark.parametrize("value", [1, 32, 96, 511])
def test_index_port_is_as_wide_as_a_bus_or_not_there(value: int) -> None:
    assert message(index_port_bits=value) == (
        f"index_port_bits must be one of 0, 64, 128, 256, 512, not {value}"
    )


@pytest.mark.parametrize("value", ["axi5", "AXI4", "", 4, None])
def test_memory_protocol_is_one_of_two(value: object) -> None:
    assert message(memory_protocol=value) == (
        f"memory_protocol must be one of axi4, axi3, not {value!r}"
    )


@pytest.mark.parametrize("value", ["host", "Reduce", "", 1, None])
def test_execute_is_one_of_two(value: object) -> None:
    assert message(execute=value) == f"execute must be one of queues, reduce, not {value!r}"


@pytest.mark.parametrize("value", ["queue", "Memory", "", 1, None])
def test_results_go_to_one_of_two(value: object) -> None:
    assert message(execute="reduce", results=value) == (
        f"results must be one of stream, memory, not {value!r}"
    )


def test_results_are_those_of_a_reduce_unit() -> None:
    assert message(results="memory") == (
        "results must be stream without a reduce unit (execute is 'queues'), not 'memory'"
    )


def test_lanes_are_those_of_a_beat_of_some_format() -> None:
    assert message(execute="reduce", reduce_lanes=3, data_width_bits=128) == (
        "reduce_lanes must be one of 0, 4, 8, 16 on a 128-bit bus, not 3"
    )
    assert message(execute="reduce", reduce_lanes=16, data_width_bits=128) == (
        "reduce_lanes must be at most 8 on a 128-bit bus without int8_rows, not 16: "
        "only of codes a beat holds more"
    )
    assert message(execute="reduce", reduce_lanes=32, reduce_dot=1) == (
        "reduce_dot must be 0 with reduce_lanes other than 16 on a 512-bit bus, not 1: "
        "sums across rows take a beat at a time"
    )
    config = AcceleratorConfig(execute="reduce", data_width_bits=64)
    assert (config.beat_numbers, config.lanes) == (2, 2)
    assert config.with_changes(reduce_lanes=8, int8_rows=1).lanes == 8


@pytest.mark.parametrize(("parameter", "value"), [("reduce_lanes", 16), ("int8_rows", 1)])
def test_lanes_and_codes_are_those_of_a_reduce_unit(parameter: str, value: int) -> None:
    assert message(**{parameter: value}) == (
        f"{parameter} must be 0 without a reduce unit (execute is 'queues'), not {value}"
    )


def test_sums_across_rows_are_those_of_a_reduce_unit() -> None:
    assert message(reduce_dot=1) == (
        "reduce_dot must be 0 without a reduce unit (execute is 'queues'), not 1"
    )
    for value in (-1, 2, True):
        assert message(execute="reduce", reduce_dot=value) == (
            f"reduce_dot must be an integer from 0 to 1, not {value!r}"
        )


def test_bursts_of_axi3_are_short() -> None:
    assert message(memory_protocol="axi3", max_burst_beats=17) == (
        "max_burst_beats must be at most 16 with AXI3, not 17"
    )
    assert AcceleratorConfig(memory_protocol="axi3", max_burst_beats=16).max_burst_beats == 16


def test_scalars_are_exports() -> None:
    assert message(exports=3, bundle_scalars=4) == (
        "bundle_scalars must be at most exports (3), not 4"
    )
    assert AcceleratorConfig(exports=3, bundle_scalars=3).bundle_scalars == 3


def test_reorder_buffer_holds_two_bursts() -> None:
    assert message(max_burst_beats=64, reorder_buffer_beats=64) == (
        "reorder_buffer_beats must be at least twice max_burst_beats (128), not 64: "
        "a shorter buffer can deadlock"
    )


def test_burst_stays_within_a_page() -> None:
    assert message(data_width_bits=256, max_burst_beats=129) == (
        "max_burst_beats must be at most 128 on a 256-bit bus (a burst stays within 4096 bytes), "
        "not 129"
    )


def test_derived_sizes() -> None:
    config = AcceleratorConfig(
        data_width_bits=128, traversal_units=2, streams_per_unit=3, exports=5, bundle_scalars=3
    )
    assert (config.bus_bytes, config.line_beats, config.slots) == (16, 4, 9)
    assert (config.events, config.bundle_bits, config.bundle_bytes) == (6, 102, 13)


@pytest.mark.parametrize(
    ("data", "index", "expected"),
    [
        (64, 0, (64, 8, 8)),
        (128, 0, (128, 4, 4)),
        (512, 0, (128, 1, 4)),
        (512, 64, (64, 8, 8)),
        (64, 512, (512, 1, 1)),
        (256, 256, (256, 2, 2)),
    ],
)
def test_lines_come_in_words(data: int, index: int, expected: tuple[int, int, int]) -> None:
    config = AcceleratorConfig(data_width_bits=data, index_port_bits=index)
    assert (config.index_bits, config.line_beats, config.line_words) == expected


CHANGES: dict[str, int | str] = {
    "data_width_bits": 256,
    "address_width_bits": 48,
    "traversal_units": 2,
    "streams_per_unit": 3,
    "row_entries": 3,
    "exports": 5,
    "bundle_scalars": 2,
    "outstanding_reads": 65,
    "max_burst_beats": 32,
    "reorder_buffer_beats": 1024,
    "token_entries": 129,
    "lines_per_stream": 32,
    "bundle_entries": 512,
    "descriptor_entries": 32,
    "request_entries": 4,
    "memory_ports": 2,
    "port_interleave_bytes": 64,
    "index_port_bits": 64,
    "memory_protocol": "axi3",
    "input_queue": 1,
    "execute": "queues",
    "reduce_lanes": 32,
    "int8_rows": 1,
    "reduce_dot": 1,
    "results": "memory",
}


def test_hash_depends_on_every_parameter() -> None:
    config = AcceleratorConfig(max_burst_beats=16, execute="reduce")
    assert {"name", *CHANGES} == {field.name for field in dataclasses.fields(config)}
    hashes = {config.with_changes(**{name: value}).hash() for name, value in CHANGES.items()}
    assert len(hashes - {config.hash()}) == len(CHANGES)


def test_hash_leaves_out_lanes_that_are_there_anyway() -> None:
    config = AcceleratorConfig(data_width_bits=128, execute="reduce")
    assert config.with_changes(reduce_lanes=4).hash() == config.hash()


def test_hash_leaves_out_the_name() -> None:
    config = AcceleratorConfig()
    assert config.with_changes(name="other").hash() == config.hash()


def test_hash_is_the_same_everywhere() -> None:
    # It stands in hardware and in program files.
    assert {name: f"{config.hash():#010x}" for name, config in PRESETS.items()} == {
        "default": "0x7d3967f7",
        "small": "0x9c8fe8ae",
        "tiny": "0xb5dc48f8",
        "tables": "0x059020f6",
        "large": "0xf92105c5",
    }


@given(configs())
def test_dict_round_trip(config: AcceleratorConfig) -> None:
    again = AcceleratorConfig.from_dict(json.loads(json.dumps(config.to_dict())))
    assert again == config
    assert again.hash() == config.hash()
    assert 0 <= config.hash() < 1 << 32


def test_unknown_key_is_refused() -> None:
    with pytest.raises(ValueError, match=r"config key") as raised:
        AcceleratorConfig.from_dict({"units": 3})
    legal = ", ".join(sorted(field.name for field in dataclasses.fields(AcceleratorConfig)))
    assert str(raised.value) == f"config key must be one of {legal}, not 'units'"


def test_presets_bear_their_names() -> None:
    for name in PRESETS:
        assert AcceleratorConfig.preset(name).name == name


def test_unknown_preset_is_refused() -> None:
    with pytest.raises(ValueError, match=r"preset") as raised:
        AcceleratorConfig.preset("huge")
    assert (
        str(raised.value) == "preset must be one of default, small, tiny, tables, large, not 'huge'"
    )


def test_changes_are_checked() -> None:
    with pytest.raises(ValueError, match=r"exports") as raised:
        AcceleratorConfig().with_changes(exports=1)
    assert str(raised.value) == "exports must be an integer from 2 to 16, not 1"


def test_config_is_frozen() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        AcceleratorConfig().exports = 3  # type: ignore[misc]
