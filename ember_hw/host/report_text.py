"""A report as text."""

from __future__ import annotations

from ember_hw.host.report import HIGH_WATER, LIMITS, STALLS, NestReport, Report

_Line = tuple[str, str]


def as_text(report: Report) -> str:
    """Return a report as lines of a name and what there is to say."""
    lines: list[_Line] = [
        ("program", report.program),
        ("backend", f"{report.backend}, memory {report.memory}, execute side {report.sink}"),
        ("execute code", report.engine or "unknown"),
        ("config", _config(report)),
        ("seed", "unknown" if report.seed is None else f"{report.seed}"),
        ("versions", ", ".join(f"{k} {v}" for k, v in report.versions.items()) or "unknown"),
        ("lookups", "unknown" if report.lookups is None else f"{report.lookups:,}"),
        ("bundles", f"{report.bundles:,}"),
        ("row beats", f"{report.row_beats:,}"),
    ]
    if report.useful_bytes is not None:
        lines.append(("useful bytes", f"{report.useful_bytes:,}"))
    if report.parameters.get("execute") == "reduce":
        lines += _leaving(report)
    if len(report.nests) > 1:
        lines += [(f"nest {nest.name}", _nest(nest)) for nest in report.nests]
    if report.cycles is None:
        lines.append(("cycles", "none: this backend has no clock"))
    else:
        lines += [*_times(report), *_limits(report), *_stalls(report), *_queues(report)]
    if report.wall_seconds is not None:
        lines.append(("time of the call", f"{report.wall_seconds:.3g} s on this machine"))
    return "\n".join(f"{name:<24}{value}" for name, value in lines)


def _leaving(report: Report) -> list[_Line]:
    lines = [
        (f"{nest.execute} runs {nest.name}", nest.reason or f"{nest.results:,} results")
        for nest in report.nests
    ]
    lines.append(("leaving bytes", f"{report.leaving_bytes:,}, {report.results:,} results"))
    if report.parameters.get("results") == "memory":
        lines.append(("written bytes", f"{report.written_bytes:,}, into memory"))
    return lines


def _config(report: Report) -> str:
    return f"{report.config} ({report.config_hash:#010x}), {8 * report.bus_bytes}-bit port"


def _nest(nest: NestReport) -> str:
    counts = f"{nest.bundles:,} bundles, {nest.row_beats:,} row beats"
    return counts if nest.cycles is None else f"{counts}, {nest.cycles:,} cycles"


def _times(report: Report) -> list[_Line]:
    lines = [
        ("moved bytes", f"{report.moved_bytes:,}"),
        ("cycles", f"{report.cycles:,}"),
        ("time", f"{(report.seconds or 0) * 1e6:,.2f} us at {report.clock_mhz:g} MHz (stated)"),
    ]
    profile = report.profile
    if profile is not None:
        rule = f"{profile.fill_cycles:,} to the first row, {profile.drain_cycles:,} after the last"
        lines.append(("fixed cost", f"{report.fixed_cycles:,} cycles: {rule}"))
    if report.cycles_per_lookup is not None:
        text = f"{report.cycles_per_lookup:.3f} cycles, without the fixed cost"
        lines.append(("cost of a lookup", text))
    if report.utilisation is not None:
        rule = f"useful bytes / (cycles x {report.bus_bytes})"
        lines.append(("utilisation", f"{report.utilisation:.4f} = {rule}"))
    if report.lookups_per_second is not None:
        rate = f"{report.lookups_per_second:,.0f} at {report.clock_mhz:g} MHz (stated)"
        lines.append(("lookups a second", rate))
    return lines


def _limits(report: Report) -> list[_Line]:
    shares = report.limit_shares
    return [
        (f"limit {name}", f"{cycles:,} cycles, {shares[name]:.1%} of all: {LIMITS[name]}")
        for name, cycles in report.limits.items()
    ]


def _stalls(report: Report) -> list[_Line]:
    return [
        (f"stall {name}", f"{cycles:,} cycles: {STALLS[name][1]}")
        for name, cycles in report.stalls.items()
    ]


def _queues(report: Report) -> list[_Line]:
    lines = [
        (f"most {name.replace('_', ' ')}", f"{most:,} {HIGH_WATER[name][1]}")
        for name, most in report.high_water.items()
    ]
    for depth in report.depths:
        advice = "keep" if depth.suggested == depth.entries else f"try {depth.suggested}"
        text = f"{depth.parameter} {depth.entries}: {advice}; {depth.reason}"
        lines.append((f"depth {depth.queue.replace('_', ' ')}", text))
    return lines
