"""The demo's picture: where the cycles went, and how full the queues became."""

from __future__ import annotations

from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from ember_hw.demo.run import ROW_BYTES, DemoResult
from ember_hw.host.report import HIGH_WATER, STALLS, Report

ROWS, INDICES, WAIT, QUEUE = "#1b7f79", "#7fb8ad", "#c8553d", "#4a6fa5"


def draw(result: DemoResult, path: Path) -> None:
    """Write the picture of one run to a PNG file."""
    report = result.report
    figure = Figure(figsize=(12, 6), layout="constrained")
    FigureCanvasAgg(figure)
    figure.suptitle(
        f"{report.lookups:,} lookups of MovieLens-100K in {report.cycles:,} cycles: "
        f"{100 * (report.utilisation or 0):.1f} % of the {8 * report.bus_bytes}-bit memory port\n",
        fontsize=14,
    )
    figure.supxlabel(
        f"\nsimulated, not measured on silicon  ·  memory: {report.memory}  ·  "
        f"execute side: {report.sink}  ·  opt level {result.opt_level}  ·  seed {report.seed}\n"
        f"{(report.lookups_per_second or 0) / 1e6:.1f} million lookups/s at a stated clock of "
        f"{report.clock_mhz:g} MHz  ·  {ROW_BYTES} bytes a row  ·  config {report.config}",
        fontsize=9,
        color="0.35",
    )
    cycles, queues = figure.subplots(1, 2, width_ratios=(3, 2))
    _draw_cycles(cycles, report)
    _draw_queues(queues, result)
    figure.savefig(path, dpi=150)


def cycle_counts(report: Report) -> dict[str, int]:
    """Return the cycles by what happened in them: a beat arrived, or why none did."""
    beats = {
        "row beats": report.row_beats,
        "index beats": report.index_beats or 0,
    }
    return beats | {
        f"no beat: {_words(name)}\n{STALLS[name][1]}": count
        for name, count in report.stalls.items()
    }


def _draw_cycles(axes: Axes, report: Report) -> None:
    counts = cycle_counts(report)
    shares = [100 * count / (report.cycles or 1) for count in counts.values()]
    bars = axes.barh(list(counts), shares, color=[ROWS, INDICES] + [WAIT] * len(report.stalls))
    labels = [f"{share:.2f} %  ({n:,})" for share, n in zip(shares, counts.values(), strict=True)]
    axes.bar_label(bars, labels, padding=4, fontsize=9)
    axes.set(
        title="Where the cycles went",
        xlabel="share of all cycles, start to done (%); cycles in brackets",
    )
    _tidy(axes)


def _draw_queues(axes: Axes, result: DemoResult) -> None:
    marks = result.report.high_water
    shares = [100 * most / result.capacities[name] for name, most in marks.items()]
    names = [f"{_words(name)}\n{HIGH_WATER[name][1]}" for name in marks]
    axes.barh(names, [100] * len(names), color="0.93")
    bars = axes.barh(names, shares, color=QUEUE)
    labels = [f"{most} of {result.capacities[name]}" for name, most in marks.items()]
    axes.bar_label(bars, labels, padding=4, fontsize=9)
    axes.set(
        title="High-water marks of the queues", xlabel="most entries at one time (% of capacity)"
    )
    _tidy(axes)


def _words(name: str) -> str:
    return name.replace("_", " ")


def _tidy(axes: Axes) -> None:
    axes.set(xlim=(0, 140), xticks=range(0, 101, 20))
    axes.tick_params(axis="y", labelsize=8.5)
    axes.invert_yaxis()
    axes.spines[["top", "right"]].set_visible(False)
