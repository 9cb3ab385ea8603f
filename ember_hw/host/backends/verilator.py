"""The backend `verilator`: the access unit's Verilog, simulated cycle by cycle with its memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

from numpy.typing import NDArray

from ember_hw.config import AcceleratorConfig
from ember_hw.errors import DeviceError
from ember_hw.host.backends import memory_model, pushes_of, sink_model
from ember_hw.host.backends.profiling import MOST_READS, describe_queues, take_sample
from ember_hw.host.backends.requests import (
    FeedLine,
    HeldProgram,
    check_ended,
    check_leaves,
    input_arrays,
    read_completed,
    read_state,
    request_accesses,
)
from ember_hw.host.backends.verilog import cached_verilog, model_shape
from ember_hw.host.backends.waveforms import write_companions
from ember_hw.host.execution import Chunk, unpack_bundles
from ember_hw.host.launch import Launch
from ember_hw.host.profile import LaunchSample
from ember_hw.host.report import counted
from ember_hw.host.result_region import ResultRegion
from ember_hw.isa import ISA_VERSION
from ember_hw.registers import (
    CONFIG_HASH,
    CONTROL,
    CONTROL_START,
    MAGIC,
    MAGIC_VALUE,
    STATUS,
    Counter,
    State,
    counter_address,
)
from ember_hw.registers import ISA_VERSION as ISA_VERSION_REGISTER
from ember_hw.sim.build import build_model
from ember_hw.sim.model import RunState, SimulationError, VerilatorModel
from ember_hw.sim.options import DramMemory, LinkMemory, Pushes, Trace

#: Reads of STATUS that a reset may take; each takes several cycles, buffers are cleared in 4,096.
_RESET_POLLS = 4096


class Backend:
    """Runs launches on the Verilator model.

    Parameters
    ----------
    config : AcceleratorConfig
        The access unit; its model is built once on a machine and kept in the cache.
    memory, sink : optional
        A name, or an object of `ember_hw.sim.options`.
    seed : int
        Seed of registers without an initial value.
    optimise : bool
        Build the fast model; the other one builds in half the time and runs several times slower.
    max_idle_cycles : int
        Cycles without any handshake after which a run is given up.
    record_reads : bool
        Keep all read bursts of each launch for `reads`, not only the first million of each port.
    trace : Trace, optional
        Window of each launch to write; the file holds the latest launch, also one that failed. The
        model is built with tracing, which makes it slower. `waveforms` says what lies beside it.
    verilog : str, optional
        What is simulated in place of the config's RTL: a module of its name and ports, as a netlist
        is.
    progress : callable, optional
        Told what a cold build does next.

    Raises
    ------
    ValueError
        There is no memory or sink of that name, or the trace's file can't be written.
    ToolError
        Verilator or the C++ compiler is missing.
    DeviceError
        The model doesn't answer as the access unit of this config.
    """

    def __init__(
        self,
        config: AcceleratorConfig,
        *,
        memory: Any = "ideal",
        sink: Any = "ideal",
        seed: int = 1,
        optimise: bool = True,
        max_idle_cycles: int = 100_000,
        record_reads: bool = False,
        trace: Trace | None = None,
        verilog: str | None = None,
        progress: Callable[[str], None] | None = None,
    ) -> None:
        self.config = config
        self._memory = memory_model(memory)
        self._make_sink = sink_model(sink)
        self._seed = seed
        self.max_idle_cycles = max_idle_cycles
        self._most_reads = (1 << 64) - 1 if record_reads else MOST_READS
        self.memory = self._memory.describe()
        self.sink = self._make_sink(Pushes()).name
        self.cycles: int | None = 0
        self._trace = trace
        if trace is not None:
            _check_writable(trace.path)  # now, not after a build of minutes
        text = cached_verilog(config, progress) if verilog is None else verilog
        shape = model_shape(config)
        self._library = build_model(
            text,
            shape if verilog is None else replace(shape, probed_streams=0),
            optimise=optimise,
            trace="" if trace is None else trace.format,
            progress=progress,
        )
        if trace is not None and verilog is None:
            write_companions(trace, text, config)
        self._model: VerilatorModel | None = None
        self._held = HeldProgram(self._write_registers)
        self._requests_before: list[int] = []
        self._written_before = 0
        self._open_model()

    def execute(self, launch: Launch) -> Iterator[Chunk]:
        """Run a launch; see `ember_hw.host.device.Backend`."""
        return self.execute_requests([launch])

    def execute_requests(
        self, launches: Sequence[Launch], feed: Sequence[FeedLine] = ()
    ) -> Iterator[Chunk]:
        """Run launches of one microcode as requests that wait one behind the other.

        Each is started as soon as the unit has room for it, while those before it run. Counters
        count all of them, unless one ends before the next starts.

        Parameters
        ----------
        launches : sequence of Launch
            Alike but for their arguments. The first one's region of results, if there is one, holds
            those of all.
        feed : sequence of ((int, int), uint8 (64,))
            Lines for the input queue: the unit and the number of the stream that takes each, and
            its bytes. In the order that `ember_hw.isa` states, section "Input queue":
            `scalar_microcode.Scalar.taken` finds it for a program.

        Raises
        ------
        DeviceError
            A request stopped on a fault, which voids it and those behind it; the error's
            `completed` tells how many had ended.
        ProgramError
            The config has a reduce unit, and the rows of the nest can't leave through it.
        """
        launch = launches[0]
        check_leaves(launch, self.config)
        results = launch.results
        model = self._open_model()
        has_ended = False
        self.cycles = 0
        try:
            model.set_sink(
                self._make_sink(pushes_of(launch.callbacks, launch.microcode, self.config))
            )
            model.unmap_regions()
            for region in launch.regions:
                model.map_region(region.data, region.base)
            if results is not None:
                model.map_region(results.region.data, results.region.base, is_writable=True)
            self._held.write_microcode(launch.words)
            completed = read_completed(model.read_register)
            self._open_trace(model)
            model.clear_profile()
            channels = range(len(model.shape.channels))
            self._requests_before = [model.channel_counters(n).read_requests for n in channels]
            model.record_reads(most=self._most_reads)
            self._written_before = model.write_counters().write_bytes
            model.record_writes()
            if feed:
                model.set_input(*input_arrays(feed, self.config))
            if len(launches) == 1:
                self._held.write_arguments(launch)
                model.write_register(CONTROL.address, CONTROL_START)
            else:
                held = self._held.arguments
                model.set_accesses(request_accesses(launches, self.config, held=held))
            is_starting = len(launches) > 1
            while not has_ended:
                result = model.run(max_idle_cycles=self.max_idle_cycles)
                self.cycles += result.cycles
                if result.state is RunState.IDLE_TIMEOUT:
                    self._refuse_idle(model)
                if result.state is RunState.PROGRAM_ENDED:
                    # A run that made the starts may end before the requests do.
                    if not (is_starting and self._is_running(model)):
                        check_ended(
                            model.read_register,
                            requests=len(launches),
                            completed_before=completed,
                        )
                        has_ended = True
                    is_starting = False
                events, scalars = unpack_bundles(result.bundles, self.config)
                yield Chunk(events, scalars, result.row_beats, result.row_last, result.row_cycles)
            if results is not None:
                self._check_written(results)
                yield from results.chunks(self.config, model.write_cycles())
            self._check_traced(model)
        except SimulationError:
            # A model that failed is of no further use; the next launch opens another.
            self.close()
            raise
        finally:
            if self._model is not None:
                model.close_trace()
                if not has_ended:
                    self._reset(model)

    def facts(self) -> dict[str, Any]:
        """Return the hardware's counters, and the clock where the memory model states one."""
        model = self._open_model()
        values: dict[Counter, int] = {}
        for counter in Counter:
            address = counter_address(counter)
            low = model.read_register(address)  # latches the high word
            values[counter] = low | model.read_register(address + 4) << 32
        facts = counted(values)
        if self.config.results == "memory":
            facts["written_bytes"] = self._written_bytes()
        if isinstance(self._memory, DramMemory | LinkMemory):
            facts["clock_mhz"] = self._memory.unit_mhz
        return facts

    def sample(self) -> LaunchSample:
        """Return what the model saw of the latest launch; see `ember_hw.host.device.Backend`."""
        return take_sample(self._open_model(), self._memory, self._requests_before)

    def reads(self, channel: int = 0) -> NDArray[Any]:
        """Return the latest launch's read bursts of one port; see `record_reads`.

        Returns
        -------
        READ_DTYPE (N,)
            What `ember_hw.sim.memory_library.replay` bounds.
        """
        return self._open_model().reads(channel)

    def close(self) -> None:
        """Free the model."""
        if self._model is not None:
            self._model.close()
        self._model = None

    def _open_model(self) -> VerilatorModel:
        if self._model is None:
            self._model = VerilatorModel(self._library, memory=self._memory, seed=self._seed)
            self._reset(self._model)
            self._check_identity(self._model)
        return self._model

    def _open_trace(self, model: VerilatorModel) -> None:
        if self._trace is not None:
            trace = self._trace
            by_rows = trace.by == "lookups"
            now = 0 if by_rows else model.counters().cycles
            model.open_trace(
                trace.path, first=now + trace.first, end=now + trace.end, by_rows=by_rows
            )

    def _written_bytes(self) -> int:
        """Return the bytes of results that the latest launch has written."""
        return self._open_model().write_counters().write_bytes - self._written_before

    def _check_written(self, results: ResultRegion) -> None:
        """Refuse results that aren't all there."""
        written = self._written_bytes()
        if written != results.num_bytes:
            raise DeviceError(
                f"bytes of results in memory must be the {results.num_bytes} that the loops ask "
                f"for, not {written}"
            )

    def _check_traced(self, model: VerilatorModel) -> None:
        """Refuse a trace whose window holds nothing of the launch."""
        if self._trace is None or model.traced_cycles:
            return
        raise DeviceError(
            f"trace must begin within the launch, which took {self.cycles} cycles and asked for "
            f"{self.facts()['rows']} rows, not with {self._trace.by.removesuffix('s')} "
            f"{self._trace.first}"
        )

    def _reset(self, model: VerilatorModel) -> None:
        """Reset the unit and await that it is idle; it then holds no microcode."""
        model.reset()
        self._held.forget(arguments=[0] * self.config.exports)
        for _ in range(_RESET_POLLS):
            if model.read_register(STATUS.address) == State.IDLE:
                return
        state = State(model.read_register(STATUS.address))
        raise DeviceError(f"state after a reset must be IDLE, not {state.name}")

    def _check_identity(self, model: VerilatorModel) -> None:
        for register, expected in (
            (MAGIC, MAGIC_VALUE),
            (ISA_VERSION_REGISTER, ISA_VERSION),
            (CONFIG_HASH, self.config.hash()),
        ):
            found = model.read_register(register.address)
            if found != expected:
                raise DeviceError(
                    f"register {register.name} must be {expected:#x} for config "
                    f"{self.config.name!r}, not {found:#x}"
                )

    def _write_registers(self, address: int, values: list[int]) -> None:
        model = self._open_model()
        for number, value in enumerate(values):
            model.write_register(address + 4 * number, value)

    def _is_running(self, model: VerilatorModel) -> bool:
        state = read_state(model.read_register)
        return state in (State.RUNNING, State.DRAINING, State.RESETTING)

    def _refuse_idle(self, model: VerilatorModel) -> NoReturn:
        queues = describe_queues(model, self.config)  # before registers are read: time passes
        state = read_state(model.read_register)
        counters = ", ".join(f"{name} {value}" for name, value in self.facts().items())
        raise DeviceError(
            f"the access unit must go on, but nothing moved for {self.max_idle_cycles} cycles in "
            f"state {state.name}: {counters}; what waits:\n{queues}"
        )


def _check_writable(path: Path) -> None:
    try:
        path.touch()
    except OSError as error:
        raise ValueError(
            f"trace must go to a file that can be written, not {str(path)!r} ({error.strerror})"
        ) from error
