"""What a matcher finds: a part of a torch graph that the accelerator computes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn

import torch

from ember_hw.compiler.frontend.torch_graph import describe
from ember_hw.errors import UnsupportedError

Node = torch.fx.Node


@dataclass(frozen=True, eq=False)
class Operation:
    """A matched part of a graph.

    Attributes
    ----------
    kind : str
        Op class, like "embedding_bag".
    node : Node
        The node that messages name.
    output : Node
        The one value that the operation computes. Everything it needs besides `inputs` is computed
        by the operation itself.
    inputs : mapping of str to Node
        Values that come from outside, by role, tables included.
    tables : tuple of str
        Roles whose rows are looked up.
    facts : mapping of str to Any
        What else tells one operation of this kind from another; JSON values.
    sizes : mapping of str to tuple
        For each role that is no table, its shape: letters for the free sizes, integers for fixed
        ones, None for what the example has, (letter, integer) for their sum, and
        (letter, integer, factor) for ``letter * factor + integer``.
    """

    kind: str
    node: Node
    output: Node
    inputs: Mapping[str, Node]
    tables: tuple[str, ...]
    facts: Mapping[str, Any] = field(default_factory=dict[str, Any])
    sizes: Mapping[str, tuple[Any, ...]] = field(default_factory=dict[str, "tuple[Any, ...]"])

    def nodes(self) -> frozenset[Node]:
        """Collect the nodes that nothing needs any more once the operation gives its output."""
        needed = {*self.inputs.values()}
        inside = {self.output}
        pending = [self.output]
        while pending:
            for child in pending.pop().all_input_nodes:
                if child in needed or child in inside or child.op == "placeholder":
                    continue
                inside.add(child)
                pending.append(child)
        changed = True
        while changed:
            kept = {
                node
                for node in inside
                if node is self.output or all(_is_dead(user, inside) for user in node.users)
            }
            changed = len(kept) != len(inside)
            inside = kept
        return frozenset(inside)


@dataclass(frozen=True, eq=False)
class Refusal:
    """A node that looks like an operation and isn't computed by the accelerator.

    Attributes
    ----------
    node : Node
        What was refused.
    reason : str
        The rule that it breaks, with the node's name and line, and the nearest thing that works.
    """

    node: Node
    reason: str


def _is_dead(user: Node, inside: set[Node]) -> bool:
    """Whether a user of a node goes away with the nodes inside, or is dead already."""
    return user in inside or (user.op != "output" and not user.users)


def refuse(node: Node, text: str) -> NoReturn:
    """Raise the error that a node isn't supported.

    Raises
    ------
    UnsupportedError
        Always.
    """
    raise UnsupportedError(text, node=node.name)


def check_table(role: str, table: Node, user: Node, dtypes: tuple[str, ...] = ("float32",)) -> None:
    """Refuse a table that isn't a dense matrix of a legal dtype.

    Parameters
    ----------
    role : str
        What messages call it.
    table : Node
        The table.
    user : Node
        The node that reads it, for messages.
    dtypes : tuple of str
        The legal ones.

    Raises
    ------
    UnsupportedError
        It is another tensor.
    """
    value: Any = table.meta.get("val")
    where = f"in {describe(user)}"
    if not isinstance(value, torch.Tensor):
        refuse(user, f"{role} must be a tensor, not {type(value).__name__}, {where}")
    dtype = str(value.dtype).removeprefix("torch.")
    if dtype not in dtypes:
        refuse(
            user,
            f"{role} {table.name!r} must be of dtype {' or '.join(dtypes)}, not {dtype}, {where}; "
            f"convert the model with .float()",
        )
    if value.layout != torch.strided:
        refuse(user, f"{role} {table.name!r} must be dense, not {value.layout}, {where}")
    if value.ndim != 2:
        refuse(user, f"{role} {table.name!r} must have 2 dimensions, not {value.ndim}, {where}")


def check_indices(role: str, indices: Node, user: Node, ranks: tuple[int, ...]) -> None:
    """Refuse indices that aren't int32 or int64, or of another rank.

    Raises
    ------
    UnsupportedError
        As said.
    """
    value: Any = indices.meta.get("val")
    where = f"in {describe(user)}"
    if not isinstance(value, torch.Tensor):
        refuse(user, f"{role} must be a tensor, not {type(value).__name__}, {where}")
    dtype = str(value.dtype).removeprefix("torch.")
    if dtype not in ("int32", "int64"):
        refuse(user, f"{role} must be of dtype int32 or int64, not {dtype}, {where}")
    if ranks and value.ndim not in ranks:
        legal = " or ".join(str(rank) for rank in ranks)
        refuse(user, f"{role} must have {legal} dimensions, not {value.ndim}, {where}")


def index_dtype(indices: Node) -> str:
    """Name the dtype of an index tensor."""
    value: Any = indices.meta["val"]
    return str(value.dtype).removeprefix("torch.")
