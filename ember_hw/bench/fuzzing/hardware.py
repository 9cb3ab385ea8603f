"""Runs cases on simulated access units, one after another, as a host would."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import zip_longest

import numpy as np
from numpy.typing import NDArray

from ember_hw.bench.fuzzing.case import Case
from ember_hw.bench.fuzzing.outcome import Outcome
from ember_hw.config import AcceleratorConfig
from ember_hw.host.backends.requests import (
    input_arrays,
    read_completed,
    read_fault,
    read_state,
    unit_address,
)
from ember_hw.host.backends.verilog import cached_cluster_verilog, cached_verilog, model_shape
from ember_hw.registers import (
    ADDRESS_WIDTH_BITS,
    ARGUMENTS_ADDRESS,
    CONTROL,
    CONTROL_ABORT,
    CONTROL_JOINS,
    CONTROL_START,
    MAGIC,
    MICROCODE_ADDRESS,
    REQUESTS,
    WATCHDOG,
    State,
    counter_address,
    counters,
)
from ember_hw.rtl import axi
from ember_hw.sim.build import build_model
from ember_hw.sim.model import Access, AccessKind, RunState, VerilatorModel

_AT_REST = (State.IDLE, State.DONE, State.FAULTED)
# Cycles in which any case has ended: some thousand tokens, each a few hundred cycles at worst.
_MOST_CYCLES = 4_000_000
_MOST_POLLS = 10_000

#: What each unit runs; None: it stays at rest.
Draw = tuple[Case | None, ...]


class HangError(Exception):
    """An access unit did not come to rest."""


def _write(address: int, value: int) -> Access:
    return Access(kind=AccessKind.WRITE, address=address, value=value)


class Hardware:
    """Simulated access units of one config: one alone, or several that share all channels.

    Parameters
    ----------
    config : AcceleratorConfig
        Of each unit.
    units : int
        How many.
    optimise : bool
        Compile a faster model, in more time.
    coverage : bool
        Let the model count lines and toggles, see `build_model`.
    progress : callable, optional
        Told what a build does next.

    Attributes
    ----------
    library : Path
        The compiled model.
    """

    def __init__(
        self,
        config: AcceleratorConfig,
        *,
        units: int = 1,
        optimise: bool = True,
        coverage: bool = False,
        progress: Callable[[str], None] | None = None,
    ) -> None:
        self.config, self.units = config, units
        if units == 1:
            verilog, shape = cached_verilog(config, progress), model_shape(config)
        else:
            channels = config.memory_ports
            verilog = cached_cluster_verilog(
                config, units=units, channels=channels, sharing="shared", progress=progress
            )
            shape = model_shape(config, units=units, channels=channels, sharing="shared")
        self.library = build_model(
            verilog, shape, optimise=optimise, coverage=coverage, progress=progress
        )
        self._id_bits = axi.ReadSignature(config).members["arid"].shape
        self._words: dict[int, list[int]] = {}
        self._open()

    def close(self) -> None:
        """Free the model."""
        self._model.close()

    def restart(self) -> None:
        """Begin anew, with a fresh model."""
        self._model.close()
        self._open()

    def _open(self) -> None:
        self._model = VerilatorModel(self.library)
        self._reset()

    def run(self, case: Case, *, with_counters: bool = False) -> Outcome:
        """Run a case on the first unit; see `run_all`."""
        return self.run_all((case,), with_counters=with_counters)[0]

    def run_all(self, draw: Draw, *, with_counters: bool = False) -> dict[int, Outcome]:
        """Run cases at the same time, each on its unit; what ran before must not show.

        All have the same memory, and none holds what belongs to another.

        Returns
        -------
        dict of int to Outcome
            By unit.

        Raises
        ------
        HangError
            A unit did not come to rest, or refused an access that it must take.
        SimulationError
            It broke a rule of its interfaces.
        """
        cases = {unit: case for unit, case in enumerate(draw) if case is not None}
        self._await_rest(cases)
        self._load(cases)
        model = self._model
        outcomes = {unit: Outcome() for unit in cases}
        completed = {unit: read_completed(model.read_register, unit=unit) for unit in cases}
        before = model.counters()
        self._start(outcomes, cases)
        if any(case.environment.reset_after_polls is not None for case in cases.values()):
            self._reset()
        for busy in self._until_rest(cases):
            self._take(outcomes, [], awaited=busy)
        after = model.counters()
        for unit, outcome in outcomes.items():
            outcome.state = read_state(model.read_register, unit=unit)
            outcome.cycles = after.cycles - before.cycles
            if self.units == 1:
                outcome.row_bytes = after.row_bytes - before.row_bytes
            ended = read_completed(model.read_register, unit=unit)
            outcome.completed = (ended - completed[unit]) % (1 << 32)
            outcome.reads = self._reads(unit)
            if outcome.state is State.FAULTED:
                outcome.fault = read_fault(model.read_register, unit=unit)
            if with_counters:
                outcome.counters = [self._counter(unit, n) for n in range(counters(self.config))]
        return outcomes

    def _reads(self, unit: int) -> list[tuple[int, int]]:
        """Return the bursts of a unit: its number stands above its IDs on a shared channel."""
        ports = self.config.memory_ports
        found: list[tuple[int, int]] = []
        for channel in range(len(self._model.shape.channels)):
            for read in self._model.reads(channel):
                owner = channel - ports if channel >= ports else int(read["id"]) >> self._id_bits
                if self.units == 1 or owner == unit:
                    size = int(read["beats"]) * int(read["beat_bytes"])
                    found.append((int(read["address"]), size))
        return found

    def _counter(self, unit: int, number: int) -> int:
        address = unit_address(unit) + counter_address(number)
        low = self._model.read_register(address)  # latches the high word
        return low | self._model.read_register(address + 4) << 32

    def _load(self, cases: Mapping[int, Case]) -> None:
        model = self._model
        model.unmap_regions()
        for case in cases.values():
            for base, content in case.regions:
                model.map_region(content, base)
        first = next((c for c in cases.values() if c.errors), next(iter(cases.values())))
        model.set_memory(first.environment.memory)
        model.record_reads(False)
        model.record_reads()
        for unit, case in cases.items():
            model.set_sink(case.environment.sink, unit=unit)
            window = unit_address(unit)
            words = case.microcode.encode()
            held = self._words.get(unit, [-1] * len(words))
            for number, (word, old) in enumerate(zip(words, held, strict=True)):
                if word != old:
                    model.write_register(window + MICROCODE_ADDRESS + 4 * number, word)
            self._words[unit] = words
            model.write_register(window + WATCHDOG.address, case.environment.watchdog_cycles)
            if model.shape.input_bytes:
                model.set_input(*input_arrays(self._feed(case), self.config), unit=unit)

    def _feed(self, case: Case) -> list[tuple[tuple[int, int], NDArray[np.uint8]]]:
        """Return what the input queue brings, in the order in which the program takes it."""
        brought = {who: iter(lines) for who, lines in case.lines.items()}
        feed: list[tuple[tuple[int, int], NDArray[np.uint8]]] = []
        for who in case.whole.taken:
            line = next(brought.get(who, iter(())), None)
            if line is not None:
                feed.append((who, np.frombuffer(line, np.uint8)))
        return feed

    def _accesses(self, unit: int, case: Case) -> list[Access]:
        """Return the register accesses that start all requests, and those that follow."""
        window = unit_address(unit)
        accesses: list[Access] = []
        for number, request in enumerate(case.requests):
            for position, value in enumerate(request):
                address = window + ARGUMENTS_ADDRESS + 4 * position
                accesses.append(_write(address, value & 0xFFFF_FFFF))
            if number:
                room = self.config.request_entries - 1
                address = window + REQUESTS.address
                accesses.append(Access(kind=AccessKind.WAIT, address=address, value=room))
            start = CONTROL_START | (CONTROL_JOINS if number else 0)
            accesses.append(_write(window + CONTROL.address, start))
        environment = case.environment
        polls = environment.abort_after_polls or environment.reset_after_polls or 0
        address = window + MAGIC.address
        accesses += [Access(kind=AccessKind.WAIT, address=address, value=0, mask=0)] * polls
        if environment.abort_after_polls is not None:
            accesses.append(_write(window + CONTROL.address, CONTROL_ABORT))
        return accesses

    def _start(self, outcomes: Mapping[int, Outcome], cases: Mapping[int, Case]) -> None:
        """Start all requests; a unit that has faulted refuses those that would join."""
        lists = [self._accesses(unit, case) for unit, case in cases.items()]
        accesses = [access for turn in zip_longest(*lists) for access in turn if access]
        while accesses:
            self._take(outcomes, accesses, awaited=list(cases))
            accesses = accesses[len(accesses) - self._model.accesses_left :]
            if accesses:
                refused, *rest = accesses
                unit = refused.address >> ADDRESS_WIDTH_BITS
                if refused.value != CONTROL_START | CONTROL_JOINS:
                    raise HangError(f"unit {unit} refuses a write to {refused.address:#x}")
                accesses = [a for a in rest if a.address >> ADDRESS_WIDTH_BITS != unit]

    def _take(
        self, outcomes: Mapping[int, Outcome], accesses: Sequence[Access], *, awaited: Sequence[int]
    ) -> None:
        """Simulate until the accesses are done, or else the awaited units' requests have ended."""
        model, config = self._model, self.config
        model.set_accesses(accesses)
        while True:
            result = model.run(
                max_idle_cycles=_MOST_CYCLES // 10, max_cycles=_MOST_CYCLES, awaited=awaited
            )
            for unit, outcome in outcomes.items():
                outcome.collect(result.outputs[unit], config)
            if result.state is RunState.PROGRAM_ENDED:
                return
            if result.state is not RunState.OUTPUT_FULL:
                states = [read_state(model.read_register, unit=u).name for u in awaited]
                raise HangError(
                    f"config {config.name}: {result.state.name} after {result.cycles} cycles "
                    f"in state {', '.join(states)}"
                )

    def _busy(self, units: Iterator[int] | Mapping[int, Case] | range) -> list[int]:
        read = self._model.read_register
        return [unit for unit in units if read_state(read, unit=unit) not in _AT_REST]

    def _until_rest(self, units: Mapping[int, Case] | range) -> Iterator[list[int]]:
        """Yield the units that are not at rest, while there are any."""
        for _ in range(_MOST_POLLS):
            busy = self._busy(units)
            if not busy:
                return
            yield busy
        raise HangError(f"config {self.config.name}: never at rest")

    def _await_rest(self, units: Mapping[int, Case] | range) -> None:
        for _ in self._until_rest(units):
            pass

    def _reset(self) -> None:
        self._model.reset()
        self._words = {}
        self._await_rest(range(self.units))
