"""Faults of writes of results: each must fail the proof that it names."""

from __future__ import annotations

from ember_hw.rtl.formal.tests.fault import Fault

#: By proof and name.
WRITE_FAULTS: dict[tuple[str, str], Fault] = {
    ("write_port", "stop_takes_back_what_was_shown"): Fault(
        6,
        "write_port",
        "WritePort",
        "AWVALID holds until AWREADY",
        "with m.If(bus.awready):",
        "with m.If(bus.awready | self.stop):",
    ),
    ("write_port", "address_changes_while_it_waits"): Fault(
        8,
        "write_port",
        "WritePort",
        "AW holds until AWREADY",
        "(~bus.awvalid | bus.awready) & (~sends | sent_last)",
        "(~sends | sent_last)",
    ),
    ("write_port", "takes_on_while_stopped"): Fault(
        6,
        "write_port",
        "WritePort",
        "nothing is taken while stop is high",
        "& may_fly & ~self.stop",
        "& may_fly",
    ),
    ("write_port", "one_more_in_flight"): Fault(
        10,
        "write_port",
        "WritePort",
        "so many bursts are in flight at most",
        "may_fly.eq(in_flight != most - 1)",
        "may_fly.eq(in_flight != most)",
    ),
    ("write_port", "last_beat_is_early"): Fault(
        6,
        "write_port",
        "WritePort",
        "WLAST comes with the burst's last beat",
        "bus.wlast.eq(left == 0)",
        "bus.wlast.eq(left <= 1)",
    ),
    ("write_port", "answer_before_its_fault"): Fault(
        8,
        "write_port",
        "WritePort",
        "no request ends before its fault is known",
        "self.answered.eq(returns)",
        "self.answered.eq(bus.bvalid)",
    ),
    ("write_port", "idle_while_memory_owes"): Fault(
        8,
        "write_port",
        "WritePort",
        "idle waits for the answers",
        "self.idle.eq((in_flight == 0) & ~bus.awvalid & ~sends)",
        "self.idle.eq(~bus.awvalid & ~sends)",
    ),
    ("result_bursts", "crosses_a_boundary"): Fault(
        14,
        "execute.result_bursts",
        "ResultBursts",
        "no burst crosses 4 KB",
        "takes & number[:burst_bits].all()",
        "takes & (count == longest - 1)",
    ),
    ("result_bursts", "one_beat_beyond_the_region"): Fault(
        8,
        "execute.result_bursts",
        "ResultBursts",
        "every byte lies in the region",
        "some_left.eq(some_left & left[1:].any())",
        "some_left.eq(some_left & left.any())",
    ),
    ("result_bursts", "whole_beat_in_the_tail"): Fault(
        8,
        "execute.result_bursts",
        "ResultBursts",
        "every byte lies in the region",
        "(self.beat.payload.bytes <= tail_bytes)",
        "(tail_bytes != 0)",
    ),
    ("result_bursts", "flushed_burst_is_a_beat_longer"): Fault(
        8,
        "execute.result_bursts",
        "ResultBursts",
        "each beat is in one burst",
        "bursts.i.payload.length.eq(Mux(self.flush, count - 1, count))",
        "bursts.i.payload.length.eq(count)",
    ),
    ("result_bursts", "no_fault_for_the_tail"): Fault(
        8,
        "execute.result_bursts",
        "ResultBursts",
        "a beat beyond the region is a fault",
        "self.fault.valid.eq(self.beat.valid & ~fits)",
        "self.fault.valid.eq(self.beat.valid & ~some_left & ~tail_left)",
    ),
}
