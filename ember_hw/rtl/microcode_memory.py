"""The microcode: written word by word, held as the records that the blocks read."""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from ember_hw import isa
from ember_hw.config import AcceleratorConfig
from ember_hw.registers import MICROCODE_WORDS, FaultCode
from ember_hw.rtl.layouts import record_layout


def record_name(path: str) -> str:
    """Return the port's name of a record: its path with ``_`` for ``.``."""
    return path.replace(".", "_")


class MicrocodeMemory(wiring.Component):
    """Holds a program's records in registers, and its words in a memory that can be read back.

    Parameters
    ----------
    config : AcceleratorConfig
        Gives the records.

    Members
    -------
    address, write, write_data : in
        Word address, strobe and data of a write. The caller writes only while no program runs.
    read_data : out
        The word at `address`, one cycle later; 0 beyond the last.
    <record> : out
        Each record of `isa.layouts`, ``.`` in its path being ``_``.
    verdict : out
        NONE, or what makes the program one that may not be started.
    """

    def __init__(self, *, config: AcceleratorConfig):
        self.config = config
        records = {
            record_name(path): Out(record_layout(path, config)) for path in isa.layouts(config)
        }
        super().__init__(
            {
                "address": In(range(MICROCODE_WORDS)),
                "write": In(1),
                "write_data": In(32),
                "read_data": Out(32),
                **records,
                "verdict": Out(FaultCode),
            }
        )

    def elaborate(self, platform):
        m = Module()
        words = isa.microcode_words(self.config)
        m.submodules.words = memory = Memory(shape=32, depth=words, init=[])
        write_port = memory.write_port()
        read_port = memory.read_port()
        inside = self.address < words
        was_inside = Signal()
        m.d.sync += was_inside.eq(inside)
        m.d.comb += [
            write_port.addr.eq(self.address),
            write_port.data.eq(self.write_data),
            write_port.en.eq(self.write & inside),
            read_port.addr.eq(self.address),
            read_port.en.eq(1),
            self.read_data.eq(Mux(was_inside, read_port.data, 0)),
        ]

        for path, layout in isa.layouts(self.config).items():
            held = []
            for i in range(layout.words):
                # Like the words that can be read back, a reset leaves them as they are.
                word = Signal(32, name=f"{record_name(path)}_word{i}", reset_less=True)
                with m.If(self.write & (self.address == layout.first_word + i)):
                    m.d.sync += word.eq(self.write_data)
                held.append(word)
            m.d.comb += getattr(self, record_name(path)).as_value().eq(Cat(*held))

        units = [getattr(self, f"unit{k}") for k in range(self.config.traversal_units)]
        illegal = ~units[0].enable
        for k, unit in enumerate(units):
            illegal |= unit.enable & (unit.step == 0)
            if k:
                illegal |= unit.enable & ~units[k - 1].enable
        for row in range(self.config.row_entries):
            record = getattr(self, f"row{row}")
            immediate_length = record.length_source == isa.Source.IMMEDIATE
            illegal |= (record.events != 0) & immediate_length & (record.length == 0)
        with m.If(self.header.version != isa.ISA_VERSION):
            m.d.sync += self.verdict.eq(FaultCode.BAD_VERSION)
        with m.Elif(illegal):
            m.d.sync += self.verdict.eq(FaultCode.ILLEGAL_MICROCODE)
        with m.Else():
            m.d.sync += self.verdict.eq(FaultCode.NONE)
        return m
