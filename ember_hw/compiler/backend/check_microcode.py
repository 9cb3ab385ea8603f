"""What microcode must hold beyond the ranges of its fields, before it goes to an access unit.

The hardware checks what it can at run time (`registers.FaultCode`); for the rest, alignment and
slots that have no value yet, its behaviour is not defined. So a launch is checked here.
"""

from __future__ import annotations

from ember_hw.config import LINE_BYTES, AcceleratorConfig
from ember_hw.errors import ProgramError
from ember_hw.isa import BoundSource, Microcode, Source


def check_microcode(microcode: Microcode) -> None:
    """Check a program whose addresses and lengths are filled in.

    Raises
    ------
    ProgramError
        The chain of units has a hole or a step of 0, a record selects a slot that has no value
        where it is read, or an address, pitch or length is not aligned.
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
    for r in range(config.row_entries):
        if microcode.get(f"row{r}", "events"):
            _check_row(microcode, f"row{r}")


def _check_unit(microcode: Microcode, path: str) -> None:
    get, config = microcode.records[path], microcode.config
    if not get["step"]:
        raise ProgramError(f"step of {path} must be 1 or more, not 0")
    if get["lower_source"] == Source.SLOT:
        _check_inherited(path, "lower_slot", get["lower_slot"], config)
    if get["upper_source"] == BoundSource.SLOT:
        _check_inherited(path, "upper_slot", get["upper_slot"], config)
    alu = config.streams_per_unit + 1
    if get["pair"]:
        if not microcode.get(f"{path}.stream0", "enable"):
            raise ProgramError(f"stream0 of {path} must be enabled in pair mode; it is not")
        return
    operands = [("alu_a_slot", True), ("alu_b_slot", get["alu_b_source"] == Source.SLOT)]
    for name, is_read in operands:
        if is_read and get[name] == alu:
            raise ProgramError(f"{name} of {path} must not be the ALU's own slot {alu}")


def _check_stream(microcode: Microcode, path: str) -> None:
    get, config = microcode.records[path], microcode.config
    if get["slot"]:
        _check_inherited(path, "slot", get["slot"], config)
    if get["second_enable"]:
        _check_inherited(path, "second_slot", get["second_slot"], config)
    _check_multiple(path, "base", get["base"], LINE_BYTES)
    element_bytes = 1 << get["size"]
    _check_multiple(path, "first", get["first"], element_bytes)
    if get["shift"] < get["size"]:
        raise ProgramError(
            f"shift of {path} must be {get['size']} or more for elements of {element_bytes} bytes, "
            f"not {get['shift']}"
        )
    if get["second_enable"]:
        _check_multiple(path, "second_pitch", get["second_pitch"], element_bytes)


def _check_row(microcode: Microcode, path: str) -> None:
    get, bus_bytes = microcode.records[path], microcode.config.bus_bytes
    if get["base_source"] == Source.IMMEDIATE:
        _check_multiple(path, "base", get["base"], bus_bytes)
    if get["pitch_source"] == Source.IMMEDIATE:
        _check_multiple(path, "pitch", get["pitch"], bus_bytes)
    if get["length_source"] == Source.IMMEDIATE:
        if not get["length"]:
            raise ProgramError(f"length of {path} must be 1 or more, not 0")
        if get["offset_enable"]:
            _check_multiple(path, "length", get["length"], bus_bytes)


def _check_inherited(path: str, name: str, slot: int, config: AcceleratorConfig) -> None:
    first = config.streams_per_unit + 2
    if slot < first:
        allowed = "0 or " if name == "slot" else ""
        raise ProgramError(
            f"{name} of {path} must be {allowed}an inherited value, slot {first} or more, "
            f"not {slot}"
        )


def _check_multiple(path: str, name: str, value: int, unit_bytes: int) -> None:
    if value % unit_bytes:
        raise ProgramError(
            f"{name} of {path} must be a multiple of {unit_bytes} bytes, not {value:#x}"
        )
