"""Writes the operation that a spec describes as one scf function."""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp

from ember_hw.compiler.frontend.embedding_bag import EmbeddingBagSpec
from ember_hw.compiler.frontend.emit import emit_embedding, emit_pooling
from ember_hw.compiler.frontend.emit_block_attention import emit_block_attention
from ember_hw.compiler.frontend.emit_fusedmm import emit_fusedmm
from ember_hw.compiler.frontend.emit_scores import emit_scores
from ember_hw.compiler.frontend.emit_tables import emit_tables
from ember_hw.compiler.frontend.operation_spec import FUSEDMM_SYMBOLS, OperationSpec, score_table
from ember_hw.compiler.frontend.tables import TablesSpec

__all__ = ["emit_scf"]


def emit_scf(spec: EmbeddingBagSpec | OperationSpec | TablesSpec) -> ModuleOp:
    """Write an operation as loops over row pointers, indices and columns.

    Parameters
    ----------
    spec : EmbeddingBagSpec, OperationSpec or TablesSpec
        The operation.

    Returns
    -------
    ModuleOp
        Verified, with one function.
    """
    if isinstance(spec, EmbeddingBagSpec):
        weighted = spec.weights_name is not None
        name = f"eb_{spec.mode}{'_weighted' if weighted else ''}"
        return emit_pooling(
            name,
            spec.mode,
            spec.index_dtype.name,
            weighted=weighted,
            types=spec.types,
            columns=spec.embedding_dim if spec.types.is_quantized else None,
        )
    if isinstance(spec, TablesSpec):
        return emit_tables(spec.mode, spec.index_dtype, weighted=spec.is_weighted, types=spec.types)
    facts = spec.facts
    match spec.kind:
        case "embedding":
            columns = spec.weights["weight"][1].shape[1] if spec.types.is_quantized else None
            return emit_embedding(facts["index_dtype"], spec.types, columns=columns)
        case "spmm":
            return emit_pooling("spmm", "sum", facts["index_dtype"], weighted=True)
        case "aggregation":
            weighted = "weights" in spec.sources
            name = f"aggregate_{facts['mode']}{'_weighted' if weighted else ''}"
            return emit_pooling(
                name, facts["mode"], facts["source_dtype"], weighted=weighted, types=spec.types
            )
        case "fusedmm":
            same = facts["same"]
            names = {role: FUSEDMM_SYMBOLS[same.get(role, role)] for role in FUSEDMM_SYMBOLS}
            dtype = facts["index_dtype" if facts.get("layout") == "parts" else "source_dtype"]
            return emit_fusedmm(dtype, facts["nonlinearity"], names)
        case "block_attention":
            return emit_block_attention(facts["scale"])
        case kind:
            assert kind == "scores", kind
            symbols = [score_table(table, part, parts) for table, _, part, parts in facts["leaves"]]
            return emit_scores(facts, symbols)
