"""The binding of a user's own function: arguments by name in, written arrays out.

Every memref argument that isn't a table of the program is given as an array of its dtype and rank,
every index or integer as a number, and a struct as nested tuples of numbers. Arrays that the
function writes start as given and come back as new ones: nothing of the caller's is changed.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Iterator, Mapping
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from ember_hw.compiler.element_dtypes import tensor_array, tensor_of
from ember_hw.compiler.program import Argument, Program
from ember_hw.config import VALUE_WIDTH_BITS
from ember_hw.host.bindings.inputs import is_torch, named_inputs
from ember_hw.host.bindings.request import Output, Request

_MOST = (1 << (VALUE_WIDTH_BITS - 1)) - 1


def check(program: Program) -> None:
    """Accept every table: `compile_function` has checked them."""


def request(program: Program, inputs: Any) -> Request:
    """Return the request of a run.

    Parameters
    ----------
    program : Program
        A function.
    inputs : sequence or mapping
        A value of each argument, but tables, in order or by name.

    Raises
    ------
    ProgramError
        An argument is missing, or there is none of a name.
    TypeError
        An array is of another dtype than its memref, or a number is none.
    ValueError
        An array's shape doesn't fit its memref, a number exceeds the access unit's values, or a
        vector of which the function says by `ember.rising` that its elements never fall has some
        that do.
    """
    model: Mapping[str, Any] = program.model
    names: list[str] = model["input_names"]
    given = named_inputs(program, inputs, needed=names)
    arrays: dict[str, NDArray[Any]] = {}
    scalars: dict[str, int] = {}
    as_torch = False
    for name, type_ in zip(names, model["input_types"], strict=True):
        argument = Argument(name, type_)
        if argument.is_memory:
            as_torch |= is_torch(given[name]) and name in model["outputs"]
            arrays[name] = _array(program, argument, given[name])
        else:
            scalars |= dict(_numbers(name, type_, given[name]))
    for name in model.get("rising", ()):
        _check_rising(program, name, arrays[name] if name in arrays else program.tables[name])
    outputs: list[str] = model["outputs"]

    def finish(results: Mapping[str, NDArray[Any]]) -> Any:
        values: list[Any] = [results[name] for name in outputs]
        if as_torch:
            values = [tensor_of(value) for value in values]
        return values[0] if len(values) == 1 else tuple(values)

    return Request(
        arrays={name: array for name, array in arrays.items() if name not in outputs},
        scalars=scalars,
        outputs={name: Output(arrays[name].shape, arrays[name]) for name in outputs},
        lookups=None,
        finish=finish,
    )


def reference(program: Program, inputs: Any) -> Any:
    """Return what the function's scf gives in the interpreter, in the form of a run's result."""
    from ember_hw.compiler.interpreters import interpret
    from ember_hw.compiler.ir_text import parse_module

    model: Mapping[str, Any] = program.model
    call = request(program, inputs)
    given = named_inputs(program, inputs)
    written = {name: np.array(output.fill) for name, output in call.outputs.items()}
    values: Mapping[str, Any] = {**given, **call.arrays, **program.tables, **written}
    module = parse_module(program.ir["scf"])
    symbols = list(values_in_order(program.ir["scf"]))
    interpret(module, model["name"], [values[symbol] for symbol in symbols])
    return call.finish(written)


def values_in_order(scf: str) -> list[str]:
    """Return the names of the function's arguments, which its text states."""
    found = re.search(r"ember\.args = \[([^\]]*)\]", scf)
    assert found, "compile_function names the arguments"
    return re.findall(r'"([^"]*)"', found[1])


def _array(program: Program, argument: Argument, value: Any) -> NDArray[Any]:
    what = f"{argument.symbol} of program {program.name!r}"
    if is_torch(value):
        value = tensor_array(value)
    if not isinstance(value, np.ndarray) or isinstance(value, np.ma.MaskedArray):
        kind = type(cast(object, value)).__name__
        raise TypeError(f"{what} must be a NumPy array or a torch tensor, not {kind}")
    array = cast("NDArray[Any]", value)
    if array.dtype != argument.dtype:
        raise TypeError(
            f"{what} must be of dtype {argument.dtype} for {argument.type}, not {array.dtype}"
        )
    if not argument.fits(array.shape):
        raise ValueError(f"{what} must be of a shape that fits {argument.type}, not {array.shape}")
    return array


def _check_rising(program: Program, name: str, array: NDArray[Any]) -> None:
    falls = np.flatnonzero(array[1:] < array[:-1])
    if falls.size:
        place = int(falls[0])
        raise ValueError(
            f"element {place + 1} of {name} of program {program.name!r} must be "
            f"{array[place]} or more, as the function says by 'ember.rising', "
            f"not {array[place + 1]}"
        )


def _numbers(name: str, type_: str, value: Any) -> Iterator[tuple[str, int]]:
    """Yield the numbers that an argument is: itself, or the members of a struct, by symbol."""
    if type_.startswith("!llvm."):
        if not isinstance(value, tuple | list):
            kind = type(value).__name__
            raise TypeError(f"{name} must be nested tuples of numbers for {type_}, not {kind}")
        for place, member in enumerate(cast("list[Any]", value)):
            inner = "!llvm.struct" if isinstance(member, tuple | list) else "index"
            yield from _numbers(f"{name}.{place}", inner, member)
        return
    try:
        number = operator.index(value)
    except TypeError:
        kind = type(value).__name__
        raise TypeError(f"{name} must be an integer for {type_}, not {kind}") from None
    if not -_MOST - 1 <= number <= _MOST:
        raise ValueError(
            f"{name} must be from {-_MOST - 1} to {_MOST}, the access unit's values, not {number}"
        )
    yield name, number
