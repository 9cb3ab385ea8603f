"""The AXI read ports of the access unit: which there are, and what each may do."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import Any

from ember_hw.config import AcceleratorConfig
from ember_hw.rtl import axi
from ember_hw.rtl.flat_ports import INDEX_PREFIX, memory_prefixes
from ember_hw.rtl.layouts import tag_bits

_BOUNDARY_BYTES = 4096


@dataclass(frozen=True)
class Read:
    """One read that was asked for on AR.

    Attributes
    ----------
    address : int
        Byte address of its first beat.
    beats : int
        Its length.
    tag : int
        ARID.
    is_row : bool
        Asked for by the gather engine, not by a memory stream.
    port : int
        Number of the port, see `read_ports`.
    """

    address: int
    beats: int
    tag: int
    is_row: bool
    port: int = 0


@dataclass(frozen=True)
class ReadPort:
    """One port.

    Attributes
    ----------
    prefix : str
        What its signals' names begin with.
    number : int
    is_index : bool
        The index lines' own port.
    beat_bytes : int
    """

    prefix: str
    number: int
    is_index: bool
    beat_bytes: int


def read_ports(config: AcceleratorConfig) -> list[ReadPort]:
    """Return all read ports of a config, the index lines' own one last."""
    prefixes = memory_prefixes(config)
    ports = [ReadPort(prefix, i, False, config.bus_bytes) for i, prefix in enumerate(prefixes)]
    if config.index_port_bits:
        ports.append(ReadPort(INDEX_PREFIX, len(ports), True, config.index_port_bits // 8))
    return ports


class Channel:
    """A VALID/READY channel: VALID stays, and the payload holds, until READY."""

    def __init__(self, dut: Any, prefix: str, payload: tuple[str, ...], stem: str = "") -> None:
        self.name = prefix
        self._valid = getattr(dut, f"{prefix}{stem}valid")
        self._ready = getattr(dut, f"{prefix}{stem}ready")
        self._payload = [getattr(dut, f"{prefix}{stem}{signal}") for signal in payload]
        self._held: list[int] | None = None

    def sample(self) -> list[int] | None:
        """Return the payload if it passes at this edge."""
        if not self._valid.value:
            assert self._held is None, f"{self.name}: VALID fell before READY"
            return None
        now = [int(signal.value) for signal in self._payload]
        assert self._held in (None, now), f"{self.name}: {self._held} became {now} before READY"
        passes = bool(self._ready.value)
        self._held = None if passes else now
        return now if passes else None

    def reset(self) -> None:
        """Forget what was shown."""
        self._held = None


class ReadPortMonitor:
    """Watches one port each cycle.

    Parameters
    ----------
    dut : handle of the flat top
    config : AcceleratorConfig
    port : ReadPort

    Attributes
    ----------
    mapped : list of (int, int)
        First address and end of each region that may be read.
    """

    def __init__(self, dut: Any, config: AcceleratorConfig, port: ReadPort) -> None:
        self.config = config
        self.port = port
        self.mapped: list[tuple[int, int]] = []
        fields = ("addr", "len", "id", "size", "burst", "lock", "cache", "prot")
        if config.memory_protocol == "axi4":
            fields += ("qos",)
        self._ar = Channel(dut, f"{port.prefix}_ar", fields)
        names = ("rvalid", "rready", "rid", "rlast")
        self._r = tuple(getattr(dut, f"{port.prefix}_{name}") for name in names)
        # Beats still to come of each read, oldest first, by ID.
        self._awaited: dict[int, list[int]] = defaultdict(list)

    def reset(self) -> None:
        """Forget what is in flight."""
        self._awaited.clear()
        self._ar.reset()

    def in_flight(self, *, is_row: bool) -> int:
        """Return the reads of rows or of lines in flight."""
        held = self._awaited.items()
        return sum(len(reads) for tag, reads in held if self._is_row(tag) == is_row)

    def sample(self) -> tuple[Read | None, bool | None]:
        """Return the read that was asked for at this edge, and of a beat whether it is a row's."""
        came = self._sample_beat()
        asked = self._ar.sample()
        return (None if asked is None else self._check_read(*asked)), came

    def _sample_beat(self) -> bool | None:
        valid, ready, tag_signal, last_signal = self._r
        assert ready.value, f"{self.port.prefix}: RREADY must stay high: every beat has its place"
        if not valid.value:
            return None
        tag, last = int(tag_signal.value), bool(last_signal.value)
        reads = self._awaited[tag]
        assert reads, f"the bench must answer reads only, not ID {tag}"
        reads[0] -= 1
        assert last == (reads[0] == 0), f"the bench's RLAST is misplaced, ID {tag}"
        if last:
            reads.pop(0)
        return self._is_row(tag)

    def _check_read(self, address: int, length: int, tag: int, size: int, *rest: int) -> Read:
        burst, lock, cache, *unused = rest
        config, port, beats = self.config, self.port, length + 1
        end = address + beats * port.beat_bytes
        what = f"{port.prefix}: read of {beats} beats at {address:#x}"
        assert 1 << size == port.beat_bytes, f"{what}: ARSIZE {size}"
        assert burst == axi.Burst.INCREMENTING.value, f"{what}: ARBURST {burst}"
        assert not any((lock, *unused)), f"{what}: ARLOCK, ARPROT, ARQOS {lock, *unused}"
        assert cache in (0b0011, 0b1111), f"{what}: ARCACHE {cache:#b}"
        assert address % port.beat_bytes == 0, f"{what}: not aligned"
        assert address // _BOUNDARY_BYTES == (end - 1) // _BOUNDARY_BYTES, f"{what}: crosses 4 KB"
        assert any(low <= address and end <= high for low, high in self.mapped), (
            f"{what}: outside {[(hex(low), hex(high)) for low, high in self.mapped]}"
        )
        if not port.is_index:
            turns = {byte // config.port_interleave_bytes for byte in (address, end - 1)}
            wanted = {turn % config.memory_ports for turn in turns}
            assert wanted == {port.number}, f"{what}: belongs to ports {sorted(wanted)}"
        is_row = self._is_row(tag)
        limit = config.max_burst_beats if is_row else config.line_beats
        assert beats <= limit, f"{what}: more than {limit} beats"
        self._awaited[tag].append(beats)
        return Read(address, beats, tag, is_row, port.number)

    def _is_row(self, tag: int) -> bool:
        return not self.port.is_index and not tag >> (tag_bits(self.config) - 1)
