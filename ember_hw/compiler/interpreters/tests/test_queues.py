from __future__ import annotations

from collections.abc import Iterator

import pytest

from ember_hw.compiler.interpreters.queues import (
    DONE,
    Counts,
    Execute,
    Push,
    Queue,
    Schedule,
    run_agents,
)
from ember_hw.compiler.interpreters.tests.evaluate import whole
from ember_hw.errors import CheckError

TOKENS, DATA = Queue.CONTROL, Queue.DATA


class Agents:
    """An access agent that pushes a list, and an execute agent that pops in a given order."""

    def __init__(self, pushes: list[Push], pops: list[Queue]) -> None:
        self.pushes, self.pops = pushes, pops
        self.log: list[str] = []
        self.popped: list[object] = []

    def access(self) -> Iterator[Push]:
        for queue, item in self.pushes:
            self.log.append(f"+{item}")
            yield queue, item

    def execute(self) -> Execute:
        for queue in self.pops:
            item = yield queue
            self.popped.append(item)
            self.log.append(f"-{item}")

    def run(self, schedule: Schedule) -> Counts:
        counts = Counts()
        run_agents(self.access(), self.execute(), schedule, counts)
        return counts


def row_of_three() -> Agents:
    return Agents(
        [(TOKENS, 1), (DATA, "a"), (DATA, "b"), (DATA, "c"), (TOKENS, 2), (TOKENS, DONE)],
        [TOKENS, DATA, DATA, DATA, TOKENS, TOKENS],
    )


@pytest.mark.parametrize(
    "schedule",
    [
        Schedule.AHEAD,
        Schedule.LOCKSTEP,
        Schedule(1, 2),
        Schedule(5, 1, access_first=False),
        *(Schedule.random(seed, 1 + seed % 2, 1 + seed % 3) for seed in range(6)),
    ],
    ids=str,
)
def test_every_schedule_delivers_the_same_in_order(schedule: Schedule) -> None:
    agents = row_of_three()

    counts = agents.run(schedule)

    assert agents.popped == [1, "a", "b", "c", 2, DONE]
    assert counts == Counts(tokens=2, data_entries=3, by_token=counts.by_token)
    assert counts.by_token == {1: 1, 2: 1}


def test_ahead_pushes_everything_first() -> None:
    agents = row_of_three()
    agents.run(Schedule.AHEAD)
    assert agents.log[:6] == ["+1", "+a", "+b", "+c", "+2", "+0"]


def test_lockstep_pops_before_the_next_push_is_computed() -> None:
    agents = row_of_three()
    agents.run(Schedule.LOCKSTEP)
    expected = ["+1", "-1", "+a", "-a", "+b", "-b", "+c", "-c", "+2", "-2", "+0", "-0"]
    assert agents.log == expected


def test_random_schedules_differ_by_seed_and_repeat() -> None:
    logs: list[list[str]] = []
    for seed in (1, 2, 1):
        agents = row_of_three()
        agents.run(Schedule.random(seed, 3, 3))
        logs.append(agents.log)
    assert logs[0] == logs[2]
    assert logs[0] != logs[1]


def test_operand_that_never_comes_is_refused() -> None:
    agents = Agents([(TOKENS, 1), (TOKENS, DONE)], [TOKENS, DATA, TOKENS])
    message = (
        "execute side must find an entry in the data queue, not wait for ever because the access "
        "program has ended"
    )
    with pytest.raises(CheckError, match=whole(message)):
        agents.run(Schedule.AHEAD)


def test_deadlock_is_refused() -> None:
    # Operands before their token fill the queue of one entry.
    agents = Agents([(DATA, "a"), (DATA, "b"), (TOKENS, 1)], [TOKENS, DATA, DATA])
    message = (
        "execute side must find an entry in the control queue, not wait for ever because the other "
        "queue is full"
    )
    with pytest.raises(CheckError, match=whole(message)):
        agents.run(Schedule.LOCKSTEP)


@pytest.mark.parametrize("schedule", [Schedule.AHEAD, Schedule.LOCKSTEP], ids=["ahead", "lockstep"])
def test_entries_left_at_done_are_refused(schedule: Schedule) -> None:
    agents = Agents([(TOKENS, 1), (DATA, "a"), (TOKENS, DONE)], [TOKENS, TOKENS])
    message = "data queue must be empty at done, not hold 1 entries"
    with pytest.raises(CheckError, match=whole(message)):
        agents.run(schedule)


def test_queue_without_a_place_is_refused() -> None:
    with pytest.raises(
        ValueError, match=whole("control_entries must be None or at least 1, not 0")
    ):
        Schedule(control_entries=0)
    with pytest.raises(ValueError, match=whole("data_entries must be None or at least 1, not -2")):
        Schedule(data_entries=-2)
