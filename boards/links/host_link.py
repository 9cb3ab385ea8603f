"""The board's end of the host link: every block, wired."""

from __future__ import annotations

from amaranth.hdl import Cat, Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from ember_hw.boards.links.byte_engines import DescriptionEngine, DrainEngine, ErrorEngine
from ember_hw.boards.links.frame_receiver import FrameReceiver
from ember_hw.boards.links.frame_sender import FrameSender
from ember_hw.boards.links.memory_engine import MemoryEngine
from ember_hw.boards.links.ports import MemoryAccessSignature, byte_stream
from ember_hw.boards.links.queue_bytes import QueueBytes
from ember_hw.boards.links.register_engine import BOARD_ADDRESS_BITS, RegisterEngine
from ember_hw.boards.links.request_executor import ENGINES, RequestExecutor
from ember_hw.config import AcceleratorConfig
from ember_hw.rtl import axi
from ember_hw.rtl.layouts import bundle_layout, row_beat_layout

#: Cycles for which a `DRAIN` awaits the next byte of the queues.
PATIENCE_CYCLES = 1024


class HostLink(wiring.Component):
    """Serves a host over any channel of bytes; `ember_hw.boards.links.frame` has the protocol.

    Requests are executed one after the other while the next is received and the answer before is
    sent. Each moves a byte a cycle, so a channel of less is the limit.

    Parameters
    ----------
    config : AcceleratorConfig
        Of the access unit.
    description : bytes
        What the board says of itself, see `ember_hw.boards.description`.
    has_board_bus : bool
        The board has registers of its own.
    memory_address_bits : int
        Width of memory's byte addresses.
    patience_cycles : int
        Cycles for which a `DRAIN` awaits the next byte.

    Members
    -------
    i, o : streams of bytes
        From and to the physical layer. Bytes of `i` are always taken.
    bus : AXI4-Lite, manager
        Registers of the access unit.
    board_bus : AXI4-Lite, manager
        With `has_board_bus`: those of the board.
    memory : MemoryAccessSignature
        Beats of `config.data_width_bits`.
    bundle, row, or result : streams
        Of the access unit.
    queue_reset : in
        The access unit's.
    """

    def __init__(
        self,
        *,
        config: AcceleratorConfig,
        description: bytes,
        memory_address_bits: int = 32,
        has_board_bus: bool = False,
        patience_cycles: int = PATIENCE_CYCLES,
    ):
        self.config = config
        self.description = description
        self.memory_address_bits = memory_address_bits
        self.has_board_bus = has_board_bus
        self.patience_cycles = patience_cycles
        rows = stream.Signature(row_beat_layout(config))
        if config.execute == "reduce":
            members = {"result": In(rows)}
        else:
            members = {"bundle": In(stream.Signature(bundle_layout(config))), "row": In(rows)}
        if has_board_bus:
            members["board_bus"] = Out(axi.LiteSignature(address_bits=BOARD_ADDRESS_BITS))
        memory = MemoryAccessSignature(
            address_bits=memory_address_bits, data_bits=config.data_width_bits
        )
        super().__init__(
            {
                "i": In(byte_stream()),
                "o": Out(byte_stream()),
                "bus": Out(axi.LiteSignature()),
                "memory": Out(memory),
                **members,
                "queue_reset": In(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        config = self.config
        m.submodules.receiver = receiver = FrameReceiver()
        m.submodules.executor = executor = RequestExecutor(beat_bytes=config.bus_bytes)
        m.submodules.sender = sender = FrameSender()
        m.submodules.description = description = DescriptionEngine(description=self.description)
        m.submodules.registers = registers = RegisterEngine(has_board_bus=self.has_board_bus)
        m.submodules.memory = memory = MemoryEngine(
            address_bits=self.memory_address_bits, data_bits=config.data_width_bits
        )
        m.submodules.drain = drain = DrainEngine(patience_cycles=self.patience_cycles)
        m.submodules.queues = queues = QueueBytes(config=config)
        m.submodules.errors = errors = ErrorEngine()

        wiring.connect(m, wiring.flipped(self.i), receiver.i)
        wiring.connect(m, receiver.o, executor.i)
        wiring.connect(m, executor.answer, sender.i)
        wiring.connect(m, sender.o, wiring.flipped(self.o))
        named = {
            "description": description,
            "registers": registers,
            "memory": memory,
            "queues": drain,
            "errors": errors,
        }
        for (name, _), port in zip(ENGINES, executor.engines, strict=True):
            wiring.connect(m, port, named[name].engine)
        wiring.connect(m, registers.bus, wiring.flipped(self.bus))
        if self.has_board_bus:
            wiring.connect(m, registers.board_bus, wiring.flipped(self.board_bus))
        wiring.connect(m, memory.memory, wiring.flipped(self.memory))
        wiring.connect(m, queues.o, drain.queue)
        for name in ("result",) if config.execute == "reduce" else ("bundle", "row"):
            wiring.connect(m, wiring.flipped(getattr(self, name)), getattr(queues, name))
        m.d.comb += [
            executor.sender_busy.eq(sender.busy),
            executor.sender_slot.eq(sender.slot),
            executor.read_address.eq(sender.read_address),
            sender.read_data.eq(executor.read_data),
            queues.queue_reset.eq(self.queue_reset),
            errors.strobes.eq(
                Cat(
                    receiver.good,
                    receiver.bad,
                    receiver.overrun,
                    executor.repeated,
                    executor.out_of_order,
                )
            ),
        ]
        return m
