"""DRAM channels for the simulated access unit: geometry, timing, address mapping, and presets.

The model itself is C++ (memories/dram_channel.hpp); `timing_check` holds it to these parameters.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, fields
from typing import ClassVar

#: Fields of an address, in the order of `EmberAddressField`.
ADDRESS_FIELDS = ("column", "bank", "group", "rank", "row")
_MAX_FIELD_ENTRIES = 16
_PART = re.compile(r"(column|bank|group|rank|row)([1-9][0-9]?)")


@dataclass(frozen=True, kw_only=True)
class DramTiming:
    """Limits between commands, in memory clocks, named as JEDEC does. 0 switches one off.

    Attributes
    ----------
    burst : int
        Clocks that the data of one READ or WRITE takes.
    cl, cwl : int
        READ to its first data, WRITE to its.
    trcd, trp, tras, trc, trtp : int
        Of one bank: ACTIVATE to READ or WRITE, PRECHARGE to ACTIVATE, ACTIVATE to PRECHARGE,
        ACTIVATE to ACTIVATE, READ to PRECHARGE.
    twr : int
        Of one bank: end of a WRITE's data to PRECHARGE.
    trrd_s, trrd_l, tfaw : int
        ACTIVATE to ACTIVATE of another bank group and of the same one; window that holds at most
        four of a rank.
    tccd_s, tccd_l : int
        READ to READ, and WRITE to WRITE, of another bank group and of the same one.
    twtr_s, twtr_l : int
        End of a WRITE's data to READ of another bank group and of the same one.
    trtw : int
        READ to WRITE, of whatever rank: the data bus turns around.
    trfc, trefi : int
        REFRESH to the next command of its rank; interval of refreshes.
    trtrs : int
        Clocks that the data bus rests between two ranks.
    """

    burst: int
    cl: int
    trcd: int
    trp: int
    tras: int
    trc: int
    trtp: int
    trrd_s: int
    trrd_l: int
    tfaw: int
    tccd_s: int
    tccd_l: int
    trfc: int
    trefi: int
    cwl: int
    twr: int
    twtr_s: int
    twtr_l: int
    trtw: int
    trtrs: int = 0

    def __post_init__(self) -> None:
        """Check ranges."""
        for field in fields(self):
            value = getattr(self, field.name)
            least = 1 if field.name in ("burst", "cl") else 0
            if not isinstance(value, int) or not least <= value < 1 << 20:
                raise ValueError(
                    f"{field.name} must be {least} to {(1 << 20) - 1} clocks, not {value!r}"
                )
        if self.trtw < self.cl + self.burst - self.cwl:
            raise ValueError(
                f"trtw must be at least cl + burst - cwl ({self.cl + self.burst - self.cwl} "
                f"clocks), not {self.trtw!r}: data of a READ and a WRITE would meet on the bus"
            )
        if self.trefi and self.trefi <= self.trfc + self.trp + self.tras:
            raise ValueError(
                f"trefi must be more than trfc + trp + tras ({self.trfc + self.trp + self.tras} "
                f"clocks), not {self.trefi!r}: nothing but refreshes would happen"
            )


@dataclass(frozen=True, kw_only=True)
class DramMemory:
    """A DRAM channel behind the access unit's read port, and its port for writes where it has one.

    Open page, all-bank refresh at its due time, FR-FCFS: of the commands that a clock allows, a
    READ or WRITE goes first, an older access's before a younger one's; a row stays open while an
    older access hits it. Writes wait in a queue of their own, and are served while there are no
    reads, or when it is three quarters full until a quarter is left. A burst is split into
    accesses; beats return as their data comes, those of one ID in order. A write is answered when
    all of its data have been on the DRAM's bus, in order.

    Attributes
    ----------
    name : str
        What reports call it.
    timing : DramTiming
        In memory clocks.
    mapping : str
        Fields of an address above the access, highest first, each with its bits; a field may
        appear in several parts. Higher address bits are ignored: the memory repeats itself.
    access_bytes : int
        Of one READ or WRITE: burst length times data width; a power of two.
    memory_khz, unit_khz : int
        Clocks of the memory and of the access unit.
    queue_entries : int
        Reads among which the scheduler chooses, and as many writes.
    port_entries : int
        Reads that wait in order before it, and as many writes; a burst is taken while there are
        fewer.
    front_cycles, back_cycles : int
        Unit cycles from the port to the scheduler, and from the data to the port.
    dual_command_bus : bool
        HBM: a row command and a READ or WRITE may go in one clock.
    source : str
        Where the numbers come from.

    Examples
    --------
    >>> DRAM_PRESETS["ddr4-2400"].peak_bytes_per_second / 1e9
    19.2
    """

    name: str
    timing: DramTiming
    mapping: str
    access_bytes: int
    memory_khz: int
    unit_khz: int
    queue_entries: int = 32
    port_entries: int = 64
    front_cycles: int = 0
    back_cycles: int = 0
    dual_command_bus: bool = False
    source: str = ""

    _AT_LEAST: ClassVar[dict[str, int]] = {
        "memory_khz": 1,
        "unit_khz": 1,
        "queue_entries": 1,
        "port_entries": 1,
        "front_cycles": 0,
        "back_cycles": 0,
    }

    def __post_init__(self) -> None:
        """Check ranges and the mapping."""
        if not 4 <= self.access_bytes <= 256 or self.access_bytes & (self.access_bytes - 1):
            raise ValueError(
                f"access_bytes must be a power of two from 4 to 256, not {self.access_bytes!r}"
            )
        for name, least in self._AT_LEAST.items():
            value = getattr(self, name)
            if not least <= value < 1 << 32:
                raise ValueError(f"{name} must be {least} to 2**32 - 1, not {value!r}")
        parts = self.mapping.split()
        if not all(_PART.fullmatch(part) for part in parts):
            raise ValueError(
                "mapping must be parts such as 'row16 bank2 column7', highest first, "
                f"not {self.mapping!r}"
            )
        bits = self.field_bits
        if len(parts) > _MAX_FIELD_ENTRIES or not bits["row"] or max(bits.values()) > 30:
            raise ValueError(
                f"mapping must have rows, at most {_MAX_FIELD_ENTRIES} parts and at most 30 bits "
                f"a field, not {self.mapping!r}"
            )
        if max(bits["bank"], bits["group"], bits["rank"]) > 6:
            raise ValueError(
                f"mapping must have at most 6 bits of banks, groups and ranks, not {self.mapping!r}"
            )

    @property
    def parts(self) -> tuple[tuple[str, int], ...]:
        """Parts of the mapping, highest first: field and bits."""
        matches = (_PART.fullmatch(part) for part in self.mapping.split())
        return tuple((match[1], int(match[2])) for match in matches if match)

    @property
    def field_bits(self) -> dict[str, int]:
        """Bits of each field."""
        return {
            field: sum(bits for name, bits in self.parts if name == field)
            for field in ADDRESS_FIELDS
        }

    @property
    def size_bytes(self) -> int:
        """Bytes of the channel."""
        return self.access_bytes << sum(self.field_bits.values())

    @property
    def peak_bytes_per_second(self) -> float:
        """What the data bus carries without a gap."""
        return self.access_bytes / self.timing.burst * self.memory_khz * 1e3

    @property
    def peak_bytes_per_cycle(self) -> float:
        """The same for a cycle of the unit."""
        return self.peak_bytes_per_second / (self.unit_khz * 1e3)

    @property
    def unit_mhz(self) -> float:
        """Clock of the access unit."""
        return self.unit_khz / 1e3

    def describe(self) -> str:
        """Return the name and every parameter, as reports show them."""
        timing = ", ".join(f"{f.name} {getattr(self.timing, f.name)}" for f in fields(DramTiming))
        bus = "two command buses, " if self.dual_command_bus else ""
        return (
            f"{self.name} (modelled DRAM: {self.peak_bytes_per_second / 1e9:.3g} GB/s, "
            f"unit {self.unit_khz / 1e3:g} MHz, memory {self.memory_khz / 1e3:g} MHz; "
            f"accesses of {self.access_bytes} bytes, {bus}FR-FCFS over {self.queue_entries}, "
            f"{self.port_entries} waiting, {self.front_cycles} + {self.back_cycles} cycles to and "
            f"from the port; map {self.mapping}; clocks: {timing})"
        )


def _ddr4_2400() -> DramMemory:
    timing = DramTiming(
        burst=4, cl=16, trcd=16, trp=16, tras=39, trc=55, trtp=9, trrd_s=4, trrd_l=6, tfaw=26,
        tccd_s=4, tccd_l=6, trfc=421, trefi=9364, trtrs=2, cwl=12, twr=18, twtr_s=3, twtr_l=9,
        trtw=10,
    )  # fmt: skip
    return DramMemory(
        name="ddr4-2400",
        timing=timing,
        mapping="row16 bank2 group2 column7",
        access_bytes=64,
        memory_khz=1_200_000,
        unit_khz=300_000,
        front_cycles=8,
        back_cycles=10,
        source=(
            "JESD79-4, 8 Gb x8, speed bin 2400R; the controller's cycles are assumed: a lone read "
            "takes 87 ns"
        ),
    )


def _ecpix5_ddr3() -> DramMemory:
    timing = DramTiming(
        burst=4, cl=6, trcd=3, trp=3, tras=6, trc=8, trtp=4, trrd_s=4, trrd_l=4, tfaw=6,
        tccd_s=4, tccd_l=4, trfc=39, trefi=1170, trtrs=2, cwl=5, twr=3, twtr_s=4, twtr_l=4, trtw=7,
    )  # fmt: skip
    return DramMemory(
        name="ecpix5-ddr3",
        timing=timing,
        mapping="row15 bank3 column7",
        access_bytes=16,
        memory_khz=150_000,
        unit_khz=75_000,
        front_cycles=8,
        back_cycles=10,
        source=(
            "MT41K256M16 at 150 MHz, 4 Gb, x16, tRFC 260 ns; front and back cycles so that a lone "
            "read takes the 24 cycles of LiteDRAM's ECP5 PHY"
        ),
    )


def _ulx3s_sdram() -> DramMemory:
    timing = DramTiming(
        burst=8, cl=2, trcd=2, trp=2, tras=5, trc=7, trtp=7, trrd_s=2, trrd_l=2, tfaw=0,
        tccd_s=8, tccd_l=8, trfc=7, trefi=781, cwl=0, twr=2, twtr_s=0, twtr_l=0, trtw=11,
    )  # fmt: skip
    return DramMemory(
        name="ulx3s-sdram",
        timing=timing,
        mapping="row13 bank2 column6",
        access_bytes=16,
        memory_khz=100_000,
        unit_khz=50_000,
        front_cycles=3,
        back_cycles=3,
        source="32 MB x16 SDR SDRAM, -7 grade, bursts of 8; the controller's 6 cycles are assumed",
    )


def _hbm2_pc() -> DramMemory:
    timing = DramTiming(
        burst=2, cl=13, trcd=13, trp=13, tras=31, trc=44, trtp=5, trrd_s=4, trrd_l=6, tfaw=22,
        tccd_s=2, tccd_l=4, trfc=234, trefi=3510, cwl=4, twr=14, twtr_s=3, twtr_l=7, trtw=13,
    )  # fmt: skip
    return DramMemory(
        name="hbm2-pc",
        timing=timing,
        mapping="row14 group1 bank2 column5 group1",
        access_bytes=32,
        memory_khz=900_000,
        unit_khz=225_000,
        queue_entries=64,
        port_entries=128,
        front_cycles=10,
        back_cycles=10,
        dual_command_bus=True,
        source=(
            "one pseudo-channel of a 4-high HBM2 stack (AMD PG276) at 1800 Mb/s, bank groups "
            "interleaved at 32 bytes; tFAW fitted to random reads on a card (AMD XD099); the "
            "controller's cycles and the limits of writes are assumed: a lone read takes 120 ns"
        ),
    )


#: By name.
DRAM_PRESETS: dict[str, DramMemory] = {
    preset.name: preset for preset in (_ecpix5_ddr3(), _ulx3s_sdram(), _ddr4_2400(), _hbm2_pc())
}
