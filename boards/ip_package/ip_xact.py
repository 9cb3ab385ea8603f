"""The description of the access unit that IP catalogues read: IEEE 1685-2014, `component.xml`.

Ref: IEEE Std 1685-2014 (IP-XACT), clauses 6.1 (component), 6.5 (bus interfaces), 6.9 (memory maps),
6.11 (ports).
"""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from amaranth.hdl import Shape
from amaranth.lib import wiring
from amaranth.lib.wiring import Out

from ember_hw import registers
from ember_hw.config import AcceleratorConfig
from ember_hw.isa import microcode_words
from ember_hw.rtl.flat_unit import UNIT_NAME, unit_members

_NAMESPACE = "http://www.accellera.org/XMLSchema/IPXACT/1685-2014"
_PREFIX = "ipxact"
_WORD_BITS = 32
_ACCESS = {"ro": "read-only", "rw": "read-write", "wo": "write-only"}


class _Bus(NamedTuple):
    """A bus type: vendor, library, name and version of its definition and of its abstraction."""

    definition: tuple[str, str, str, str]
    abstraction: tuple[str, str, str, str]


def _amba(version: str, name: str, revision: str) -> _Bus:
    return _Bus(
        ("amba.com", version, name, revision), ("amba.com", version, f"{name}_rtl", revision)
    )


_LITE = _amba("AMBA4", "AXI4Lite", "r0p0_0")
_AXI4 = _amba("AMBA4", "AXI4", "r0p0_0")
_AXI3 = _amba("AMBA3", "AXI", "r2p0_0")
_STREAM = _amba("AMBA4", "AXI4Stream", "r0p0_1")


def ip_xact(config: AcceleratorConfig, version: str) -> str:
    """Return the text of `component.xml`.

    Parameters
    ----------
    config : AcceleratorConfig
        Of the unit whose Verilog lies beside it as `access_unit.v`.
    version : str
        Of the component.
    """
    ElementTree.register_namespace(_PREFIX, _NAMESPACE)
    component = ElementTree.Element(_tag("component"))
    _vlnv(component, ("ember-hw", "accelerators", UNIT_NAME, version))
    members = unit_members(config)
    ports = ["clk", "rst", *members]
    interfaces = _add(component, "busInterfaces")
    for name in bus_names(members):
        _bus_interface(interfaces, name, [p for p in ports if p.startswith(f"{name}_")], config)
    for name in bus_names(members):
        if name.startswith("m_axi") and not name.startswith("m_axis"):
            _address_space(component, name, config)
    _memory_map(component, config)
    _model(component, members)
    files = _add(component, "fileSets", "fileSet")
    _add(files, "name", text="rtl")
    file = _add(files, "file")
    _add(file, "name", text=f"{UNIT_NAME}.v")
    _add(file, "fileType", text="verilogSource")
    _add(
        component,
        "description",
        text="Access unit: walks loops, gathers rows and feeds queues; see config.json.",
    )
    ElementTree.indent(component)
    text = ElementTree.tostring(component, encoding="unicode")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{text}\n'


def bus_names(members: Mapping[str, wiring.Member]) -> list[str]:
    """Return the names of the bus interfaces, from the prefixes of the flat ports.

    Examples
    --------
    >>> bus_names(unit_members(AcceleratorConfig()))
    ['s_axil', 'm_axi', 'm_axis_bundle', 'm_axis_row']
    """
    names: list[str] = []
    for port in members:
        name, _, signal = port.rpartition("_")
        if name and signal != "aresetn" and name not in names:
            names.append(name)
    return names


def _tag(name: str) -> str:
    return f"{{{_NAMESPACE}}}{name}"


def _add(parent: ElementTree.Element, *path: str, text: str = "") -> ElementTree.Element:
    for name in path:
        parent = ElementTree.SubElement(parent, _tag(name))
    parent.text = text or None
    return parent


def _vlnv(parent: ElementTree.Element, parts: tuple[str, str, str, str]) -> None:
    for name, text in zip(("vendor", "library", "name", "version"), parts, strict=True):
        _add(parent, name, text=text)


def _reference(parent: ElementTree.Element, name: str, parts: tuple[str, str, str, str]) -> None:
    attributes = dict(zip(("vendor", "library", "name", "version"), parts, strict=True))
    ElementTree.SubElement(parent, _tag(name), attributes)


def _bus_interface(
    interfaces: ElementTree.Element, name: str, ports: list[str], config: AcceleratorConfig
) -> None:
    bus = _LITE if name == "s_axil" else _STREAM if "_axis_" in name else _AXI4
    if bus is _AXI4 and config.memory_protocol == "axi3":
        bus = _AXI3
    interface = _add(interfaces, "busInterface")
    _add(interface, "name", text=name)
    _reference(interface, "busType", bus.definition)
    abstraction = _add(interface, "abstractionTypes", "abstractionType")
    _reference(abstraction, "abstractionRef", bus.abstraction)
    maps = _add(abstraction, "portMaps")
    for port in [*ports, "clk"]:
        logical = "ACLK" if port == "clk" else port.removeprefix(f"{name}_").upper()
        pair = _add(maps, "portMap")
        _add(pair, "logicalPort", "name", text=logical)
        _add(pair, "physicalPort", "name", text=port)
    if name.startswith("s_"):
        slave = _add(interface, "slave")
        if bus is _LITE:
            ElementTree.SubElement(slave, _tag("memoryMapRef"), {"memoryMapRef": "registers"})
    else:
        master = _add(interface, "master")
        if bus is not _STREAM:
            ElementTree.SubElement(
                master, _tag("addressSpaceRef"), {"addressSpaceRef": f"{name}_memory"}
            )


def _address_space(component: ElementTree.Element, name: str, config: AcceleratorConfig) -> None:
    spaces = component.find(_tag("addressSpaces"))
    if spaces is None:
        spaces = _add(component, "addressSpaces")
    space = _add(spaces, "addressSpace")
    _add(space, "name", text=f"{name}_memory")
    _add(space, "range", text=str(1 << config.address_width_bits))
    _add(space, "width", text=str(config.data_width_bits))


def _memory_map(component: ElementTree.Element, config: AcceleratorConfig) -> None:
    memory_map = _add(component, "memoryMaps", "memoryMap")
    _add(memory_map, "name", text="registers")
    block = _add(memory_map, "addressBlock")
    _add(block, "name", text="registers")
    _add(block, "baseAddress", text="0")
    _add(block, "range", text=str(1 << registers.ADDRESS_WIDTH_BITS))
    _add(block, "width", text=str(_WORD_BITS))
    for name, address, count, access, text in _registers(config):
        register = _add(block, "register")
        _add(register, "name", text=name)
        _add(register, "description", text=text)
        if count > 1:
            _add(register, "dim", text=str(count))
        _add(register, "addressOffset", text=str(address))
        _add(register, "size", text=str(_WORD_BITS))
        field = _add(register, "field")
        _add(field, "name", text="value")
        _add(field, "bitOffset", text="0")
        _add(field, "bitWidth", text=str(_WORD_BITS))
        _add(field, "access", text=_ACCESS[access])
    _add(memory_map, "addressUnitBits", text="8")


def _registers(config: AcceleratorConfig) -> Iterator[tuple[str, int, int, str, str]]:
    """Yield name, byte address, words, access and description, in the order of addresses."""
    for register in registers.REGISTERS:
        yield register.name, register.address, 1, register.access, register.description
    yield (
        "ARGUMENTS",
        registers.ARGUMENTS_ADDRESS,
        config.exports,
        "rw",
        registers.ARGUMENT_TEXT,
    )
    for counter in registers.Counter:
        yield (
            f"COUNTER_{counter.name}",
            registers.counter_address(counter),
            2,
            "ro",
            registers.COUNTER_TEXTS[counter],
        )
    yield (
        "MICROCODE",
        registers.MICROCODE_ADDRESS,
        microcode_words(config),
        "wo",
        "words of the program",
    )


def _model(component: ElementTree.Element, members: Mapping[str, wiring.Member]) -> None:
    model = _add(component, "model")
    view = _add(model, "views", "view")
    _add(view, "name", text="rtl")
    _add(view, "componentInstantiationRef", text="rtl")
    instantiation = _add(model, "instantiations", "componentInstantiation")
    _add(instantiation, "name", text="rtl")
    _add(instantiation, "language", text="Verilog")
    _add(instantiation, "moduleName", text=UNIT_NAME)
    _add(instantiation, "fileSetRef", "localName", text="rtl")
    ports = _add(model, "ports")
    widths = {"clk": ("in", 1), "rst": ("in", 1)}
    for name, member in members.items():
        widths[name] = ("out" if member.flow is Out else "in", _width_bits(member))
    for name, (direction, width) in widths.items():
        port = _add(ports, "port")
        _add(port, "name", text=name)
        wire = _add(port, "wire")
        _add(wire, "direction", text=direction)
        if width > 1:
            vector = _add(wire, "vectors", "vector")
            _add(vector, "left", text=str(width - 1))
            _add(vector, "right", text="0")


def _width_bits(member: wiring.Member) -> int:
    return Shape.cast(member.shape).width
