"""A memory that is written several words at a time and read one."""

from __future__ import annotations

from amaranth.hdl import Cat, Const, Module
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from ember_hw.rtl.fifos import NO_BYPASS


class WideMemory(wiring.Component):
    """Narrows words without a multiplexer: block memories have ports of different widths.

    A read of the group that is written in the same cycle gives anything. The group's words are
    write ports whose addresses differ in constant bits: a synthesiser that does not make one wide
    port of them (Yosys does) builds the memory of registers.

    Parameters
    ----------
    word_bits : int
    group_words : int
        Words written at a time, a power of two.
    groups : int
        Depth, 2 or more.

    Members
    -------
    write, write_group, write_data : in
        Words ``write_group * group_words`` and those behind it, the first in the lowest bits.
    read, read_word : in; read_data : out
        A word, one cycle later; holds while `read` is low.
    """

    def __init__(self, *, word_bits: int, group_words: int, groups: int):
        if group_words < 1 or group_words & (group_words - 1):
            raise ValueError(f"group_words must be a power of two, not {group_words!r}")
        if groups < 2:
            raise ValueError(f"groups must be at least 2, not {groups!r}")
        self.word_bits = word_bits
        self.group_words = group_words
        self.groups = groups
        super().__init__(
            {
                "write": In(1),
                "write_group": In(range(groups)),
                "write_data": In(word_bits * group_words),
                "read": In(1),
                "read_word": In(range(groups * group_words)),
                "read_data": Out(word_bits),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.words = words = Memory(
            shape=self.word_bits,
            depth=self.groups * self.group_words,
            init=[],
            attrs=NO_BYPASS,
        )
        word_select_bits = (self.group_words - 1).bit_length()
        for i in range(self.group_words):
            port = words.write_port()
            m.d.comb += [
                port.addr.eq(Cat(Const(i, word_select_bits), self.write_group)),
                port.data.eq(self.write_data.word_select(i, self.word_bits)),
                port.en.eq(self.write),
            ]
        read = words.read_port()
        m.d.comb += [
            read.addr.eq(self.read_word),
            read.en.eq(self.read),
            self.read_data.eq(read.data),
        ]
        return m
