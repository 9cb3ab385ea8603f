"""Several access units on several memory channels."""

from __future__ import annotations

from collections.abc import Callable

from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import Member, Out

from ember_hw.config import AcceleratorConfig
from ember_hw.rtl import axi
from ember_hw.rtl.flat_ports import (
    INDEX_PREFIX,
    RESULT_PREFIX,
    connect_flat,
    flat_members,
    memory_prefixes,
    queue_members,
    queue_port,
)
from ember_hw.rtl.flat_unit import FlatAccessUnit
from ember_hw.rtl.lite_decoder import LiteDecoder
from ember_hw.rtl.read_arbiter import ReadArbiter

#: ``private``: unit u's port p is channel ``u * memory_ports + p``. ``shared``: port p of every
#: unit leads to channel p.
SHARINGS = ("private", "shared")


class AccessCluster(wiring.Component):
    """Units that are started one by one, and channels that are theirs alone or shared.

    A shared channel serves its units in turn; the IDs of its reads hold the unit's number above
    those of the unit. Nothing else is shared: each unit has its own queues.

    Parameters
    ----------
    config : AcceleratorConfig
        Of each unit.
    units : int
        1 to 8.
    channels : int
        Memory channels: ``units * config.memory_ports`` private ones, or `config.memory_ports`
        shared ones.
    sharing : str
        One of `SHARINGS`.
    make_unit : callable
        Makes a unit with flat ports of a config.

    Members
    -------
    s_axil_* : AXI4-Lite, subordinate
        The unit's number stands above the address of its registers.
    m_axi0_*, m_axi1_*, .. : AXI read channels, manager
    m_axi_index0_*, .. : AXI read channels, manager
        With `config.index_port_bits`, one a unit.
    m_axi_result0_*, .. : AXI write channels, manager
        With `config.results` ``memory``, one a unit.
    m_axis_bundle0_*, m_axis_row0_*, s_axis_index0_*, .. : AXI4-Stream
        The queues of each unit, as those of `FlatAccessUnit`.
    m_axis_aresetn, irq : out
        One bit a unit.
    """

    def __init__(
        self,
        *,
        config: AcceleratorConfig,
        units: int,
        channels: int,
        sharing: str,
        make_unit: Callable[..., wiring.Component] = FlatAccessUnit,
    ):
        if sharing not in SHARINGS:
            raise ValueError(f"sharing must be one of {', '.join(SHARINGS)}, not {sharing!r}")
        if not 1 <= units <= 8:
            raise ValueError(f"units must be from 1 to 8, not {units!r}")
        needed = config.memory_ports * (units if sharing == "private" else 1)
        if channels != needed:
            raise ValueError(
                f"channels must be {needed} ({sharing}, {units} units of {config.memory_ports} "
                f"memory ports), not {channels!r}"
            )
        self.config = config
        self.units = units
        self.channels = channels
        self.sharing = sharing
        self.make_unit = make_unit
        lite = axi.LiteSignature(address_bits=LiteDecoder.address_bits(units))
        members: dict[str, Member] = flat_members("s_axil", lite.flip())
        for number in range(channels):
            extra = (units - 1).bit_length() if sharing == "shared" else 0
            signature = axi.ReadSignature(config, extra_id_bits=extra)
            members |= flat_members(f"m_axi{number}", signature)
        for number in range(units):
            if config.index_port_bits:
                signature = axi.ReadSignature(config, index=True)
                members |= flat_members(f"{INDEX_PREFIX}{number}", signature)
            if config.results == "memory":
                members |= flat_members(f"{RESULT_PREFIX}{number}", axi.WriteSignature(config))
            members |= queue_members(config, str(number))
        super().__init__(members | {"m_axis_aresetn": Out(units), "irq": Out(units)})

    def elaborate(self, platform):
        m = Module()
        config = self.config
        m.submodules.decoder = decoder = LiteDecoder(units=self.units)
        connect_flat(m, self, "s_axil", decoder.bus)
        units = []
        for number in range(self.units):
            unit = self.make_unit(config=config)
            m.submodules[f"unit{number}"] = unit
            units.append(unit)
            _join(m, unit, "s_axil", decoder.units[number])
            m.d.comb += [
                self.m_axis_aresetn[number].eq(unit.m_axis_aresetn),
                self.irq[number].eq(unit.irq),
            ]
            for name, member in queue_members(config).items():
                outer, inner = queue_port(self, name, str(number)), getattr(unit, name)
                m.d.comb += outer.eq(inner) if member.flow is Out else inner.eq(outer)
            if config.index_port_bits:
                index = axi.ReadSignature(config, index=True)
                self._through(m, f"{INDEX_PREFIX}{number}", unit, INDEX_PREFIX, index)
            if config.results == "memory":
                written = axi.WriteSignature(config)
                self._through(m, f"{RESULT_PREFIX}{number}", unit, RESULT_PREFIX, written)

        for port, prefix in enumerate(memory_prefixes(config)):
            if self.sharing == "shared":
                arbiter = ReadArbiter(config=config, units=self.units)
                m.submodules[f"channel{port}"] = arbiter
                connect_flat(m, self, f"m_axi{port}", arbiter.channel)
                for unit, inner in zip(units, arbiter.units, strict=True):
                    _join(m, unit, prefix, inner)
            else:
                for number, unit in enumerate(units):
                    channel = number * config.memory_ports + port
                    signature = axi.ReadSignature(config)
                    self._through(m, f"m_axi{channel}", unit, prefix, signature)
        return m

    def _through(self, m: Module, outer_prefix: str, unit, prefix: str, signature) -> None:
        """Lead a port of a unit outside."""
        for name, member in signature.members.items():
            outer = getattr(self, f"{outer_prefix}_{name}")
            inner = getattr(unit, f"{prefix}_{name}")
            m.d.comb += outer.eq(inner) if member.flow is Out else inner.eq(outer)


def _join(m: Module, unit, prefix: str, inner) -> None:
    """Join a flat port of a unit and the other end of it, an interface of a block here."""
    for name, member in inner.signature.members.items():
        flat = getattr(unit, f"{prefix}_{name}")
        signal = getattr(inner, name)
        m.d.comb += flat.eq(signal) if member.flow is Out else signal.eq(flat)
