"""Tests of a board that is connected: its link, its memory, and lookups through all of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from ember_hw.boards.host.board import Board
from ember_hw.boards.links.frame import ErrorCount
from ember_hw.errors import EmberError
from ember_hw.host.backends.board import Backend
from ember_hw.host.device import Device
from ember_hw.host.reference import count_mismatches, exact
from ember_hw.host.request import normalise_request

#: What the gather test looks up: rows of the table, columns, lookups, bags.
_ROWS, _COLUMNS, _LOOKUPS, _BAGS = 64, 8, 48, 6


@dataclass(frozen=True)
class Verdict:
    """What one test found.

    Attributes
    ----------
    test : str
        Its name.
    is_good : bool
        Whether the board passed.
    detail : str
        What was done and counted, or what went wrong.
    """

    test: str
    is_good: bool
    detail: str


def run_selftest(
    backend: Backend,
    *,
    memory_bytes: int,
    seed: int = 0,
    watcher: Callable[[str], None] = lambda text: None,
) -> Iterator[Verdict]:
    """Test a board, and yield each verdict as it is known.

    What lies in memory is overwritten.

    Parameters
    ----------
    backend : Backend
        The board, open.
    memory_bytes : int
        Bytes of memory to test from its first on; at most all of it.
    seed : int
        Of what is written and looked up.
    watcher : callable
        Told what is tested next.

    Raises
    ------
    ValueError
        `memory_bytes` is no multiple of a beat, or more than there is.
    """
    description = backend.board.description
    beat = description.config.bus_bytes
    if not 0 < memory_bytes <= description.memory_bytes or memory_bytes % beat:
        raise ValueError(
            f"memory_bytes must be a multiple of {beat}, at most {description.memory_bytes}, "
            f"not {memory_bytes!r}"
        )
    tests: tuple[tuple[str, Callable[[], str]], ...] = (
        ("address lines", lambda: _test_addresses(backend.board)),
        ("memory", lambda: _test_memory(backend.board, memory_bytes, seed)),
        ("gather", lambda: _test_gather(backend, seed)),
        ("link", lambda: _test_link(backend.board)),
    )
    for name, test in tests:
        watcher(f"testing {name}")
        try:
            yield Verdict(name, True, test())
        except (EmberError, ValueError) as error:
            yield Verdict(name, False, str(error))


def _test_addresses(board: Board) -> str:
    """Write a beat at each power of two, then read all: lines that stick show."""
    description = board.description
    beat = description.config.bus_bytes
    offsets = [0]
    while (following := max(beat, 2 * offsets[-1])) < description.memory_bytes:
        offsets.append(following)
    addresses = [description.memory_base + offset for offset in offsets]
    contents = {
        address: (address * 0x9E37_79B1 % (1 << 8 * beat)).to_bytes(beat, "big")
        for address in addresses
    }
    for address, content in contents.items():
        board.write_memory(address, content)
    for address, wanted in contents.items():
        found = board.read_memory(address, beat)
        if found != wanted:
            raise ValueError(
                f"memory at {address:#x} must be {wanted.hex()} after the writes at powers of two, "
                f"not {found.hex()}"
            )
    return f"{len(addresses)} beats at powers of two"


def _test_memory(board: Board, num_bytes: int, seed: int) -> str:
    """Fill memory with random bytes, have the board check them, and read them back."""
    base = board.description.memory_base
    content = np.random.default_rng(seed).integers(0, 256, num_bytes, np.uint8)
    upload = board.upload(base, content)
    found = np.frombuffer(board.read_memory(base, num_bytes), np.uint8)
    wrong = np.flatnonzero(found != content)
    if wrong.size:
        raise ValueError(
            f"memory at {base + int(wrong[0]):#x} must be {content[wrong[0]]:#04x}, not "
            f"{found[wrong[0]]:#04x}; {wrong.size} of {num_bytes} bytes are wrong"
        )
    return (
        f"{num_bytes:,} random bytes written at {upload.megabytes_per_second:.3f} MB/s, check sums "
        "right, read back"
    )


def _test_gather(backend: Backend, seed: int) -> str:
    """Look up rows of a random table, and compare with the exact reference."""
    import torch  # slow to import

    from ember_hw.compiler import compile as compile_module

    rng = np.random.default_rng(seed)
    table = rng.standard_normal((_ROWS, _COLUMNS), dtype=np.float32)
    indices = rng.integers(0, _ROWS, _LOOKUPS)
    offsets = np.sort(rng.integers(0, _LOOKUPS, _BAGS))
    offsets[0] = 0
    weights = torch.tensor(table.tolist())  # floats of Python hold those of float32
    bag = torch.nn.EmbeddingBag.from_pretrained(weights, mode="sum")
    program = compile_module(bag, (indices, offsets), config=backend.config)
    device = Device(f"board:{backend.board.description.board}", backend)
    pooled = np.asarray(device.run(program, (indices, offsets)))
    request = normalise_request(indices, offsets, num_embeddings=_ROWS)
    mismatches = count_mismatches(pooled, exact(table, request))
    if mismatches:
        raise ValueError(f"pooled rows must be exact, and {mismatches} of {_BAGS} aren't")
    return f"{_LOOKUPS} lookups in {_BAGS} bags, exact, {device.report.cycles} cycles"


def _test_link(board: Board) -> str:
    """Tell what both ends have counted; a link with errors works, and shows it here."""
    counts = board.client.counts
    at_board = ", ".join(
        f"{kind.name.lower().replace('_', ' ')} {count}"
        for kind, count in board.read_errors().items()
        if kind is not ErrorCount.GOOD
    )
    return (
        f"{counts.frames} requests, {counts.repeats} repeated, {counts.bad_frames} bad answers; "
        f"at the board: {at_board}"
    )
