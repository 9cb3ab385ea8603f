"""The backend `interpreter`: bound microcode in NumPy; right but without a clock."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from ember_hw.compiler.interpreters.microcode import Machine
from ember_hw.config import AcceleratorConfig
from ember_hw.host.backends import memory_model, sink_model
from ember_hw.host.backends.dot_model import DotModel
from ember_hw.host.backends.reduce_model import ReduceModel
from ember_hw.host.backends.result_memory import ResultMemory
from ember_hw.host.execution import Chunk
from ember_hw.host.launch import Launch
from ember_hw.isa import Microcode


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
        self._counts: dict[str, int] = {}
        #: Of launches that are alive.
        self._machines: WeakKeyDictionary[Launch, Machine] = WeakKeyDictionary()

    def execute(self, launch: Launch) -> Iterator[Chunk]:
        """Run a launch; see `ember_hw.host.device.Backend`."""
        counts = self._counts = dict.fromkeys(("bundles", "rows", "row_beats", "useful_bytes"), 0)
        unit = None if launch.host is None else _reduce_unit(launch.microcode)
        memory = None if launch.results is None else ResultMemory(launch, launch.results)
        for chunk in self._machine(launch).run([launch.arguments]):
            counts["bundles"] += len(chunk.events)
            counts["rows"] += int(np.count_nonzero(chunk.row_last))
            counts["row_beats"] += len(chunk.row_last)
            counts["useful_bytes"] += int(np.add.reduce(chunk.row_keep, dtype=np.int64))
            if unit is None:
                yield Chunk(chunk.events, chunk.scalars, chunk.row_beats, chunk.row_last)
                continue
            for results in unit.results(chunk):
                if memory is None:
                    yield _leaving(results, self.config)
                else:
                    memory.write(results)
        if memory is not None and launch.results is not None:
            counts["written_bytes"] = memory.written_bytes
            yield from launch.results.chunks(self.config)

    def _machine(self, launch: Launch) -> Machine:
        """Return what runs a launch; that of one which comes again is ready."""
        machine = self._machines.get(launch)
        if machine is None:
            machine = Machine(launch.microcode, launch.memory, is_checked=True)
            self._machines[launch] = machine
        return machine

    def facts(self) -> dict[str, Any]:
        """Return what came through the queues, and bytes of rows; no timing is claimed."""
        return dict(self._counts)

    def sample(self) -> None:
        """Return None: there is no clock to sample at."""

    def close(self) -> None:
        """Do nothing: there is nothing to free."""


def _reduce_unit(microcode: Microcode) -> ReduceModel | DotModel:
    return (DotModel if microcode.records["reduce"].get("fold") else ReduceModel)(microcode)


def _leaving(results: NDArray[np.uint8], config: AcceleratorConfig) -> Chunk:
    """Return results, uint8 (R, length), as they leave: in beats, without bundles."""
    count, length = results.shape
    beats = -(-length // config.bus_bytes)
    padded = np.zeros((count, beats * config.bus_bytes), np.uint8)
    padded[:, :length] = results
    last = np.zeros((count, beats), np.bool_)
    last[:, -1] = True
    return Chunk(
        events=np.empty(0, np.uint32),
        scalars=np.empty((0, config.bundle_scalars), np.uint32),
        row_beats=padded.reshape(-1, config.bus_bytes),
        row_last=last.reshape(-1),
    )
