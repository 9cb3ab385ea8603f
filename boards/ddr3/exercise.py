"""Random rows through memory and controller in Verilator, against the chip's model and a shadow."""

from __future__ import annotations

import json
from ctypes import CDLL, Structure, byref, c_char, c_uint8, c_uint32, c_uint64, c_void_p
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from amaranth.back import verilog
from amaranth.hdl import Cat, ClockSignal, Instance, Module, ResetSignal, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ember_hw.boards.ddr3.chip import BEAT_BYTES, Ddr3Chip
from ember_hw.boards.ddr3.core import port_pins
from ember_hw.boards.ddr3.generate import Order, generate
from ember_hw.boards.ddr3.litedram_script import MODULE
from ember_hw.boards.ddr3.memory import DdrMemory
from ember_hw.boards.exercise import AccessOutcome, AccessPlan
from ember_hw.config import AcceleratorConfig
from ember_hw.sim.verilated import verilated

#: Folder of the C++.
SOURCES = Path(__file__).resolve().parent
#: Cycles of the controller that a beat takes on the chip's pins: two phases, two words a clock.
CYCLES_A_BEAT = 2
_PHASES = 2
_BEAT_BITS = 8 * BEAT_BYTES
_COMMANDS = ("MODE", "REFRESH", "PRECHARGE", "ACTIVATE", "WRITE", "READ", "CALIBRATE")
#: Fields of `Ddr3Limits` of the model.
_LIMITS = (
    "row_bits bank_bits page_beat_bits trcd trp tras trrd tfaw twr twtr trtp tccd trfc trefi tzqcs "
    "cl cwl read_latency write_latency"
).split()
_CONFIG = AcceleratorConfig.preset("small").with_changes(address_width_bits=32)


@dataclass(frozen=True, kw_only=True)
class Plan(AccessPlan):
    """What is asked of the memory by the access unit, see `AccessPlan`, and by the host.

    Attributes
    ----------
    host_accesses : float
        Chance that the host, if it isn't waiting, begins an access in a cycle; half of them write.
    """

    host_accesses: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Outcome(AccessOutcome):
    """What came of it; see `AccessOutcome`.

    `beats` are those that the unit read; `wrong` counts answers with wrong data, ID, `last` or
    response; `is_hung` says that nothing moved for 20,000 cycles.

    Attributes
    ----------
    cycles : int
        From the first request to the last beat of the unit.
    host_accesses : int
        Accesses of the host that were answered.
    commands : dict of str to int
        Commands that the chip saw.
    """

    cycles: int
    host_accesses: int
    commands: dict[str, int]

    @property
    def share_of_peak(self) -> float:
        """Beats read, of those that the chip's data pins could have carried."""
        return self.beats * CYCLES_A_BEAT / self.cycles


class _Limits(Structure):
    _fields_ = [(name, c_uint32) for name in _LIMITS]


class _Plan(Structure):
    _fields_ = [
        *((name, c_uint64) for name in ("seed", "requests", "region_beats")),
        *((name, c_uint32) for name in ("most_beats", "aligned", "request_stall")),
        *((name, c_uint32) for name in ("response_stall", "host_accesses")),
    ]


class _Outcome(Structure):
    _fields_ = [
        *((name, c_uint64) for name in ("began", "last_beat", "beats", "host_accesses")),
        *((name, c_uint64) for name in ("wrong", "violations")),
        ("commands", c_uint64 * 8),
        ("hung", c_uint8),
        ("first", c_char * 200),
    ]


class _Top(wiring.Component):
    """Memory and controller with one port a signal."""

    def __init__(self, *, chip: Ddr3Chip, ports: int):
        self.chip = chip
        self.memory = DdrMemory(chip=chip, ports=ports, config=_CONFIG)
        unit = self.memory.unit
        phase = {"selected": 1, "command": 3, "bank": chip.bank_bits, "address": chip.row_bits}
        super().__init__(
            {
                "initialised": In(1),
                **{name: In(len(getattr(unit, name))) for name in ("araddr", "arlen", "arid")},
                "arvalid": In(1),
                "arready": Out(1),
                **{name: Out(len(getattr(unit, name))) for name in ("rid", "rdata", "rlast")},
                "rresp": Out(2),
                "rvalid": Out(1),
                "rready": In(1),
                **{"link_address": In(32), "link_is_write": In(1), "link_data": In(_BEAT_BITS)},
                **{"link_valid": In(1), "link_ready": Out(1), "link_answer_valid": Out(1)},
                **{"link_answer_data": Out(_BEAT_BITS), "link_answer_error": Out(1)},
                **{
                    f"dfi_p{number}_{name}": Out(width)
                    for number in range(_PHASES)
                    for name, width in phase.items()
                },
                **{"dfi_read_enable": Out(1), "dfi_read_valid": In(1)},
                "dfi_read_data": In(_BEAT_BITS),
                **{"dfi_write_enable": Out(1), "dfi_write_data": Out(_BEAT_BITS)},
                "dfi_write_mask": Out(BEAT_BYTES),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.memory = memory = self.memory
        unit, link = memory.unit, memory.link
        request = link.request
        m.d.comb += [
            memory.initialised.eq(self.initialised),
            request.payload.address.eq(self.link_address),
            request.payload.is_write.eq(self.link_is_write),
            request.payload.data.eq(self.link_data),
            request.valid.eq(self.link_valid),
            self.link_ready.eq(request.ready),
            self.link_answer_valid.eq(link.answer_valid),
            self.link_answer_data.eq(link.answer_data),
            self.link_answer_error.eq(link.answer_error),
        ]
        for name in ("araddr", "arlen", "arid", "arvalid", "rready"):
            m.d.comb += getattr(unit, name).eq(getattr(self, name))
        for name in ("arready", "rid", "rdata", "rlast", "rresp", "rvalid"):
            m.d.comb += getattr(self, name).eq(getattr(unit, name))
        pins = {"i_sys_clk": ClockSignal(), "i_sys_rst": ResetSignal()}
        pins |= port_pins(memory)
        enables: dict[str, list[Signal]] = {"rddata_en": [], "wrdata_en": []}
        words = _BEAT_BITS // _PHASES
        for number in range(_PHASES):
            name = f"dfi_p{number}"
            selected, ras, cas, we = Signal(), Signal(), Signal(), Signal()
            m.d.comb += [
                getattr(self, f"{name}_selected").eq(~selected),
                getattr(self, f"{name}_command").eq(Cat(we, cas, ras)),
            ]
            for kind, found in enables.items():
                found.append(Signal(name=f"{name}_{kind}"))
                pins[f"o_{name}_{kind}"] = found[-1]
            pins |= {
                f"o_{name}_cs_n": selected,
                f"o_{name}_ras_n": ras,
                f"o_{name}_cas_n": cas,
                f"o_{name}_we_n": we,
                f"o_{name}_bank": getattr(self, f"{name}_bank"),
                f"o_{name}_address": getattr(self, f"{name}_address"),
                f"o_{name}_wrdata": self.dfi_write_data.word_select(number, words),
                f"o_{name}_wrdata_mask": self.dfi_write_mask.word_select(number, words // 8),
                f"i_{name}_rddata": self.dfi_read_data.word_select(number, words),
                f"i_{name}_rddata_valid": self.dfi_read_valid,
            }
        m.d.comb += [
            self.dfi_read_enable.eq(Cat(enables["rddata_en"]).any()),
            self.dfi_write_enable.eq(Cat(enables["wrdata_en"]).any()),
        ]
        m.submodules.controller = Instance(MODULE, **pins)
        return m


@cache
def _model(chip: Ddr3Chip, clock_mhz: float, ports: int) -> tuple[CDLL, dict[str, int]]:
    """Return the compiled model and the PHY's latencies."""
    order = Order(kind="controller", chip=chip, ports=ports, clock_mhz=clock_mhz)
    files = generate(order, needed_for="simulations of the DDR3 controller")
    top = _Top(chip=chip, ports=ports)
    text = verilog.convert(top, name="top", emit_src=False, strip_internal_attrs=True)
    header = {"ddr3_chip.hpp": (SOURCES / "ddr3_chip.hpp").read_text()}
    harness = (SOURCES / "exercise.cpp").read_text()
    text += files[f"{MODULE}.v"]
    library = verilated("ddr3_exercise", text, harness, optimise="-O2", headers=header)
    library.ember_exercise.argtypes = [c_void_p] * 3
    return library, json.loads(files["phy.json"])


def exercise(
    chip: Ddr3Chip,
    clock_mhz: float,
    ports: int,
    plan: Plan,
    *,
    judge: Ddr3Chip | None = None,
) -> Outcome:
    """Run a plan; the model is compiled by the first call for a chip and number of ports.

    Parameters
    ----------
    chip : Ddr3Chip
        What the controller is generated for.
    clock_mhz : float
        Of the controller.
    ports : int
        Native ports.
    plan : Plan
    judge : Ddr3Chip, optional
        What the chip's model is, where that is to be another.

    Raises
    ------
    ToolError
        LiteDRAM isn't there, or Verilator fails.
    """
    library, phy = _model(chip, clock_mhz, ports)
    judge = judge or chip
    values = {**judge.clocks(_PHASES * clock_mhz), **phy, "page_beat_bits": judge.page_beat_bits}
    values |= {"row_bits": judge.row_bits, "bank_bits": judge.bank_bits}
    limits = _Limits(**{name: values[name] for name in _LIMITS})
    asked = _Plan(
        seed=plan.seed,
        requests=plan.requests,
        region_beats=plan.region_beats or 1 << chip.beat_address_bits,
        most_beats=plan.most_beats,
        aligned=plan.aligned,
        request_stall=round(1000 * plan.request_stall),
        response_stall=round(1000 * plan.response_stall),
        host_accesses=round(1000 * plan.host_accesses),
    )
    found = _Outcome()
    library.ember_exercise(byref(limits), byref(asked), byref(found))
    return Outcome(
        cycles=found.last_beat - found.began + 1,
        beats=found.beats,
        host_accesses=found.host_accesses,
        wrong=found.wrong,
        violations=found.violations,
        is_hung=bool(found.hung),
        first=found.first.decode(),
        commands=dict(zip(_COMMANDS, found.commands, strict=False)),
    )
