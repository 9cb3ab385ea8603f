"""Drop-in modules for torch's embeddings: change the import, keep the model.

`Embedding` and `EmbeddingBag` are torch's modules with lookups on a device,
`EmbeddingBagCollection` is TorchRec's; `QuantizedEmbedding` and `QuantizedEmbeddingBag` have tables
of int8 and int4; `functional` has torch's functions. docs/nn.md shows how they are used.
"""

from ember_hw.host.nn.collection import EmbeddingBagCollection, KeyedRows, TableConfig
from ember_hw.host.nn.devices import default_device, set_default_device
from ember_hw.host.nn.modules import Embedding, EmbeddingBag
from ember_hw.host.nn.quantized import QuantizedEmbedding, QuantizedEmbeddingBag
from ember_hw.nn import functional

__all__ = [
    "Embedding",
    "EmbeddingBag",
    "EmbeddingBagCollection",
    "KeyedRows",
    "QuantizedEmbedding",
    "QuantizedEmbeddingBag",
    "TableConfig",
    "default_device",
    "functional",
    "set_default_device",
]
