"""How often each loop and each callback of a launch must run, as far as microcode tells.

A loop whose bounds are constants or arguments of the request runs as often as these say. Bounds
that come from memory are known to the binding alone: in sum they give the lookups of the request.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ember_hw.compiler.program import Argument, Nest
from ember_hw.host.launch import Launch
from ember_hw.isa import BoundSource, Event, Microcode


def iterations(
    microcode: Microcode, arguments: Sequence[int], lookups: int | None
) -> list[int | None]:
    """Return the iterations of each unit in a whole run.

    Parameters
    ----------
    microcode : Microcode
        Bound.
    arguments : sequence of int
        What the request carries.
    lookups : int, optional
        Iterations of the outermost unit whose bounds come from memory.

    Returns
    -------
    list of int or None
        None where the numbers are in memory and `lookups` doesn't say them.
    """
    config = microcode.config
    exports: list[int | None] = [*arguments, *[0] * (config.exports - len(arguments))]
    total: int | None = 1
    totals: list[int | None] = []
    for unit in range(config.traversal_units):
        record = microcode.records[f"unit{unit}"]
        if not record["enable"]:
            break
        lower = _bound(record, "lower", exports)
        if record["upper_source"] == BoundSource.LOWER_PLUS:
            extent: int | None = record["upper_immediate"]
        else:
            upper = _bound(record, "upper", exports)
            extent = None if lower is None or upper is None else upper - lower
        if extent is None:
            total, lookups = (lookups, None) if record["step"] == 1 else (None, None)
        elif total is not None:
            total *= max(0, -(-extent // record["step"]))
        totals.append(total)
        for number in range(config.exports):
            if record[f"export{number}"]:
                exports[number] = None
    return totals


def _bound(record: Mapping[str, int], which: str, exports: Sequence[int | None]) -> int | None:
    if record[f"{which}_source"] == BoundSource.SLOT:
        return exports[record[f"{which}_export"]]
    return record[f"{which}_immediate"]


def expected_calls(nest: Nest, launch: Launch, lookups: int | None) -> dict[int, int | None]:
    """Return how often each callback must be called in a whole run, None where that isn't known.

    Parameters
    ----------
    nest : Nest
        Its callbacks.
    launch : Launch
        Its microcode, bound, and arguments.
    lookups : int, optional
        See `iterations`.
    """
    totals = iterations(launch.microcode, launch.arguments, lookups)
    entries = [1, *totals]
    return {
        callback.id: (totals if callback.event is Event.ITERATE else entries)[callback.level]
        for callback in nest.callbacks
    }


def element_bytes(nest: Nest, calls: Mapping[int, int], arguments: Sequence[Argument]) -> int:
    """Return the bytes of rows that came element by element, as scalars of bundles (opt level 0).

    Parameters
    ----------
    nest : Nest
        Its callbacks name the memory that each operand was loaded from.
    calls : mapping of int to int
        Calls of each callback.
    arguments : sequence of Argument
        Of the program; what has two dimensions or more, and isn't of indices, holds rows.
    """
    sizes = {
        argument.symbol: argument.dtype.itemsize
        for argument in arguments
        if argument.is_memory and len(argument.extents) > 1 and argument.dtype.kind == "f"
    }
    return sum(
        calls[callback.id] * sizes.get(operand.symbol, 0)
        for callback in nest.callbacks
        for operand in callback.operands
        if operand.kind == "scalar"
    )
