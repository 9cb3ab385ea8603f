# pyright: basic
"""The reduce unit's model against sums by hand; the unit itself is held against the model."""

from __future__ import annotations

import numpy as np
import pytest

from ember_hw.compiler.interpreters.reduce import QUIET_NAN, placed_results, reduce_rows
from ember_hw.config import AcceleratorConfig
from ember_hw.errors import DeviceError
from ember_hw.isa import Event, event_bit
from ember_hw.isa.reduce import ReduceOperation, RowFormat

CONFIG = AcceleratorConfig.preset("small")
ITERATE, END, ROOT_END = (
    1 << event_bit(*event, CONFIG) for event in ((Event.ITERATE, 1), (Event.END, 1), (Event.END, 0))
)


def _records(operation=ReduceOperation.SUM, *, scaled=0, columns=2, **header):
    records = {f"row{entry}": {"events": 0} for entry in range(CONFIG.row_entries)}
    step = {"emit_events": 0, "operation": 0, "scaled": 0, "scalar": 0}
    records |= {f"reduce{entry}": dict(step) for entry in range(CONFIG.row_entries)}
    records["reduce"] = dict.fromkeys(
        ("format", "half_scale", "weight_format", "length_source", "length_scalar"), 0
    )
    records["reduce"] |= {"length": 4 * columns, **header}
    records["row0"]["events"] = ITERATE
    records["reduce0"] |= {"emit_events": END, "operation": operation, "scaled": scaled}
    return records


def _run(records, bundles, *rows):
    texts = [np.array(row, np.float32).tobytes() for row in rows]
    return [row.tolist() for row in reduce_rows(records, CONFIG, bundles, texts)]


def _weight(number):
    return int(np.array(number, np.float32).view(np.uint32))


BAGS = [(ITERATE, [0]), (ITERATE | END, [0]), (END, [0]), (ITERATE | END | ROOT_END, [0])]
ROWS = ([1, -2], [3, -5], [-0.0, 7])


def test_bags_are_summed_and_an_empty_one_is_zeros():
    assert _run(_records(), BAGS, *ROWS) == [[4, -7], [0, 0], [0, 7]]
    (result,) = _run(_records(), BAGS[3:], [-0.0, 1])
    assert np.signbit(result[0]) == 0


def test_maximum_begins_below_all_and_is_nan_where_one_is():
    assert _run(_records(ReduceOperation.MAXIMUM), BAGS, *ROWS) == [[3, -2], [0, 0], [0, 7]]
    (result,) = reduce_rows(
        _records(ReduceOperation.MAXIMUM),
        CONFIG,
        BAGS[:2],
        [np.array([np.nan, -np.inf], np.float32).tobytes()] * 2,
    )
    assert result.view(np.uint32).tolist() == [QUIET_NAN, 0xFF800000]


def test_weights_are_scalars():
    bundles = [(ITERATE, [_weight(0.5)]), (ITERATE | END, [_weight(-2)])]
    assert _run(_records(scaled=1), bundles, *ROWS[:2]) == [[-5.5, 9]]


def test_copy_keeps_every_bit():
    row = np.array([0xFFC12345, 0x80000000], np.uint32)
    (result,) = reduce_rows(
        _records(ReduceOperation.COPY), CONFIG, BAGS[1:2], [row.view(np.float32).tobytes()]
    )
    assert result.view(np.uint32).tolist() == row.tolist()


def test_request_begins_with_an_empty_accumulator():
    records = _records()
    records["reduce0"]["emit_events"] = END
    bundles = [(ITERATE | ROOT_END, [0]), (ITERATE | END, [0])]
    assert _run(records, bundles, *ROWS[:2]) == [[3, -5]]


@pytest.mark.parametrize(
    ("format", "bits"),
    [(RowFormat.BF16, [0xFFC1, 0x3FC0, 0x0001]), (RowFormat.FP16, [0xFE01, 0x3E00, 0x0001])],
)
def test_rows_are_widened(format, bits):
    records = _records(ReduceOperation.COPY, columns=3, format=format)
    (result,) = reduce_rows(records, CONFIG, BAGS[1:2], [np.array(bits, np.uint16).tobytes()])
    assert result[1] == 1.5
    nan, _, least = result.view(np.uint32).tolist()
    expected = (0xFFC10000, 0x00010000) if format is RowFormat.BF16 else (0xFFC02000, 0x33800000)
    assert (nan, least) == expected


@pytest.mark.parametrize("half_scale", [0, 1])
def test_codes_are_scaled_then_biased(half_scale):
    dtype = np.float16 if half_scale else np.float32
    scale, bias = np.float32(dtype(0.1)), np.float32(dtype(-3.3))
    row = np.array([0.1, -3.3], dtype).tobytes() + bytes([0, 1, 200, 255])
    records = _records(ReduceOperation.COPY, columns=4, format=RowFormat.INT8)
    records["reduce"]["half_scale"] = half_scale
    (result,) = reduce_rows(records, CONFIG, [(ITERATE | END, [0])], [row])
    products = [np.float32(scale * np.float32(code)) for code in (0, 1, 200, 255)]
    assert result.tolist() == [float(np.float32(product + bias)) for product in products]
    with pytest.raises(DeviceError) as caught:
        reduce_rows(records, CONFIG, [(ITERATE | END, [0])], [row[:-1]])
    length = 8 - 4 * half_scale + 4
    assert str(caught.value) == f"a row must be {length} bytes, not {length - 1}"


def test_length_of_a_scalar():
    records = _records(length_source=1, length=0)
    bundles = [(ITERATE | END, [8]), (END, [4])]
    assert _run(records, bundles, *ROWS[:1]) == [[1, -2], [0]]


@pytest.mark.parametrize(
    ("rows", "header", "message"),
    [
        ([[1, 2]], {}, "a row must come for each bundle that takes one, but none is left"),
        ([[1, 2]] * 3, {}, "every row must be taken by a bundle, but 1 are left"),
        ([[1]], {}, "a row must be 8 bytes, not 4"),
        ([], {"length": 6}, "length of a row must be a multiple of 4 up to 8192 bytes, not 6"),
    ],
)
def test_what_does_not_fit_is_refused(rows, header, message):
    with pytest.raises(DeviceError) as caught:
        _run(_records(**header), BAGS[:2], *rows)
    assert str(caught.value) == message


def test_result_of_another_length_is_refused():
    records = _records(length_source=1, length=0)
    with pytest.raises(DeviceError) as caught:
        _run(records, [(ITERATE, [8]), (END, [4])], [1, 2])
    assert str(caught.value) == "a result must be 4 bytes, not 8"


ROW = np.arange(5, dtype=np.float32)


@pytest.mark.parametrize("region_bytes", [84, 96])
def test_results_lie_one_behind_the_other_each_on_a_beat(region_bytes):
    records = {"result": {"base": 4064, "region_bytes": region_bytes}}
    placed = placed_results(records, CONFIG, [ROW, ROW + 1, ROW + 2])
    assert [(at - 4064, content) for at, content in placed] == [
        (0, ROW.tobytes()),
        (32, (ROW + 1).tobytes()),
        (64, (ROW + 2).tobytes()),
    ]


@pytest.mark.parametrize(("region_bytes", "beat"), [(0, 0), (15, 0), (16, 1), (32, 2), (51, 3)])
def test_result_beyond_the_region_is_a_fault(region_bytes, beat):
    records = {"result": {"base": 64, "region_bytes": region_bytes}}
    with pytest.raises(DeviceError) as caught:
        placed_results(records, CONFIG, [ROW, ROW])
    address = 64 + 16 * beat
    assert (caught.value.code, caught.value.address) == (15, address)
    assert str(caught.value) == (
        f"access unit fault RESULT_OUT_OF_BOUNDS (result, address {address:#x}): "
        "a result must lie within the region of results"
    )
