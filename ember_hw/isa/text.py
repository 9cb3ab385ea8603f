"""Microcode as text: a line for each record, ``path: field=value ..``."""

from __future__ import annotations

import re

from ember_hw.config import AcceleratorConfig
from ember_hw.errors import AssemblyError
from ember_hw.isa.fields import EVENT_NAMES, Event, Field, FieldKind
from ember_hw.isa.microcode import Microcode
from ember_hw.isa.records import event_bit, layouts


def disassemble(microcode: Microcode) -> str:
    """Return a program as text, a line for each record.

    Fields that are 0 are left out, except the version.

    The text is what `assemble` reads: ``disassemble(assemble(text))`` is a fixed point.
    """
    lines: list[str] = []
    for path, layout in layouts(microcode.config).items():
        parts = [
            f"{f.name}={_format_value(f, microcode.get(path, f.name), microcode.config)}"
            for f in layout.fields
            if microcode.get(path, f.name) or f.name == "version"
        ]
        if parts:
            lines.append(f"{path}: " + " ".join(parts))
    return "\n".join(lines) + "\n"


def assemble(text: str, config: AcceleratorConfig) -> Microcode:
    """Read a program from the text form of `disassemble`; ``;`` begins a comment.

    Raises
    ------
    AssemblyError
        A line is malformed (the error names it), or a record, field or value is illegal.
    """
    records: dict[str, dict[str, int]] = {}
    known = layouts(config)
    for number, line in enumerate(text.splitlines(), 1):
        body = line.split(";", 1)[0].strip()
        if not body:
            continue
        path, colon, rest = body.partition(":")
        if not colon or path not in known:
            raise AssemblyError(
                f"line {number}: record must be one of {', '.join(known)}, not {path!r}"
            )
        if path in records:
            raise AssemblyError(f"line {number}: record {path!r} must stand once, not twice")
        records[path] = {}
        for item in rest.split():
            name, equals, value = item.partition("=")
            if not equals:
                raise AssemblyError(f"line {number}: item must be field=value, not {item!r}")
            if name in records[path]:
                raise AssemblyError(f"line {number}: field {name!r} must stand once, not twice")
            records[path][name] = _parse_value(known[path].field(name), value, config, number)
    return Microcode(config, records)


def _format_value(f: Field, value: int, config: AcceleratorConfig) -> str:
    if f.choices is not None:
        return f.choices(value).name.lower()
    if f.kind is FieldKind.EVENTS:
        pairs = [(event, level) for event in Event for level in range(config.traversal_units)]
        names = [f"{EVENT_NAMES[e]}{k}" for e, k in pairs if value >> event_bit(e, k, config) & 1]
        return "|".join(names)
    return f"{value:#x}" if f.name in ("base", "region_bytes") else str(value)


def _parse_value(f: Field, text: str, config: AcceleratorConfig, line: int) -> int:
    if f.choices is not None:
        legal = {choice.name.lower(): int(choice) for choice in f.choices}
        if text not in legal:
            raise AssemblyError(
                f"line {line}: {f.name} must be one of {', '.join(legal)}, not {text!r}"
            )
        return legal[text]
    if f.kind is FieldKind.EVENTS:
        events = {name: event for event, name in EVENT_NAMES.items()}
        mask = 0
        for name in text.split("|"):
            match = re.fullmatch(r"(beg|ite|end)(\d+)", name)
            if match is None or int(match[2]) >= config.traversal_units:
                raise AssemblyError(
                    f"line {line}: event must be beg, ite or end with a level "
                    f"below {config.traversal_units}, not {name!r}"
                )
            mask |= 1 << event_bit(events[match[1]], int(match[2]), config)
        return mask
    try:
        return int(text, 0)
    except ValueError:
        raise AssemblyError(f"line {line}: {f.name} must be an integer, not {text!r}") from None
