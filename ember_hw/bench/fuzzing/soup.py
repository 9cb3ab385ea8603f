"""Programs of random fields: hardly one means anything, and none may do harm."""

from __future__ import annotations

import random

import numpy as np

from ember_hw.bench.fuzzing.case import Case
from ember_hw.bench.fuzzing.space import Space
from ember_hw.compiler.interpreters.scalar_values import TooLongError, UndefinedError
from ember_hw.config import LINE_BYTES, AcceleratorConfig
from ember_hw.isa import Field, FieldKind, Microcode, StreamSource, layouts

_BASES = ("base",)
_TRIES = 200


def soup_case(config: AcceleratorConfig, seed: int) -> Case:
    """Return a program of random fields whose values are all defined where they are read."""
    rng = random.Random(f"{config.name} {seed} soup")
    for _ in range(_TRIES):
        case = _soup(config, rng, seed)
        try:
            _ = case.whole
        except (TooLongError, UndefinedError):
            continue
        return case
    raise AssertionError(f"a program with defined values must come of seed {seed}")


def _soup(config: AcceleratorConfig, rng: random.Random, seed: int) -> Case:
    space = Space(config, rng)
    numbers = np.random.default_rng(rng.getrandbits(63))
    bases = [
        space.place(numbers.integers(0, rng.choice([3, 256]), 64 * rng.randint(1, 9), np.uint8))
        for _ in range(3)
    ]
    units = rng.randint(1, config.traversal_units)
    records: dict[str, dict[str, int]] = {}
    for path, layout in layouts(config).items():
        level = int(path[4]) if path.startswith("unit") else 0
        if path == "header" or level >= units:
            continue
        record = {field.name: _value(field, rng) for field in layout.fields}
        if "base" in record:
            record["base"] = rng.choice(bases)
        if path == f"unit{level}":
            record |= {"enable": 1, "step": rng.choice([1, 1, 3, 65535])}
            record["upper_immediate"] = rng.randrange(-2, 12)
            record["lower_immediate"] = rng.randrange(-2, 3)
        if "elements" in record:
            # A fed stream would need lines for a program that is hardly ever legal.
            record["source"] = StreamSource.MEMORY
            record["elements"] = rng.choice([record["elements"], rng.randrange(400)])
            record["first"] = rng.choice([record["first"], rng.randrange(20)])
        if "pitch" in record:
            multiples = {"pitch": config.bus_bytes, "base": LINE_BYTES, "length": 1}
            if record["offset_enable"]:
                multiples["length"] = config.bus_bytes
            record |= {name: record[name] // unit * unit for name, unit in multiples.items()}
        records[path] = record
    for k in range(units):
        records[f"unit{k}"]["pair"] &= records[f"unit{k}.stream0"]["enable"]
    arguments = tuple(rng.randrange(-3, 9) for _ in range(config.exports))
    return Case(
        seed=seed,
        kind="soup",
        microcode=Microcode(config, records),
        regions=tuple(space.regions),
        requests=(arguments,) * rng.randint(1, 2),
    )


def _value(field: Field, rng: random.Random) -> int:
    if field.kind is FieldKind.EVENTS or rng.random() < 0.5:
        return rng.randint(field.least, field.most)
    return max(field.least, min(field.most, rng.choice([0, 0, 1, 2, -1, field.most, field.least])))
