"""What can run a launch: one module for each kind of access unit, with a class `Backend`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, get_args

from ember_hw.compiler.program import Callback
from ember_hw.config import AcceleratorConfig
from ember_hw.isa import Microcode, event_bit
from ember_hw.sim.options import (
    MEMORIES,
    CoreLikeSink,
    IdealSink,
    Memory,
    Pushes,
    Sink,
    StallingSink,
)

#: What makes the sink of a launch, by name.
SINKS: dict[str, Callable[[Pushes], Sink]] = {
    "ideal": lambda pushes: IdealSink(),
    "core-like": lambda pushes: CoreLikeSink(pushes=pushes),
}


def memory_model(memory: Any) -> Memory:
    """Return the memory model of a name, or the model given.

    Raises
    ------
    ValueError
        There is no model of that name.
    TypeError
        `memory` is neither a name nor a model.
    """
    if isinstance(memory, str):
        if memory not in MEMORIES:
            raise ValueError(f"memory must be one of {', '.join(MEMORIES)}, not {memory!r}")
        return MEMORIES[memory]
    if not isinstance(memory, get_args(Memory)):
        raise TypeError(f"memory must be a name or a memory model, not {type(memory).__name__}")
    return memory


def sink_model(sink: Any) -> Callable[[Pushes], Sink]:
    """Return what makes the sink of a launch from its pushes.

    Raises
    ------
    ValueError
        There is no sink of that name.
    TypeError
        `sink` is neither a name nor a sink.
    """
    if isinstance(sink, str):
        if sink not in SINKS:
            raise ValueError(f"sink must be one of {', '.join(SINKS)}, not {sink!r}")
        return SINKS[sink]
    if not isinstance(sink, IdealSink | CoreLikeSink | StallingSink):
        raise TypeError(f"sink must be a name or a sink, not {type(sink).__name__}")
    return lambda pushes: sink


def pushes_of(
    callbacks: Sequence[Callback], microcode: Microcode, config: AcceleratorConfig
) -> Pushes:
    """Return what a launch pushes with which event; with a reduce unit a result is event 0."""
    if config.execute == "reduce":
        return Pushes(scalars_per_event=(0,), row_event_masks=(1,))
    scalars = [0] * config.events
    for callback in callbacks:
        bit = event_bit(callback.event, callback.level, config)
        scalars[bit] += sum(operand.kind == "scalar" for operand in callback.operands)
    rows = [microcode.get(f"row{r}", "events") for r in range(config.row_entries)]
    return Pushes(scalars_per_event=tuple(scalars), row_event_masks=tuple(rows))
