"""What the shell offers for the values of options, each from where it is defined."""

from __future__ import annotations

from collections.abc import Callable, Iterable

Complete = Callable[[str], list[str]]


def _offer(names: Callable[[], Iterable[str]]) -> Complete:
    """Return a completion by those names that begin as the word does; imports nothing before."""

    def complete(incomplete: str) -> list[str]:
        return [name for name in names() if name.startswith(incomplete)]

    return complete


def _presets() -> Iterable[str]:
    from ember_hw.config import PRESETS

    return PRESETS


def _memories() -> Iterable[str]:
    from ember_hw.sim.options import MEMORIES

    return MEMORIES


def _sinks() -> Iterable[str]:
    from ember_hw.host.backends import SINKS

    return SINKS


def _backends() -> Iterable[str]:
    from ember_hw.host.device import BACKENDS

    return (f"{name}:" if name == "board" else name for name in BACKENDS)


def _suites() -> Iterable[str]:
    from ember_hw.bench.registry import all_suites

    return all_suites()


presets = _offer(_presets)
memories = _offer(_memories)
sinks = _offer(_sinks)
backends = _offer(_backends)
suites = _offer(_suites)
windows = _offer(lambda: ("cycles", "lookups"))
