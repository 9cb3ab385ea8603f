"""Blocks that are wrong on purpose: each must fail the proof that it names."""

from __future__ import annotations

from ember_hw.rtl.tests.mutations import Mutation, Shows


def _fault(module: str, component: str, rule: str, before: str, after: str) -> Mutation:
    return Mutation(rule, Shows.PROOF, module, component, before, after)


#: (proof, fault): cycles within which the solver finds the failure, and the fault.
FAULTS: dict[tuple[str, str], tuple[int, Mutation]] = {
    ("short_queue", "overflows"): (
        10,
        _fault(
            "fifos",
            "StreamFifo",
            "room is honest",
            "room.eq(stored_next != depth)",
            "room.eq(stored != depth)",
        ),
    ),
    ("full_short_queue", "pops_while_stalled"): (
        8,
        _fault(
            "fifos",
            "StreamFifo",
            "nothing is lost",
            "pop.eq(some & moves)",
            "pop.eq(some)",
        ),
    ),
    ("long_queue", "payload_moves"): (
        8,
        _fault(
            "fifos",
            "StreamFifo",
            "the payload holds while ready is low",
            "moves.eq(~self.o.valid | self.o.ready)",
            "moves.eq(~self.o.valid | self.i.valid)",
        ),
    ),
    ("long_queue", "doubles"): (
        8,
        _fault(
            "fifos",
            "StreamFifo",
            "nothing is doubled",
            "m.d.sync += read_valid.eq(0)",
            "m.d.sync += read_valid.eq(read_valid)",
        ),
    ),
    ("short_queue", "level_misses_a_push"): (
        6,
        _fault(
            "fifos",
            "StreamFifo",
            "level is right",
            "self.level + push - (self.o.valid & self.o.ready)",
            "self.level + (push & ~self.o.ready) - (self.o.valid & self.o.ready)",
        ),
    ),
    ("reserved_queue", "one_credit_too_many"): (
        10,
        _fault(
            "fifos",
            "ReservedFifo",
            "room is honest",
            "self.room.eq(level_next != self.credits)",
            "self.room.eq(self.level != self.credits)",
        ),
    ),
    ("credits", "give_and_take_forget_one"): (
        4,
        _fault(
            "credits",
            "Credits",
            "used is exact",
            "change, self.take & ~self.give",
            "change, self.take",
        ),
    ),
    ("credits", "fits_counts_used_alone"): (
        12,
        _fault(
            "credits",
            "Credits",
            "the whole burst fits",
            "(self.used + self.length)",
            "(self.used + self.length[1:])",
        ),
    ),
    ("reorder_buffer", "place_given_back_early"): (
        24,
        _fault(
            "reorder_buffer",
            "ReorderBuffer",
            "no place is given twice",
            "credits.give.eq(self.o.valid & self.o.ready)",
            "credits.give.eq(self.o.ready & (credits.used != 0))",
        ),
    ),
    ("reorder_buffer", "collision_read"): (
        16,
        _fault(
            "reorder_buffer",
            "ReorderBuffer",
            "the reading side goes back to the beat that was not there",
            "Mux(missed, -2, self.cleared)",
            "Mux(missed, -1, self.cleared)",
        ),
    ),
    ("reorder_buffer", "phase_ignored"): (
        24,
        _fault(
            "reorder_buffer",
            "ReorderBuffer",
            "a beat of a pass before is not there",
            "read_phase.eq(~position[place_bits])",
            "read_phase.eq(1)",
        ),
    ),
    ("reorder_buffer", "not_cleared"): (
        16,
        _fault(
            "reorder_buffer",
            "ReorderBuffer",
            "what memory held before the reset is never a beat",
            "self.put | ~self.cleared",
            "self.put",
        ),
    ),
}
