"""The harness's C interface (harness.h) for ctypes: structures, prototypes, conversions."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from ctypes import (
    POINTER,
    Structure,
    byref,
    c_char_p,
    c_double,
    c_int,
    c_size_t,
    c_uint32,
    c_uint64,
    c_void_p,
)
from pathlib import Path
from typing import Any

from .build import ModelShape
from .memory_library import MemoryStruct
from .options import CoreLikeSink, IdealSink, Pushes, Sink, StallingSink

FAILED = -1


class ShapeStruct(Structure):
    """`struct EmberShape`."""

    _fields_ = (
        ("bus_bytes", c_uint32),
        ("bundle_bytes", c_uint32),
        ("event_bits", c_uint32),
        ("id_bits", c_uint32),
        ("address_bits", c_uint32),
        ("memory_ports", c_uint32),
        ("index_port_bytes", c_uint32),
        ("index_id_bits", c_uint32),
        ("length_bits", c_uint32),
        ("units", c_uint32),
        ("input_bytes", c_uint32),
        ("input_dest_bits", c_uint32),
        ("reduces", c_uint32),
        ("writes", c_uint32),
        ("probed_streams", c_uint32),
    )


class SinkStruct(Structure):
    """`struct EmberSink`."""

    _fields_ = (
        ("kind", c_uint32),
        ("joint", c_uint32),
        ("events", c_uint32),
        ("row_entries", c_uint32),
        ("scalars_per_event", POINTER(c_uint32)),
        ("row_event_masks", POINTER(c_uint64)),
        ("token_cycles", c_uint64),
        ("bytes_per_cycle", c_uint64),
        ("seed", c_uint64),
        ("stall_probability", c_double),
        ("freeze_probability", c_double),
        ("freeze_cycles", c_uint64),
    )


class AccessStruct(Structure):
    """`struct EmberAccess`."""

    _fields_ = (
        ("kind", c_uint32),
        ("address", c_uint32),
        ("value", c_uint32),
        ("mask", c_uint32),
    )


class OutputStruct(Structure):
    """`struct EmberOutput`."""

    _fields_ = (
        ("bundle_data", c_void_p),
        ("bundle_capacity", c_size_t),
        ("row_data", c_void_p),
        ("row_capacity", c_size_t),
        ("row_last", c_void_p),
        ("row_cycles", c_void_p),
        ("bundles", c_size_t),
        ("row_beats", c_size_t),
    )


class RunStruct(Structure):
    """`struct EmberRun`."""

    _fields_ = (
        ("outputs", POINTER(OutputStruct)),
        ("awaited", c_uint64),
        ("max_idle_cycles", c_uint64),
        ("max_cycles", c_uint64),
        ("cycles", c_uint64),
    )


class CountersStruct(Structure):
    """`struct EmberCounters`."""

    _fields_ = (
        ("cycles", c_uint64),
        ("start_to_done_cycles", c_uint64),
        ("read_requests", c_uint64),
        ("read_beats", c_uint64),
        ("read_bytes", c_uint64),
        ("read_errors", c_uint64),
        ("peak_outstanding_reads", c_uint64),
        ("bundles", c_uint64),
        ("row_beats", c_uint64),
        ("row_bytes", c_uint64),
    )


class ChannelCountersStruct(Structure):
    """`struct EmberChannelCounters`."""

    _fields_ = (
        ("read_requests", c_uint64),
        ("read_beats", c_uint64),
        ("read_bytes", c_uint64),
        ("read_errors", c_uint64),
        ("peak_outstanding_reads", c_uint64),
        ("refused_cycles", c_uint64),
    )


class WriteCountersStruct(Structure):
    """`struct EmberWriteCounters`."""

    _fields_ = (
        ("write_requests", c_uint64),
        ("write_beats", c_uint64),
        ("write_bytes", c_uint64),
        ("write_errors", c_uint64),
        ("peak_outstanding_writes", c_uint64),
    )


class TraceStruct(Structure):
    """`struct EmberTrace`."""

    _fields_ = (
        ("path", c_char_p),
        ("first", c_uint64),
        ("end", c_uint64),
        ("by_rows", c_uint32),
        ("reserved", c_uint32),
    )


class ProfileStruct(Structure):
    """`struct EmberProfile`."""

    _fields_ = (
        ("running_cycles", c_uint64),
        ("fill_cycles", c_uint64),
        ("drain_cycles", c_uint64),
        ("execute_cycles", c_uint64),
    )


class StreamStruct(Structure):
    """`struct EmberStream`."""

    _fields_ = (("valid", c_uint32), ("ready", c_uint32))


_PROTOTYPES: dict[str, tuple[Any, Sequence[Any]]] = {
    "ember_shape": (None, (POINTER(ShapeStruct),)),
    "ember_create": (c_void_p, (c_uint32,)),
    "ember_destroy": (None, (c_void_p,)),
    "ember_message": (c_char_p, (c_void_p,)),
    "ember_reset": (c_int, (c_void_p, c_uint32)),
    "ember_write_register": (c_int, (c_void_p, c_uint32, c_uint32)),
    "ember_read_register": (c_int, (c_void_p, c_uint32, POINTER(c_uint32))),
    "ember_map_region": (None, (c_void_p, c_uint64, c_void_p, c_uint64, c_uint32)),
    "ember_unmap_regions": (None, (c_void_p,)),
    "ember_set_memory": (c_int, (c_void_p, c_uint32, POINTER(MemoryStruct))),
    "ember_set_sink": (c_int, (c_void_p, c_uint32, POINTER(SinkStruct))),
    "ember_set_accesses": (None, (c_void_p, POINTER(AccessStruct), c_size_t)),
    "ember_accesses_left": (c_size_t, (c_void_p,)),
    "ember_set_input": (None, (c_void_p, c_uint32, c_void_p, c_void_p, c_size_t)),
    "ember_input_lines_left": (c_size_t, (c_void_p, c_uint32)),
    "ember_run": (c_int, (c_void_p, POINTER(RunStruct))),
    "ember_counters": (None, (c_void_p, POINTER(CountersStruct), POINTER(c_uint64))),
    "ember_channel_counters": (None, (c_void_p, c_uint32, POINTER(ChannelCountersStruct))),
    "ember_write_counters": (None, (c_void_p, POINTER(WriteCountersStruct))),
    "ember_clear_counters": (None, (c_void_p,)),
    "ember_record_reads": (None, (c_void_p, c_uint64)),
    "ember_reads": (c_size_t, (c_void_p, c_uint32, c_void_p, c_size_t)),
    "ember_record_writes": (None, (c_void_p, c_uint64)),
    "ember_write_cycles": (c_size_t, (c_void_p, c_void_p, c_size_t)),
    "ember_dram_commands": (c_size_t, (c_void_p, c_uint32, c_void_p, c_size_t)),
    "ember_open_trace": (c_int, (c_void_p, POINTER(TraceStruct))),
    "ember_close_trace": (None, (c_void_p,)),
    "ember_traced_cycles": (c_uint64, (c_void_p,)),
    "ember_clear_profile": (None, (c_void_p,)),
    "ember_profile": (None, (c_void_p, c_uint32, POINTER(ProfileStruct))),
    "ember_occupancy": (c_size_t, (c_void_p, c_uint32, c_uint32, c_void_p, c_size_t)),
    "ember_level": (c_uint32, (c_void_p, c_uint32, c_uint32)),
    "ember_unit_streams": (None, (c_void_p, c_uint32, POINTER(StreamStruct))),
    "ember_channel_streams": (c_uint64, (c_void_p, c_uint32, POINTER(StreamStruct))),
    "ember_write_streams": (c_uint64, (c_void_p, POINTER(StreamStruct))),
}


def load_library(path: Path) -> ctypes.CDLL:
    """Return the compiled model with its functions' types declared."""
    library = ctypes.CDLL(str(path))
    for name, (result, arguments) in _PROTOTYPES.items():
        function = getattr(library, name)
        function.restype = result
        function.argtypes = arguments
    return library


def shape_of(library: ctypes.CDLL) -> ModelShape:
    """Return the port widths that the library was compiled for."""
    struct = ShapeStruct()
    library.ember_shape(byref(struct))
    return ModelShape(**{field[0]: getattr(struct, field[0]) for field in ShapeStruct._fields_})


def sink_struct(sink: Sink) -> SinkStruct:
    """Return the sink choice as C reads it."""
    match sink:
        case IdealSink():
            return _with_pushes(SinkStruct(kind=0), Pushes())
        case CoreLikeSink():
            struct = SinkStruct(
                kind=1, token_cycles=sink.token_cycles, bytes_per_cycle=sink.bytes_per_cycle
            )
            return _with_pushes(struct, sink.pushes)
        case StallingSink():
            struct = SinkStruct(
                kind=2,
                joint=sink.joint is not None,
                seed=sink.seed,
                stall_probability=sink.stall_probability,
                freeze_probability=sink.freeze_probability,
                freeze_cycles=sink.freeze_cycles,
            )
            return _with_pushes(struct, sink.joint or Pushes())


def _with_pushes(struct: SinkStruct, pushes: Pushes) -> SinkStruct:
    scalars, masks = pushes.scalars_per_event, pushes.row_event_masks
    struct.events = len(scalars)
    struct.row_entries = len(masks)
    # The structure keeps the arrays that its pointers refer to.
    struct.scalars_per_event = (c_uint32 * len(scalars))(*scalars)
    struct.row_event_masks = (c_uint64 * len(masks))(*masks)
    return struct
