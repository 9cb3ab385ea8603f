"""`torch.nn.functional.embedding` and `embedding_bag`, with lookups on a device."""

from ember_hw.host.nn.functional import embedding, embedding_bag

__all__ = ["embedding", "embedding_bag"]
