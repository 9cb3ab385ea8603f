"""Channels: what carries bytes between the host and a board."""

from __future__ import annotations

import time
from typing import Protocol

import serial

from ember_hw.errors import LinkError


class Channel(Protocol):
    """Bytes in order, some of which may be lost or wrong."""

    #: Where it leads, as errors name it.
    name: str

    def write(self, content: bytes) -> None:
        """Send bytes.

        Raises
        ------
        LinkError
            The channel is gone.
        """
        ...

    def read(self, seconds: float) -> bytes:
        """Return what has come, as soon as there is some; nothing after a time.

        Raises
        ------
        LinkError
            The channel is gone.
        """
        ...

    def now(self) -> float:
        """Return the time in seconds by the clock that `read` waits by."""
        ...

    def close(self) -> None:
        """Free the channel; closing twice is no error."""
        ...


class SerialChannel:
    """A serial port.

    Parameters
    ----------
    port : str
        Its device file, such as /dev/ttyUSB0, or a pseudo-terminal.
    baud : int
        Bits a second.

    Raises
    ------
    LinkError
        There is no such port, or it is in use.
    """

    def __init__(self, port: str, baud: int) -> None:
        self.name = port
        try:
            self._serial = serial.Serial(port, baud, timeout=0, write_timeout=10, exclusive=True)
        except (serial.SerialException, OSError) as error:
            raise LinkError(f"port {port} must be free and open, and isn't: {error}") from error
        self._serial.reset_input_buffer()

    def write(self, content: bytes) -> None:
        """Send bytes."""
        try:
            self._serial.write(content)
        except (serial.SerialException, OSError) as error:
            raise self._gone(error) from error

    def read(self, seconds: float) -> bytes:
        """Return what has come."""
        try:
            if self._serial.timeout != seconds:  # setting it asks the system to set up the port
                self._serial.timeout = seconds
            first = self._serial.read(1)
            return first + self._serial.read(self._serial.in_waiting) if first else b""
        except (serial.SerialException, OSError, TypeError) as error:
            # pyserial raises TypeError where another thread has closed the port.
            raise self._gone(error) from error

    def now(self) -> float:
        """Return the system's monotonic time."""
        return time.monotonic()

    def close(self) -> None:
        """Close the port."""
        self._serial.close()

    def _gone(self, error: Exception) -> LinkError:
        return LinkError(
            f"port {self.name} must stay connected, and broke: {error}; plug the board in and open "
            "it again"
        )
