"""How deep the queues of a config should be for what a run was."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ember_hw.config import AcceleratorConfig
from ember_hw.host.profile import QUEUES, Occupancy, Profile

#: A full queue is too small if it costs at least this share of the cycles ..
WORTH_SHARE = 0.01
#: .. unless something else takes at least this share of them: no depth would help then.
LIMITED_SHARE = 0.95


@dataclass(frozen=True)
class Depth:
    """A suggestion.

    Attributes
    ----------
    queue, parameter : str
        The queue, and the parameter of the config that is its room.
    entries, suggested : int
        Its room, and the room that the run asks for.
    reason : str
        Why.
    """

    queue: str
    parameter: str
    entries: int
    suggested: int
    reason: str


def suggest_depths(
    parameters: Mapping[str, Any], profile: Profile, cycles: int, stalls: Mapping[str, int]
) -> tuple[Depth, ...]:
    """Return a depth for each queue: the least that never filled up, more where a full one cost.

    Parameters
    ----------
    parameters : mapping
        `AcceleratorConfig.to_dict()`.
    profile : Profile
        Of the run.
    cycles : int
        That it took.
    stalls : mapping of str to int
        Cycles without a beat, by reason.
    """
    limits = {"execute side": profile.execute_cycles, "memory": profile.bound_cycles or 0}
    limit = max(limits, key=lambda name: limits[name])
    is_limited = limits[limit] >= LIMITED_SHARE * cycles
    depths: list[Depth] = []
    for queue, (parameter, stall) in QUEUES.items():
        occupancy = profile.occupancy[queue]
        lost = stalls[stall] / max(cycles, 1)
        suggested, reason = occupancy.entries, f"full at times, which cost {lost:.1%} of the cycles"
        if occupancy.most < occupancy.entries:
            suggested = _least_legal(parameters, parameter, occupancy)
            reason = f"never held more than {occupancy.most}"
        elif is_limited:
            reason = f"full at times, but the {limit} is the limit"
        elif lost >= WORTH_SHARE:
            suggested = _doubled(parameters, parameter)
        depths.append(Depth(queue, parameter, occupancy.entries, suggested, reason))
    return tuple(depths)


def _least_legal(parameters: Mapping[str, Any], parameter: str, occupancy: Occupancy) -> int:
    """Return the least room that the config takes and that would not have filled up."""
    tried = range(occupancy.most + 1, occupancy.entries)
    legal = (room for room in tried if _is_legal(parameters, parameter, room))
    return next(legal, occupancy.entries)


def _doubled(parameters: Mapping[str, Any], parameter: str) -> int:
    room = int(parameters[parameter])
    return 2 * room if _is_legal(parameters, parameter, 2 * room) else room


def _is_legal(parameters: Mapping[str, Any], parameter: str, room: int) -> bool:
    try:
        AcceleratorConfig.from_dict({**parameters, parameter: room})
    except ValueError:
        return False
    return True
