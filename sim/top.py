"""The simulation's top module, written for a `ModelShape`; `pins` has the C++ that reaches it.

The top holds the access unit, or the cluster of them, with every input behind a register. The
harness decides a cycle's inputs before the edge that begins the cycle, so the unit sees them in
that very cycle. No logic hangs on a top-level input this way, and Verilator evaluates all of it
once a cycle, at the edge, instead of three times.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .build import ModelShape

TOP_NAME = "simulation_top"
#: Of the port over which a unit writes its results.
WRITE_PREFIX = "m_axi_result"

#: Queues inside a unit whose level is shown, in the order of the high-water counters; in C++ too.
LEVELS = 4


@dataclass(frozen=True)
class _Port:
    """A port of the unit: its name and width, and the width by which C++ sees it.

    An input of the unit is registered; an unconnected output isn't seen at all.
    """

    name: str
    bits: int
    is_input: bool = False
    seen_bits: int | None = None
    constant: str | None = None
    is_unconnected: bool = False

    @property
    def outer_bits(self) -> int:
        return self.bits if self.seen_bits is None else self.seen_bits


def _in(name: str, bits: int = 1, seen_bits: int | None = None) -> _Port:
    return _Port(name, bits, is_input=True, seen_bits=seen_bits)


def _out(name: str, bits: int = 1, seen_bits: int | None = None) -> _Port:
    return _Port(name, bits, seen_bits=seen_bits)


def _constant(name: str, value: str) -> _Port:
    return _Port(name, 0, constant=value)


def _unconnected(name: str) -> _Port:
    return _Port(name, 0, is_unconnected=True)


def _register_ports(shape: ModelShape) -> list[_Port]:
    bits = shape.register_address_bits
    return [
        _in("s_axil_awaddr", bits, 32),
        _constant("s_axil_awprot", "3'd0"),
        _in("s_axil_awvalid"),
        _out("s_axil_awready"),
        _in("s_axil_wdata", 32),
        _constant("s_axil_wstrb", "4'hf"),
        _in("s_axil_wvalid"),
        _out("s_axil_wready"),
        _out("s_axil_bresp", 2),
        _out("s_axil_bvalid"),
        _in("s_axil_bready"),
        _in("s_axil_araddr", bits, 32),
        _constant("s_axil_arprot", "3'd0"),
        _in("s_axil_arvalid"),
        _out("s_axil_arready"),
        _out("s_axil_rdata", 32),
        _out("s_axil_rresp", 2),
        _out("s_axil_rvalid"),
        _in("s_axil_rready"),
    ]


def _channel_ports(shape: ModelShape, prefix: str, data_bytes: int, id_bits: int) -> list[_Port]:
    unused = ["lock", "cache", "prot", *(["qos"] if shape.length_bits == 8 else [])]  # not in AXI3
    return [
        _out(f"{prefix}_arid", id_bits, 32),
        _out(f"{prefix}_araddr", shape.address_bits, 64),
        _out(f"{prefix}_arlen", shape.length_bits, 8),
        _out(f"{prefix}_arsize", 3),
        _out(f"{prefix}_arburst", 2),
        *(_unconnected(f"{prefix}_ar{name}") for name in unused),
        _out(f"{prefix}_arvalid"),
        _in(f"{prefix}_arready"),
        _in(f"{prefix}_rid", id_bits, 32),
        _in(f"{prefix}_rdata", 8 * data_bytes),
        _in(f"{prefix}_rresp", 2),
        _in(f"{prefix}_rlast"),
        _in(f"{prefix}_rvalid"),
        _out(f"{prefix}_rready"),
    ]


def _write_ports(shape: ModelShape) -> list[_Port]:
    prefix = WRITE_PREFIX
    others = [_unconnected(f"{prefix}_aw{name}") for name in ("lock", "cache", "prot")]
    others.append(_unconnected(f"{prefix}_{'awqos' if shape.length_bits == 8 else 'wid'}"))
    return [
        _out(f"{prefix}_awid", 1, 32),
        _out(f"{prefix}_awaddr", shape.address_bits, 64),
        _out(f"{prefix}_awlen", shape.length_bits, 8),
        _out(f"{prefix}_awsize", 3),
        _out(f"{prefix}_awburst", 2),
        *others,
        _out(f"{prefix}_awvalid"),
        _in(f"{prefix}_awready"),
        _out(f"{prefix}_wdata", 8 * shape.bus_bytes),
        _out(f"{prefix}_wstrb", shape.bus_bytes, 64),
        _out(f"{prefix}_wlast"),
        _out(f"{prefix}_wvalid"),
        _in(f"{prefix}_wready"),
        _in(f"{prefix}_bid", 1, 32),
        _in(f"{prefix}_bresp", 2),
        _in(f"{prefix}_bvalid"),
        _out(f"{prefix}_bready"),
    ]


def row_name(shape: ModelShape, number: str) -> str:
    """Return the prefix of the stream that takes rows out of a unit, pooled or not."""
    return f"m_axis_{'result' if shape.reduces else 'row'}{number}"


def _bundle_ports(shape: ModelShape, number: str) -> list[_Port]:
    bundle = f"m_axis_bundle{number}"
    return [
        _out(f"{bundle}_tdata", 8 * shape.bundle_bytes),
        _out(f"{bundle}_tvalid"),
        _in(f"{bundle}_tready"),
        _out(f"{bundle}_tlast"),
    ]


def _row_ports(shape: ModelShape, number: str) -> list[_Port]:
    row = row_name(shape, number)
    return [
        _out(f"{row}_tdata", 8 * shape.bus_bytes),
        _out(f"{row}_tkeep", shape.bus_bytes, 64),
        _out(f"{row}_tvalid"),
        _in(f"{row}_tready"),
        _out(f"{row}_tlast"),
    ]


def _input_ports(shape: ModelShape, number: str) -> list[_Port]:
    prefix = f"s_axis_index{number}"
    return [
        _in(f"{prefix}_tdata", 8 * shape.input_bytes),
        _in(f"{prefix}_tdest", shape.input_dest_bits, 32),
        _in(f"{prefix}_tvalid"),
        _out(f"{prefix}_tready"),
    ]


def _ports(shape: ModelShape) -> list[_Port]:
    ports = _register_ports(shape)
    ports += [_out(name, shape.units, 64) for name in ("m_axis_aresetn", "irq")]
    for prefix, data_bytes, id_bits in shape.channels:
        ports += _channel_ports(shape, prefix, data_bytes, id_bits)
    if shape.writes:
        ports += _write_ports(shape)
    for number in shape.unit_numbers:
        if not shape.reduces:
            ports += _bundle_ports(shape, number)
        if not shape.writes:
            ports += _row_ports(shape, number)
        if shape.input_bytes:
            ports += _input_ports(shape, number)
    return ports


def probes(shape: ModelShape) -> list[tuple[str, int, str]]:
    """Return the outputs that show registers inside the unit: name, bits, expression.

    The registers are those of the unit's counters, which take what is counted from there, a cycle
    after it was: how full the queues are, and a bit for each stream and row entry that asks.
    """
    if not shape.probed_streams:
        return []
    counters = "access_unit.unit.counters"
    levels = [(f"probe_level{n}", 16, f"{{3'd0, {counters}.level{n}}}") for n in range(LEVELS)]
    asked = f"|({counters}.asked >> {shape.probed_streams})"
    return [
        ("probe_running", 1, f"{counters}.counting"),
        ("probe_row_asked", 1, asked),
        *levels,
    ]


def _range(bits: int) -> str:
    return f"[{bits - 1}:0] " if bits > 1 else ""


def top_verilog(shape: ModelShape) -> str:
    """Return the Verilog of the top module."""
    ports = _ports(shape)
    seen = [port for port in ports if port.constant is None and not port.is_unconnected]
    declared = ["input clk", "input rst"]
    registers: list[str] = []
    updates: list[str] = []
    assigns: list[str] = []
    connections = [".clk(clk)", ".rst(reset)"]
    for port in seen:
        direction = "input" if port.is_input else "output"
        declared.append(f"{direction} {_range(port.outer_bits)}{port.name}")
        inner = f"unit_{port.name}"
        if port.is_input:
            part = f"[{port.bits - 1}:0]" if port.bits < port.outer_bits else ""
            registers.append(f"    reg {_range(port.bits)}{inner};")
            updates.append(f"        {inner} <= {port.name}{part};")
        else:
            registers.append(f"    wire {_range(port.bits)}{inner};")
            missing = port.outer_bits - port.bits
            value = f"{{{{{missing}{{1'b0}}}}, {inner}}}" if missing else inner
            assigns.append(f"    assign {port.name} = {value};")
    for name, bits, expression in probes(shape):
        declared.append(f"output {_range(bits)}{name}")
        assigns.append(f"    assign {name} = {expression};")
    for port in ports:
        value = "" if port.is_unconnected else port.constant or f"unit_{port.name}"
        connections.append(f".{port.name}({value})")
    return "\n".join(
        [
            f"// {shape.unit_module} with every input behind a register.",
            f"module {TOP_NAME} (\n    " + ",\n    ".join(declared) + "\n);",
            "    reg reset;",
            *registers,
            "    always @(posedge clk) begin",
            "        reset <= rst;",
            *updates,
            "    end",
            *assigns,
            f"    {shape.unit_module} access_unit (\n        "
            + ",\n        ".join(connections)
            + "\n    );",
            "endmodule\n",
        ]
    )
