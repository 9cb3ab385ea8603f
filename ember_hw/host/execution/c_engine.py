"""The engine `c`: execute code as a shared library, called through cffi a batch at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any
from weakref import finalize

from numpy.typing import NDArray

from ember_hw.compiler.program import Callback
from ember_hw.errors import DeviceError
from ember_hw.host.execution.c_compiler import build_library
from ember_hw.host.execution.c_source import CSource, emit_c
from ember_hw.host.execution.checks import CheckedCode
from ember_hw.host.execution.queues import Batch, RowEntry

__all__ = ["CEngine"]


class CEngine:
    """Runs execute code in C.

    Parameters
    ----------
    code : CheckedCode
        The code.
    callbacks : sequence of (Callback, int)
        In the order in which the events of a bundle happen, with the event's bit as a mask.
    entries : sequence of RowEntry
        Row entries in use.
    bundle_scalars : int
        Scalars of a bundle.
    arrays : mapping of str to array
        Memories by symbol; written in place.
    scalars : mapping of str to int
        Index arguments by symbol.

    Raises
    ------
    DeviceError
        A check of the code's entry fails.
    ToolError
        There is no C compiler, or it failed.
    """

    def __init__(
        self,
        code: CheckedCode,
        callbacks: Sequence[tuple[Callback, int]],
        entries: Sequence[RowEntry],
        bundle_scalars: int,
        arrays: Mapping[str, NDArray[Any]],
        scalars: Mapping[str, int],
    ) -> None:
        source = _source(code, callbacks, entries, bundle_scalars)
        self._errors = code.errors
        self._ids = [callback.id for callback, _ in callbacks]
        self._ffi, self._library = _load(source.text, source.declarations)
        self._arrays = dict(arrays)  # they must live as long as the pointers to them
        # Freed by the destructor that `gc` names; the structure itself by cffi.
        owned = self._ffi.new("struct ember_state *")
        self._state = self._ffi.gc(owned, self._library.ember_free)
        self._owned = owned
        for symbol, (pointer, extents) in source.memories.items():
            array = arrays[symbol]
            target = self._ffi.typeof(getattr(self._state, pointer))
            setattr(self._state, pointer, self._ffi.cast(target, array.ctypes.data))
            for extent, size in zip(extents, array.shape, strict=True):
                setattr(self._state, extent, size)
        for symbol, member in source.scalars.items():
            setattr(self._state, member, scalars[symbol])
        self._check(self._library.ember_begin(self._state))

    @property
    def calls(self) -> dict[int, int]:
        """Calls so far, by callback id."""
        return {number: int(self._state.calls[i]) for i, number in enumerate(self._ids)}

    def run(self, batch: Batch) -> None:
        """Run the callbacks of a batch; DeviceError if a check fails."""
        arrays = (
            ("uint32_t", batch.events),
            ("uint32_t", batch.scalars),
            ("uint8_t", batch.beats),
            ("int64_t", batch.starts),
            ("int64_t", batch.sizes),
        )
        pointers = [
            self._ffi.cast(f"const {type_} *", array.ctypes.data) for type_, array in arrays
        ]
        self._check(self._library.ember_run(self._state, len(batch.events), *pointers))

    def finish(self) -> None:
        """Run the code's end."""
        self._check(self._library.ember_end(self._state))

    def _check(self, failed: int) -> None:
        if not failed:
            return
        state = self._state
        if state.check < 0:
            raise MemoryError(f"memory for a kept row of {state.value} elements must be free")
        raise DeviceError(self._errors[int(state.check)](int(state.value), int(state.limit)))


#: What was generated of checked code, by its identity: callbacks, row entries, scalars, C.
_sources: dict[int, list[tuple[Any, ...]]] = {}


def _source(
    code: CheckedCode,
    callbacks: Sequence[tuple[Callback, int]],
    entries: Sequence[RowEntry],
    bundle_scalars: int,
) -> CSource:
    """Return the C of checked code, generated once while that lives."""
    number = id(code)
    if number not in _sources:
        _sources[number] = []
        finalize(code, _sources.pop, number)
    for *rest, source in _sources[number]:
        if rest == [callbacks, entries, bundle_scalars]:
            return source
    source = emit_c(code, callbacks, entries, bundle_scalars)
    _sources[number].append((callbacks, entries, bundle_scalars, source))
    return source


@cache
def _load(text: str, declarations: str) -> tuple[Any, Any]:
    """Return cffi's view of a library, which stays loaded."""
    from cffi import FFI

    ffi = FFI()
    ffi.cdef(declarations)
    return ffi, ffi.dlopen(str(build_library(text)))
