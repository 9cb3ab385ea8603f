"""Rows of codes in C: what a read of one gives, and how many elements it has."""

from __future__ import annotations

from ember_hw.compiler.quantized_rows import FORMATS, RowFormat

__all__ = ["QUANTIZED_C", "quantized_length"]

_READ = """
/* Element of a row of NAME: scale * code + bias, which stand behind the codes. */
static inline float ember_NAME(const uint8_t *row, int64_t length, int64_t index)
{
    TYPE scale, bias;
    memcpy(&scale, row + length / PER_BYTE, sizeof scale);
    memcpy(&bias, row + length / PER_BYTE + sizeof scale, sizeof bias);
    const float product = WIDEN(scale) * (float)CODE;
    return product + WIDEN(bias);
}
"""


def _read(form: RowFormat) -> str:
    is_half = form.scale.itemsize == 2
    code = "row[index]" if form.bits == 8 else "(row[index / 2] >> 4 * (index % 2) & 15)"
    return (
        _READ.replace("NAME", form.name)
        .replace("TYPE", "uint16_t" if is_half else "float")
        .replace("PER_BYTE", str(form.codes_per_byte))
        .replace("WIDEN", "ember_from_f16" if is_half else "")
        .replace("CODE", code)
    )


QUANTIZED_C = "".join(_read(form) for form in FORMATS.values())


def quantized_length(name: str, size: str) -> str:
    """Return in C how many elements a row of so many bytes has; of an odd D one more.

    Examples
    --------
    >>> quantized_length("q4f16", "bytes")
    '(bytes - 4) * 2'
    """
    form = FORMATS[name]
    return f"({size} - {form.extra_bytes}) * {form.codes_per_byte}"
