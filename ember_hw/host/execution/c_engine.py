"""The engine `c`: execute code as a shared library, called through cffi a batch at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any
from weakref import finalize

import numpy as np
from numpy.typing import NDArray

from ember_hw.compiler.element_dtypes import BFLOAT16
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
        self._library = library = _library(code, callbacks, entries, bundle_scalars)
        self._errors = code.errors
        self._ids = [callback.id for callback, _ in callbacks]
        self._arrays = dict(arrays)  # they must live as long as the pointers to them
        # Freed by the destructor that `gc` names; the structure itself by cffi.
        owned = library.ffi.new("struct ember_state *")
        self._state = library.ffi.gc(owned, library.free)
        self._owned = owned
        for symbol, (member, type_, extents) in library.memories.items():
            array = arrays[symbol]
            setattr(owned, member, library.pointer(type_, array))
            for extent, size in zip(extents, array.shape, strict=True):
                setattr(owned, extent, size)
        for symbol, member in library.scalars.items():
            setattr(owned, member, scalars[symbol])
        self._check(library.begin(owned))

    @property
    def calls(self) -> dict[int, int]:
        """Calls so far, by callback id."""
        return dict(zip(self._ids, self._owned.calls, strict=False))  # it has 1 at least

    def run(self, batch: Batch) -> None:
        """Run the callbacks of a batch; DeviceError if a check fails."""
        library = self._library
        arrays = (batch.events, batch.scalars, batch.beats, batch.starts, batch.sizes)
        pointers = map(library.pointer, library.batch_types, arrays)
        self._check(library.run(self._owned, len(batch.events), *pointers))

    def finish(self) -> None:
        """Run the code's end."""
        self._check(self._library.end(self._owned))

    def _check(self, failed: int) -> None:
        if not failed:
            return
        state = self._owned
        if state.check < 0:
            raise MemoryError(f"memory for a kept row of {state.value} elements must be free")
        raise DeviceError(self._errors[int(state.check)](int(state.value), int(state.limit)))


class _Library:
    """Generated C, compiled and loaded.

    Attributes
    ----------
    ffi : FFI
        cffi's view of it.
    begin, run, end, free : callable
        Its functions.
    memories : dict of str to (str, ctype, tuple of str)
        By symbol: member of the structure that points to it, its type, and those of the extents.
    scalars : dict of str to str
        By symbol: member that holds it.
    batch_types : tuple of ctype
        Of the arrays that `run` takes.
    """

    def __init__(self, source: CSource) -> None:
        self.ffi, library = _load(source.text, source.declarations)
        self.begin, self.run = library.ember_begin, library.ember_run
        self.end, self.free = library.ember_end, library.ember_free
        fields = dict(self.ffi.typeof("struct ember_state").fields)
        self.memories = {
            symbol: (member, fields[member].type, extents)
            for symbol, (member, extents) in source.memories.items()
        }
        self.scalars = source.scalars
        names = ("uint32_t *", "uint32_t *", "uint8_t *", "int64_t *", "int64_t *")
        self.batch_types = tuple(self.ffi.typeof(name) for name in names)

    def pointer(self, type_: Any, array: NDArray[Any]) -> Any:
        """Return a pointer to an array, which must live as long as that is used."""
        if array.dtype == BFLOAT16:  # no buffer to Python
            array = array.view(np.uint16)
        return self.ffi.from_buffer(type_, array)


#: What was made of checked code, by its identity: callbacks, row entries, scalars, library.
_libraries: dict[int, list[tuple[Any, ...]]] = {}


def _library(
    code: CheckedCode,
    callbacks: Sequence[tuple[Callback, int]],
    entries: Sequence[RowEntry],
    bundle_scalars: int,
) -> _Library:
    """Return the C of checked code, generated and loaded once while that lives."""
    number = id(code)
    if number not in _libraries:
        _libraries[number] = []
        finalize(code, _libraries.pop, number)
    for *rest, library in _libraries[number]:
        if rest == [callbacks, entries, bundle_scalars]:
            return library
    library = _Library(emit_c(code, callbacks, entries, bundle_scalars))
    _libraries[number].append((callbacks, entries, bundle_scalars, library))
    return library


@cache
def _load(text: str, declarations: str) -> tuple[Any, Any]:
    """Return cffi's view of a library, which stays loaded."""
    from cffi import FFI

    ffi = FFI()
    ffi.cdef(declarations)
    return ffi, ffi.dlopen(str(build_library(text)))
