"""Finds the one `torch.nn.EmbeddingBag` of an exported graph.

The graph must be one bag of mode sum and nothing else; whatever is not known is refused by name.
"""

from __future__ import annotations

import operator
from typing import Any, NoReturn, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind, OutputKind

from ember_hw.compiler.frontend.embedding_bag import EmbeddingBagSpec
from ember_hw.compiler.frontend.torch_graph import (
    bind_arguments,
    describe,
    is_fixed,
    same_size,
    size_expression,
    value_of,
)
from ember_hw.errors import CompileError, UnsupportedError

_ATEN = torch.ops.aten
_BAG_OPS: tuple[Any, ...] = (
    _ATEN.embedding_bag.padding_idx,
    _ATEN.embedding_bag.default,
    _ATEN._embedding_bag.default,
    _ATEN._embedding_bag_forward_only.default,
)
_RENORM_OPS: tuple[Any, ...] = (_ATEN.embedding_renorm_.default, _ATEN.embedding_renorm.default)
_FLATTEN_OPS: tuple[Any, ...] = (_ATEN.reshape.default, _ATEN.view.default)
_SIZE_OPS: tuple[Any, ...] = (
    _ATEN.sym_size.int,
    _ATEN.sym_numel.default,
    operator.mul,
    _ATEN.arange.start_step,
)
# torch.export starts each free size at 2, and that of offsets with include_last_offset at 3, which
# says nothing about the model.
_LARGEST_USUAL_LOWER_BOUND = 3
_MODES = ("sum", "mean", "max")

Node = torch.fx.Node


def match_embedding_bag(program: ExportedProgram) -> EmbeddingBagSpec:
    """Read the one embedding bag of an exported graph, before or after its decomposition.

    Raises
    ------
    UnsupportedError
        The graph holds anything but one sum bag over a float32 table; names the torch node.
    CompileError
        The graph holds no call at all, or an input that nothing reads.
    """
    calls = [node for node in program.graph.nodes if node.op not in ("placeholder", "output")]
    bag = _single_bag(calls)
    arguments = bind_arguments(bag)
    _check_options(bag, arguments)
    flattened, offsets = _indices_and_offsets(bag, arguments)
    prelude = _prelude(bag, flattened)
    _check_remaining(bag, calls, prelude)
    _check_output(program, bag)

    kinds: dict[str, Any] = {
        spec.arg.name: spec for spec in program.graph_signature.input_specs if spec.arg.name
    }
    indices: Any = flattened.args[0] if flattened else arguments["indices"]
    input_names = _check_inputs(program, kinds, bag, indices, offsets)
    name, weight = _table(program, kinds, bag, arguments["weight"])
    return EmbeddingBagSpec(
        name=name,
        num_embeddings=weight.shape[0],
        embedding_dim=weight.shape[1],
        index_dtype=np.dtype(str(value_of(indices).dtype).removeprefix("torch.")),
        include_last_offset=bool(arguments["include_last_offset"]),
        input_names=input_names,
        two_dimensional=flattened is not None,
        indices_name=indices.name,
        offsets_name=offsets.name if offsets else None,
        weight=weight,
        size_limits=_size_limits(program, [indices, offsets] if offsets else [indices]),
    )


def _refuse(node: Node, text: str) -> NoReturn:
    raise UnsupportedError(text, node=node.name)


def _single_bag(calls: list[Node]) -> Node:
    for node in calls:
        if node.target in _RENORM_OPS:
            arguments = bind_arguments(node)
            max_norm, norm_type = arguments["max_norm"], arguments["norm_type"]
            _refuse(
                node,
                f"max_norm must be None, not {max_norm!r}, in {describe(node)}; renormalise the "
                f"table once before it is loaded: "
                f"weight.data.renorm_({norm_type!r}, 0, {max_norm!r})",
            )
    bags = [node for node in calls if node.target in _BAG_OPS]
    if len(bags) > 1:
        _refuse(
            bags[1],
            f"{describe(bags[1])} must be the only EmbeddingBag of the model, not a second one "
            f"after node {bags[0].name!r}; compile each EmbeddingBag by itself",
        )
    if not bags:
        if calls:
            _refuse_op(calls[0])
        raise CompileError("model must call torch.nn.EmbeddingBag once, not never")
    return bags[0]


def _refuse_op(node: Node) -> NoReturn:
    _refuse(
        node,
        f"{describe(node)} must be a torch.nn.EmbeddingBag of mode 'sum', not another operation; "
        f"compile the EmbeddingBag by itself and leave the rest to torch",
    )


def _check_options(bag: Node, arguments: dict[str, Any]) -> None:
    where = f"in {describe(bag)}"
    mode: str = dict(enumerate(_MODES))[arguments["mode"]]
    if mode != "sum":
        _refuse(bag, f"mode must be 'sum', the only supported one, not {mode!r}, {where}")
    if arguments["per_sample_weights"] is not None:
        _refuse(
            bag,
            f"per_sample_weights must be None, as weights are not supported, not "
            f"{arguments['per_sample_weights']!s}, {where}",
        )
    # The decomposed op says -1 for "none"; for the others -1 would be the last row.
    padding_idx = arguments.get("padding_idx")
    if padding_idx is not None and (padding_idx != -1 or bag.target is _BAG_OPS[0]):
        _refuse(
            bag,
            f"padding_idx must be None, as padding is not supported, not {padding_idx!r}, {where}; "
            f"leave the padding out of indices",
        )


def _indices_and_offsets(bag: Node, arguments: dict[str, Any]) -> tuple[Node | None, Node | None]:
    """Tell apart the two ways to call a bag.

    Returns
    -------
    flattened : Node or None
        With 2-D indices, the node that flattens them.
    offsets : Node or None
        With 1-D indices, the input that holds the offsets.
    """
    indices, offsets = arguments["indices"], arguments["offsets"]
    if indices.op == "placeholder" and offsets.op == "placeholder":
        if indices is offsets:
            _refuse(
                bag,
                f"offsets must be another input than indices, not {offsets.name} too, "
                f"in {describe(bag)}",
            )
        return None, offsets
    if indices.target in _FLATTEN_OPS and offsets.target is _ATEN.arange.start_step:
        matrix = indices.args[0]
        shape = value_of(matrix).shape
        positions = bind_arguments(offsets)
        start, end, step = (value_of(positions[name]) for name in ("start", "end", "step"))
        if (
            matrix.op == "placeholder"
            and len(shape) == 2
            and len(value_of(indices).shape) == 1
            and not arguments["include_last_offset"]
            and same_size(start, 0)
            and same_size(end, shape[0] * shape[1])
            and same_size(step, shape[1])
        ):
            return indices, None
    computed = next(node for node in (offsets, indices) if node.op != "placeholder")
    _refuse(
        computed,
        f"{describe(computed)} must be an input of the model, not computed in it; pass indices and "
        f"offsets, or 2-D indices, as they are",
    )


def _prelude(bag: Node, flattened: Node | None) -> set[Node]:
    """Collect the nodes that only turn 2-D indices into what the bag takes."""
    found: set[Node] = set()
    pending = [node for node in bag.all_input_nodes if node.op != "placeholder"]
    while pending:
        node = pending.pop()
        if node is flattened or node.target in _SIZE_OPS:
            found.add(node)
            pending += [child for child in node.all_input_nodes if child.op != "placeholder"]
    return found


def _check_remaining(bag: Node, calls: list[Node], prelude: set[Node]) -> None:
    for node in calls:
        if node is bag or node in prelude:
            continue
        if node.target is operator.getitem and node.args[0] is bag:
            if node.args[1] != 0 and node.users:
                _refuse(
                    node,
                    f"{describe(node)} must not be used, as only the pooled rows are computed, "
                    f"not output {node.args[1]} of node {bag.name!r}",
                )
            continue
        _refuse_op(node)


def _check_output(program: ExportedProgram, bag: Node) -> None:
    results: Any = program.graph.output_node().args[0]
    kinds = [spec.kind for spec in program.graph_signature.output_specs]
    if kinds != [OutputKind.USER_OUTPUT] or not (
        isinstance(results[0], Node) and results[0].args[:1] == (bag,)
    ):
        _refuse(
            bag,
            f"model must return the pooled rows of node {bag.name!r} and nothing else, not "
            f"({', '.join(str(result) for result in results)})",
        )


def _check_inputs(
    program: ExportedProgram,
    kinds: dict[str, Any],
    bag: Node,
    indices: Node,
    offsets: Node | None,
) -> tuple[str, ...]:
    for role, node in (("indices", indices), ("offsets", offsets)):
        if node is not None and kinds[node.name].kind is not InputKind.USER_INPUT:
            _refuse(
                bag,
                f"{role} must be an input of the model, not the constant "
                f"{kinds[node.name].target!r}, in {describe(bag)}",
            )
    names: list[str] = []
    for node in program.graph.find_nodes(op="placeholder"):
        if kinds[node.name].kind is not InputKind.USER_INPUT or value_of(node) is None:
            continue
        if not node.users:
            raise CompileError(
                f"input {node.name!r} must be used by the model, not ignored; drop it, and don't "
                f"export with one tensor as the example of two inputs",
                node=node.name,
            )
        names.append(node.name)
    return tuple(names)


def _table(
    program: ExportedProgram, kinds: dict[str, Any], bag: Node, weight: Node
) -> tuple[str, NDArray[np.float32]]:
    where = f"in {describe(bag)}"
    spec = kinds[weight.name]
    if spec.kind is InputKind.USER_INPUT:
        _refuse(
            bag,
            f"weight must be a parameter or buffer of the model, not the input {weight.name!r}, "
            f"{where}",
        )
    stored: Any = program.state_dict.get(spec.target)
    if stored is None:
        stored = program.constants[spec.target]
    dtype = str(stored.dtype).removeprefix("torch.")
    if dtype != "float32":
        _refuse(
            bag,
            f"table {spec.target!r} must be of dtype float32, not {dtype}, {where}; convert the "
            f"model with .float()",
        )
    if stored.layout != torch.strided or stored.is_meta:
        kind = "meta" if stored.is_meta else stored.layout
        _refuse(bag, f"table {spec.target!r} must be dense, not a {kind} tensor, {where}")
    if stored.shape[1] == 0:
        _refuse(bag, f"embedding_dim must be at least 1, not 0, {where}")
    return spec.target, stored.detach().cpu().contiguous().numpy()


def _size_limits(
    program: ExportedProgram, nodes: list[Node]
) -> tuple[tuple[str, int, int, int | None], ...]:
    """List the sizes that the export fixed or bounded."""
    limits: list[tuple[str, int, int, int | None]] = []
    constraints = cast(Any, program).range_constraints
    for node in nodes:
        for dimension, size in enumerate(value_of(node).shape):
            expression = size_expression(size)
            if is_fixed(expression):
                limits.append((node.name, dimension, int(expression), int(expression)))
                continue
            bounds: Any = constraints.get(expression)
            if bounds is None:
                continue
            smallest = int(bounds.lower) if bounds.lower > _LARGEST_USUAL_LOWER_BOUND else 0
            largest = int(bounds.upper) if bounds.upper.is_Integer else None
            if smallest or largest is not None:
                limits.append((node.name, dimension, smallest, largest))
    return tuple(limits)
