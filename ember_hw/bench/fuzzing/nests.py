"""Random loop nests, compiled and run as microcode, against the meaning of their source.

A nest that compiles must write what its scf writes, bit for bit but for the bits of a NaN; a nest
that doesn't must be refused with a reason.
"""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ember_hw.bench.fuzzing.random_nests import WRITTEN, nest_arguments, random_nest
from ember_hw.compiler.backend.lower import lower
from ember_hw.compiler.interpreters import interpret
from ember_hw.compiler.interpreters.microcode_function import run_microcode
from ember_hw.compiler.ir_text import parse_module
from ember_hw.compiler.pipeline import OPT_LEVELS
from ember_hw.config import MOST_TRAVERSAL_UNITS, AcceleratorConfig
from ember_hw.errors import AssemblyError, CompileError

#: Room for everything that a nest may need but units, of which there are as many as there can be,
#: and streams: with few, relays are needed.
CONFIGS = tuple(
    AcceleratorConfig(
        name=f"nests{streams}",
        data_width_bits=128,
        traversal_units=MOST_TRAVERSAL_UNITS,
        streams_per_unit=streams,
        row_entries=8,
        exports=16,
        bundle_scalars=8,
    )
    for streams in (4, 2, 1)
)
#: Elements of a row: one, a beat, more than a beat.
COLUMNS = (1, 4, 6)


@dataclass(frozen=True)
class NestFailure:
    """A nest that went wrong: its seed, the opt level and what was wrong."""

    seed: int
    opt_level: int
    reason: str


@dataclass
class NestAccount:
    """
    What came of random nests.

    Attributes
    ----------
    nests, compiled : int
        Nests drawn; those that compiled and agree.
    refused : tally of str
        Reasons of the others.
    failures : list of NestFailure
    """

    nests: int = 0
    compiled: int = 0
    refused: Tally[str] = field(default_factory=Tally[str])
    failures: list[NestFailure] = field(default_factory=list[NestFailure])


def run_nests(
    seeds: Iterable[int], on_nest: Callable[[NestAccount], None] = lambda account: None
) -> NestAccount:
    """Compile and run a nest of each seed, each level in turn, and tell `on_nest` after each."""
    account = NestAccount()
    for seed in seeds:
        opt_level = OPT_LEVELS[seed % len(OPT_LEVELS)]
        account.nests += 1
        try:
            reason = attempt(seed, opt_level)
        except (CompileError, AssemblyError) as error:
            account.refused[reason_of(error)] += 1
        # Any other error is one of the compiler or of a program it made, whatever its kind.
        except Exception as error:
            account.failures.append(
                NestFailure(seed, opt_level, f"{type(error).__name__}: {error}")
            )
        else:
            if reason is None:
                account.compiled += 1
            else:
                account.failures.append(NestFailure(seed, opt_level, reason))
        on_nest(account)
    return account


def attempt(seed: int, opt_level: int) -> str | None:
    """
    Compile and run the nest of a seed. Return what is wrong, or None.

    Raises
    ------
    CompileError, AssemblyError
        The nest is refused.
    """
    columns = COLUMNS[seed % len(COLUMNS)]
    module = parse_module(random_nest(seed))
    expected = nest_arguments(seed, columns)
    interpret(module, "kernel", list(expected.values()))
    config = CONFIGS[seed // 12 % len(CONFIGS)]
    lowered = lower(module, opt_level, config, may_leave_loops=True)
    found: dict[str, Any] = nest_arguments(seed, columns)
    run_microcode(lowered.assemblies, module, "kernel", list(found.values()), found)
    for name in WRITTEN:
        if not np.array_equal(found[name], expected[name], equal_nan=True):
            return f"{name} must be what scf writes, not different in some element"
    return None


def reason_of(error: Exception) -> str:
    """Return why a nest was refused, without the names that differ from nest to nest."""
    text = str(error)
    for word in ("(limit ", " must be "):
        if word in text:
            start = text.index(word)
            return text[start + 1 :].split(")")[0].split(", not ")[0].strip("( ")
    return text
