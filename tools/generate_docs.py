"""Writes docs/isa.md, registers.md and link.md from the definitions that hardware and host read.

``python tools/generate_docs.py`` writes all; ``--check`` writes nothing and fails if one is stale.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from ember_hw import isa, registers  # noqa: E402  # the checkout is importable from here on
from ember_hw.boards.links import frame  # noqa: E402
from ember_hw.config import AcceleratorConfig  # noqa: E402
from ember_hw.isa import dot, reduce  # noqa: E402

_NOTICE = "<!-- Written by tools/generate_docs.py; edit {source} instead. -->\n"


def table(header: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    """Return a Markdown table."""
    names = list(header)
    lines = [names, ["---"] * len(names), *([str(cell) for cell in row] for row in rows)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def section(docstring: str | None) -> str:
    """Return a docstring as Markdown, its title left out."""
    assert docstring is not None
    return inspect.cleandoc(docstring).split("\n", 1)[1].strip().replace("``", "`") + "\n"


def isa_page(config: AcceleratorConfig) -> str:
    """Return docs/isa.md; widths that depend on the config are those of the one given."""
    kinds = {
        "header": "Header",
        "unit0": "Traversal unit: unit0, unit1, ..",
        "unit0.stream0": "Memory stream: unit0.stream0, ..",
        "row0": "Row entry: row0, row1, ..",
        "issue": "Issue stage",
    }
    parts = [
        _NOTICE.format(source="ember_hw/isa/records.py"),
        f"# Microcode, ISA version {isa.ISA_VERSION}\n",
        section(isa.__doc__),
        "## Records\n",
        f"Positions and widths are those of config `{config.name}`; "
        "`isa.layouts` gives any other's.\n",
        table(
            ("record", "first word", "words"),
            (
                (f"`{layout.path}`", layout.first_word, layout.words)
                for layout in isa.layouts(config).values()
            ),
        ),
    ]
    for path, title in kinds.items():
        parts.append(f"## {title}\n")
        parts.append(table(("bits", "field", "legal", "meaning"), _field_rows(path, config)))
    reducing = config.with_changes(execute="reduce", results="memory", reduce_dot=1)
    parts += ["# The reduce unit\n", section(reduce.__doc__)]
    parts += ["## Sums across rows\n", section(dot.__doc__)]
    for path, title in (
        ("reduce", "Reduce unit: reduce"),
        ("reduce0", "Row entry: reduce0, .."),
        ("result", "Results in memory: result"),
    ):
        parts.append(f"## {title}\n")
        parts.append(table(("bits", "field", "legal", "meaning"), _field_rows(path, reducing)))
    parts.append("## Choices\n")
    for choices in (
        isa.BoundSource,
        isa.Source,
        isa.StreamSource,
        isa.AluOperation,
        isa.ElementSize,
        isa.Hint,
        isa.Event,
        isa.RowFormat,
        isa.ReduceOperation,
        isa.Fold,
        isa.Chain,
        isa.Place,
    ):
        parts.append(f"{choices.__name__}: {(choices.__doc__ or '').strip()}\n")
        parts.append(table(("value", "name"), ((int(c), f"`{c.name.lower()}`") for c in choices)))
    return "\n".join(parts)


def _field_rows(path: str, config: AcceleratorConfig) -> Iterable[tuple[object, ...]]:
    bit = 0
    for field in isa.layouts(config)[path].fields:
        last = bit + field.width_bits - 1
        legal = f"{field.least} to {field.most}" if field.width_bits < 20 else "all"
        if field.choices is not None:
            legal = f"{field.choices.__name__}"
        elif field.kind is isa.FieldKind.EVENTS:
            legal = "event mask"
        elif field.kind is isa.FieldKind.SIGNED:
            legal = "signed"
        yield f"{last}:{bit}" if last > bit else bit, f"`{field.name}`", legal, field.description
        bit = last + 1


def _counter_rows(config: AcceleratorConfig) -> Iterable[tuple[object, ...]]:
    rows = [(int(c), f"`{c.name}`", registers.COUNTER_TEXTS[c]) for c in registers.Counter]
    for unit in range(config.traversal_units):
        for stream in range(config.streams_per_unit):
            number = registers.stream_counter(unit, stream, config)
            rows.append((number, f"`unit{unit}.stream{stream}`", "lines asked for"))
    for entry in range(config.row_entries):
        rows.append((registers.row_counter(entry, config), f"`row{entry}`", "rows asked for"))
    for number, name, text in rows:
        yield f"{registers.counter_address(number):#05x}", name, text


def _address_kind(code: registers.FaultCode) -> str:
    stream, row = registers.FAULT_ADDRESS_KINDS[code] or ("", "")
    if not stream or not row:
        return stream or row
    return "address of the line or burst" if stream == row else f"{stream} (stream), {row} (row)"


def registers_page(config: AcceleratorConfig) -> str:
    """Return docs/registers.md; the counters of streams and rows are those of the config given."""
    arguments = (
        (f"{registers.ARGUMENTS_ADDRESS + 4 * i:#05x}", f"`ARGUMENT{i}`", "rw")
        for i in range(config.exports)
    )
    faults = [
        (int(c), f"`{c.name}`", text, _address_kind(c)) for c, text in registers.FAULT_TEXTS.items()
    ]
    return "\n".join(
        (
            _NOTICE.format(source="ember_hw/registers.py"),
            "# Registers\n",
            section(registers.__doc__),
            table(
                ("address", "register", "access", "content"),
                (
                    *(
                        (f"{r.address:#05x}", f"`{r.name}`", r.access, r.description)
                        for r in registers.REGISTERS
                    ),
                    *((*argument, registers.ARGUMENT_TEXT) for argument in arguments),
                ),
            ),
            f"Counters begin at {registers.COUNTERS_ADDRESS:#x}. The microcode window begins at "
            f"{registers.MICROCODE_ADDRESS:#x} and holds {registers.MICROCODE_WORDS} words.\n",
            "## States\n",
            table(
                ("STATUS.state", "name", "meaning"),
                ((int(s), f"`{s.name}`", text) for s, text in registers.STATE_TEXTS.items()),
            ),
            "## Faults\n",
            f"FAULT.unit is {registers.NO_UNIT:#x} for a row entry, whose number FAULT.stream "
            "holds, and where there is no unit.\n",
            table(("FAULT.code", "name", "meaning", "FAULT_ADDRESS"), faults),
            "## Counters\n",
            section(registers.Counter.__doc__),
            f"The last ones, of streams and rows, are those of config `{config.name}`.\n",
            table(("address", "counter", "meaning"), _counter_rows(config)),
        )
    )


def _field_table(fields: Iterable[tuple[str, int, str]]) -> str:
    """Return a table of fields of bytes, one behind the other."""
    at, rows = 0, []
    for name, size, meaning in fields:
        rows.append((at, size, f"`{name}`", meaning))
        at += size
    return table(("byte", "bytes", "field", "meaning"), rows)


def link_page() -> str:
    """Return docs/link.md."""

    def choices(texts: dict) -> str:
        rows = ((int(choice), f"`{choice.name}`", text) for choice, text in texts.items())
        return table(("value", "name", "meaning"), rows)

    return "\n".join(
        (
            _NOTICE.format(source="boards/links/frame.py"),
            f"# The host link, protocol version {frame.PROTOCOL_VERSION}\n",
            section(frame.__doc__),
            f"A frame has at most {frame.MAX_DATA_BYTES} bytes of data; {frame.WINDOW_FRAMES} "
            "requests may be open.\n",
            "## Header\n",
            _field_table(frame.HEADER),
            "## Arguments of a request\n",
            "Registers of the access unit begin at address 0 ([registers.md](registers.md)), those "
            f"of the board at {frame.BOARD_REGISTERS:#x}.\n",
            _field_table(frame.ARGUMENTS),
            "## Operations\n",
            choices(frame.OPERATION_TEXTS),
            "## Status\n",
            choices(frame.STATUS_TEXTS),
            "## Description\n",
            _field_table(frame.DESCRIPTION_HEAD),
            "## Beats of the queues\n",
            table(("value", "name"), ((int(kind), f"`{kind.name}`") for kind in frame.Beat)),
            "## Error counts\n",
            choices(frame.ERROR_COUNT_TEXTS),
        )
    )


def pages() -> dict[str, str]:
    """Return the text of each generated page, by its path in the repository."""
    config = AcceleratorConfig.preset("default")
    return {
        "docs/isa.md": isa_page(config),
        "docs/registers.md": registers_page(config),
        "docs/link.md": link_page(),
    }


def main() -> int:
    """Write the pages, or with --check tell whether they are up to date."""
    stale = 0
    for path, text in pages().items():
        target = ROOT / path
        if target.exists() and target.read_text() == text:
            continue
        if "--check" in sys.argv[1:]:
            print(f"{path} is stale: run python tools/generate_docs.py", file=sys.stderr)
            stale = 1
        else:
            target.parent.mkdir(exist_ok=True)
            target.write_text(text)
            print(f"wrote {path}")
    return stale


if __name__ == "__main__":
    sys.exit(main())
