"""The microcode: written word by word, held as the records that the blocks read."""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from ember_hw import isa
from ember_hw.config import AcceleratorConfig
from ember_hw.registers import MICROCODE_WORDS, FaultCode
from ember_hw.rtl.fifos import NO_BYPASS
from ember_hw.rtl.layouts import record_layout


def record_name(path: str) -> str:
    """Return the port's name of a record: its path with ``_`` for ``.``."""
    return path.replace(".", "_")


def register_paths(config: AcceleratorConfig) -> list[str]:
    """Return the records that are read all at once: all but the rows'."""
    return [path for path in isa.layouts(config) if not path.startswith("row")]


class MicrocodeMemory(wiring.Component):
    """Holds a program's records, and its words in a memory that can be read back.

    The row entries' records, of which one is needed at a time, are a memory; the others registers.

    Parameters
    ----------
    config : AcceleratorConfig
        Gives the records.

    Members
    -------
    address, write, write_data : in
        Word address, strobe and data of a write, which is done a cycle later. The caller writes
        only while no program runs.
    read_data : out
        The word at `address`, one cycle later; 0 beyond the last.
    <record> : out
        Each record of `isa.layouts` but those of rows, ``.`` in its path being ``_``.
    row_select : in; row : out
        Number of a row entry, and its record in the same cycle.
    row_events : out
        The events of each row entry.
    verdict : out
        NONE, or what makes the program one that may not be started.
    """

    def __init__(self, *, config: AcceleratorConfig):
        self.config = config
        records = {
            record_name(path): Out(record_layout(path, config)) for path in register_paths(config)
        }
        super().__init__(
            {
                "address": In(range(MICROCODE_WORDS)),
                "write": In(1),
                "write_data": In(32),
                "read_data": Out(32),
                **records,
                "row_select": In(range(config.row_entries)),
                "row": Out(record_layout("row0", config)),
                "row_events": Out(config.events).array(config.row_entries),
                "verdict": Out(FaultCode),
            }
        )

    def elaborate(self, platform):
        m = Module()
        words = isa.microcode_words(self.config)
        m.submodules.words = memory = Memory(shape=32, depth=words, init=[], attrs=NO_BYPASS)
        write_port = memory.write_port()
        read_port = memory.read_port()
        was_inside = Signal()
        # A register before the many that one word may go to.
        address = Signal.like(self.address)
        write = Signal()
        write_data = Signal.like(self.write_data)
        self._written = (write, address, write_data)
        m.d.sync += [
            was_inside.eq(self.address < words),
            write.eq(self.write),
            address.eq(self.address),
            write_data.eq(self.write_data),
        ]
        m.d.comb += [
            write_port.addr.eq(address),
            write_port.data.eq(write_data),
            write_port.en.eq(write & was_inside),
            read_port.addr.eq(self.address),
            read_port.en.eq(1),
            self.read_data.eq(Mux(was_inside, read_port.data, 0)),
        ]

        for path in register_paths(self.config):
            layout = isa.layouts(self.config)[path]
            held = [self._word(m, path, i) for i in range(layout.words)]
            m.d.comb += getattr(self, record_name(path)).as_value().eq(Cat(*held))
        self._rows(m)

        units = [getattr(self, f"unit{k}") for k in range(self.config.traversal_units)]
        illegal = ~units[0].enable
        for k, unit in enumerate(units):
            illegal |= unit.enable & (unit.step == 0)
            if k:
                illegal |= unit.enable & ~units[k - 1].enable
        with m.If(self.header.version != isa.ISA_VERSION):
            m.d.sync += self.verdict.eq(FaultCode.BAD_VERSION)
        with m.Elif(illegal):
            m.d.sync += self.verdict.eq(FaultCode.ILLEGAL_MICROCODE)
        with m.Else():
            m.d.sync += self.verdict.eq(FaultCode.NONE)
        return m

    def _word(self, m: Module, path: str, index: int) -> Signal:
        """Return a register that holds a word of a record."""
        # Like the words that can be read back, a reset leaves them as they are.
        word = Signal(32, name=f"{record_name(path)}_word{index}", reset_less=True)
        layout = isa.layouts(self.config)[path]
        write, address, write_data = self._written
        with m.If(write & (address == layout.first_word + index)):
            m.d.sync += word.eq(write_data)
        return word

    def _rows(self, m: Module) -> None:
        """Hold the row entries' records word by word, and their events side by side."""
        entries = self.config.row_entries
        layouts = [isa.layouts(self.config)[f"row{entry}"] for entry in range(entries)]
        write, address, write_data = self._written
        words = []
        for i in range(layouts[0].words):
            memory = Memory(shape=32, depth=max(2, entries), init=[])
            m.submodules[f"row_word{i}"] = memory
            write_port = memory.write_port()
            read_port = memory.read_port(domain="comb")
            m.d.comb += [write_port.data.eq(write_data), read_port.addr.eq(self.row_select)]
            for entry, layout in enumerate(layouts):
                with m.If(write & (address == layout.first_word + i)):
                    m.d.comb += [write_port.addr.eq(entry), write_port.en.eq(1)]
            words.append(read_port.data)
        m.d.comb += self.row.as_value().eq(Cat(*words))
        for entry, layout in enumerate(layouts):
            if layout.fields[0].name != "events":
                raise AssertionError("a row's events must be the first field of its record")
            m.d.comb += self.row_events[entry].eq(self._word(m, f"row{entry}", 0))
