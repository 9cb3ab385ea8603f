from __future__ import annotations

import gc

from ember_hw.compiler.interpreters import microcode_plan
from ember_hw.compiler.interpreters.microcode_plan import plan_of
from ember_hw.config import AcceleratorConfig
from ember_hw.isa import BoundSource, Event, Microcode, StreamSource, event_mask

CONFIG = AcceleratorConfig(exports=6, bundle_scalars=1, input_queue=1)


def microcode() -> Microcode:
    """Return two units: the inner one loops to export 2, a row reads export 4."""
    unit = {"enable": 1, "step": 1}
    return Microcode(
        CONFIG,
        {
            "unit0": {**unit, "upper_immediate": 3, "export3": 2},
            "unit0.stream1": {"enable": 1, "source": StreamSource.QUEUE},
            "unit1": {
                **unit,
                "upper_source": BoundSource.SLOT,
                "upper_export": 2,
                "export4": CONFIG.streams_per_unit + 2,
                "alu_b_slot": 1 + CONFIG.streams_per_unit + 3,
            },
            "row0": {"events": event_mask([(Event.ITERATE, 1)], CONFIG), "index_export": 4},
        },
    )


def test_values_that_nothing_reads_are_left_out() -> None:
    outer, inner = plan_of(microcode())
    # A bundle's scalar, the bound, what the ALU takes; export 4 is the inner unit's own.
    assert inner.inherited == {0, 2, 3}
    assert inner.computes
    assert outer.inherited == {0, 2}  # export 3 is its own
    assert not outer.computes


def test_streams_of_the_input_queue_are_known() -> None:
    outer, inner = plan_of(microcode())
    assert (outer.fed, inner.fed) == ((1,), ())


def test_events_of_outer_levels_ride_on_the_first_and_the_last_token() -> None:
    outer, inner = plan_of(microcode())
    begin, iterate, end = outer.own
    assert (outer.rides_first, outer.rides_last) == (0, 0)
    assert (inner.rides_first, inner.rides_last) == (begin | iterate, end)


def test_plan_lives_as_long_as_its_microcode() -> None:
    plans = microcode_plan._plans  # pyright: ignore[reportPrivateUsage]
    program = microcode()
    place = id(program)
    plan = plan_of(program)
    assert plan_of(program) is plan
    assert plans[place] is plan
    del program
    gc.collect()
    # Another microcode may lie there by now.
    assert plans.get(place) is not plan
