"""A LiteDRAM controller's native ports as the memory of a board."""

from __future__ import annotations

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from ember_hw.boards.ddr3.bank_port import BankPort
from ember_hw.boards.ddr3.chip import BEAT_BYTES, Ddr3Chip
from ember_hw.boards.ddr3.native_port import PLACES, NativePortSignature, part_layout
from ember_hw.boards.memory import memory_members
from ember_hw.config import AcceleratorConfig
from ember_hw.rtl import axi
from ember_hw.rtl.fifos import StreamFifo
from ember_hw.rtl.reorder_buffer import ReorderBuffer
from ember_hw.rtl.slots import select

#: Beats of the longest request, as AXI4 has it.
_LENGTH_BITS = 8
#: Requests that wait to be cut into parts.
_REQUESTS = 4
#: Parts that wait for their beats, and for their turn behind those of earlier ones.
_PARTS = 64


class DdrMemory(wiring.Component):
    """Splits requests by bank over several native ports, and puts the answers in order.

    A port of LiteDRAM waits for one bank at a time; each port here has banks of its own, so banks
    open rows while others move data. A request that reaches into the chip's next row is cut there.
    Each part takes one cycle, two after its request came; then its beats are asked for through the
    port of its bank. Beats leave in the order of the requests, one a cycle at most: the controller
    brings one every two.
    Places for them are reserved first (`PLACES` beats), so nothing is lost while the unit takes
    none.

    The access unit goes first, except that after one of its reads a waiting host has its turn. One
    access of the host is under way at a time.

    Parameters
    ----------
    chip : Ddr3Chip
    ports : int
        Native ports, a power of two, at most one a bank. Port p has the banks whose number ends in
        p.
    config : AcceleratorConfig
        128 bits wide, as a burst of the chip is.

    Members
    -------
    unit, link : in
        See `memory_members`; the first byte has address 0.
    initialised : in
        The chip can be used. While it is low every access is answered as if there were no memory.
        It must not change while an access is under way.
    ports : NativePortSignature
    write_data : out
        What a write through any port writes.
    read_data : in
        What was read, with `rdata_valid` of the port that asked.
    """

    def __init__(self, *, chip: Ddr3Chip, ports: int, config: AcceleratorConfig):
        if config.data_width_bits != 8 * BEAT_BYTES:
            raise ValueError(
                f"data_width_bits must be {8 * BEAT_BYTES} with a DDR3 SDRAM, "
                f"not {config.data_width_bits!r}"
            )
        if not 2 <= ports <= chip.banks or ports & (ports - 1):
            raise ValueError(f"ports must be a power of two from 2 to {chip.banks}, not {ports!r}")
        self.chip = chip
        self.config = config
        port = NativePortSignature(address_bits=chip.beat_address_bits)
        super().__init__(
            {
                **memory_members(config),
                "initialised": In(1),
                "ports": Out(port).array(ports),
                "write_data": Out(config.data_width_bits),
                "read_data": In(config.data_width_bits),
            }
        )

    def elaborate(self, platform):
        m = Module()
        request, refused = self._take(m)
        ports, order, buffer = self._dispatch(m, request)
        self._collect(m, ports, buffer)
        written = Cat(port.written for port in ports).any()
        self._deliver(m, order, buffer, write_ends=written | refused)
        return m

    def _take(self, m: Module):
        """Choose between unit and host.

        Return the requests for the ports, and a strobe: a write led to where no memory is. They go
        through a queue, so that the way back from the ports to whoever asks is not a long one.
        """
        unit, link = self.unit, self.link
        layout = data.StructLayout(
            {
                "beat": self.chip.beat_address_bits,
                "length": _LENGTH_BITS,
                "write": 1,
                "id": len(unit.arid),
                "host": 1,
                "absent": 1,
            }
        )
        m.submodules.requests = requests = StreamFifo(shape=layout, depth_entries=_REQUESTS)
        request = requests.i
        size_bits = (self.chip.size_bytes - 1).bit_length()
        beat_bits = (BEAT_BYTES - 1).bit_length()
        asked = link.request.payload
        host_waits = Signal()  # an access of the host is under way
        refused = Signal()
        host_turn = Signal()
        takes_host = Signal()
        host_absent = Signal()
        m.d.comb += [
            takes_host.eq(link.request.valid & ~host_waits & (host_turn | ~unit.arvalid)),
            host_absent.eq(asked.address[size_bits:].any() | ~self.initialised),
        ]
        with m.If(takes_host):
            m.d.comb += [
                request.valid.eq(~(asked.is_write & host_absent)),
                request.payload.beat.eq(asked.address[beat_bits:]),
                request.payload.write.eq(asked.is_write),
                request.payload.host.eq(1),
                request.payload.absent.eq(host_absent),
                link.request.ready.eq(request.ready | (asked.is_write & host_absent)),
            ]
        with m.Else():
            m.d.comb += [
                request.valid.eq(unit.arvalid),
                request.payload.beat.eq(unit.araddr[beat_bits:]),
                request.payload.length.eq(unit.arlen),
                request.payload.id.eq(unit.arid),
                request.payload.absent.eq(unit.araddr[size_bits:].any() | ~self.initialised),
                unit.arready.eq(request.ready),
            ]
        host_taken = link.request.valid & link.request.ready
        m.d.sync += refused.eq(host_taken & asked.is_write & host_absent)
        with m.If(host_taken):
            m.d.sync += [
                host_waits.eq(1),
                host_turn.eq(0),
                link.answer_error.eq(host_absent),
                self.write_data.eq(asked.data),
            ]
        with m.Elif(unit.arvalid & unit.arready):
            m.d.sync += host_turn.eq(1)
        with m.If(link.answer_valid):
            m.d.sync += host_waits.eq(0)
        return requests.o, refused

    def _dispatch(self, m: Module, request):
        """Cut requests where a row ends, and send each part to the port of its bank."""
        chip = self.chip
        page_bits = chip.page_beat_bits
        held = Signal.like(request.payload)  # what is left of the request
        some = Signal()
        crosses = Signal()  # it reaches into the next row
        ports = [BankPort(chip=chip) for _ in self.ports]
        for number, port in enumerate(ports):
            m.submodules[f"port{number}"] = port
            wiring.connect(m, port.port, wiring.flipped(self.ports[number]))
        order_layout = data.StructLayout(
            {"id": len(self.unit.arid), "host": 1, "absent": 1, "length": page_bits, "last": 1}
        )
        m.submodules.order = order = StreamFifo(shape=order_layout, depth_entries=_PARTS)
        m.submodules.buffer = buffer = ReorderBuffer(
            shape=self.config.data_width_bits, places=PLACES, burst_beats=1 << page_bits
        )

        first = held.beat[:page_bits]
        behind = Signal(page_bits)  # beats of the row that follow the first
        port_bits = (len(ports) - 1).bit_length()
        number = held.beat[page_bits : page_bits + port_bits]
        has_room, has_places, moves = Signal(), Signal(), Signal()
        part = Signal(part_layout(chip))
        m.d.comb += [
            behind.eq(~first),
            has_places.eq(held.write | held.absent | (buffer.fits & buffer.cleared)),
            has_room.eq(held.absent | select(number, [port.part.ready for port in ports])),
            moves.eq(some & has_room & has_places & (order.i.ready | held.write)),
            buffer.length.eq(part.length),
            buffer.take.eq(moves & ~held.write & ~held.absent),
            part.beat.eq(held.beat),
            part.length.eq(Mux(crosses, behind, held.length[:page_bits])),
            part.write.eq(held.write),
            part.place.eq(buffer.start),
            order.i.valid.eq(moves & ~held.write),
            order.i.payload.id.eq(held.id),
            order.i.payload.host.eq(held.host),
            order.i.payload.absent.eq(held.absent),
            order.i.payload.length.eq(part.length),
            order.i.payload.last.eq(~crosses),
        ]
        for at, port in enumerate(ports):
            m.d.comb += [
                port.part.payload.eq(part),
                port.part.valid.eq(moves & ~held.absent & (number == at)),
            ]

        rest = Signal(_LENGTH_BITS)
        m.d.comb += [
            rest.eq(held.length - behind - 1),
            request.ready.eq(~some | (moves & ~crosses)),
        ]
        asked = request.payload
        with m.If(request.ready):
            m.d.sync += [
                held.eq(asked),
                some.eq(request.valid),
                crosses.eq(asked.length + asked.beat[:page_bits] >= 1 << page_bits),
            ]
        with m.Elif(moves):
            m.d.sync += [
                held.beat.eq(Cat(Const(0, page_bits), held.beat[page_bits:] + 1)),
                held.length.eq(rest),
                crosses.eq(rest >= 1 << page_bits),
            ]
        return ports, order, buffer

    def _collect(self, m: Module, ports, buffer) -> None:
        """Put each beat where it belongs; `put` comes a cycle after the data."""
        m.d.sync += buffer.beat.eq(self.read_data)
        place = 0
        for port in ports:
            place = place | Mux(port.put, port.place, 0)
        m.d.comb += [
            buffer.put.eq(Cat(port.put for port in ports).any()),
            buffer.position.eq(place),
        ]

    def _deliver(self, m: Module, order, buffer, *, write_ends) -> None:
        """Hand out beats in the order of the requests."""
        unit, link = self.unit, self.link
        part = order.o.payload
        some, goes, ends = Signal(), Signal(), Signal()
        done = Signal.like(part.length)
        m.d.comb += [
            some.eq(order.o.valid & (part.absent | buffer.o.valid)),
            goes.eq(some & (unit.rready | part.host)),
            ends.eq(done == part.length),
            buffer.o.ready.eq(goes & ~part.absent),
            order.o.ready.eq(goes & ends),
            unit.rvalid.eq(some & ~part.host),
            unit.rid.eq(part.id),
            # The buffer's output may change while a beat that is absent is shown.
            unit.rdata.eq(Mux(part.absent, 0, buffer.o.payload)),
            unit.rlast.eq(ends & part.last),
            unit.rresp.eq(Mux(part.absent, axi.Response.DECODE_ERROR, axi.Response.OKAY)),
            link.answer_data.eq(buffer.o.payload),
            link.answer_valid.eq((some & part.host) | write_ends),
        ]
        with m.If(goes):
            m.d.sync += done.eq(Mux(ends, 0, done + 1))
