"""Operations of a torch graph that a device computes, and the programs that do it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import count
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from ember_hw.compiler.element_dtypes import ELEMENT_DTYPES, FLOAT_NAMES, tensor_array
from ember_hw.compiler.frontend.operation import Operation
from ember_hw.compiler.frontend.partition import roles_of_caller, spec_of
from ember_hw.compiler.frontend.tables import BagGroup
from ember_hw.compiler.frontend.torch_graph import describe
from ember_hw.compiler.program import Program
from ember_hw.host.device import Device
from ember_hw.host.program_cache import program_of

__all__ = ["MODEL_NAME", "AcceleratedOperation"]

#: Key of a graph input's metadata: the name of its parameter or buffer in the model.
MODEL_NAME = "ember_hw_name"


class AcceleratedOperation(torch.nn.Module):
    """An operation of a graph that a device computes.

    Parameters
    ----------
    operation : Operation or BagGroup
        What it is.
    weights : tuple of str
        Roles whose values stay from call to call.
    device : Device
        Computes it.
    opt_level : int
        0 to 3.

    Attributes
    ----------
    calls : int
        How often the device computed it.
    program : Program
        What runs; its tables are those of the last call.

    Raises
    ------
    EmberError
        It can't become a program for the device.
    """

    def __init__(
        self,
        operation: Operation | BagGroup,
        weights: Sequence[str],
        device: Device,
        opt_level: int,
    ) -> None:
        super().__init__()
        self.kind = operation.kind
        is_group = isinstance(operation, BagGroup)
        self.where = operation.where if is_group else describe(operation.node)
        self.calls = 0
        self._operation = operation
        self._weights = tuple(weights)
        self._roles = roles_of_caller(operation, dict.fromkeys(weights))
        self._device = device
        self._versions: dict[str, tuple[int, ...]] = {}
        self._held: dict[str, torch.Tensor] = {}
        # Only the shapes of tables matter here; zeros take no memory until they are written.
        nodes = dict.fromkeys(operation.inputs[role] for role in self._weights)
        zeros = {node: _zeros(node) for node in nodes}
        self.program: Program = program_of(self._spec(zeros), opt_level, device.config)

    def forward(self, *values: torch.Tensor) -> torch.Tensor | list[torch.Tensor]:
        """Compute the operation.

        Parameters
        ----------
        *values : tensor
            The operation's inputs, in the order of its roles.

        Returns
        -------
        tensor or list of tensor
            Its output, on the device of torch that the graph has it on; a list of a group's.
        """
        given = dict(zip(self._operation.inputs, values, strict=True))
        self._take_tables({role: given[role] for role in self._weights})
        result: Any = self._device.run(self.program, {role: given[role] for role in self._roles})
        self.calls += 1
        operation = self._operation
        if isinstance(operation, BagGroup):
            pairs = zip(result, operation.members, strict=True)
            return [_moved(rows, member.output) for rows, member in pairs]
        return _moved(result, operation.output)

    def _take_tables(self, tables: Mapping[str, torch.Tensor]) -> None:
        """Use these tables from now on; nothing happens if they are those of the last call."""
        versions = {role: _identity(table) for role, table in tables.items()}
        if versions == self._versions:
            return
        self._held = dict(tables)  # nothing else gets their addresses
        nodes = {self._operation.inputs[role]: table for role, table in tables.items()}
        spec = self._spec({node: _array(table) for node, table in nodes.items()})
        self._device.unload(self.program)
        self.program = replace(self.program, tables=spec.tables())
        self._versions = versions

    def _spec(self, tables: Mapping[torch.fx.Node, NDArray[Any]]) -> Any:
        """Return what the host must know; roles of one node have one table."""
        nodes = {role: self._operation.inputs[role] for role in self._weights}
        named = {role: (_name(node), tables[node]) for role, node in nodes.items()}
        return spec_of(self._operation, named)


def _moved(rows: torch.Tensor, output: torch.fx.Node) -> torch.Tensor:
    """Return rows on the device of torch that a node has its value on."""
    value: torch.Tensor = output.meta["val"]
    return rows.to(value.device)


def _name(node: torch.fx.Node) -> str:
    """Return what messages call a table: by its name in the model, where that is known."""
    return str(node.meta.get(MODEL_NAME, node.name))


_number = count()


def _zeros(node: torch.fx.Node) -> NDArray[Any]:
    value: torch.Tensor = node.meta["val"]
    shape = tuple(int(size) for size in value.shape)
    if value.dtype is torch.uint8:  # rows of a quantised table
        return np.zeros(shape, np.uint8)
    return np.zeros(shape, ELEMENT_DTYPES[FLOAT_NAMES[str(value.dtype).removeprefix("torch.")]])


def _array(table: torch.Tensor) -> NDArray[Any]:
    return tensor_array(table.contiguous())


def _identity(table: torch.Tensor) -> tuple[int, ...]:
    """Tell tables apart; what is read in place needs no new program when it is written."""
    place = (table.data_ptr(), *table.shape, *table.stride())
    if table.is_contiguous() and table.device.type == "cpu":
        return place
    # Tensors of inference mode don't count their versions.
    return (*place, next(_number) if table.is_inference() else table._version)
