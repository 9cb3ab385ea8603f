"""A traversal unit of the microcode interpreter, with its streams and its ALU."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ember_hw.compiler.interpreters.microcode_lines import LineQueue, Loaded
from ember_hw.compiler.interpreters.microcode_memory import Memory
from ember_hw.compiler.interpreters.microcode_plan import UnitPlan, events_of
from ember_hw.compiler.interpreters.microcode_tokens import FirstFault, Tokens
from ember_hw.config import LINE_BYTES, AcceleratorConfig
from ember_hw.errors import DeviceError
from ember_hw.isa import (
    AluOperation,
    BoundSource,
    Event,
    Source,
)
from ember_hw.registers import NO_UNIT, FaultCode

_INT32 = np.iinfo(np.int32)
_LOW_WORD = (1 << 32) - 1
#: Most tokens of the outermost unit that are kept for the next run of the same requests.
_HELD_TOKENS = 1 << 10
# As arrays: NumPy takes longer for a scalar.
_ZERO, _ONE = np.zeros(1, np.int64), np.ones(1, np.int64)
_NO_VALUES = np.zeros(0, np.int32)
_NO_ELEMENTS = np.zeros(0, np.int64)
_NO_LINES = np.zeros((0, LINE_BYTES), np.uint8)


@dataclass
class _Iterations:
    """Tokens of a unit before it loads anything: N of them, in order.

    Attributes
    ----------
    parent : int (N,)
        Number of each one's token of the unit above.
    events : uint32 (N,)
    iterates : bool (N,)
    induction : int32 (N,)
    live : int (M,), optional
        Numbers of the tokens that are iterations; None if all are.
    elements : dict of (int, bool) to int64 (M,)
        Elements that streams load which depend on nothing else, as far as they are known: by
        stream, and whether it loads ahead.
    """

    parent: NDArray[np.intp]
    events: NDArray[np.uint32]
    iterates: NDArray[np.bool_]
    induction: NDArray[np.int32]
    live: NDArray[np.intp] | None
    elements: dict[tuple[int, bool], NDArray[np.int64]] = field(
        default_factory=dict[tuple[int, bool], "NDArray[np.int64]"]
    )


@dataclass
class _Live:
    """What a unit's streams and ALU read of its iterations: N of them, in order.

    Attributes
    ----------
    induction : int32 (N,)
    inherited : list of int32 (N,)
    tokens : int (N,), optional
        Number of each one's token; None if they are 0, 1, ..
    requests : int64 (N,), optional
        Number of each one's request, where a stream is fed by the input queue.
    elements
        Those of `_Iterations`.
    """

    induction: NDArray[np.int32]
    inherited: list[NDArray[np.int32]]
    tokens: NDArray[np.intp] | None
    requests: NDArray[np.int64] | None
    elements: dict[tuple[int, bool], NDArray[np.int64]]


class Unit:
    """Turns the tokens of the unit above into its own.

    Parameters
    ----------
    plan : UnitPlan
    config : AcceleratorConfig
    memory : Memory
    chunk_tokens : int
        Tokens worked on at a time.
    """

    def __init__(
        self, plan: UnitPlan, config: AcceleratorConfig, memory: Memory, chunk_tokens: int
    ) -> None:
        self.plan, self.memory, self.chunk = plan, memory, chunk_tokens
        self.level, self.record, self.streams = plan.level, plan.record, plan.streams
        self.address_width_bits = config.address_width_bits
        self.request_begins = events_of(0, config)[0][Event.BEGIN]
        # As arrays: NumPy takes longer for a scalar.
        self.begin, self.iterate, self.end = (np.array([event]) for event in plan.own)
        self.rides_first, self.rides_last = (
            np.array([plan.rides_first]),
            np.array([plan.rides_last]),
        )
        self.requests = 0
        self.queues: dict[int, LineQueue] = {}
        self.windows = [
            self._window(s) if stream["enable"] else None for s, stream in enumerate(self.streams)
        ]
        self.latest: tuple[Tokens, list[_Iterations]] | None = None

    def _window(self, number: int) -> NDArray[Any] | None:
        """Return the elements of a stream as an array, None unless all of them can be read."""
        get = self.streams[number]
        if number in self.plan.fed:
            return None
        end = get["base"] + (get["elements"] << get["size"])
        if end > 1 << self.address_width_bits:
            return None
        return self.memory.elements(get["base"], get["elements"], get["size"], bool(get["signed"]))

    def run(
        self, batches: Iterator[Tokens], lines: Mapping[tuple[int, int], NDArray[np.uint8]]
    ) -> Iterator[Tokens]:
        """Turn tokens of the unit above into tokens of this one; raise at the first fault.

        `lines` is what the input queue brings by unit and stream, uint8 (N, 64).
        """
        self.requests = 0
        self.queues = {s: LineQueue(lines.get((self.level, s), _NO_LINES)) for s in self.plan.fed}
        for parents in batches:
            for iterations in self._iterations(parents):
                tokens, error = self._tokens(parents, iterations)
                yield tokens
                if error is not None:
                    raise error

    def _iterations(self, parents: Tokens) -> Iterable[_Iterations]:
        """Return the tokens that a unit makes of those of the unit above.

        Those of the outermost unit depend on nothing but its requests.
        """
        if self.level:
            return self._made(parents)
        if self.latest is not None and self.latest[0] is parents:
            return self.latest[1]
        tokens = int(np.maximum(self._trips(parents)[1], _ONE).sum())
        if tokens > min(_HELD_TOKENS, self.chunk):
            return self._made(parents)
        self.latest = parents, list(self._made(parents))
        return self.latest[1]

    def _made(self, parents: Tokens) -> Iterator[_Iterations]:
        lower, trips = self._trips(parents)
        children = np.maximum(trips, _ONE)
        if not len(children):  # the unit above stopped at its first token, or has no request
            return
        first = (parents.events & self.rides_first) | (parents.iterates * self.begin)
        last = (parents.events & self.rides_last) | (parents.iterates * self.end)
        step = self.record["step"]
        for parent, ordinal, firsts, lasts in self._batches(children):
            is_whole = len(firsts) == len(lasts) == len(children)
            iterates = (trips > _ZERO)[parent]
            events = iterates * self.iterate
            events[firsts] |= first if is_whole else first[parent[firsts]]
            events[lasts] |= last if is_whole else last[parent[lasts]]
            induction = ordinal if step == 1 else ordinal * step
            induction = induction + (lower if isinstance(lower, int) else lower[parent])
            live = iterates.nonzero()[0]
            yield _Iterations(
                parent,
                events,
                iterates,
                induction.astype(np.int32),
                None if len(live) == len(parent) else live,
            )

    def _batches(self, children: NDArray[np.int64]) -> Iterator[tuple[NDArray[np.int64], ...]]:
        """Yield batches of tokens, so many of each parent.

        Of each token its parent and its number there; of the batch the places of first and last
        tokens of a parent.
        """
        ends = children.cumsum()
        total = int(ends[-1])
        if total <= self.chunk:
            parent = np.arange(len(children)).repeat(children)
            firsts = ends - children
            ordinal = np.arange(total)
            if len(children) > 1:
                ordinal -= firsts[parent]
            yield parent, ordinal, firsts, ends - _ONE
            return
        for start in range(0, total, self.chunk):
            stop = min(start + self.chunk, total)
            first = int(np.searchsorted(ends, start, side="right"))
            last = int(np.searchsorted(ends, stop - 1, side="right"))
            counts = children[first : last + 1].copy()
            counts[0] = ends[first] - start
            counts[-1] -= ends[last] - stop
            parent = np.repeat(np.arange(first, last + 1), counts)
            ordinal = np.arange(start, stop) - (ends - children)[parent]
            is_last = ordinal == (children - 1)[parent]
            yield parent, ordinal, (ordinal == 0).nonzero()[0], is_last.nonzero()[0]

    def _trips(self, parents: Tokens) -> tuple[NDArray[np.int64] | int, NDArray[np.int64]]:
        """Return where the unit begins at each token of the unit above, and its iterations."""
        get, inherited = self.record, parents.values
        lower: NDArray[np.int64] | int = get["lower_immediate"]
        if get["lower_source"] == Source.SLOT:
            lower = inherited[get["lower_export"]].astype(np.int64)
        upper: NDArray[np.int64] | int = get["upper_immediate"]
        if get["upper_source"] == BoundSource.SLOT:
            upper = inherited[get["upper_export"]].astype(np.int64)
        elif get["upper_source"] == BoundSource.LOWER_PLUS:
            upper = lower + upper
        extent, step = upper - lower, get["step"]
        if step > 1:
            extent = (extent + (step - 1)) // step
        return lower, np.maximum(extent, _ZERO) * parents.iterates

    def _tokens(
        self, parents: Tokens, iterations: _Iterations
    ) -> tuple[Tokens, DeviceError | None]:
        """Return the tokens before the first fault, and the fault."""
        plan, parent, events = self.plan, iterations.parent, iterations.events
        requests = None
        if self.queues:
            requests = self.requests + np.cumsum((events & self.request_begins) != 0)
            self.requests = int(requests[-1])
        inherited = [
            value[parent] if number in plan.inherited else _NO_VALUES
            for number, value in enumerate(parents.values)
        ]
        first_fault = FirstFault(len(parent))
        tokens = iterations.live
        if tokens is None:
            live = _Live(iterations.induction, inherited, None, requests, iterations.elements)
            own = self._values(live, first_fault)
        else:
            here = [value[tokens] if len(value) else value for value in inherited]
            of_live = None if requests is None else requests[tokens]
            induction = iterations.induction[tokens]
            live = _Live(induction, here, tokens, of_live, iterations.elements)
            own = [np.zeros(len(parent), np.int32) for _ in range(len(self.streams) + 2)]
            for spread, value in zip(own, self._values(live, first_fault), strict=True):
                spread[tokens] = value
        exports = [
            own[choice - 1] if choice else kept
            for choice, kept in zip(plan.exports, inherited, strict=True)
        ]
        made = Tokens(events, iterations.iterates, exports)
        if first_fault.error is None:
            return made, None
        return made.first(first_fault.token), first_fault.error

    def _values(self, live: _Live, first_fault: FirstFault) -> list[NDArray[np.int32]]:
        """Return the unit's own values: induction value, streams, ALU."""
        streams = range(len(self.streams))
        elements = [self._elements(s, live) for s in streams]
        following = self._elements(0, live, ahead=True) if self.record["pair"] else None
        nothing = np.zeros(len(live.induction), np.int32)

        own = [live.induction]
        next_popped = None
        for s in streams:
            popped = None
            if s in self.queues:
                popped, next_popped_here = self._pop(s, live, elements[s], following)
                next_popped = next_popped_here if s == 0 else next_popped
            if self.streams[s]["enable"]:
                own.append(self._load(s, live, elements[s], popped, first_fault))
            else:
                own.append(nothing)
        if following is None:
            return [*own, self._compute(own, live.inherited) if self.plan.computes else nothing]
        return [*own, self._load(0, live, following, next_popped, first_fault)]

    def _elements(self, number: int, live: _Live, *, ahead: bool = False) -> NDArray[np.int64]:
        """Return the element number of each load of a stream, or of the loads one step ahead."""
        get = self.streams[number]
        if not get["enable"]:
            return _NO_ELEMENTS
        elements = live.elements.get((number, ahead))
        if elements is None:
            first = get["first"]
            if get["induction"]:
                induction = live.induction
                if ahead:
                    induction = induction + np.int32(self.record["step"])
                elements = induction.astype(np.int64)
                if first:
                    elements += first
            else:
                elements = np.full(len(live.induction), first, np.int64)
            live.elements[number, ahead] = elements
        if get["outer_enable"]:
            outer = live.inherited[get["outer_export"]].astype(np.int64)
            return elements + outer * get["outer_pitch"]
        return elements

    def _pop(
        self,
        number: int,
        live: _Live,
        elements: NDArray[np.int64],
        following: NDArray[np.int64] | None,
    ) -> tuple[Loaded, Loaded | None]:
        """Read the input queue; where stream 0 loads ahead, the loads alternate."""
        assert live.requests is not None
        get, queue = self.streams[number], self.queues[number]
        size_log2, is_signed = get["size"], bool(get["signed"])
        if number or following is None:
            return queue.load(elements, live.requests, size_log2, is_signed), None
        both = np.stack([elements, following], axis=1).reshape(-1)
        loaded = queue.load(both, np.repeat(live.requests, 2), size_log2, is_signed)
        now, ahead = slice(0, None, 2), slice(1, None, 2)
        return (
            Loaded(loaded.values[now], loaded.missing[now]),
            Loaded(loaded.values[ahead], loaded.missing[ahead]),
        )

    def _load(
        self,
        number: int,
        live: _Live,
        elements: NDArray[np.int64],
        popped: Loaded | None,
        first_fault: FirstFault,
    ) -> NDArray[np.int32]:
        """Return a stream's values: what was popped, or else what memory holds."""
        if (window := self.windows[number]) is not None:
            values = _values_in(window, elements)
            if values is not None:
                return values
        get, size_log2 = self.streams[number], self.streams[number]["size"]
        is_outside = (elements < 0) | (elements >= get["elements"])
        where = (self.level, number)
        tokens = np.arange(len(elements)) if live.tokens is None else live.tokens

        def note(code: FaultCode, is_bad: NDArray[np.bool_], what: NDArray[np.int64]) -> None:
            first_fault.note(code, *where, is_bad & ~is_outside, tokens, what)

        outside = FaultCode.STREAM_OUT_OF_BOUNDS
        first_fault.note(outside, *where, is_outside, tokens, elements & _LOW_WORD)
        addresses = get["base"] + (elements << size_log2)
        overflows = addresses >> self.address_width_bits != 0
        note(FaultCode.ADDRESS_OVERFLOW, overflows, elements)
        if popped is None:
            unmapped = self.memory.find(addresses, 1 << size_log2) < 0
            note(FaultCode.READ_DECODE_ERROR, unmapped & ~overflows, addresses)
            loaded = self.memory.load(addresses, size_log2, bool(get["signed"]))
        else:
            loaded = popped.values
            nowhere = np.zeros(len(loaded), np.int64)
            missing = popped.missing & ~is_outside
            first_fault.note(FaultCode.MEMORY_STALLED, NO_UNIT, 0, missing, tokens, nowhere)
        is_wide = (loaded < _INT32.min) | (loaded > _INT32.max)
        note(FaultCode.VALUE_TOO_WIDE, is_wide, loaded & _LOW_WORD)
        return loaded.astype(np.int32)

    def _compute(
        self, own: list[NDArray[np.int32]], inherited: list[NDArray[np.int32]]
    ) -> NDArray[np.int32]:
        get = self.record
        a = own[get["alu_a_slot"]]
        b = [*own, *inherited][get["alu_b_slot"]]
        if get["alu_b_source"] == Source.IMMEDIATE:
            b = np.full(a.shape, get["alu_immediate"], np.int32)
        match AluOperation(get["alu_operation"]):
            case AluOperation.ADD:
                return a + b
            case AluOperation.SUB:
                return a - b
            case AluOperation.MUL:
                return a * b
            case AluOperation.RSUB:
                return b - a


def _values_in(window: NDArray[Any], elements: NDArray[np.int64]) -> NDArray[np.int32] | None:
    """Return the elements of a stream as values, None if one is outside or too wide."""
    if not len(elements):
        return np.zeros(0, np.int32)
    # As unsigned numbers, negative ones lie beyond all windows.
    if np.maximum.reduce(elements.view(np.uint64)) >= len(window):
        return None
    loaded = window[elements]
    values = loaded.astype(np.int32)
    if loaded.itemsize > _INT32.dtype.itemsize and (values != loaded).any():
        return None
    return values
