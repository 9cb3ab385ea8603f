"""A report as one HTML file that needs nothing else: pictures inside, no script, no network."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from ember_hw.host.report import HIGH_WATER, LIMITS, STALLS, Report
from ember_hw.host.report_plots import COLOURS, draw_svg, footnote, headline, pictures

#: What each picture shows, for who can't see it.
CAPTIONS = {
    "cycles": "Where the cycles went, and what takes at least so many of them",
    "roofline": "Roofline: the run's rate below the limits of port, memory and loops",
    "occupancy": "How full each queue was, by share of the cycles",
    "reuse": "What a cache of each size before the memory would have",
}
_DARK = {
    "ink": "#e6e9ed",
    "faint": "#98a2ad",
    "grid": "#39414a",
    "surface": "#181c21",
    "rows": "#4fc3b6",
    "indices": "#2d8077",
    "wait": "#ea7a63",
    "queue": "#7fa8e0",
    "mark": "#e5b152",
}
_STYLE = """
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 76rem; padding: 1.5rem; background: var(--surface);
  color: var(--ink); font: 15px/1.5 system-ui, -apple-system, "Segoe UI", sans-serif; }
h1 { font-size: 1.5rem; line-height: 1.25; margin: 0 0 .25rem; overflow-wrap: anywhere; }
h2 { font-size: 1.1rem; margin: 2rem 0 .5rem; }
p.note { color: var(--faint); margin: 0 0 1.25rem; overflow-wrap: anywhere; }
.tiles, .pictures { display: grid; gap: 1rem; }
.tiles { grid-template-columns: repeat(auto-fit, minmax(11rem, 1fr)); }
.pictures { grid-template-columns: repeat(auto-fit, minmax(min(30rem, 100%), 1fr)); }
.tile, figure { border: 1px solid var(--grid); border-radius: 8px; margin: 0;
  padding: .75rem 1rem; }
.tile b { display: block; font-size: 1.35rem; font-weight: 600; }
.tile span { color: var(--faint); font-size: .85rem; }
figure svg { display: block; width: 100%; height: auto; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { border-bottom: 1px solid var(--grid); padding: .3rem .9rem .3rem 0; text-align: left;
  vertical-align: top; }
th { color: var(--faint); font-weight: 500; }
.number { text-align: right; white-space: nowrap; }
td:first-child { white-space: nowrap; }
td.text:last-child { overflow-wrap: anywhere; }
@media print { figure, .tile { break-inside: avoid; } }
"""


def as_html(report: Report) -> str:
    """Return a page of a report: the same bytes for the same report."""
    title = escape(headline(report))
    figures = "".join(_figure(report, name) for name in pictures(report))
    if not figures:
        figures = f"<p>No pictures: backend {escape(report.backend)} has no clock.</p>"
    data = report.to_json().replace("</", "<\\/")
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<meta name="color-scheme" content="light dark">\n<title>{title}</title>\n'
        f"<style>{_variables()}{_STYLE}</style>\n</head>\n<body>\n<h1>{title}</h1>\n"
        f'<p class="note">{escape(footnote(report))}</p>\n'
        f'<div class="tiles">{"".join(_tiles(report))}</div>\n'
        f'<h2>Pictures</h2>\n<div class="pictures">{figures}</div>\n'
        f"{''.join(_tables(report))}"
        f'<script type="application/json" id="report">{data}</script>\n</body>\n</html>\n'
    )


def as_fragment(report: Report) -> str:
    """Return what a notebook shows of a report: its text and its pictures, on their own ground."""
    colours = f"background: {COLOURS['surface']}; color: {COLOURS['ink']}; padding: 1em"
    figures = "".join(draw_svg(report, name) for name in pictures(report))
    text = f'<pre style="white-space: pre-wrap">{escape(str(report))}</pre>'
    return f'<div style="{colours}">{text}{figures}</div>'


def _variables() -> str:
    """Return the colours as properties of the page: light, and dark where the reader wants it."""

    def properties(colours: dict[str, str]) -> str:
        return " ".join(f"--{name}: {value};" for name, value in colours.items())

    dark = f"@media (prefers-color-scheme: dark) {{ :root {{ {properties(_DARK)} }} }}"
    return f":root {{ {properties(COLOURS)} }}\n{dark}"


def _figure(report: Report, name: str) -> str:
    """Return a picture whose colours follow the page."""
    svg = draw_svg(report, name)
    for colour, value in COLOURS.items():
        svg = svg.replace(value, f"var(--{colour})")
    caption = escape(CAPTIONS[name])
    svg = svg.replace("<svg", f'<svg role="img" aria-label="{caption}"', 1)
    return f'<figure id="{name}">{svg}</figure>\n'


def _tiles(report: Report) -> Iterable[str]:
    clock = f"at {report.clock_mhz:g} MHz (stated)"
    limits = report.limit_shares
    nearest = max(limits, key=lambda name: limits[name], default="")
    facts = [
        (_number(report.lookups), "lookups"),
        (_number(report.cycles), "cycles, start to done"),
        (_time(report.seconds), clock),
        (_share(report.utilisation), "useful bytes of the port's"),
        (_share(limits.get("memory")), "of the cycles is the memory's own bound"),
        (_number(report.fixed_cycles), "cycles of fixed cost"),
        (_number(report.cycles_per_lookup), "cycles a lookup besides"),
        (_number(report.lookups_per_second), f"lookups a second {clock}"),
        (nearest or None, f"is the nearest limit: {LIMITS.get(nearest, '')}"),
    ]
    for value, text in facts:
        if value is not None:
            yield f'<div class="tile"><b>{escape(value)}</b><span>{escape(text)}</span></div>\n'


def _number(value: float | None) -> str | None:
    if value is None:
        return None
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:,.2f}" if value < 1_000 else f"{value:,.0f}"


def _share(value: float | None) -> str | None:
    return None if value is None else f"{value:.1%}"


def _time(seconds: float | None) -> str | None:
    return None if seconds is None else f"{seconds * 1e6:,.1f} µs"


def _tables(report: Report) -> Iterable[str]:
    cycles = max(report.cycles or 1, 1)
    moved = [
        ("useful bytes", report.useful_bytes, "of rows that reached the execute side"),
        ("moved bytes", report.moved_bytes, "that crossed the memory port, index lines included"),
        ("row beats", report.row_beats, f"of {report.bus_bytes} bytes"),
        ("index beats", report.index_beats, f"of {report.bus_bytes} bytes"),
        ("rows", report.rows, "asked for"),
        ("bundles", report.bundles, "delivered"),
    ]
    yield _table("Traffic", ("", "", ""), [row for row in moved if row[1] is not None])
    limits = [(name, n, f"{n / cycles:.1%}", LIMITS[name]) for name, n in report.limits.items()]
    yield _table("Limits", ("limit", "cycles at least", "share", "what it is"), limits)
    stalls = [(name, n, f"{n / cycles:.1%}", STALLS[name][1]) for name, n in report.stalls.items()]
    yield _table("Cycles without a beat", ("reason", "cycles", "share", ""), stalls)
    depths = {depth.queue: depth for depth in report.depths}
    queues: list[Sequence[object]] = []
    for name, most in report.high_water.items():
        if (depth := depths.get(name)) is None:
            queues.append((HIGH_WATER[name][1], most, "", "", "", ""))
            continue
        room = (depth.parameter, depth.entries, depth.suggested, depth.reason)
        queues.append((HIGH_WATER[name][1], most, *room))
    heads = ("queue", "most", "parameter", "room", "suggested", "why")
    yield _table("Queues", heads, queues)
    nests = [
        (nest.name, nest.cycles, nest.bundles, nest.row_beats, nest.useful_bytes)
        for nest in report.nests
    ]
    if len(nests) > 1:
        heads = ("nest", "cycles", "bundles", "row beats", "useful bytes")
        yield _table("Nests", heads, nests)
    facts: list[Sequence[object]] = [
        ("backend", report.backend),
        ("memory", report.memory),
        ("execute side", f"{report.sink}; code on the host in {report.engine or 'unknown'}"),
        ("config", f"{report.config}, hash {report.config_hash:#010x}"),
        ("parameters", ", ".join(f"{k} {v}" for k, v in report.parameters.items())),
        ("seed", "unknown" if report.seed is None else str(report.seed)),
        ("versions", ", ".join(f"{k} {v}" for k, v in report.versions.items())),
    ]
    if report.wall_seconds is not None:
        facts.append(("time of the call", f"{report.wall_seconds:.3g} s on the machine it ran on"))
    yield _table("What ran", ("", ""), facts)


def _table(title: str, heads: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a table under its title; nothing without rows."""
    kept = list(rows)
    if not kept:
        return ""
    body = ["<tr>" + "".join(map(_cell, row)) + "</tr>" for row in kept]
    if any(heads):
        body.insert(0, "<tr>" + "".join(map(_head, heads, kept[0])) + "</tr>")
    lines = "\n".join(body)
    return f'<h2>{escape(title)}</h2>\n<div class="scroll"><table>\n{lines}\n</table></div>\n'


def _head(name: str, value: object) -> str:
    """Return the head of a column, above its values."""
    return f"<th{_alignment(value)}>{escape(name)}</th>"


def _alignment(value: object) -> str:
    return ' class="number"' if isinstance(value, int) else ' class="text"'


def _cell(value: object) -> str:
    text = f"{value:,}" if isinstance(value, int) else "" if value is None else str(value)
    return f"<td{_alignment(value)}>{escape(text)}</td>"
