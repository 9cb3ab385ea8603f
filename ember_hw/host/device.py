"""Devices: one interface over every backend that runs programs."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from typing import Any, Literal, Protocol, Self, TypeAlias

from numpy.typing import NDArray

from ember_hw.compiler.program import Nest, Program
from ember_hw.config import AcceleratorConfig
from ember_hw.errors import DeviceError, ProgramError
from ember_hw.host.account import RunAccount
from ember_hw.host.ended_run import EndedRun
from ember_hw.host.execution import ENGINES, Chunk, ExecuteSide, ResultSide
from ember_hw.host.launch import Launch, LoadedProgram
from ember_hw.host.likely_rows import Uploads, changed_rows
from ember_hw.host.profile import LaunchSample
from ember_hw.host.report import Report, config_facts
from ember_hw.host.result_region import result_length

EngineName: TypeAlias = Literal["auto", "c", "numpy"]

#: Programs whose tables a device holds. Each maps its own memory, so none is in another's way.
LOADED_PROGRAMS = 64

#: Module of each backend; it has a class `Backend`. Imported when a device is opened.
BACKENDS = {
    "interpreter": "ember_hw.host.backends.interpreter",
    "verilator": "ember_hw.host.backends.verilator",
    "board": "ember_hw.host.backends.board",
}


class Backend(Protocol):
    """What runs launches: an access unit, or something that behaves like one.

    After `execute` ended, by an error too, the next one starts afresh.
    """

    config: AcceleratorConfig
    #: Memory model and execute side that drains the queues, as the report names them.
    memory: str
    sink: str
    #: Cycles that the latest launch has taken so far; None where there is no clock.
    cycles: int | None

    def execute(self, launch: Launch) -> Iterator[Chunk]:
        """Run a launch and yield what its queues deliver.

        The cut between two chunks may fall anywhere, also between a bundle and its rows. The arrays
        of a chunk are the consumer's until it asks for the next.

        Raises
        ------
        DeviceError
            The program stopped on a fault.
        """
        ...

    def facts(self) -> dict[str, Any]:
        """Return the attributes of `Report` that the backend counted in the latest launch.

        `useful_bytes` is always among them: those of rows.
        """
        ...

    def sample(self) -> LaunchSample | None:
        """Return what a simulation saw of the latest launch; None where nothing is simulated."""
        ...

    def close(self) -> None:
        """Free what the backend holds; closing twice is no error."""
        ...


class Device:
    """Runs programs on a backend.

    Parameters
    ----------
    name : str
        Name of the backend.
    backend : Backend
        The backend, which the device closes.
    engine : "auto", "c" or "numpy"
        What runs the execute side, see `ember_hw.host.execution.ExecuteSide`.

    Examples
    --------
    ::

        with open_device("interpreter") as device:
            pooled = device.run(program, (indices, offsets))
            print(device.report)
    """

    def __init__(self, name: str, backend: Backend, engine: EngineName = "auto") -> None:
        self.name = name
        self._engine: EngineName = engine
        self._backend: Backend | None = backend
        self.config = backend.config
        self._config_facts = config_facts(backend.config)
        self._uploads = isinstance(backend, Uploads)
        self._loaded: dict[int, LoadedProgram] = {}  # by identity, the latest last
        self._ended: EndedRun | None = None
        self._report: Report | None = None

    @property
    def report(self) -> Report:
        """What the latest run did.

        Raises
        ------
        DeviceError
            No run has ended, or the latest one failed.
        """
        if self._ended is None:
            raise DeviceError("report must be read after a run that ended without an error")
        if self._report is None:
            self._report = self._ended.report(self.name, self.config, self._config_facts)
        return self._report

    def load(self, program: Program) -> None:
        """Bring a program's tables into the device's memory; `run` does so where it wasn't done.

        Those of the latest 64 programs stay there.

        Raises
        ------
        ProgramError
            The program is for another config, or its tables don't fit.
        """
        self._open()
        if program.config.hash() != self.config.hash():
            raise ProgramError(
                f"program {program.name!r} must be compiled for config {self.config.name!r} "
                f"(hash {self.config.hash():#010x}) of device {self.name!r}, "
                f"not for {program.config.name!r} (hash {program.config.hash():#010x})"
            )
        self._loaded.pop(id(program), None)
        self._loaded[id(program)] = LoadedProgram(program)
        while len(self._loaded) > LOADED_PROGRAMS:
            del self._loaded[next(iter(self._loaded))]

    def reload(self, program: Program, rows: Mapping[str, Any] | None = None) -> None:
        """Bring the tables in again, after their values changed.

        Changes in place are seen without it too: `run` never uses values that are out of date. It
        spares work to say which rows they are, where the device has a memory of its own: these are
        written, and the rest is held against check sums and written only where it differs.
        (Rows that a run has looked up need not be said: they are expected to change.)

        Parameters
        ----------
        program : Program
            Whose tables.
        rows : mapping of str to int (N,), optional
            Rows that were written, by the table's name in the model or its symbol in the program;
            all of all tables if absent. If the program isn't loaded with these tables, all are
            brought in.

        Raises
        ------
        ProgramError
            There is no table of a name; or as `load`.
        TypeError, IndexError
            Rows are no integers, or no rows of their table.
        """
        loaded = self._loaded.get(id(program))
        changed = {} if rows is None else changed_rows(program, rows)
        if rows is None or loaded is None or not loaded.is_current():
            self.load(program)
            return
        self._open()
        for symbol, numbers in changed.items():
            if symbol in loaded.tables:
                loaded.tables[symbol].refresh(numbers)
                self._expect(loaded, symbol, numbers)

    def _expect(self, loaded: LoadedProgram, symbol: str, rows: NDArray[Any]) -> None:
        """Tell a backend with a memory of its own which rows of a table may be written."""
        if isinstance(self._backend, Uploads):
            self._backend.expect(loaded.regions[symbol], rows)

    def unload(self, program: Program) -> None:
        """Forget a program's tables; nothing happens if they aren't loaded."""
        self._loaded.pop(id(program), None)

    def run(
        self,
        program: Program,
        inputs: Sequence[Any] | Mapping[str, Any],
        *,
        progress: Callable[[int, int | None, int | None], None] | None = None,
    ) -> Any:
        """Run a program.

        Parameters
        ----------
        program : Program
            Compiled for the device's config.
        inputs : sequence or mapping
            In the order of the arguments or by their names, as the program's binding takes them
            (`ember_hw.host.bindings`): `(indices, offsets)` of an embedding bag.
        progress : callable, optional
            Told from time to time: lookups done, lookups in all, cycles so far (None without a
            clock). Where the program doesn't tell its lookups, bundles done and None.

        Returns
        -------
        object
            What the binding makes of the outputs: pooled rows, float32 (B, embedding_dim), of an
            embedding bag, a torch tensor if the indices are one.

        Raises
        ------
        ProgramError
            The program is for another config, or the inputs aren't what it takes.
        TypeError, ValueError, IndexError
            The inputs break a rule of the binding. The device wasn't touched.
        DeviceError
            The access unit stopped on a fault, or what came doesn't add up to the request; the
            next run is not affected.
        """
        backend = self._open()
        self._ended = self._report = None
        began = time.perf_counter()
        loaded = self._loaded.get(id(program))
        if loaded is None or not loaded.is_current():
            self.load(program)
            loaded = self._loaded[id(program)]
        request = loaded.binding.request(program, inputs)
        run = loaded.prepare(request)
        account = RunAccount(program, request)
        engine = ""
        samples: list[LaunchSample | None] = []
        for number, nest in enumerate(program.nests):
            launch = run.launch(number)
            side = _execute_side(
                launch, nest, run.execute_arrays(number), run.scalars, self._engine
            )
            account.begin(nest, launch)
            for chunk in backend.execute(launch):
                side.consume(chunk)
                if progress is not None:
                    progress(
                        account.lookups_done(side), request.lookups, account.cycles(backend.cycles)
                    )
            side.finish()
            account.end(side, backend.facts())
            samples.append(backend.sample())
            engine = side.engine
        result = request.finish(run.outputs)
        if self._uploads:
            for symbol, rows in request.rows.items():
                self._expect(loaded, symbol, rows)
        loaded.keep(run)
        self._ended = EndedRun(
            program.name,
            program.seed,
            program.versions,
            backend.memory,
            backend.sink,
            engine,
            request.lookups,
            samples,
            account,
            time.perf_counter() - began,
        )
        return result

    def close(self) -> None:
        """Free the backend; every later run is refused."""
        if self._backend is not None:
            self._backend.close()
        self._backend = None
        self._loaded.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _open(self) -> Backend:
        if self._backend is None:
            raise DeviceError(f"device {self.name!r} must be open, and was closed")
        return self._backend


def _execute_side(
    launch: Launch,
    nest: Nest,
    arrays: Mapping[str, NDArray[Any]],
    scalars: Mapping[str, int],
    engine: EngineName,
) -> ExecuteSide:
    """Return what runs the host's code of a launch: on rows, or on results of the reduce unit."""
    host = launch.host
    if host is None or nest.fabric is None:
        return ExecuteSide(nest, arrays, scalars, engine, microcode=launch.microcode)
    return ResultSide(
        nest.fabric.host,
        arrays,
        scalars,
        engine,
        microcode=host.microcode,
        results=nest.fabric.results,
        length_bytes=result_length(launch.microcode),
        regions=host.memory,
        arguments=host.arguments,
    )


def open_device(
    backend: str,
    *,
    config: AcceleratorConfig | None = None,
    memory: Any = "ideal",
    sink: Any = "ideal",
    engine: EngineName = "auto",
    progress: Callable[[str], None] | None = None,
    **options: Any,
) -> Device:
    """Open a device.

    Parameters
    ----------
    backend : str
        "interpreter": microcode in NumPy, no timing. "verilator": the access unit's Verilog,
        simulated cycle by cycle; the first use of a config on a machine compiles it.
        "board:<name>": a board at a serial port; "board:sim" one that is simulated, with its link;
        "board:" the one that is connected.
    config : AcceleratorConfig, optional
        The access unit; the default config if absent, and a board's own.
    memory : str or memory model
        "ideal" (latency 100 cycles), or an object of `ember_hw.sim.options`.
    sink : str or sink model
        The execute side that drains the queues: "ideal", "core-like", or an object of
        `ember_hw.sim.options`.
    engine : "auto", "c" or "numpy"
        What runs the execute side: generated C, NumPy, or C where there is a compiler. The answer
        is the same, bit for bit.
    progress : callable, optional
        Told in a sentence what a long preparation, such as compiling a model, does next.
    **options
        What the backend's class `Backend` takes besides.

    Raises
    ------
    TypeError
        The backend has no option of that name.
    ValueError
        There is no backend, memory, sink or engine of that name.
    ToolError
        A tool that the backend needs is missing.
    """
    kind, colon, board = backend.partition(":")
    if kind not in BACKENDS or (kind == "board") != bool(colon):
        names = [f"{name}:<name>" if name == "board" else name for name in BACKENDS]
        raise ValueError(f"backend must be one of {', '.join(names)}, not {backend!r}")
    if engine not in ENGINES:
        raise ValueError(f"engine must be one of {', '.join(ENGINES)}, not {engine!r}")
    module = import_module(BACKENDS[kind])
    named = ("config", "memory", "sink", "progress", "board")
    legal = [name for name in inspect.signature(module.Backend).parameters if name not in named]
    for option in options:
        if option not in legal:
            raise TypeError(
                f"option of backend {backend!r} must be {' or '.join(legal) or 'left out'}, "
                f"not {option!r}"
            )
    chosen = config
    if kind == "board":
        options["board"] = board
    elif chosen is None:
        chosen = AcceleratorConfig()
    opened = module.Backend(chosen, memory=memory, sink=sink, progress=progress, **options)
    return Device(backend, opened, engine)
