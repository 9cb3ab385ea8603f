"""What every board holds: the access unit and its link to the host, wired."""

from __future__ import annotations

from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ember_hw.boards.description import BoardDescription
from ember_hw.boards.links.host_link import PATIENCE_CYCLES, HostLink
from ember_hw.boards.links.ports import MemoryAccessSignature, byte_stream
from ember_hw.boards.links.register_engine import BOARD_ADDRESS_BITS
from ember_hw.rtl import axi
from ember_hw.rtl.access_unit import AccessUnit


class BoardCore(wiring.Component):
    """The access unit and `HostLink`; a board's top adds clock, pins and memory.

    Parameters
    ----------
    description : BoardDescription
        Its config is that of the access unit, which has no input queue on a board.
    memory_address_bits : int
        Width of the addresses of `link_memory`.
    has_board_bus : bool
        The board has registers of its own.
    patience_cycles : int
        See `HostLink`.

    Members
    -------
    i, o : streams of bytes
        From and to the physical layer.
    unit_memory : AXI read channels, managers
        Each memory port of the access unit.
    unit_index_memory : AXI read channels, manager
        With `config.index_port_bits`.
    link_memory : MemoryAccessSignature
        The host's accesses.
    board_bus : AXI4-Lite, manager
        With `has_board_bus`.
    irq : out
        The access unit's.
    """

    def __init__(
        self,
        *,
        description: BoardDescription,
        memory_address_bits: int = 32,
        has_board_bus: bool = False,
        patience_cycles: int = PATIENCE_CYCLES,
    ):
        config = description.config
        if config.input_queue:
            raise ValueError(
                f"input_queue of config {config.name!r} must be 0 on a board, "
                f"not {config.input_queue!r}"
            )
        if config.results != "stream":
            raise ValueError(
                f"results of config {config.name!r} must be 'stream' on a board, "
                f"not {config.results!r}"
            )
        self.description = description
        self.config = config
        self.memory_address_bits = memory_address_bits
        self.has_board_bus = has_board_bus
        self.patience_cycles = patience_cycles
        members = {}
        if config.index_port_bits:
            members["unit_index_memory"] = Out(axi.ReadSignature(config, index=True))
        if has_board_bus:
            members["board_bus"] = Out(axi.LiteSignature(address_bits=BOARD_ADDRESS_BITS))
        memory = MemoryAccessSignature(
            address_bits=memory_address_bits, data_bits=config.data_width_bits
        )
        super().__init__(
            {
                "i": In(byte_stream()),
                "o": Out(byte_stream()),
                "unit_memory": Out(axi.ReadSignature(config)).array(config.memory_ports),
                **members,
                "link_memory": Out(memory),
                "irq": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        config = self.config
        m.submodules.unit = unit = AccessUnit(config=config)
        m.submodules.link = link = HostLink(
            config=config,
            description=self.description.to_bytes(),
            memory_address_bits=self.memory_address_bits,
            has_board_bus=self.has_board_bus,
            patience_cycles=self.patience_cycles,
        )
        wiring.connect(m, wiring.flipped(self.i), link.i)
        wiring.connect(m, link.o, wiring.flipped(self.o))
        wiring.connect(m, link.bus, unit.bus)
        wiring.connect(m, link.memory, wiring.flipped(self.link_memory))
        if self.has_board_bus:
            wiring.connect(m, link.board_bus, wiring.flipped(self.board_bus))
        for inner, outer in zip(unit.memory, self.unit_memory, strict=True):
            wiring.connect(m, inner, wiring.flipped(outer))
        if config.index_port_bits:
            wiring.connect(m, unit.index_memory, wiring.flipped(self.unit_index_memory))
        for name in ("result",) if config.execute == "reduce" else ("bundle", "row"):
            wiring.connect(m, getattr(unit, name), getattr(link, name))
        m.d.comb += [link.queue_reset.eq(unit.queue_reset), self.irq.eq(unit.irq)]
        return m
