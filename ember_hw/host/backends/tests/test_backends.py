from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from ember_hw.host.backends import memory_model, pushes_of, sink_model
from ember_hw.host.backends.interpreter import Backend
from ember_hw.host.tests.programs import bag_program
from ember_hw.isa import Event, event_bit
from ember_hw.sim.options import CoreLikeSink, IdealMemory, IdealSink, Pushes

MEMORY_NAMES = "ideal, random, ecpix5-ddr3, ulx3s-sdram, ddr4-2400, hbm2-pc, slow-link"


def test_names_stand_for_models() -> None:
    pushes = Pushes(scalars_per_event=(1,))
    assert memory_model("ideal") == IdealMemory()
    assert sink_model("ideal")(pushes) == IdealSink()
    assert sink_model("core-like")(pushes) == CoreLikeSink(pushes=pushes)


def test_every_memory_has_its_own_name() -> None:
    for name in MEMORY_NAMES.split(", "):
        assert memory_model(name).name == name


def test_models_stand_for_themselves() -> None:
    memory, sink = IdealMemory(latency_cycles=3), IdealSink()
    assert memory_model(memory) is memory
    assert sink_model(sink)(Pushes()) is sink


@pytest.mark.parametrize(
    ("model", "given", "error", "message"),
    [
        (memory_model, "dram", ValueError, f"memory must be one of {MEMORY_NAMES}, not 'dram'"),
        (memory_model, 100, TypeError, "memory must be a name or a memory model, not int"),
        (sink_model, "core", ValueError, "sink must be one of ideal, core-like, not 'core'"),
        (sink_model, None, TypeError, "sink must be a name or a sink, not NoneType"),
    ],
)
def test_unknown_models_are_refused(
    model: Any, given: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=f"^{re.escape(message)}$"):
        model(given)


def test_interpreter_refuses_unknown_models_too() -> None:
    config = bag_program(np.zeros((1, 1), np.float32)).config
    with pytest.raises(ValueError, match=rf"^memory must be one of {MEMORY_NAMES}, not 'dram'$"):
        Backend(config, memory="dram")
    with pytest.raises(ValueError, match=r"^sink must be one of ideal, core-like, not 'core'$"):
        Backend(config, sink="core")


@pytest.mark.parametrize(("opt_level", "scalars"), [(0, 3), (1, 2), (2, 1), (3, 0)])
def test_pushes_count_the_scalars_of_each_event(opt_level: int, scalars: int) -> None:
    program = bag_program(np.zeros((4, 4), np.float32), opt_level)
    (nest,) = program.nests
    pushes = pushes_of(nest.callbacks, nest.microcode, program.config)
    level = 1 if opt_level >= 2 else 2
    bit = event_bit(Event.ITERATE, level, program.config)
    assert pushes.scalars_per_event[bit] == sum(pushes.scalars_per_event) == scalars
    assert pushes.row_event_masks == (1 << bit if opt_level else 0, 0)
