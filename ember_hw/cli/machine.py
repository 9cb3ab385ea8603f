"""What surrounds the simulated access unit, as the command line's options name it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ember_hw.sim.options import IdealMemory, Trace

#: Length of a window without an end, by what it counts.
DEFAULT_WINDOW = {"cycles": 1_000, "lookups": 10}


def choose_memory(name: str, latency: int | None) -> Any:
    """Return the memory for `open_device`.

    Parameters
    ----------
    name : str
        Name of a memory model.
    latency : int or None
        Cycles of latency of the ideal memory; None for its default.

    Raises
    ------
    ValueError
        Another memory than the ideal one was given a latency, or it is below 1.
    """
    if latency is None:
        return name
    if name != "ideal":
        raise ValueError(f"--latency must be left out with memory {name!r}, not {latency}")
    return IdealMemory(latency_cycles=latency)


def choose_trace(
    path: Path | None, start: int | None, end: int | None, by: str = "cycles"
) -> dict[str, Any]:
    """Return the options for `open_device` that ask for a trace; none without a path.

    Parameters
    ----------
    path : Path or None
        The VCD or FST file.
    start, end : int or None
        The window [start, end) of the program; by default `DEFAULT_WINDOW` from its start.
    by : str
        What they count: cycles or lookups.

    Raises
    ------
    ValueError
        There is a window but no path, the window is empty, or it counts something else.
    """
    if path is None:
        if start is not None or end is not None or by != "cycles":
            raise ValueError(
                "--trace must name a file with --trace-start, --trace-end or --trace-by"
            )
        return {}
    first = start or 0
    length = DEFAULT_WINDOW.get(by, 1)
    chosen: Any = by
    window = Trace(path=path, first=first, end=first + length if end is None else end, by=chosen)
    return {"trace": window}
