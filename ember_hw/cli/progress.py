"""What the command line shows while it works; all on standard error."""

from __future__ import annotations

import time

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn

notes = Console(stderr=True, highlight=False)


class Steps:
    """Shows on standard error what runs now, and for how long.

    A terminal shows a running clock, then the time each step took. Elsewhere a line announces each
    step, so that a log tells where a long one stands.
    """

    def __init__(self, console: Console = notes) -> None:
        self._console = console
        self._live = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}", markup=False),
            TimeElapsedColumn(),
            console=console,
            transient=True,
        )
        self._task: TaskID | None = None
        self._text = ""
        self._began = 0.0

    def __enter__(self) -> Steps:
        if self._console.is_terminal:
            self._live.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._end("✓" if kind is None else "✗")
        self._live.stop()

    def __call__(self, text: str) -> None:
        """End the step that runs and begin the next."""
        self._end("✓")
        self._text, self._began = text, time.monotonic()
        if self._console.is_terminal:
            self._task = self._live.add_task(text, total=None)
        else:
            self._console.print(f"… {text}", markup=False)

    def _end(self, mark: str) -> None:
        if self._task is not None:
            self._live.remove_task(self._task)
        if self._text:
            took = time.monotonic() - self._began
            self._console.print(f"{mark} {self._text}  {took:.1f} s", markup=False)
        self._task, self._text = None, ""
