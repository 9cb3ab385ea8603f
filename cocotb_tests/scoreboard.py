"""Holds what the queues delivered against the microcode interpreter and the case's answer."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from cocotb_tests.monitors import Seen
from cocotb_tests.plan import Plan, lines_by_stream
from ember_hw.compiler.interpreters.microcode import execute
from ember_hw.compiler.interpreters.microcode_issue import Chunk as Expected
from ember_hw.config import AcceleratorConfig
from ember_hw.host.bindings.embedding_bag import POOLED
from ember_hw.host.execution import Chunk, ExecuteSide, unpack_bundles
from ember_hw.host.launch import Launch
from ember_hw.host.reference import bit_equal
from ember_hw.isa import event_bit
from ember_hw.registers import Counter, row_counter, stream_counter


def interpret(launch: Launch) -> Expected:
    """Return all that the queues must deliver, as one chunk."""
    regions = [(region.base, region.data) for region in launch.regions]
    chunks = list(execute(launch.microcode, regions, requests=[launch.arguments]))
    fields = ("events", "scalars", "row_beats", "row_last", "row_keep")
    return Expected(*(np.concatenate([getattr(chunk, f) for chunk in chunks]) for f in fields))


def as_chunk(seen: Seen, config: AcceleratorConfig) -> Chunk:
    """Return what passed on the queues as the execute side takes it."""
    words = _bytes([data for data, _ in seen.bundles], config.bundle_bytes)
    events, scalars = unpack_bundles(words, config)
    beats = _bytes([data for data, _, _ in seen.row_beats], config.bus_bytes)
    last = np.array([last for _, _, last in seen.row_beats], np.bool_)
    return Chunk(events, scalars, beats, last)


def check_queues(
    launch: Launch, seen: Seen, *, is_whole: bool = True, failed_beat: int | None = None
) -> None:
    """Compare bundles and row beats one by one.

    Scalars count where a callback of the bundle reads them; elsewhere they are unspecified.

    Parameters
    ----------
    launch : Launch
    seen : Seen
    is_whole : bool
        Whether the program ended; if it was stopped, any part from the start is right.
    failed_beat : int, optional
        Number of the row beat that memory answered with an error: its bytes are unspecified.
    """
    wanted, found = interpret(launch), as_chunk(seen, launch.microcode.config)
    bundles, beats = len(found.events), len(found.row_last)
    most = len(wanted.events), len(wanted.row_last)
    if is_whole:
        assert (bundles, beats) == most, f"bundles, row beats must be {most}, not {bundles, beats}"
        lasts = [last for _, last in seen.bundles]
        assert lasts == [0] * (bundles - 1) + [1], f"TLAST of bundles: {lasts}"
    else:
        assert bundles <= most[0], f"{bundles} bundles of a stopped program, of {most[0]}"
        assert beats <= most[1], f"{beats} row beats of a stopped program, of {most[1]}"
    _same("events of bundle", wanted.events[:bundles], found.events)
    used = _scalars_used(launch, found.events)
    _same("scalars of bundle", wanted.scalars[:bundles] * used, found.scalars * used)
    _same("TLAST of row beat", wanted.row_last[:beats], found.row_last)
    valid = wanted.row_keep[:beats]
    for number, (_, keep, _) in enumerate(seen.row_beats):
        mask = (1 << int(valid[number])) - 1
        assert keep == mask, f"TKEEP of row beat {number} must be {mask:#x}, not {keep:#x}"
    kept = np.arange(wanted.row_beats.shape[1]) < valid[:, None]
    if failed_beat is not None:
        kept[failed_beat:][:1] = False
    _same("bytes of row beat", wanted.row_beats[:beats] * kept, found.row_beats * kept)


def check_pooled(launch: Launch, seen: Seen, expected: NDArray[np.float32]) -> None:
    """Run the execute side on what the queues delivered; compare the pooled rows bit for bit."""
    assert launch.nest is not None, "a launch of a program"
    pooled = np.zeros_like(expected)
    arrays = {**_tables(launch, expected.shape[1]), POOLED: pooled}
    side = ExecuteSide(launch.nest, arrays, {}, microcode=launch.microcode)
    side.consume(as_chunk(seen, launch.microcode.config))
    side.finish()
    assert bit_equal(pooled, expected), f"pooled rows must be\n{expected}\nnot\n{pooled}"


def _tables(launch: Launch, columns: int) -> dict[str, NDArray[np.float32]]:
    """Return the tables that the execute side knows of; it may ask for their extents."""
    code = launch.nest and launch.nest.code
    known = {memory.symbol for memory in code.memories} if code else set()
    return {
        region.symbol: np.ascontiguousarray(
            region.data[: region.num_bytes]
            .view(np.float32)
            .reshape(region.rows, region.pitch)[:, :columns]
        )
        for region in launch.regions
        if region.symbol in known
    }


def check_counters(plan: Plan, seen: Seen, counters: Sequence[int]) -> None:
    """Hold the hardware's counters against what passed, and their sum against the cycles.

    A cycle with a beat of a row and one of a line, of the port apart, counts as the former; beats
    of several memory ports are counted one after the other.
    """
    config = plan.config
    shared = seen.shared_cycles if config.index_port_bits else 0
    lines = lines_by_stream(seen.reads, plan)
    wanted = {
        int(Counter.BUNDLES): len(seen.bundles),
        int(Counter.ROWS): len(plan.rows),
        int(Counter.ROW_BYTES): sum(map(len, plan.rows)),
        int(Counter.ROW_BEATS): seen.row_data_beats,
        int(Counter.INDEX_BEATS): seen.line_data_beats - shared,
    }
    for unit in range(config.traversal_units):
        for stream in range(config.streams_per_unit):
            number = unit * config.streams_per_unit + stream
            wanted[stream_counter(unit, stream, config)] = len(lines.get(number, ()))
    for entry in range(config.row_entries):
        wanted[row_counter(entry, config)] = plan.rows_of_entry[entry]
    for number, value in wanted.items():
        name = Counter(number).name if number < len(Counter) else f"counter {number}"
        assert counters[number] == value, f"{name} must be {value}: {counters[number]}"
    parts = [c for c in Counter if Counter.CYCLES < c < Counter.BUNDLES]
    total, cycles = sum(counters[c] for c in parts), counters[Counter.CYCLES]
    assert total == cycles, f"beats and stalls must add up to {cycles} cycles, not {total}"
    for counter, least, most in (
        (Counter.HIGH_OUTSTANDING, seen.most_row_reads, config.outstanding_reads),
        (Counter.HIGH_ROW_BEATS, min(1, len(plan.rows)), config.reorder_buffer_beats),
        (Counter.HIGH_BUNDLES, min(1, len(seen.bundles)), config.bundle_entries + 1),
        (Counter.HIGH_TOKENS, 0, config.token_entries),
    ):
        value = counters[counter]
        assert least <= value <= most, f"{counter.name} must be {least} to {most}: {value}"


def _bytes(values: list[int], width: int) -> NDArray[np.uint8]:
    joined = b"".join(value.to_bytes(width, "little") for value in values)
    return np.frombuffer(joined, np.uint8).reshape(-1, width)


def _scalars_used(launch: Launch, events: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Return 1 for each scalar that a callback of its bundle reads, else 0."""
    config = launch.microcode.config
    used = np.zeros((len(events), config.bundle_scalars), np.uint32)
    for callback in launch.callbacks:
        mask = np.uint32(1 << event_bit(callback.event, callback.level, config))
        for operand in callback.operands:
            if operand.kind == "scalar":
                used[:, operand.index] |= (events & mask) != 0
    return used


def _same(what: str, wanted: NDArray[np.generic], found: NDArray[np.generic]) -> None:
    differs = wanted != found
    if differs.any():
        first = int(np.flatnonzero(differs.reshape(len(differs), -1).any(axis=1))[0])
        raise AssertionError(f"{what} {first} must be {wanted[first]}, not {found[first]}")
