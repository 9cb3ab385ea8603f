"""SDR SDRAM chips: geometry and limits, in nanoseconds and in clocks of a controller."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields

#: Words of one READ or WRITE: with 16-bit words one beat of a 128-bit port.
BURST_WORDS = 8

_WORD_BITS = 16


@dataclass(frozen=True, kw_only=True)
class SdramClocks:
    """Limits between commands in clocks, named as JEDEC does.

    Attributes
    ----------
    cl : int
        READ to its first word.
    trcd, trp, tras, trc : int
        Of one bank: ACTIVATE to READ or WRITE, PRECHARGE to ACTIVATE, ACTIVATE to PRECHARGE,
        ACTIVATE to ACTIVATE.
    trrd : int
        ACTIVATE to ACTIVATE of another bank.
    twr : int
        Last word written to PRECHARGE.
    trfc, trefi : int
        REFRESH to the next ACTIVATE or REFRESH; clocks in which one REFRESH falls due.
    tmrd : int
        LOAD MODE to the next command.
    power_up : int
        First clock of the chip to its first command.
    tras_most : int
        ACTIVATE to PRECHARGE, at most.
    """

    cl: int
    trcd: int
    trp: int
    tras: int
    trc: int
    trrd: int
    twr: int
    trfc: int
    trefi: int
    tmrd: int
    power_up: int
    tras_most: int

    def __post_init__(self) -> None:
        """Check ranges."""
        if self.cl not in (2, 3):
            raise ValueError(f"cl must be 2 or 3 clocks, not {self.cl!r}")
        for field in fields(self):
            value = getattr(self, field.name)
            if not isinstance(value, int) or value < 1:
                raise ValueError(f"{field.name} must be at least 1 clock, not {value!r}")
        # What a refresh takes: the longest access, the rows' closing, the refresh itself.
        busy = self.tras + BURST_WORDS + self.twr + self.trp + self.trfc
        if self.trefi <= 2 * busy:
            raise ValueError(
                f"trefi must be more than {2 * busy} clocks, not {self.trefi!r}: "
                "little but refreshes would happen; use a faster clock"
            )


@dataclass(frozen=True, kw_only=True)
class SdramChip:
    """A chip of 16-bit words.

    Attributes
    ----------
    name : str
        What reports call it.
    row_bits, bank_bits, column_bits : int
        Geometry: an address is row, bank, column, highest first, so a burst stays in one row.
    trcd_ns, trp_ns, tras_ns, trc_ns, trrd_ns, twr_ns, trfc_ns : float
        See `SdramClocks`.
    tmrd_clocks : int
    cl2_mhz, cl3_mhz : float
        Fastest clock with a CAS latency of 2 and 3.
    refresh_ms : float
        Time in which each row must be refreshed once.
    power_up_ns : float
    tras_most_ns : float
    source : str
        Where the numbers come from.

    Examples
    --------
    >>> CHIPS["ulx3s"].size_bytes >> 20
    32
    """

    name: str
    row_bits: int = 13
    bank_bits: int = 2
    column_bits: int = 9
    trcd_ns: float
    trp_ns: float
    tras_ns: float
    trc_ns: float
    trrd_ns: float
    twr_ns: float
    trfc_ns: float
    tmrd_clocks: int = 2
    cl2_mhz: float
    cl3_mhz: float
    refresh_ms: float = 64.0
    power_up_ns: float = 200_000.0
    tras_most_ns: float = 100_000.0
    source: str = ""

    def __post_init__(self) -> None:
        """Check the geometry."""
        for name, least, most in (
            ("row_bits", 11, 13),  # the mode register needs address pins 0 to 9, PRECHARGE 10
            ("bank_bits", 1, 2),
            ("column_bits", 8, 10),
        ):
            value = getattr(self, name)
            if not isinstance(value, int) or not least <= value <= most:
                raise ValueError(f"{name} must be {least} to {most}, not {value!r}")

    @property
    def banks(self) -> int:
        """Banks of the chip."""
        return 1 << self.bank_bits

    @property
    def page_beats(self) -> int:
        """Beats of `BURST_WORDS` words in one row of one bank."""
        return (1 << self.column_bits) // BURST_WORDS

    @property
    def beat_bytes(self) -> int:
        """Bytes of one beat."""
        return BURST_WORDS * _WORD_BITS // 8

    @property
    def beat_address_bits(self) -> int:
        """Width of a beat's number."""
        return self.row_bits + self.bank_bits + (self.page_beats - 1).bit_length()

    @property
    def size_bytes(self) -> int:
        """Bytes of the chip."""
        return self.beat_bytes << self.beat_address_bits

    def clocks(self, clock_mhz: float) -> SdramClocks:
        """Return the limits in clocks.

        Parameters
        ----------
        clock_mhz : float
            Clock of chip and controller.

        Raises
        ------
        ValueError
            The chip takes no clock so fast, or this one is too slow for its refreshes.

        Examples
        --------
        >>> CHIPS["ulx3s"].clocks(100.0).trc
        7
        """
        if not 0 < clock_mhz <= self.cl3_mhz:
            raise ValueError(
                f"clock of {self.name} must be at most {self.cl3_mhz:g} MHz, not {clock_mhz!r}"
            )

        def least(time_ns: float) -> int:
            return max(1, math.ceil(time_ns * clock_mhz / 1e3 - 1e-9))

        return SdramClocks(
            cl=2 if clock_mhz <= self.cl2_mhz else 3,
            trcd=least(self.trcd_ns),
            trp=least(self.trp_ns),
            tras=least(self.tras_ns),
            trc=least(self.trc_ns),
            trrd=least(self.trrd_ns),
            twr=least(self.twr_ns),
            trfc=least(self.trfc_ns),
            trefi=math.floor(self.refresh_ms * 1e3 * clock_mhz / (1 << self.row_bits)),
            tmrd=self.tmrd_clocks,
            power_up=least(self.power_up_ns),
            tras_most=math.floor(self.tras_most_ns * clock_mhz / 1e3),
        )


#: By name.
CHIPS: dict[str, SdramChip] = {
    "ulx3s": SdramChip(
        name="ulx3s",
        trcd_ns=20.0,
        trp_ns=20.0,
        tras_ns=44.0,
        trc_ns=66.0,
        trrd_ns=15.0,
        twr_ns=17.5,
        trfc_ns=66.0,
        cl2_mhz=100.0,
        cl3_mhz=133.0,
        source=(
            "32 MB x16, grades -7 and -75 of several makers: the slowest of their limits, since "
            "ULX3S boards carry one or the other"
        ),
    ),
}
