"""Signatures of the AXI ports, named as the specification names the signals.

Ref: AMBA AXI protocol, IHI 0022, A2 and B1.
"""

from __future__ import annotations

from amaranth.hdl import Mux, Value
from amaranth.lib import enum, wiring
from amaranth.lib.wiring import In, Out

from ember_hw import registers
from ember_hw.config import AcceleratorConfig
from ember_hw.rtl.layouts import request_tag_bits, tag_bits


class Response(enum.Enum, shape=2):
    """BRESP and RRESP."""

    OKAY = 0
    EXCLUSIVE_OKAY = 1
    SLAVE_ERROR = 2
    DECODE_ERROR = 3


def failed(response) -> Value:
    """Return whether a response is an error."""
    return (response == Response.SLAVE_ERROR) | (response == Response.DECODE_ERROR)


def read_fault(response) -> Value:
    """Return the fault code of a response that is an error."""
    return Mux(
        response == Response.DECODE_ERROR,
        registers.FaultCode.READ_DECODE_ERROR,
        registers.FaultCode.READ_SLAVE_ERROR,
    )


def write_fault(response) -> Value:
    """Return the fault code of a response to a write that is an error."""
    return Mux(
        response == Response.DECODE_ERROR,
        registers.FaultCode.WRITE_DECODE_ERROR,
        registers.FaultCode.WRITE_SLAVE_ERROR,
    )


class Burst(enum.Enum, shape=2):
    """ARBURST and AWBURST."""

    FIXED = 0
    INCREMENTING = 1
    WRAPPING = 2


class LiteSignature(wiring.Signature):
    """AXI4-Lite with 32-bit data, seen from the manager.

    Parameters
    ----------
    address_bits : int
        Width of the byte address; one access unit's, if there is nothing to say.
    """

    def __init__(self, *, address_bits: int = registers.ADDRESS_WIDTH_BITS):
        super().__init__(
            {
                "awaddr": Out(address_bits),
                "awprot": Out(3),
                "awvalid": Out(1),
                "awready": In(1),
                "wdata": Out(32),
                "wstrb": Out(4),
                "wvalid": Out(1),
                "wready": In(1),
                "bresp": In(Response),
                "bvalid": In(1),
                "bready": Out(1),
                "araddr": Out(address_bits),
                "arprot": Out(3),
                "arvalid": Out(1),
                "arready": In(1),
                "rdata": In(32),
                "rresp": In(Response),
                "rvalid": In(1),
                "rready": Out(1),
            }
        )


class ReadSignature(wiring.Signature):
    """The read channels of AXI4 or AXI3, seen from the manager; ARID is the read's tag.

    Parameters
    ----------
    config : AcceleratorConfig
        Gives the protocol and the widths of address, data and ID.
    index : bool
        The index lines' own port: its width, and no bit that tells lines from rows.
    extra_id_bits : int
        Bits of the IDs above those of one access unit.
    """

    def __init__(self, config: AcceleratorConfig, *, index: bool = False, extra_id_bits: int = 0):
        self.config = config
        self.index = index
        self.extra_id_bits = extra_id_bits
        is_axi3 = config.memory_protocol == "axi3"
        id_bits = extra_id_bits + (request_tag_bits(config) if index else tag_bits(config))
        members = {
            "arid": Out(id_bits),
            "araddr": Out(config.address_width_bits),
            "arlen": Out(4 if is_axi3 else 8),
            "arsize": Out(3),
            "arburst": Out(Burst),
            "arlock": Out(2 if is_axi3 else 1),
            "arcache": Out(4),
            "arprot": Out(3),
        }
        if not is_axi3:
            members["arqos"] = Out(4)
        members |= {
            "arvalid": Out(1),
            "arready": In(1),
            "rid": In(id_bits),
            "rdata": In(config.index_port_bits if index else config.data_width_bits),
            "rresp": In(Response),
            "rlast": In(1),
            "rvalid": In(1),
            "rready": Out(1),
        }
        super().__init__(members)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, ReadSignature)
            and self.config == other.config
            and self.index == other.index
            and self.extra_id_bits == other.extra_id_bits
        )


class WriteSignature(wiring.Signature):
    """The write channels of AXI4 or AXI3, seen from the manager; every write has ID 0.

    Parameters
    ----------
    config : AcceleratorConfig
        Gives the protocol and the widths of address and data.
    """

    def __init__(self, config: AcceleratorConfig):
        self.config = config
        is_axi3 = config.memory_protocol == "axi3"
        members = {
            "awid": Out(1),
            "awaddr": Out(config.address_width_bits),
            "awlen": Out(4 if is_axi3 else 8),
            "awsize": Out(3),
            "awburst": Out(Burst),
            "awlock": Out(2 if is_axi3 else 1),
            "awcache": Out(4),
            "awprot": Out(3),
        }
        members |= {"wid": Out(1)} if is_axi3 else {"awqos": Out(4)}
        members |= {
            "awvalid": Out(1),
            "awready": In(1),
            "wdata": Out(config.data_width_bits),
            "wstrb": Out(config.bus_bytes),
            "wlast": Out(1),
            "wvalid": Out(1),
            "wready": In(1),
            "bid": In(1),
            "bresp": In(Response),
            "bvalid": In(1),
            "bready": Out(1),
        }
        super().__init__(members)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, WriteSignature) and self.config == other.config
