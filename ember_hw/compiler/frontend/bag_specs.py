"""From matched embedding bags, whose inputs are known, to what the host has to know of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from ember_hw.compiler.frontend.embedding_bag import EmbeddingBagSpec
from ember_hw.compiler.frontend.operation import Operation, refuse
from ember_hw.compiler.frontend.operation_spec import Source
from ember_hw.compiler.frontend.quantized_ops import table_of
from ember_hw.compiler.frontend.tables import BagGroup, TablesSpec
from ember_hw.compiler.frontend.torch_graph import describe

__all__ = ["bag_spec", "tables_spec"]

Node = torch.fx.Node


def bag_spec(
    operation: Operation,
    *,
    input_names: tuple[str, ...],
    sources: Mapping[str, Source],
    weight: tuple[str, NDArray[Any]],
    size_limits: tuple[tuple[str, int, int, int | None], ...] = (),
) -> EmbeddingBagSpec:
    """Return the spec of an embedding bag whose inputs are known.

    Raises
    ------
    UnsupportedError
        One of its inputs is a row of an input of the model.
    """
    for role, source in sources.items():
        if source.row is not None:
            refuse(
                operation.node,
                f"{role} must be an input of the model, not row {source.row} of {source.name!r}, "
                f"in {describe(operation.node)}",
            )
    facts: Mapping[str, Any] = operation.facts
    offsets, weights = sources.get("offsets"), sources.get("per_sample_weights")
    name, rows = weight
    table = table_of(facts, rows)
    return EmbeddingBagSpec(
        name=name,
        num_embeddings=table.shape[0],
        embedding_dim=table.shape[1],
        index_dtype=np.dtype(facts["index_dtype"]),
        include_last_offset=facts["include_last_offset"],
        input_names=input_names,
        two_dimensional=facts["two_dimensional"],
        indices_name=sources["indices"].name,
        offsets_name=offsets.name if offsets else None,
        weight=table,
        size_limits=size_limits,
        mode=facts["mode"],
        padding_idx=facts["padding_idx"],
        weights_name=weights.name if weights else None,
        output=facts.get("output"),
    )


def tables_spec(
    group: BagGroup,
    *,
    input_names: tuple[str, ...],
    sources: Mapping[str, Source],
    weights: Mapping[str, tuple[str, NDArray[Any]]],
    size_limits: tuple[tuple[str, int, int, int | None], ...] = (),
) -> TablesSpec:
    """Return the spec of bags that run as one program; roles of the group name inputs and tables.

    Raises
    ------
    UnsupportedError
        As `bag_spec`.
    """
    symbols: dict[Node, str] = {}
    bags: list[EmbeddingBagSpec] = []
    for number, member in enumerate(group.members):
        symbols.setdefault(member.inputs["weight"], f"tab{len(symbols)}")
        own = [role for role in member.inputs if role not in member.tables]
        bags.append(
            bag_spec(
                member,
                input_names=(),
                sources={role: sources[f"{number}.{role}"] for role in own},
                weight=weights[f"{number}.weight"],
            )
        )
    return TablesSpec(
        bags=tuple(bags),
        symbols=tuple(symbols[member.inputs["weight"]] for member in group.members),
        input_names=input_names,
        size_limits=size_limits,
    )
