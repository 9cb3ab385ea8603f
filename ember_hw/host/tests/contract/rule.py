# pyright: basic
"""What a rule is: a call of an embedding bag, and its one answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

RUN, MODULE, FUNCTIONAL, GRAPH, CLI = "device.run", "module", "functional", "torch.compile", "run"
#: A call of a compiled program on a device, the drop-in module and function, a graph that
#: `torch.compile` made, and the command line.
ENTRY_POINTS = (RUN, MODULE, FUNCTIONAL, GRAPH, CLI)

ROWS, COLUMNS = 10, 4
TABLE = "(table 'weight')"

#: Why an entry point can't express a call.
IS_MODEL = "a program is made of a model that was checked: ember_hw.compile refuses this one"
IS_GRAPH = "torch refuses the call, or makes another graph of it, before a device is asked"

Array = NDArray[Any]


@dataclass(frozen=True)
class Bag:
    """What an embedding bag is; the names are torch's."""

    mode: str = "sum"
    include_last_offset: bool = False
    padding_idx: int | None = None
    num_embeddings: int = ROWS
    embedding_dim: int = COLUMNS
    sparse: bool = False
    scale_grad_by_freq: bool = False
    max_norm: float | None = None


@dataclass(frozen=True, eq=False)
class Rule:
    """A call, and what must come of it.

    Attributes
    ----------
    name : str
        Unique.
    clause : str
        The rule in a few words.
    inputs : mapping of str to array
        `indices`, and `offsets` and `per_sample_weights` where the call has them.
    bag : Bag
        What it is a call of.
    bags : sequence of sequence of int, optional
        The positions that each bag pools, of the indices one behind the other. None for an error.
    error : type of Exception, optional
        What must be raised.
    message : str
        Its whole text.
    table : callable, optional
        Changes the table, which is of random numbers, before the call.
    expected : callable, optional
        Returns what must come from the table, where `bags` don't tell.
    not_at : mapping of str to str
        Entry points that can't express the call, with the reason.
    """

    name: str
    clause: str
    inputs: Mapping[str, Array]
    bag: Bag = field(default_factory=Bag)
    bags: Sequence[Sequence[int]] | None = None
    error: type[Exception] | None = None
    message: str = ""
    table: Callable[[Array], None] | None = None
    expected: Callable[[Array], Array] | None = None
    not_at: Mapping[str, str] = field(default_factory=dict[str, str])

    def weight(self) -> Array:
        """Build the table."""
        random = np.random.default_rng(len(self.name))
        shape = (self.bag.num_embeddings, self.bag.embedding_dim)
        weight = random.standard_normal(shape).astype(np.float32)
        if self.table is not None:
            self.table(weight)
        return weight

    def answer(self, weight: Array) -> Array:
        """Return the pooled rows, in float32 and in the order of the indices."""
        if self.expected is not None:
            return self.expected(weight)
        assert self.bags is not None
        indices = self.inputs["indices"].reshape(-1)
        scales = self.inputs.get("per_sample_weights")
        pooled = np.zeros((len(self.bags), weight.shape[1]), np.float32)
        for bag, positions in enumerate(self.bags):
            rows = [weight[indices[position]] for position in positions]
            if scales is not None:
                flat = scales.reshape(-1)
                rows = [flat[p] * row for p, row in zip(positions, rows, strict=True)]
            for number, row in enumerate(rows):
                if self.bag.mode == "max" and number:
                    pooled[bag] = np.maximum(pooled[bag], row)
                else:
                    pooled[bag] = pooled[bag] + row
            if self.bag.mode == "mean":
                pooled[bag] /= np.float32(max(len(rows), 1))
        return pooled


def ints(*values: int, dtype: str = "int64") -> Array:
    return np.array(values, dtype)


def call(
    indices: Array, offsets: Array | None = None, weights: Array | None = None
) -> dict[str, Array]:
    given = {"indices": indices, "offsets": offsets, "per_sample_weights": weights}
    return {name: value for name, value in given.items() if value is not None}


def index_error(position: str, value: int, rows: int = ROWS) -> str:
    return f"indices[{position}] must be in [0, {rows}), the rows of table 'weight', not {value}"
