"""What a simulation saw of a run beyond the hardware's counters: queues, reads, their bound.

A backend samples each launch (`LaunchSample`); what takes time to reckon, such as the bound of the
memory, is reckoned when somebody asks for the `Profile`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ember_hw.host.reuse import ReuseCurve, reuse_curve

#: Queues whose levels are sampled, in the order of the high-water counters: the parameter of the
#: config that is their room, and the stall that counts the cycles for which they are too small.
QUEUES: dict[str, tuple[str, str]] = {
    "bundles": ("bundle_entries", "execute"),
    "row_beats": ("reorder_buffer_beats", "reorder"),
    "outstanding": ("outstanding_reads", "outstanding"),
    "tokens": ("token_entries", "front"),
}


@dataclass(frozen=True)
class Occupancy:
    """How full a queue was.

    Attributes
    ----------
    entries : int
        Its room.
    cycles : tuple of int
        Cycles in which it held 0, 1, .. entries; ends at the most.
    """

    entries: int
    cycles: tuple[int, ...]

    @property
    def most(self) -> int:
        """Most entries that it held at one time."""
        return len(self.cycles) - 1

    @property
    def mean(self) -> float:
        """Mean number of entries."""
        held = sum(level * cycles for level, cycles in enumerate(self.cycles))
        return held / max(sum(self.cycles), 1)

    @property
    def full_share(self) -> float:
        """Share of the cycles in which it was full."""
        return sum(self.cycles[self.entries :]) / max(sum(self.cycles), 1)

    def level_at(self, share: float) -> int:
        """Return the least level that was not exceeded in this share of the cycles.

        Examples
        --------
        >>> Occupancy(entries=8, cycles=(90, 5, 5)).level_at(0.95)
        1
        """
        summed = np.array(self.cycles, np.int64).cumsum()
        level: np.int64 = np.searchsorted(summed, share * float(summed[-1]) - 1e-9)
        return int(level)


@dataclass(frozen=True)
class Profile:
    """What a simulation saw of a run.

    Attributes
    ----------
    fill_cycles : int
        From the start until the first row was delivered (the first bundle of a program without
        rows).
    drain_cycles : int
        From the last one to the end.
    bound_cycles : int or None
        In which the memory model answers the same reads if all of them are there from the start;
        None where the trace of the reads was too long to keep.
    execute_cycles : int
        That the execute side which drained the queues needs at least.
    occupancy : mapping of str to Occupancy
        By queue.
    reuse : ReuseCurve or None
        Of the reads, None as `bound_cycles`.

    Of a program with several nests all but occupancy and reuse are sums over the nests.
    """

    fill_cycles: int
    drain_cycles: int
    bound_cycles: int | None
    execute_cycles: int
    occupancy: Mapping[str, Occupancy]
    reuse: ReuseCurve | None

    def to_dict(self) -> dict[str, Any]:
        """Return the attributes, JSON-ready."""
        return {
            "fill_cycles": self.fill_cycles,
            "drain_cycles": self.drain_cycles,
            "bound_cycles": self.bound_cycles,
            "execute_cycles": self.execute_cycles,
            "occupancy": {
                name: {"entries": queue.entries, "cycles": list(queue.cycles)}
                for name, queue in self.occupancy.items()
            },
            "reuse": None if self.reuse is None else self.reuse.to_dict(),
        }

    @staticmethod
    def from_dict(values: dict[str, Any]) -> Profile:
        """Return the profile that `to_dict` was called on."""
        queues: dict[str, Any] = values["occupancy"]
        reuse = values["reuse"]
        return Profile(
            fill_cycles=values["fill_cycles"],
            drain_cycles=values["drain_cycles"],
            bound_cycles=values["bound_cycles"],
            execute_cycles=values["execute_cycles"],
            occupancy={
                name: Occupancy(queue["entries"], tuple(queue["cycles"]))
                for name, queue in queues.items()
            },
            reuse=None if reuse is None else ReuseCurve.from_dict(reuse),
        )


@dataclass(frozen=True)
class LaunchSample:
    """What a simulation kept of one launch.

    Attributes
    ----------
    fill_cycles, drain_cycles, execute_cycles : int
        As those of `Profile`.
    levels : mapping of str to uint64 (L,)
        By queue: cycles in which it held 0, 1, .. entries.
    trace : callable or None
        Returns the read bursts of all ports in their order: addresses uint64 (N,), and bytes int64
        (N,). None if they were too many to keep.
    bound : callable
        Reckons `Profile.bound_cycles` of this launch; called where the reads were kept.
    """

    fill_cycles: int
    drain_cycles: int
    execute_cycles: int
    levels: Mapping[str, NDArray[np.uint64]]
    trace: Callable[[], tuple[NDArray[np.uint64], NDArray[np.int64]]] | None
    bound: Callable[[], int]


def profile_of(samples: Sequence[LaunchSample], parameters: Mapping[str, Any]) -> Profile:
    """Return the profile of a run.

    Parameters
    ----------
    samples : sequence of LaunchSample
        Of its launches, one at least.
    parameters : mapping
        `AcceleratorConfig.to_dict()`.
    """
    traces = [sample.trace() for sample in samples if sample.trace is not None]
    is_whole = len(traces) == len(samples)
    return Profile(
        fill_cycles=sum(sample.fill_cycles for sample in samples),
        drain_cycles=sum(sample.drain_cycles for sample in samples),
        bound_cycles=sum(sample.bound() for sample in samples) if is_whole else None,
        execute_cycles=sum(sample.execute_cycles for sample in samples),
        occupancy={
            name: _occupancy([sample.levels[name] for sample in samples], int(parameters[room]))
            for name, (room, _) in QUEUES.items()
        },
        reuse=reuse_curve(*map(np.concatenate, zip(*traces, strict=True))) if is_whole else None,
    )


def _occupancy(levels: Sequence[NDArray[np.uint64]], entries: int) -> Occupancy:
    summed = np.zeros(max(map(len, levels)), np.uint64)
    for level in levels:
        summed[: len(level)] += level
    seen = np.flatnonzero(summed)
    most = int(seen[-1]) if seen.size else 0
    return Occupancy(entries, tuple(int(cycles) for cycles in summed[: most + 1]))
