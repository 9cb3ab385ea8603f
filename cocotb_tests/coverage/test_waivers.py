from __future__ import annotations

import pytest

from cocotb_tests.coverage import waivers
from cocotb_tests.coverage.points import Point

_TEXT = """\
# Ports.
toggle  -  m_axi_ar(size|burst)(\\[\\d\\])?
    constant: whole beats,
    one behind the other
line  unit\\.reads  \\d+ else
"""


def test_waiver_takes_what_matches_whole() -> None:
    known = waivers.read_waivers(_TEXT.replace("line  unit\\.reads  \\d+ else\n", ""))
    size, length = Point("toggle", "", "m_axi_arsize[1]"), Point("toggle", "", "m_axi_arlen[1]")
    inner = Point("toggle", "unit", "m_axi_arsize[1]")
    assert waivers.apply(known, [size, length, inner]) == [length, inner]
    assert known[0].matched == [size]
    assert known[0].reason == "constant: whole beats, one behind the other"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("    why\n", "line 1 must be a waiver, not a reason"),
        ("toggle irq\n", "line 1 must be kind, block and name, not 'toggle irq'"),
        ("toggle - irq\n", "waiver of 'irq' in '' must have a reason"),
    ],
)
def test_waiver_that_is_none_is_refused(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}$"):
        waivers.read_waivers(text)


def test_file_of_waivers_is_legal() -> None:
    waivers.read_waivers(waivers.FILE.read_text())
