"""Several simulated access units on several memory channels, each with requests of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from ember_hw.bench.simulated import STEADY, Delivery, delivery
from ember_hw.config import AcceleratorConfig
from ember_hw.errors import DeviceError
from ember_hw.host.backends import memory_model
from ember_hw.host.backends.requests import (
    check_ended,
    read_completed,
    read_state,
    request_accesses,
    unit_address,
)
from ember_hw.host.backends.verilog import cached_cluster_verilog, model_shape
from ember_hw.host.execution import Chunk, unpack_bundles
from ember_hw.host.launch import Launch
from ember_hw.host.report import counted
from ember_hw.registers import MICROCODE_ADDRESS, Counter, State, counter_address
from ember_hw.sim.build import build_model
from ember_hw.sim.model import RunState, VerilatorModel

_MAX_IDLE_CYCLES = 100_000
_RESET_POLLS = 4096
_BUSY = (State.RUNNING, State.DRAINING, State.RESETTING)


@dataclass(frozen=True)
class _Part:
    """What one unit delivers of a workload: enough of a `Runnable` to check it."""

    name: str
    rows: NDArray[Any]
    lines: Mapping[tuple[int, int], NDArray[np.uint8]]


@dataclass(frozen=True)
class ClusterDelivery:
    """A run in which every bundle and every row byte of every unit was right.

    Attributes
    ----------
    units : sequence of Delivery
        Of each unit that ran.
    channel_beats : int64 (C,)
        Beats that each memory channel answered.
    """

    units: Sequence[Delivery]
    channel_beats: NDArray[np.int64]

    @property
    def beats_per_cycle(self) -> float:
        """Row beats of all units over cycles in the steady state.

        That lies between the beats at 10 % and at 90 % of all that were handed over, by time.
        """
        cycles = np.sort(np.concatenate([unit.row_cycles for unit in self.units]))
        first, last = (int(share * (len(cycles) - 1)) for share in STEADY)
        return (last - first) / int(cycles[last] - cycles[first])

    @property
    def cycles(self) -> int:
        """From the first start to the last end, as far as the units' own counts tell."""
        return max(unit.cycles for unit in self.units)

    def shares(self) -> dict[str, float]:
        """Return the share of the units' cycles that each kind of beat and each stall took."""
        total = sum(unit.cycles for unit in self.units)
        shares: dict[str, float] = {}
        for unit in self.units:
            kinds = {
                "row beats": unit.facts["row_beats"],
                "index lines": unit.facts["index_beats"],
                **unit.facts["stalls"],
            }
            for name, cycles in kinds.items():
                shares[name] = shares.get(name, 0.0) + cycles / total
        return shares


class Cluster:
    """Simulated units with their channels.

    Parameters
    ----------
    config : AcceleratorConfig
        Of each unit.
    units, channels, sharing
        As `emit_cluster_verilog` takes them.
    memory : optional
        Of each channel, as `open_device` takes it.
    progress : callable, optional
        Told what a cold build does next; it takes minutes.
    """

    def __init__(
        self,
        config: AcceleratorConfig,
        *,
        units: int,
        channels: int,
        sharing: str,
        memory: Any = "ideal",
        progress: Callable[[str], None] | None = None,
    ) -> None:
        self.config, self.units = config, units
        cluster: dict[str, Any] = {"units": units, "channels": channels, "sharing": sharing}
        # The fast model of so many units would take longer to build than any run gains.
        library = build_model(
            cached_cluster_verilog(config, progress=progress, **cluster),
            model_shape(config, **cluster),
            optimise=False,
            progress=progress,
        )
        self._channels = channels
        chosen = memory_model(memory)
        self.memory = chosen.describe()
        self._model = VerilatorModel(library, memory=chosen)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._model.close()

    def run(
        self, launches: Sequence[Sequence[Launch]], rows: Sequence[NDArray[Any]], name: str
    ) -> ClusterDelivery:
        """Start requests of one microcode on each unit at once, and check what comes.

        Parameters
        ----------
        launches : sequence of sequences of Launch
            Of each unit, from the first; those without any stay at rest. All have the same regions.
        rows : sequence of uint8 (N,)
            Bytes of all rows of each unit.
        name : str
            What runs, for messages.

        Raises
        ------
        DeviceError
            A unit stopped on a fault, nothing moves any more, or what came isn't right.
        """
        model = self._model
        self._reset()
        running = [unit for unit, own in enumerate(launches) if own]
        model.unmap_regions()
        for region in launches[running[0]][0].regions:
            model.map_region(region.data, region.base)
        accesses: list[Any] = []
        completed = [read_completed(model.read_register, unit=u) for u in range(self.units)]
        for unit in running:
            for number, word in enumerate(launches[unit][0].microcode.encode()):
                address = unit_address(unit) + MICROCODE_ADDRESS + 4 * number
                model.write_register(address, word)
            held = [0] * self.config.exports
            accesses += request_accesses(launches[unit], self.config, held=held, unit=unit)
        model.clear_counters()
        model.set_accesses(accesses)
        chunks = self._collect(running, name)
        beats = [model.channel_counters(channel).read_beats for channel in range(self._channels)]
        deliveries: list[Delivery] = []
        for unit in running:
            self._check_ended(unit, len(launches[unit]), completed[unit], name)
            facts = self._facts(unit)
            part = _Part(f"{name}, unit {unit}", rows[unit], {})
            deliveries.append(delivery(part, launches[unit], chunks[unit], facts))
        return ClusterDelivery(deliveries, np.array(beats, np.int64))

    def _collect(self, running: Sequence[int], name: str) -> dict[int, list[Chunk]]:
        """Simulate to the end of all; return the chunks of each unit."""
        model = self._model
        chunks: dict[int, list[Chunk]] = {unit: [] for unit in running}
        awaited = list(running)
        while awaited:
            result = model.run(max_idle_cycles=_MAX_IDLE_CYCLES, awaited=awaited)
            for unit in running:
                output = result.outputs[unit]
                events, scalars = unpack_bundles(output.bundles, self.config)
                chunks[unit].append(
                    Chunk(
                        events.copy(),
                        scalars.copy(),
                        output.row_beats.copy(),
                        output.row_last.copy(),
                        output.row_cycles.copy(),
                    )
                )
            if result.state is RunState.IDLE_TIMEOUT:
                raise DeviceError(
                    f"units {awaited} must go on with {name!r}, but nothing moved for "
                    f"{_MAX_IDLE_CYCLES} cycles"
                )
            if result.state is RunState.PROGRAM_ENDED:
                awaited = [unit for unit in awaited if self._state(unit) in _BUSY]
        return chunks

    def _check_ended(self, unit: int, requests: int, completed: int, name: str) -> None:
        read = self._model.read_register
        try:
            check_ended(read, requests=requests, completed_before=completed, unit=unit)
        except DeviceError as error:
            raise DeviceError(
                f"unit {unit} with {name!r}: {error}",
                code=error.code,
                unit=error.unit,
                stream=error.stream,
                address=error.address,
                completed=error.completed,
            ) from error

    def _state(self, unit: int) -> State:
        return read_state(self._model.read_register, unit=unit)

    def _facts(self, unit: int) -> dict[str, Any]:
        values: dict[Counter, int] = {}
        for counter in Counter:
            address = unit_address(unit) + counter_address(counter)
            low = self._model.read_register(address)  # latches the high word
            values[counter] = low | self._model.read_register(address + 4) << 32
        return counted(values)

    def _reset(self) -> None:
        self._model.reset()
        for _ in range(_RESET_POLLS):
            if all(self._state(unit) is State.IDLE for unit in range(self.units)):
                return
        raise DeviceError("every unit must be IDLE after a reset, and isn't")
