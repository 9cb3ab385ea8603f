"""The catalogue's description has every port and register, each once."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree

import pytest

from ember_hw import registers
from ember_hw.boards.ip_package.ip_xact import ip_xact
from ember_hw.config import AcceleratorConfig
from ember_hw.rtl.emit_verilog import emit_verilog

NAMES = {"ipxact": "http://www.accellera.org/XMLSchema/IPXACT/1685-2014"}
CONFIGS = {
    "tiny": AcceleratorConfig.preset("tiny"),
    "many ports": AcceleratorConfig.preset("tiny").with_changes(
        name="many ports", memory_ports=2, index_port_bits=64, input_queue=1
    ),
    "axi3": AcceleratorConfig.preset("tiny").with_changes(name="axi3", memory_protocol="axi3"),
}


def _texts(root: ElementTree.Element, path: str) -> list[str]:
    return [element.text or "" for element in root.iterfind(path, NAMES)]


@pytest.mark.parametrize("name", ["tiny", "many ports"])
def test_ports_are_those_of_the_verilog(name: str) -> None:
    config = CONFIGS[name]
    root = ElementTree.fromstring(ip_xact(config, "1.0"))
    (header,) = re.findall(r"^module access_unit\(([^)]*)\)", emit_verilog(config), re.MULTILINE)
    ports = _texts(root, "ipxact:model/ipxact:ports/ipxact:port/ipxact:name")
    assert sorted(ports) == sorted(name.strip() for name in header.split(","))
    mapped = _texts(root, ".//ipxact:portMap/ipxact:physicalPort/ipxact:name")
    assert {*ports} - {*mapped} == {"rst", "irq", "m_axis_aresetn"}
    assert len(mapped) - len({*mapped}) == mapped.count("clk") - 1


def test_widths_are_those_of_the_config() -> None:
    config = CONFIGS["tiny"]
    root = ElementTree.fromstring(ip_xact(config, "1.0"))
    left = {
        (port.findtext("ipxact:name", "", NAMES)): port.findtext(".//ipxact:left", "0", NAMES)
        for port in root.iterfind("ipxact:model/ipxact:ports/ipxact:port", NAMES)
    }
    assert left["m_axis_row_tdata"] == str(config.data_width_bits - 1)
    assert left["m_axi_araddr"] == str(config.address_width_bits - 1)
    assert left["clk"] == "0"


def test_registers_have_their_addresses() -> None:
    root = ElementTree.fromstring(ip_xact(CONFIGS["tiny"], "1.0"))
    found = {
        register.findtext("ipxact:name", "", NAMES): int(
            register.findtext("ipxact:addressOffset", "", NAMES)
        )
        for register in root.iterfind(".//ipxact:register", NAMES)
    }
    for register in registers.REGISTERS:
        assert found[register.name] == register.address
    assert found["COUNTER_ROWS"] == registers.COUNTERS_ADDRESS + 8 * registers.Counter.ROWS
    assert list(found.values()) == sorted(found.values())


@pytest.mark.parametrize(
    ("config", "library"), [("tiny", "AMBA4"), ("axi3", "AMBA3")], ids=["AXI4", "AXI3"]
)
def test_memory_port_is_of_its_protocol(config: str, library: str) -> None:
    root = ElementTree.fromstring(ip_xact(CONFIGS[config], "1.0"))
    types = {
        interface.findtext("ipxact:name", "", NAMES): interface.find("ipxact:busType", NAMES)
        for interface in root.iterfind(".//ipxact:busInterface", NAMES)
    }
    bus = types["m_axi"]
    assert bus is not None
    assert bus.get("library") == library
