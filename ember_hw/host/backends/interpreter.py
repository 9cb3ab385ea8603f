"""The backend `interpreter`: bound microcode in NumPy; right but without a clock."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from ember_hw.compiler.interpreters.microcode import execute
from ember_hw.config import AcceleratorConfig
from ember_hw.host.backends import memory_model, sink_model
from ember_hw.host.execution import Chunk
from ember_hw.host.launch import Launch


class Backend:
    """Runs launches in the microcode interpreter.

    Parameters
    ----------
    config : AcceleratorConfig
        The access unit it stands for.
    memory, sink : optional
        Checked as other backends check them; without a clock they have no effect, and the report
        names none.
    progress : optional
        Never told anything: there is nothing to prepare.
    """

    memory = "none (no clock)"
    sink = "none (no clock)"
    cycles: int | None = None

    def __init__(
        self,
        config: AcceleratorConfig,
        *,
        memory: Any = "ideal",
        sink: Any = "ideal",
        progress: Callable[[str], None] | None = None,
    ) -> None:
        memory_model(memory)
        sink_model(sink)
        self.config = config
        self._useful_bytes = 0

    def execute(self, launch: Launch) -> Iterator[Chunk]:
        """Run a launch; see `ember_hw.host.device.Backend`."""
        self._useful_bytes = 0
        regions = [(region.base, region.data) for region in launch.regions]
        for chunk in execute(launch.microcode, regions, requests=[launch.arguments]):
            self._useful_bytes += int(chunk.row_keep.sum(dtype="int64"))
            yield Chunk(chunk.events, chunk.scalars, chunk.row_beats, chunk.row_last)

    def facts(self) -> dict[str, Any]:
        """Return the bytes of rows: nothing else is counted, and no timing claimed."""
        return {"useful_bytes": self._useful_bytes}

    def sample(self) -> None:
        """Return None: there is no clock to sample at."""

    def close(self) -> None:
        """Do nothing: there is nothing to free."""
