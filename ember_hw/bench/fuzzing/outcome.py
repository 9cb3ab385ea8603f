"""What a case brought on hardware."""

from __future__ import annotations

from dataclasses import dataclass, field

from ember_hw.config import VALUE_WIDTH_BITS, AcceleratorConfig
from ember_hw.registers import State
from ember_hw.sim.results import UnitOutput


@dataclass
class Outcome:
    """What a case brought on one access unit.

    Attributes
    ----------
    state : State
        Where the unit came to rest; IDLE after a reset.
    fault : (int, int, int, int)
        Code, unit, stream, address.
    completed : int
        Requests that ended.
    bundles : list of (events, scalars)
    rows : list of bytes
        Their beats, whole.
    row_bytes : int, optional
        Bytes that TKEEP marked, of all beats; not known of one unit of several.
    part : bytes
        Of a row that did not end.
    reads : list of (int, int)
        Address and bytes of each burst.
    counters : list of int
        All of the unit's counters, where they were asked for.
    cycles : int
        From the first start, of all units.
    """

    state: State = State.IDLE
    fault: tuple[int, int, int, int] = (0, 0, 0, 0)
    completed: int = 0
    bundles: list[tuple[int, tuple[int, ...]]] = field(
        default_factory=list[tuple[int, tuple[int, ...]]]
    )
    rows: list[bytes] = field(default_factory=list[bytes])
    row_bytes: int | None = None
    part: bytes = b""
    reads: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    counters: list[int] = field(default_factory=list[int])
    cycles: int = 0

    def collect(self, output: UnitOutput, config: AcceleratorConfig) -> None:
        """Add what a run of the simulation delivered."""
        mask = (1 << VALUE_WIDTH_BITS) - 1
        for bundle in output.bundles:
            bits = int.from_bytes(bundle.tobytes(), "little")
            scalars = bits >> config.events
            values = (scalars >> VALUE_WIDTH_BITS * i & mask for i in range(config.bundle_scalars))
            self.bundles.append((bits & ((1 << config.events) - 1), tuple(values)))
        beats, begin = output.row_beats, 0
        for end in output.row_last.nonzero()[0] + 1:
            self.rows.append(self.part + beats[begin:end].tobytes())
            self.part, begin = b"", int(end)
        self.part += beats[begin:].tobytes()
