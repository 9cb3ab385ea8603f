"""What a board's memory must be, whatever it is made of."""

from __future__ import annotations

from amaranth.lib.wiring import In, Member

from ember_hw.boards.links.ports import MemoryAccessSignature
from ember_hw.config import AcceleratorConfig
from ember_hw.rtl import axi


def memory_members(config: AcceleratorConfig, *, link_address_bits: int = 32) -> dict[str, Member]:
    """Return the ports of a board's memory.

    `unit` is the access unit's memory port. Beats of one ID come in order. An address outside the
    memory is answered with DECODE_ERROR. `link` is the host's; what it wrote, all later reads see.
    Both may wait for each other's requests, neither for ever.

    Parameters
    ----------
    config : AcceleratorConfig
        Of the access unit: one memory port, which index lines share.
    link_address_bits : int
        Width of the link's addresses.

    Raises
    ------
    ValueError
        The config has several memory ports, or one for index lines.
    """
    if config.memory_ports != 1:
        raise ValueError(
            f"memory_ports must be 1 on a board with one memory, not {config.memory_ports!r}"
        )
    if config.index_port_bits:
        raise ValueError(
            "index_port_bits must be 0 on a board with one memory port, "
            f"not {config.index_port_bits!r}"
        )
    link = MemoryAccessSignature(address_bits=link_address_bits, data_bits=config.data_width_bits)
    return {"unit": In(axi.ReadSignature(config)), "link": In(link)}
