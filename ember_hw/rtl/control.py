"""Starts requests, notices their ends, and stops all at the first fault."""

from __future__ import annotations

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from ember_hw.config import AcceleratorConfig
from ember_hw.registers import NO_UNIT, FaultCode, State
from ember_hw.rtl.faults import FaultSignature, first_fault
from ember_hw.rtl.layouts import fault_layout, token_layout, values_layout


class Control(wiring.Component):
    """The life of requests.

    RESETTING -> IDLE -> RUNNING -> DONE; a start while RUNNING joins the requests that wait. From
    RUNNING a fault, an abort or the watchdog leads to DRAINING: no further read or write is asked
    for, and those in flight are awaited. Then all between registers and memory port is reset, and
    with it both queues up to the execute side and the requests that waited (RESETTING), and the
    state is FAULTED. Memory that never answers leaves the unit DRAINING: only a reset of the whole
    system may follow.

    A start in FAULTED begins afresh and forgets the fault. One that belongs to a request before it
    must not: it waits for `may_join`, which falls with the fault that voids that request, and rises
    only after a start that begins afresh. Both are of the cycle of the start, so that there is no
    time between the look and the start in which a fault could come.

    Members
    -------
    start, abort : in
        Strobes from the host.
    may_start : out
        A start would be taken.
    may_join : out
        The same, and all requests since the latest start in IDLE or FAULTED run or have ended well:
        the state is RUNNING or DONE.
    arguments : in
        Of the request that starts; they stay for a cycle after it.
    watchdog : in
        Cycles without progress that count as a fault; 0: never. Constant while nothing moves.
    progress : in
        Something moved in this cycle.
    execute_blocks : in
        A queue is full: what does not move is the execute side.
    verdict : in
        The microcode's verdict; other than NONE it turns a start into a fault.
    faults : in
        Reports of the blocks, the first listed wins within a cycle.
    ended : in
        Strobe: a request's last bundle and row have been delivered. Void after a fault.
    memory_idle : in
        No read is in flight, and no write.
    cleared : in
        The buffers are ready after a reset.
    state, fault, requests, completed : out
        What the registers show.
    running : out
        High while requests run, faults included.
    begins : out
        Strobe: the first request after rest.
    stop : out
        No new read or write may be asked for.
    reset : out
        Resets the datapath, for one cycle.
    queue_reset : out
        High in RESETTING: the output queues are silent, the execute side starts afresh.
    root : stream, out
        One token a request: the parent of the outermost loop. There is always room for it.
    irq : out
        High for one cycle when the last request has ended, or all were stopped.
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
                "may_start": Out(1),
                "may_join": Out(1),
                "arguments": In(values_layout(config)),
                "watchdog": In(32),
                "progress": In(1),
                "execute_blocks": In(1),
                "verdict": In(FaultCode),
                "faults": In(FaultSignature(config)).array(fault_ports),
                "ended": In(1),
                "memory_idle": In(1),
                "cleared": In(1),
                "state": Out(State, init=State.RESETTING),
                "fault": Out(fault_layout(config)),
                "requests": Out(range(config.request_entries + 1)),
                "completed": Out(32),
                "running": Out(1),
                "begins": Out(1),
                "stop": Out(1),
                "reset": Out(1),
                "queue_reset": Out(1),
                "root": Out(stream.Signature(token_layout(config))),
                "irq": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        self._merge_faults(m)
        self._watch(m)
        room = Signal(init=1)
        requests_next = Signal.like(self.requests)
        takes = Signal()
        ends = Signal()  # a request, and nothing was wrong
        at_rest = Signal()
        m.d.comb += [
            at_rest.eq(
                (self.state == State.IDLE)
                | (self.state == State.DONE)
                | (self.state == State.FAULTED)
            ),
            self.running.eq((self.state == State.RUNNING) | (self.state == State.DRAINING)),
            self.stop.eq(self.state != State.RUNNING),
            self.queue_reset.eq(self.state == State.RESETTING),
            self.may_start.eq(room & (at_rest | (self.state == State.RUNNING))),
            self.may_join.eq(room & ((self.state == State.RUNNING) | (self.state == State.DONE))),
            takes.eq(self.start & self.may_start & (self.verdict == FaultCode.NONE)),
            self.begins.eq(self.start & at_rest),
            self.root.payload.exports.eq(self.arguments),
            ends.eq(self.ended & (self.state == State.RUNNING) & ~self._any_fault),
            requests_next.eq(self.requests + takes - ends),
        ]
        m.d.sync += [
            self.root.valid.eq(takes),
            self.irq.eq(0),
            self.requests.eq(requests_next),
            room.eq(requests_next != self.config.request_entries),
            self.completed.eq(self.completed + ends),
        ]

        faulted = Signal()
        with m.Switch(self.state):
            with m.Case(State.RESETTING):
                m.d.sync += [self.reset.eq(0), self.requests.eq(0), room.eq(1)]
                with m.If(~self.reset & self.cleared):
                    m.d.sync += [
                        self.state.eq(Mux(faulted, State.FAULTED, State.IDLE)),
                        self.irq.eq(faulted),
                        faulted.eq(0),
                    ]
            with m.Case(State.IDLE, State.DONE, State.FAULTED):
                with m.If(self.start):
                    m.d.sync += self.fault.eq(0)
                    with m.If(self.verdict == FaultCode.NONE):
                        m.d.sync += self.state.eq(State.RUNNING)
                    with m.Else():
                        m.d.sync += [
                            self.state.eq(State.FAULTED),
                            self.irq.eq(1),
                            self.fault.code.eq(self.verdict),
                            self.fault.unit.eq(NO_UNIT),
                        ]
            with m.Case(State.RUNNING):
                with m.If(self._any_fault):
                    m.d.sync += [self.state.eq(State.DRAINING), self.fault.eq(self._arrived)]
                with m.Elif(ends & (requests_next == 0)):
                    m.d.sync += [self.state.eq(State.DONE), self.irq.eq(1)]
            with m.Case(State.DRAINING):
                with m.If(self.memory_idle):
                    m.d.sync += [
                        self.state.eq(State.RESETTING),
                        self.reset.eq(1),
                        faulted.eq(1),
                    ]
        return m

    def _merge_faults(self, m: Module) -> None:
        """Bring all reports to one, two cycles later: no block's compare reaches the state."""
        merged = FaultSignature(self.config).create()
        aborts = FaultSignature(self.config).create()
        m.d.comb += [
            aborts.valid.eq(self.abort),
            aborts.payload.code.eq(FaultCode.ABORTED),
            aborts.payload.unit.eq(NO_UNIT),
        ]
        self._stalled = FaultSignature(self.config).create()
        m.d.sync += first_fault(merged, [*self.faults, aborts, self._stalled])
        self._any_fault, self._arrived = merged.valid, merged.payload

    def _watch(self, m: Module) -> None:
        """Report a fault when nothing has moved for `watchdog` cycles."""
        moved = Signal()
        idle = Signal(32)
        m.d.sync += moved.eq(self.progress | (self.state != State.RUNNING))
        with m.If(moved):
            m.d.sync += idle.eq(1)
        with m.Else():
            m.d.sync += idle.eq(idle + 1)
        m.d.sync += [
            self._stalled.valid.eq((idle == self.watchdog) & (self.watchdog != 0) & ~moved),
            self._stalled.payload.code.eq(
                Mux(self.execute_blocks, FaultCode.EXECUTE_STALLED, FaultCode.MEMORY_STALLED)
            ),
            self._stalled.payload.unit.eq(NO_UNIT),
        ]
