"""The host's view: registers, counters and microcode window, mapped by `ember_hw.registers`."""

from __future__ import annotations

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ember_hw import isa, registers
from ember_hw.config import AcceleratorConfig
from ember_hw.registers import State
from ember_hw.rtl import axi
from ember_hw.rtl.layouts import fault_layout, values_layout

COUNTER_BITS = 48


class RegisterFile(wiring.Component):
    """Answers the AXI4-Lite port, one access at a time.

    A write takes two cycles from its later half, a read five; that of a counter waits until counts
    at rest are exact. Answered with SLVERR, and without effect: an address that holds nothing, a
    write to what is read-only, a read of what is write-only, a write that is not of all four bytes,
    a microcode write while a program runs or buffers are being cleared, a start that the control
    does not take, be it one that joins or not. Words of the window beyond the program read as 0 and
    ignore writes.

    Members
    -------
    bus : AXI4-Lite, subordinate
    state, fault : in
        What STATUS, FAULT and FAULT_ADDRESS show.
    requests, completed : in
        What REQUESTS and COMPLETED show.
    start, abort : out
        Strobes, one cycle.
    joins : out
        The start of this cycle joins those before it.
    may_start, may_join : in
        A start would be taken; one that joins those before it would.
    arguments, watchdog : out
        What the host wrote.
    counter_select : out; counter_value, counters_settled : in
        The counter asked for; its value four cycles later; whether it is exact at rest.
    microcode_address, microcode_write, microcode_write_data : out; microcode_read_data : in
        The window on `MicrocodeMemory`.
    """

    def __init__(self, *, config: AcceleratorConfig):
        self.config = config
        super().__init__(
            {
                "bus": In(axi.LiteSignature()),
                "state": In(State),
                "fault": In(fault_layout(config)),
                "requests": In(range(config.request_entries + 1)),
                "completed": In(32),
                "start": Out(1),
                "abort": Out(1),
                "joins": Out(1),
                "may_start": In(1),
                "may_join": In(1),
                "arguments": Out(values_layout(config)),
                "watchdog": Out(32, init=registers.WATCHDOG_CYCLES),
                "counter_select": Out(range(registers.counters(config))),
                "counter_value": In(COUNTER_BITS),
                "counters_settled": In(1),
                "microcode_address": Out(range(registers.MICROCODE_WORDS)),
                "microcode_write": Out(1),
                "microcode_write_data": Out(32),
                "microcode_read_data": In(32),
            }
        )

    def elaborate(self, platform):
        m = Module()
        bus = self.bus
        write_address = Signal(registers.ADDRESS_WIDTH_BITS)
        write_data = Signal(32)
        write_strobe = Signal(4)
        have_address = Signal()
        have_data = Signal()
        read_address = Signal(registers.ADDRESS_WIDTH_BITS)
        reading = Signal(5)  # one-hot: select, wait for memories, answer from registers

        at_rest = Signal()
        m.d.comb += at_rest.eq(
            (self.state == State.IDLE) | (self.state == State.DONE) | (self.state == State.FAULTED)
        )

        m.d.comb += [
            bus.awready.eq(~have_address & ~bus.bvalid),
            bus.wready.eq(~have_data & ~bus.bvalid),
            bus.arready.eq((reading == 0) & ~bus.rvalid),
        ]
        with m.If(bus.awvalid & bus.awready):
            m.d.sync += [write_address.eq(bus.awaddr), have_address.eq(1)]
        with m.If(bus.wvalid & bus.wready):
            m.d.sync += [write_data.eq(bus.wdata), write_strobe.eq(bus.wstrb), have_data.eq(1)]

        write_now = Signal()
        in_window = Signal()
        m.d.comb += [
            write_now.eq(have_address & have_data & ~bus.bvalid),
            in_window.eq(write_address >= registers.MICROCODE_ADDRESS),
            self.microcode_write_data.eq(write_data),
        ]
        writable = [(registers.WATCHDOG.address, self.watchdog)]
        writable += [
            (registers.ARGUMENTS_ADDRESS + 4 * i, self.arguments[i])
            for i in range(self.config.exports)
        ]
        with m.If(write_now):
            m.d.sync += [
                have_address.eq(0),
                have_data.eq(0),
                bus.bvalid.eq(1),
                bus.bresp.eq(axi.Response.SLAVE_ERROR),
            ]
            with m.If(write_strobe == 0b1111):
                with m.If(in_window & at_rest):
                    m.d.comb += self.microcode_write.eq(1)
                    m.d.sync += bus.bresp.eq(axi.Response.OKAY)
                with m.Elif(write_address == registers.CONTROL.address):
                    wants_start, wants_abort, joins = (
                        (write_data & bit).any()
                        for bit in (
                            registers.CONTROL_START,
                            registers.CONTROL_ABORT,
                            registers.CONTROL_JOINS,
                        )
                    )
                    with m.If(~wants_start | Mux(joins, self.may_join, self.may_start)):
                        m.d.comb += [
                            self.start.eq(wants_start),
                            self.joins.eq(joins),
                            self.abort.eq(wants_abort),
                        ]
                        m.d.sync += bus.bresp.eq(axi.Response.OKAY)
                for register, held in writable:
                    with m.If(write_address == register):
                        m.d.sync += [held.eq(write_data), bus.bresp.eq(axi.Response.OKAY)]
        with m.If(bus.bvalid & bus.bready):
            m.d.sync += bus.bvalid.eq(0)

        counters_end = registers.COUNTERS_ADDRESS + 8 * registers.counters(self.config)
        reads_counter = Signal()
        m.d.comb += reads_counter.eq(
            (read_address >= registers.COUNTERS_ADDRESS) & (read_address < counters_end)
        )
        with m.If(bus.arvalid & bus.arready):
            m.d.sync += [read_address.eq(bus.araddr), reading.eq(1)]
        with m.Elif(reading[-1]):
            m.d.sync += reading.eq(0)
        with m.Else():
            # The window has one address: a write that takes it delays the read by a cycle.
            waits = (reading[-3] & self.microcode_write) | (
                reading[0] & reads_counter & at_rest & ~self.counters_settled
            )
            with m.If(~waits):
                m.d.sync += reading.eq(reading << 1)

        word = read_address[2:]
        with m.If(self.microcode_write):
            m.d.comb += self.microcode_address.eq(write_address[2:])
        with m.Else():
            m.d.comb += self.microcode_address.eq(word)
        m.d.comb += self.counter_select.eq((read_address - registers.COUNTERS_ADDRESS)[3:])

        # What is read, a cycle before the answer; a counter comes with it.
        value = Signal(32)
        is_known = Signal()
        is_counter = Signal()
        fault_address = self.fault.address
        m.d.sync += [value.eq(0), is_known.eq(1), is_counter.eq(reads_counter)]
        with m.If(read_address >= registers.MICROCODE_ADDRESS):
            m.d.sync += value.eq(self.microcode_read_data)
        with m.Elif(~reads_counter), m.Switch(word):
            for register, shown in (
                (registers.MAGIC, registers.MAGIC_VALUE),
                (registers.ISA_VERSION, isa.ISA_VERSION),
                (registers.CONFIG_HASH, self.config.hash()),
                (registers.STATUS, self.state),
                (registers.FAULT_ADDRESS_LOW, fault_address[:32]),
                (registers.FAULT_ADDRESS_HIGH, fault_address[32:]),
                (registers.REQUESTS, self.requests),
                (registers.COMPLETED, self.completed),
                (registers.WATCHDOG, self.watchdog),
            ):
                with m.Case(register.address // 4):
                    m.d.sync += value.eq(shown)
            for i in range(self.config.exports):
                with m.Case(registers.ARGUMENTS_ADDRESS // 4 + i):
                    m.d.sync += value.eq(self.arguments[i])
            with m.Case(registers.FAULT.address // 4):
                m.d.sync += value.eq(
                    self.fault.code | (self.fault.unit << 8) | (self.fault.stream << 16)
                )
            with m.Default():
                m.d.sync += is_known.eq(0)

        high_word = Signal(COUNTER_BITS - 32)
        with m.If(reading[-1]):
            m.d.sync += [
                bus.rvalid.eq(1),
                bus.rdata.eq(value),
                bus.rresp.eq(Mux(is_known, axi.Response.OKAY, axi.Response.SLAVE_ERROR)),
            ]
            with m.If(is_counter & read_address[2]):
                m.d.sync += bus.rdata.eq(high_word)
            with m.Elif(is_counter):
                m.d.sync += [
                    bus.rdata.eq(self.counter_value),
                    high_word.eq(self.counter_value[32:]),
                ]
        with m.If(bus.rvalid & bus.rready):
            m.d.sync += bus.rvalid.eq(0)
        return m
