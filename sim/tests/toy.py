"""The stand-in access unit: its registers, its library, and one program run from start to end."""

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from ember_hw.sim.build import ModelShape, build_model
from ember_hw.sim.model import RunState, VerilatorModel
from ember_hw.sim.options import TraceFormat

VERILOG = Path(__file__).with_name("toy_access_unit.v").read_text()
CLUSTER = Path(__file__).with_name("toy_cluster.v").read_text()
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


def toy_library(bus_bytes: int = 64, *, trace: TraceFormat = "", optimise: bool = True) -> Path:
    return build_model(toy_verilog(bus_bytes), toy_shape(bus_bytes), trace=trace, optimise=optimise)


_CLUSTER_PORTS = """
    output [3:0] m_axi{n}_arid,
    output [39:0] m_axi{n}_araddr,
    output [7:0] m_axi{n}_arlen,
    output [2:0] m_axi{n}_arsize,
    output [1:0] m_axi{n}_arburst,
    output m_axi{n}_arlock,
    output [3:0] m_axi{n}_arcache,
    output [2:0] m_axi{n}_arprot,
    output [3:0] m_axi{n}_arqos,
    output m_axi{n}_arvalid,
    input m_axi{n}_arready,
    input [3:0] m_axi{n}_rid,
    input [511:0] m_axi{n}_rdata,
    input [1:0] m_axi{n}_rresp,
    input m_axi{n}_rlast,
    input m_axi{n}_rvalid,
    output m_axi{n}_rready,
    output [71:0] m_axis_bundle{n}_tdata,
    output m_axis_bundle{n}_tvalid,
    input m_axis_bundle{n}_tready,
    output m_axis_bundle{n}_tlast,
    output [511:0] m_axis_row{n}_tdata,
    output [63:0] m_axis_row{n}_tkeep,
    output m_axis_row{n}_tvalid,
    input m_axis_row{n}_tready,
    output m_axis_row{n}_tlast,
    input [127:0] s_axis_index{n}_tdata,
    input [2:0] s_axis_index{n}_tdest,
    input s_axis_index{n}_tvalid,
    output s_axis_index{n}_tready,"""
_CLUSTER_UNIT = """
    reg [7:0] beats{n} = 0;
    reg turn{n} = 0;
    assign s_axis_index{n}_tready = turn{n};
    always @(posedge clk) begin
        turn{n} <= !turn{n};
        if (s_axis_index{n}_tvalid && turn{n}) begin
            beats{n} <= beats{n} + 1;
            assert (s_axis_index{n}_tdata[7:0] == beats{n});
            assert (s_axis_index{n}_tdest == beats{n}[4:2]);
        end
    end
    access_unit unit{n} (.clk(clk), .rst(rst), {connections});
"""


def toy_cluster_verilog() -> str:
    """Return two toys as a cluster; beats and destinations of the index streams count up."""
    units = ""
    for n in range(2):
        connections = [f".s_axil_{name}(s_axil_{name}[11:0])" for name in ("awaddr", "araddr")]
        connections += [
            f".s_axil_{channel}valid(s_axil_{channel}valid && {which}_unit == {n})"
            for channel, which in (("aw", "write"), ("w", "write"), ("ar", "read"))
        ]
        connections += [
            f".s_axil_{name}(s_axil_{name})"
            for name in ("awprot", "wdata", "wstrb", "bready", "arprot", "rready")
        ]
        connections += [
            f".s_axil_{name}({name}[{n}])"
            for name in ("awready", "wready", "bvalid", "arready", "rvalid")
        ]
        connections += [f".s_axil_{name}({name}[{2 * n}+:2])" for name in ("bresp", "rresp")]
        connections += [f".s_axil_rdata(rdata[{32 * n}+:32])"]
        connections += [f".{name}({name}[{n}])" for name in ("m_axis_aresetn", "irq")]
        for line in _CLUSTER_PORTS.splitlines():
            name = line.split()[-1].rstrip(",") if line else ""
            if name.startswith("m_"):
                connections.append(f".{name.replace('{n}', '')}({name.replace('{n}', str(n))})")
        units += _CLUSTER_UNIT.replace("{n}", str(n)).replace(
            "{connections}", ", ".join(connections)
        )
    ports = "".join(_CLUSTER_PORTS.replace("{n}", str(n)) for n in range(2))
    return CLUSTER.replace("`PORTS", ports).replace("`UNITS", units) + toy_verilog()


def toy_cluster_library() -> Path:
    shape = replace(toy_shape(), units=2, memory_ports=2, input_bytes=16, input_dest_bits=3)
    return build_model(toy_cluster_verilog(), shape, optimise=False)


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

    def start(self, model: VerilatorModel, unit: int = 0) -> None:
        for address, value in self.writes(model, unit):
            model.write_register(address, value)

    def writes(self, model: VerilatorModel, unit: int = 0) -> list[tuple[int, int]]:
        """Return the register writes that start it."""
        bus_bytes = model.shape.bus_bytes
        defaults = {"tail_bytes": bus_bytes, "size": bus_bytes.bit_length() - 1}
        values = [defaults[name] if value is None else value for name, value in vars(self).items()]
        registers = [*enumerate(values, start=1), (CONTROL // 4, 1)]
        return [(4096 * unit + 4 * number, value) for number, value in registers]


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
