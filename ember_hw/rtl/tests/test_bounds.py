from __future__ import annotations

import random

import pytest

from ember_hw import isa
from ember_hw.rtl.bounds import Bounds
from ember_hw.rtl.slots import inherited_slot
from ember_hw.rtl.tests.harness import CONFIG, Bench, Taken, gaps, payloads, refuses

IMMEDIATE, SLOT = isa.Source.IMMEDIATE, isa.Source.SLOT
BOUND = isa.BoundSource
ITERATES = 1 << isa.event_bit(isa.Event.ITERATE, 0, CONFIG)
MOST, LEAST = (1 << 31) - 1, -(1 << 31)


def _signed(value: int) -> int:
    return (value & 0xFFFF_FFFF) - (value >> 31 & 1) * (1 << 32)


def _expected(token: dict, record: dict, level: int) -> dict:
    """Return the entry of a token, by the rules of the interpreter."""
    values = [_signed(value) for value in token["exports"]]
    first = inherited_slot(0, CONFIG)
    lower = record["lower_immediate"]
    if record["lower_source"] == SLOT:
        lower = values[record["lower_slot"] - first]
    upper = record["upper_immediate"]
    if record["upper_source"] == BOUND.SLOT:
        upper = values[record["upper_slot"] - first]
    if record["upper_source"] == BOUND.LOWER_PLUS:
        upper += lower
    enters = record["enable"] and (level == 0 or bool(token["events"] & ITERATES))
    return {
        "events": token["events"],
        "exports": token["exports"],
        "lower": lower & 0xFFFF_FFFF,
        "left": upper - lower - 1 - record["step"],
        "void": int(not enters),
        "empty": int(bool(enters) and upper <= lower),
    }


def _simulate(
    record: dict, level: int, tokens: list[dict], *, seed: int = 0, stall: float = 0.0
) -> tuple[list[Taken], list[Taken]]:
    dut = Bounds(config=CONFIG, level=level)
    bench = Bench(dut, seed=seed)

    async def configure(ctx):
        ctx.set(dut.record, record)

    bench.process(configure)
    sent = bench.send(dut.parent, tokens, stall=stall)
    received = bench.receive(dut.entry, len(tokens), stall=stall)
    bench.run(2000)
    return sent, received


def _tokens(bench_seed: int, count: int) -> list[dict]:
    dice = random.Random(bench_seed)
    corners = [0, 1, -1, 5, MOST, LEAST]
    return [
        {
            "events": dice.randrange(1 << CONFIG.events),
            "exports": [
                dice.choice([*corners, dice.randrange(-20, 20)]) & 0xFFFF_FFFF
                for _ in range(CONFIG.exports)
            ],
        }
        for _ in range(count)
    ]


@pytest.mark.parametrize("level", [-1, 2])
def test_a_level_that_is_not_there_is_refused(level: int):
    with refuses(f"level must be from 0 to 1, not {level}"):
        Bounds(config=CONFIG, level=level)


FORMS = {
    "immediates": {"lower_immediate": -3, "upper_immediate": 9},
    "extremes": {"lower_immediate": LEAST, "upper_immediate": MOST},
    "backwards": {"lower_immediate": MOST, "upper_immediate": LEAST},
    "lower slot": {"lower_source": SLOT, "lower_slot": inherited_slot(1, CONFIG)},
    "slots": {
        "lower_source": SLOT,
        "lower_slot": inherited_slot(0, CONFIG),
        "upper_source": BOUND.SLOT,
        "upper_slot": inherited_slot(2, CONFIG),
    },
    "lower plus": {
        "lower_source": SLOT,
        "lower_slot": inherited_slot(0, CONFIG),
        "upper_source": BOUND.LOWER_PLUS,
        "upper_immediate": 7,
    },
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("level", "enable", "step"), [(0, 1, 1), (1, 1, 3), (1, 0, 65535)])
def test_entries_hold_the_bounds_of_their_tokens(form: str, level: int, enable: int, step: int):
    fields = ("lower_source", "lower_slot", "lower_immediate")
    fields += ("upper_source", "upper_slot", "upper_immediate")
    record = dict.fromkeys(fields, 0) | FORMS[form] | {"enable": enable, "step": step}
    record["lower_source"] = isa.Source(record["lower_source"])
    record["upper_source"] = BOUND(record["upper_source"])
    tokens = _tokens(len(form), 24)
    _, received = _simulate(record, level, tokens, seed=level + 1, stall=0.4)
    expected = [_expected(token, record, level) for token in tokens]
    assert payloads(received) == expected


def test_one_token_a_cycle_and_its_latency():
    record = {"enable": 1, "step": 1, "upper_immediate": 4}
    sent, received = _simulate(record, 1, _tokens(5, 40))
    assert gaps(sent) == gaps(received) == {1}
    assert received[0].cycle - sent[0].cycle == 5
