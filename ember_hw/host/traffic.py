"""How often each loop and each callback of a launch must run, as far as microcode tells.

A loop whose bounds are constants or arguments of the request runs as often as these say. Bounds
that come from memory are known to the binding alone, see `Request.gathered`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, TypeAlias
from weakref import WeakKeyDictionary

from ember_hw.compiler.element_dtypes import is_float
from ember_hw.compiler.program import Argument, Nest
from ember_hw.config import AcceleratorConfig
from ember_hw.host.launch import Launch
from ember_hw.isa import BoundSource, Event, Microcode

#: An export that a memory stream has loaded.
_LOADED = "loaded"
_Export: TypeAlias = "int | Literal['loaded'] | None"


def iterations(
    microcode: Microcode, arguments: Sequence[int], gathered: int | None
) -> list[int | None]:
    """Return the iterations of each unit in a whole run.

    Parameters
    ----------
    microcode : Microcode
        Bound.
    arguments : sequence of int
        What the request carries.
    gathered : int, optional
        Iterations of the outermost unit whose bounds come from memory.

    Returns
    -------
    list of int or None
        None where microcode and `gathered` don't tell.
    """
    config = microcode.config
    exports: list[_Export] = [*arguments, *[0] * (config.exports - len(arguments))]
    total: int | None = 1
    totals: list[int | None] = []
    for unit in range(config.traversal_units):
        record = microcode.records[f"unit{unit}"]
        if not record["enable"]:
            break
        lower = _bound(record, "lower", exports)
        if record["upper_source"] == BoundSource.LOWER_PLUS:
            extent: _Export = record["upper_immediate"]
        else:
            extent = _difference(_bound(record, "upper", exports), lower)
        if isinstance(extent, int):
            total = None if total is None else total * max(0, -(-extent // record["step"]))
        elif extent == _LOADED and record["step"] == 1:
            total, gathered = gathered, None
        else:
            total = gathered = None
        totals.append(total)
        for number in range(config.exports):
            if selector := record[f"export{number}"]:
                exports[number] = _export(selector, record, config)
    return totals


def _export(selector: int, record: Mapping[str, int], config: AcceleratorConfig) -> _Export:
    """Return what is known of a unit's own value: 1 its induction, then streams, then the ALU."""
    is_loaded = 2 <= selector < config.streams_per_unit + 2
    is_next = selector == config.streams_per_unit + 2 and record["pair"]
    return _LOADED if is_loaded or is_next else None


def _difference(upper: _Export, lower: _Export) -> _Export:
    if upper is None or lower is None:
        return None
    return upper - lower if isinstance(upper, int) and isinstance(lower, int) else _LOADED


def _bound(record: Mapping[str, int], which: str, exports: Sequence[_Export]) -> _Export:
    if record[f"{which}_source"] == BoundSource.SLOT:
        return exports[record[f"{which}_export"]]
    return record[f"{which}_immediate"]


def expected_calls(nest: Nest, launch: Launch, gathered: int | None) -> dict[int, int | None]:
    """Return how often each callback must be called in a whole run, None where that isn't known.

    Parameters
    ----------
    nest : Nest
        Its callbacks.
    launch : Launch
        Its microcode, bound, and arguments.
    gathered : int, optional
        See `iterations`.
    """
    known = _expected.get(launch)
    if known is not None and known[0] == gathered:
        return known[1]
    totals = iterations(launch.microcode, launch.arguments, gathered)
    entries = [1, *totals]
    calls = {
        callback.id: (totals if callback.event is Event.ITERATE else entries)[callback.level]
        for callback in nest.callbacks
    }
    _expected[launch] = gathered, calls
    return calls


#: Of launches that are alive: what was gathered at the latest time, and the calls of it.
_expected: WeakKeyDictionary[Launch, tuple[int | None, dict[int, int | None]]] = WeakKeyDictionary()


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
    loaded = {
        operand.symbol
        for callback in nest.callbacks
        for operand in callback.operands
        if operand.kind == "scalar" and operand.symbol
    }
    if not loaded:
        return 0
    sizes = {
        argument.symbol: argument.dtype.itemsize
        for argument in arguments
        if argument.is_memory and len(argument.extents) > 1 and is_float(argument.dtype)
    }
    return sum(
        calls[callback.id] * sizes.get(operand.symbol, 0)
        for callback in nest.callbacks
        for operand in callback.operands
        if operand.kind == "scalar"
    )
