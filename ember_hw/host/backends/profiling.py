"""What the Verilator model tells of a launch beyond the hardware's counters."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ember_hw.config import AcceleratorConfig
from ember_hw.host.profile import QUEUES, LaunchSample
from ember_hw.host.report import HIGH_WATER
from ember_hw.sim.memory_library import replay
from ember_hw.sim.model import VerilatorModel
from ember_hw.sim.options import Memory

#: Read bursts kept of each port, 24 bytes each; a longer trace has no bound and no reuse curve.
MOST_READS = 1 << 20


def take_sample(
    model: VerilatorModel, memory: Memory, requests_before: Sequence[int]
) -> LaunchSample:
    """Return what a model saw since its profile was cleared and its reads recorded.

    Parameters
    ----------
    model : VerilatorModel
        It records reads.
    memory : memory model
        That of each of its ports.
    requests_before : sequence of int
        What each port had been asked when its profile was cleared: so one knows whether all reads
        were kept.
    """
    seen = model.profile()
    ports = [model.reads(number) for number in range(len(model.shape.channels))]
    asked = [model.channel_counters(number).read_requests for number in range(len(ports))]
    kept = [before + len(port) for before, port in zip(requests_before, ports, strict=True)]

    def trace() -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
        reads = np.concatenate(ports)
        reads = reads[np.argsort(reads["cycle"], kind="stable")]
        return reads["address"], reads["beats"].astype(np.int64) * reads["beat_bytes"]

    def bound() -> int:
        """Return the cycles of the port that takes longest."""
        return max(
            replay(memory, port, bus_bytes=width) if len(port) else 0
            for port, (_, width, _) in zip(ports, model.shape.channels, strict=True)
        )

    return LaunchSample(
        fill_cycles=seen.fill_cycles,
        drain_cycles=seen.drain_cycles,
        execute_cycles=seen.execute_cycles,
        levels=dict(zip(QUEUES, seen.occupancy, strict=True)),
        trace=trace if kept == asked else None,
        bound=bound,
    )


def describe_queues(model: VerilatorModel, config: AcceleratorConfig) -> str:
    """Return what waits where, a line for each queue and each stream of the unit.

    Examples
    --------
    ::

        bundles        3 of 256: bundles waiting
        bundle stream  valid, not ready
        m_axi requests idle; 4 bursts outstanding
    """
    state = model.unit_state()
    lines = [
        (name.replace("_", " "), f"{level} of {getattr(config, QUEUES[name][0])}: {text}")
        for (name, (_, text)), level in zip(HIGH_WATER.items(), state.levels, strict=True)
    ]
    streams = [] if config.results == "memory" else [("row stream", state.rows)]
    if config.execute == "queues":
        streams.insert(0, ("bundle stream", state.bundles))
    lines += [(name, _stream_text(one.valid, one.ready)) for name, one in streams]
    for number, (name, _, _) in enumerate(model.shape.channels):
        port = model.channel_state(number)
        requests = _stream_text(port.requests.valid, port.requests.ready)
        beats = _stream_text(port.beats.valid, port.beats.ready)
        lines += [
            (f"{name} requests", requests),
            (f"{name} beats", f"{beats}; {port.outstanding} bursts outstanding"),
        ]
    if config.results == "memory":
        port = model.write_state()
        answers = _stream_text(port.answers.valid, port.answers.ready)
        lines += [
            ("write addresses", _stream_text(port.addresses.valid, port.addresses.ready)),
            ("write beats", _stream_text(port.beats.valid, port.beats.ready)),
            ("write answers", f"{answers}; {port.outstanding} bursts outstanding"),
        ]
    return "\n".join(f"  {name:<18}{text}" for name, text in lines)


def _stream_text(valid: bool, ready: bool) -> str:
    if valid:
        return "valid, ready" if ready else "valid, but not ready"
    return "ready, but not valid" if ready else "neither valid nor ready"
