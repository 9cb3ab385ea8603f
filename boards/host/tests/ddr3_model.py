"""LiteDRAM's registers, with a PHY and a chip behind them, as far as the host sees them."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace

from ember_hw.boards.ddr3.registers import REGISTERS
from ember_hw.boards.host.board import Board
from ember_hw.boards.host.client import LinkClient
from ember_hw.boards.host.tests.fakes import DESCRIPTION, FakeBoard
from ember_hw.boards.links.frame import BOARD_REGISTERS

_NAMES = {BOARD_REGISTERS + address: name for name, address in REGISTERS.items()}
_WIDE = re.compile(r"sdram_dfii_pi(\d)_(wr|rd)data")


@dataclass
class Lane:
    """A byte lane that reads right with one bitslip and some delays."""

    bitslip: int
    delays: tuple[int, ...]
    sees_bursts: bool = True
    good_reads: int = 1 << 30
    now: list[int] = field(default_factory=lambda: [0, 0])  # bitslip, delay

    def reads_right(self) -> bool:
        self.good_reads -= self._fits()
        return self._fits() and self.good_reads >= 0

    def _fits(self) -> bool:
        return self.now[0] == self.bitslip and self.now[1] in self.delays


class Registers(dict[int, int]):
    """LiteDRAM's registers, PHY and chip, as far as the host's work shows on them."""

    def __init__(self, lanes: list[Lane]) -> None:
        super().__init__(dict.fromkeys(_NAMES, 0))
        for address, name in _NAMES.items():
            if _WIDE.fullmatch(name):
                self[address + 4] = 0
        self.lanes = lanes
        self.log: list[tuple[int, int, int, int]] = []  # control, command, address, bank
        self.row: int | None = None
        self.stored = [0, 0]
        self._set("sdram_dfii_control", 1)

    def __setitem__(self, address: int, value: int) -> None:
        super().__setitem__(address, value)
        name = _NAMES.get(address, "")
        if issue := re.fullmatch(r"sdram_dfii_pi(\d)_command_issue", name):
            self._command(int(issue[1]))
        elif name == "sdram_dfii_control":
            self.log.append((value, 0, 0, 0))
        elif name == "ddrphy_burstdet_clr":
            self._set("ddrphy_burstdet_seen", 0)
        elif name.startswith("ddrphy_rdly"):
            self._adjust(name)

    def _set(self, name: str, value: int) -> None:
        super().__setitem__(BOARD_REGISTERS + REGISTERS[name], value)

    def of(self, name: str) -> int:
        return self[BOARD_REGISTERS + REGISTERS[name]]

    def _adjust(self, name: str) -> None:
        place, size = (0, 4) if "bitslip" in name else (1, 8)
        for number, lane in enumerate(self.lanes):
            if self.of("ddrphy_dly_sel") >> number & 1:
                lane.now[place] = 0 if name.endswith("rst") else (lane.now[place] + 1) % size

    def _command(self, phase: int) -> None:
        assert not self.of("sdram_dfii_control") & 1, "the controller drives the chip"
        assert not self.of("ddrphy_dly_sel"), "a lane is paused"
        command = self.of(f"sdram_dfii_pi{phase}_command")
        address = self.of(f"sdram_dfii_pi{phase}_address")
        bank = self.of(f"sdram_dfii_pi{phase}_baddress")
        assert command & 1, "the chip isn't selected"
        kind = command & 0b1110
        if kind == 0b1000:  # RAS: ACTIVATE
            assert self.row is None
            self.row = address
        elif kind == 0b1010:  # RAS, WE: PRECHARGE
            self.row = None
        elif kind == 0b0110:  # CAS, WE: WRITE
            assert (phase, command & 0b110000, self.row) == (1, 0b010000, 0)
            self.stored = [
                self._wide(f"sdram_dfii_pi{number}_wrdata") for number in range(len(self.stored))
            ]
        elif kind == 0b0100:  # CAS: READ
            assert (phase, command & 0b110000, self.row) == (0, 0b100000, 0)
            self._read()
        else:
            assert self.row is None
            self.log.append((self.of("sdram_dfii_control"), command, address, bank))

    def _wide(self, name: str) -> int:
        at = BOARD_REGISTERS + REGISTERS[name]
        return self[at] << 32 | self[at + 4]

    def _read(self) -> None:
        values = list(self.stored)
        for number, lane in enumerate(self.lanes):
            if lane.sees_bursts and lane.now[1] in lane.delays:
                self._set("ddrphy_burstdet_seen", self.of("ddrphy_burstdet_seen") | 1 << number)
            if not lane.reads_right():
                values = [value ^ 0x0001_0000 << 8 * number for value in values]
        for number, value in enumerate(values):
            at = BOARD_REGISTERS + REGISTERS[f"sdram_dfii_pi{number}_rddata"]
            super().__setitem__(at, value >> 32)
            super().__setitem__(at + 4, value & 0xFFFF_FFFF)


def board_with(kind: str, *lanes: Lane) -> tuple[Board, FakeBoard, Registers]:
    registers = Registers(list(lanes))
    fake = FakeBoard(
        content=replace(DESCRIPTION, memory=kind).to_bytes(),
        registers=registers,
    )
    return Board(LinkClient(fake, seed=1)), fake, registers
