"""The C header of the driver: register map, states, faults, counters, the values of one config."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator
from enum import IntEnum

from amaranth.hdl import Shape

from ember_hw import registers
from ember_hw.config import AcceleratorConfig
from ember_hw.isa import ISA_VERSION, Event, event_bit, microcode_words

_GUARD = "EMBER_HW_H"
_COLUMNS = 100
_FUNCTIONS = """\
/* The unit whose registers lie at an address. */
struct ember_hw {
    volatile uint32_t *registers;
};

enum ember_hw_result {
    EMBER_HW_OK = 0,
    EMBER_HW_NO_UNIT = 1, /* nothing of this kind answers there */
    EMBER_HW_OTHER_ISA = 2, /* it runs another version of the microcode */
    EMBER_HW_OTHER_CONFIG = 3, /* header, microcode or arguments are those of another config */
    EMBER_HW_BUSY = 4, /* a program runs or is being stopped */
    EMBER_HW_FAULT_RESULT = 5, /* the program was stopped; see struct ember_hw_fault */
};

/* The first thing that went wrong: FAULT and FAULT_ADDRESS. */
struct ember_hw_fault {
    enum ember_hw_fault_code code;
    uint8_t unit;   /* traversal unit; EMBER_HW_NO_TRAVERSAL_UNIT for a row entry, or for none */
    uint8_t stream; /* memory stream of the unit, or row entry */
    uint64_t address;
};

/* Looks whether the unit is there and is the header's, and waits until its reset is over. */
enum ember_hw_result ember_hw_open(struct ember_hw *unit, volatile void *registers);

enum ember_hw_state ember_hw_state(const struct ember_hw *unit);

/* Writes microcode, EMBER_HW_MICROCODE_WORDS words; not while a program runs. */
enum ember_hw_result ember_hw_load(const struct ember_hw *unit, const uint32_t *words,
                                   uint32_t count);

/* Starts the program that is loaded, with the values of the first argument registers. */
enum ember_hw_result ember_hw_start(const struct ember_hw *unit, const uint32_t *arguments,
                                    uint32_t count);

/* Waits for the end. EMBER_HW_FAULT_RESULT, and `fault` unless it is null, say what stopped it. */
enum ember_hw_result ember_hw_wait(const struct ember_hw *unit, struct ember_hw_fault *fault);

/* Stops all requests; the unit drains what is in flight, then has fault EMBER_HW_FAULT_ABORTED. */
void ember_hw_abort(const struct ember_hw *unit);

uint64_t ember_hw_counter(const struct ember_hw *unit, enum ember_hw_counter counter);
"""


def c_header(config: AcceleratorConfig) -> str:
    """Return `ember_hw.h` of a config: what `ember_hw.c` and its users include."""
    parts = [
        f"/* The access unit of config {config.name!r} for C: registers, values, driver. */\n"
        f"#ifndef {_GUARD}\n#define {_GUARD}\n\n#include <stdint.h>\n",
        "/* Registers: byte addresses. */\n" + "".join(_registers()),
        "/* Values. */\n" + "".join(_values(config)),
        _enumeration(
            "ember_hw_state",
            registers.State,
            {state: registers.STATE_TEXTS[state] for state in registers.State},
        ),
        _enumeration(
            "ember_hw_fault_code",
            registers.FaultCode,
            {code: registers.FAULT_TEXTS[code] for code in registers.FaultCode},
            "FAULT_",
        ),
        _enumeration(
            "ember_hw_counter",
            registers.Counter,
            {counter: registers.COUNTER_TEXTS[counter] for counter in registers.Counter},
        ),
        "/* Bits of a bundle's events. */\n" + "".join(_events(config)),
        _FUNCTIONS,
        f"#endif /* {_GUARD} */\n",
    ]
    return "\n".join(parts)


def _commented(code: str, text: str) -> str:
    """Return a line of C with a comment behind it, or above it where both are too long."""
    line = f"{code} /* {text} */" if text else code
    if len(line) <= _COLUMNS:
        return f"{line}\n"
    indent = code[: len(code) - len(code.lstrip())]
    comment = textwrap.fill(
        f"{text} */", _COLUMNS, initial_indent=f"{indent}/* ", subsequent_indent=f"{indent}   "
    )
    return f"{comment}\n{code}\n"


def _define(name: str, value: int, text: str = "") -> str:
    return _commented(f"#define EMBER_HW_{name} {value:#x}u", text)


def _registers() -> Iterator[str]:
    for register in registers.REGISTERS:
        yield _define(register.name, register.address, f"{register.access}: {register.description}")
    yield _define("ARGUMENTS", registers.ARGUMENTS_ADDRESS, f"rw: {registers.ARGUMENT_TEXT}")
    yield _define("COUNTERS", registers.COUNTERS_ADDRESS, "ro: 64 bits each, low word first")
    yield _define("MICROCODE", registers.MICROCODE_ADDRESS, "wo: the words of the program")


def _values(config: AcceleratorConfig) -> Iterator[str]:
    yield _define("MAGIC_VALUE", registers.MAGIC_VALUE)
    yield _define("ISA_VERSION_VALUE", ISA_VERSION)
    yield _define("CONFIG_HASH_VALUE", config.hash())
    yield _define("CONTROL_START", registers.CONTROL_START)
    yield _define("CONTROL_ABORT", registers.CONTROL_ABORT)
    yield _define("CONTROL_JOINS", registers.CONTROL_JOINS)
    yield _define("STATE_MASK", (1 << Shape.cast(registers.State).width) - 1)
    yield _define("FAULT_CODE_MASK", (1 << Shape.cast(registers.FaultCode).width) - 1)
    yield _define("NO_TRAVERSAL_UNIT", registers.NO_UNIT)
    yield _define("ARGUMENTS_COUNT", config.exports)
    yield _define("MICROCODE_WORDS", microcode_words(config))
    yield _define("BUS_BYTES", config.bus_bytes, "of a beat of rows")
    yield _define("BUNDLE_BYTES", config.bundle_bytes, "events from bit 0, then scalars")
    yield _define("BUNDLE_SCALARS", config.bundle_scalars, "of 32 bits each")
    yield _define("EVENT_BITS", config.events)


def _events(config: AcceleratorConfig) -> Iterator[str]:
    for event in Event:
        for level in range(config.traversal_units):
            yield _define(f"{event.name}{level}", 1 << event_bit(event, level, config))


def _enumeration(
    name: str, members: Iterable[IntEnum], texts: dict[IntEnum, str], prefix: str = ""
) -> str:
    lines = [
        _commented(f"    EMBER_HW_{prefix}{member.name} = {int(member)},", texts[member])
        for member in members
    ]
    return f"enum {name} {{\n{''.join(lines)}}};\n"
