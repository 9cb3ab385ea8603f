"""Reads models and writes them as CSR-shaped scf, where the compiler starts."""

from ember_hw.compiler.frontend.torch_export import (
    EmbeddingBagSpec,
    FrontendResult,
    import_module,
)

__all__ = ["EmbeddingBagSpec", "FrontendResult", "import_module"]
