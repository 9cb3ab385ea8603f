"""The stand-in access unit: its registers, its library, and one program run from start to end."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ember_hw.sim.build import ModelShape, build_model
from ember_hw.sim.model import RunState, VerilatorModel

VERILOG = Path(__file__).with_name("toy_access_unit.v").read_text()
BASE = 0x1_0000
CONTROL, ROWS, MISDEED, QUEUE_RESET = 0x00, 0x0C, 0x20, 0x28
FIRST_REQUEST, FIRST_BEAT, LATEST_BEAT, ERRORS, EARLY_BEATS, FIRST_WORD, OVERTAKES, SPLITS = range(
    0x40, 0x60, 4
)
DROP_VALID, CHANGE_PAYLOAD, FAIL_ASSERTION, HANG, FIXED_BURST, FINISH = range(1, 7)


def toy_shape(bus_bytes: int = 64) -> ModelShape:
    return ModelShape(bus_bytes=bus_bytes, bundle_bytes=9, event_bits=6, id_bits=4, address_bits=40)


def toy_verilog(bus_bytes: int = 64) -> str:
    return VERILOG.replace("BUS_BYTES = 64", f"BUS_BYTES = {bus_bytes}")


def toy_library(bus_bytes: int = 64, *, trace: bool = False, optimise: bool = True) -> Path:
    return build_model(toy_verilog(bus_bytes), toy_shape(bus_bytes), trace=trace, optimise=optimise)


@dataclass(frozen=True, kw_only=True)
class Program:
    """What the toy does on start; the fields are its registers from `base` on, in order."""

    base: int = BASE
    stride: int = 64
    rows: int = 1
    beats: int = 1
    tail_bytes: int | None = None
    events: int = 0b001000
    id_per_slot: int = 0
    misdeed: int = 0
    size: int | None = None

    def start(self, model: VerilatorModel) -> None:
        bus_bytes = model.shape.bus_bytes
        defaults = {"tail_bytes": bus_bytes, "size": bus_bytes.bit_length() - 1}
        for index, (name, value) in enumerate(vars(self).items()):
            model.write_register(4 + 4 * index, defaults[name] if value is None else value)
        model.write_register(CONTROL, 1)


@dataclass(frozen=True)
class Output:
    """All output of one program, copied out of every run's buffers."""

    state: RunState
    bundles: np.ndarray
    row_beats: np.ndarray
    row_last: np.ndarray
    row_cycles: np.ndarray
    cycles: int
    runs: int


def run_program(model: VerilatorModel, program: Program, *, max_idle_cycles: int = 2_000) -> Output:
    program.start(model)
    pieces: dict[str, list[np.ndarray]] = {
        name: [] for name in ("bundles", "row_beats", "row_last", "row_cycles")
    }
    cycles = runs = 0
    state = RunState.OUTPUT_FULL
    while state is RunState.OUTPUT_FULL:
        result = model.run(max_idle_cycles=max_idle_cycles)
        for name, arrays in pieces.items():
            arrays.append(getattr(result, name).copy())
        state = result.state
        cycles += result.cycles
        runs += 1
    whole = {name: np.concatenate(arrays) for name, arrays in pieces.items()}
    return Output(state=state, cycles=cycles, runs=runs, **whole)
