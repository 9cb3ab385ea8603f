"""Programs run on both engines, with queues from the microcode interpreter: what tests share."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.builtin import ModuleOp

from ember_hw.compiler.backend.extract_code import extract_code
from ember_hw.compiler.backend.extract_values import memory_symbols
from ember_hw.compiler.backend.lower import lower
from ember_hw.compiler.dialects.dlc import ComputeLoopOp
from ember_hw.compiler.interpreters.microcode import execute
from ember_hw.compiler.interpreters.microcode_function import bind, place_arrays
from ember_hw.compiler.ir_text import parse_module
from ember_hw.compiler.program import Nest
from ember_hw.config import AcceleratorConfig
from ember_hw.host.execution import Chunk, ExecuteSide
from ember_hw.isa import Microcode

#: Room for every kernel at every level.
LARGE = AcceleratorConfig(
    name="large",
    data_width_bits=128,
    traversal_units=4,
    streams_per_unit=8,
    row_entries=8,
    exports=16,
    bundle_scalars=8,
)
ENGINES = ("c", "numpy")


@dataclass(frozen=True)
class Compiled:
    """A function's nests, with the assemblies that place their arrays."""

    module: ModuleOp
    nests: tuple[Nest, ...]
    assemblies: tuple[Any, ...]
    scratch: tuple[str, ...]


def compiled(text: str, opt_level: int, config: AcceleratorConfig = LARGE) -> Compiled:
    """Compile scf text with one function."""
    module = parse_module(text)
    lowered = lower(module, opt_level, config, may_leave_loops=True)
    loops = [op for op in lowered.function.body.block.ops if isinstance(op, ComputeLoopOp)]
    nests = tuple(
        replace(assembly.nest(), code=extract_code(loop))
        for assembly, loop in zip(lowered.assemblies, loops, strict=True)
    )
    symbols = memory_symbols(lowered.function).values()
    scratch = tuple(symbol for symbol in symbols if symbol.startswith("scratch"))
    return Compiled(module, nests, lowered.assemblies, scratch)


def whole_run(assembly: Any, arguments: Mapping[str, Any]) -> tuple[Microcode, Chunk]:
    """Return bound microcode and all that its queues deliver."""
    symbols, regions = place_arrays(assembly, arguments)
    microcode = bind(assembly, symbols)
    chunks = list(execute(microcode, regions))
    names = ("events", "scalars", "row_beats", "row_last")
    return microcode, Chunk(*(np.concatenate([getattr(c, n) for c in chunks]) for n in names))


def cut(whole: Chunk, random: np.random.Generator, pieces: int) -> Iterator[Chunk]:
    """Cut both queues at random positions."""
    bundles, beats = whole.events.size, whole.row_last.size
    bundle_edges = [0, *np.sort(random.integers(0, bundles + 1, pieces - 1)).tolist(), bundles]
    beat_edges = [0, *np.sort(random.integers(0, beats + 1, pieces - 1)).tolist(), beats]
    for a, b, c, d in zip(bundle_edges, bundle_edges[1:], beat_edges, beat_edges[1:], strict=False):
        yield Chunk(
            whole.events[a:b].copy(),
            whole.scalars[a:b].copy(),
            whole.row_beats[c:d].copy(),
            whole.row_last[c:d].copy(),
        )


def run(
    program: Compiled, arguments: dict[str, Any], engine: Any, seed: int, pieces: int = 4
) -> list[ExecuteSide]:
    """Run every nest; `arguments` are written in place."""
    random = np.random.default_rng(seed)
    arrays: dict[str, NDArray[Any]] = {
        symbol: value for symbol, value in arguments.items() if isinstance(value, np.ndarray)
    }
    arrays |= {symbol: np.full(4096, np.nan, np.float32) for symbol in program.scratch}
    scalars = {s: int(v) for s, v in arguments.items() if not isinstance(v, np.ndarray)}
    sides: list[ExecuteSide] = []
    for nest, assembly in zip(program.nests, program.assemblies, strict=True):
        microcode, whole = whole_run(assembly, {**arrays, **scalars})
        side = ExecuteSide(nest, arrays, scalars, engine, microcode=microcode)
        for chunk in cut(whole, random, pieces):
            side.consume(chunk)
            for reused in (chunk.events, chunk.scalars, chunk.row_beats, chunk.row_last):
                reused[...] = 0
        side.finish()
        sides.append(side)
    return sides
