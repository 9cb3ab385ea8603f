"""The access units that suites measure, by what is counted of them."""

from __future__ import annotations

from ember_hw.config import AcceleratorConfig


def unit(
    data_width_bits: int, outstanding_reads: int, traversal_units: int = 2
) -> AcceleratorConfig:
    """Return a unit whose other sizes are the least that still reach the limit of its port.

    Two streams a traversal unit, two row entries, 4 exports and 2 scalars a bundle: an index, a
    weight and the number of a bag travel with each row. Addresses have 32 bits, as many as any
    memory on an ECP5 board needs.

    Parameters
    ----------
    data_width_bits : int
        Of the memory port.
    outstanding_reads : int
        Row bursts in flight; above 128, the reorder buffer and the queues before it grow alike.
    traversal_units : int
        Hardware loops.
    """
    many = max(1, outstanding_reads // 128)
    return AcceleratorConfig(
        name=f"{data_width_bits}-bit, {outstanding_reads} outstanding, {traversal_units} levels",
        data_width_bits=data_width_bits,
        address_width_bits=32,
        traversal_units=traversal_units,
        streams_per_unit=2,
        row_entries=2,
        exports=4,
        bundle_scalars=2,
        outstanding_reads=outstanding_reads,
        max_burst_beats=64,
        reorder_buffer_beats=512 * many,
        token_entries=128 * many,
        lines_per_stream=16 * many,
        bundle_entries=256 * many,
    )


def cluster_unit(data_width_bits: int, memory_ports: int = 1) -> AcceleratorConfig:
    """Return one of many units: less of everything, since all of them are compiled.

    The reads in flight make 512 beats of rows of 256 bytes at 128 bits: several times the latency
    of 100 cycles, so that a unit whose channel others use too has more to wait for.

    Parameters
    ----------
    data_width_bits : int
        Of each memory port.
    memory_ports : int
        Channels that the unit reaches, a row of 256 bytes on each in turn.
    """
    ports = "a port" if memory_ports == 1 else f"{memory_ports} ports"
    return AcceleratorConfig(
        name=f"{data_width_bits}-bit, one of many, {ports}",
        data_width_bits=data_width_bits,
        address_width_bits=32,
        traversal_units=2,
        streams_per_unit=1,
        row_entries=1,
        exports=4,
        bundle_scalars=1,
        outstanding_reads=32,
        max_burst_beats=16,
        reorder_buffer_beats=512,
        token_entries=64,
        bundle_entries=64,
        memory_ports=memory_ports,
        port_interleave_bytes=256,
    )
