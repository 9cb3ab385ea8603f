"""From a program and its inputs to a launch: what the device reads, and where.

Nothing here touches a device; every rule for inputs is checked before one is.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ember_hw.compiler.program import Callback, Program
from ember_hw.errors import ProgramError
from ember_hw.host.memory_layout import MemoryLayout, Region, ResidentTable
from ember_hw.host.request import LookupRequest, normalise_request
from ember_hw.isa import Microcode

#: Symbols of a bag's arguments: row pointers, indices, pooled rows, number of bags.
OFFSETS, INDICES, OUTPUT, NUM_BAGS = "off", "idx", "out", "B"


@dataclass(frozen=True)
class Launch:
    """One run of a program, as a backend gets it.

    Attributes
    ----------
    microcode : Microcode
        Bound.
    regions : tuple of Region
        Memory of the device; no two overlap.
    callbacks : tuple of Callback
        What the bundles will be used for.
    arguments : tuple of int
        What the request carries, see `Program.request_arguments`; those left out are 0.
    """

    microcode: Microcode
    regions: tuple[Region, ...]
    callbacks: tuple[Callback, ...]
    arguments: tuple[int, ...] = ()


class LoadedProgram:
    """A program whose tables lie in the device's memory.

    Parameters
    ----------
    program : Program
        Its tables are passed by pointer or copied, see `memory_layout`.

    Raises
    ------
    ProgramError
        A table isn't the one its model describes, or the memory is too small for it.
    """

    def __init__(self, program: Program) -> None:
        self.program = program
        model: Mapping[str, Any] = program.model
        shape = (model["num_embeddings"], model["embedding_dim"])
        self._layout = MemoryLayout(program.config)
        self.tables: dict[str, ResidentTable] = {}
        for symbol, table in program.tables.items():
            if table.dtype != np.float32 or table.shape != shape:
                raise ProgramError(
                    f"table {symbol!r} of program {program.name!r} must be float32 of shape "
                    f"{shape}, not {table.dtype} of shape {table.shape}"
                )
            self.tables[symbol] = ResidentTable(self._layout, symbol, table)

    def is_current(self) -> bool:
        """Whether the program still has the tables that were loaded."""
        loaded = {symbol: resident.table for symbol, resident in self.tables.items()}
        return loaded.keys() == self.program.tables.keys() and all(
            table is self.program.tables[symbol] for symbol, table in loaded.items()
        )

    def launch(self, request: LookupRequest) -> Launch:
        """Place a request behind the tables and bind the program to it.

        Raises
        ------
        ProgramError
            The program has an argument that no lookup provides, or the request doesn't fit.
        """
        program = self.program
        model: Mapping[str, Any] = program.model
        layout = MemoryLayout(program.config, self._layout.next_address)
        indices = request.indices.astype(np.dtype(model["index_dtype"]), copy=False)
        regions = [resident.region for resident in self.tables.values()]
        regions.append(layout.place_vector(OFFSETS, request.offsets))
        regions.append(layout.place_vector(INDICES, indices))
        environment = {NUM_BAGS: request.num_bags}
        for region in regions:
            environment |= region.environment()
        for argument in program.arguments:
            if argument.symbol not in environment and argument.symbol != OUTPUT:
                legal = ", ".join([*self.tables, OFFSETS, INDICES, OUTPUT, NUM_BAGS])
                raise ProgramError(
                    f"argument of program {program.name!r} must be one of {legal}, "
                    f"not {argument.symbol!r}"
                )
        for resident in self.tables.values():
            resident.refresh(request.indices)
        return Launch(
            program.bind(environment),
            tuple(regions),
            program.callbacks,
            program.request_arguments(environment),
        )


def named_inputs(program: Program, inputs: Sequence[Any] | Mapping[str, Any]) -> dict[str, Any]:
    """Return the inputs of a run by name.

    Parameters
    ----------
    program : Program
        Says what its inputs are called.
    inputs : sequence or mapping
        The values in the order of the module's arguments, or by their names. Offsets may be left
        out where `indices` is 2-D.

    Raises
    ------
    ProgramError
        The inputs don't match the program's arguments.
    """
    model: Mapping[str, Any] = program.model
    names: list[str] = list(model["input_names"])
    rule = f"inputs of program {program.name!r} must be ({', '.join(names)})"
    if isinstance(inputs, Mapping):
        given = dict(inputs)
    elif isinstance(inputs, list | tuple):
        if len(inputs) > len(names):
            raise ProgramError(f"{rule}, not {len(inputs)} values")
        given = dict(zip(names, inputs, strict=False))
    else:
        raise ProgramError(f"{rule}, as a tuple or by name, not {type(inputs).__name__}")
    for name in given:
        if name not in names:
            raise ProgramError(f"{rule}, not {name!r}")
    if model["indices_name"] not in given:
        raise ProgramError(f"{rule}, and {model['indices_name']!r} must not be left out")
    return given


def make_request(program: Program, inputs: Sequence[Any] | Mapping[str, Any]) -> LookupRequest:
    """Check the inputs of a run.

    Parameters
    ----------
    program : Program
        Says what its inputs are.
    inputs : sequence or mapping
        As `named_inputs` takes them.

    Raises
    ------
    ProgramError
        As `named_inputs`.
    ValueError
        A size is one that the program was not exported for.
    TypeError, ValueError, IndexError
        As `normalise_request`.
    """
    model: Mapping[str, Any] = program.model
    given = named_inputs(program, inputs)
    _check_sizes(model.get("size_limits", ()), given)
    return normalise_request(
        given[model["indices_name"]],
        given.get(model["offsets_name"]),
        num_embeddings=model["num_embeddings"],
        include_last_offset=model["include_last_offset"],
        table_name=model["name"],
    )


def _check_sizes(limits: Iterable[Any], given: Mapping[str, Any]) -> None:
    """Refuse sizes that the exported program excludes; kinds and ranks are the request's rules."""
    for name, dimension, smallest, largest in limits:
        shape: tuple[int, ...] = tuple(getattr(given.get(name), "shape", ()))
        if dimension >= len(shape):
            continue
        size = shape[dimension]
        if size < smallest or (largest is not None and size > largest):
            from ember_hw.compiler.frontend.embedding_bag import size_rule  # imports torch

            raise ValueError(
                f"{name}.shape[{dimension}] must be {size_rule(smallest, largest)}, as the program "
                f"was exported for, not {size}; export it again with Dim.AUTO for this dimension"
            )


def is_torch(value: object) -> bool:
    """Whether a value is a torch tensor; never imports torch."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)
