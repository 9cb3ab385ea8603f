"""The microcode: the only definition of its records, fields and words.

A program for the access unit is a fixed set of records, one for each physical part: a header, one
for each traversal unit and each of its memory streams, one for each row entry, one for the issue
stage; those of the reduce unit (`isa.reduce`) follow where a config has it. `layouts` builds their
layouts for a config; encoder, decoder, text, RTL and documentation read those. Each record begins
on a 32-bit word, fields follow from bit 0 in the order below.

Slots
-----
A unit inherits the *exports* of the unit above it, the outermost unit the arguments of the request.
Operand a of its ALU is a value of its own, selected by *slot*: 0 its induction value, 1 to S its
memory streams; operand b can also be an inherited value, slot S + 1 onwards. Each of its exports is
the inherited value of the same number or a value of its own. Row entries select among the exports
of the innermost unit, and the scalars of a bundle are the first of them.

Addresses
---------
Element n of a memory stream is at ``base + (n << size)``. Its number n is `first`, plus the
induction value with `induction`, plus ``inherited[outer_export] * outer_pitch`` with
`outer_enable`. A row is at ``base + index * pitch``, plus ``exports[base_export] << 6`` where
`base_source` is a slot, plus ``exports[offset_export] << offset_size`` with `offset_enable`. Both
are reckoned exactly: what does not lie within its region is a fault, never another address.

Input queue
-----------
A memory stream with `source` `queue` takes its lines, 64 bytes each, from the unit's one input
queue in place of memory. TDEST names the stream: ``unit * streams_per_unit + stream``. A stream
takes a line for its first element of each request, and for each element whose address, divided by
64, is another than that of its element before; the element is at its address modulo 64 in that
line. One queue feeds all streams, so a line that is not yet wanted stops those behind it. They must
come in the order in which the program loads elements, all requests one after the other:

- the outermost unit first; for each iteration of a unit the lines of its streams, by number, then
  all that the units below take in that iteration;
- but a unit with `pair` awaits its next iteration before the units below begin this one: behind
  the lines of an iteration come that of stream 0's next element, then, where the loop has a next
  iteration, those of its other streams, by number; each line once.

A line may come earlier than that if all streams that it passes have room: each has
`lines_per_stream` places, that of its current line included. Where the lines' order is wrong, the
program waits until the watchdog stops it with MEMORY_STALLED. A fault or an abort drops what is in
the queue.

Events
------
Bit ``e * L + k`` of an event mask stands for event e (begin 0, iterate 1, end 2) of level k of L.
"""

from ember_hw.isa.dot import Chain, Fold, Place
from ember_hw.isa.fields import (
    EVENT_NAMES,
    WORD_BITS,
    AluOperation,
    BoundSource,
    ElementSize,
    Event,
    Field,
    FieldKind,
    Hint,
    RecordLayout,
    Source,
    StreamSource,
)
from ember_hw.isa.microcode import Microcode, check_field
from ember_hw.isa.records import (
    ISA_VERSION,
    event_bit,
    event_mask,
    events_in_order,
    layouts,
    microcode_words,
)
from ember_hw.isa.reduce import ReduceOperation, RowFormat
from ember_hw.isa.text import assemble, disassemble

__all__ = [
    "EVENT_NAMES",
    "ISA_VERSION",
    "WORD_BITS",
    "AluOperation",
    "BoundSource",
    "Chain",
    "ElementSize",
    "Event",
    "Field",
    "FieldKind",
    "Fold",
    "Hint",
    "Microcode",
    "Place",
    "RecordLayout",
    "ReduceOperation",
    "RowFormat",
    "Source",
    "StreamSource",
    "assemble",
    "check_field",
    "disassemble",
    "event_bit",
    "event_mask",
    "events_in_order",
    "layouts",
    "microcode_words",
]
