from __future__ import annotations

from collections import Counter as Tally
from pathlib import Path

import pytest

from cocotb_tests.coverage.points import Point, points_of, read_counts

_VERILOG = [
    "module access_unit (clk);",
    "    if (\\$auto$verilog_backend.cc:2355:dump_module$1 ) begin end",
    "    if (rst) begin",
]


def _record(page: str, line: int, comment: str, count: int) -> str:
    fields = {"f": "access_unit.v", "l": line, "page": page, "o": comment, "h": "TOP"}
    parts = "".join("\1" + key + "\2" + str(value) for key, value in fields.items())
    return f"C '{parts}' {count}"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "coverage.dat"
    records = [
        _record("v_line/access_unit", 2, "if", 0),
        _record("v_branch/access_unit", 3, "if", 4),
        _record("v_branch/access_unit", 3, "else", 0),
        _record("v_toggle/access_unit.unit.store0$12", 1, "beat[3]:0->1", 1),
        _record("v_toggle/access_unit.unit.store0$12", 1, "beat[3]:1->0", 2),
        _record("v_toggle/access_unit", 1, "irq:0->1", 1),
        _record("v_toggle/access_unit", 1, "irq:1->0", 0),
        _record("v_toggle/access_unit", 1, "__02417[2]:0->1", 0),
        _record("v_toggle/simulation_top", 1, "clk:0->1", 9),
    ]
    path.write_text("# SystemC::Coverage-3\n" + "\n".join(records) + "\n")
    return path


def test_points_of_the_access_unit_are_found(file: Path) -> None:
    assert dict(points_of(read_counts(file), _VERILOG)) == {
        Point("line", "", "3 if: if (rst) begin"): True,
        Point("line", "", "3 else: if (rst) begin"): False,
        Point("toggle", "unit.store0", "beat[3]"): True,
        Point("toggle", "", "irq"): False,
    }


def test_counts_of_runs_add_up(file: Path) -> None:
    counts = read_counts(file)
    other = Tally({key: 1 for key in counts})
    counts.update(other)
    assert dict(points_of(counts, _VERILOG))[Point("toggle", "", "irq")]


def test_file_of_something_else_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "coverage.dat"
    path.write_text("lines: 12\n")
    message = f"{path} must be a coverage file of Verilator, not 'lines: 12'"
    with pytest.raises(ValueError, match=f"^{message}$"):
        read_counts(path)
    path.write_text("# SystemC::Coverage-3\nC something\n")
    message = f"{path}, line 2 must be a record, not 'C something'"
    with pytest.raises(ValueError, match=f"^{message}$"):
        read_counts(path)


def test_toggle_without_a_direction_is_refused() -> None:
    counts = Tally({("v_toggle", "access_unit", "1", "irq"): 1})
    message = "a toggle must end with one of :0->1, :1->0, not 'irq'"
    with pytest.raises(ValueError, match=f"^{message}$"):
        list(points_of(counts, _VERILOG))
