"""Golden numbers of the DRAM presets, and the access traces that they belong to.

The addresses are the same on every machine and with every version of NumPy.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .dram import DRAM_PRESETS, DramMemory

GOLDEN: dict[str, Any] = json.loads(Path(__file__).with_name("dram_golden.json").read_text())
ACCESSES = 20_480


@dataclass(frozen=True)
class AccessTrace:
    """Addresses, and the first clocks in which each may enter the scheduler; None: at once."""

    addresses: np.ndarray
    clocks: np.ndarray | None = None


def _random(count: int, limit: int, seed: int) -> np.ndarray:
    """Return numbers below `limit`: SplitMix64, as the C++ models use it."""
    count_up = np.arange(1, count + 1, dtype=np.uint64) + np.uint64(seed * 1_000_003)
    with np.errstate(over="ignore"):
        value = count_up * np.uint64(0x9E3779B97F4A7C15)
        value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        value ^= value >> np.uint64(31)
    return value % np.uint64(limit)


def place_address(dram: DramMemory, **fields: np.ndarray) -> np.ndarray:
    """Return the addresses of places, by the mapping of a DRAM."""
    address = np.zeros(next(iter(fields.values())).shape, np.uint64)
    used = dict.fromkeys(dram.field_bits, 0)
    shift = (dram.access_bytes - 1).bit_length()
    for name, bits in dram.parts[::-1]:
        value = np.asarray(fields.get(name, 0), np.uint64)
        part = (value >> np.uint64(used[name])) & np.uint64((1 << bits) - 1)
        address |= part << np.uint64(shift)
        used[name] += bits
        shift += bits
    return address


def sequential(dram: DramMemory) -> AccessTrace:
    """Return one address after the other."""
    return AccessTrace(np.arange(ACCESSES, dtype=np.uint64) * np.uint64(dram.access_bytes))


def random_rows(row_bytes: int) -> Callable[[DramMemory], AccessTrace]:
    """Return what makes a trace of random embedding rows, each read from its begin to its end."""

    def make(dram: DramMemory) -> AccessTrace:
        parts = max(1, row_bytes // dram.access_bytes)
        rows = _random(ACCESSES // parts, dram.size_bytes // row_bytes, seed=row_bytes)
        first = rows * np.uint64(row_bytes)
        steps = np.arange(parts, dtype=np.uint64) * np.uint64(dram.access_bytes)
        return AccessTrace((first[:, None] + steps).reshape(-1))

    return make


def rows_and_a_stream(dram: DramMemory) -> AccessTrace:
    """Return a line of a sequential stream before every 16 rows of 256 bytes, as a gather reads."""
    rows = random_rows(256)(dram).addresses.reshape(-1, 16 * max(1, 256 // dram.access_bytes))
    lines = np.arange(len(rows), dtype=np.uint64) * np.uint64(64)
    steps = np.arange(max(1, 64 // dram.access_bytes), dtype=np.uint64)
    stream = lines[:, None] + steps * np.uint64(dram.access_bytes)
    return AccessTrace(np.concatenate((stream, rows), axis=1).reshape(-1))


def one_bank(dram: DramMemory) -> AccessTrace:
    """Return random DRAM rows of one bank."""
    rows = _random(ACCESSES // 10, 1 << dram.field_bits["row"], seed=3)
    return AccessTrace(place_address(dram, row=rows))


def banks_in_turn(dram: DramMemory) -> AccessTrace:
    """Return random DRAM rows of all banks in turn, the bank groups alternating."""
    bits = dram.field_bits
    number = np.arange(ACCESSES, dtype=np.uint64)
    group = number & np.uint64((1 << bits["group"]) - 1)
    bank = (number >> np.uint64(bits["group"])) & np.uint64((1 << bits["bank"]) - 1)
    row = _random(ACCESSES, 1 << bits["row"], seed=4)
    return AccessTrace(place_address(dram, row=row, group=group, bank=bank))


def seldom(dram: DramMemory) -> AccessTrace:
    """Return one random access every 200 clocks: what a lone read takes."""
    count = ACCESSES // 10
    addresses = _random(count, dram.size_bytes // dram.access_bytes, seed=5)
    clocks = np.arange(count, dtype=np.uint64) * np.uint64(200)
    return AccessTrace(addresses * np.uint64(dram.access_bytes), clocks)


TRACES: dict[str, Callable[[DramMemory], AccessTrace]] = {
    "sequential": sequential,
    **{f"random rows of {size} bytes": random_rows(size) for size in (64, 128, 256, 512)},
    "rows of 256 bytes and a stream": rows_and_a_stream,
    "one bank": one_bank,
    "banks in turn": banks_in_turn,
    "seldom": seldom,
}

#: (preset, trace) of every golden number.
CASES = [(preset, trace) for preset in DRAM_PRESETS for trace in TRACES]
