"""Commands of an SDR SDRAM and the signals that carry them."""

from __future__ import annotations

from amaranth.lib import enum, wiring
from amaranth.lib.wiring import In, Out

from ember_hw.boards.sdram.chip import SdramChip

#: Address pin that makes PRECHARGE one of all banks.
ALL_BANKS_PIN = 10

#: Byte lanes of a word.
WORD_BYTES = 2


class Command(enum.Enum, shape=3):
    """A command: RAS, CAS and WE from the highest bit, 1 where the pin is asserted."""

    NO_OPERATION = 0b000
    WRITE = 0b011
    READ = 0b010
    ACTIVATE = 0b100
    PRECHARGE = 0b101
    REFRESH = 0b110
    LOAD_MODE = 0b111


class SdramPins(wiring.Signature):
    """The chip's signals, seen from the controller; a member is high where its pin is asserted.

    Parameters
    ----------
    chip : SdramChip
        Gives the widths.
    """

    def __init__(self, chip: SdramChip):
        self.chip = chip
        super().__init__(
            {
                "command": Out(Command),
                "bank": Out(chip.bank_bits),
                "address": Out(chip.row_bits),
                "mask": Out(WORD_BYTES),  # bytes that a WRITE leaves alone
                "data_out": Out(8 * WORD_BYTES),
                "data_enable": Out(1),
                "data_in": In(8 * WORD_BYTES),
            }
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SdramPins) and self.chip == other.chip
