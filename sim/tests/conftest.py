from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ember_hw.sim.model import VerilatorModel

from .toy import BASE, toy_library


@pytest.fixture(scope="session")
def library() -> Path:
    return toy_library()


@pytest.fixture(scope="session")
def table() -> np.ndarray:
    return np.random.default_rng(2).integers(0, 256, (512, 64), np.uint8)


@pytest.fixture
def open_model(library: Path, table: np.ndarray) -> Iterator[Callable[..., VerilatorModel]]:
    """Open a toy whose address space holds `table` at BASE, and close it after the test."""
    with ExitStack() as stack:

        def open_(path: Path = library, **options: Any) -> VerilatorModel:
            model = stack.enter_context(VerilatorModel(path, **options))
            model.map_region(table, BASE)
            return model

        yield open_
