"""What the bindings of imported operations share: roles, matrices, results.

The model's `sources` say for each role which input it is, or which row of an input; `symbols` say
for each matrix of the function which role it is, and which of so many equal parts of its columns.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from numpy.typing import NDArray

from ember_hw.compiler.program import Program
from ember_hw.host.arrays import float_array
from ember_hw.host.bindings.inputs import check_sizes, is_torch, named_inputs
from ember_hw.host.bindings.row_types import as_given, check_table, types_of


class Call:
    """The inputs of one run by role.

    Parameters
    ----------
    program : Program
        Says what its inputs are.
    inputs : sequence or mapping
        In the order of the module's arguments, or by their names.

    Raises
    ------
    ProgramError
        The inputs don't match the program's arguments.
    ValueError
        A size is one that the program was not exported for.
    """

    def __init__(self, program: Program, inputs: Any) -> None:
        model: Mapping[str, Any] = program.model
        self.program = program
        self.facts: Mapping[str, Any] = model["facts"]
        given = named_inputs(program, inputs, needed=model["input_names"])
        check_sizes(model["size_limits"], given)
        self.as_torch = any(is_torch(value) for value in given.values())
        self._values: dict[str, Any] = {}
        self._names: dict[str, str] = {}
        for role, (name, row) in model["sources"].items():
            self._values[role] = given[name] if row is None else _row(name, given[name], row)
            self._names[role] = name if row is None else f"{name}[{row}]"

    def __contains__(self, role: str) -> bool:
        return role in self._values

    def value(self, role: str) -> Any:
        """Return what the caller passed for a role."""
        return self._values[role]

    def name(self, role: str) -> str:
        """Return how messages call a role: by the input that it is."""
        return self._names.get(role) or str(self._weights[role]["name"])

    @property
    def _weights(self) -> Mapping[str, Any]:
        weights: Any = self.program.model["weights"]
        return weights

    def matrix(self, role: str) -> NDArray[Any]:
        """Return a matrix, the model's own (its first part, if it has parts) or the caller's.

        Raises
        ------
        TypeError, ValueError
            It is no dense matrix of the program's dtype of rows, float32 of most kinds.
        """
        symbols: Any = self.program.model["symbols"]
        for symbol, (owner, *_) in symbols.items():
            if owner == role and symbol in self.program.tables:
                return self.program.tables[symbol]
        name = self.name(role)
        dtype = types_of(self.program).table_dtype()
        return float_array(name, self._values[role], name, shape=(None, None), dtype=dtype)

    def matrices(self) -> dict[str, NDArray[Any]]:
        """Return the matrices of the caller by symbol."""
        symbols: Any = self.program.model["symbols"]
        return {symbol: self.matrix(role) for symbol, (role, *_) in symbols.items() if role in self}

    def result(self, array: NDArray[Any]) -> Any:
        """Return a result as the caller gets it: a tensor, if one of the inputs is."""
        return as_given(array, self.as_torch)


def _row(name: str, value: Any, row: int) -> Any:
    """Return one row of an input of two dimensions."""
    shape: tuple[int, ...] = tuple(getattr(value, "shape", ()))
    if len(shape) != 2:
        raise ValueError(f"{name} must have 2 dimensions, not {len(shape)}")
    if row >= shape[0]:
        raise ValueError(f"{name} must have at least {row + 1} rows, not {shape[0]}")
    return value[row]


def check(program: Program) -> None:
    """Refuse tables that aren't the ones the model describes.

    Raises
    ------
    ProgramError
        The dtype or shape of one differs.
    """
    weights: Any = program.model["weights"]
    symbols: Any = program.model["symbols"]
    for symbol in program.tables:
        role, _, parts = symbols[symbol]
        rows, columns = weights[role]["shape"]
        check_table(program, symbol, rows, columns // parts)
