"""The register map of the access unit: read by RTL, host and documentation, written here only.

Behind the counters named here stand those of the config's streams: see `stream_counter` and
`row_counter`.

Addresses are bytes on the AXI4-Lite port; registers are 32 bits. Counters are 64 bits, low word
first; reading a low word latches its high word, so that a pair is always of one moment.

Several requests
----------------
A start while others run puts a request behind them. A fault ends the request that runs and voids
those behind it; a start in FAULTED then begins afresh and sets FAULT to NONE. So the second start
of a series must not come to a unit that has meanwhile faulted: it would hide the fault. Reading
STATUS first does not help, as the fault may come between the look and the start. Therefore all
starts of a series but the first have the bit `joins` of CONTROL: such a start is taken in RUNNING,
where its request waits behind the others, and in DONE, where those before it have ended well. In
IDLE (no request was started since the reset), FAULTED, DRAINING and RESETTING it is answered with
SLVERR and changes nothing, whatever the cycle in which the fault came; FAULT then has what stopped
the series, and COMPLETED how many of its requests had ended before. A start that was taken may
still be voided by a fault of a request before it: a series has ended well when the state is DONE
and COMPLETED has counted all of it.
"""

from __future__ import annotations

from dataclasses import dataclass

from amaranth.lib import enum

from ember_hw.config import AcceleratorConfig
from ember_hw.errors import DeviceError

#: What MAGIC reads as: "EMBR".
MAGIC_VALUE = 0x454D4252

#: Byte address of the first counter's low word.
COUNTERS_ADDRESS = 0x100
#: Byte address of the first microcode word.
MICROCODE_ADDRESS = 0x800
#: Words the microcode window holds.
MICROCODE_WORDS = 512
#: Width of the AXI4-Lite address.
ADDRESS_WIDTH_BITS = 12


class State(enum.IntEnum, shape=3):
    """STATUS.state."""

    RESETTING = 0
    IDLE = 1
    RUNNING = 2
    DRAINING = 3
    DONE = 4
    FAULTED = 5


#: What each state means.
STATE_TEXTS: dict[State, str] = {
    State.RESETTING: "buffers are being cleared; a start is refused",
    State.IDLE: "ready for microcode and a start",
    State.RUNNING: "a program runs",
    State.DRAINING: "stopped by a fault or an abort; reads and writes in flight are awaited",
    State.DONE: "the program ended; ready for the next",
    State.FAULTED: (
        "the program was stopped; FAULT and FAULT_ADDRESS say why; ready for the next, but not for "
        "a start that joins"
    ),
}


class FaultCode(enum.IntEnum, shape=5):
    """FAULT.code: the first thing that went wrong."""

    NONE = 0
    BAD_VERSION = 1
    ILLEGAL_MICROCODE = 2
    STREAM_OUT_OF_BOUNDS = 3
    INDEX_OUT_OF_RANGE = 4
    ROW_OUT_OF_BOUNDS = 5
    VALUE_TOO_WIDE = 6
    READ_SLAVE_ERROR = 7
    READ_DECODE_ERROR = 8
    ABORTED = 9
    ADDRESS_OVERFLOW = 10
    EXECUTE_STALLED = 11
    MEMORY_STALLED = 12
    ILLEGAL_REDUCE_MICROCODE = 13
    UNEXPECTED_ROW_LENGTH = 14
    RESULT_OUT_OF_BOUNDS = 15
    WRITE_SLAVE_ERROR = 16
    WRITE_DECODE_ERROR = 17


#: Faults of results that are written into memory.
RESULT_FAULTS = frozenset(
    {
        FaultCode.RESULT_OUT_OF_BOUNDS,
        FaultCode.WRITE_SLAVE_ERROR,
        FaultCode.WRITE_DECODE_ERROR,
    }
)
#: Faults that only a unit with a reduce unit has.
REDUCE_FAULTS = RESULT_FAULTS | {
    FaultCode.ILLEGAL_REDUCE_MICROCODE,
    FaultCode.UNEXPECTED_ROW_LENGTH,
}

#: What each fault means, and what must hold instead.
FAULT_TEXTS: dict[FaultCode, str] = {
    FaultCode.NONE: "no fault",
    FaultCode.BAD_VERSION: "the program's ISA version must be the hardware's; compile it again",
    FaultCode.ILLEGAL_MICROCODE: (
        "a unit or more must be enabled, outermost first without a hole, with steps of 1 or more"
    ),
    FaultCode.STREAM_OUT_OF_BOUNDS: "a memory stream must read within its region",
    FaultCode.INDEX_OUT_OF_RANGE: "an index must be a row of its table",
    FaultCode.ROW_OUT_OF_BOUNDS: (
        "a row, or the part of it, must have bytes, begin on a beat and lie in pitch and region, "
        "and exports must fit the fields they stand in for"
    ),
    FaultCode.VALUE_TOO_WIDE: "an 8-byte element must fit in 32 bits, signed",
    FaultCode.READ_SLAVE_ERROR: "memory answered SLVERR",
    FaultCode.READ_DECODE_ERROR: "memory answered DECERR: no memory at this address",
    FaultCode.ABORTED: "the host aborted the program",
    FaultCode.ADDRESS_OVERFLOW: (
        "an element, or the region of a row, must lie within the address width"
    ),
    FaultCode.EXECUTE_STALLED: "the execute side must empty its queues within WATCHDOG cycles",
    FaultCode.MEMORY_STALLED: "memory must answer within WATCHDOG cycles",
    FaultCode.ILLEGAL_REDUCE_MICROCODE: (
        "the reduce unit must have a length that its accumulator holds, a known format and known "
        "operations, and be told of the events of all rows and results; a region of results must "
        "begin on a beat and lie within the address width"
    ),
    FaultCode.UNEXPECTED_ROW_LENGTH: (
        "rows must have as many columns as the reduce unit's microcode says, all of one result the "
        "same, and no more than its accumulator"
    ),
    FaultCode.RESULT_OUT_OF_BOUNDS: "a result must lie within the region of results",
    FaultCode.WRITE_SLAVE_ERROR: "memory answered SLVERR to a write of results",
    FaultCode.WRITE_DECODE_ERROR: (
        "memory answered DECERR to a write of results: no memory at this address"
    ),
}

#: What FAULT_ADDRESS holds for a memory stream, and for a row or a result; None: nothing, and no
#: unit either. An address is the byte address of the line or of the burst that was answered with an
#: error, or of the beat that is out of bounds.
FAULT_ADDRESS_KINDS: dict[FaultCode, tuple[str, str] | None] = {
    FaultCode.NONE: None,
    FaultCode.BAD_VERSION: None,
    FaultCode.ILLEGAL_MICROCODE: None,
    FaultCode.STREAM_OUT_OF_BOUNDS: ("element", ""),
    FaultCode.INDEX_OUT_OF_RANGE: ("", "index"),
    FaultCode.ROW_OUT_OF_BOUNDS: ("", "index"),
    FaultCode.VALUE_TOO_WIDE: ("low word", ""),
    FaultCode.READ_SLAVE_ERROR: ("address", "address"),
    FaultCode.READ_DECODE_ERROR: ("address", "address"),
    FaultCode.ABORTED: None,
    FaultCode.ADDRESS_OVERFLOW: ("element", "index"),
    FaultCode.EXECUTE_STALLED: None,
    FaultCode.MEMORY_STALLED: None,
    FaultCode.ILLEGAL_REDUCE_MICROCODE: None,
    FaultCode.UNEXPECTED_ROW_LENGTH: None,
    FaultCode.RESULT_OUT_OF_BOUNDS: ("", "address"),
    FaultCode.WRITE_SLAVE_ERROR: ("", "address"),
    FaultCode.WRITE_DECODE_ERROR: ("", "address"),
}


class Counter(enum.IntEnum, shape=8):
    """Counters, in the order of their addresses.

    Every cycle while a request runs is counted once: as a beat (ROW_BEATS, INDEX_BEATS) or as one
    of the stalls, the first that applies in the order below. So CYCLES is the sum of those eight.

    Rows come one beat a cycle at most, and ROW_BEATS counts each. Where index lines have a port of
    their own, a beat of a line can come in the same cycle as one of a row, and that cycle counts as
    the row's: INDEX_BEATS is then less than the beats of all lines by as many cycles. The lines
    themselves are counted by stream, each of them 64 bytes.
    """

    CYCLES = 0
    ROW_BEATS = 1
    INDEX_BEATS = 2
    STALL_EXECUTE = 3
    STALL_OUTSTANDING = 4
    STALL_REORDER = 5
    STALL_REQUEST = 6
    STALL_MEMORY = 7
    STALL_FRONT = 8
    BUNDLES = 9
    ROWS = 10
    ROW_BYTES = 11
    HIGH_BUNDLES = 12
    HIGH_ROW_BEATS = 13
    HIGH_OUTSTANDING = 14
    HIGH_TOKENS = 15


#: What each counter counts.
COUNTER_TEXTS: dict[Counter, str] = {
    Counter.CYCLES: "cycles while a request ran",
    Counter.ROW_BEATS: "beats of rows received from memory",
    Counter.INDEX_BEATS: "cycles with a beat of an index line from memory, and none of a row",
    Counter.STALL_EXECUTE: "no beat: the execute side holds a queue that is full",
    Counter.STALL_OUTSTANDING: "no beat: the next row waits for a read to come back",
    Counter.STALL_REORDER: "no beat: the next row waits for room in the reorder buffer",
    Counter.STALL_REQUEST: "no beat: memory does not take a request",
    Counter.STALL_MEMORY: "no beat: reads are in flight, nothing is ready to ask for",
    Counter.STALL_FRONT: "no beat: nothing is in flight, the loops are filling or draining",
    Counter.BUNDLES: "bundles delivered",
    Counter.ROWS: "rows asked for",
    Counter.ROW_BYTES: "their bytes: the useful bytes of a program",
    Counter.HIGH_BUNDLES: "most bundles waiting at one time",
    Counter.HIGH_ROW_BEATS: "most beats in the reorder buffer, reserved or waiting",
    Counter.HIGH_OUTSTANDING: "most row reads in flight",
    Counter.HIGH_TOKENS: "most iterations waiting for loads, innermost unit",
}


@dataclass(frozen=True)
class Register:
    """One 32-bit register: byte address, access (``ro``, ``rw``, ``wo``), and what it holds."""

    name: str
    address: int
    access: str
    description: str


MAGIC = Register("MAGIC", 0x000, "ro", "0x454D4252: an ember_hw access unit answers here")
ISA_VERSION = Register("ISA_VERSION", 0x004, "ro", "version of the microcode this hardware runs")
CONFIG_HASH = Register("CONFIG_HASH", 0x008, "ro", "AcceleratorConfig.hash() of this hardware")
CONTROL = Register(
    "CONTROL",
    0x00C,
    "wo",
    "bit 0: start a request with the ARGUMENT registers' values; bit 1: abort all; bit 2, `joins`: "
    "the start belongs to the requests before it. A start is refused with SLVERR while REQUESTS is "
    "at its most, in RESETTING and in DRAINING, one that joins also in IDLE and FAULTED; nothing "
    "changes then",
)
STATUS = Register("STATUS", 0x010, "ro", "bits 2:0: State")
FAULT = Register(
    "FAULT", 0x014, "ro", "bits 4:0: FaultCode; 15:8: traversal unit; 23:16: stream or row entry"
)
FAULT_ADDRESS_LOW = Register(
    "FAULT_ADDRESS_LOW", 0x018, "ro", "byte address, element or index that faulted, low word"
)
FAULT_ADDRESS_HIGH = Register(
    "FAULT_ADDRESS_HIGH", 0x01C, "ro", "byte address, element or index that faulted, high word"
)

REQUESTS = Register("REQUESTS", 0x020, "ro", "requests that wait or run")
COMPLETED = Register("COMPLETED", 0x024, "ro", "requests that ended since the reset, modulo 2**32")
WATCHDOG = Register(
    "WATCHDOG", 0x028, "rw", "cycles without progress that stop a program; 0: never; reset to 2**20"
)

#: Byte address of ARGUMENT0; ARGUMENT1 follows, up to the config's exports. Each is rw and 32 bits.
ARGUMENTS_ADDRESS = 0x040
#: What an argument register holds.
ARGUMENT_TEXT = "value that the outermost unit of the next request inherits"

#: All registers outside the counters and the microcode window, by address.
REGISTERS: tuple[Register, ...] = (
    MAGIC,
    ISA_VERSION,
    CONFIG_HASH,
    CONTROL,
    STATUS,
    FAULT,
    FAULT_ADDRESS_LOW,
    FAULT_ADDRESS_HIGH,
    REQUESTS,
    COMPLETED,
    WATCHDOG,
)

#: What WATCHDOG holds after a reset.
WATCHDOG_CYCLES = 1 << 20

CONTROL_START = 1 << 0
CONTROL_ABORT = 1 << 1
CONTROL_JOINS = 1 << 2

#: FAULT.unit of a fault that belongs to a row entry or to no unit.
NO_UNIT = 0xFF


def describe_fault(code: FaultCode, unit: int, stream: int, address: int) -> str:
    """Return a fault in words.

    Parameters
    ----------
    code : FaultCode
        What went wrong.
    unit : int
        Traversal unit, or `NO_UNIT`.
    stream : int
        Memory stream of the unit; row entry if there is no unit.
    address : int
        What FAULT_ADDRESS held, see `FAULT_ADDRESS_KINDS`.

    Examples
    --------
    >>> describe_fault(FaultCode.READ_SLAVE_ERROR, 1, 0, 64)
    'access unit fault READ_SLAVE_ERROR (unit 1, stream 0, address 0x40): memory answered SLVERR'
    """
    kinds = FAULT_ADDRESS_KINDS[code]
    if kinds is None:
        return f"access unit fault {code.name}: {FAULT_TEXTS[code]}"
    part, kind = f"unit {unit}, stream {stream}", kinds[0]
    if unit == NO_UNIT:
        part = "result" if code in RESULT_FAULTS else f"row entry {stream}"
        kind = kinds[1]
    return f"access unit fault {code.name} ({part}, {kind} {address:#x}): {FAULT_TEXTS[code]}"


def fault_error(
    code: FaultCode,
    unit: int = 0,
    stream: int = 0,
    address: int = 0,
    *,
    completed: int = 0,
    requests: int = 1,
) -> DeviceError:
    """Return the error that a fault of the access unit becomes.

    Parameters
    ----------
    code, unit, stream, address
        As `describe_fault` takes them.
    completed, requests : int
        Requests that had ended before it, of how many; told where there are several.
    """
    ended = f"; {completed} of {requests} requests had ended before" if requests > 1 else ""
    return DeviceError(
        describe_fault(code, unit, stream, address) + ended,
        code=int(code),
        unit=unit,
        stream=stream,
        address=address,
        completed=completed,
    )


def stream_counter(unit: int, stream: int, config: AcceleratorConfig) -> int:
    """Return the number of the counter of lines that a memory stream asked for."""
    return len(Counter) + unit * config.streams_per_unit + stream


def row_counter(entry: int, config: AcceleratorConfig) -> int:
    """Return the number of the counter of rows that a row entry asked for."""
    return stream_counter(config.traversal_units, entry, config)


def counters(config: AcceleratorConfig) -> int:
    """Return the number of all counters."""
    return row_counter(config.row_entries, config)


def counter_address(counter: int) -> int:
    """Return the byte address of a counter's low word; the high word follows.

    Examples
    --------
    >>> hex(counter_address(Counter.ROW_BEATS))
    '0x108'
    """
    return COUNTERS_ADDRESS + 8 * int(counter)
