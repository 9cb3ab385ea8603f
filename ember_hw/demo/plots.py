"""The demo's picture: where the cycles went, and how full the queues became."""

from __future__ import annotations

from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from ember_hw.demo.run import DemoResult
from ember_hw.host.report import Report

ROWS, INDICES, WAIT, QUEUE = "#1b7f79", "#7fb8ad", "#c8553d", "#4a6fa5"


def draw(result: DemoResult, path: Path) -> None:
    """Write the picture of one run to a PNG file."""
    report = result.report
    figure = Figure(figsize=(11, 5.2), layout="constrained")
    FigureCanvasAgg(figure)
    figure.suptitle(
        f"{report.lookups:,} lookups of MovieLens-100K in {report.cycles:,} cycles: "
        f"{100 * (report.utilisation or 0):.1f} % of the memory port\n",
        fontsize=13,
    )
    figure.supxlabel(
        f"simulated · memory {report.memory} · execute side {report.sink} · "
        f"{8 * report.bus_bytes}-bit port · "
        f"{(report.lookups_per_second or 0) / 1e6:.1f} M lookups/s at {report.clock_mhz:g} MHz · "
        f"seed {result.seed}",
        fontsize=9,
        color="0.35",
    )
    cycles, queues = figure.subplots(1, 2, width_ratios=(3, 2))
    _draw_cycles(cycles, report)
    _draw_queues(queues, result)
    figure.savefig(path, dpi=150)


def cycle_counts(report: Report) -> dict[str, int]:
    """Return the cycles by what happened in them: a beat arrived, or why none did."""
    beats = {"beat of rows": report.row_beats, "beat of indices": report.index_beats or 0}
    return beats | {f"stall: {_words(name)}": count for name, count in report.stalls.items()}


def _draw_cycles(axes: Axes, report: Report) -> None:
    counts = cycle_counts(report)
    shares = [100 * count / (report.cycles or 1) for count in counts.values()]
    bars = axes.barh(list(counts), shares, color=[ROWS, INDICES] + [WAIT] * len(report.stalls))
    labels = [f"{share:.2f} %  ({n:,})" for share, n in zip(shares, counts.values(), strict=True)]
    axes.bar_label(bars, labels, padding=4, fontsize=9)
    axes.set(
        title="Where the cycles went", xlabel="share of cycles, start to done (%)", xlim=(0, 135)
    )
    axes.set_xticks(range(0, 101, 20))
    _tidy(axes)


def _draw_queues(axes: Axes, result: DemoResult) -> None:
    marks = result.report.high_water
    shares = [100 * most / result.capacities[name] for name, most in marks.items()]
    names = [_words(name) for name in marks]
    axes.barh(names, [100] * len(names), color="0.93")
    bars = axes.barh(names, shares, color=QUEUE)
    labels = [f"{most} of {result.capacities[name]}" for name, most in marks.items()]
    axes.bar_label(bars, labels, padding=4, fontsize=9)
    axes.set(title="High-water marks", xlabel="most entries at one time (% of capacity)")
    axes.set_xlim(0, 135)
    axes.set_xticks(range(0, 101, 20))
    _tidy(axes)


def _words(name: str) -> str:
    return name.replace("_", " ")


def _tidy(axes: Axes) -> None:
    axes.invert_yaxis()
    axes.spines[["top", "right"]].set_visible(False)
