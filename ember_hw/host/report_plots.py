"""Pictures of a report: where the cycles went, a roofline, full queues, reuse of the reads."""

# matplotlib leaves keywords untyped, which strict takes for unknown.
# pyright: basic

from __future__ import annotations

from collections.abc import Callable, Sequence
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure, SubFigure
from matplotlib.ticker import FuncFormatter, PercentFormatter

from ember_hw.host.profile import Occupancy
from ember_hw.host.report import HIGH_WATER, LIMITS, STALLS, Report

#: Colours by what they stand for. Each is another one, so that a page can put its own in place.
COLOURS = {
    "ink": "#22272e",
    "faint": "#6b7480",
    "grid": "#d9dee3",
    "surface": "#ffffff",
    "rows": "#1b7f79",
    "indices": "#74b5aa",
    "wait": "#c8553d",
    "queue": "#4a6fa5",
    "mark": "#d08c1d",
}
_STYLE: Any = {
    "axes.axisbelow": True,
    "axes.edgecolor": COLOURS["faint"],
    "axes.facecolor": COLOURS["surface"],
    "axes.labelcolor": COLOURS["ink"],
    "axes.labelsize": 9,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlesize": 11,
    "figure.facecolor": COLOURS["surface"],
    "font.size": 9,
    "grid.color": COLOURS["grid"],
    "legend.frameon": False,
    "savefig.facecolor": COLOURS["surface"],
    "svg.fonttype": "path",  # the same letters wherever the page is opened
    "svg.hashsalt": "ember_hw",
    "text.color": COLOURS["ink"],
    "xtick.color": COLOURS["faint"],
    "xtick.labelcolor": COLOURS["ink"],
    "ytick.color": COLOURS["faint"],
    "ytick.labelcolor": COLOURS["ink"],
}
#: Bars of a queue's picture at most.
_MOST_BARS = 64
_Drawer = Callable[[SubFigure, Report], None]


def pictures(report: Report) -> dict[str, _Drawer]:
    """Return what a report has the numbers for, by name: none without a clock."""
    drawers: dict[str, _Drawer] = {}
    if not report.cycles:
        return drawers
    drawers["cycles"] = _draw_cycles
    if report.moved_bytes:
        drawers["roofline"] = _draw_roofline
    if report.profile is not None:
        drawers["occupancy"] = _draw_occupancy
        if report.profile.reuse is not None:
            drawers["reuse"] = _draw_reuse
    return drawers


def draw_png(report: Report, path: Path) -> None:
    """Write all pictures of a report to one PNG file.

    Raises
    ------
    ValueError
        The report has no cycles, so there is nothing to draw.
    """
    drawers = pictures(report)
    if not drawers:
        raise ValueError(
            f"a picture must be of a run with a clock, not of backend {report.backend!r}"
        )
    rows = -(-len(drawers) // 2)
    with rc_context(_STYLE):
        figure = Figure(figsize=(15, 5.4 * rows + 1), layout="constrained")
        FigureCanvasAgg(figure)
        figure.suptitle(f"{headline(report)}\n", fontsize=14)
        figure.supxlabel(f"\n{footnote(report)}", fontsize=9, color=COLOURS["faint"])
        parts: Any = figure.subfigures(rows, 2, wspace=0.03, hspace=0.04, squeeze=False)
        for part, draw in zip(parts.flat, drawers.values(), strict=False):
            draw(part, report)
        figure.savefig(path, dpi=110)


def draw_svg(report: Report, name: str) -> str:
    """Return one of `pictures` as an SVG element with the colours of `COLOURS`."""
    with rc_context({**_STYLE, "svg.hashsalt": name}):
        figure = Figure(figsize=(7.4, 4.8), layout="constrained")
        part: Any = figure.subfigures(1, 1)
        pictures(report)[name](part, report)
        text = StringIO()
        figure.savefig(text, format="svg", metadata={"Date": None}, transparent=True)
    svg = text.getvalue()
    return svg[svg.index("<svg") :]


def headline(report: Report) -> str:
    """Return a run in a sentence."""
    done = "" if report.lookups is None else f"{report.lookups:,} lookups, "
    share = "" if report.utilisation is None else f", {report.utilisation:.1%} of the memory port"
    cycles = "no clock" if report.cycles is None else f"{report.cycles:,} cycles{share}"
    return f"{report.program}: {done}{cycles}"


def footnote(report: Report) -> str:
    """Return what every number of a run depends on."""
    seed = "unknown" if report.seed is None else report.seed
    memory = report.memory.partition(";")[0].removesuffix(")") + ")" * ("(" in report.memory)
    return (
        f"simulated, not measured on silicon  ·  memory: {memory}  ·  execute side: {report.sink}"
        f"  ·  config {report.config} ({8 * report.bus_bytes} bits)  ·  "
        f"{report.clock_mhz:g} MHz (stated)  ·  seed {seed}"
    )


def _draw_cycles(figure: SubFigure, report: Report) -> None:
    went, bounds = figure.subplots(
        2, 1, height_ratios=(8, max(2.6, len(report.limits))), gridspec_kw={"hspace": 0.12}
    )
    counts = {"row beats": report.row_beats, "index beats": report.index_beats or 0}
    waits = {f"no beat: {STALLS[name][1]}": n for name, n in report.stalls.items()}
    colours = [COLOURS["rows"], COLOURS["indices"], *[COLOURS["wait"]] * len(waits)]
    _draw_shares(went, counts | waits, report, colours)
    went.set_title("Where the cycles went, start to done")
    limits = {LIMITS[name]: cycles for name, cycles in report.limits.items()}
    _draw_shares(bounds, limits, report, [COLOURS["queue"]] * len(limits))
    bounds.set_title("What takes at least so many of them")


def _draw_shares(
    axes: Axes, counts: dict[str, int], report: Report, colours: Sequence[str]
) -> None:
    cycles = report.cycles or 1
    shares = [100 * count / cycles for count in counts.values()]
    bars = axes.barh(list(counts), shares, color=colours)
    labels = [f"{share:.1f} %  ({n:,})" for share, n in zip(shares, counts.values(), strict=True)]
    axes.bar_label(bars, labels, padding=4, fontsize=8)
    axes.set(xlim=(0, 145), xticks=range(0, 101, 25))
    axes.xaxis.set_major_formatter(PercentFormatter(decimals=0))
    axes.tick_params(axis="y", labelsize=8, length=0)
    axes.tick_params(axis="x", labelsize=8)
    axes.invert_yaxis()
    axes.spines["bottom"].set_bounds(0, 100)


def _draw_roofline(figure: SubFigure, report: Report) -> None:
    axes = figure.subplots()
    work, unit = _work(report)
    cycles, moved, limits = report.cycles or 1, report.moved_bytes or 1, report.limits
    rate = work * report.clock_mhz * 1e6
    intensity = work / moved
    x = np.array([intensity / 8, intensity * 8])
    bandwidths = {
        "port": (report.bus_bytes * report.clock_mhz * 1e6, "-"),
        "memory": (moved / limits["memory"] * report.clock_mhz * 1e6, "--")
        if limits.get("memory")
        else (0.0, ""),
    }
    for name, (bandwidth, line) in bandwidths.items():
        if bandwidth:
            label = f"{name}: {bandwidth / 1e9:.3g} GB/s"
            axes.plot(x, x * bandwidth, line, color=COLOURS["rows"], label=label, linewidth=1.6)
    for name, line in (("traversal", "-"), ("execute", "--")):
        if limits.get(name):
            label = f"{name}: {_amount(rate / limits[name])} {unit}/s"
            axes.axhline(rate / limits[name], ls=line, color=COLOURS["queue"], label=label, lw=1.6)
    label = f"this run: {_amount(rate / cycles)} {unit}/s"
    axes.plot(intensity, rate / cycles, "o", color=COLOURS["wait"], markersize=9, label=label)
    axes.set(
        xscale="log",
        yscale="log",
        xlim=tuple(x),
        xlabel=f"{unit} a byte moved",
        ylabel=f"{unit} a second at {report.clock_mhz:g} MHz (stated)",
        title="Roofline: below which line the run stays",
    )
    low, high = axes.get_ylim()
    axes.set_ylim(min(low, rate / cycles / 6), high * 1.6)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: _amount(value)))
    axes.grid(which="major")
    axes.legend(loc="lower right", fontsize=8.5)


def _work(report: Report) -> tuple[int, str]:
    """Return what a run did, and its unit."""
    if report.lookups:
        return report.lookups, "lookups"
    return (report.rows, "rows") if report.rows else (max(report.bundles, 1), "bundles")


def _amount(value: float) -> str:
    """Return a number in thousands, millions or billions.

    Examples
    --------
    >>> _amount(24_200_000), _amount(0.5)
    ('24.2 million', '0.5')
    """
    for size, name in ((1e9, " billion"), (1e6, " million"), (1e3, " thousand")):
        if value >= size:
            return f"{value / size:.3g}{name}"
    return f"{value:.3g}"


def _draw_occupancy(figure: SubFigure, report: Report) -> None:
    profile = report.profile
    assert profile is not None
    suggested = {depth.queue: depth.suggested for depth in report.depths}
    panels: list[Axes] = list(figure.subplots(2, 2).flat)
    for axes, (name, queue) in zip(panels, profile.occupancy.items(), strict=True):
        _draw_queue(axes, queue, suggested[name])
        axes.set_title(f"{HIGH_WATER[name][1]}", fontsize=9.5)
    for axes in panels[2:]:
        axes.set_xlabel("entries")
    for axes in panels[::2]:
        axes.set_ylabel("share of the cycles")
    figure.suptitle("How full the queues were", fontsize=11)


def _draw_queue(axes: Axes, queue: Occupancy, suggested: int) -> None:
    total = max(sum(queue.cycles), 1)
    width = max(1, -(-len(queue.cycles) // _MOST_BARS))
    starts = range(0, len(queue.cycles), width)
    shares = [100 * sum(queue.cycles[start : start + width]) / total for start in starts]
    axes.bar(list(starts), shares, width, align="edge", color=COLOURS["queue"], linewidth=0)
    most = max([*shares, 1])
    height = 1.45 * most  # the legend stands above what is drawn
    label = f"room {queue.entries}"
    axes.vlines(queue.entries, 0, 1.1 * most, color=COLOURS["wait"], lw=1.4, label=label)
    if suggested != queue.entries:
        style: Any = {"color": COLOURS["mark"], "linestyles": "--", "label": f"try {suggested}"}
        axes.vlines(suggested, 0, 1.1 * most, lw=1.4, **style)
    axes.set(xlim=(0, 1.08 * max(queue.entries, suggested)), ylim=(0, height))
    axes.set_yticks([tick for tick in axes.get_yticks() if tick <= min(100, 1.1 * most)])
    axes.yaxis.set_major_formatter(PercentFormatter(decimals=0))
    axes.tick_params(labelsize=8)
    axes.legend(loc="upper right", fontsize=8, ncols=2, handlelength=1.2, columnspacing=1)


def _draw_reuse(figure: SubFigure, report: Report) -> None:
    assert report.profile is not None
    curve = report.profile.reuse
    assert curve is not None
    axes = figure.subplots()
    most = 100 * (1 - curve.distinct_bytes / max(curve.read_bytes, 1))
    shares = [100 * share for share in curve.hit_shares]
    axes.axhline(most, color=COLOURS["mark"], ls="--", lw=1.4, label=f"reread: {most:.1f} %")
    axes.plot(curve.cache_bytes, shares, color=COLOURS["rows"], lw=1.8, label="LRU cache")
    axes.fill_between(curve.cache_bytes, shares, color=COLOURS["rows"], alpha=0.15, linewidth=0)
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: _size(value)))
    axes.yaxis.set_major_formatter(PercentFormatter(decimals=0))
    axes.set(
        ylim=(0, 105),
        xlabel="size of a cache before the memory",
        ylabel="share of the read bytes that it would have",
        title=f"Reuse: {curve.reads:,} reads of {_size(curve.distinct_bytes)}, "
        f"{_size(curve.read_bytes)} in all",
    )
    axes.grid(which="major")
    axes.legend(loc="upper left", fontsize=8.5)


def _size(value: float) -> str:
    """Return bytes in their unit.

    Examples
    --------
    >>> _size(512), _size(65536), _size(3 << 19)
    ('512 B', '64 KiB', '1.5 MiB')
    """
    for power, unit in ((30, "GiB"), (20, "MiB"), (10, "KiB")):
        if value >= 1 << power:
            return f"{value / (1 << power):.3g} {unit}"
    return f"{value:.3g} B"
