"""Payloads of the streams between the blocks of the access unit, each defined here once.

Stream rules, for every stream of the unit: a payload moves in a cycle where `valid` and `ready` are
both high; `valid` never waits for `ready`; the payload holds while `valid` is high and `ready` is
low.
"""

from __future__ import annotations

from amaranth.hdl import Value, signed
from amaranth.lib import data

from ember_hw import isa
from ember_hw.config import LINE_BYTES, VALUE_WIDTH_BITS, AcceleratorConfig
from ember_hw.registers import FaultCode


def record_layout(path: str, config: AcceleratorConfig) -> data.StructLayout:
    """Return a microcode record as a layout: its members are the ISA's fields, in their order."""
    members: dict[str, object] = {}
    for f in isa.layouts(config)[path].fields:
        if f.choices is not None:
            members[f.name] = f.choices
        elif f.kind is isa.FieldKind.SIGNED:
            members[f.name] = signed(f.width_bits)
        else:
            members[f.name] = f.width_bits
    return data.StructLayout(members)


def values_layout(config: AcceleratorConfig) -> data.ArrayLayout:
    """Return the exports of a traversal unit: `config.exports` values."""
    return data.ArrayLayout(VALUE_WIDTH_BITS, config.exports)


def token_layout(config: AcceleratorConfig) -> data.StructLayout:
    """Return what leaves a unit: event bits of its level and those above, and its exports."""
    return data.StructLayout({"events": config.events, "exports": values_layout(config)})


def window_layout() -> data.StructLayout:
    """Return the part of an element's number that is fixed within a loop: `first`, outer term.

    `lost`: it does not fit, so no induction value can bring the element into its region.
    """
    return data.StructLayout({"start": signed(VALUE_WIDTH_BITS + 2), "lost": 1})


def entry_layout(config: AcceleratorConfig) -> data.StructLayout:
    """Return one entry of a loop: its first induction value, its length, its streams' windows.

    `left` is upper - lower - 1 - step: its sign says that the first iteration is the last. `void`:
    the parent's loop was empty, this one is not entered. `empty`: entered without an iteration.
    `events` are those of the parent's token.
    """
    return data.StructLayout(
        {
            "events": config.events,
            "lower": VALUE_WIDTH_BITS,
            "left": signed(VALUE_WIDTH_BITS + 2),
            "void": 1,
            "empty": 1,
            "windows": data.ArrayLayout(window_layout(), config.streams_per_unit),
        }
    )


def iteration_layout(config: AcceleratorConfig) -> data.StructLayout:
    """Return one step of a loop, before its loads.

    `iterates`: the induction value is real. `ghost`: only stream 0 is loaded, for the NEXT value of
    the step before. `last`: the entry's last step that leaves the unit.
    """
    return data.StructLayout(
        {
            "events": config.events,
            "induction": VALUE_WIDTH_BITS,
            "iterates": 1,
            "ghost": 1,
            "last": 1,
        }
    )


def load_layout() -> data.StructLayout:
    """Return one stream's part of a step: does it load, is the line new, which byte of the line."""
    return data.StructLayout({"use": 1, "new": 1, "offset": (LINE_BYTES - 1).bit_length()})


def step_layout(config: AcceleratorConfig) -> data.StructLayout:
    """Return one step of a loop that waits for its loads."""
    return data.StructLayout(
        {
            "iteration": iteration_layout(config),
            "loads": data.ArrayLayout(load_layout(), config.streams_per_unit),
        }
    )


def line_address_bits(config: AcceleratorConfig) -> int:
    """Return the width of a line's number: a byte address without the byte within the line."""
    return config.address_width_bits - (LINE_BYTES - 1).bit_length()


def streams(config: AcceleratorConfig) -> int:
    """Return the number of memory streams of all units."""
    return config.traversal_units * config.streams_per_unit


def stream_bits(config: AcceleratorConfig) -> int:
    """Return the width of a memory stream's number."""
    return max(1, (streams(config) - 1).bit_length())


def row_tags(config: AcceleratorConfig) -> int:
    """Return how many tags the rows' reads take in turn: a power of two, 16 at most.

    Reads of one tag return in order, so a memory that reorders wants several.
    """
    return min(16, 1 << (config.outstanding_reads - 1).bit_length())


def index_tags(config: AcceleratorConfig) -> int:
    """Return how many tags the lines' reads have.

    One a stream, so that a stream's lines return in order; 16 in turn where lines go through
    several ports, which keep no order among them.
    """
    return 16 if lines_reorder(config) else max(2, streams(config))


def lines_reorder(config: AcceleratorConfig) -> bool:
    """Return whether a stream's lines may return in another order than they were asked for."""
    return config.memory_ports > 1 and not config.index_port_bits


def line_port_bits(config: AcceleratorConfig) -> int:
    """Return the width of the port that index lines are read from."""
    return config.index_port_bits or config.data_width_bits


def tag_bits(config: AcceleratorConfig) -> int:
    """Return the width of ARID on a memory port: the tag, and a top bit that is 1 for lines."""
    return 1 + request_tag_bits(config)


def request_tag_bits(config: AcceleratorConfig) -> int:
    """Return the width of a request's tag."""
    return (max(row_tags(config), index_tags(config)) - 1).bit_length()


def beat_tag_bits(config: AcceleratorConfig) -> int:
    """Return the width of a returned beat's tag: that of its request, then its port's number."""
    return request_tag_bits(config) + (config.memory_ports - 1).bit_length()


def port_of(address: Value, config: AcceleratorConfig) -> Value:
    """Return the number of the memory port that serves an address."""
    first = (config.port_interleave_bytes - 1).bit_length()
    return Value.cast(address[first : first + (config.memory_ports - 1).bit_length()])


def length_bits(config: AcceleratorConfig) -> int:
    """Return the width of a read's length, which is its beats less one."""
    return max(1, (max(config.max_burst_beats, config.line_beats) - 1).bit_length())


def read_request_layout(config: AcceleratorConfig) -> data.StructLayout:
    """Return a read: byte address, beats less one, tag. Those of one tag and port keep order."""
    return data.StructLayout(
        {
            "address": config.address_width_bits,
            "length": length_bits(config),
            "tag": request_tag_bits(config),
            "hint": isa.Hint,
        }
    )


def read_beat_layout(config: AcceleratorConfig) -> data.StructLayout:
    """Return a beat that memory returned: tag, data and RRESP; `last` is that of its read."""
    return data.StructLayout(
        {"tag": beat_tag_bits(config), "data": config.data_width_bits, "last": 1, "response": 2}
    )


def index_beat_layout(config: AcceleratorConfig) -> data.StructLayout:
    """Return a beat of an index line, as wide as the port it came from."""
    return data.StructLayout(
        {"tag": beat_tag_bits(config), "data": line_port_bits(config), "last": 1, "response": 2}
    )


def index_word_layout(config: AcceleratorConfig) -> data.StructLayout:
    """Return a part of a line on its way to the line store of a stream."""
    return data.StructLayout({"data": config.index_bits, "stream": stream_bits(config)})


def descriptor_layout(config: AcceleratorConfig) -> data.StructLayout:
    """Return a row to fetch: entry, byte address (a multiple of the bus width), bytes less one."""
    return data.StructLayout(
        {
            "address": config.address_width_bits,
            "last_byte": 16,
            "hint": isa.Hint,
            "entry": range(config.row_entries),
        }
    )


def bundle_layout(config: AcceleratorConfig) -> data.StructLayout:
    """Return a bundle: selected events of a leaf token, its scalars; `last` ends the program."""
    return data.StructLayout(
        {
            "events": config.events,
            "scalars": data.ArrayLayout(VALUE_WIDTH_BITS, config.bundle_scalars),
            "last": 1,
        }
    )


def row_beat_layout(config: AcceleratorConfig) -> data.StructLayout:
    """Return a beat of a row: data, how many of its bytes are the row's; `last` ends the row."""
    return data.StructLayout(
        {"data": config.data_width_bits, "bytes": config.bus_bytes.bit_length(), "last": 1}
    )


def fault_layout(config: AcceleratorConfig) -> data.StructLayout:
    """Return a fault: its code, where it happened, and the address or value that caused it."""
    return data.StructLayout(
        {"code": FaultCode, "unit": 8, "stream": 8, "address": config.address_width_bits}
    )
