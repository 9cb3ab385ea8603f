"""Compile the embedding operations of PyTorch models for a decoupled access-execute accelerator.

The public API: `compile` of a PyTorch model, `compile_function` of loops of one's own,
`open_device`, `load`, `AcceleratorConfig`; `quantize`, `dequantize` and `QuantizedTable`; `nn`,
drop-in modules for torch's; for ``torch.compile(model, backend="ember_hw")``: `Record` and
`explain` of what runs where, and the operators `spmm`, `fusedmm` and `block_attention`. Each is
imported when it is first used, so that importing the package is quick.

Examples
--------
::

    program = ember_hw.compile(torch.nn.EmbeddingBag(1000, 64, mode="sum"), (indices, offsets))
    with ember_hw.open_device("verilator") as device:
        pooled = device.run(program, (indices, offsets))
        print(device.report)
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ember_hw import nn
    from ember_hw.compiler import compile, compile_function
    from ember_hw.compiler.frontend.torch_ops import block_attention, fusedmm, spmm
    from ember_hw.compiler.program_file import load
    from ember_hw.compiler.quantized_rows import QuantizedTable, dequantize, quantize
    from ember_hw.config import AcceleratorConfig
    from ember_hw.host.device import open_device
    from ember_hw.host.table_files import map_table
    from ember_hw.host.torch_backend import Record
    from ember_hw.host.torch_explain import explain

__all__ = [
    "AcceleratorConfig",
    "QuantizedTable",
    "Record",
    "block_attention",
    "compile",
    "compile_function",
    "dequantize",
    "explain",
    "fusedmm",
    "load",
    "map_table",
    "nn",
    "open_device",
    "quantize",
    "spmm",
]

_HOMES = {
    "AcceleratorConfig": "ember_hw.config",
    "QuantizedTable": "ember_hw.compiler.quantized_rows",
    "Record": "ember_hw.host.torch_backend",
    "block_attention": "ember_hw.compiler.frontend.torch_ops",
    "compile": "ember_hw.compiler",
    "compile_function": "ember_hw.compiler",
    "dequantize": "ember_hw.compiler.quantized_rows",
    "explain": "ember_hw.host.torch_explain",
    "fusedmm": "ember_hw.compiler.frontend.torch_ops",
    "load": "ember_hw.compiler.program_file",
    "map_table": "ember_hw.host.table_files",
    "open_device": "ember_hw.host.device",
    "quantize": "ember_hw.compiler.quantized_rows",
    "spmm": "ember_hw.compiler.frontend.torch_ops",
}


def __getattr__(name: str) -> Any:
    if name == "nn":
        return import_module("ember_hw.nn")
    if name not in _HOMES:
        raise AttributeError(f"module 'ember_hw' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
