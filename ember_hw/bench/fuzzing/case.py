"""A case: a program, its memory and requests, and what surrounds the access unit as it runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ember_hw.compiler.interpreters.scalar_microcode import Scalar
from ember_hw.compiler.interpreters.scalar_values import Fault, Response, Stopped
from ember_hw.config import AcceleratorConfig
from ember_hw.isa import Microcode, disassemble
from ember_hw.sim.options import IdealMemory, IdealSink, Memory, Sink

#: Leaf tokens that no case exceeds.
MOST_TOKENS = 4000


@dataclass(frozen=True, kw_only=True)
class Environment:
    """What surrounds the access unit.

    Attributes
    ----------
    memory, sink
        Options of the simulator.
    watchdog_cycles : int
        What WATCHDOG is set to.
    abort_after_polls, reset_after_polls : int, optional
        Register accesses after the last start, then the host aborts, or resets all.
    may_stall : bool
        The sink or the memory may stop for longer than the watchdog waits.
    """

    memory: Memory = field(default_factory=IdealMemory)
    sink: Sink = field(default_factory=IdealSink)
    watchdog_cycles: int = 20_000
    abort_after_polls: int | None = None
    reset_after_polls: int | None = None
    may_stall: bool = False

    @property
    def is_interrupted(self) -> bool:
        """Whether the end depends on time, not on the program alone."""
        polls = (self.abort_after_polls, self.reset_after_polls)
        return self.may_stall or polls != (None, None)


@dataclass(frozen=True, kw_only=True)
class Case:
    """A program and all it needs.

    Attributes
    ----------
    seed : int
        What it was made from.
    kind : str
        ``legal``, or the fault that was put in (and may not be met).
    microcode : Microcode
    regions : tuple of (int, uint8 array)
        Memory: base addresses and contents, multiples of 64 bytes.
    requests : tuple of tuples of int
        Arguments.
    lines : mapping of (unit, stream) to tuple of bytes
        What the input queue brings.
    errors : tuple of Response
        Where memory answers with an error.
    environment : Environment
    """

    seed: int
    kind: str
    microcode: Microcode
    regions: tuple[tuple[int, NDArray[np.uint8]], ...]
    requests: tuple[tuple[int, ...], ...]
    lines: Mapping[tuple[int, int], tuple[bytes, ...]] = field(
        default_factory=dict[tuple[int, int], tuple[bytes, ...]]
    )
    errors: tuple[Response, ...] = ()
    environment: Environment = field(default_factory=Environment)

    @property
    def config(self) -> AcceleratorConfig:
        """What it runs on."""
        return self.microcode.config

    @cached_property
    def whole(self) -> Scalar:
        """The run of all that does not depend on a fault.

        Raises
        ------
        UndefinedError, TooLongError
            The program means nothing, or too much.
        """
        scalar = self._scalar(collect=True)
        scalar.run()
        return scalar

    @cached_property
    def first(self) -> tuple[Scalar, Fault | None]:
        """The run up to the first fault in the order of the program, and that fault."""
        if not self.whole.faults:
            return self.whole, None
        scalar = self._scalar(collect=False)
        try:
            scalar.run()
        except Stopped as stopped:
            return scalar, stopped.fault
        raise AssertionError("a fault that is collected must stop a run")

    def within(self, environment: Environment) -> Case:
        """Return the same case in other surroundings; what is known of its run stays known."""
        other = replace(self, environment=environment)
        for name in ("whole", "first"):
            if name in self.__dict__:
                other.__dict__[name] = self.__dict__[name]
        return other

    def named_spans(self) -> list[tuple[int, int]]:
        """Return base and bytes of every region that the program names."""
        spans: list[tuple[int, int]] = []
        for path, record in self.microcode.records.items():
            if "stream" in path and record["enable"]:
                spans.append((record["base"], record["elements"] << record["size"]))
            elif path.startswith("row") and record["events"]:
                spans.append((record["base"], record["region_bytes"]))
        return spans

    def _scalar(self, *, collect: bool) -> Scalar:
        return Scalar(
            self.microcode,
            [(base, content.tobytes()) for base, content in self.regions],
            requests=self.requests,
            lines=self.lines,
            errors=self.errors,
            collect=collect,
            most_tokens=MOST_TOKENS,
        )

    def describe(self) -> str:
        """Return all but the contents of memory, as text."""
        regions = ", ".join(f"{base:#x}+{len(content):#x}" for base, content in self.regions)
        feeds = {f"unit{u}.stream{s}": len(lines) for (u, s), lines in self.lines.items()}
        return (
            f"config {self.config.name}, seed {self.seed}, {self.kind}\n"
            f"{disassemble(self.microcode)}"
            f"requests: {list(self.requests)}\n"
            f"regions: {regions}\n"
            f"lines of the input queue: {feeds}\n"
            f"errors: {list(self.errors)}\n"
            f"{self.environment}"
        )
