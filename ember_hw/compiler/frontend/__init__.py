"""Reads models and writes them as CSR-shaped scf, where the compiler starts."""

from ember_hw.compiler.frontend.embedding_bag import EmbeddingBagSpec
from ember_hw.compiler.frontend.find_operations import Findings, find_operations
from ember_hw.compiler.frontend.operation import Operation, Refusal
from ember_hw.compiler.frontend.operation_spec import OperationSpec
from ember_hw.compiler.frontend.torch_export import FrontendResult, import_module

__all__ = [
    "EmbeddingBagSpec",
    "Findings",
    "FrontendResult",
    "Operation",
    "OperationSpec",
    "Refusal",
    "find_operations",
    "import_module",
]
