"""What the queues of an access unit must deliver, as plain loops tell it, and the comparison."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ember_hw.config import AcceleratorConfig
from ember_hw.errors import CheckError
from ember_hw.isa import Event, event_bit

#: Events as the loops name them.
BEGIN, ITERATE, END = Event.BEGIN, Event.ITERATE, Event.END
Told = tuple[Event, int]


@dataclass(frozen=True)
class Delivery:
    """Bundles and rows in the order of the program.

    Attributes
    ----------
    bundles : tuple of frozensets of (Event, int)
        The events of each, with their levels.
    scalars : tuple of mappings of int to int
        Of each bundle the scalars that mean something, as 32-bit words, by their place.
    row_lengths : int64 (M,)
        Bytes of each row.
    row_bytes : uint8 (N,)
        Bytes of all rows.
    tokens : int
        Steps of the innermost loop, and entries of it without a step: the bundles, and what the
        execute side is not told of.
    """

    bundles: tuple[frozenset[Told], ...]
    scalars: tuple[Mapping[int, int], ...]
    row_lengths: NDArray[np.int64]
    row_bytes: NDArray[np.uint8]
    tokens: int

    def check(
        self,
        name: str,
        config: AcceleratorConfig,
        *,
        events: NDArray[Any],
        scalars: NDArray[Any],
        row_beats: NDArray[np.uint8],
        row_last: NDArray[Any],
    ) -> None:
        """Hold what came against it.

        Parameters
        ----------
        name : str
            Of the task, for messages.
        config : AcceleratorConfig
            The access unit.
        events : uint32 (B,)
            Of each bundle.
        scalars : uint32 (B, bundle_scalars)
            Of each bundle.
        row_beats : uint8 (T, bus_bytes)
            Beats in order. Bytes beyond the end of a row don't matter.
        row_last : bool (T,)
            Set on each row's last beat.

        Raises
        ------
        CheckError
            A number, an event, a scalar or a byte differs; the first that does is named.
        """
        self._check_bundles(name, config, events, scalars)
        beats = -(-self.row_lengths // config.bus_bytes)
        if len(row_beats) != beats.sum():
            raise CheckError(f"row beats of {name!r} must be {beats.sum()}, not {len(row_beats)}")
        last = np.zeros(len(row_beats), np.bool_)
        last[np.cumsum(beats) - 1] = True
        keep = np.full(len(row_beats), config.bus_bytes)
        keep[last] = self.row_lengths - (beats - 1) * config.bus_bytes
        valid = np.arange(config.bus_bytes) < keep[:, None]
        wanted = np.zeros_like(row_beats)
        wanted[valid] = self.row_bytes
        ends = row_last.astype(np.bool_)
        differs = ((row_beats != wanted) & valid).any(axis=1) | (ends != last)
        if not differs.any():
            return
        beat = int(np.argmax(differs))
        if ends[beat] != last[beat]:
            raise CheckError(
                f"end of a row at beat {beat} of {name!r} must be {bool(last[beat])}, "
                f"not {bool(ends[beat])}"
            )
        row = int(np.searchsorted(np.cumsum(beats), beat, side="right"))
        raise CheckError(f"beat {beat} of {name!r} must have the bytes of row {row}, and doesn't")

    def _check_bundles(
        self, name: str, config: AcceleratorConfig, events: NDArray[Any], scalars: NDArray[Any]
    ) -> None:
        if len(events) != len(self.bundles):
            raise CheckError(f"bundles of {name!r} must be {len(self.bundles)}, not {len(events)}")
        for number, told in enumerate(self.bundles):
            mask = sum(1 << event_bit(event, level, config) for event, level in told)
            if int(events[number]) != mask:
                raise CheckError(
                    f"events of bundle {number} of {name!r} must be {mask:#x}, "
                    f"not {int(events[number]):#x}"
                )
            for place, value in self.scalars[number].items():
                if int(scalars[number, place]) != value:
                    raise CheckError(
                        f"scalar {place} of bundle {number} of {name!r} must be {value:#x}, "
                        f"not {int(scalars[number, place]):#x}"
                    )


class Recorder:
    """Takes down what a task's loops deliver."""

    def __init__(self) -> None:
        self._bundles: list[frozenset[Told]] = []
        self._scalars: list[dict[int, int]] = []
        self._rows: list[NDArray[np.uint8]] = []
        self._tokens = 0
        # Whether the request's latest token is a bundle; None before its first.
        self._is_told: bool | None = None

    def token(
        self,
        *told: Told,
        scalars: Mapping[int, Any] | None = None,
        rows: Iterable[NDArray[Any]] = (),
    ) -> None:
        """Take down one step of the innermost loop, or an entry of it without a step.

        Parameters
        ----------
        *told : (Event, int)
            Events that the execute side is told of, with their levels.
        scalars : mapping of int to 4-byte scalars
            By their place in the bundle.
        rows : iterable of arrays
            What is fetched, in the order of the row entries.
        """
        self._tokens += 1
        self._is_told = bool(told)
        self._rows += [np.ascontiguousarray(row).reshape(-1).view(np.uint8) for row in rows]
        if told:
            self._bundles.append(frozenset(told))
            words = {k: int(np.asarray(v).view(np.uint32)) for k, v in (scalars or {}).items()}
            self._scalars.append(words)

    def end(self) -> None:
        """Take down that a request ends with the latest token, or with one where it had none."""
        if self._is_told is None:
            self.token()
        if self._is_told:
            self._bundles[-1] |= {(END, 0)}
        else:
            self._bundles.append(frozenset({(END, 0)}))
            self._scalars.append({})
        self._is_told = None

    def delivery(self) -> Delivery:
        """Return all that was taken down."""
        empty = np.zeros(0, np.uint8)
        return Delivery(
            bundles=tuple(self._bundles),
            scalars=tuple(self._scalars),
            row_lengths=np.array([row.size for row in self._rows], np.int64),
            row_bytes=np.concatenate([empty, *self._rows]),
            tokens=self._tokens,
        )
