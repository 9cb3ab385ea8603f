# pyright: basic
"""The ways into the project: each takes a rule and its table, and returns rows or raises."""

from __future__ import annotations

import sys
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch

from ember_hw import cli
from ember_hw.compiler.frontend.embedding_bag import EmbeddingBagSpec
from ember_hw.host.device import Device
from ember_hw.host.program_cache import program_of
from ember_hw.host.tests.contract.rule import Bag, Rule
from ember_hw.host.torch_backend import Record, backend
from ember_hw.nn import EmbeddingBag
from ember_hw.nn.functional import embedding_bag


def _program(rule: Rule, weight: np.ndarray, device: Device):
    bag, indices = rule.bag, rule.inputs["indices"]
    dtype = indices.dtype if indices.dtype in ("int32", "int64") else np.dtype(np.int64)
    spec = EmbeddingBagSpec(
        name="weight",
        num_embeddings=bag.num_embeddings,
        embedding_dim=bag.embedding_dim,
        index_dtype=dtype,
        include_last_offset=bag.include_last_offset,
        input_names=("indices", "offsets", "per_sample_weights"),
        two_dimensional=False,
        indices_name="indices",
        offsets_name="offsets",
        weight=weight,
        mode="sum" if bag.mode == "min" else bag.mode,
        padding_idx=bag.padding_idx,
        weights_name="per_sample_weights" if "per_sample_weights" in rule.inputs else None,
    )
    program = program_of(spec, 3, device.config)
    return replace(program, model={**program.model, "mode": bag.mode})


def device_run(rule: Rule, weight: np.ndarray, device: Device) -> np.ndarray:
    """Run a compiled program."""
    return device.run(_program(rule, weight, device), dict(rule.inputs))


def _tensors(rule: Rule) -> list[torch.Tensor | None]:
    names = ("indices", "offsets", "per_sample_weights")
    # Not contiguous where the array isn't.
    return [_tensor(rule.inputs[name]) if name in rule.inputs else None for name in names]


def _tensor(array: np.ndarray) -> torch.Tensor:
    if not array.flags.writeable:  # one element, seen many times
        return torch.from_numpy(array[:1].copy()).expand(array.shape)
    return torch.from_numpy(_positive(array))


def _positive(array: np.ndarray) -> np.ndarray:
    """Return an array as torch takes it: writeable, without negative strides."""
    if any(stride < 0 for stride in array.strides):
        wide = np.zeros((*array.shape, 2), array.dtype)
        wide[..., 0] = array
        return wide[..., 0]
    return array


def _module(bag: Bag, weight: np.ndarray, device: Device) -> EmbeddingBag:
    return EmbeddingBag(
        bag.num_embeddings,
        bag.embedding_dim,
        bag.max_norm,
        2.0,
        bag.scale_grad_by_freq,
        bag.mode,
        bag.sparse,
        torch.from_numpy(weight),
        bag.include_last_offset,
        bag.padding_idx,
        device=device,
    )


def module(rule: Rule, weight: np.ndarray, device: Device) -> np.ndarray:
    """Call the drop-in module."""
    with torch.no_grad():
        return _module(rule.bag, weight, device)(*_tensors(rule)).numpy()


def functional(rule: Rule, weight: np.ndarray, device: Device) -> np.ndarray:
    """Call the drop-in function."""
    indices, offsets, weights = _tensors(rule)
    bag = rule.bag
    return embedding_bag(
        indices,  # pyright: ignore[reportArgumentType]
        torch.from_numpy(weight),
        offsets,
        bag.max_norm,
        2.0,
        bag.scale_grad_by_freq,
        bag.mode,
        bag.sparse,
        weights,
        bag.include_last_offset,
        bag.padding_idx,
        device=device,
    ).numpy()


@cache
def _graph(bag: Bag, dtype: str, is_matrix: bool, is_weighted: bool, device: Device):
    """Compile an embedding bag of torch and return the operation that its graph calls."""
    model = torch.nn.EmbeddingBag(
        bag.num_embeddings,
        bag.embedding_dim,
        mode=bag.mode,
        sparse=bag.sparse,
        scale_grad_by_freq=bag.scale_grad_by_freq,
        include_last_offset=bag.include_last_offset,
        padding_idx=bag.padding_idx,
    )
    record = Record()
    indices = torch.zeros((2, 3) if is_matrix else 6, dtype=getattr(torch, dtype))
    offsets = None if is_matrix else torch.zeros(3, dtype=indices.dtype)
    weights = torch.ones(indices.shape) if is_weighted else None
    torch._dynamo.reset()
    options: Any = {"device": device, "record": record}
    compiled = torch.compile(model, backend=backend, options=options, dynamic=True)
    with torch.no_grad():
        if bag.num_embeddings:
            compiled(indices, offsets, weights)
        else:
            compiled(indices[:0], offsets, weights)
    (operation,) = record.operations
    return operation


def graph_of(rule: Rule, device: Device):
    """Return the operation that the graph of a rule's bag calls."""
    indices = rule.inputs["indices"]
    is_weighted = "per_sample_weights" in rule.inputs
    return _graph(rule.bag, indices.dtype.name, indices.ndim == 2, is_weighted, device)


def torch_compile(rule: Rule, weight: np.ndarray, device: Device) -> np.ndarray:
    """Call what a graph of `torch.compile` calls: values are checked when it runs."""
    operation = graph_of(rule, device)
    given = [tensor for tensor in _tensors(rule) if tensor is not None]
    return operation(torch.from_numpy(weight), *given).numpy()


def command_line(rule: Rule, weight: np.ndarray, device: Device, folder: Path) -> tuple[int, Path]:
    """Run ``ember-hw run`` and return its exit code and the file of its result."""
    program, inputs, output = (folder / name for name in ("p.ember", "inputs.npz", "out.npy"))
    _program(rule, weight, device).save(program)
    arrays: Any = rule.inputs
    np.savez(inputs, **arrays)
    arguments = ["run", program, "--inputs", inputs, "-b", "interpreter", "-o", output, "--verify"]
    before, sys.argv = sys.argv, ["ember-hw", *map(str, arguments)]
    try:
        cli.main()
    except SystemExit as ended:
        code = ended.code
    else:
        code = 0
    finally:
        sys.argv = before
    assert code is None or isinstance(code, int)
    return code or 0, output
