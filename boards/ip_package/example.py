"""An EmbeddingBag for the packaged unit: microcode and memory, as C and as files.

The rows' bits are summed as integers, which needs no floating point on the core.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

import ember_hw
from ember_hw.config import AcceleratorConfig
from ember_hw.host.bindings import binding_of
from ember_hw.host.launch import LoadedProgram
from ember_hw.isa import Event, event_bit
from ember_hw.sim.softcore.run import Marker

ROWS, COLUMNS = 256, 32
BAGS, MOST_LOOKUPS = 16, 8
SEED = 0
#: Of the memory beside the core.
LATENCY_CYCLES, LIMIT_CYCLES = 30, 2_000_000
#: What ends main.c, which has the same numbers.
_LAST = (Marker.PASSED, Marker.FAILED)


@dataclass(frozen=True)
class Example:
    """Files of an example.

    Attributes
    ----------
    program_header : str
        `program.h`: microcode, arguments, where the arrays lie, which events bring what.
    plan : str
        What `softcore` is told; paths are relative to its folder.
    memories : dict of str to bytes
        Contents of memory by file name.
    """

    program_header: str
    plan: str
    memories: dict[str, bytes]


def is_simulated(config: AcceleratorConfig) -> bool:
    """Whether `softcore_top.v` has what the unit's ports must be connected to."""
    return (
        config.memory_ports == 1
        and config.memory_protocol == "axi4"
        and config.execute == "queues"
        and not config.index_port_bits
        and not config.input_queue
        and config.traversal_units >= 2
    )


def make_example(config: AcceleratorConfig) -> Example:
    """Compile an EmbeddingBag and bind it to seeded lookups, some bags empty.

    Parameters
    ----------
    config : AcceleratorConfig
        One for which `is_simulated`.
    """
    import torch

    random = np.random.default_rng(SEED)
    lengths = random.integers(0, MOST_LOOKUPS + 1, BAGS)
    lengths[0] = 0
    offsets = np.concatenate(([0], np.cumsum(lengths)[:-1])).astype(np.int32)
    indices = random.integers(0, ROWS, int(lengths.sum())).astype(np.int32)
    bag = torch.nn.EmbeddingBag(ROWS, COLUMNS, mode="sum")
    bag.weight.data = torch.from_numpy(random.standard_normal((ROWS, COLUMNS), np.float32))
    inputs = (torch.from_numpy(indices), torch.from_numpy(offsets))
    program = ember_hw.compile(bag, inputs, config=config, opt_level=3)
    loaded = LoadedProgram(program)
    launch = loaded.prepare(binding_of(program).request(program, inputs)).launch(0)
    (table_region,) = (resident.region for resident in loaded.tables.values())
    events = {
        "ROW_EVENTS": launch.microcode.get("row0", "events"),
        "BAG_EVENTS": 1 << event_bit(Event.END, 1, config),
        "LAST_EVENTS": 1 << event_bit(Event.END, 0, config),
    }
    sizes = {
        "BAGS": BAGS,
        "LOOKUPS": indices.size,
        "COLUMNS": COLUMNS,
        "PITCH": table_region.pitch,
    }
    lines = [
        "/* An EmbeddingBag: its microcode, and seeded lookups. */",
        "#ifndef PROGRAM_H",
        "#define PROGRAM_H",
        "",
        "#include <stdint.h>",
        "",
        *(f"#define {name} {value}u" for name, value in {**sizes, **events}.items()),
        f"#define TABLE ((const uint32_t *){table_region.base:#x})",
        "",
        _array("OFFSETS", offsets.tolist()),
        _array("INDICES", indices.tolist()),
        f"#define ARGUMENTS_COUNT {len(launch.arguments)}u",
        _array("ARGUMENTS", [value & 0xFFFF_FFFF for value in launch.arguments] or [0]),
        _array("MICROCODE", launch.microcode.encode()),
        "",
        "#endif",
    ]
    plan = [f"latency {LATENCY_CYCLES}", f"limit {LIMIT_CYCLES}", "local 0 build/firmware.bin"]
    # The core writes nothing but its local memory.
    plan += ["output 0 0 build/output.bin", *(f"last {marker.value}" for marker in _LAST)]
    memories: dict[str, bytes] = {}
    for region in launch.regions:
        memories[f"{region.symbol}.bin"] = region.data.tobytes()
        plan.append(f"map {region.base} {region.symbol}.bin")
    return Example("\n".join(lines) + "\n", "\n".join(plan) + "\n", memories)


def _array(name: str, values: list[int]) -> str:
    rows = [values[at : at + 8] for at in range(0, len(values), 8)]
    text = ",\n    ".join(", ".join(f"{value:#x}" for value in row) for row in rows)
    return f"static const uint32_t {name}[] = {{\n    {text},\n}};"
