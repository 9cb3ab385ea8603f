from __future__ import annotations

import inspect
from dataclasses import replace
from importlib import import_module

import pytest
from amaranth.back import rtlil

from ember_hw.config import AcceleratorConfig
from ember_hw.registers import State
from ember_hw.rtl.emit_verilog import emit_verilog
from ember_hw.rtl.tests import mutations
from ember_hw.rtl.tests.harness import CONFIG, refuses
from ember_hw.rtl.tests.machine import TABLE, Bags, Machine, Outcome
from ember_hw.rtl.tests.mutations import MUTATIONS, Shows, mutated, mutated_verilog

#: Indices over several lines, bags with and without lookups.
BAGS = Bags((tuple(range(30)), (), (7,), (499, 2)))
#: A row that is not there.
OUTSIDE = Bags(((3, 500),))
#: The first row has three beats, two of them before the end of a page.
CROSSING = Bags(((0, 1, 2),), changes=(("row0", "base", TABLE + 0xFF0),))


def _run(bags: Bags, seed: int = 1) -> Outcome:
    """Run a program and return what came, also where it does not end."""
    machine = Machine(seed=seed, latency=(3, 12), interleave=True)
    outcomes = []

    async def testbench(ctx):
        await machine.load(ctx, bags)
        await machine.start(ctx, bags)
        outcomes.append(await machine.finish(ctx, polls=120))

    machine.process(testbench)
    machine.run(3000)
    return outcomes[0]


def test_the_programs_are_right_without_a_mutation():
    assert _run(BAGS).agrees(BAGS)
    assert _run(OUTSIDE).state == State.FAULTED
    assert _run(CROSSING).state == State.DONE


@pytest.mark.parametrize(
    "name", [n for n, m in MUTATIONS.items() if m.shows in (Shows.RESULT, Shows.BUNDLES)]
)
def test_a_wrong_unit_disagrees_with_plain_loops(name: str):
    with mutated(name):
        outcome = _run(BAGS)
    assert not outcome.agrees(BAGS)
    wanted = BAGS.expected()[1]
    # A result is wrong only if the rows are, or which bag they belong to.
    if MUTATIONS[name].shows == Shows.RESULT:
        assert outcome.rows != wanted


def test_an_unchecked_index_shows_as_a_missing_fault():
    with mutated("index_unchecked"):
        assert _run(OUTSIDE).state == State.DONE


def test_a_burst_across_a_page_shows_at_the_memory():
    with mutated("burst_crosses_page"), pytest.raises(AssertionError, match="crosses 4 KB"):
        _run(CROSSING)


def _text(name: str) -> str:
    """Return the block that a mutation changes, as it is now."""
    mutation = MUTATIONS[name]
    module = import_module(f"ember_hw.rtl.{mutation.module}")
    component = getattr(module, mutation.component)
    parameters = inspect.signature(component).parameters
    values = {"config": CONFIG, "level": 1, "index": 0}
    dut = component(**{parameter: values[parameter] for parameter in parameters})
    return rtlil.convert(dut, emit_src=False)


@pytest.mark.parametrize("name", MUTATIONS)
def test_each_mutation_changes_the_hardware_and_leaves_it_as_it_was(
    name: str, monkeypatch: pytest.MonkeyPatch
):
    right = _text(name)
    with mutated(name):
        assert _text(name) != right
    assert _text(name) == right
    # It is the change that makes the difference, not the copy.
    mutation = MUTATIONS[name]
    monkeypatch.setitem(mutations.MUTATIONS, name, replace(mutation, after=mutation.before))
    with mutated(name):
        assert _text(name) == right


def test_mutated_verilog_has_the_ports_of_the_right_one():
    config = AcceleratorConfig.preset("tiny").with_changes(
        traversal_units=2, streams_per_unit=1, row_entries=1, exports=2, bundle_scalars=1
    )
    right = emit_verilog(config)
    wrong = mutated_verilog("line_change_unseen", config)
    assert wrong != right
    assert _ports(wrong) == _ports(right)


def _ports(text: str) -> str:
    start = text.index("module access_unit(")
    return text[start : text.index(";", start)]


def test_an_unknown_mutation_is_refused():
    with refuses(f"mutation must be one of {', '.join(MUTATIONS)}, not 'none'"), mutated("none"):
        pass


def test_a_mutation_whose_text_is_gone_is_refused(monkeypatch: pytest.MonkeyPatch):
    gone = replace(MUTATIONS["index_unchecked"], before="good.eq(2)")
    monkeypatch.setitem(mutations.MUTATIONS, "index_unchecked", gone)
    message = (
        "text of mutation 'index_unchecked' must stand once in row_address.py, "
        "not 0 times: 'good.eq(2)'"
    )
    with refuses(message), mutated("index_unchecked"):
        pass
