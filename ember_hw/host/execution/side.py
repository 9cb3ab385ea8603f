"""The execute side of one launch: takes what the queues deliver, runs the nest's execute code."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Protocol
from weakref import WeakKeyDictionary

from numpy.typing import NDArray

from ember_hw.compiler.backend.execute_code import ExecuteCode, Pop, Scalar, is_row, row_element
from ember_hw.compiler.backend.execute_operations import FLOATS, HALVES
from ember_hw.compiler.element_dtypes import ELEMENT_DTYPES
from ember_hw.compiler.program import Callback, Nest
from ember_hw.compiler.quantized_rows import FORMATS
from ember_hw.config import AcceleratorConfig
from ember_hw.errors import ProgramError
from ember_hw.host.execution.c_compiler import find_compiler
from ember_hw.host.execution.checks import with_checks
from ember_hw.host.execution.chunk import Chunk
from ember_hw.host.execution.queues import Batch, QueueForm, Queues, RowEntry, row_entries
from ember_hw.isa import Microcode, event_bit, events_in_order

__all__ = ["ENGINES", "ExecuteSide"]

#: `c`: generated C. `numpy`: array calls. `auto`: `c` where a compiler is found, else `numpy`.
ENGINES = ("auto", "c", "numpy")

#: Row dtypes of operands by element type of the row that the code pops.
_ROW_DTYPES = {name: (name,) for name in (*HALVES, *FLOATS, *FORMATS)}
#: Floats that a scalar of a bundle can be.
_SCALAR_FLOATS = (*HALVES, "f32")
_INTEGER_DTYPES = ("index", "i8", "i16", "i32", "i64")


class Engine(Protocol):
    """What runs execute code."""

    @property
    def calls(self) -> dict[int, int]:
        """Calls so far, by callback id."""
        ...

    def run(self, batch: Batch) -> None:
        """Run the callbacks of a batch."""
        ...

    def finish(self) -> None:
        """Run the code's end."""
        ...


class ExecuteSide:
    """Runs the execute code of one launch.

    Parameters
    ----------
    nest : Nest
        Its callbacks and code.
    arrays : mapping of str to array
        Every memory that the code reads or writes, by symbol; C-contiguous, written in place.
    scalars : mapping of str to int
        The index arguments that the code reads, by symbol.
    engine : "auto", "c" or "numpy"
        What runs the code. Results, counts and errors are the same, bit for bit.
    microcode : Microcode, optional
        Bound: tells which rows come with which events. By default the nest's, if nothing in it has
        to be bound.
    entries : list of RowEntry, optional
        Which rows come, where it isn't those of the microcode.

    Attributes
    ----------
    engine : str
        "c" or "numpy": what runs.

    Raises
    ------
    ProgramError
        The nest has no code; its callbacks, its code and the microcode don't fit together; or an
        array or a scalar is missing or of another kind than the code's.
    ValueError
        There is no such engine.
    DeviceError
        The code's entry reads outside an array.
    ToolError
        Engine "c" has no compiler.
    """

    def __init__(
        self,
        nest: Nest,
        arrays: Mapping[str, NDArray[Any]],
        scalars: Mapping[str, int],
        engine: Literal["auto", "c", "numpy"] = "auto",
        *,
        microcode: Microcode | None = None,
        entries: list[RowEntry] | None = None,
    ) -> None:
        if engine not in ENGINES:
            raise ValueError(f"engine must be one of {', '.join(ENGINES)}, not {engine!r}")
        microcode = microcode or nest.microcode
        config = microcode.config
        if nest.code is None:
            raise ProgramError(f"nest {nest.name!r} must have execute code to be run, and has none")
        plan = _plan_of(nest, nest.code, config)
        entries = plan.entries(microcode) if entries is None else entries
        plan.check(microcode, entries)
        plan.check_arguments(arrays, scalars)
        self._queues = plan.queues(config, entries)
        if engine == "auto":
            engine = "numpy" if find_compiler() is None else "c"
        self.engine = engine
        parts = (plan.code, plan.callbacks, entries, config.bundle_scalars, arrays, scalars)
        self._engine: Engine
        if engine == "c":
            from ember_hw.host.execution.c_engine import CEngine

            self._engine = CEngine(*parts)
        else:
            from ember_hw.host.execution.numpy_engine import NumpyEngine

            self._engine = NumpyEngine(*parts)

    @property
    def bundles(self) -> int:
        """Bundles run so far."""
        return self._queues.bundles

    @property
    def rows(self) -> int:
        """Rows that these bundles had."""
        return self._queues.rows

    @property
    def row_beats(self) -> int:
        """Beats of these rows."""
        return self._queues.row_beats

    @property
    def row_bytes(self) -> int:
        """Bytes of these rows; of those whose length isn't known, of all their beats."""
        return self._queues.row_bytes

    @property
    def calls(self) -> dict[int, int]:
        """Calls so far, by callback id."""
        return dict(sorted(self._engine.calls.items()))

    def consume(self, chunk: Chunk) -> None:
        """Run all bundles whose rows have arrived; keep the rest for the next chunk.

        Raises
        ------
        DeviceError
            The queues don't hold what the microcode pushes, or the code reads or writes outside an
            array or a row. What the arrays hold is void then.
        """
        batch = self._queues.take(chunk)
        if batch is not None:
            self._engine.run(batch)

    def finish(self) -> None:
        """Run the code's end, after the last chunk.

        Raises
        ------
        DeviceError
            The program didn't end, a queue isn't empty, or as for `consume`.
        """
        self._queues.finish()
        self._engine.finish()


class _Plan:
    """What the execute side of a nest is, whatever the launch."""

    def __init__(self, nest: Nest, code: ExecuteCode, config: AcceleratorConfig) -> None:
        order = events_in_order(config.traversal_units)
        self.callbacks = [
            (callback, 1 << event_bit(callback.event, callback.level, config))
            for callback in sorted(nest.callbacks, key=lambda c: order.index((c.event, c.level)))
        ]
        self.code = with_checks(code)
        self._memories = [(memory, ELEMENT_DTYPES[memory.element]) for memory in code.memories]
        self._scalars = [s.symbol for s in code.entry if isinstance(s, Scalar)]
        self._unchecked = nest.callbacks
        self._checked: tuple[int, list[RowEntry]] | None = None
        self._latest: tuple[Microcode, list[RowEntry]] | None = None
        self._form: tuple[list[RowEntry], QueueForm] | None = None

    def entries(self, microcode: Microcode) -> list[RowEntry]:
        """Return the row entries of a launch; those of the latest one are known."""
        if self._latest is None or self._latest[0] is not microcode:
            self._latest = microcode, row_entries(microcode)
        return self._latest[1]

    def queues(self, config: AcceleratorConfig, entries: list[RowEntry]) -> Queues:
        """Return queues of these entries; what the latest ones were made of is known."""
        if self._form is None or self._form[0] is not entries:
            self._form = entries, QueueForm(config, entries)
        return Queues(self._form[1])

    def check(self, microcode: Microcode, entries: list[RowEntry]) -> None:
        """Refuse callbacks that don't fit the microcode; what was checked last is known to fit."""
        key = microcode.get("issue", "events"), entries
        if self._checked == key:
            return
        for callback in self._unchecked:
            _check_callback(callback, self.code.code, microcode, entries)
        self._checked = key

    def check_arguments(
        self, arrays: Mapping[str, NDArray[Any]], scalars: Mapping[str, int]
    ) -> None:
        """Refuse arrays and scalars that aren't the code's."""
        for memory, dtype in self._memories:
            array = arrays.get(memory.symbol)
            if array is None:
                raise ProgramError(
                    f"arrays of the execute side must hold {memory.symbol!r}, "
                    f"not only {', '.join(arrays) or 'nothing'}"
                )
            if array.dtype != dtype or array.ndim != memory.rank or not array.flags.c_contiguous:
                raise ProgramError(
                    f"array {memory.symbol!r} must be C-contiguous, of {dtype} and of rank "
                    f"{memory.rank}, not of {array.dtype} and shape {array.shape}"
                )
            if memory.is_written and not array.flags.writeable:
                raise ProgramError(f"array {memory.symbol!r} must be writeable, and isn't")
        for symbol in self._scalars:
            if symbol not in scalars:
                raise ProgramError(
                    f"scalars of the execute side must hold {symbol!r}, "
                    f"not only {', '.join(scalars) or 'nothing'}"
                )


_plans: WeakKeyDictionary[Nest, _Plan] = WeakKeyDictionary()


def _plan_of(nest: Nest, code: ExecuteCode, config: AcceleratorConfig) -> _Plan:
    """Return the plan of a nest, made at its first launch."""
    plan = _plans.get(nest)
    if plan is None:
        plan = _plans[nest] = _Plan(nest, code, config)
    return plan


def _check_callback(
    callback: Callback, code: ExecuteCode, microcode: Microcode, entries: list[RowEntry]
) -> None:
    """Refuse a callback that doesn't fit its case or the microcode."""
    mask = 1 << event_bit(callback.event, callback.level, microcode.config)
    if not microcode.get("issue", "events") & mask:
        raise ProgramError(
            f"event of callback {callback.id} must be one that the microcode issues, "
            f"not {callback.event.name.lower()} of level {callback.level}"
        )
    pops = [s for s in code.case(callback.id).body if isinstance(s, Pop)]
    if len(pops) != len(callback.operands):
        raise ProgramError(
            f"operands of callback {callback.id} must be as many as its case pops, {len(pops)}, "
            f"not {len(callback.operands)}"
        )
    for number, (operand, pop) in enumerate(zip(callback.operands, pops, strict=True)):
        kind = "row" if is_row(pop.type) else "scalar"
        if is_row(pop.type):
            legal = _ROW_DTYPES.get(row_element(pop.type), ())
        else:
            legal = (pop.type,) if pop.type in _SCALAR_FLOATS else _INTEGER_DTYPES
        if operand.kind != kind or operand.dtype not in legal:
            raise ProgramError(
                f"operand {number} of callback {callback.id} must be a {kind} of dtype "
                f"{' or '.join(legal)}, not a {operand.kind} of {operand.dtype}"
            )
        has_row = any(e.index == operand.index and e.events & mask for e in entries)
        if kind == "row" and not has_row:
            raise ProgramError(
                f"operand {number} of callback {callback.id} must be a row that comes with its "
                f"event, not row{operand.index}"
            )
