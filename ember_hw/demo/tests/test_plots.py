from __future__ import annotations

from pathlib import Path

from ember_hw.demo import plots
from ember_hw.demo.tests.results import a_report, a_result


def test_picture_is_a_png_of_some_size(tmp_path: Path) -> None:
    path = tmp_path / "demo.png"
    plots.draw(a_result(), path)
    content = path.read_bytes()
    assert content.startswith(b"\x89PNG")
    assert int.from_bytes(content[16:20]) == 1800  # width in pixels
    assert len(content) > 20_000


def test_every_cycle_has_its_bar() -> None:
    report = a_report(
        row_beats=900, index_beats=50, cycles=1000, stalls={"memory": 30, "front": 20}
    )
    counts = plots.cycle_counts(report)
    assert counts == {
        "row beats": 900,
        "index beats": 50,
        "no beat: memory\nreads are in flight, nothing else to ask for": 30,
        "no beat: front\nthe loops are filling or draining": 20,
    }
    assert sum(counts.values()) == report.cycles
