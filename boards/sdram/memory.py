"""The controller as a board's memory, in a clock domain of its own."""

from __future__ import annotations

from amaranth.hdl import Cat, DomainRenamer, Module, Mux, Shape, Signal, Value
from amaranth.lib import data, fifo, stream, wiring
from amaranth.lib.cdc import PulseSynchronizer
from amaranth.lib.wiring import Out

from ember_hw.boards.memory import memory_members
from ember_hw.boards.sdram.chip import SdramChip
from ember_hw.boards.sdram.controller import SdramController
from ember_hw.boards.sdram.layouts import BEAT_BITS
from ember_hw.boards.sdram.pins import SdramPins
from ember_hw.config import AcceleratorConfig
from ember_hw.rtl import axi

#: Clock domain of controller and chip.
DOMAIN = "sdram"

#: Entries of the queues between the domains. A beat takes eight clocks of the chip, in which both
#: domains see each other's pointers; longer pointers would be what limits the clock.
_CROSSING_ENTRIES = 4


class SdramMemory(wiring.Component):
    """Serves the access unit's reads and the host's accesses in the order in which it took them.

    The access unit goes first, except that after one of its reads a waiting host has its turn. One
    access of the host is under way at a time.

    Parameters
    ----------
    chip : SdramChip
    clock_mhz : float
        Of the domain `DOMAIN`.
    config : AcceleratorConfig
        128 bits wide, as a burst of the chip is.
    pad_clocks : int
        See `SdramController`.

    Members
    -------
    unit, link : in
        See `memory_members`; the first byte has address 0.
    initialised : out
        The chip takes commands; requests before that wait. In the domain `DOMAIN`.
    pins : SdramPins
        In the domain `DOMAIN`.
    """

    def __init__(
        self,
        *,
        chip: SdramChip,
        clock_mhz: float,
        config: AcceleratorConfig,
        pad_clocks: int = 2,
    ):
        if config.data_width_bits != BEAT_BITS:
            raise ValueError(
                f"data_width_bits must be {BEAT_BITS} with an SDR SDRAM, "
                f"not {config.data_width_bits!r}"
            )
        self.chip = chip
        self.clock_mhz = clock_mhz
        self.config = config
        self.pad_clocks = pad_clocks
        super().__init__(
            {
                **memory_members(config),
                "initialised": Out(1),
                "pins": Out(SdramPins(chip)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        chip, unit, link = self.chip, self.unit, self.link
        asked_by = data.StructLayout({"id": len(unit.arid), "beyond": 1, "host": 1})
        m.submodules.controller = controller = DomainRenamer(DOMAIN)(
            SdramController(
                chip=chip,
                clock_mhz=self.clock_mhz,
                tag_bits=asked_by.size,
                pad_clocks=self.pad_clocks,
            )
        )
        wiring.connect(m, controller.pins, wiring.flipped(self.pins))
        m.d.comb += self.initialised.eq(controller.initialised)
        request = _crosses(m, "requests", controller.request, inwards=True)
        beat = _crosses(m, "beats", controller.response, inwards=False)

        # A host access is answered before the next is taken, so none needs to be told apart, and
        # what it writes needs no queue: it stays in a register, where it is before its request
        # reaches the other domain, until the controller has taken it.
        written = Signal(BEAT_BITS)
        m.d.comb += [
            controller.write_data.valid.eq(1),
            controller.write_data.payload.data.eq(written),
            controller.write_data.payload.bytes.eq(~0),
        ]
        m.submodules.is_written = is_written = PulseSynchronizer(DOMAIN, "sync")
        m.d.comb += is_written.i.eq(controller.write_data.ready)

        host_waits = Signal()  # an access of the host is under way
        host_turn = Signal()
        takes_host = Signal()
        host_beyond = Signal()
        write_beyond = Signal()  # and so needs no request
        asked = link.request.payload
        size_bits = (chip.size_bytes - 1).bit_length()
        beat_bits = (chip.beat_bytes - 1).bit_length()
        m.d.comb += [
            takes_host.eq(link.request.valid & ~host_waits & (host_turn | ~unit.arvalid)),
            host_beyond.eq(asked.address[size_bits:].any()),
            write_beyond.eq(asked.is_write & host_beyond),
        ]
        tag = data.View(asked_by, Value.cast(request.payload.tag))
        with m.If(takes_host):
            m.d.comb += [
                request.valid.eq(~write_beyond),
                request.payload.beat.eq(asked.address[beat_bits:]),
                request.payload.length.eq(0),
                request.payload.write.eq(asked.is_write),
                tag.host.eq(1),
                tag.beyond.eq(host_beyond),
                link.request.ready.eq(write_beyond | request.ready),
            ]
        with m.Else():
            m.d.comb += [
                request.valid.eq(unit.arvalid),
                request.payload.beat.eq(unit.araddr[beat_bits:]),
                request.payload.length.eq(unit.arlen),
                tag.id.eq(unit.arid),
                tag.beyond.eq(unit.araddr[size_bits:].any()),
                unit.arready.eq(request.ready),
            ]
        host_taken = link.request.valid & link.request.ready
        with m.If(unit.arvalid & unit.arready):
            m.d.sync += host_turn.eq(1)
        with m.Elif(host_taken):
            m.d.sync += host_turn.eq(0)

        returned = data.View(asked_by, Value.cast(beat.payload.tag))
        host_read = beat.valid & returned.host
        is_refused = Signal()
        m.d.sync += is_refused.eq(host_taken & write_beyond)
        with m.If(host_taken):
            m.d.sync += [
                host_waits.eq(1),
                link.answer_error.eq(host_beyond),
                written.eq(asked.data),
            ]
        with m.If(link.answer_valid):
            m.d.sync += host_waits.eq(0)
        m.d.comb += [
            link.answer_valid.eq(is_refused | is_written.o | host_read),
            link.answer_data.eq(beat.payload.data),
            unit.rvalid.eq(beat.valid & ~returned.host),
            unit.rid.eq(returned.id),
            unit.rdata.eq(beat.payload.data),
            unit.rlast.eq(beat.payload.last),
            unit.rresp.eq(Mux(returned.beyond, axi.Response.DECODE_ERROR, axi.Response.OKAY)),
            beat.ready.eq(unit.rready | returned.host),
        ]
        return m


def _crosses(m: Module, name: str, inner, *, inwards: bool):
    """Return the end in `sync` of a stream to or from the controller."""
    shape = inner.signature.members["payload"].shape
    outer = stream.Signature(shape).create(path=(name,))
    domains = ("sync", DOMAIN) if inwards else (DOMAIN, "sync")
    m.submodules[name] = queue = fifo.AsyncFIFOBuffered(
        width=Shape.cast(shape).width,
        depth=_CROSSING_ENTRIES + 1,
        w_domain=domains[0],
        r_domain=domains[1],
    )
    source, target = (outer, inner) if inwards else (inner, outer)
    m.d.comb += [
        queue.w_data.eq(Cat(source.payload)),
        queue.w_en.eq(source.valid),
        source.ready.eq(queue.w_rdy),
        Value.cast(target.payload).eq(queue.r_data),
        target.valid.eq(queue.r_rdy),
        queue.r_en.eq(target.ready),
    ]
    return outer
