# pyright: basic
"""Random calls whose execute side is in the fabric, and calls on real data sets: every dtype.

The answer is the binding's exact reference in NumPy. Held against it: the interpreter, whose reduce
unit is a model, and the simulated unit. A program whose execute code the host runs is a failure,
but for the second half of attention. Products of queries and keys alone are a function of scf.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch

import ember_hw
from ember_hw.bench.fuzzing import query_key
from ember_hw.bench.fuzzing.classes import (
    CALLS_A_MODEL,
    MODELS,
    REAL_DATA,
    SPECIAL_MODELS,
    ClassAccount,
    draws,
    real_case,
    with_special_floats,
)
from ember_hw.bench.fuzzing.every_level import RTL, UNIT, Comparison, Devices
from ember_hw.bench.fuzzing.op_models import Model
from ember_hw.compiler import compile_function
from ember_hw.host.bindings import binding_of

#: Each op class fits it; rows of 1,100 floats fit its accumulator. Tests of the fabric share it.
CONFIG = UNIT.with_changes(
    name="classes that reduce",
    data_width_bits=128,
    execute="reduce",
    int8_rows=1,
    reduce_dot=1,
)
#: By where results go.
CONFIGS = {
    "stream": CONFIG,
    "memory": CONFIG.with_changes(name="classes that write", results="memory"),
}
_HALVES = ("float16", "bfloat16")
_PACKED = "int8"
#: Op classes that the reduce unit runs, and the dtypes of their rows.
DTYPES = {
    "embedding_bag": ("float32", *_HALVES, _PACKED),
    "embedding": ("float32", *_HALVES),
    "aggregation": ("float32", *_HALVES),
    "spmm": ("float32",),
    "scores": ("float32",),
    "fusedmm": ("float32",),
    "block_attention": ("float32",),
}
#: Products of queries and keys, which no model is, and the dtypes of their rows.
_PRODUCTS = "query_key"
_PRODUCT_DTYPES = tuple(query_key.DTYPES)
#: Where the nests of a class run, if not all of them in the fabric.
_PLACES = {"block_attention": ("fabric", "host")}
#: Models of these classes that it doesn't run: ComplEx takes more of three rows than its chain.
_ON_THE_HOST = frozenset({"complex"})
#: Columns of the models that are drawn, one after the other.
_COLUMNS = (1, 3, 64, 2, 1023, 5, 17, 1100, 8)
#: Columns on real data.
_REAL_COLUMNS = 16
_INTERPRETER = {"interpreter": ("interpreter", {})}
#: Levels that send whole rows.
_OPT_LEVELS = (2, 3)
_MOST = 40


@dataclass(frozen=True)
class Pooled:
    """Calls of a model with tables of a dtype; `data` names a real data set, or is empty."""

    model: str
    dtype: str
    columns: int
    seed: int
    calls: int = 1
    data: str = ""
    results: str = "stream"


class Fabric(Devices):
    """
    Compares programs whose execute side is in the fabric.

    Parameters
    ----------
    rtl : bool
        Whether the simulated unit takes part.
    results : "stream" or "memory"
        Where the reduce unit's results go.
    """

    def __init__(self, *, rtl: bool, results: str = "stream") -> None:
        self._config = CONFIGS[results]
        super().__init__(self._config, {**_INTERPRETER, **(RTL if rtl else {})})

    def compare(
        self,
        model: Model,
        calls: list[tuple[torch.Tensor, ...]],
        example: tuple[torch.Tensor, ...],
        *,
        is_packed: bool = False,
        places: tuple[str, ...] | None = None,
    ) -> Comparison:
        """Compile a model for the fabric, and run its calls everywhere.

        Parameters
        ----------
        model : Model
            What is called.
        calls, example
            Inputs, and those that it is compiled with.
        is_packed : bool
            Whether its table is.
        places : tuple of str, optional
            Where its nests run, if not all of them in the fabric.
        """
        found = Comparison()
        tables: Any = {"weight": _PACKED} if is_packed else None
        for opt_level in _OPT_LEVELS:
            program = ember_hw.compile(
                model,
                example,
                config=self._config,
                opt_level=opt_level,
                execute="fabric" if places is None else "auto",
                tables=tables,
            )
            executes = tuple(nest.execute for nest in program.nests)
            if places is not None and executes != places:
                found.failures.append(
                    f"opt_level {opt_level}: nests must run in {places}, not {program.placement}"
                )
            binding = binding_of(program)
            expected = [np.asarray(binding.reference(program, call)) for call in calls]
            self.hold(program, calls, expected, opt_level, found)
        return found

    def compare_products(self, calls: list[dict[str, Any]], dtype: str) -> Comparison:
        """Compile the products of queries and keys of a dtype, and run calls everywhere."""
        found = Comparison()
        expected = [query_key.products(call) for call in calls]
        for opt_level in _OPT_LEVELS:
            program = compile_function(
                query_key.text_of(dtype),
                **{"config": self._config, "opt_level": opt_level, "execute": "fabric"},
            )
            self.hold(program, calls, expected, opt_level, found)
        return found


def parts(seed: int, calls: int, *, real: bool, results: str = "stream") -> Iterator[Pooled]:
    """Yield what there is to compare: models on real data, then random calls.

    Parameters
    ----------
    seed : int
        Of all draws.
    calls : int
        Random calls of each class and dtype.
    real : bool
        Whether real data sets take part.
    results : "stream" or "memory"
        Where the reduce unit's results go.
    """
    if real:
        for data, models in REAL_DATA.items():
            for model in (name for name in models if name not in _ON_THE_HOST):
                for dtype in DTYPES.get(MODELS[model].kind, ()):
                    yield Pooled(model, dtype, _REAL_COLUMNS, seed, data=data, results=results)
    for kind, dtypes in DTYPES.items():
        for place, dtype in enumerate(dtypes):
            for number, draw in enumerate(draws(kind, calls, seed + place, _ON_THE_HOST)):
                columns = _COLUMNS[number % len(_COLUMNS)]
                yield Pooled(draw.model, dtype, columns, draw.seed, draw.calls, results=results)
    for place, dtype in enumerate(_PRODUCT_DTYPES):
        random = np.random.default_rng([seed, place])
        for number, first in enumerate(range(0, calls, CALLS_A_MODEL)):
            columns = _COLUMNS[number % len(_COLUMNS)]
            drawn, count = int(random.integers(1 << 32)), min(CALLS_A_MODEL, calls - first)
            yield Pooled(_PRODUCTS, dtype, columns, drawn, count, results=results)


def name_of(part: Pooled) -> str:
    """Return the op class or the data set, and the dtype, that a part counts for."""
    kind = part.model if part.model == _PRODUCTS else MODELS[part.model].kind
    return f"{part.data or kind}, {part.dtype}"


def run_part(part: Pooled, *, rtl: bool) -> ClassAccount:
    """Compare the calls of a part, with the simulated unit or without."""
    account = ClassAccount(name_of(part))
    with Fabric(rtl=rtl, results=part.results) as fabric:
        attempted = partial(attempt_real if part.data else attempt, part, fabric)
        account.count(part, part.calls, attempted)
    return account


def attempt(part: Pooled, fabric: Fabric) -> Comparison:
    """Compare random calls of a model; the first of several has no lookup."""
    random = np.random.default_rng(part.seed)
    if part.model == _PRODUCTS:
        is_special = part.seed % SPECIAL_MODELS == 0
        calls = [
            query_key.draw(random, part.columns, part.dtype, is_special=is_special)
            for _ in range(part.calls)
        ]
        return fabric.compare_products(calls, part.dtype)
    case = MODELS[part.model]
    sizes = random.integers(0, _MOST, part.calls)
    if part.calls > 1:
        sizes[0] = 0
    calls = [case.inputs(random, part.columns, int(size)) for size in sizes]
    model = Model(case.function, part.columns, part.seed)
    # A row with a NaN can't be packed.
    if part.seed % SPECIAL_MODELS == 0 and part.dtype != _PACKED:
        calls = with_special_floats(random, model, calls)
    example = case.inputs(random, part.columns, 6)
    return _compare(model, calls, example, part, fabric)


def attempt_real(part: Pooled, fabric: Fabric) -> Comparison:
    """Compare a model on the whole of a real data set."""
    case = real_case(part.data, part.model, part.columns)
    model = Model(MODELS[part.model].function, part.columns, part.seed, case.rows, case.relations)
    call = case.inputs(np.random.default_rng([part.seed, 2]), sys.maxsize)
    return _compare(model, [call], call, part, fabric)


def _compare(model: Model, calls: list[Any], example: Any, part: Pooled, fabric: Fabric) -> Any:
    is_packed = part.dtype == _PACKED
    dtype = torch.float32 if is_packed else getattr(torch, part.dtype)

    def tensors(arrays: tuple[np.ndarray, ...]) -> tuple[torch.Tensor, ...]:
        given = (torch.from_numpy(np.ascontiguousarray(array)) for array in arrays)
        return tuple(t.to(dtype) if t.is_floating_point() else t for t in given)

    given = [tensors(call) for call in calls]
    places = _PLACES.get(MODELS[part.model].kind)
    options: Any = {"is_packed": is_packed, "places": places}
    return fabric.compare(model.to(dtype), given, tensors(example), **options)
