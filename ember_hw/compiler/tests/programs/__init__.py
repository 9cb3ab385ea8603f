"""Programs of the access unit written by hand, for tests of every level below the compiler."""

from __future__ import annotations

import re
from importlib.resources import files
from typing import Literal

from ember_hw.config import AcceleratorConfig


def embedding_bag_sum(
    opt_level: int, config: AcceleratorConfig, index_type: Literal["i32", "i64"] = "i64"
) -> str:
    """Return the `au` text of an EmbeddingBag in mode sum.

    Symbols: `off` (int64), `idx` (`index_type`), `tab` (float32), `tab.pitch`, `B` bags, `D`
    elements of a row. Level 1 fetches as many elements at a time as the bus is wide.
    """
    text = (files(__name__) / f"embedding_bag_sum_O{opt_level}.au").read_text()
    text = re.sub(r"\bi64\b", index_type, text.replace("memref<?xi64>", f"memref<?x{index_type}>"))
    return re.sub(r"\b(step|len) 16\b", rf"\1 {config.bus_bytes // 4}", text)
