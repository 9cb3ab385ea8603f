"""What microcode must hold beyond the ranges of its fields, before it goes to an access unit.

The hardware checks what it can at run time (`registers.FaultCode`); for the rest, alignment and
parts that the config doesn't have, its behaviour is not defined. So a launch is checked here.
"""

from __future__ import annotations

from ember_hw.config import LINE_BYTES
from ember_hw.errors import ProgramError
from ember_hw.isa import Microcode, Source, StreamSource


def check_microcode(microcode: Microcode) -> None:
    """Check a program whose addresses and lengths are filled in.

    Raises
    ------
    ProgramError
        The chain of units has a hole or a step of 0, a unit that isn't enabled exports a value of
        its own, a record asks for what the config doesn't have, or an address, pitch or length is
        not aligned.
    """
    config = microcode.config
    enabled = [microcode.get(f"unit{k}", "enable") for k in range(config.traversal_units)]
    units = sum(enabled)
    if not units or 0 in enabled[:units]:
        used = [f"unit{k}" for k, on in enumerate(enabled) if on]
        raise ProgramError(
            "units must be enabled outermost first, without a hole, "
            f"not {', '.join(used) or 'none'}"
        )
    for k in range(units):
        _check_unit(microcode, f"unit{k}")
        for s in range(config.streams_per_unit):
            if microcode.get(f"unit{k}.stream{s}", "enable"):
                _check_stream(microcode, f"unit{k}.stream{s}")
    for k in range(units, config.traversal_units):
        for i in range(config.exports):
            if selector := microcode.get(f"unit{k}", f"export{i}"):
                raise ProgramError(
                    f"export{i} of unit{k} must be 0, as the unit is not enabled, not {selector}"
                )
    for r in range(config.row_entries):
        if microcode.get(f"row{r}", "events"):
            _check_row(microcode, f"row{r}")


def _check_unit(microcode: Microcode, path: str) -> None:
    get = microcode.records[path]
    if not get["step"]:
        raise ProgramError(f"step of {path} must be 1 or more, not 0")
    if get["pair"] and not microcode.get(f"{path}.stream0", "enable"):
        raise ProgramError(f"stream0 of {path} must be enabled in pair mode; it is not")


def _check_stream(microcode: Microcode, path: str) -> None:
    get, config = microcode.records[path], microcode.config
    if get["source"] == StreamSource.QUEUE and not config.input_queue:
        raise ProgramError(
            f"source of {path} must be memory, not the input queue: config {config.name!r} has none"
        )
    _check_multiple(path, "base", get["base"], LINE_BYTES)


def _check_row(microcode: Microcode, path: str) -> None:
    get, bus_bytes = microcode.records[path], microcode.config.bus_bytes
    _check_multiple(path, "base", get["base"], bus_bytes)
    if get["pitch_source"] == Source.IMMEDIATE:
        _check_multiple(path, "pitch", get["pitch"], bus_bytes)
    if get["offset_enable"] and get["length_source"] == Source.IMMEDIATE:
        _check_multiple(path, "length", get["length"], bus_bytes)


def _check_multiple(path: str, name: str, value: int, unit_bytes: int) -> None:
    if value % unit_bytes:
        raise ProgramError(
            f"{name} of {path} must be a multiple of {unit_bytes} bytes, not {value:#x}"
        )
