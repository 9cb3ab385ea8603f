"""Finds block-sparse attention that is written in plain torch.

There are many ways to write it, so that its shape in the graph says little. What is found is run on
random rows instead and compared with `torch_ops.block_attention`. All ops in it are multilinear but
for the softmax, so that no other function of the inputs gives the same numbers.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, cast

import torch

from ember_hw.compiler.frontend.operation import Operation, index_dtype, refuse
from ember_hw.compiler.frontend.patterns import is_call, same_value, shape_of, skip_copies
from ember_hw.compiler.frontend.torch_graph import describe
from ember_hw.compiler.frontend.torch_ops import block_attention

__all__ = ["SOFTMAX_OPS", "match_plain_attention"]

_ATEN = torch.ops.aten
SOFTMAX_OPS: tuple[Any, ...] = (_ATEN._softmax.default, _ATEN.softmax.int)
_SHAPES: tuple[Any, ...] = (
    _ATEN.view.default,
    _ATEN.reshape.default,
    _ATEN._unsafe_view.default,
    _ATEN.permute.default,
    _ATEN.transpose.int,
    _ATEN.expand.default,
    _ATEN.clone.default,
    _ATEN.unsqueeze.default,
    _ATEN.squeeze.dim,
    _ATEN.squeeze.dims,
    _ATEN.flatten.using_ints,
    _ATEN.slice.Tensor,
    _ATEN.alias.default,
    _ATEN.contiguous.default,
)
_PRODUCTS: tuple[Any, ...] = (
    _ATEN.bmm.default,
    _ATEN.matmul.default,
    _ATEN.mm.default,
    _ATEN.einsum.default,
    _ATEN.mul.Tensor,
    _ATEN.div.Tensor,
)
_INDICES: tuple[Any, ...] = (
    _ATEN.index.Tensor,
    _ATEN.sym_size.int,
    _ATEN.sym_numel.default,
    operator.mul,
    cast(Any, operator).floordiv,
)
_ALLOWED = (*SOFTMAX_OPS, *_SHAPES, *_PRODUCTS, *_INDICES)
_FREE_BLOCKS, _FREE_KEYS, _FREE_GATHERED = 3, 4, 2

Node = torch.fx.Node


class _Parts(NamedTuple):
    """Where attention begins and ends in a graph."""

    queries: Node
    keys: Node
    values: Node
    blocks: Node
    output: Node
    block_size: int


def match_plain_attention(softmax: Node) -> Operation:
    """Read block-sparse attention around a softmax.

    Keys and values are gathered as ``k.view(-1, block_size, D)[blocks]``; all blocks are whole.

    Parameters
    ----------
    softmax : Node
        A call of one of `SOFTMAX_OPS`.

    Returns
    -------
    Operation
        As of `match_block_attention`.

    Raises
    ------
    UnsupportedError
        It is something else.
    """
    parts = _parts(softmax)
    inside = _inside(softmax, parts)
    scale = _scale(softmax, parts, inside)
    size = parts.block_size
    return Operation(
        kind="block_attention",
        node=softmax,
        output=parts.output,
        inputs={
            "queries": parts.queries,
            "keys": parts.keys,
            "values": parts.values,
            "blocks": parts.blocks,
        },
        tables=("keys", "values"),
        facts={
            "block_size": size,
            "scale": scale,
            "whole_blocks": True,
            "index_dtype": index_dtype(parts.blocks),
        },
        sizes={
            "queries": (("QB", 0, size), None),
            "keys": (("KB", 0, size), None),
            "values": (("KB", 0, size), None),
            "blocks": ("QB", "NB"),
        },
    )


def _fail(softmax: Node) -> Any:
    refuse(
        softmax,
        f"{describe(softmax)} must be that of block-sparse attention over gathered whole blocks, "
        f"k.view(-1, block_size, D)[blocks], and nothing else; ember_hw.block_attention says it "
        f"in one call",
    )


def _upstream(node: Node, stop: frozenset[Node] = frozenset()) -> Iterator[Node]:
    """Yield what a node is computed from, itself included, by ops that are allowed."""
    seen: set[Node] = set()
    pending = [node]
    while pending:
        each = pending.pop()
        if each in seen or each in stop:
            continue
        seen.add(each)
        yield each
        if is_call(each, *_ALLOWED):
            pending += each.all_input_nodes


def _gathered(nodes: Iterator[Node]) -> list[tuple[Node, Node, int, Node]]:
    """Find gathers of blocks: the matrix, the blocks, the rows of a block, the gather."""
    found: list[tuple[Node, Node, int, Node]] = []
    for node in nodes:
        if not is_call(node, _ATEN.index.Tensor):
            continue
        table: Any = skip_copies(node.args[0])
        indices: Any = node.args[1]
        if not is_call(table, *_SHAPES[:3]) or len(indices) != 1:
            continue
        matrix, shape = skip_copies(table.args[0]), table.args[1]
        # The size as it was asked for: the recorded one may be an expression.
        if len(shape) == 3 and len(shape_of(matrix)) == 2 and isinstance(shape[1], int):
            found.append((matrix, indices[0], shape[1], node))
    return found


def _parts(softmax: Node) -> _Parts:
    before = _gathered(_upstream(softmax))
    if len(before) != 1:
        _fail(softmax)
    keys, blocks, size, gather = before[0]
    columns = shape_of(keys)[1]
    stop = frozenset((gather,))
    rows = [
        node
        for node in _upstream(softmax, stop)
        if len(shape_of(node)) == 2
        and shape_of(node)[1] == columns
        and not is_call(node, *_SHAPES, *_PRODUCTS)
        and node is not blocks
    ]
    output = _output(softmax, columns)
    after = _gathered(_upstream(output, frozenset((softmax,))))
    if len(rows) != 1 or len(after) != 1 or len(shape_of(blocks)) != 2:
        _fail(softmax)
    values, others, other_size, _ = after[0]
    if not same_value(blocks, others) or size != other_size or size < 1:
        _fail(softmax)
    tensors = [node.meta.get("val") for node in (rows[0], keys, values)]
    if any(getattr(value, "dtype", None) != torch.float32 for value in tensors):
        _fail(softmax)
    if blocks.meta["val"].dtype not in (torch.int32, torch.int64):
        _fail(softmax)
    return _Parts(rows[0], keys, values, blocks, output, size)


def _output(softmax: Node, columns: Any) -> Node:
    """Follow the weights to the rows that they give."""
    node, found = softmax, None
    while len(node.users) == 1:
        node = next(iter(node.users))
        if not is_call(node, *_SHAPES, *_PRODUCTS):
            break
        shape = shape_of(node)
        if len(shape) == 2 and shape[1] == columns:
            found = node
    return found if found is not None else _fail(softmax)


def _inside(softmax: Node, parts: _Parts) -> list[Node]:
    """List the nodes between inputs and output in the order of the graph."""
    inputs = frozenset((parts.queries, parts.keys, parts.values, parts.blocks))
    needed = set(_upstream(parts.output, inputs))
    if any(not is_call(node, *_ALLOWED) for node in needed):
        _fail(softmax)
    return [node for node in softmax.graph.nodes if node in needed]


def _scale(softmax: Node, parts: _Parts, inside: list[Node]) -> float:
    """Find the factor of the products by running the graph on random rows."""
    columns = shape_of(parts.keys)[1]
    if not isinstance(columns, int):
        _fail(softmax)
    candidates = [1.0, columns**-0.5]
    for node in inside:
        for argument in node.args:
            if isinstance(argument, float) and argument != 0.0:
                candidates += [argument, 1.0 / argument]
    trials = [_trial(softmax, parts, inside, seed) for seed in range(3)]
    for scale in candidates:
        if all(_agrees(given, found, parts.block_size, scale) for given, found in trials):
            return scale
    return _fail(softmax)


def _trial(
    softmax: Node, parts: _Parts, inside: list[Node], seed: int
) -> tuple[tuple[torch.Tensor, ...], torch.Tensor]:
    """Run the nodes inside on random inputs; return these and the result."""
    random = torch.Generator().manual_seed(seed)
    size = parts.block_size

    def fixed(node: Node, dimension: int, otherwise: int) -> int:
        extent = shape_of(node)[dimension]
        return extent if isinstance(extent, int) else otherwise

    num_blocks = fixed(parts.blocks, 0, _FREE_BLOCKS)
    gathered = fixed(parts.blocks, 1, _FREE_GATHERED)
    num_keys = fixed(parts.keys, 0, _FREE_KEYS * size)
    columns = int(shape_of(parts.keys)[1])
    rows = (
        fixed(parts.queries, 0, num_blocks * size),
        num_keys,
        fixed(parts.values, 0, num_keys),
    )
    if rows[0] != num_blocks * size or rows[1] != rows[2] or num_keys % size or not num_keys:
        _fail(softmax)
    matrices = [torch.randn(count, columns, generator=random) * (1 + seed) for count in rows]
    blocks = torch.randint(0, num_keys // size, (num_blocks, gathered), generator=random)
    given = (*matrices, blocks.to(parts.blocks.meta["val"].dtype))
    values: dict[Node, Any] = dict(
        zip((parts.queries, parts.keys, parts.values, parts.blocks), given, strict=True)
    )
    if len(values) < len(given):
        _fail(softmax)
    for node in inside:
        arguments: Any = _values(node.args, values)
        options: Any = _values(node.kwargs, values)
        target: Any = node.target
        try:
            values[node] = target(*arguments, **options)
        except (RuntimeError, IndexError):
            _fail(softmax)
    return given, values[parts.output]


def _values(arguments: Any, values: Mapping[Node, Any]) -> Any:
    """Put values in the place of nodes."""
    mapping: Any = torch.fx
    return mapping.node.map_arg(arguments, values.__getitem__)


def _agrees(given: tuple[torch.Tensor, ...], found: torch.Tensor, size: int, scale: float) -> bool:
    expected = block_attention(*given, size, scale)
    return found.shape == expected.shape and torch.allclose(found, expected, 1e-4, 1e-5)
