"""The access unit: every block, wired."""

from __future__ import annotations

from amaranth.hdl import Cat, Module, ResetInserter
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from ember_hw.config import AcceleratorConfig
from ember_hw.rtl import axi
from ember_hw.rtl.control import Control
from ember_hw.rtl.counters import Counters
from ember_hw.rtl.datapath import Datapath
from ember_hw.rtl.layouts import bundle_layout, row_beat_layout
from ember_hw.rtl.memory_port import MemoryPort
from ember_hw.rtl.microcode_memory import MicrocodeMemory, record_name, register_paths
from ember_hw.rtl.register_file import RegisterFile


class AccessUnit(wiring.Component):
    """Walks loops, loads indices, gathers rows, and delivers bundles and rows in program order.

    The host writes microcode and starts it through `bus`; `memory` reads; `bundle` is the control
    queue and `row` the data queue. Rows belong to the bundles in order: a bundle's rows follow
    those of the bundles before it. A bundle never waits for a row, so an execute side that takes a
    bundle, then its rows, cannot deadlock.

    After a fault or an abort what the queues brought is void, and the rows of the last bundles may
    never come. So the queues have a reset of their own: while `queue_reset` is high they show
    nothing, and the execute side drops what it holds. The next program may start when STATUS says
    so.

    Members
    -------
    bus : AXI4-Lite, subordinate
    memory : AXI4 read channels, manager
    bundle, row : streams, out
    queue_reset : out
        Resets the execute side's end of both queues; high in the state RESETTING.
    irq : out
        High for one cycle when a program has ended or was stopped.
    """

    def __init__(self, *, config: AcceleratorConfig):
        self.config = config
        super().__init__(
            {
                "bus": In(axi.LiteSignature()),
                "memory": Out(axi.ReadSignature(config)),
                "bundle": Out(stream.Signature(bundle_layout(config))),
                "row": Out(stream.Signature(row_beat_layout(config))),
                "queue_reset": Out(1),
                "irq": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        config = self.config
        m.submodules.registers = registers = RegisterFile(config=config)
        m.submodules.microcode = microcode = MicrocodeMemory(config=config)
        m.submodules.counters = counters = Counters(config=config)
        m.submodules.port = port = MemoryPort(config=config)
        datapath = Datapath(config=config)
        m.submodules.control = control = Control(
            config=config, fault_ports=1 + len(datapath.faults)
        )
        m.submodules.datapath = ResetInserter(control.reset)(datapath)

        wiring.connect(m, wiring.flipped(self.bus), registers.bus)
        wiring.connect(m, port.axi, wiring.flipped(self.memory))
        wiring.connect(m, datapath.index_request, port.index_request)
        wiring.connect(m, datapath.row_request, port.row_request)
        wiring.connect(m, datapath.bundle, wiring.flipped(self.bundle))
        wiring.connect(m, datapath.row, wiring.flipped(self.row))
        wiring.connect(m, control.root, datapath.root)
        for path in register_paths(config):
            name = record_name(path)
            m.d.comb += getattr(datapath, name).eq(getattr(microcode, name))
        for held, seen in zip(microcode.row_events, datapath.row_events, strict=True):
            m.d.comb += seen.eq(held)
        for reported, seen in zip([port.fault, *datapath.faults], control.faults, strict=True):
            wiring.connect(m, reported, seen)

        m.d.comb += [
            registers.state.eq(control.state),
            registers.fault.eq(control.fault),
            registers.requests.eq(control.requests),
            registers.completed.eq(control.completed),
            registers.may_start.eq(control.may_start),
            registers.counter_value.eq(counters.value),
            registers.counters_settled.eq(counters.settled),
            registers.microcode_read_data.eq(microcode.read_data),
            microcode.address.eq(registers.microcode_address),
            microcode.write.eq(registers.microcode_write),
            microcode.write_data.eq(registers.microcode_write_data),
            microcode.row_select.eq(datapath.row_select),
            datapath.row_record.eq(microcode.row),
            control.start.eq(registers.start),
            control.abort.eq(registers.abort),
            control.arguments.eq(registers.arguments),
            control.watchdog.eq(registers.watchdog),
            control.progress.eq(datapath.moves | port.progress),
            control.execute_blocks.eq(datapath.blocked_execute),
            control.verdict.eq(microcode.verdict),
            control.reads_idle.eq(port.idle),
            control.cleared.eq(datapath.cleared),
            control.ended.eq(datapath.ended),
            port.stop.eq(control.stop),
            datapath.queue_reset.eq(control.queue_reset),
            self.queue_reset.eq(control.queue_reset),
            datapath.word_valid.eq(port.word_valid),
            datapath.word.eq(port.word),
            datapath.fits.eq(port.fits),
            datapath.word_last.eq(port.word_last),
            datapath.row_valid.eq(port.row_valid),
            datapath.beat.eq(port.beat),
            self.irq.eq(control.irq),
        ]

        # Reads in flight without a beat to show are the memory's; see Counters for the order of
        # blame.
        m.d.comb += [
            counters.start.eq(control.begins),
            counters.running.eq(control.running),
            counters.row_beat.eq(port.row_beat),
            counters.index_beat.eq(port.index_beat),
            counters.stalls.eq(
                Cat(
                    datapath.blocked_execute,
                    datapath.blocked_outstanding,
                    datapath.blocked_reorder,
                    port.waiting,
                    ~port.idle,
                )
            ),
            counters.bundle.eq(self.bundle.valid & self.bundle.ready),
            counters.lines.eq(datapath.lines_asked),
            counters.rows.eq(datapath.rows_asked),
            counters.row_bytes.eq(datapath.row_bytes),
            counters.select.eq(registers.counter_select),
        ]
        for seen, level in zip(counters.levels, datapath.levels, strict=True):
            m.d.comb += seen.eq(level)
        return m
