"""The C++ that reaches the ports of the simulation's top module, written for a `ModelShape`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from .top import LEVELS, WRITE_PREFIX, probes, row_name

if TYPE_CHECKING:
    from .build import ModelShape


def _struct(name: str, fields: Iterable[str]) -> list[str]:
    return [f"struct {name} {{", *(f"    {field};" for field in fields), "};", ""]


def _function(name: str, cases: list[list[str]]) -> list[str]:
    """Return the function that gives the pins of one number; the last case is the default."""
    pins = f"{name.capitalize()}Pins {name}_pins"
    lines = [f"inline {pins}(Vsimulation_top& top, size_t number) {{", "    (void)top;"]
    for number, values in enumerate(cases):
        guard = f"    if (number == {number}) " if number + 1 < len(cases) else "    "
        lines += [f"{guard}return {{", *(f"        {value}," for value in values), "    };"]
    return [*lines, "}", ""]


def _probe_function(shape: ModelShape) -> list[str]:
    """Return the function that gives the pins of the probes, null without probes."""
    pins = [f"&top.{name}" for name, _, _ in probes(shape)]
    values = ", ".join([*pins[:2], f"{{{', '.join(pins[2:])}}}"]) if pins else ""
    head = "inline ProbePins probe_pins(Vsimulation_top& top) {"
    return [head, "    (void)top;", f"    return {{{values}}};", "}", ""]


def _bytes_of(name: str) -> str:
    return f"reinterpret_cast<uint8_t*>(&top.{name})"


def _write_function(shape: ModelShape) -> list[str]:
    """Return the function that gives the pins of the port for writes, null without one."""
    prefix = WRITE_PREFIX
    names = ("awaddr", "awid", "awlen", "awsize", "awburst", "awvalid", "awready")
    values = [f'"{prefix}"', str(shape.bus_bytes), *(f"&top.{prefix}_{name}" for name in names)]
    values.append(_bytes_of(f"{prefix}_wdata"))
    names = ("wstrb", "wlast", "wvalid", "wready", "bid", "bresp", "bvalid", "bready")
    values += [f"&top.{prefix}_{name}" for name in names]
    head = "inline WritePins write_pins(Vsimulation_top& top) {"
    result = f"    return {{{', '.join(values) if shape.writes else ''}}};"
    return [head, "    (void)top;", result, "}", ""]


def pins_header(shape: ModelShape) -> str:
    """Return the C++ that reaches the top's ports by channel and by unit."""
    channels = [
        [
            f'"{prefix}"',
            str(data_bytes),
            str(id_bits),
            *(f"&top.{prefix}_{name}" for name in ("araddr", "arid", "arlen", "arsize")),
            *(f"&top.{prefix}_{name}" for name in ("arburst", "arvalid", "arready", "rid")),
            _bytes_of(f"{prefix}_rdata"),
            *(f"&top.{prefix}_{name}" for name in ("rresp", "rlast", "rvalid", "rready")),
        ]
        for prefix, data_bytes, id_bits in shape.channels
    ]
    units: list[list[str]] = []
    inputs: list[list[str]] = []
    for number in shape.unit_numbers:
        bundle, row = f"m_axis_bundle{number}", row_name(shape, number)
        names = ("tvalid", "tready", "tlast")
        bundle_pins = [_bytes_of(f"{bundle}_tdata"), *(f"&top.{bundle}_{name}" for name in names)]
        names = ("tkeep", "tvalid", "tready", "tlast")
        row_pins = [_bytes_of(f"{row}_tdata"), *(f"&top.{row}_{name}" for name in names)]
        units.append(
            [
                f'"{bundle}"',
                f'"{row}"',
                *(["nullptr"] * len(bundle_pins) if shape.reduces else bundle_pins),
                *(["nullptr"] * len(row_pins) if shape.writes else row_pins),
                "&top.m_axis_aresetn",
                "&top.irq",
                str(len(units)),
            ]
        )
        stream = f"s_axis_index{number}"
        names = ("tdest", "tvalid", "tready")
        inputs.append(
            [
                str(shape.input_bytes),
                _bytes_of(f"{stream}_tdata"),
                *(f"&top.{stream}_{name}" for name in names),
            ]
            if shape.input_bytes
            else ["0", *["nullptr"] * 4]
        )
    return "\n".join(
        [
            "// Ports of simulation_top by channel and by unit.",
            "#pragma once",
            "",
            "#include <cstddef>",
            "#include <cstdint>",
            "",
            '#include "Vsimulation_top.h"',
            "",
            "namespace ember {",
            "",
            f"constexpr size_t CHANNELS = {len(channels)};",
            f"constexpr size_t UNITS = {len(units)};",
            "",
            *_struct(
                "ChannelPins",
                [
                    "const char* name",
                    "uint32_t bytes",
                    "uint32_t id_bits",
                    "uint64_t* araddr",
                    "uint32_t* arid",
                    "uint8_t *arlen, *arsize, *arburst, *arvalid, *arready",
                    "uint32_t* rid",
                    "uint8_t *rdata, *rresp, *rlast, *rvalid, *rready",
                ],
            ),
            *_struct(
                "WritePins",
                [
                    "const char* name",
                    "uint32_t bytes",
                    "uint64_t* awaddr",
                    "uint32_t* awid",
                    "uint8_t *awlen, *awsize, *awburst, *awvalid, *awready",
                    "uint8_t* wdata",
                    "uint64_t* wstrb",
                    "uint8_t *wlast, *wvalid, *wready",
                    "uint32_t* bid",
                    "uint8_t *bresp, *bvalid, *bready",
                ],
            ),
            *_struct(
                "UnitPins",
                [
                    "const char *bundle_name, *row_name",
                    "uint8_t *bundle_tdata, *bundle_tvalid, *bundle_tready, *bundle_tlast",
                    "uint8_t* row_tdata",
                    "uint64_t* row_tkeep",
                    "uint8_t *row_tvalid, *row_tready, *row_tlast",
                    "uint64_t *aresetn, *irq",
                    "uint32_t number",
                ],
            ),
            *_struct(
                "InputPins",
                [
                    "uint32_t bytes",
                    "uint8_t* tdata",
                    "uint32_t* tdest",
                    "uint8_t *tvalid, *tready",
                ],
            ),
            *_struct(
                "ProbePins",
                ["uint8_t *running, *row_asked", f"uint16_t* levels[{LEVELS}]"],
            ),
            *_probe_function(shape),
            *_write_function(shape),
            *_function("channel", channels),
            *_function("unit", units),
            *_function("input", inputs),
            "}  // namespace ember\n",
        ]
    )
