"""The access unit: every block, wired."""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Mux, ResetInserter
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from ember_hw import isa
from ember_hw.config import AcceleratorConfig
from ember_hw.registers import FaultCode
from ember_hw.rtl import axi
from ember_hw.rtl.control import Control
from ember_hw.rtl.counters import Counters
from ember_hw.rtl.datapath import Datapath
from ember_hw.rtl.execute.reduce_unit import ReduceUnit
from ember_hw.rtl.execute.result_writer import ResultWriter
from ember_hw.rtl.layouts import bundle_layout, index_word_layout, row_beat_layout
from ember_hw.rtl.memory_ports import MemoryPorts
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
    memory : AXI read channels, managers
        Each memory port.
    index_memory : AXI read channels, manager
        With `config.index_port_bits`.
    index_queue : stream, in
        With `config.input_queue`: words of lines for the streams that take them from here.
    bundle, row : streams, out
        With `config.execute` ``queues``.
    result : stream, out
        With `config.execute` ``reduce`` and `config.results` ``stream``: see `ReduceUnit`.
    result_memory : AXI write channels, manager
        With `config.results` ``memory``: see `ResultWriter`.
    queue_reset : out
        Resets the execute side's end of both queues; high in the state RESETTING.
    irq : out
        High for one cycle when a program has ended or was stopped.
    """

    def __init__(self, *, config: AcceleratorConfig):
        self.config = config
        members = {}
        if config.index_port_bits:
            members["index_memory"] = Out(axi.ReadSignature(config, index=True))
        if config.input_queue:
            members["index_queue"] = In(stream.Signature(index_word_layout(config)))
        rows = stream.Signature(row_beat_layout(config))
        if config.results == "memory":
            members["result_memory"] = Out(axi.WriteSignature(config))
        elif config.execute == "reduce":
            members["result"] = Out(rows)
        else:
            members |= {"bundle": Out(stream.Signature(bundle_layout(config))), "row": Out(rows)}
        super().__init__(
            {
                "bus": In(axi.LiteSignature()),
                "memory": Out(axi.ReadSignature(config)).array(config.memory_ports),
                **members,
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
        m.submodules.ports = ports = MemoryPorts(config=config)
        datapath = Datapath(config=config)
        faults = list(datapath.faults)
        if config.execute == "reduce":
            reduce = ReduceUnit(config=config)
            faults.append(reduce.fault)
        if config.results == "memory":
            writer = ResultWriter(config=config)
            faults += [writer.bounds_fault, writer.memory_fault]
        m.submodules.control = control = Control(config=config, fault_ports=len(faults))
        m.submodules.datapath = ResetInserter(control.reset)(datapath)

        wiring.connect(m, wiring.flipped(self.bus), registers.bus)
        for inner, outer in zip(ports.memory, self.memory, strict=True):
            wiring.connect(m, inner, wiring.flipped(outer))
        if config.index_port_bits:
            wiring.connect(m, ports.index_memory, wiring.flipped(self.index_memory))
        if config.input_queue:
            wiring.connect(m, wiring.flipped(self.index_queue), datapath.index_queue)
        wiring.connect(m, datapath.index_request, ports.index_request)
        wiring.connect(m, datapath.row_request, ports.row_request)
        wiring.connect(m, control.root, datapath.root)
        for path in register_paths(config):
            name = record_name(path)
            m.d.comb += getattr(datapath, name).eq(getattr(microcode, name))
        for held, seen in zip(microcode.row_events, datapath.row_events, strict=True):
            m.d.comb += seen.eq(held)
        for reported, seen in zip(faults, control.faults, strict=True):
            wiring.connect(m, reported, seen)
        verdict, ended, moves = microcode.verdict, datapath.ended, datapath.moves
        execute_blocks, idle = datapath.blocked_execute, ports.idle
        if config.execute == "reduce":
            m.submodules.reduce = ResetInserter(control.queue_reset)(reduce)
            self._reduce(m, reduce, control, microcode, datapath)
            legal, ended, moves = reduce.legal, reduce.ended, moves | reduce.moves
            if config.results == "memory":
                m.submodules.writer = ResetInserter(control.queue_reset)(writer)
                self._write(m, writer, reduce, control, microcode)
                m.d.comb += writer.restart.eq(control.begins & ~registers.joins)
                legal, ended, moves = legal & writer.legal, writer.ended, moves | writer.moves
                # While memory owes an answer, it holds the queues.
                execute_blocks, idle = execute_blocks & writer.idle, idle & writer.idle
            illegal = (verdict == FaultCode.NONE) & ~legal
            verdict = Mux(illegal, FaultCode.ILLEGAL_REDUCE_MICROCODE, verdict)
        else:
            wiring.connect(m, datapath.bundle, wiring.flipped(self.bundle))
            wiring.connect(m, datapath.row, wiring.flipped(self.row))

        m.d.comb += [
            registers.state.eq(control.state),
            registers.fault.eq(control.fault),
            registers.requests.eq(control.requests),
            registers.completed.eq(control.completed),
            registers.may_start.eq(control.may_start),
            registers.may_join.eq(control.may_join),
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
            control.progress.eq(moves | ports.index_valid | ports.row_valid),
            control.execute_blocks.eq(execute_blocks),
            control.verdict.eq(verdict),
            control.memory_idle.eq(idle),
            control.cleared.eq(datapath.cleared),
            control.ended.eq(ended),
            ports.stop.eq(control.stop),
            datapath.queue_reset.eq(control.queue_reset),
            self.queue_reset.eq(control.queue_reset),
            datapath.index_valid.eq(ports.index_valid),
            datapath.index_beat.eq(ports.index_beat),
            datapath.row_valid.eq(ports.row_valid),
            datapath.row_beat.eq(ports.row_beat),
            self.irq.eq(control.irq),
        ]

        # Reads in flight without a beat to show are the memory's; see Counters for the order of
        # blame.
        m.d.comb += [
            counters.start.eq(control.begins),
            counters.running.eq(control.running),
            counters.row_beat.eq(ports.row_valid),
            counters.index_beat.eq(ports.index_valid),
            counters.stalls.eq(
                Cat(
                    datapath.blocked_execute,
                    datapath.blocked_outstanding,
                    datapath.blocked_reorder,
                    ports.waiting,
                    ~ports.idle,
                )
            ),
            counters.bundle.eq(datapath.bundle.valid & datapath.bundle.ready),
            counters.lines.eq(datapath.lines_asked),
            counters.rows.eq(datapath.rows_asked),
            counters.row_bytes.eq(datapath.row_bytes),
            counters.select.eq(registers.counter_select),
        ]
        for seen, level in zip(counters.levels, datapath.levels, strict=True):
            m.d.comb += seen.eq(level)
        return m

    def _reduce(self, m: Module, reduce: ReduceUnit, control, microcode, datapath) -> None:
        """Put the reduce unit behind the queues."""
        config = self.config
        root_end = 1 << isa.event_bit(isa.Event.END, 0, config)  # always told
        wiring.connect(m, datapath.bundle, reduce.bundle)
        wiring.connect(m, datapath.row, reduce.row)
        for held, seen in zip(microcode.row_events, reduce.row_events, strict=True):
            m.d.comb += seen.eq(held)
        for entry, step in enumerate(reduce.steps):
            m.d.comb += step.eq(getattr(microcode, f"reduce{entry}"))
        m.d.comb += [
            reduce.header.eq(microcode.reduce),
            reduce.told_events.eq(microcode.issue.events | root_end),
            reduce.taken.eq(datapath.ended),
        ]
        if config.results == "stream":
            m.d.comb += [
                self.result.payload.eq(reduce.result.payload),
                self.result.valid.eq(reduce.result.valid & ~control.queue_reset),
                reduce.result.ready.eq(self.result.ready & ~control.queue_reset),
            ]

    def _write(self, m: Module, writer: ResultWriter, reduce, control, microcode) -> None:
        """Put the writer behind the reduce unit."""
        wiring.connect(m, reduce.result, writer.result)
        wiring.connect(m, writer.axi, wiring.flipped(self.result_memory))
        m.d.comb += [
            writer.region.eq(microcode.result),
            writer.left.eq(reduce.ended),
            writer.stop.eq(control.stop),
        ]
