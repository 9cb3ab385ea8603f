"""
Two agents and two queues: how an access program and an execute program run side by side.

The access agent yields what it pushes, the execute agent yields which queue it wants to pop. A push
waits while its queue is full and a pop while its queue is empty; the schedule decides who goes
first when both can. What an agent loads or stores between two queue operations happens at once.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Generator, Iterator
from dataclasses import dataclass, field
from enum import Enum
from random import Random
from typing import Any, ClassVar, TypeAlias

from xdsl.ir import Attribute

from ember_hw.errors import CheckError

__all__ = ["DONE", "Counts", "Entry", "Execute", "Push", "Queue", "Schedule", "run_agents"]

DONE = 0
"""The token that ends the execute program."""


class Queue(Enum):
    """The two queues."""

    CONTROL = "control"
    DATA = "data"


@dataclass(frozen=True)
class Entry:
    """
    One entry of the data queue.

    Parameters
    ----------
    type : Attribute
        IR type of the whole operand.
    value : Any
        The scalar or vector, or the next elements of a row.
    last : bool
        Whether the operand ends with this entry.
    """

    type: Attribute
    value: Any
    last: bool = True


Push: TypeAlias = tuple[Queue, Any]
"""A token for the control queue, or an `Entry` for the data queue."""

Execute: TypeAlias = Generator[Queue, Any, None]
"""The execute agent: yields the queue to pop, is sent what it popped, ends after the done token."""


@dataclass(frozen=True)
class Schedule:
    """
    Queue capacities and who goes first.

    Parameters
    ----------
    control_entries, data_entries : int, optional
        Capacities, at least 1; None has no limit.
    access_first : bool
        Who goes when both agents can, unless a seed is given.
    seed : int, optional
        Draw who goes at every step instead, from this seed.
    """

    control_entries: int | None = None
    data_entries: int | None = None
    access_first: bool = True
    seed: int | None = None

    AHEAD: ClassVar[Schedule]
    """The access agent runs to its end before the execute agent starts."""
    LOCKSTEP: ClassVar[Schedule]
    """Both queues hold one entry, and the access agent goes only when the other waits for it."""

    def __post_init__(self) -> None:
        for name in ("control_entries", "data_entries"):
            capacity = getattr(self, name)
            if capacity is not None and capacity < 1:
                raise ValueError(f"{name} must be None or at least 1, not {capacity}")

    @classmethod
    def random(cls, seed: int, control_entries: int = 1, data_entries: int = 1) -> Schedule:
        """Return a seeded random interleaving over queues of these capacities."""
        return cls(control_entries, data_entries, seed=seed)

    def capacity(self, queue: Queue) -> int | None:
        """Return the capacity of one of the queues."""
        return self.control_entries if queue is Queue.CONTROL else self.data_entries


Schedule.AHEAD = Schedule()
Schedule.LOCKSTEP = Schedule(1, 1, access_first=False)


@dataclass
class Counts:
    """
    What went through the queues.

    Parameters
    ----------
    tokens : int
        Control tokens without the done tokens.
    data_entries : int
        Data entries: a scalar or a vector is one, a row as many as it has vectors.
    by_token : Counter of int
        Control tokens of each id.
    """

    tokens: int = 0
    data_entries: int = 0
    by_token: Counter[int] = field(default_factory=lambda: Counter[int]())

    def add(self, queue: Queue, item: Any) -> None:
        """Count one push."""
        if queue is Queue.DATA:
            self.data_entries += 1
        elif item != DONE:
            self.tokens += 1
            self.by_token[item] += 1


def run_agents(
    access: Iterator[Push], execute: Execute, schedule: Schedule, counts: Counts
) -> None:
    """
    Run both agents until the execute agent has seen the done token.

    Raises
    ------
    CheckError
        If an agent waits for ever, or something is left in a queue or to be pushed at the end.
    """
    queues: dict[Queue, deque[Any]] = {queue: deque() for queue in Queue}
    draw = None if schedule.seed is None else Random(schedule.seed)
    pending: Push | None = None
    access_ended = False
    wanted = next(execute, None)

    def access_can_go() -> bool:
        if access_ended or pending is None:
            return not access_ended
        capacity = schedule.capacity(pending[0])
        return capacity is None or len(queues[pending[0]]) < capacity

    while wanted is not None:
        execute_can_go = bool(queues[wanted])
        if access_can_go() and execute_can_go:
            access_goes = schedule.access_first if draw is None else bool(draw.getrandbits(1))
        else:
            access_goes = not execute_can_go
        if not access_goes:
            try:
                wanted = execute.send(queues[wanted].popleft())
            except StopIteration:
                wanted = None
        elif not access_can_go():
            reason = "the access program has ended" if access_ended else "the other queue is full"
            raise CheckError(
                f"execute side must find an entry in the {wanted.value} queue, "
                f"not wait for ever because {reason}"
            )
        elif pending is None:
            pending = next(access, None)
            access_ended = pending is None
        else:
            queues[pending[0]].append(pending[1])
            counts.add(*pending)
            pending = None
    _check_drained(queues, pending)


def _check_drained(queues: dict[Queue, deque[Any]], pending: Push | None) -> None:
    """Raise unless the queues are empty at the done token."""
    for queue, items in queues.items():
        left = len(items) + (pending is not None and pending[0] is queue)
        if left:
            raise CheckError(f"{queue.value} queue must be empty at done, not hold {left} entries")
