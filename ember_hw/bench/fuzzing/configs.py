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
        name="wide",
        outstanding_reads=32,
        max_burst_beats=16,
        reorder_buffer_beats=64,
        index_port_bits=128,
        input_queue=1,
    ),
)

#: By name.
CONFIGS: dict[str, AcceleratorConfig] = {config.name: config for config in _CONFIGS}
