"""Execute code as C: one function a case, and one that takes a batch of bundles and rows.

The C is meant to be read: names are those of the code, rows lie where the queue put them, a loop
over elements is a plain `for` that a compiler turns into vectors. Memories are `restrict` where the
code says that they don't overlap. Floating point must not be contracted, integers must wrap.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ember_hw.compiler.backend.execute_code import Pop, is_row, row_element
from ember_hw.compiler.backend.execute_operations import HALVES
from ember_hw.compiler.program import Callback
from ember_hw.compiler.quantized_rows import FORMATS
from ember_hw.host.execution.c_helpers import C_TYPES, HELPERS
from ember_hw.host.execution.c_quantized import quantized_length
from ember_hw.host.execution.c_statements import Statements
from ember_hw.host.execution.checks import CheckedCode
from ember_hw.host.execution.queues import RowEntry

__all__ = ["CSource", "emit_c"]


@dataclass(frozen=True)
class CSource:
    """Generated C.

    Attributes
    ----------
    text : str
        A whole translation unit.
    declarations : str
        Its structure and functions, for cffi.
    memories : dict of str to (str, tuple of str)
        By symbol: member of the structure that points to it, and those that hold its extents.
    scalars : dict of str to str
        By symbol: member that holds it.
    """

    text: str
    declarations: str
    memories: dict[str, tuple[str, tuple[str, ...]]]
    scalars: dict[str, str]


def emit_c(
    code: CheckedCode,
    callbacks: Sequence[tuple[Callback, int]],
    entries: Sequence[RowEntry],
    bundle_scalars: int,
) -> CSource:
    """Return execute code in C.

    Parameters
    ----------
    code : CheckedCode
        The code.
    callbacks : sequence of (Callback, int)
        In the order in which the events of one bundle happen, with the event's bit as a mask.
    entries : sequence of RowEntry
        Row entries in use, in their order.
    bundle_scalars : int
        Scalars of a bundle.
    """
    return _Emitter(code).emit(callbacks, entries, bundle_scalars)


class _Emitter(Statements):
    """Writes a translation unit."""

    def emit(
        self,
        callbacks: Sequence[tuple[Callback, int]],
        entries: Sequence[RowEntry],
        bundle_scalars: int,
    ) -> CSource:
        structure = self.structure(len(callbacks))
        parts = [
            "#include <math.h>\n#include <stdbool.h>\n#include <stdint.h>\n#include <stdlib.h>\n"
            "#include <string.h>\n",
            structure,
            HELPERS,
            _FAIL,
            self.function("static int", "ember_entry", self.code.entry, begins=True),
        ]
        parts += [
            self.function("static int", f"case_{number}", body)
            for number, body in self.code.cases.items()
        ]
        parts += [
            self.function("static int", "ember_last", self.code.end),
            "int ember_begin(struct ember_state *s)\n{\n    return ember_entry(s"
            + self.memory_arguments(self.code.entry)
            + ");\n}\n",
            self.run(callbacks, entries, bundle_scalars),
            "int ember_end(struct ember_state *s)\n{\n    return ember_last(s"
            + self.memory_arguments(self.code.end)
            + ");\n}\n",
            self.free(),
        ]
        return CSource(
            "\n".join(parts),
            structure.replace("bool ", "_Bool ") + _DECLARATIONS,
            {m: (self.pointers[m], self.extents(m)) for m in self.memories},
            self.scalars,
        )

    def structure(self, callbacks: int) -> str:
        """Return the structure of what lives from batch to batch."""
        lines = [
            "int32_t check; /* number of the check that failed */",
            "int64_t value, limit, bundle; /* what it found, and where */",
            f"int64_t calls[{max(callbacks, 1)}];",
        ]
        for symbol, memory in self.memories.items():
            lines.append(f"{C_TYPES[memory.element]} *{self.pointers[symbol]};")
            lines += [f"int64_t {extent};" for extent in self.extents(symbol)]
        lines += [f"int64_t {name};" for name in self.scalars.values()]
        lines += [f"{C_TYPES[self.types[name]]} {self.names[name]};" for name in sorted(self.entry)]
        for number, variable in self.variables.items():
            if is_row(variable.type):
                type_ = C_TYPES[row_element(variable.type)]
                lines.append(f"const {type_} *variable_{number}; /* in the queue, or kept */")
                lines.append(f"int64_t variable_{number}_length;")
                lines.append(f"{type_} *kept_{number};")
                lines.append(f"int64_t kept_{number}_bytes;")
            else:
                lines.append(f"{C_TYPES[variable.type]} variable_{number};")
        body = "\n".join(f"    {line}" for line in lines)
        return f"struct ember_state {{\n{body}\n}};\n"

    def run(
        self,
        callbacks: Sequence[tuple[Callback, int]],
        entries: Sequence[RowEntry],
        bundle_scalars: int,
    ) -> str:
        lines = ["int64_t row = 0;", "for (int64_t i = 0; i < bundles; i++) {"]
        inner = [
            "const uint32_t happened = events[i];",
            f"const uint32_t *scalar = scalars + i * {bundle_scalars};",
        ]
        for entry in entries:
            name = f"row{entry.index}"
            inner += [
                f"const uint8_t *{name} = 0;",
                f"int64_t {name}_bytes = 0;",
                f"if (happened & {entry.events:#x}) {{",
                f"    {name} = beats + starts[row];",
                f"    {name}_bytes = sizes[row++];",
                "}",
            ]
        for position, (callback, mask) in enumerate(callbacks):
            body = self.code.cases[callback.id]
            pops = [statement for statement in body if isinstance(statement, Pop)]
            arguments = ["s"]
            for pop, operand in zip(pops, callback.operands, strict=True):
                arguments += _argument(pop.type, operand.index)
            call = ", ".join(arguments) + self.memory_arguments(body)
            inner += [
                f"if (happened & {mask:#x}) {{ /* {callback.event.name.lower()} of level "
                f"{callback.level} */",
                f"    s->calls[{position}]++;",
                f"    if (case_{callback.id}({call})) {{",
                "        s->bundle = i;",
                "        return 1;",
                "    }",
                "}",
            ]
        lines += [f"    {line}" for line in inner]
        lines.append("}")
        for number, variable in self.variables.items():
            if is_row(variable.type):
                type_ = C_TYPES[row_element(variable.type)]
                lines += [
                    f"if (keep((void **)&s->kept_{number}, &s->kept_{number}_bytes, "
                    f"s->variable_{number}, s->variable_{number}_length * "
                    f"(int64_t)sizeof({type_})))",
                    f"    return fail(s, -1, s->variable_{number}_length, 0);",
                    f"if (s->variable_{number})",
                    f"    s->variable_{number} = s->kept_{number};",
                ]
        text = "\n".join(f"    {line}" for line in [*lines, "return 0;"])
        return f"{_RUN}\n{{\n{text}\n}}\n"

    def free(self) -> str:
        lines = [f"    free(s->kept_{n});" for n, v in self.variables.items() if is_row(v.type)]
        text = "\n".join(lines) or "    (void)s;"
        return f"void ember_free(struct ember_state *s)\n{{\n{text}\n}}\n"


_RUN = """int ember_run(struct ember_state *s, int64_t bundles, const uint32_t *events,
    const uint32_t *scalars, const uint8_t *beats, const int64_t *starts, const int64_t *sizes)"""
_DECLARATIONS = f"""
int ember_begin(struct ember_state *s);
{_RUN};
int ember_end(struct ember_state *s);
void ember_free(struct ember_state *s);
"""
_FAIL = """
static int fail(struct ember_state *s, int32_t check, int64_t value, int64_t limit)
{
    s->check = check;
    s->value = value;
    s->limit = limit;
    return 1;
}

/* Whether lower + offset, lower + step + offset, .. leave [0, limit) below upper + offset. */
static inline int outside(struct ember_state *s, int32_t check, int64_t lower, int64_t upper,
    int64_t step, int64_t offset, int64_t limit)
{
    if (lower >= upper)
        return 0;
    const int64_t first = lower + offset;
    const int64_t last = first + (upper - 1 - lower) / step * step;
    if (first < 0 || first >= limit)
        return fail(s, check, first, limit);
    if (last >= limit)
        return fail(s, check, first + (limit - first + step - 1) / step * step, limit);
    return 0;
}

/* Copies a kept row out of the queue, whose memory the next batch reuses. */
static inline int keep(void **kept, int64_t *room, const void *row, int64_t bytes)
{
    if (!row || row == *kept)
        return 0;
    if (bytes > *room) {
        void *larger = realloc(*kept, (size_t)bytes);
        if (!larger)
            return 1;
        *kept = larger;
        *room = bytes;
    }
    memcpy(*kept, row, (size_t)bytes);
    return 0;
}
"""


def _argument(type_: str, number: int) -> list[str]:
    """Return a popped operand: a scalar of the bundle, or a row and its elements."""
    if is_row(type_):
        element = C_TYPES[row_element(type_)]
        if row_element(type_) in FORMATS:
            return [f"row{number}", quantized_length(row_element(type_), f"row{number}_bytes")]
        return [
            f"(const {element} *)row{number}",
            f"row{number}_bytes / (int64_t)sizeof({element})",
        ]
    if type_ == "f32":
        return [f"ember_float(scalar[{number}])"]
    if type_ in HALVES:
        return [f"(uint16_t)scalar[{number}]"]
    if type_ == "i1":
        return [f"scalar[{number}] & 1"]
    return [f"({C_TYPES[type_]})(int32_t)scalar[{number}]"]
