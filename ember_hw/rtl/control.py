"""Starts a program, notices its end, and stops it at the first fault."""

from __future__ import annotations

from amaranth.hdl import Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from ember_hw.config import AcceleratorConfig
from ember_hw.registers import NO_UNIT, FaultCode, State
from ember_hw.rtl.layouts import fault_layout, token_layout


class FaultSignature(wiring.Signature):
    """A fault report: counts where `valid` is high; the first one of a program is kept."""

    def __init__(self, config: AcceleratorConfig):
        self.config = config
        super().__init__({"valid": Out(1), "payload": Out(fault_layout(config))})

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FaultSignature) and self.config == other.config


class Control(wiring.Component):
    """The life of a program.

    RESETTING -> IDLE -> RUNNING -> DONE; from RUNNING a fault or an abort leads to DRAINING: no
    further read is asked for, and the reads in flight are awaited. Then all between registers and
    memory port is reset, and with it both queues up to the execute side (RESETTING), and the state
    is FAULTED.

    Members
    -------
    start, abort : in
        Strobes from the host.
    verdict : in
        The microcode's verdict; other than NONE it turns a start into a fault.
    faults : in
        Reports of the blocks, the first listed wins within a cycle.
    ended : in
        The program's last bundle and row have been delivered.
    reads_idle : in
        No read is in flight.
    cleared : in
        The buffers are ready after a reset.
    state, fault, running : out
        What the registers show; `running` is high from the start to the end of a program, faults
        included.
    stop : out
        No new read may be asked for.
    reset : out
        Resets the datapath, for one cycle.
    queue_reset : out
        High in RESETTING: the output queues are silent, the execute side starts afresh.
    root : stream, out
        One token a program: the parent of the outermost loop.
    irq : out
        High for one cycle when a program has ended or was stopped.
    """

    def __init__(self, *, config: AcceleratorConfig, fault_ports: int):
        if fault_ports < 1:
            raise ValueError(f"fault_ports must be at least 1, not {fault_ports!r}")
        self.config = config
        self.fault_ports = fault_ports
        super().__init__(
            {
                "start": In(1),
                "abort": In(1),
                "verdict": In(FaultCode),
                "faults": In(FaultSignature(config)).array(fault_ports),
                "ended": In(1),
                "reads_idle": In(1),
                "cleared": In(1),
                "state": Out(State, init=State.RESETTING),
                "fault": Out(fault_layout(config)),
                "running": Out(1),
                "stop": Out(1),
                "reset": Out(1),
                "queue_reset": Out(1),
                "root": Out(stream.Signature(token_layout(config))),
                "irq": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        faulted = Signal()
        arrived = Signal(FaultSignature(self.config).members["payload"].shape)
        any_fault = Signal()

        # One register between the blocks and the state, so that no block's compare reaches it.
        m.d.sync += any_fault.eq(0)
        with m.If(self.abort):
            m.d.sync += [
                any_fault.eq(1),
                arrived.code.eq(FaultCode.ABORTED),
                arrived.unit.eq(NO_UNIT),
                arrived.stream.eq(0),
                arrived.address.eq(0),
            ]
        for port in reversed(range(self.fault_ports)):
            with m.If(self.faults[port].valid):
                m.d.sync += [any_fault.eq(1), arrived.eq(self.faults[port].payload)]

        m.d.sync += self.irq.eq(0)
        with m.If(self.root.ready):
            m.d.sync += self.root.valid.eq(0)
        m.d.comb += [
            self.running.eq((self.state == State.RUNNING) | (self.state == State.DRAINING)),
            self.stop.eq(self.state != State.RUNNING),
            self.queue_reset.eq(self.state == State.RESETTING),
        ]

        with m.Switch(self.state):
            with m.Case(State.RESETTING):
                m.d.sync += self.reset.eq(0)
                with m.If(~self.reset & self.cleared):
                    m.d.sync += [
                        self.state.eq(State.IDLE),
                        faulted.eq(0),
                    ]
                    with m.If(faulted):
                        m.d.sync += [self.state.eq(State.FAULTED), self.irq.eq(1)]
            with m.Case(State.IDLE, State.DONE, State.FAULTED):
                with m.If(self.start):
                    m.d.sync += self.fault.eq(0)
                    with m.If(self.verdict == FaultCode.NONE):
                        m.d.sync += [self.state.eq(State.RUNNING), self.root.valid.eq(1)]
                    with m.Else():
                        m.d.sync += [
                            self.state.eq(State.FAULTED),
                            self.irq.eq(1),
                            self.fault.code.eq(self.verdict),
                            self.fault.unit.eq(NO_UNIT),
                        ]
            with m.Case(State.RUNNING):
                with m.If(any_fault):
                    m.d.sync += [self.state.eq(State.DRAINING), self.fault.eq(arrived)]
                with m.Elif(self.ended):
                    m.d.sync += [self.state.eq(State.DONE), self.irq.eq(1)]
            with m.Case(State.DRAINING):
                with m.If(self.reads_idle):
                    m.d.sync += [
                        self.state.eq(State.RESETTING),
                        self.reset.eq(1),
                        self.root.valid.eq(0),
                        faulted.eq(1),
                    ]
        return m
