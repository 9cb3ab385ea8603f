"""What a program must read, worked out from its microcode: lines of each stream, bursts of rows."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from cocotb_tests.monitors import Read
from ember_hw.compiler.interpreters.scalar_microcode import Scalar
from ember_hw.host.launch import Launch
from ember_hw.rtl.burst_splitter import chunk_beats
from ember_hw.rtl.layouts import tag_bits

_MOST_TOKENS = 100_000


class Plan:
    """Reads of a launch, in the order of the program.

    A memory stream reads each line once, however many elements in a row lie on it. A row is cut at
    multiples of `chunk_beats`.

    Attributes
    ----------
    lines : dict of int to list of int
        Line addresses of each stream, by its number ``unit * streams_per_unit + stream``.
    bursts : list of (int, int)
        Address and beats of each burst of rows.
    rows : list of bytes
        What the rows are.
    """

    def __init__(self, launch: Launch) -> None:
        self.config = launch.microcode.config
        regions = [(region.base, region.data.tobytes()) for region in launch.regions]
        run = Scalar(
            launch.microcode, regions, requests=[launch.arguments], most_tokens=_MOST_TOKENS
        )
        run.run()
        self.rows = run.rows
        self.lines: dict[int, list[int]] = defaultdict(list)
        for unit, stream, line in run.lines_read:
            self.lines[unit * self.config.streams_per_unit + stream].append(line)
        self.bursts: list[tuple[int, int]] = []
        for _, address, size in run.rows_read:
            self._note_row(address, size)

    def beat_number(self, address: int) -> int:
        """Return the number, among all row beats, of the first one that is read from an address."""
        bus = self.config.bus_bytes
        beats = [start + bus * i for start, count in self.bursts for i in range(count)]
        return beats.index(address)

    def _note_row(self, address: int, size: int) -> None:
        bus = self.config.bus_bytes
        beats = [address + bus * i for i in range(-(-size // bus))]
        chunk = chunk_beats(self.config) * bus
        while beats:
            burst = [beat for beat in beats if beat // chunk == beats[0] // chunk]
            self.bursts.append((burst[0], len(burst)))
            beats = beats[len(burst) :]

    def check(self, reads: Sequence[Read]) -> None:
        """Hold what was read against the plan.

        Parameters
        ----------
        reads : sequence of Read
            All reads of the run, in the order of AR.
        """
        bursts = [(read.address, read.beats) for read in reads if read.is_row]
        assert bursts == self.bursts, f"row reads must be {_hex(self.bursts)}, not {_hex(bursts)}"
        lines: dict[int, list[int]] = defaultdict(list)
        stream_mask = (1 << (tag_bits(self.config) - 1)) - 1
        for read in reads:
            if not read.is_row:
                assert read.beats == self.config.line_beats, f"{read} must be a line"
                lines[read.tag & stream_mask].append(read.address)
        for stream in {*lines, *self.lines}:
            unit, number = divmod(stream, self.config.streams_per_unit)
            wanted, found = self.lines[stream], lines[stream]
            assert found == wanted, (
                f"lines of unit {unit}, stream {number} must be {[hex(a) for a in wanted]}, "
                f"not {[hex(a) for a in found]}"
            )


def _hex(bursts: Sequence[tuple[int, int]]) -> list[str]:
    return [f"{address:#x}+{beats}" for address, beats in bursts]
