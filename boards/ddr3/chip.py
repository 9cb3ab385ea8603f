"""DDR3 chips: geometry, and the limits that hold between their commands."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass

#: Words of one READ or WRITE.
BURST_WORDS = 8
#: Bytes of one READ or WRITE of 16-bit words: a beat of a 128-bit port.
BEAT_BYTES = 2 * BURST_WORDS


@dataclass(frozen=True, kw_only=True)
class Ddr3Chip:
    """A chip of 16-bit words.

    Attributes
    ----------
    name : str
        What reports call it.
    row_bits, bank_bits, column_bits : int
        Geometry: an address is row, bank, column, highest first, so a burst stays in one row.
    trcd_ns, trp_ns, tras_ns : float
        Of one bank: ACTIVATE to READ or WRITE, PRECHARGE to ACTIVATE, ACTIVATE to PRECHARGE.
    trrd_clocks, trrd_ns : int, float
        ACTIVATE to ACTIVATE of another bank: the longer of both.
    tfaw_ns : float
        Within it at most four banks are activated.
    twr_ns : float
        Last word written to PRECHARGE.
    twtr_clocks, twtr_ns, trtp_clocks, trtp_ns : int, float
        Last word written to READ; READ to PRECHARGE: the longer of both.
    tccd_clocks : int
        READ to READ, WRITE to WRITE.
    trfc_ns, trefi_ns : float
        REFRESH to the next command; time in which one REFRESH falls due.
    tzqcs_clocks : int
        Short calibration to the next command.

    Examples
    --------
    >>> CHIPS["ecpix5"].size_bytes == 512 << 20
    True
    """

    name: str
    row_bits: int
    bank_bits: int
    column_bits: int
    trcd_ns: float
    trp_ns: float
    tras_ns: float
    trrd_clocks: int
    trrd_ns: float
    tfaw_ns: float
    twr_ns: float
    twtr_clocks: int
    twtr_ns: float
    trtp_clocks: int
    trtp_ns: float
    tccd_clocks: int
    trfc_ns: float
    trefi_ns: float
    tzqcs_clocks: int

    @property
    def banks(self) -> int:
        """Number of banks."""
        return 1 << self.bank_bits

    @property
    def page_beat_bits(self) -> int:
        """Width of a beat's number within its row."""
        return self.column_bits - (BURST_WORDS - 1).bit_length()

    @property
    def beat_address_bits(self) -> int:
        """Width of a beat's number within the chip."""
        return self.row_bits + self.bank_bits + self.page_beat_bits

    @property
    def size_bytes(self) -> int:
        """What it holds."""
        return BEAT_BYTES << self.beat_address_bits

    def clocks(self, clock_mhz: float) -> dict[str, int]:
        """Return the limits in the chip's clocks, the whole ones that are long enough.

        Parameters
        ----------
        clock_mhz : float
            The chip's clock, half its data rate.

        Examples
        --------
        >>> CHIPS["ecpix5"].clocks(150.0)["trfc"]
        39
        """
        values = asdict(self)
        found: dict[str, int] = {}
        for key, value in values.items():
            name, _, unit = key.rpartition("_")
            if unit == "clocks":
                found[name] = max(found.get(name, 0), value)
            elif unit == "ns":
                # What the chip may be late with, a refresh falls due, is rounded down.
                clocks = value * clock_mhz / 1000
                whole = int(clocks) if name == "trefi" else math.ceil(clocks - 1e-9)
                found[name] = max(found.get(name, 0), whole)
        return found


#: By board. Ref: Micron 4Gb x4 x8 x16 DDR3L data sheet, speed -125, and JEDEC JESD79-3: a 4 Gb chip
#: is busy with a refresh for 260 ns at every clock.
CHIPS = {
    "ecpix5": Ddr3Chip(
        name="MT41K256M16",
        row_bits=15,
        bank_bits=3,
        column_bits=10,
        trcd_ns=13.75,
        trp_ns=13.75,
        tras_ns=35.0,
        trrd_clocks=4,
        trrd_ns=7.5,
        tfaw_ns=40.0,
        twr_ns=15.0,
        twtr_clocks=4,
        twtr_ns=7.5,
        trtp_clocks=4,
        trtp_ns=7.5,
        tccd_clocks=4,
        trfc_ns=260.0,
        trefi_ns=7812.5,
        tzqcs_clocks=64,
    ),
}
