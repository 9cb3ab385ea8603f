from __future__ import annotations

import random

import pytest

from ember_hw import isa
from ember_hw.rtl.bounds import Bounds
from ember_hw.rtl.tests.harness import CONFIG, Bench, Taken, gaps, payloads, refuses

IMMEDIATE, SLOT = isa.Source.IMMEDIATE, isa.Source.SLOT
BOUND = isa.BoundSource
ITERATES = 1 << isa.event_bit(isa.Event.ITERATE, 0, CONFIG)
MOST, LEAST = (1 << 31) - 1, -(1 << 31)
WINDOW_MOST, WINDOW_LEAST = (1 << 33) - 1, -(1 << 33)


def _signed(value: int) -> int:
    return (value & 0xFFFF_FFFF) - (value >> 31 & 1) * (1 << 32)


def _window(values: list[int], stream: dict) -> dict | None:
    """Return a stream's window; None if it is lost."""
    start = stream["first"]
    if stream["outer_enable"]:
        start += values[stream["outer_export"]] * stream["outer_pitch"]
    return {"start": start, "lost": 0} if WINDOW_LEAST <= start <= WINDOW_MOST else None


def _expected(token: dict, record: dict, streams: list[dict], level: int) -> dict:
    """Return the entry of a token, by the texts of the fields."""
    values = [_signed(value) for value in token["exports"]]
    lower = record["lower_immediate"]
    if record["lower_source"] == SLOT:
        lower = values[record["lower_export"]]
    upper = record["upper_immediate"]
    if record["upper_source"] == BOUND.SLOT:
        upper = values[record["upper_export"]]
    if record["upper_source"] == BOUND.LOWER_PLUS:
        upper += lower
    enters = record["enable"] and (level == 0 or bool(token["events"] & ITERATES))
    return {
        "events": token["events"],
        "lower": lower & 0xFFFF_FFFF,
        "left": upper - lower - 1 - record["step"],
        "void": int(not enters),
        "empty": int(bool(enters) and upper <= lower),
        "windows": [_window(values, stream) for stream in streams],
    }


def _simulate(
    record: dict,
    streams: list[dict],
    level: int,
    tokens: list[dict],
    *,
    seed: int = 0,
    stall: float = 0.0,
    start: int = 0,
) -> tuple[list[Taken], list[Taken]]:
    dut = Bounds(config=CONFIG, level=level)
    bench = Bench(dut, seed=seed)

    async def configure(ctx):
        ctx.set(dut.record, record)
        for port, stream in zip(dut.streams, streams, strict=True):
            ctx.set(port, stream)

    bench.process(configure)
    sent = bench.send(dut.parent, tokens, stall=stall)
    received = bench.receive(dut.entry, len(tokens), stall=stall, start=start)
    bench.run(2000)
    return sent, received


def _check(received: list[Taken], expected: list[dict]) -> None:
    """Compare all but where the window of a lost stream starts."""
    for seen, wanted in zip(payloads(received), expected, strict=True):
        for window, known in zip(seen["windows"], wanted["windows"], strict=True):
            assert window["lost"] == (known is None)
            assert known is None or window == known
        assert seen | {"windows": None} == wanted | {"windows": None}


def _tokens(seed: int, count: int) -> list[dict]:
    dice = random.Random(seed)
    corners = [0, 1, -1, 5, MOST, LEAST]
    return [
        {
            "events": dice.randrange(1 << CONFIG.events),
            "exports": [
                dice.choice([*corners, dice.randrange(-20, 20), dice.randrange(1 << 32)])
                & 0xFFFF_FFFF
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
    "lower slot": {"lower_source": SLOT, "lower_export": 1},
    "upper slot": {"upper_source": BOUND.SLOT, "upper_export": 1, "lower_immediate": LEAST},
    "slots": {
        "lower_source": SLOT,
        "lower_export": 0,
        "upper_source": BOUND.SLOT,
        "upper_export": 2,
    },
    "lower plus": {
        "lower_source": SLOT,
        "lower_export": 0,
        "upper_source": BOUND.LOWER_PLUS,
        "upper_immediate": 7,
    },
    "lower plus an immediate": {
        "lower_immediate": MOST,
        "upper_source": BOUND.LOWER_PLUS,
        "upper_immediate": MOST,
    },
    "less than the lower": {
        "lower_source": SLOT,
        "lower_export": 2,
        "upper_source": BOUND.LOWER_PLUS,
        "upper_immediate": LEAST,
    },
}
STREAM = {"outer_enable": 0, "outer_export": 0, "outer_pitch": 0, "first": 0}
PITCHES = [
    STREAM | {"first": LEAST},
    STREAM | {"outer_enable": 1, "outer_export": 2, "outer_pitch": 100, "first": 7},
]


def _record(form: dict, **changes: int) -> dict:
    fields = ("lower_source", "lower_export", "lower_immediate")
    fields += ("upper_source", "upper_export", "upper_immediate")
    record = dict.fromkeys(fields, 0) | {"enable": 1, "step": 1} | form | changes
    record["lower_source"] = isa.Source(record["lower_source"])
    record["upper_source"] = BOUND(record["upper_source"])
    return record


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("level", "enable", "step"), [(0, 1, 1), (1, 1, 3), (1, 0, 65535)])
def test_entries_hold_the_bounds_of_their_tokens(form: str, level: int, enable: int, step: int):
    record = _record(FORMS[form], enable=enable, step=step)
    tokens = _tokens(len(form), 24)
    _, received = _simulate(record, PITCHES, level, tokens, seed=level + 1, stall=0.4)
    _check(received, [_expected(token, record, PITCHES, level) for token in tokens])


@pytest.mark.parametrize(
    "streams",
    [
        [STREAM | {"first": MOST}, STREAM | {"outer_pitch": 9, "outer_export": 1}],
        [
            STREAM | {"outer_enable": 1, "outer_pitch": 1, "outer_export": 1, "first": MOST},
            STREAM | {"outer_enable": 1, "outer_pitch": 4, "outer_export": 0, "first": LEAST},
        ],
        # A window has 34 bits, its sign included: times 4 it fits with `first` on one side alone.
        [
            STREAM | {"outer_enable": 1, "outer_pitch": 4, "outer_export": 1, "first": MOST},
            STREAM | {"outer_enable": 1, "outer_pitch": 5, "outer_export": 2, "first": 0},
        ],
        [
            STREAM | {"outer_enable": 1, "outer_pitch": (1 << 17) - 1, "first": MOST},
            STREAM | {"outer_enable": 1, "outer_pitch": (1 << 17) - 1, "first": LEAST},
        ],
    ],
)
def test_windows_of_streams_and_those_that_do_not_fit(streams: list[dict]):
    record = _record(FORMS["immediates"])
    tokens = _tokens(3, 60)
    expected = [_expected(token, record, streams, 1) for token in tokens]
    _, received = _simulate(record, streams, 1, tokens, seed=3, stall=0.2)
    _check(received, expected)


def test_windows_at_their_limits():
    streams = [
        STREAM | {"outer_enable": 1, "outer_export": 0, "outer_pitch": 4, "first": 3},
        STREAM | {"outer_enable": 1, "outer_export": 0, "outer_pitch": 4, "first": -1},
    ]
    record = _record({})
    tokens = [
        {"events": ITERATES, "exports": [value & 0xFFFF_FFFF, 0, 0]} for value in (MOST, LEAST)
    ]
    _, received = _simulate(record, streams, 1, tokens)
    expected = [_expected(token, record, streams, 1) for token in tokens]
    assert expected[0]["windows"][0] == {"start": WINDOW_MOST, "lost": 0}
    assert expected[1]["windows"][1] is None
    _check(received, expected)


def test_one_token_a_cycle_and_its_latency():
    record = _record({"upper_immediate": 4})
    sent, received = _simulate(record, PITCHES, 1, _tokens(5, 40))
    assert gaps(sent) == gaps(received) == {1}
    assert received[0].cycle - sent[0].cycle == 5


def test_a_stalled_entry_holds_back_tokens_and_loses_none():
    record = _record(FORMS["slots"])
    tokens = _tokens(6, 40)
    sent, received = _simulate(record, PITCHES, 1, tokens, start=60)
    assert sum(item.cycle < 60 for item in sent) == 16
    assert gaps(received) == {1}
    _check(received, [_expected(token, record, PITCHES, 1) for token in tokens])
