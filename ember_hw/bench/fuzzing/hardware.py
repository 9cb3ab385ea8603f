"""Runs cases on one simulated access unit, one after another, as a host would."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np

from ember_hw.bench.fuzzing.case import Case
from ember_hw.config import VALUE_WIDTH_BITS, AcceleratorConfig
from ember_hw.host.backends.verilog import cached_verilog
from ember_hw.registers import (
    ARGUMENTS_ADDRESS,
    COMPLETED,
    CONTROL,
    CONTROL_ABORT,
    CONTROL_START,
    FAULT,
    FAULT_ADDRESS_HIGH,
    FAULT_ADDRESS_LOW,
    MAGIC,
    MICROCODE_ADDRESS,
    REQUESTS,
    STATUS,
    WATCHDOG,
    Counter,
    State,
    counter_address,
    counters,
)
from ember_hw.rtl import axi
from ember_hw.rtl.layouts import stream_bits
from ember_hw.sim.build import ModelShape, build_model
from ember_hw.sim.model import Access, AccessKind, RunState, VerilatorModel

_AT_REST = (State.IDLE, State.DONE, State.FAULTED)
_STATE_MASK = 7
# Cycles in which any case has ended: some thousand tokens, each a few hundred cycles at worst.
_MOST_CYCLES = 4_000_000
_MOST_POLLS = 10_000


class HangError(Exception):
    """The access unit did not come to rest."""


@dataclass
class Outcome:
    """What a case brought on hardware.

    Attributes
    ----------
    state : State
        Where the unit came to rest; IDLE after a reset.
    fault : (int, int, int, int)
        Code, unit, stream, address.
    completed : int
        Requests that ended.
    bundles : list of (events, scalars)
    rows : list of bytes
        Their beats, whole.
    row_bytes : int
        Bytes that TKEEP marked, of all beats.
    part : bytes
        Of a row that did not end.
    reads : list of (int, int)
        Address and bytes of each burst.
    counters : list of int
        All of the unit's counters, where they were asked for.
    cycles : int
        From the first start.
    """

    state: State = State.IDLE
    fault: tuple[int, int, int, int] = (0, 0, 0, 0)
    completed: int = 0
    bundles: list[tuple[int, tuple[int, ...]]] = field(
        default_factory=list[tuple[int, tuple[int, ...]]]
    )
    rows: list[bytes] = field(default_factory=list[bytes])
    row_bytes: int = 0
    part: bytes = b""
    reads: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    counters: list[int] = field(default_factory=list[int])
    cycles: int = 0


def model_shape(config: AcceleratorConfig) -> ModelShape:
    """Return the ports of a config's Verilog."""
    port = axi.ReadSignature(config).members
    index = axi.ReadSignature(config, index=True).members if config.index_port_bits else None
    return ModelShape(
        bus_bytes=config.bus_bytes,
        bundle_bytes=config.bundle_bytes,
        event_bits=config.events,
        id_bits=port["arid"].shape,
        address_bits=config.address_width_bits,
        memory_ports=config.memory_ports,
        index_port_bytes=config.index_port_bits // 8,
        index_id_bits=index["arid"].shape if index else 0,
        length_bits=port["arlen"].shape,
        input_bytes=config.index_bits // 8 if config.input_queue else 0,
        input_dest_bits=stream_bits(config) if config.input_queue else 0,
    )


def _write(address: int, value: int) -> Access:
    return Access(kind=AccessKind.WRITE, address=address, value=value)


def _stops_after_a_fault() -> list[Access]:
    """Return what abandons further starts after a fault: one in FAULTED would begin anew.

    A look at the state takes some cycles. Of DRAINING and FAULTED, which have its lowest bit in
    common, and RESETTING between them, a single look could miss all.
    """
    assert State.DRAINING & State.FAULTED & ~State.RUNNING & ~State.DONE & 1
    errs = Access(kind=AccessKind.STOP_IF, address=STATUS.address, value=1, mask=1)
    resets = Access(
        kind=AccessKind.STOP_IF, address=STATUS.address, value=State.RESETTING, mask=_STATE_MASK
    )
    return [errs, resets, errs]


class Hardware:
    """One simulated access unit.

    Parameters
    ----------
    config : AcceleratorConfig
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
        optimise: bool = True,
        coverage: bool = False,
        progress: Callable[[str], None] | None = None,
    ) -> None:
        self.config = config
        self.library = build_model(
            cached_verilog(config, progress),
            model_shape(config),
            optimise=optimise,
            coverage=coverage,
            progress=progress,
        )
        self._words: list[int] = []
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
        """Run a case; what ran before must not show.

        Raises
        ------
        HangError
            The unit did not come to rest.
        SimulationError
            It broke a rule of its interfaces.
        """
        self._await_rest()
        self._load(case)
        model, outcome = self._model, Outcome()
        completed = model.read_register(COMPLETED.address)
        before = model.counters()
        self._take(outcome, self._accesses(case))
        if case.environment.reset_after_polls is not None:
            self._reset()
        for _ in self._until_rest():
            self._take(outcome, [])
        state = State(model.read_register(STATUS.address) & _STATE_MASK)
        outcome.state = state
        after = model.counters()
        outcome.cycles = after.cycles - before.cycles
        outcome.row_bytes = after.row_bytes - before.row_bytes
        outcome.completed = (model.read_register(COMPLETED.address) - completed) % (1 << 32)
        outcome.reads = [
            (int(read["address"]), int(read["beats"]) * int(read["beat_bytes"]))
            for channel in range(len(model.shape.channels))
            for read in model.reads(channel)
        ]
        if state is State.FAULTED:
            fault = model.read_register(FAULT.address)
            address = model.read_register(FAULT_ADDRESS_LOW.address)
            address |= model.read_register(FAULT_ADDRESS_HIGH.address) << 32
            outcome.fault = (fault & 0x1F, fault >> 8 & 0xFF, fault >> 16 & 0xFF, address)
        if with_counters:
            outcome.counters = [self._counter(n) for n in range(counters(self.config))]
        return outcome

    def _counter(self, number: int) -> int:
        address = counter_address(Counter(number) if number < len(Counter) else number)
        low = self._model.read_register(address)  # latches the high word
        return low | self._model.read_register(address + 4) << 32

    def _load(self, case: Case) -> None:
        model = self._model
        model.unmap_regions()
        for base, content in case.regions:
            model.map_region(content, base)
        model.set_memory(case.environment.memory)
        model.set_sink(case.environment.sink)
        model.record_reads(False)
        model.record_reads()
        words = case.microcode.encode()
        held = self._words or [-1] * len(words)
        for number, (word, old) in enumerate(zip(words, held, strict=True)):
            if word != old:
                model.write_register(MICROCODE_ADDRESS + 4 * number, word)
        self._words = words
        model.write_register(WATCHDOG.address, case.environment.watchdog_cycles)
        if model.shape.input_bytes:
            destinations, lines = self._input(case)
            model.set_input(destinations, lines)

    def _input(self, case: Case) -> tuple[np.ndarray, np.ndarray]:
        """Return what the input queue brings, in the order in which the program takes it."""
        brought = {who: iter(lines) for who, lines in case.lines.items()}
        destinations: list[int] = []
        lines: list[bytes] = []
        for unit, stream in case.whole.taken:
            line = next(brought.get((unit, stream), iter(())), None)
            if line is not None:
                destinations.append(unit * self.config.streams_per_unit + stream)
                lines.append(line)
        content = np.frombuffer(b"".join(lines), np.uint8).reshape(-1, 64)
        return np.array(destinations, np.uint32), content

    def _accesses(self, case: Case) -> list[Access]:
        """Return the register accesses that start all requests, and those that follow."""
        accesses: list[Access] = []
        for number, request in enumerate(case.requests):
            for position, value in enumerate(request):
                address = ARGUMENTS_ADDRESS + 4 * position
                accesses.append(_write(address, value & 0xFFFF_FFFF))
            if number:
                room = self.config.request_entries - 1
                accesses.append(Access(kind=AccessKind.WAIT, address=REQUESTS.address, value=room))
                accesses += _stops_after_a_fault()
            accesses.append(_write(CONTROL.address, CONTROL_START))
        environment = case.environment
        polls = environment.abort_after_polls or environment.reset_after_polls or 0
        poll = Access(kind=AccessKind.WAIT, address=MAGIC.address, value=0, mask=0)
        accesses += [poll] * polls
        if environment.abort_after_polls is not None:
            accesses.append(_write(CONTROL.address, CONTROL_ABORT))
        return accesses

    def _take(self, outcome: Outcome, accesses: list[Access]) -> None:
        """Simulate until the accesses are done or else the requests have ended; collect outputs."""
        model, config = self._model, self.config
        model.set_accesses(accesses)
        while True:
            result = model.run(max_idle_cycles=_MOST_CYCLES // 10, max_cycles=_MOST_CYCLES)
            self._collect(outcome, result.bundles, result.row_beats, result.row_last)
            if result.state is RunState.PROGRAM_ENDED:
                return
            if result.state is not RunState.OUTPUT_FULL:
                state = State(model.read_register(STATUS.address) & _STATE_MASK)
                raise HangError(
                    f"config {config.name}: {result.state.name} after {result.cycles} cycles "
                    f"in state {state.name}"
                )

    def _collect(
        self, outcome: Outcome, bundles: np.ndarray, beats: np.ndarray, last: np.ndarray
    ) -> None:
        config = self.config
        mask = (1 << VALUE_WIDTH_BITS) - 1
        for bundle in bundles:
            bits = int.from_bytes(bundle.tobytes(), "little")
            scalars = bits >> config.events
            outcome.bundles.append(
                (
                    bits & ((1 << config.events) - 1),
                    tuple(
                        scalars >> VALUE_WIDTH_BITS * i & mask for i in range(config.bundle_scalars)
                    ),
                )
            )
        ends = np.flatnonzero(last) + 1
        begin = 0
        for end in ends:
            outcome.rows.append(outcome.part + beats[begin:end].tobytes())
            outcome.part, begin = b"", int(end)
        outcome.part += beats[begin:].tobytes()

    def _state(self) -> State:
        return State(self._model.read_register(STATUS.address) & _STATE_MASK)

    def _until_rest(self) -> Iterator[None]:
        """Yield while the unit is not at rest."""
        for _ in range(_MOST_POLLS):
            if self._state() in _AT_REST:
                return
            yield
        raise HangError(f"config {self.config.name}: never at rest, but {self._state().name}")

    def _await_rest(self) -> None:
        for _ in self._until_rest():
            pass

    def _reset(self) -> None:
        self._model.reset()
        self._words = []
        self._await_rest()
