"""All memory ports of an access unit: requests spread by address, beats merged."""

from __future__ import annotations

from amaranth.hdl import Assert, Cat, Const, Module, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from ember_hw.config import AcceleratorConfig
from ember_hw.rtl import axi
from ember_hw.rtl.burst_splitter import chunk_beats
from ember_hw.rtl.credits import Credits
from ember_hw.rtl.fifos import StreamFifo
from ember_hw.rtl.layouts import (
    index_beat_layout,
    port_of,
    read_beat_layout,
    read_request_layout,
)
from ember_hw.rtl.memory_port import MemoryPort, port_beat_layout
from ember_hw.rtl.stream_arbiter import StreamArbiter

#: Requests that wait for one port while others go on: no port has to wait for another's turn.
REQUEST_ENTRIES = 16


class MemoryPorts(wiring.Component):
    """Sends each read to the port that its address belongs to, and returns one beat a cycle.

    Reads of one client, tag and port return in order. With one port a beat is handed on the cycle
    after R. With several, requests wait for their port in queues, and beats in a queue at each
    port, from which they are taken in turn; a port asks only for beats that its queue has room for,
    so RREADY is always high; a read takes six cycles more.

    Members
    -------
    index_request, row_request : streams, in
    index_valid, index_beat, row_valid, row_beat : out
        Returned beats of both clients; with an own index port they may come in the same cycle.
    stop : in
        Ask for nothing more: requests that have not been shown on AR are dropped.
    idle : out
        No read is in flight or waits.
    waiting : out
        A request waits for ARREADY.
    memory : AXI read channels, manager, one a port
    index_memory : AXI read channels, manager
        With `config.index_port_bits`.
    """

    def __init__(self, *, config: AcceleratorConfig):
        self.config = config
        members = {
            "index_request": In(stream.Signature(read_request_layout(config))),
            "row_request": In(stream.Signature(read_request_layout(config))),
            "index_valid": Out(1),
            "index_beat": Out(index_beat_layout(config)),
            "row_valid": Out(1),
            "row_beat": Out(read_beat_layout(config)),
            "stop": In(1),
            "idle": Out(1),
            "waiting": Out(1),
            "memory": Out(axi.ReadSignature(config)).array(config.memory_ports),
        }
        if config.index_port_bits:
            members["index_memory"] = Out(axi.ReadSignature(config, index=True))
        super().__init__(members)

    def elaborate(self, platform):
        m = Module()
        config = self.config
        ports = [MemoryPort(config=config) for _ in range(config.memory_ports)]
        for number, port in enumerate(ports):
            m.submodules[f"port{number}"] = port
            wiring.connect(m, port.axi, wiring.flipped(self.memory[number]))
        clients = {"row": self.row_request}
        if config.index_port_bits:
            m.submodules.index_port = index_port = MemoryPort(config=config, index=True)
            wiring.connect(m, index_port.axi, wiring.flipped(self.index_memory))
            wiring.connect(m, wiring.flipped(self.index_request), index_port.index_request)
            m.d.comb += [
                self.index_valid.eq(index_port.index_valid),
                *_copy(self.index_beat, index_port.beat),
                index_port.stop.eq(self.stop),
            ]
            all_ports = [*ports, index_port]
        else:
            clients["index"] = self.index_request
            all_ports = ports
        if config.memory_ports == 1:
            quiet = self._connect_one(m, ports[0], clients)
        else:
            quiet = self._connect_several(m, ports, clients)
        m.d.comb += [
            self.idle.eq(Cat(*(port.idle for port in all_ports), quiet).all()),
            self.waiting.eq(Cat(port.waiting for port in all_ports).any()),
        ]
        return m

    def _connect_one(self, m: Module, port: MemoryPort, clients: dict):
        m.d.comb += port.stop.eq(self.stop)
        for name, request in clients.items():
            wiring.connect(m, wiring.flipped(request), getattr(port, f"{name}_request"))
            m.d.comb += [
                getattr(self, f"{name}_valid").eq(getattr(port, f"{name}_valid")),
                *_copy(getattr(self, f"{name}_beat"), port.beat),
            ]
        return 1

    def _connect_several(self, m: Module, ports: list[MemoryPort], clients: dict):
        """Spread the requests and merge the beats. Return whether nothing is in the queues."""
        config = self.config
        beat_layout = data.StructLayout(
            {"is_index": 1, "beat": port_beat_layout(config, index=False)}
        )
        m.submodules.arbiter = arbiter = StreamArbiter(shape=beat_layout, inputs=len(ports))
        empty = []
        request_ready = {name: Signal(len(ports), name=f"{name}_ready") for name in clients}
        for number, port in enumerate(ports):
            queues = {}
            for name, request in clients.items():
                queue = StreamFifo(shape=read_request_layout(config), depth_entries=REQUEST_ENTRIES)
                m.submodules[f"{name}_queue{number}"] = queue
                is_here = port_of(request.payload.address, config) == number
                m.d.comb += [
                    queue.i.payload.eq(request.payload),
                    queue.i.valid.eq(request.valid & is_here & ~self.stop),
                    request_ready[name][number].eq(is_here & queue.i.ready & ~self.stop),
                ]
                queues[name] = queue
                empty.append(queue.level == 0)
            credits = Credits(
                places=config.reorder_buffer_beats,
                burst_beats=max(chunk_beats(config), config.line_beats),
            )
            m.submodules[f"credits{number}"] = credits
            self._admit(m, port, queues, credits)

            beats = StreamFifo(shape=beat_layout, depth_entries=config.reorder_buffer_beats)
            m.submodules[f"beats{number}"] = beats
            wiring.connect(m, beats.o, arbiter.i[number])
            m.d.comb += [
                beats.i.valid.eq(port.index_valid | port.row_valid),
                beats.i.payload.is_index.eq(port.index_valid),
                beats.i.payload.beat.eq(port.beat),
                credits.give.eq(beats.o.valid & beats.o.ready),
            ]
            m.d.sync += Assert(~(beats.i.valid & ~beats.i.ready))
            empty.append(credits.used == 0)

        merged = arbiter.o.payload
        m.d.comb += arbiter.o.ready.eq(1)
        for name, request in clients.items():
            m.d.comb += [
                request.ready.eq(request_ready[name].any()),
                getattr(self, f"{name}_valid").eq(
                    arbiter.o.valid & (merged.payload.is_index == (name == "index"))
                ),
                *_copy(getattr(self, f"{name}_beat"), merged.payload.beat, merged.source),
            ]
        return Cat(*empty, ~arbiter.o.valid).all()

    def _admit(self, m: Module, port: MemoryPort, queues: dict, credits: Credits) -> None:
        """Let a port have the requests whose beats have room; an index line's goes first."""
        m.d.comb += port.stop.eq(self.stop)
        before = Const(0)
        takes = []
        for name in ("index", "row"):
            if name not in queues:
                continue
            waiting, request = queues[name].o, getattr(port, f"{name}_request")
            with m.If(~before):
                m.d.comb += credits.length.eq(waiting.payload.length)
            m.d.comb += [
                request.payload.eq(waiting.payload),
                request.valid.eq(waiting.valid & ~before & credits.fits),
                waiting.ready.eq((request.ready & ~before & credits.fits) | self.stop),
            ]
            takes.append(request.valid & request.ready)
            before = before | waiting.valid
        m.d.comb += credits.take.eq(Cat(*takes).any())


def _copy(beat, port_beat, port=0) -> list:
    """Return the statements that copy a port's beat, whose tag has no port's number yet."""
    names = ("data", "last", "response")
    copied = [getattr(beat, name).eq(getattr(port_beat, name)) for name in names]
    return [beat.tag.eq(Cat(port_beat.tag, port)), *copied]
