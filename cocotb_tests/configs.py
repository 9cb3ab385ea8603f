"""The access units that the benches run on."""

from __future__ import annotations

from ember_hw.config import PRESETS, AcceleratorConfig

_TINY = PRESETS["tiny"].with_changes(input_queue=1, request_entries=2)

#: `tiny`: 64 bits, as little of everything as possible. `ports`: two memory ports at 128 bits, rows
#: and index lines on both, whose turns change within rows. `apart`: AXI3, and a wider port for the
#: index lines alone. All have an input queue.
CONFIGS: dict[str, AcceleratorConfig] = {
    "tiny": _TINY,
    "ports": _TINY.with_changes(
        name="ports",
        data_width_bits=128,
        outstanding_reads=16,
        reorder_buffer_beats=64,
        memory_ports=2,
        port_interleave_bytes=64,
        request_entries=3,
    ),
    "apart": _TINY.with_changes(
        name="apart",
        memory_protocol="axi3",
        index_port_bits=128,
    ),
}
