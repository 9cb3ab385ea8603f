"""Makes a failing case small: ideal surroundings, fewer requests, fields that are 0."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from ember_hw.bench.fuzzing.case import Case, Environment
from ember_hw.compiler.backend.check_microcode import check_microcode
from ember_hw.compiler.interpreters.scalar_values import TooLongError, UndefinedError
from ember_hw.errors import AssemblyError, ProgramError


def shrink(case: Case, fails: Callable[[Case], bool], *, most_tries: int = 400) -> Case:
    """Return a case that still fails, and of which no part can be left out alone.

    Parameters
    ----------
    case : Case
        It fails.
    fails : callable
        Whether another one does.
    most_tries : int
        Calls of it, after which the smallest case so far is returned.
    """
    tries = 0
    is_smaller = True
    while is_smaller:
        is_smaller = False
        for make in list(_smaller(case)):
            try:
                candidate = make(case)
            except AssemblyError:  # a field without a legal 0
                continue
            if candidate == case or not _is_defined(candidate):
                continue
            tries += 1
            if fails(candidate):
                case, is_smaller = candidate, True
            if tries == most_tries:
                return case
    return case


def _is_defined(case: Case) -> bool:
    """Tell whether a case means something; hardware need not agree on others."""
    try:
        _ = case.whole
        enabled = [case.microcode.get(f"unit{k}", "enable") for k in _units(case)]
        if enabled == sorted(enabled, reverse=True) and enabled[0]:
            check_microcode(case.microcode)
    except (TooLongError, UndefinedError, ProgramError):
        return False
    return True


def _units(case: Case) -> range:
    return range(case.config.traversal_units)


def _smaller(case: Case) -> Iterator[Callable[[Case], Case]]:
    """Yield what could make a case smaller; each is applied to what the ones before left."""
    plain = Environment()
    kept = case.environment
    yield lambda case: replace(
        case, errors=(), environment=replace(case.environment, memory=plain.memory)
    )
    yield lambda case: replace(case, environment=replace(case.environment, sink=plain.sink))
    if kept.abort_after_polls is None and kept.reset_after_polls is None:
        yield lambda case: replace(case, environment=plain)
    for number in reversed(range(1, len(case.requests))):
        yield lambda case, n=number: replace(case, requests=case.requests[:n])
    yield lambda case: replace(case, requests=case.requests[-1:])
    for path in reversed([*case.microcode.records]):
        if path != "header":
            yield lambda case, p=path: _without_record(case, p)
    for path, fields in case.microcode.records.items():
        for name, value in fields.items():
            if not value or name in ("version", "enable"):
                continue
            for less in (0, 1, value // 2):
                yield lambda case, p=path, n=name, v=less: _with_field(case, p, n, v)
    for base, _ in case.regions:
        yield lambda case, b=base: replace(
            case, regions=tuple(region for region in case.regions if region[0] != b)
        )


def _without_record(case: Case, path: str) -> Case:
    changes = {(path, name): 0 for name in case.microcode.records[path]}
    return replace(case, microcode=case.microcode.with_fields(changes))


def _with_field(case: Case, path: str, name: str, value: int) -> Case:
    if abs(case.microcode.get(path, name)) <= abs(value):
        return case
    return replace(case, microcode=case.microcode.with_field(path, name, value))
