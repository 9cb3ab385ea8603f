"""A compilation that checks itself: every level runs in the interpreters, for one answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

from ember_hw.compiler.dialects.au import ProgramOp
from ember_hw.compiler.frontend import EmbeddingBagSpec
from ember_hw.compiler.interpreters import Schedule, interpret
from ember_hw.compiler.interpreters.au import run_au
from ember_hw.errors import CheckError

#: Lookups of each bag: empty bags first, in the middle and last; one of one lookup.
BAG_LENGTHS = (0, 3, 0, 4, 1, 0)
#: Rows of the table.
ROWS = 7


class LevelCheck:
    """
    What a module of scf does to its arguments, for the levels below to do the same.

    Parameters
    ----------
    module : ModuleOp
        Verified scf; it is run once, and not kept.
    function : str
        The function to run.
    arguments : callable
        Returns a value of each argument, the same at each call; arrays may be written.
    """

    def __init__(
        self, module: ModuleOp, function: str, arguments: Callable[[], Sequence[Any]]
    ) -> None:
        self.function = function
        self.arguments = arguments
        self.expected = list(arguments())
        interpret(module, function, self.expected)

    def check(self, name: str, module: ModuleOp) -> None:
        """
        Run the module as it is after a pass.

        Raises
        ------
        CheckError
            An argument ends up with other bits than at scf, NaN aside.
        """
        found = list(self.arguments())
        interpret(module, self.function, found, schedule=Schedule.LOCKSTEP)
        for position, (expected, array) in enumerate(zip(self.expected, found, strict=True)):
            if not isinstance(array, np.ndarray):
                continue
            array = cast("NDArray[Any]", array)
            same = _same(expected, array)
            if not same.all():
                place = tuple(int(i) for i in np.argwhere(~same)[0])
                raise CheckError(
                    f"IR after {name!r} must leave {expected[place]!r} at {place} of argument "
                    f"{position}, as scf does, not {array[place]!r}"
                )


def _same(expected: NDArray[Any], found: NDArray[Any]) -> NDArray[np.bool_]:
    """Compare bits; NaN equals NaN."""
    if expected.dtype.kind != "f":
        return np.asarray(expected == found)
    bits = np.dtype(f"u{expected.itemsize}")
    same = np.ascontiguousarray(expected).view(bits) == np.ascontiguousarray(found).view(bits)
    return np.asarray(same | (np.isnan(expected) & np.isnan(found)))


class SelfCheck:
    """
    A small seeded request, its exact result, and the levels that are run on it.

    The result is `out[b, d] = sum of tab[idx[j], d] for j in off[b] .. off[b + 1]`, in float32 and
    in the order of j, and every level must equal it bit by bit.

    Parameters
    ----------
    spec : EmbeddingBagSpec
        Gives the number of columns and the dtype of the indices.
    function : str
        The function to run, of arguments (off, idx, tab, out, B).
    seed : int
        Makes indices and table.
    """

    def __init__(self, spec: EmbeddingBagSpec, function: str, seed: int = 0) -> None:
        random = np.random.default_rng(seed)
        self.function = function
        self.offsets = np.cumsum([0, *BAG_LENGTHS]).astype(np.int64)
        indices = [ROWS - 1, *random.integers(0, ROWS, size=sum(BAG_LENGTHS) - 1)]
        self.indices: NDArray[Any] = np.array(indices, spec.index_dtype)
        shape = (ROWS, spec.embedding_dim)
        self.table = random.standard_normal(shape).astype(np.float32)
        self.expected = self._output()
        for bag, (start, end) in enumerate(zip(self.offsets[:-1], self.offsets[1:], strict=True)):
            for index in indices[start:end]:
                self.expected[bag] += self.table[index]

    def check(self, name: str, module: ModuleOp) -> None:
        """
        Run the module as it is after a pass.

        Raises
        ------
        CheckError
            It computes something else.
        """
        output = self._output()
        interpret(module, self.function, self._arguments(output), schedule=Schedule.LOCKSTEP)
        self._compare(f"IR after {name!r}", output)

    def check_au(self, programs: Sequence[ProgramOp], module: ModuleOp) -> None:
        """
        Run access programs against the execute side of their dlc module.

        Raises
        ------
        CheckError
            It computes something else.
        """
        output = self._output()
        environment: dict[str, Any] = {
            "off": self.offsets,
            "idx": self.indices,
            "tab": self.table,
            "B": len(BAG_LENGTHS),
        }
        run_au(
            programs,
            module,
            self.function,
            self._arguments(output),
            environment,
            schedule=Schedule.LOCKSTEP,
        )
        self._compare("program of the access unit", output)

    def _output(self) -> NDArray[np.float32]:
        return np.zeros((len(BAG_LENGTHS), self.table.shape[1]), np.float32)

    def _arguments(self, output: NDArray[np.float32]) -> tuple[Any, ...]:
        return self.offsets, self.indices, self.table, output, len(BAG_LENGTHS)

    def _compare(self, what: str, output: NDArray[np.float32]) -> None:
        differs = output.view(np.uint32) != self.expected.view(np.uint32)
        if differs.any():
            bag, column = (int(i) for i in np.argwhere(differs)[0])
            raise CheckError(
                f"{what} must give the exact reference, {self.expected[bag, column]!r} in column "
                f"{column} of bag {bag}, not {output[bag, column]!r}"
            )


def check_of(spec: Any, module: ModuleOp) -> SelfCheck:
    """Return the check of an imported module."""
    (function,) = (op for op in module.ops if isinstance(op, FuncOp))
    return SelfCheck(spec, function.sym_name.data)
