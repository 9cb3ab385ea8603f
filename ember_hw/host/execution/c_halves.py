"""f16 and bf16 in C: their bits in integers, and conversions of f32 that a compiler vectorises."""

from __future__ import annotations

__all__ = ["HALF_C", "half_cast"]

HALF_C = """
static inline uint32_t ember_bits(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline float ember_from_bf16(uint16_t half) { return ember_float((uint32_t)half << 16); }

/* Rounded to nearest even: half of the last place is added, less a little where that is even. */
static inline uint16_t ember_to_bf16(float value)
{
    const uint32_t bits = ember_bits(value);
    const uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
    return value == value ? rounded : (bits >> 16 & 0x8000) | 0x7fc0;
}

/* Exponents differ by 112; a product moves them, and gives numbers below 2^-14 theirs. */
static inline float ember_from_f16(uint16_t half)
{
    const uint32_t magnitude = (uint32_t)(half & 0x7fff) << 13;
    const uint32_t moved = ember_bits(ember_float(magnitude) * 0x1p112f);
    const uint32_t infinite = magnitude >= 0x7c00 << 13 ? 0x7f800000 : 0;
    return ember_float(moved | infinite | (uint32_t)(half & 0x8000) << 16);
}

/* Rounded to nearest even. Below 2^-14 the last place is 2^-24, as that of 0.5 in f32. */
static inline uint16_t ember_to_f16(float value)
{
    const uint32_t bits = ember_bits(value), magnitude = bits & 0x7fffffff;
    const uint32_t small = ember_bits(ember_float(magnitude) + 0.5f) - 0x3f000000;
    const uint32_t usual = (magnitude - 0x38000000 + 0xfff + (magnitude >> 13 & 1)) >> 13;
    uint32_t half = magnitude < 0x38800000 ? small : usual;
    half = magnitude >= 0x477ff000 ? 0x7c00 : half; /* 65520 and above */
    half = magnitude > 0x7f800000 ? 0x7e00 : half;
    return half | (bits >> 16 & 0x8000);
}
"""


def half_cast(source: str, result: str, operand: str) -> str | None:
    """Return a cast from or to f16 or bf16 in C; None for another one.

    Examples
    --------
    >>> half_cast("f32", "bf16", "x"), half_cast("f32", "f64", "x")
    ('ember_to_bf16(x)', None)
    """
    for half in ("f16", "bf16"):
        if source == half:
            return f"ember_from_{half}({operand})"
        if result == half:
            return f"ember_to_{half}({operand})"
    return None
