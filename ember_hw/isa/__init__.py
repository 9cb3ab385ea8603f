"""The microcode: the only definition of its records, fields and words.

A program for the access unit is a fixed set of records, one for each physical part: a header, one
for each traversal unit and each of its memory streams, one for each row entry, one for the issue
stage. `layouts` builds their layouts for a config; encoder, decoder, text, RTL and documentation
read those. Each record begins on a 32-bit word, fields follow from bit 0 in the order below.

Slots
-----
A unit inherits the *exports* of the unit above it, the outermost unit the arguments of the request.
An operand of its ALU is selected by *slot*: 0 the unit's induction value, 1 to S its memory streams,
S + 1 onwards the inherited values. Each of its own exports is the inherited value of the same number
or a value of its own. Row entries and the issue stage select among the exports of the innermost
unit.

Events
------
Bit ``e * L + k`` of an event mask stands for event e (begin 0, iterate 1, end 2) of level k of L.
"""

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
from ember_hw.isa.records import ISA_VERSION, event_bit, event_mask, layouts, microcode_words
from ember_hw.isa.text import assemble, disassemble

__all__ = [
    "EVENT_NAMES",
    "ISA_VERSION",
    "WORD_BITS",
    "AluOperation",
    "BoundSource",
    "ElementSize",
    "Event",
    "Field",
    "FieldKind",
    "Hint",
    "Microcode",
    "RecordLayout",
    "Source",
    "StreamSource",
    "assemble",
    "check_field",
    "disassemble",
    "event_bit",
    "event_mask",
    "layouts",
    "microcode_words",
]
