"""Register accesses that bring a unit its microcode and its requests, one behind the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from ember_hw.config import LINE_BYTES, AcceleratorConfig
from ember_hw.errors import DeviceError, ProgramError
from ember_hw.host.launch import Launch
from ember_hw.registers import (
    ADDRESS_WIDTH_BITS,
    ARGUMENTS_ADDRESS,
    COMPLETED,
    CONTROL,
    CONTROL_JOINS,
    CONTROL_START,
    FAULT,
    FAULT_ADDRESS_HIGH,
    FAULT_ADDRESS_LOW,
    MICROCODE_ADDRESS,
    REQUESTS,
    STATUS,
    FaultCode,
    State,
    fault_error,
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


class HeldProgram:
    """What a unit holds of microcode and arguments: what it has isn't written again.

    Parameters
    ----------
    write : callable of (int, list of int)
        Writes registers one behind the other, from an address on.

    Attributes
    ----------
    arguments : list of int
        What the ARGUMENT registers hold; empty where that isn't known.
    """

    def __init__(self, write: Callable[[int, list[int]], None]) -> None:
        self._write = write
        self._words: list[int] = []
        self.arguments: list[int] = []

    def forget(self, arguments: Sequence[int] = ()) -> None:
        """Take note of a reset: microcode isn't known, and of the arguments what is given."""
        self._words = []
        self.arguments = [*arguments]

    def write_microcode(self, words: Sequence[int]) -> None:
        """Write the words that the unit doesn't hold yet."""
        held, self._words = self._words, []  # unknown, should a write fail
        self._write_changed(MICROCODE_ADDRESS, words, held)
        self._words = [*words]

    def write_arguments(self, launch: Launch) -> None:
        """Write the arguments of a launch that the unit doesn't hold yet."""
        values = argument_values(launch)
        held, self.arguments = self.arguments, []
        self._write_changed(ARGUMENTS_ADDRESS, values, held)
        self.arguments = values

    def _write_changed(self, address: int, values: Sequence[int], held: Sequence[int]) -> None:
        differs = [not held or value != held[n] for n, value in enumerate(values)]
        at = 0
        for is_other, run in groupby(differs):
            count = len(list(run))
            if is_other:
                self._write(address + 4 * at, [*values[at : at + count]])
            at += count


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
    A fault voids the requests that wait. All starts but the first join those before them, so that
    one which comes behind a fault is refused, and the list ends there.
    """
    window = unit_address(unit)
    accesses: list[Access] = []
    for number, launch in enumerate(launches):
        for position, value in enumerate(argument_values(launch)):
            if held[position] != value:
                accesses.append(_write(window + ARGUMENTS_ADDRESS + 4 * position, value))
                held[position] = value
        if number:
            accesses.append(
                Access(
                    kind=AccessKind.WAIT,
                    address=window + REQUESTS.address,
                    value=config.request_entries - 1,
                )
            )
        start = CONTROL_START | (CONTROL_JOINS if number else 0)
        accesses.append(_write(window + CONTROL.address, start))
    return accesses


def read_state(read: Callable[[int], int], *, unit: int = 0) -> State:
    """Return STATUS.state of a unit of a cluster, which `read` reads by address."""
    return State(read(unit_address(unit) + STATUS.address) & STATE_MASK)


def read_fault(read: Callable[[int], int], *, unit: int = 0) -> tuple[FaultCode, int, int, int]:
    """Return what FAULT and FAULT_ADDRESS hold: code, unit, stream, address."""
    window = unit_address(unit)
    fault = read(window + FAULT.address)
    address = read(window + FAULT_ADDRESS_LOW.address)
    address |= read(window + FAULT_ADDRESS_HIGH.address) << 32
    return FaultCode(fault & 0x1F), fault >> 8 & 0xFF, fault >> 16 & 0xFF, address


def read_completed(read: Callable[[int], int], *, unit: int = 0) -> int:
    """Return COMPLETED of a unit."""
    return read(unit_address(unit) + COMPLETED.address)


def check_ended(
    read: Callable[[int], int], *, requests: int, completed_before: int, unit: int = 0
) -> None:
    """Refuse the end of a series of requests unless all have ended well.

    Parameters
    ----------
    read : callable
        Reads a register by address.
    requests : int
        Requests that were to run.
    completed_before : int
        What COMPLETED was before the first of them.
    unit : int
        Of a cluster.

    Raises
    ------
    DeviceError
        The unit stopped on a fault, which is told with the number of requests that ended before
        it; or it isn't DONE; or not all of the requests ran.
    """
    state = read_state(read, unit=unit)
    completed = (read_completed(read, unit=unit) - completed_before) % (1 << 32)
    if state is State.FAULTED:
        fault = read_fault(read, unit=unit)
        raise fault_error(*fault, completed=completed, requests=requests)
    if state is not State.DONE:
        raise DeviceError(f"state at the end of a program must be DONE, not {state.name}")
    if completed != requests:
        raise DeviceError(f"requests that ended must be all {requests}, not {completed}")


def check_leaves(launch: Launch, config: AcceleratorConfig) -> None:
    """Refuse a nest whose bundles and rows would have to leave a unit from which they can't.

    Raises
    ------
    ProgramError
        The config has a reduce unit, and the nest isn't made for it.
    """
    nest = launch.nest
    if config.execute == "reduce" and nest is not None and nest.fabric is None:
        raise ProgramError(
            f"rows of nest {nest.name!r} must leave through the reduce unit of config "
            f"{config.name!r}, and can't: {nest.reason or 'it was assembled by hand'}; "
            "compile it for a config with execute='queues'"
        )


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
