from __future__ import annotations

import random

import pytest

from ember_hw import isa
from ember_hw.rtl.issue import Issue
from ember_hw.rtl.tests.harness import CONFIG, Bench, gaps, payloads

ROOT_END = 1 << isa.event_bit(isa.Event.END, 0, CONFIG)
ISSUE = {"events": 0b001010}
ROWS = [0b000011, 0b100010]


def _tokens(seed: int, count: int, *, events: int | None = None) -> list[dict]:
    dice = random.Random(seed)
    return [
        {
            "events": dice.randrange(1 << CONFIG.events) if events is None else events,
            "exports": [dice.randrange(1 << 32) for _ in range(CONFIG.exports)],
        }
        for _ in range(count)
    ]


def _expected(tokens: list[dict]) -> tuple[list[dict], list[dict]]:
    told = ISSUE["events"] | ROOT_END
    bundles = [
        {
            "events": token["events"] & told,
            "scalars": token["exports"][: CONFIG.bundle_scalars],
            "last": int(bool(token["events"] & ROOT_END)),
        }
        for token in tokens
        if token["events"] & told
    ]
    rows = [
        {"entry": entry, "exports": token["exports"]}
        for token in tokens
        for entry, events in enumerate(ROWS)
        if token["events"] & events
    ]
    return bundles, rows


class Stage(Bench):
    """An issue stage with its records set."""

    def __init__(self, *, seed: int = 0):
        super().__init__(Issue(config=CONFIG), seed=seed)

        async def configure(ctx):
            ctx.set(self.dut.issue, ISSUE)
            for port, events in zip(self.dut.row_events, ROWS, strict=True):
                ctx.set(port, events)

        self.process(configure)


@pytest.mark.parametrize(("seed", "stall"), [(1, 0.0), (2, 0.3), (3, 0.6)])
def test_bundles_and_rows_leave_in_program_order(seed: int, stall: float):
    stage = Stage(seed=seed)
    tokens = _tokens(seed, 60)
    bundles, rows = _expected(tokens)
    stage.send(stage.dut.token, tokens, stall=stall)
    seen_bundles = stage.receive(stage.dut.bundle, len(bundles), stall=stall)
    seen_rows = stage.receive(stage.dut.row, len(rows), stall=stall)
    finished = stage.watch(stage.dut.finished)
    stage.run(1000)
    assert payloads(seen_bundles) == bundles
    assert payloads(seen_rows) == rows
    assert len(finished) == sum(bundle["last"] for bundle in bundles)

    # A bundle leaves no later than its token's first row.
    bundle_of_row = []
    number = -1
    for token in tokens:
        number += bool(token["events"] & (ISSUE["events"] | ROOT_END))
        told = bool(token["events"] & (ISSUE["events"] | ROOT_END))
        count = sum(bool(token["events"] & events) for events in ROWS)
        bundle_of_row += [number if told else None] * count
    for row, number in zip(seen_rows, bundle_of_row, strict=True):
        assert number is None or seen_bundles[number].cycle <= row.cycle


@pytest.mark.parametrize(
    ("events", "distance"), [(0b000001, 1), (0b100000, 1), (0b001000, 1), (0b000010, 2), (0, 1)]
)
def test_a_token_takes_a_cycle_or_one_for_each_row(events: int, distance: int):
    stage = Stage()
    tokens = _tokens(1, 20, events=events)
    bundles, rows = _expected(tokens)
    sent = stage.send(stage.dut.token, tokens)
    stage.receive(stage.dut.bundle, len(bundles))
    stage.receive(stage.dut.row, len(rows))
    stage.run(200)
    assert gaps(sent[1:]) == {distance}


def test_a_full_bundle_queue_holds_back_only_tokens_with_a_bundle():
    stage = Stage()
    silent = _tokens(1, 6, events=0b000001)
    told = _tokens(2, 2, events=0b001001)
    stage.send(stage.dut.token, silent + told + silent)
    rows = stage.receive(stage.dut.row, 14, forever=True)
    seen = []

    async def watch(ctx):
        await ctx.tick().repeat(40)
        seen.append(len(rows))
        ctx.set(stage.dut.bundle.ready, 1)

    stage.process(watch)
    stage.run(200)
    assert seen == [6]


def test_the_last_token_has_a_bundle_whatever_is_selected():
    stage = Stage()
    tokens = _tokens(3, 1, events=ROOT_END)
    stage.send(stage.dut.token, tokens)
    bundles = stage.receive(stage.dut.bundle, 1)
    stage.run(50)
    assert payloads(bundles)[0]["events"] == ROOT_END
    assert payloads(bundles)[0]["last"] == 1


def test_one_token_a_cycle_whatever_its_events():
    """Of one row at most, and a bundle or none."""
    stage = Stage()
    dice = random.Random(4)
    tokens = [
        token | {"events": dice.choice([0, 0b000001, 0b001000, 0b100000, 0b100100])}
        for token in _tokens(4, 40)
    ]
    bundles, rows = _expected(tokens)
    sent = stage.send(stage.dut.token, tokens)
    seen_bundles = stage.receive(stage.dut.bundle, len(bundles))
    seen_rows = stage.receive(stage.dut.row, len(rows))
    stage.run(200)
    assert gaps(sent) == {1}
    assert (payloads(seen_bundles), payloads(seen_rows)) == (bundles, rows)
    assert [item.cycle for item in seen_bundles + seen_rows] == [
        sent[number].cycle + 1
        for kind in (ISSUE["events"] | ROOT_END, ROWS[0] | ROWS[1])
        for number, token in enumerate(tokens)
        if token["events"] & kind
    ]


def test_requests_end_each_with_its_last_token():
    """Requests follow each other without a gap."""
    stage = Stage()
    tokens = [
        token | {"events": events}
        for token, events in zip(_tokens(5, 9), [0b001001, 0b000001, 0b010001] * 3, strict=True)
    ]
    bundles, rows = _expected(tokens)
    sent = stage.send(stage.dut.token, tokens)
    seen = stage.receive(stage.dut.bundle, len(bundles))
    stage.receive(stage.dut.row, len(rows))
    finished = stage.watch(stage.dut.finished)
    stage.run(100)
    assert gaps(sent) == {1}
    assert [bundle["last"] for bundle in payloads(seen)] == [0, 1] * 3
    assert [item.cycle for item in finished] == [item.cycle + 1 for item in sent[2::3]]
