"""Nests that load everywhere, all over the address space, with one load or row at fault."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ember_hw.bench.fuzzing.case import Case, Environment
from ember_hw.compiler.interpreters.scalar_values import Response
from ember_hw.config import LINE_BYTES, AcceleratorConfig
from ember_hw.isa import AluOperation, ElementSize, Event, Microcode, Source, event_mask
from ember_hw.registers import FaultCode
from ember_hw.sim.options import TestMemory

_ITERATIONS = 4
_ROWS = 32
_ELEMENTS = 8
_TOO_WIDE = 1 << 31
_ROUNDS = 4


@dataclass
class _Memory:
    """Regions at random places, none near another."""

    rng: random.Random
    end: int
    regions: list[tuple[int, NDArray[np.uint8]]] = field(
        default_factory=list[tuple[int, NDArray[np.uint8]]]
    )

    def place(self, content: NDArray[np.uint8]) -> int:
        """Return the address at which a new region holds these bytes, filled up to whole lines."""
        content = np.pad(content, (0, -len(content) % LINE_BYTES))
        room = 2 * len(content)
        while True:
            base = self.rng.randrange((self.end - room) // LINE_BYTES) * LINE_BYTES
            if all(abs(base - other) > room + 2 * len(held) for other, held in self.regions):
                self.regions.append((base, content))
                return base


def directed(config: AcceleratorConfig) -> Iterator[tuple[str, Case]]:
    """Yield nests of all units, in pair mode, with all streams on.

    One has no fault; in the others an element is too wide, or memory answers SLVERR for a line of
    a stream or for a row.
    """
    places = [
        (unit, stream)
        for unit in range(config.traversal_units)
        for stream in range(config.streams_per_unit)
    ]
    for number in range(_ROUNDS):
        yield f"nest {number}", _nest(config, f"{number}")
        for unit, stream in places:
            name = f"nest {number}, unit {unit}, stream {stream}"
            yield f"{name}, wide", _nest(config, f"{name}, wide", wide=(unit, stream))
            yield f"{name}, SLVERR", _nest(config, name, error=f"unit{unit}.stream{stream}")
        yield f"nest {number}, row SLVERR", _nest(config, f"{number}, row", error="row0")
    yield "rows of all lengths", _long_rows(config)


def _nest(
    config: AcceleratorConfig,
    seed: str,
    *,
    wide: tuple[int, int] | None = None,
    error: str | None = None,
) -> Case:
    rng = random.Random(seed)
    memory = _Memory(rng, 1 << config.address_width_bits)
    innermost = config.traversal_units - 1
    records: dict[str, dict[str, int]] = {
        "issue": {"events": (1 << config.events) - 1},
        "row0": _row(config, memory, rng, innermost),
    }
    choices = config.streams_per_unit + 2
    for unit in range(config.traversal_units):
        records[f"unit{unit}"] = {
            "enable": 1,
            "pair": 1,
            "upper_immediate": _ITERATIONS,
            "step": 1,
            **{f"export{i}": 1 + i % choices for i in range(config.exports)},
        }
        for stream in range(config.streams_per_unit):
            values = np.array([rng.randrange(_ROWS) for _ in range(_ELEMENTS)], np.int64)
            if wide == (unit, stream):
                values[rng.randrange(_ITERATIONS)] = rng.choice([-1, 1]) * (
                    _TOO_WIDE + 1 + rng.getrandbits(60)
                )
            records[f"unit{unit}.stream{stream}"] = {
                "enable": 1,
                "size": ElementSize.BYTES_8,
                "signed": 1,
                "base": memory.place(values.view(np.uint8)),
                "elements": _ELEMENTS,
                "induction": 1,
            }
    errors: tuple[Response, ...] = ()
    if error is not None:
        base = records[error]["base"]
        size = next(len(content) for other, content in memory.regions if other == base)
        errors = (Response(base, size, FaultCode.READ_SLAVE_ERROR),)
    return _case(config, records, memory, errors)


def _case(
    config: AcceleratorConfig,
    records: dict[str, dict[str, int]],
    memory: _Memory,
    errors: tuple[Response, ...] = (),
) -> Case:
    spans = [(answer.base, answer.size_bytes) for answer in errors]
    return Case(
        seed=0,
        kind="directed",
        microcode=Microcode(config, records),
        regions=tuple(memory.regions),
        requests=((),) * config.request_entries,
        errors=errors,
        environment=Environment(
            memory=TestMemory(
                seed=memory.rng.getrandbits(31),
                latency_cycles=(1, 60),
                error_range=spans[0] if spans else (0, 0),
            )
        ),
    )


def _long_rows(config: AcceleratorConfig) -> Case:
    """Return a loop whose rows are as long as its stream says; each bit of a length changes."""
    memory = _Memory(random.Random(1), 1 << config.address_width_bits)
    longest = (1 << 16) - 1
    lengths = [value for bits in (0xAAAA, 0x5555) for value in (longest, bits, 1, bits ^ longest)]
    pitch = longest + 1
    content = np.frombuffer(memory.rng.randbytes(pitch), np.uint8)
    records = {
        "issue": {"events": (1 << config.events) - 1},
        "unit0": {
            "enable": 1,
            "upper_immediate": len(lengths),
            "step": 1,
            "export0": 2,
            "alu_operation": AluOperation.MUL,  # by the immediate 0: the row's index
            "export1": config.streams_per_unit + 2,
        },
        "unit0.stream0": {
            "enable": 1,
            "size": ElementSize.BYTES_4,
            "base": memory.place(np.array(lengths, np.int32).view(np.uint8)),
            "elements": len(lengths),
            "induction": 1,
        },
        "row0": {
            "events": event_mask([(Event.ITERATE, 0)], config),
            "index_export": 1,
            "base": memory.place(content),
            "region_bytes": len(content),
            "pitch": pitch,
            "length_source": Source.SLOT,
            "length_export": 0,
            "rows": 1,
        },
    }
    return _case(config, records, memory)


def _row(
    config: AcceleratorConfig, memory: _Memory, rng: random.Random, innermost: int
) -> dict[str, int]:
    """Return a row entry for each iteration of the innermost unit, by its first stream's value."""
    size = _ROWS * LINE_BYTES
    content = np.frombuffer(rng.randbytes(size), np.uint8)
    return {
        "events": event_mask([(Event.ITERATE, innermost)], config),
        "index_export": 1,
        "base": memory.place(content),
        "region_bytes": size,
        "pitch": LINE_BYTES,
        "length": LINE_BYTES,
        "rows": _ROWS,
    }
