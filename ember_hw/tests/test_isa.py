"""Microcode: layouts, words and text of every config."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ember_hw.config import PRESETS, AcceleratorConfig
from ember_hw.errors import AssemblyError
from ember_hw.isa import (
    ISA_VERSION,
    AluOperation,
    BoundSource,
    Event,
    FieldKind,
    Hint,
    Microcode,
    Source,
    assemble,
    check_field,
    disassemble,
    event_bit,
    event_mask,
    layouts,
    microcode_words,
)
from ember_hw.registers import MICROCODE_WORDS
from ember_hw.tests.test_config import configs

TINY = PRESETS["tiny"]
PATHS = (
    "header, unit0, unit0.stream0, unit0.stream1, unit1, unit1.stream0, unit1.stream1, "
    "unit2, unit2.stream0, unit2.stream1, row0, row1, issue"
)
LARGEST = AcceleratorConfig(
    address_width_bits=56,
    traversal_units=4,
    streams_per_unit=8,
    row_entries=8,
    exports=16,
    bundle_scalars=8,
    execute="reduce",
)


@st.composite
def programs(draw: st.DrawFn) -> Microcode:
    """Any field values that records can hold, for any config."""
    config = draw(configs())
    records: dict[str, dict[str, int]] = {}
    for path, layout in layouts(config).items():
        records[path] = {}
        for field in draw(st.sets(st.sampled_from(layout.fields), max_size=4)):
            records[path][field.name] = draw(st.integers(field.least, field.most))
    return Microcode(config, records)


def message(text: str, config: AcceleratorConfig = TINY) -> str:
    with pytest.raises(AssemblyError) as raised:
        assemble(text, config)
    return str(raised.value)


# Layouts


@given(configs())
def test_records_follow_each_other_without_overlap(config: AcceleratorConfig) -> None:
    word = 0
    for path, layout in layouts(config).items():
        assert (layout.path, layout.first_word) == (path, word)
        assert 32 * (layout.words - 1) < layout.width_bits <= 32 * layout.words
        names = [field.name for field in layout.fields]
        assert len(set(names)) == len(names)
        word += layout.words
    assert microcode_words(config) == word


def test_the_largest_config_fits_in_the_window() -> None:
    assert microcode_words(LARGEST) <= MICROCODE_WORDS


def test_every_unit_has_its_streams_behind_it() -> None:
    assert ", ".join(layouts(TINY)) == PATHS


@given(configs())
def test_fields_hold_what_they_select(config: AcceleratorConfig) -> None:
    known = layouts(config)
    assert known["unit0"].field("lower_export").most == config.exports - 1
    assert known["unit0"].field("alu_a_slot").most == config.streams_per_unit
    assert known["unit0"].field("alu_b_slot").most == config.slots - 1
    assert known["unit0"].field("export0").most == config.streams_per_unit + 2
    assert known["unit0.stream0"].field("base").most == (1 << config.address_width_bits) - 1
    assert known["row0"].field("index_export").most == config.exports - 1
    assert known["row0"].field("base").most == (1 << config.address_width_bits) - 1
    assert known["header"].field("outstanding_reads").most == config.outstanding_reads
    assert known["issue"].field("events").most == (1 << config.events) - 1
    if config.execute == "reduce":
        assert known["reduce0"].field("scalar").most == config.bundle_scalars - 1
    assert ("result" in known) == (config.results == "memory")
    for layout in known.values():
        for field in layout.fields:
            assert field.description
            chooses_among_one = "scalar" in field.name and config.bundle_scalars == 1
            assert field.least <= 0 < field.most + chooses_among_one
            signed = field.kind is FieldKind.SIGNED
            assert field.most < 1 << (field.width_bits - signed)
            assert (field.kind is FieldKind.ENUM) == (field.choices is not None)


def test_field_widths_are_those_of_the_design() -> None:
    widths = {
        ("unit0", "step"): 16,
        ("unit0", "lower_immediate"): 32,
        ("unit0.stream0", "elements"): 32,
        ("unit0.stream0", "first"): 32,
        ("unit0.stream0", "outer_pitch"): 17,
        ("row0", "region_bytes"): 40,
        ("row0", "offset_size"): 2,
        ("row0", "pitch"): 20,
        ("row0", "length"): 16,
        ("row0", "rows"): 32,
        ("row0", "clip"): 17,
    }
    for (path, name), width_bits in widths.items():
        assert layouts(TINY)[path].field(name).width_bits == width_bits


def test_unknown_field_is_refused() -> None:
    with pytest.raises(AssemblyError) as raised:
        layouts(TINY)["header"].field("size")
    assert str(raised.value) == (
        "field of record 'header' must be one of version, outstanding_reads, not 'size'"
    )


def test_event_bits_are_event_major() -> None:
    levels = range(TINY.traversal_units)
    bits = [event_bit(event, level, TINY) for event in Event for level in levels]
    assert bits == list(range(TINY.events))
    assert event_mask([(Event.BEGIN, 0), (Event.END, 2)], TINY) == 0b100_000_001


# Records


def test_missing_fields_are_zero_and_the_version_is_this_one() -> None:
    microcode = Microcode(TINY, {"unit1": {"step": 3}})
    assert microcode.get("header", "version") == ISA_VERSION
    assert microcode.get("unit1", "step") == 3
    values = {(p, n): v for p, record in microcode.records.items() for n, v in record.items()}
    assert {key for key, value in values.items() if value} == {
        ("header", "version"),
        ("unit1", "step"),
    }


def test_a_given_version_is_kept() -> None:
    assert Microcode(TINY, {"header": {"version": 0}}).get("header", "version") == 0


def test_unknown_record_is_refused() -> None:
    with pytest.raises(AssemblyError) as raised:
        Microcode(TINY, {"unit3": {}})
    assert str(raised.value) == f"record must be one of {PATHS}, not 'unit3'"


@pytest.mark.parametrize("value", [-1, 1 << 16, 1.0, True, "1", None])
def test_value_out_of_range_is_refused(value: Any) -> None:
    expected = f"field 'step' of record 'unit0' must be an integer from 0 to 65535, not {value!r}"
    with pytest.raises(AssemblyError) as raised:
        Microcode(TINY, {"unit0": {"step": value}})
    assert str(raised.value) == expected
    with pytest.raises(AssemblyError) as raised:
        check_field(layouts(TINY)["unit0"], "step", value)
    assert str(raised.value) == expected


@given(configs(), st.data())
def test_every_field_takes_its_limits_and_no_more(
    config: AcceleratorConfig, data: st.DataObject
) -> None:
    layout = data.draw(st.sampled_from(list(layouts(config).values())))
    field = data.draw(st.sampled_from(layout.fields))
    for value in (field.least, field.most):
        microcode = Microcode(config).with_field(layout.path, field.name, value)
        assert Microcode.decode(microcode.encode(), config).get(layout.path, field.name) == value
    for value in (field.least - 1, field.most + 1):
        with pytest.raises(AssemblyError) as raised:
            Microcode(config).with_field(layout.path, field.name, value)
        assert str(raised.value) == (
            f"field {field.name!r} of record {layout.path!r} must be an integer "
            f"from {field.least} to {field.most}, not {value}"
        )


def test_changes_leave_the_original_alone() -> None:
    before = Microcode(TINY)
    after = before.with_fields({("unit0", "step"): 2, ("row1", "pitch"): 64})
    assert (before.get("unit0", "step"), before.get("row1", "pitch")) == (0, 0)
    assert (after.get("unit0", "step"), after.get("row1", "pitch")) == (2, 64)


# Words


@given(programs())
def test_words_round_trip(microcode: Microcode) -> None:
    words = microcode.encode()
    assert len(words) == microcode_words(microcode.config)
    assert all(0 <= word < 1 << 32 for word in words)
    again = Microcode.decode(words, microcode.config)
    assert again == microcode
    assert again.encode() == words


def test_fields_follow_from_bit_0() -> None:
    record = {"enable": 1, "pair": 0, "lower_source": Source.SLOT, "lower_export": 3}
    record |= {"lower_immediate": -2, "upper_source": BoundSource.LOWER_PLUS}
    words = Microcode(TINY, {"unit0": record}).encode()
    first = layouts(TINY)["unit0"].first_word
    bits = words[first] | words[first + 1] << 32
    # enable 1, pair 1, source 1, export 2, immediate 32, source 2.
    assert bits == 0b1 | 0b100 | 3 << 3 | 0xFFFF_FFFE << 5 | 2 << 37


def test_number_of_words_is_checked() -> None:
    with pytest.raises(AssemblyError) as raised:
        Microcode.decode([0], TINY)
    expected = microcode_words(TINY)
    assert str(raised.value) == f"microcode must be {expected} words for config 'tiny', not 1"


@pytest.mark.parametrize("word", [-1, 1 << 32])
def test_words_are_32_bits(word: int) -> None:
    words = [0] * microcode_words(TINY)
    words[4] = word
    with pytest.raises(AssemblyError) as raised:
        Microcode.decode(words, TINY)
    assert str(raised.value) == f"microcode word 4 must be 32 bits, not {word}"


def test_padding_is_zero() -> None:
    words = [0] * microcode_words(TINY)
    words[0] = 1 << 31
    with pytest.raises(AssemblyError) as raised:
        Microcode.decode(words, TINY)
    assert str(raised.value) == "padding of record 'header' must be 0, not 0x2000"


def test_decoded_values_are_checked() -> None:
    words = Microcode(TINY, {"unit0": {"upper_source": 0}}).encode()
    words[layouts(TINY)["unit0"].first_word + 1] |= 3 << 5
    with pytest.raises(AssemblyError) as raised:
        Microcode.decode(words, TINY)
    assert str(raised.value) == (
        "field 'upper_source' of record 'unit0' must be an integer from 0 to 2, not 3"
    )


# Text


@given(programs())
@settings(max_examples=50)
def test_text_round_trip(microcode: Microcode) -> None:
    text = disassemble(microcode)
    assert assemble(text, microcode.config) == microcode
    assert disassemble(assemble(text, microcode.config)) == text


def test_text_names_choices_and_events() -> None:
    microcode = Microcode(
        TINY,
        {
            "unit0": {"enable": 1, "step": 1, "upper_immediate": -3, "alu_operation": 2},
            "unit0.stream0": {"base": 0x1000, "size": 3, "source": 1},
            "row1": {
                "region_bytes": 64,
                "events": event_mask([(Event.ITERATE, 1), (Event.BEGIN, 0)], TINY),
            },
        },
    )
    text = (
        "header: version=3\n"
        "unit0: enable=1 upper_immediate=-3 step=1 alu_operation=mul\n"
        "unit0.stream0: source=queue size=bytes_8 base=0x1000\n"
        "row1: events=beg0|ite1 region_bytes=0x40\n"
    )
    assert disassemble(microcode) == text
    assert assemble(f"; a comment\n\n{text}", TINY) == microcode
    assert AluOperation(microcode.get("unit0", "alu_operation")) is AluOperation.MUL


@pytest.mark.parametrize("line", ["unit9: enable=1", "unit9"])
def test_text_with_unknown_record(line: str) -> None:
    expected = f"line 2: record must be one of {PATHS}, not 'unit9'"
    assert message(f"unit0: enable=1\n{line}") == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("issue:\nissue:", "line 2: record 'issue' must stand once, not twice"),
        ("unit0: enable", "line 1: item must be field=value, not 'enable'"),
        ("unit0: step=1 step=2", "line 1: field 'step' must stand once, not twice"),
        ("row0: hint=hot", "line 1: hint must be one of none, non_temporal, keep, not 'hot'"),
        ("unit0: step=one", "line 1: step must be an integer, not 'one'"),
        (
            "header: size=1",
            "field of record 'header' must be one of version, outstanding_reads, not 'size'",
        ),
        (
            "issue: events=ite3",
            "line 1: event must be beg, ite or end with a level below 3, not 'ite3'",
        ),
        (
            "issue: events=ite0|top",
            "line 1: event must be beg, ite or end with a level below 3, not 'top'",
        ),
        (
            "unit0: step=65536",
            "field 'step' of record 'unit0' must be an integer from 0 to 65535, not 65536",
        ),
    ],
)
def test_illegal_text(text: str, expected: str) -> None:
    assert message(text) == expected


def test_hints_are_read() -> None:
    assert assemble("row0: hint=keep", TINY).get("row0", "hint") == Hint.KEEP


def test_reduce_unit_has_records_of_its_own() -> None:
    config = TINY.with_changes(execute="reduce")
    assert ", ".join(layouts(config)) == f"{PATHS}, reduce, reduce0, reduce1"
    text = (
        "header: version=3\n"
        "reduce: format=bf16 length=128\n"
        "reduce0: emit_events=end1 operation=sum scaled=1 scalar=3\n"
        "reduce1: emit_events=end0|end1 operation=maximum\n"
    )
    assert disassemble(assemble(text, config)) == text
