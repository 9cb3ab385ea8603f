"""Register accesses that bring a unit its microcode and its requests, one behind the other."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ember_hw.config import LINE_BYTES, AcceleratorConfig
from ember_hw.host.launch import Launch
from ember_hw.registers import (
    ADDRESS_WIDTH_BITS,
    ARGUMENTS_ADDRESS,
    CONTROL,
    CONTROL_START,
    REQUESTS,
    STATUS,
    State,
)
from ember_hw.sim.model import Access, AccessKind

#: STATUS.state.
STATE_MASK = 7

#: A line of the input queue, 64 bytes, and the stream that takes it: its unit and its number.
FeedLine = tuple[tuple[int, int], NDArray[np.uint8]]


def unit_address(unit: int) -> int:
    """Return where the registers of a unit of a cluster lie."""
    return unit << ADDRESS_WIDTH_BITS


def argument_values(launch: Launch) -> list[int]:
    """Return what each ARGUMENT register holds for a launch; those left out are 0."""
    exports = launch.microcode.config.exports
    values = [value & 0xFFFF_FFFF for value in launch.arguments]
    return values + [0] * (exports - len(values))


def request_accesses(
    launches: Sequence[Launch], config: AcceleratorConfig, *, held: list[int], unit: int = 0
) -> list[Access]:
    """Return the accesses that start requests of one microcode as soon as there is room for each.

    Parameters
    ----------
    launches : sequence of Launch
        Alike but for their arguments.
    config : AcceleratorConfig
        The access unit.
    held : list of int
        What the ARGUMENT registers hold; made up to date.
    unit : int
        Of a cluster.

    Notes
    -----
    A fault voids the requests that wait, and a start behind it would begin anew: the list ends
    there. The unit's reset takes far longer than the accesses between the look and the start.
    """
    window = unit_address(unit)
    accesses: list[Access] = []
    for number, launch in enumerate(launches):
        for position, value in enumerate(argument_values(launch)):
            if held[position] != value:
                accesses.append(_write(window + ARGUMENTS_ADDRESS + 4 * position, value))
                held[position] = value
        if number:
            accesses += [
                Access(
                    kind=AccessKind.WAIT,
                    address=window + REQUESTS.address,
                    value=config.request_entries - 1,
                ),
                Access(
                    kind=AccessKind.STOP_IF,
                    address=window + STATUS.address,
                    value=State.FAULTED,
                    mask=STATE_MASK,
                ),
            ]
        accesses.append(_write(window + CONTROL.address, CONTROL_START))
    return accesses


def input_arrays(
    feed: Sequence[FeedLine], config: AcceleratorConfig
) -> tuple[NDArray[np.uint32], NDArray[np.uint8]]:
    """Return TDEST (N,) and bytes (N, 64) of lines for the input queue."""
    streams = config.streams_per_unit
    destinations = np.array([unit * streams + stream for (unit, stream), _ in feed], np.uint32)
    lines = np.zeros((len(feed), LINE_BYTES), np.uint8)
    for number, (_, line) in enumerate(feed):
        lines[number] = line
    return destinations, lines


def _write(address: int, value: int) -> Access:
    return Access(kind=AccessKind.WRITE, address=address, value=value)
