"""What a program must deliver and read, worked out from its microcode, token by token."""

from __future__ import annotations

from collections import Counter as Tally
from collections import defaultdict
from collections.abc import Mapping, Sequence

from cocotb_tests.monitors import Seen
from cocotb_tests.read_ports import Read
from ember_hw.compiler.interpreters.scalar_microcode import Scalar
from ember_hw.compiler.interpreters.scalar_values import Unknown
from ember_hw.host.launch import Launch
from ember_hw.isa import Event, event_bit
from ember_hw.rtl.burst_splitter import chunk_beats
from ember_hw.rtl.layouts import lines_reorder, request_tag_bits

_MOST_TOKENS = 100_000


class Plan:
    """Bundles, rows and reads of a launch, in the order of the program.

    A memory stream reads each line once, however many elements in a row lie on it. A row is cut at
    multiples of `chunk_beats`.

    Parameters
    ----------
    launch : Launch
    requests : sequence of sequences of int, optional
        Arguments of each request; those of the launch, if absent.
    lines : mapping of (unit, stream) to sequence of bytes, optional
        What the input queue brings.

    Attributes
    ----------
    lines : dict of int to list of int
        Line addresses of each stream, by its number ``unit * streams_per_unit + stream``.
    bursts : list of (int, int)
        Address and beats of each burst of rows.
    rows : list of bytes
        What the rows are.
    rows_of_entry : tally of int
        Rows of each row entry.
    taken : list of int
        Stream of each line that the input queue brings, in the order in which it must.
    """

    def __init__(
        self,
        launch: Launch,
        *,
        requests: Sequence[Sequence[int]] | None = None,
        lines: Mapping[tuple[int, int], Sequence[bytes]] | None = None,
    ) -> None:
        self.config = launch.microcode.config
        regions = [(region.base, region.data.tobytes()) for region in launch.regions]
        run = Scalar(
            launch.microcode,
            regions,
            requests=[launch.arguments] if requests is None else requests,
            lines=lines or {},
            most_tokens=_MOST_TOKENS,
        )
        run.run()
        streams = self.config.streams_per_unit
        self.rows = run.rows
        self.rows_of_entry = Tally(entry for entry, _, _ in run.rows_read)
        self.taken = [unit * streams + stream for unit, stream in run.taken]
        self.lines: dict[int, list[int]] = defaultdict(list)
        for unit, stream, line in run.lines_read:
            self.lines[unit * streams + stream].append(line)
        self.bursts: list[tuple[int, int]] = []
        for _, address, size in run.rows_read:
            self._note_row(address, size)
        self._bundles = run.bundles
        self._last = 1 << event_bit(Event.END, 0, self.config)

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
        """Hold what was read against the plan: rows on each port, lines of each stream, in order.

        Where lines go through several ports, their tags don't tell the streams, and their order
        is that of none: then it is the lines of all streams together.

        Parameters
        ----------
        reads : sequence of Read
            All reads of the run, in the order of AR.
        """
        config = self.config
        for port in range(config.memory_ports):
            wanted = [b for b in self.bursts if self._port_of(b[0]) == port]
            found = [(r.address, r.beats) for r in reads if r.is_row and r.port == port]
            assert found == wanted, f"row reads must be {_hex(wanted)}, not {_hex(found)}"
        lines = [read for read in reads if not read.is_row]
        for read in lines:
            assert read.beats == config.line_beats, f"{read} must be a line"
        if lines_reorder(config):
            all_lines = Tally(line for held in self.lines.values() for line in held)
            assert Tally(read.address for read in lines) == all_lines, "lines of all streams"
            return
        of_stream = lines_by_stream(lines, self)
        for stream in {*of_stream, *self.lines}:
            unit, number = divmod(stream, config.streams_per_unit)
            addresses, found = self.lines[stream], of_stream[stream]
            assert found == addresses, (
                f"lines of unit {unit}, stream {number} must be {[hex(a) for a in addresses]}, "
                f"not {[hex(a) for a in found]}"
            )

    def check_output(self, seen: Seen) -> None:
        """Hold all bundles and rows of the run against the plan; undefined scalars don't count."""
        config = self.config
        found = [(self._split(data), last) for data, last in seen.bundles]
        assert len(found) == len(self._bundles), f"{len(found)} bundles, not {len(self._bundles)}"
        for number, (((events, scalars), last), wanted) in enumerate(
            zip(found, self._bundles, strict=True)
        ):
            assert events == wanted[0], f"events of bundle {number} must be {wanted[0]:#x}"
            assert last == bool(events & self._last), f"TLAST of bundle {number}: {last}"
            for i, (value, known) in enumerate(zip(scalars, wanted[1], strict=True)):
                assert isinstance(known, Unknown) or value == known, (
                    f"scalar {i} of bundle {number} must be {known}, not {value}"
                )
        rows, part = [], b""
        for data, keep, last in seen.row_beats:
            part += data.to_bytes(config.bus_bytes, "little")[: keep.bit_length()]
            if last:
                rows.append(part)
                part = b""
        assert not part, "a row without an end"
        assert rows == self.rows, f"{len(rows)} rows are not the {len(self.rows)} of the plan"

    def _split(self, data: int) -> tuple[int, list[int]]:
        config = self.config
        scalars = data >> config.events
        mask = (1 << 32) - 1
        events = data & ((1 << config.events) - 1)
        return events, [scalars >> 32 * i & mask for i in range(config.bundle_scalars)]

    def _port_of(self, address: int) -> int:
        return address // self.config.port_interleave_bytes % self.config.memory_ports


def lines_by_stream(reads: Sequence[Read], plan: Plan) -> dict[int, list[int]]:
    """Return the line addresses that the reads of each stream have.

    Their tag is the stream's number; where it is not, the plan knows whose line is where.
    """
    mask = (1 << request_tag_bits(plan.config)) - 1
    owners = {line: stream for stream, held in plan.lines.items() for line in held}
    found: dict[int, list[int]] = defaultdict(list)
    for read in reads:
        if not read.is_row:
            by_address = lines_reorder(plan.config)
            stream = owners[read.address] if by_address else read.tag & mask
            found[stream].append(read.address)
    return found


def _hex(bursts: Sequence[tuple[int, int]]) -> list[str]:
    return [f"{address:#x}+{beats}" for address, beats in bursts]
