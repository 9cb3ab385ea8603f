"""A simulated board behind a pseudo-terminal: any program that opens a serial port can use it."""

from __future__ import annotations

import os
import select
import threading
import tty
from contextlib import suppress
from typing import Self

from ember_hw.boards.simulated.model import BoardModel

#: Cycles between two looks at the terminal.
_SLICE_CYCLES = 20_000
#: Cycles without a byte either way after which the board's time stands still until one comes.
_QUIET_CYCLES = 50_000
_READ_BYTES = 1 << 16


class SimulatedTerminal:
    """Lends a model to a thread that moves bytes between it and a pseudo-terminal.

    The simulation is slower than a board, so whoever opens the port must be patient. While nobody
    speaks, the board's time stands still. Bytes for which the system has no room, because nobody
    reads them, are lost, as on a wire.

    Parameters
    ----------
    model : BoardModel
        Belongs to the terminal until it is closed, and is closed by it.

    Attributes
    ----------
    port : str
        Device file of the terminal, for `SerialChannel`.
    error : Exception or None
        What ended the thread, if something did.
    """

    def __init__(self, model: BoardModel) -> None:
        self._model = model
        self._master, self._slave = os.openpty()
        tty.setraw(self._slave)
        os.set_blocking(self._master, False)
        self.port = os.ttyname(self._slave)
        self._wake, self._waker = os.pipe()
        self.error: Exception | None = None
        self._cycles = model.cycles
        self._thread = threading.Thread(target=self._serve, name=self.port, daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def cycles(self) -> int:
        """Clock cycles of the board so far."""
        return self._cycles

    @property
    def memory_violations(self) -> int:
        """Limits of the SDRAM's chip that were broken; to be asked while nobody speaks."""
        return self._model.memory_violations

    def close(self) -> None:
        """Pull the board: the port is gone, and with it the model. Twice is no error."""
        if self._master < 0:
            return
        os.write(self._waker, b"x")
        self._thread.join()
        for descriptor in (self._master, self._slave, self._wake, self._waker):
            os.close(descriptor)
        self._master = -1
        self._model.close()

    def _serve(self) -> None:
        try:
            self._move_bytes()
        except Exception as error:  # the host sees a silent board, and may ask why
            self.error = error

    def _move_bytes(self) -> None:
        waiting = bytearray()
        quiet_cycles = 0
        while True:
            is_quiet = not waiting and quiet_cycles >= _QUIET_CYCLES
            ready, _, _ = select.select([self._master, self._wake], [], [], None if is_quiet else 0)
            if self._wake in ready:
                return
            if self._master in ready:
                waiting += os.read(self._master, _READ_BYTES)
            before = self._model.cycles
            got, taken = self._model.run(_SLICE_CYCLES, bytes(waiting), to_flag=True)
            self._cycles = self._model.cycles
            del waiting[:taken]
            if got:
                with suppress(BlockingIOError):
                    os.write(self._master, got)
            quiet_cycles = 0 if got or taken else quiet_cycles + self._cycles - before
