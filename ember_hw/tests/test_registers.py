"""The register map has no overlap, and faults are described."""

from __future__ import annotations

import doctest

import pytest

from ember_hw import config, isa, registers
from ember_hw.registers import (
    NO_UNIT,
    Counter,
    FaultCode,
    State,
    describe_fault,
    fault_error,
)


def test_registers_stand_once_in_order_below_the_counters() -> None:
    addresses = [register.address for register in registers.REGISTERS]
    assert addresses == sorted(set(addresses))
    assert all(address % 4 == 0 for address in addresses)
    assert addresses[-1] < registers.ARGUMENTS_ADDRESS
    most_exports = 16
    assert registers.ARGUMENTS_ADDRESS + 4 * most_exports <= registers.COUNTERS_ADDRESS
    names = {
        name for name, value in vars(registers).items() if isinstance(value, registers.Register)
    }
    assert names == {register.name for register in registers.REGISTERS}


def test_register_descriptions_and_access() -> None:
    for register in registers.REGISTERS:
        assert register.description
        assert register.access in ("ro", "rw", "wo")


def test_counters_lie_between_registers_and_microcode() -> None:
    largest = config.AcceleratorConfig(traversal_units=4, streams_per_unit=8, row_entries=8)
    numbers = [*Counter]
    numbers += [registers.stream_counter(k, s, largest) for k in range(4) for s in range(8)]
    numbers += [registers.row_counter(entry, largest) for entry in range(8)]
    assert numbers == list(range(registers.counters(largest)))
    addresses = [registers.counter_address(number) for number in numbers]
    assert addresses == list(range(0x100, 0x100 + 8 * len(numbers), 8))
    assert addresses[-1] + 8 <= registers.MICROCODE_ADDRESS


def test_microcode_window_fills_the_address_space() -> None:
    end = registers.MICROCODE_ADDRESS + 4 * registers.MICROCODE_WORDS
    assert end == 1 << registers.ADDRESS_WIDTH_BITS


def test_magic_spells_its_name() -> None:
    assert registers.MAGIC_VALUE.to_bytes(4, "big") == b"EMBR"


@pytest.mark.parametrize("choices", [State, FaultCode, Counter])
def test_numbers_are_dense(choices: type[State | FaultCode | Counter]) -> None:
    assert [int(choice) for choice in choices] == list(range(len(choices)))


def test_every_choice_has_a_text() -> None:
    assert list(registers.STATE_TEXTS) == list(State)
    assert list(registers.FAULT_TEXTS) == list(FaultCode)
    assert list(registers.COUNTER_TEXTS) == list(Counter)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (
            (FaultCode.INDEX_OUT_OF_RANGE, NO_UNIT, 1, 9),
            "access unit fault INDEX_OUT_OF_RANGE (row entry 1, index 0x9): "
            "an index must be a row of its table",
        ),
        (
            (FaultCode.VALUE_TOO_WIDE, 1, 0, 9),
            "access unit fault VALUE_TOO_WIDE (unit 1, stream 0, low word 0x9): "
            "an 8-byte element must fit in 32 bits, signed",
        ),
        (
            (FaultCode.STREAM_OUT_OF_BOUNDS, 2, 1, 4096),
            "access unit fault STREAM_OUT_OF_BOUNDS (unit 2, stream 1, element 0x1000): "
            "a memory stream must read within its region",
        ),
        (
            (FaultCode.ADDRESS_OVERFLOW, NO_UNIT, 2, 9),
            "access unit fault ADDRESS_OVERFLOW (row entry 2, index 0x9): "
            "an element, or the region of a row, must lie within the address width",
        ),
        (
            (FaultCode.ADDRESS_OVERFLOW, 1, 0, 9),
            "access unit fault ADDRESS_OVERFLOW (unit 1, stream 0, element 0x9): "
            "an element, or the region of a row, must lie within the address width",
        ),
        (
            (FaultCode.ILLEGAL_MICROCODE, NO_UNIT, 0, 0),
            "access unit fault ILLEGAL_MICROCODE: a unit or more must be enabled, outermost first "
            "without a hole, with steps of 1 or more",
        ),
        (
            (FaultCode.READ_DECODE_ERROR, NO_UNIT, 0, 64),
            "access unit fault READ_DECODE_ERROR (row entry 0, address 0x40): "
            "memory answered DECERR: no memory at this address",
        ),
        (
            (FaultCode.WRITE_DECODE_ERROR, NO_UNIT, 0, 64),
            "access unit fault WRITE_DECODE_ERROR (result, address 0x40): "
            "memory answered DECERR to a write of results: no memory at this address",
        ),
        (
            (FaultCode.MEMORY_STALLED, NO_UNIT, 0, 0),
            "access unit fault MEMORY_STALLED: memory must answer within WATCHDOG cycles",
        ),
        (
            (FaultCode.ABORTED, 0, 0, 0),
            "access unit fault ABORTED: the host aborted the program",
        ),
    ],
)
def test_fault_in_words(arguments: tuple[FaultCode, int, int, int], expected: str) -> None:
    assert describe_fault(*arguments) == expected


def test_every_fault_has_a_kind_of_address_where_it_can_occur() -> None:
    assert list(registers.FAULT_ADDRESS_KINDS) == list(FaultCode)
    for code, kinds in registers.FAULT_ADDRESS_KINDS.items():
        assert kinds is None or any(kinds), code


def test_a_fault_of_several_requests_tells_how_many_had_ended() -> None:
    one = fault_error(FaultCode.ABORTED, completed=0, requests=1)
    assert (str(one), one.completed) == (
        "access unit fault ABORTED: the host aborted the program",
        0,
    )
    error = fault_error(FaultCode.ABORTED, completed=3, requests=8)
    assert str(error) == f"{one}; 3 of 8 requests had ended before"
    assert (error.code, error.completed) == (FaultCode.ABORTED, 3)


@pytest.mark.parametrize("module", [config, isa, registers])
def test_examples(module: object) -> None:
    result = doctest.testmod(module)  # type: ignore[arg-type]
    assert result.failed == 0
