"""Bound microcode that hardware does not define is refused, with the whole text."""

from __future__ import annotations

import pytest

from ember_hw.compiler.backend.check_microcode import check_microcode
from ember_hw.config import AcceleratorConfig
from ember_hw.errors import ProgramError
from ember_hw.isa import Microcode

CONFIG = AcceleratorConfig(name="test", data_width_bits=128)
Records = dict[str, dict[str, int]]

LEGAL: Records = {
    "unit0": {"enable": 1, "step": 1, "pair": 1},
    "unit0.stream0": {"enable": 1, "size": 3, "base": 64, "first": 1},
    "unit1": {"enable": 1, "step": 1, "export1": 3},
    "unit1.stream1": {"enable": 1, "base": 128},
    "row1": {"events": 1, "base": 16, "pitch": 32, "length": 40},
}


def changed(**changes: dict[str, int]) -> Microcode:
    records = {path: dict(fields) for path, fields in LEGAL.items()}
    for path, fields in changes.items():
        records.setdefault(path, {}).update(fields)
    return Microcode(CONFIG, records)


def test_legal_microcode_passes() -> None:
    check_microcode(changed())


@pytest.mark.parametrize(
    "changes",
    [
        {"unit2.stream0": {"enable": 1, "base": 1}},  # of a unit that is not enabled
        {"unit0.stream1": {"base": 1}},
        {"row0": {"base": 1}},
        {"row1": {"pitch": 1, "pitch_source": 1}},
        {"row1": {"length": 0}},  # the hardware finds it
        {"row1": {"length": 40, "length_source": 1, "offset_enable": 1}},
    ],
)
def test_what_is_not_read_is_not_checked(changes: Records) -> None:
    check_microcode(changed(**changes))


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        (
            {"unit0": {"enable": 0}},
            "units must be enabled outermost first, without a hole, not unit1",
        ),
        (
            {"unit0": {"enable": 0}, "unit1": {"enable": 0}},
            "units must be enabled outermost first, without a hole, not none",
        ),
        (
            {"unit1": {"enable": 0}, "unit2": {"enable": 1}},
            "units must be enabled outermost first, without a hole, not unit0, unit2",
        ),
        ({"unit1": {"step": 0}}, "step of unit1 must be 1 or more, not 0"),
        (
            {"unit0.stream0": {"enable": 0}},
            "stream0 of unit0 must be enabled in pair mode; it is not",
        ),
        (
            {"unit2": {"export1": 2}},
            "export1 of unit2 must be 0, as the unit is not enabled, not 2",
        ),
        (
            {"unit0.stream0": {"base": 32}},
            "base of unit0.stream0 must be a multiple of 64 bytes, not 0x20",
        ),
        (
            {"unit0.stream0": {"source": 1}},
            "source of unit0.stream0 must be memory, not the input queue: config 'test' has none",
        ),
        ({"row1": {"base": 8}}, "base of row1 must be a multiple of 16 bytes, not 0x8"),
        ({"row1": {"pitch": 40}}, "pitch of row1 must be a multiple of 16 bytes, not 0x28"),
        (
            {"row1": {"offset_enable": 1}},
            "length of row1 must be a multiple of 16 bytes, not 0x28",
        ),
    ],
)
def test_undefined_microcode_is_refused(changes: Records, expected: str) -> None:
    with pytest.raises(ProgramError) as raised:
        check_microcode(changed(**changes))
    assert str(raised.value) == expected
