"""The access units that random programs run on: small and odd ones, where buffers fill up."""

from __future__ import annotations

from ember_hw.config import PRESETS, AcceleratorConfig

_CONFIGS = (
    PRESETS["tiny"].with_changes(name="tiny", input_queue=1, request_entries=2),
    AcceleratorConfig(
        name="odd",
        data_width_bits=128,
        address_width_bits=37,
        traversal_units=4,
        streams_per_unit=3,
        row_entries=3,
        exports=7,
        bundle_scalars=5,
        outstanding_reads=5,
        max_burst_beats=3,
        reorder_buffer_beats=32,
        token_entries=19,
        lines_per_stream=4,
        bundle_entries=32,
        descriptor_entries=8,
        request_entries=3,
        memory_protocol="axi3",
        input_queue=1,
    ),
    AcceleratorConfig(
        name="one",
        data_width_bits=64,
        address_width_bits=32,
        traversal_units=1,
        streams_per_unit=1,
        row_entries=1,
        exports=2,
        bundle_scalars=1,
        outstanding_reads=2,
        max_burst_beats=1,
        reorder_buffer_beats=16,
        token_entries=16,
        lines_per_stream=2,
        bundle_entries=16,
        descriptor_entries=8,
        request_entries=1,
    ),
    AcceleratorConfig(
        name="ports",
        data_width_bits=128,
        traversal_units=2,
        row_entries=2,
        outstanding_reads=16,
        max_burst_beats=16,
        reorder_buffer_beats=64,
        memory_ports=2,
        port_interleave_bytes=256,
        input_queue=1,
    ),
    AcceleratorConfig(
        name="eight",
        data_width_bits=256,
        address_width_bits=56,
        traversal_units=2,
        streams_per_unit=4,
        row_entries=8,
        exports=16,
        bundle_scalars=8,
        outstanding_reads=24,
        max_burst_beats=2,
        reorder_buffer_beats=32,
        token_entries=32,
        lines_per_stream=8,
        bundle_entries=16,
        request_entries=16,
        memory_ports=8,
        port_interleave_bytes=64,
        index_port_bits=512,
    ),
    AcceleratorConfig(
        name="wide",
        outstanding_reads=32,
        max_burst_beats=16,
        reorder_buffer_beats=64,
        index_port_bits=128,
        input_queue=1,
    ),
)

#: Units that run alone, by name.
CONFIGS: dict[str, AcceleratorConfig] = {config.name: config for config in _CONFIGS}

_UNIT = PRESETS["tiny"].with_changes(traversal_units=2, input_queue=1, request_entries=2)

#: Several units that share all channels, by name: what each is, and how many they are.
CLUSTERS: dict[str, tuple[AcceleratorConfig, int]] = {
    "pair": (_UNIT.with_changes(name="pair"), 2),
    "trio": (
        _UNIT.with_changes(
            name="trio",
            data_width_bits=128,
            outstanding_reads=8,
            memory_ports=2,
            port_interleave_bytes=128,
            index_port_bits=64,
        ),
        3,
    ),
}
