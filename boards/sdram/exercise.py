"""Random accesses through the controller in Verilator, against the chip's model and a shadow."""

from __future__ import annotations

from ctypes import Structure, byref, c_char, c_uint8, c_uint32, c_uint64, c_void_p
from dataclasses import dataclass

from amaranth.back import verilog
from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ember_hw.boards.exercise import AccessOutcome, AccessPlan
from ember_hw.boards.sdram.chip import BURST_WORDS, SdramChip
from ember_hw.boards.sdram.controller import SdramController
from ember_hw.boards.sdram.layouts import BEAT_BITS, LENGTH_BITS
from ember_hw.boards.sdram.model import SOURCES, Limits
from ember_hw.boards.sdram.pads import SdramPads, SdramPorts
from ember_hw.boards.sdram.pins import Command
from ember_hw.sim.verilated import verilated

_TAG_BITS = 6


@dataclass(frozen=True, kw_only=True)
class Plan(AccessPlan):
    """What is asked of the controller; see `AccessPlan`.

    Attributes
    ----------
    writes, partial_writes : float
        Share of requests that write; of written beats that leave some bytes alone.
    data_stall : float
        Chance that a clock brings no data to write.
    """

    writes: float = 0.0
    partial_writes: float = 0.0
    data_stall: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Outcome(AccessOutcome):
    """What came of it; see `AccessOutcome`.

    `wrong` counts beats with wrong data, tag or `last`, and words that the chip holds wrongly at
    the end; `is_hung` says that nothing moved for 200,000 clocks.

    Attributes
    ----------
    clocks : int
        From the first request, or the end of the initialisation if that is later, to the last beat
        that was read.
    beats_written : int
    commands : dict of Command to int
        Commands that the chip saw.
    """

    clocks: int
    beats_written: int
    commands: dict[Command, int]

    @property
    def read_share_of_peak(self) -> float:
        """Words read, of those that the data pins could have carried."""
        return self.beats * BURST_WORDS / self.clocks


class _Plan(Structure):
    _fields_ = [
        ("seed", c_uint64),
        ("requests", c_uint64),
        *((name, c_uint32) for name in ("tag_bits", "most_beats", "aligned", "writes", "partial")),
        *((name, c_uint32) for name in ("request_stall", "response_stall", "data_stall")),
        ("region_beats", c_uint64),
    ]


class _Outcome(Structure):
    _fields_ = [
        *((name, c_uint64) for name in ("clocks", "began", "last_beat", "beats")),
        *((name, c_uint64) for name in ("beats_written", "wrong", "violations")),
        ("commands", c_uint64 * 8),
        ("hung", c_uint8),
        ("first", c_char * 200),
    ]


class _Top(wiring.Component):
    """Controller and pads with one port a signal."""

    def __init__(self, *, chip: SdramChip, clock_mhz: float):
        self.chip = chip
        self.controller = SdramController(chip=chip, clock_mhz=clock_mhz, tag_bits=_TAG_BITS)
        super().__init__(
            {
                "request_beat": In(chip.beat_address_bits),
                "request_length": In(LENGTH_BITS),
                "request_write": In(1),
                "request_tag": In(_TAG_BITS),
                "request_valid": In(1),
                "request_ready": Out(1),
                "write_data": In(BEAT_BITS),
                "write_bytes": In(BEAT_BITS // 8),
                "write_valid": In(1),
                "write_ready": Out(1),
                "response_data": Out(BEAT_BITS),
                "response_tag": Out(_TAG_BITS),
                "response_last": Out(1),
                "response_valid": Out(1),
                "response_ready": In(1),
                "initialised": Out(1),
                **{name: Out(1) for name in ("ras", "cas", "we", "dq_enable")},
                "ba": Out(chip.bank_bits),
                "a": Out(chip.row_bits),
                "dqm": Out(2),
                "dq_out": Out(16),
                "dq_in": In(16),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.controller = controller = self.controller
        ports = SdramPorts.for_simulation(self.chip)
        m.submodules.pads = pads = SdramPads(chip=self.chip, ports=ports)
        wiring.connect(m, controller.pins, pads.pins)
        request, response = controller.request, controller.response
        write = controller.write_data
        m.d.comb += [
            request.payload.beat.eq(self.request_beat),
            request.payload.length.eq(self.request_length),
            request.payload.write.eq(self.request_write),
            request.payload.tag.eq(self.request_tag),
            request.valid.eq(self.request_valid),
            self.request_ready.eq(request.ready),
            write.payload.data.eq(self.write_data),
            write.payload.bytes.eq(self.write_bytes),
            write.valid.eq(self.write_valid),
            self.write_ready.eq(write.ready),
            self.response_data.eq(response.payload.data),
            self.response_tag.eq(response.payload.tag),
            self.response_last.eq(response.payload.last),
            self.response_valid.eq(response.valid),
            response.ready.eq(self.response_ready),
            self.initialised.eq(controller.initialised),
            self.dq_enable.eq(ports.dq.oe[0]),
            self.dq_out.eq(ports.dq.o),
            ports.dq.i.eq(self.dq_in),
        ]
        for name in ("ras", "cas", "we", "ba", "a", "dqm"):
            m.d.comb += getattr(self, name).eq(getattr(ports, name).o)
        return m


def exercise(
    chip: SdramChip, clock_mhz: float, plan: Plan, *, judge: SdramChip | None = None
) -> Outcome:
    """Run a plan; the model is compiled by the first call for a chip.

    Parameters
    ----------
    chip : SdramChip
        What the controller is built for.
    clock_mhz : float
        Of controller and chip.
    plan : Plan
    judge : SdramChip, optional
        What the chip's model is, where that is to be another.
    """
    top = _Top(chip=chip, clock_mhz=clock_mhz)
    text = verilog.convert(top, name="top", emit_src=False, strip_internal_attrs=True)
    header = {"sdram_chip.hpp": (SOURCES / "sdram_chip.hpp").read_text()}
    harness = (SOURCES / "exercise.cpp").read_text()
    library = verilated("sdram_exercise", text, harness, optimise="-O2", headers=header)
    library.ember_exercise.argtypes = [c_void_p] * 3
    judge = judge or chip
    asked = _Plan(
        seed=plan.seed,
        requests=plan.requests,
        tag_bits=_TAG_BITS,
        most_beats=plan.most_beats,
        aligned=plan.aligned,
        writes=round(1000 * plan.writes),
        partial=round(1000 * plan.partial_writes),
        request_stall=round(1000 * plan.request_stall),
        response_stall=round(1000 * plan.response_stall),
        data_stall=round(1000 * plan.data_stall),
        region_beats=plan.region_beats or 1 << chip.beat_address_bits,
    )
    found = _Outcome()
    limits = Limits.of(judge, judge.clocks(clock_mhz))
    library.ember_exercise(byref(limits), byref(asked), byref(found))
    return Outcome(
        clocks=found.last_beat - found.began + 1,
        beats=found.beats,
        beats_written=found.beats_written,
        wrong=found.wrong,
        violations=found.violations,
        is_hung=bool(found.hung),
        first=found.first.decode(),
        commands={command: found.commands[command.value] for command in Command},
    )
