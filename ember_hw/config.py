"""The parameters of one accelerator: every number that RTL, compiler and host must agree on.

A config is frozen, checks itself, and hashes: hardware answers with the hash, a program file
carries it, and the host refuses to run one on the other if they differ.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, fields, replace

#: Width of every value inside the access unit: induction variables, indices, scalars. Two's
#: complement.
VALUE_WIDTH_BITS = 32

#: Index streams read memory in lines of this size, whatever the bus width.
LINE_BYTES = 64

_DATA_WIDTHS_BITS = (64, 128, 256, 512)

#: Units that a config may have at most.
MOST_TRAVERSAL_UNITS = 4

# name: (least, most). Reasons for the odd ones stand with the field.
_RANGES: dict[str, tuple[int, int]] = {
    "address_width_bits": (32, 56),
    "traversal_units": (1, MOST_TRAVERSAL_UNITS),
    "streams_per_unit": (1, 8),
    "row_entries": (1, 8),
    "exports": (2, 16),
    "bundle_scalars": (1, 8),
    "outstanding_reads": (2, 512),
    "max_burst_beats": (1, 256),
    "reorder_buffer_beats": (16, 4096),
    "token_entries": (16, 1024),
    "lines_per_stream": (2, 256),
    "bundle_entries": (16, 4096),
    "descriptor_entries": (8, 64),
    "request_entries": (1, 16),
    "memory_ports": (1, 8),
    "port_interleave_bytes": (LINE_BYTES, 1 << 40),
    "index_port_bits": (0, 512),
    "input_queue": (0, 1),
    "int8_rows": (0, 1),
    "reduce_dot": (0, 1),
}

MEMORY_PROTOCOLS = ("axi4", "axi3")

#: Execute sides: outside, behind the queues, or the reduce unit in the same hardware.
EXECUTES = ("queues", "reduce")

#: Where the reduce unit's results go: out over AXI4-Stream, or into memory by AXI writes.
RESULTS = ("stream", "memory")


@dataclass(frozen=True, kw_only=True)
class AcceleratorConfig:
    """Parameters of one access unit.

    Parameters
    ----------
    name : str
        What reports and ``au`` programs call this config. Not part of the hash.
    data_width_bits : int
        Width of the memory port and of the row queue: 64, 128, 256 or 512.
    address_width_bits : int
        Width of byte addresses, 32 to 56: host and interpreter reckon with them in 64-bit integers.
    traversal_units : int
        Hardware loops, outermost first, 1 to 4.
    streams_per_unit : int
        Memory streams of each traversal unit, 1 to 8.
    row_entries : int
        Row streams of the unit, 1 to 8.
    exports : int
        Values a traversal unit hands to what lies below it, 2 to 16.
    bundle_scalars : int
        Scalars in a bundle, 1 to 8 and at most `exports`: they are the first exports of the
        innermost unit.
    outstanding_reads : int
        Row bursts in flight, 2 to 512. ``outstanding_reads * beats_per_row`` should exceed the
        memory's latency in cycles.
    max_burst_beats : int
        Longest AXI burst of a row, 1 to 256 (AXI3 has 16).
    reorder_buffer_beats : int
        Beats that wait for delivery in order; a power of two, at least two of the longest bursts.
    token_entries : int
        Iterations a traversal unit runs ahead of its loads, 16 to 1024.
    lines_per_stream : int
        64-byte lines a memory stream holds or awaits; a power of two.
    bundle_entries : int
        Bundles that wait for the execute side; a power of two.
    descriptor_entries : int
        Rows whose addresses are reckoned, or that wait for the gather engine; a power of two. A
        place is taken for 7 cycles at least, so 8 allow one row a cycle.
    request_entries : int
        Requests that wait or run at one time, 1 to 16.
    memory_ports : int
        Read ports that rows (and index lines, without a port of their own) are spread over: 1, 2, 4
        or 8.
    port_interleave_bytes : int
        Bytes after which the next port's turn comes, a power of two: 64 to 4096 interleaves,
        2**28 gives each port a region. No burst crosses this boundary.
    index_port_bits : int
        Width of the index lines' own read port: 64, 128, 256 or 512; 0: they share the memory
        ports.
    memory_protocol : str
        ``axi4``, or ``axi3``: bursts of at most 16 beats.
    input_queue : int
        1: an AXI4-Stream can feed memory streams in place of memory.
    execute : str
        ``queues``: bundles and rows leave; ``reduce``: the reduce unit takes them, and the rows
        that it makes of them leave.
    reduce_lanes : int
        Numbers that the reduce unit computes a cycle: as many as a beat holds of fp32, or twice
        that for a beat of bf16 or fp16 rows a cycle, or with `int8_rows` four times that for a beat
        of codes; 0: as many as a beat holds of fp32.
    int8_rows : int
        1: the reduce unit takes rows of int8 codes with a scale and a bias; 0: it doesn't.
    reduce_dot : int
        1 if the reduce unit can sum across rows, a number a cycle, see `isa.dot`; 0 if not.
    results : str
        Of the reduce unit: ``stream``: they leave over AXI4-Stream; ``memory``: they are written
        into a region of memory, through a write port of their own.

    Raises
    ------
    ValueError
        A parameter is outside its range, or two of them do not fit together.

    Examples
    --------
    >>> AcceleratorConfig(data_width_bits=128).bus_bytes
    16
    """

    name: str = "default"
    data_width_bits: int = 512
    address_width_bits: int = 40
    traversal_units: int = 3
    streams_per_unit: int = 2
    row_entries: int = 2
    exports: int = 4
    bundle_scalars: int = 4
    outstanding_reads: int = 64
    max_burst_beats: int = 64
    reorder_buffer_beats: int = 512
    token_entries: int = 128
    lines_per_stream: int = 16
    bundle_entries: int = 256
    descriptor_entries: int = 16
    request_entries: int = 8
    memory_ports: int = 1
    port_interleave_bytes: int = 4096
    index_port_bits: int = 0
    memory_protocol: str = "axi4"
    input_queue: int = 0
    execute: str = "queues"
    reduce_lanes: int = 0
    int8_rows: int = 0
    reduce_dot: int = 0
    results: str = "stream"

    def __post_init__(self) -> None:
        if self.data_width_bits not in _DATA_WIDTHS_BITS:
            raise ValueError(
                f"data_width_bits must be one of 64, 128, 256, 512, not {self.data_width_bits!r}"
            )
        for parameter, (least, most) in _RANGES.items():
            value = getattr(self, parameter)
            if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
                raise ValueError(
                    f"{parameter} must be an integer from {least} to {most}, not {value!r}"
                )
        for parameter in (
            "reorder_buffer_beats",
            "lines_per_stream",
            "bundle_entries",
            "descriptor_entries",
            "memory_ports",
            "port_interleave_bytes",
        ):
            value = getattr(self, parameter)
            if value & (value - 1):
                raise ValueError(f"{parameter} must be a power of two, not {value!r}")
        if self.bundle_scalars > self.exports:
            raise ValueError(
                f"bundle_scalars must be at most exports ({self.exports}), "
                f"not {self.bundle_scalars!r}"
            )
        if self.index_port_bits not in (0, *_DATA_WIDTHS_BITS):
            raise ValueError(
                f"index_port_bits must be one of 0, 64, 128, 256, 512, not {self.index_port_bits!r}"
            )
        if self.memory_protocol not in MEMORY_PROTOCOLS:
            raise ValueError(
                f"memory_protocol must be one of {', '.join(MEMORY_PROTOCOLS)}, "
                f"not {self.memory_protocol!r}"
            )
        if self.execute not in EXECUTES:
            raise ValueError(f"execute must be one of {', '.join(EXECUTES)}, not {self.execute!r}")
        self._check_lanes()
        if self.results not in RESULTS:
            raise ValueError(f"results must be one of {', '.join(RESULTS)}, not {self.results!r}")
        if self.results != "stream" and self.execute != "reduce":
            raise ValueError(
                f"results must be stream without a reduce unit (execute is {self.execute!r}), "
                f"not {self.results!r}"
            )
        if self.memory_protocol == "axi3" and self.max_burst_beats > 16:
            raise ValueError(
                f"max_burst_beats must be at most 16 with AXI3, not {self.max_burst_beats!r}"
            )
        if self.reorder_buffer_beats < 2 * self.max_burst_beats:
            raise ValueError(
                "reorder_buffer_beats must be at least twice max_burst_beats "
                f"({2 * self.max_burst_beats}), not {self.reorder_buffer_beats!r}: "
                "a shorter buffer can deadlock"
            )
        if self.max_burst_beats * self.bus_bytes > 4096:
            raise ValueError(
                f"max_burst_beats must be at most {4096 // self.bus_bytes} "
                f"on a {self.data_width_bits}-bit bus "
                f"(a burst stays within 4096 bytes), not {self.max_burst_beats!r}"
            )

    def _check_lanes(self) -> None:
        for parameter in ("reduce_lanes", "int8_rows", "reduce_dot"):
            if getattr(self, parameter) and self.execute != "reduce":
                raise ValueError(
                    f"{parameter} must be 0 without a reduce unit (execute is {self.execute!r}), "
                    f"not {getattr(self, parameter)!r}"
                )
        legal = [0, *(self.beat_numbers * times for times in (1, 2, 4))]
        if self.reduce_lanes not in legal:
            raise ValueError(
                f"reduce_lanes must be one of {', '.join(map(str, legal))} "
                f"on a {self.data_width_bits}-bit bus, not {self.reduce_lanes!r}"
            )
        if self.reduce_lanes == legal[-1] and not self.int8_rows:
            raise ValueError(
                f"reduce_lanes must be at most {legal[-2]} on a {self.data_width_bits}-bit bus "
                f"without int8_rows, not {self.reduce_lanes!r}: only of codes a beat holds more"
            )
        if self.reduce_dot and self.lanes != self.beat_numbers:
            raise ValueError(
                f"reduce_dot must be 0 with reduce_lanes other than {self.beat_numbers} "
                f"on a {self.data_width_bits}-bit bus, not {self.reduce_dot!r}: "
                "sums across rows take a beat at a time"
            )

    @property
    def bus_bytes(self) -> int:
        """Bytes of one beat of the memory port and of the row queue."""
        return self.data_width_bits // 8

    @property
    def beat_numbers(self) -> int:
        """Numbers of fp32 in one beat of the row queue."""
        return self.bus_bytes // 4

    @property
    def lanes(self) -> int:
        """Numbers that the reduce unit computes a cycle."""
        return self.reduce_lanes or self.beat_numbers

    @property
    def index_bits(self) -> int:
        """Width in which line stores take index lines."""
        return self.index_port_bits or min(self.data_width_bits, 128)

    @property
    def line_beats(self) -> int:
        """Beats of one 64-byte line of an index stream, on the port it is read from."""
        return 8 * LINE_BYTES // (self.index_port_bits or self.data_width_bits)

    @property
    def line_words(self) -> int:
        """Words of `index_bits` in one 64-byte line."""
        return 8 * LINE_BYTES // self.index_bits

    @property
    def slots(self) -> int:
        """Values an ALU operand can be: induction value, streams, inherited values."""
        return 1 + self.streams_per_unit + self.exports

    @property
    def events(self) -> int:
        """Event bits of a leaf token: begin, iterate and end of each level."""
        return 3 * self.traversal_units

    @property
    def bundle_bits(self) -> int:
        """Bits of a bundle before padding: events, then scalars."""
        return self.events + VALUE_WIDTH_BITS * self.bundle_scalars

    @property
    def bundle_bytes(self) -> int:
        """Bytes of a bundle on the control queue."""
        return -(-self.bundle_bits // 8)

    def hash(self) -> int:
        """Return the 32 bits by which hardware, program file and host recognise this config.

        The name is left out, and so are `execute` where it is ``queues``, `results` where it is
        ``stream``, `reduce_lanes` where they are as many as without it, `int8_rows` and
        `reduce_dot` where they are 0: programs for such hardware are older than the choice.
        """
        values = asdict(self)
        del values["name"]
        if self.execute == "queues":
            del values["execute"]
        if self.results == "stream":
            del values["results"]
        if self.lanes == self.beat_numbers:
            del values["reduce_lanes"]
        for parameter in ("int8_rows", "reduce_dot"):
            if not values[parameter]:
                del values[parameter]
        digest = hashlib.sha256(json.dumps(values, sort_keys=True).encode()).digest()
        return int.from_bytes(digest[:4], "big")

    def to_dict(self) -> dict[str, int | str]:
        """Return the parameters as JSON-ready values."""
        return asdict(self)

    @staticmethod
    def from_dict(values: dict[str, int | str]) -> AcceleratorConfig:
        """Build a config from what `to_dict` returned.

        Raises
        ------
        ValueError
            A key is not a parameter, or a value is refused by the constructor.
        """
        legal = {field.name for field in fields(AcceleratorConfig)}
        for key in values:
            if key not in legal:
                raise ValueError(
                    f"config key must be one of {', '.join(sorted(legal))}, not {key!r}"
                )
        return AcceleratorConfig(**values)  # pyright: ignore[reportArgumentType]  # checked by the constructor

    @staticmethod
    def preset(name: str) -> AcceleratorConfig:
        """Return a named config.

        Raises
        ------
        ValueError
            There is no preset of that name.
        """
        if name not in PRESETS:
            raise ValueError(f"preset must be one of {', '.join(PRESETS)}, not {name!r}")
        return PRESETS[name]

    def with_changes(self, **changes: int | str) -> AcceleratorConfig:
        """Return a copy with some parameters changed; every check runs again."""
        return replace(self, **changes)  # pyright: ignore[reportArgumentType]


#: `default`: 512 bits, all opt levels of an EmbeddingBag. `small`: the same programs on a 128-bit
#: board. `tiny`: as little of everything as still runs them, for tests of backpressure. `tables`:
#: many tables in one program, with their places and shapes as streams. `large`: programs of every
#: op class, which have up to 4 loops and rows of 6 tables.
PRESETS: dict[str, AcceleratorConfig] = {
    "default": AcceleratorConfig(),
    "small": AcceleratorConfig(name="small", data_width_bits=128),
    "tiny": AcceleratorConfig(
        name="tiny",
        data_width_bits=64,
        outstanding_reads=4,
        max_burst_beats=8,
        reorder_buffer_beats=16,
        token_entries=16,
        lines_per_stream=2,
        bundle_entries=16,
        descriptor_entries=8,
    ),
    "tables": AcceleratorConfig(name="tables", streams_per_unit=4, exports=10, bundle_scalars=6),
    "large": AcceleratorConfig(
        name="large",
        traversal_units=MOST_TRAVERSAL_UNITS,
        streams_per_unit=8,
        row_entries=8,
        exports=16,
        bundle_scalars=8,
    ),
}
