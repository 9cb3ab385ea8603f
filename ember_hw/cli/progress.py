"""What the command line shows while it works; all on standard error."""

from __future__ import annotations

import time

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn

notes = Console(stderr=True, highlight=False)

#: A log, unlike a terminal, gets a line about a long run only so often.
_LOG_EVERY_SECONDS = 10.0


class Steps:
    """Shows on standard error what runs now, how far it is, and for how long it has run.

    A terminal shows a running clock and a bar, then the time each step took. Elsewhere a line
    announces each step and detail, so that a log tells where a long one stands.
    """

    def __init__(self, console: Console = notes) -> None:
        self._console = console
        self._live = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=20),
            TextColumn("{task.fields[detail]}", markup=False),
            TimeElapsedColumn(),
            console=console,
            transient=True,
        )
        self._task: TaskID | None = None
        self._text = ""
        self._began = 0.0
        self._logged = 0.0

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
        self._text = text
        self._began = self._logged = time.monotonic()
        if self._console.is_terminal:
            self._task = self._live.add_task(text, total=None, detail="")
        else:
            self._print(f"… {text}")

    def detail(self, text: str) -> None:
        """Show what the running step does next."""
        if self._task is not None:
            self._live.update(self._task, detail=text)
        else:
            self._print(f"…   {text}")

    def reached(self, done: int, total: int | None, cycles: int | None) -> None:
        """Show how many lookups of a run are done, and the cycles that they took.

        Without a total the number is one of bundles.
        """
        text = f"{done:,} bundles" if total is None else f"{done:,} of {total:,}"
        if cycles is not None:
            text += f" in {cycles:,} cycles"
        if self._task is not None:
            self._live.update(self._task, completed=done, total=total, detail=text)
        elif time.monotonic() - self._logged >= _LOG_EVERY_SECONDS:
            self._logged = time.monotonic()
            self._print(f"…   {text}")

    def _print(self, line: str) -> None:
        self._console.print(line, markup=False, soft_wrap=True)

    def _end(self, mark: str) -> None:
        if self._task is not None:
            self._live.remove_task(self._task)
        if self._text:
            took = time.monotonic() - self._began
            self._print(f"{mark} {self._text}  {took:.1f} s")
        self._task, self._text = None, ""
