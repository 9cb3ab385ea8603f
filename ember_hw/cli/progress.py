"""What the command line shows while it works; all on standard error."""

from __future__ import annotations

import time

from rich.console import Console

notes = Console(stderr=True, highlight=False)


class Steps:
    """Shows on standard error what runs now and how long each step took."""

    def __init__(self) -> None:
        self._status = notes.status("")
        self._text = ""
        self._began = 0.0

    def __enter__(self) -> Steps:
        self._status.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._end("✓" if kind is None else "✗")
        self._status.stop()

    def __call__(self, text: str) -> None:
        """End the step that runs and begin the next."""
        self._end("✓")
        self._text, self._began = text, time.monotonic()
        self._status.update(f"{text} ...")

    def _end(self, mark: str) -> None:
        if self._text:
            notes.print(f"{mark} {self._text}  {time.monotonic() - self._began:.1f} s")
        self._text = ""
