"""Flat ports with the names that AXI tools recognise, and what they are inside."""

from __future__ import annotations

from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Member, Out

from ember_hw.config import AcceleratorConfig
from ember_hw.rtl import axi
from ember_hw.rtl.layouts import stream_bits

INDEX_PREFIX = "m_axi_index"
RESULT_PREFIX = "m_axi_result"


def memory_prefixes(config: AcceleratorConfig) -> list[str]:
    """Return the prefix of each memory port's signals."""
    if config.memory_ports == 1:
        return ["m_axi"]
    return [f"m_axi{number}" for number in range(config.memory_ports)]


def flat_members(prefix: str, signature: wiring.Signature) -> dict[str, Member]:
    """Return the members of a signature as ports that begin with a prefix."""
    return {f"{prefix}_{name}": member for name, member in signature.members.items()}


def memory_members(config: AcceleratorConfig) -> dict[str, Member]:
    """Return the ports of one unit's memory ports."""
    members = {}
    for prefix in memory_prefixes(config):
        members |= flat_members(prefix, axi.ReadSignature(config))
    if config.index_port_bits:
        members |= flat_members(INDEX_PREFIX, axi.ReadSignature(config, index=True))
    if config.results == "memory":
        members |= flat_members(RESULT_PREFIX, axi.WriteSignature(config))
    return members


def queue_members(config: AcceleratorConfig, suffix: str = "") -> dict[str, Member]:
    """Return the ports of one unit's queues; `suffix` is the unit's number, where there are more.

    Examples
    --------
    >>> list(queue_members(AcceleratorConfig(), "0"))[0]
    'm_axis_bundle0_tdata'
    """
    members: dict[str, Member] = {}
    rows = "result"
    if config.execute == "queues":
        rows = "row"
        members |= {
            f"m_axis_bundle{suffix}_tdata": Out(8 * config.bundle_bytes),
            f"m_axis_bundle{suffix}_tlast": Out(1),
            f"m_axis_bundle{suffix}_tvalid": Out(1),
            f"m_axis_bundle{suffix}_tready": In(1),
        }
    if config.results == "stream":
        members |= {
            f"m_axis_{rows}{suffix}_tdata": Out(config.data_width_bits),
            f"m_axis_{rows}{suffix}_tkeep": Out(config.bus_bytes),
            f"m_axis_{rows}{suffix}_tlast": Out(1),
            f"m_axis_{rows}{suffix}_tvalid": Out(1),
            f"m_axis_{rows}{suffix}_tready": In(1),
        }
    if config.input_queue:
        members |= {
            f"s_axis_index{suffix}_tdata": In(config.index_bits),
            f"s_axis_index{suffix}_tdest": In(stream_bits(config)),
            f"s_axis_index{suffix}_tvalid": In(1),
            f"s_axis_index{suffix}_tready": Out(1),
        }
    return members


def connect_flat(m: Module, flat: wiring.Component, prefix: str, inner) -> None:
    """Connect an interface of a block inside to the flat ports of the same name."""
    for name, member in inner.signature.members.items():
        outer = getattr(flat, f"{prefix}_{name}")
        signal = getattr(inner, name)
        m.d.comb += outer.eq(signal) if member.flow is Out else signal.eq(outer)


def queue_port(flat: wiring.Component, name: str, suffix: str = ""):
    """Return a flat port of a queue by the name that it has where there is one unit.

    ``m_axis_row_tdata`` of unit 2 is ``m_axis_row2_tdata``.
    """
    queue, signal = name.rsplit("_", 1)
    return getattr(flat, f"{queue}{suffix}_{signal}")


def connect_queues(m: Module, flat: wiring.Component, unit) -> None:
    """Connect the queues of an access unit to flat ports."""
    config: AcceleratorConfig = flat.config

    if config.execute == "reduce":
        if config.results == "stream":
            _connect_rows(m, flat, "m_axis_result", unit.result)
    else:
        _connect_rows(m, flat, "m_axis_row", unit.row)
        bundle = unit.bundle
        m.d.comb += [
            flat.m_axis_bundle_tdata.eq(
                bundle.payload.events | (bundle.payload.scalars.as_value() << config.events)
            ),
            flat.m_axis_bundle_tlast.eq(bundle.payload.last),
            flat.m_axis_bundle_tvalid.eq(bundle.valid),
            bundle.ready.eq(flat.m_axis_bundle_tready),
        ]
    if config.input_queue:
        queue = unit.index_queue
        m.d.comb += [
            queue.payload.data.eq(flat.s_axis_index_tdata),
            queue.payload.stream.eq(flat.s_axis_index_tdest),
            queue.valid.eq(flat.s_axis_index_tvalid),
            flat.s_axis_index_tready.eq(queue.ready),
        ]


def _connect_rows(m: Module, flat: wiring.Component, prefix: str, rows) -> None:
    """Connect a stream of rows to flat ports."""

    def port(name: str):
        return getattr(flat, f"{prefix}_{name}")

    keep = port("tkeep")
    for i in range(len(keep)):
        m.d.comb += keep[i].eq(rows.payload.bytes > i)
    m.d.comb += [
        port("tdata").eq(rows.payload.data),
        port("tlast").eq(rows.payload.last),
        port("tvalid").eq(rows.valid),
        rows.ready.eq(port("tready")),
    ]
