"""Puts a fault into a legal case, and random surroundings around it."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from ember_hw.bench.fuzzing.case import Case, Environment
from ember_hw.bench.fuzzing.generate import legal_case
from ember_hw.bench.fuzzing.soup import soup_case
from ember_hw.compiler.interpreters.scalar_values import Response, TooLongError, UndefinedError
from ember_hw.config import LINE_BYTES, AcceleratorConfig
from ember_hw.isa import ISA_VERSION, ElementSize, Event, Source, StreamSource, event_bit
from ember_hw.registers import FaultCode
from ember_hw.sim.options import IdealMemory, IdealSink, Pushes, StallingSink, TestMemory

_FOR_EVER = 1 << 40
_STALL_WATCHDOG_CYCLES = 400


def random_case(config: AcceleratorConfig, seed: int) -> Case:
    """Return a case: legal more often than not, and then with a hundred steps or more.

    Examples
    --------
    >>> from ember_hw.bench.fuzzing.configs import CONFIGS
    >>> random_case(CONFIGS["tiny"], 5).kind
    'address overflow'
    """
    rng = random.Random(f"{config.name} {seed} faults")
    if rng.random() < 0.05:
        return _with_surroundings(soup_case(config, seed), rng)
    kind = "legal"
    if rng.random() > 0.62:
        kind = rng.choice([*_FAULTS])
    is_long = kind == "legal" or rng.random() < 0.7
    case = legal_case(config, seed, is_long=is_long, is_fed=kind == "missing lines")
    case = _with_surroundings(case, rng)
    if kind == "legal":
        return case
    for _ in range(20):
        spoiled = _with_pushes(replace(_FAULTS[kind](case, rng), kind=kind))
        try:
            _ = spoiled.whole
        except (TooLongError, UndefinedError):
            continue
        return spoiled
    return case


def _with_surroundings(case: Case, rng: random.Random) -> Case:
    memory = IdealMemory(latency_cycles=rng.choice([1, 7, 30, 100]))
    if rng.random() < 0.6:
        memory = TestMemory(
            seed=rng.getrandbits(31),
            latency_cycles=rng.choice([(1, 1), (1, 40), (20, 200)]),
            request_stall_probability=rng.choice([0.0, 0.25, 0.7]),
            beat_stall_probability=rng.choice([0.0, 0.25, 0.7]),
            reorder=rng.random() < 0.7,
            interleave=rng.random() < 0.7,
        )
    sink = IdealSink()
    if rng.random() < 0.6:
        # An execute side knows its rows by the bundle's events, so it must be told of them all.
        is_told = case.microcode.get("issue", "events") == (1 << case.config.events) - 1
        sink = StallingSink(
            seed=rng.getrandbits(31),
            stall_probability=rng.choice([0.0, 0.1, 0.5, 0.9]),
            freeze_probability=rng.choice([0.0, 0.0, 0.01]),
            freeze_cycles=rng.choice([10, 100, 600]),
            joint=Pushes() if is_told and rng.random() < 0.7 else None,
        )
    return _with_pushes(case.within(Environment(memory=memory, sink=sink)))


def _with_pushes(case: Case) -> Case:
    """Tell a joint sink which rows the program pushes."""
    sink = case.environment.sink
    if not isinstance(sink, StallingSink) or sink.joint is None:
        return case
    rows = range(case.config.row_entries)
    masks = tuple(case.microcode.get(f"row{r}", "events") for r in rows)
    sink = replace(sink, joint=Pushes(row_event_masks=masks))
    return case.within(replace(case.environment, sink=sink))


def _enabled_streams(case: Case, source: StreamSource | None = None) -> list[str]:
    config, get = case.config, case.microcode.get
    paths = [
        f"unit{k}.stream{s}"
        for k in range(config.traversal_units)
        for s in range(config.streams_per_unit)
    ]
    return [
        path
        for path in paths
        if get(path, "enable") and (source is None or get(path, "source") == source)
    ]


def _enabled_rows(case: Case) -> list[str]:
    paths = [f"row{r}" for r in range(case.config.row_entries)]
    return [path for path in paths if case.microcode.get(path, "events")]


def _with_fields(case: Case, path: str, **fields: int) -> Case:
    changes = {(path, name): value for name, value in fields.items()}
    return replace(case, microcode=case.microcode.with_fields(changes))


def _stream_bounds(case: Case, rng: random.Random) -> Case:
    """Shrink or shift a stream, so that some elements lie outside it."""
    paths = _enabled_streams(case)
    if not paths:
        return case
    path = rng.choice(paths)
    elements, first = (case.microcode.get(path, name) for name in ("elements", "first"))
    distance = rng.choice([1, 1, 2, 5, 40, 1 << 20, 1 << 31])
    if rng.random() < 0.5:
        return _with_fields(case, path, elements=max(0, elements - distance))
    shifted = first + rng.choice([-1, 1]) * distance
    return _with_fields(case, path, first=max(-(1 << 31), min((1 << 31) - 1, shifted)))


def _row_bounds(case: Case, rng: random.Random) -> Case:
    """Change what a row entry checks: number, length, pitch, region, part."""
    paths = _enabled_rows(case)
    if not paths:
        return case
    path, get = rng.choice(paths), case.microcode.get
    export = rng.randrange(case.config.exports)
    bus_bytes = case.config.bus_bytes

    def less(name: str, unit: int = 1) -> dict[str, int]:
        value = get(path, name) - unit * rng.choice([1, 1, 2, 5, 1 << 10])
        return {name: max(0, value)}

    part = {"offset_enable": 1, "offset_export": export, "offset_size": rng.randrange(4)}
    part |= {"clip": rng.randrange(1 << 9), "length": bus_bytes * rng.randrange(5)}
    change = rng.choice(
        [
            less("rows") | {"rows_source": Source.IMMEDIATE},
            less("region_bytes"),
            less("pitch", bus_bytes) | {"pitch_source": Source.IMMEDIATE},
            {"length": 0, "length_source": Source.IMMEDIATE},
            {"length": (1 << 16) - bus_bytes, "length_source": Source.IMMEDIATE},
            {"length_source": Source.SLOT, "length_export": export},
            {"pitch_source": Source.SLOT, "pitch_export": export},
            {"base_source": Source.SLOT, "base_export": export},
            {"rows_source": Source.SLOT, "rows_export": export},
            {"index_export": export},
            part,
        ]
    )
    return _with_fields(case, path, **change)


def _address_overflow(case: Case, rng: random.Random) -> Case:
    """Move a region so that it ends beyond the address width."""
    paths = _enabled_streams(case) + _enabled_rows(case)
    if not paths:
        return case
    path = rng.choice(paths)
    limit = 1 << case.config.address_width_bits
    if path.startswith("row"):
        size = case.microcode.get(path, "region_bytes")
        if rng.random() < 0.3:
            return _with_fields(case, path, region_bytes=limit - 1)
        back = rng.randrange(-(-size // LINE_BYTES))
        return _with_fields(case, path, base=limit - LINE_BYTES * max(1, back))
    return _with_fields(case, path, base=limit - LINE_BYTES * rng.choice([1, 1, 2, 10]))


def _value_too_wide(case: Case, rng: random.Random) -> Case:
    """Put elements of 8 bytes into memory that don't fit in 32 bits."""
    paths = [
        path
        for path in _enabled_streams(case, StreamSource.MEMORY)
        if case.microcode.get(path, "size") == ElementSize.BYTES_8
    ]
    if not paths:
        return case
    path = rng.choice(paths)
    end = case.microcode.get(path, "base") + 8 * case.microcode.get(path, "elements")
    regions = list(case.regions)
    for number, (base, content) in enumerate(regions):
        if base < end <= base + len(content) + 64:
            words = content.copy().view("<i8")
            for _ in range(rng.choice([1, 1, 20])):
                wide = rng.choice([1 << 31, -(1 << 31) - 1, 1 << 32, -(1 << 63), 1 << 62])
                words[rng.randrange(len(words))] = wide
            regions[number] = (base, words.view(np.uint8))
    return replace(case, regions=tuple(regions))


def _slave_error(case: Case, rng: random.Random) -> Case:
    """Let beats of a part of memory answer SLVERR."""
    memory = case.environment.memory
    if not case.regions or not isinstance(memory, TestMemory):
        return case
    base, content = rng.choice(case.regions)
    begin = base + rng.randrange(len(content))
    size = rng.choice([1, 1, 64, 1000])
    return replace(
        case,
        errors=(Response(begin, size, FaultCode.READ_SLAVE_ERROR),),
        environment=replace(case.environment, memory=replace(memory, error_range=(begin, size))),
    )


def _decode_error(case: Case, rng: random.Random) -> Case:
    """Take lines out of memory."""
    if not case.regions:
        return case
    number = rng.randrange(len(case.regions))
    base, content = case.regions[number]
    begin = rng.randrange(len(content) // LINE_BYTES) * LINE_BYTES
    end = begin + LINE_BYTES * rng.choice([1, 1, 3, 100])
    rest = [(base, content[:begin].copy()), (base + end, content[end:].copy())]
    kept = [region for region in rest if len(region[1])]
    regions = (*case.regions[:number], *kept, *case.regions[number + 1 :])
    return replace(case, regions=regions)


def _bad_version(case: Case, rng: random.Random) -> Case:
    version = rng.choice([v for v in range(256) if v != ISA_VERSION])
    return _with_fields(case, "header", version=version)


def _illegal(case: Case, rng: random.Random) -> Case:
    """Set a step to 0 or leave a unit out; disabled units keep all exports."""
    config = case.config
    units = sum(case.microcode.get(f"unit{k}", "enable") for k in range(config.traversal_units))
    if rng.random() < 0.5 or units == config.traversal_units == 1:
        return _with_fields(case, f"unit{rng.randrange(units)}", step=0)
    if units == 1 or rng.random() < 0.3:
        return _with_fields(case, "unit0", enable=0)
    return _with_fields(case, f"unit{rng.randrange(units - 1)}", enable=0)


def _missing_lines(case: Case, rng: random.Random) -> Case:
    """Let the input queue run dry."""
    if not case.lines:
        return case
    who = rng.choice([*case.lines])
    lines = dict(case.lines)
    lines[who] = lines[who][: rng.randrange(max(1, len(lines[who])))]
    environment = replace(
        case.environment, watchdog_cycles=3 * _STALL_WATCHDOG_CYCLES, may_stall=True
    )
    return replace(case, lines=lines, environment=environment)


def _sink_stops(case: Case, rng: random.Random) -> Case:
    sink = StallingSink(
        seed=rng.getrandbits(31),
        stall_probability=0.0,
        freeze_probability=rng.choice([0.001, 0.01, 0.1]),
        freeze_cycles=_FOR_EVER,
    )
    environment = replace(
        case.environment,
        sink=sink,
        watchdog_cycles=_STALL_WATCHDOG_CYCLES,
        may_stall=True,
    )
    return case.within(environment)


def _memory_stops(case: Case, rng: random.Random) -> Case:
    """Let some reads take longer than the watchdog waits."""
    watchdog = rng.choice([50, _STALL_WATCHDOG_CYCLES])
    memory = IdealMemory(latency_cycles=4 * watchdog)
    if rng.random() < 0.7:
        memory = TestMemory(seed=rng.getrandbits(31), latency_cycles=(1, 5 * watchdog))
    environment = replace(case.environment, memory=memory, watchdog_cycles=watchdog, may_stall=True)
    return case.within(environment)


def _polls(rng: random.Random) -> int:
    return rng.choice([rng.randrange(8), rng.randrange(40), rng.randrange(300)])


def _abort(case: Case, rng: random.Random) -> Case:
    environment = replace(case.environment, abort_after_polls=_polls(rng))
    return case.within(environment)


def _reset(case: Case, rng: random.Random) -> Case:
    environment = replace(case.environment, reset_after_polls=_polls(rng))
    return case.within(environment)


def _leaf_begin(case: Case, rng: random.Random) -> Case:
    """Let a row hang on an event that may come without the values it needs; often refused."""
    paths = _enabled_rows(case)
    if not paths:
        return case
    path = rng.choice(paths)
    event = rng.choice([Event.BEGIN, Event.END])
    bit = event_bit(event, rng.randrange(case.config.traversal_units), case.config)
    return _with_fields(case, path, events=case.microcode.get(path, "events") | 1 << bit)


_FAULTS: dict[str, Callable[[Case, random.Random], Case]] = {
    "stream bounds": _stream_bounds,
    "row bounds": _row_bounds,
    "more rows": _leaf_begin,
    "address overflow": _address_overflow,
    "value too wide": _value_too_wide,
    "slave error": _slave_error,
    "decode error": _decode_error,
    "bad version": _bad_version,
    "illegal microcode": _illegal,
    "missing lines": _missing_lines,
    "sink stops": _sink_stops,
    "memory stops": _memory_stops,
    "abort": _abort,
    "reset": _reset,
}

#: What a case's `kind` may be.
KINDS = ("legal", "soup", *_FAULTS)
