"""What the drop-in modules are to torch's compilers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar, cast

import torch

__all__ = ["outside_graphs", "torch_forward"]

_P = ParamSpec("_P")
_R = TypeVar("_R")


def outside_graphs(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Let `torch.compile` call a function as it is, between two graphs."""
    compiler: Any = torch.compiler
    return cast(Callable[_P, _R], compiler.disable(function))


def torch_forward(kind: type[torch.nn.Module], module: torch.nn.Module, *inputs: Any) -> Any:
    """Compute what torch's own class computes, for a graph that is compiled later."""
    forward: Any = kind.forward
    return forward(module, *inputs)
