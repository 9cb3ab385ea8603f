"""The one definition of `exp` on f32, which interpreters, NumPy and C share bit for bit.

Libraries differ in the last bit of `exp`. So it is spelled out in additions and multiplications of
f64 that IEEE 754 defines exactly, each rounded by itself (C: no contraction), and rounded to f32
once at the end:

```text
x = min(max(x, -150), 150)          k = round_to_even(x / ln 2)
r = (x - k * LN2_HIGH) - k * LN2_LOW
exp(x) = 2^k * (1 + r * (1 + r * (1/2 + r * (1/6 + ...  + r * 1/13!))))
```

The f64 result is right within 2 units of its last place, so the f32 one is the rounded true value
but where that lies within 2^-51 of the middle between two floats. NaN gives NaN.
"""

from __future__ import annotations

from math import factorial
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["EXP_C", "exp", "fused_multiply_add"]

_LIMIT = 150.0
_INVERSE_LN2 = float.fromhex("0x1.71547652b82fep+0")
#: The first 33 bits of ln 2, so that k times it is exact, and the rest.
_LN2_HIGH = float.fromhex("0x1.62e42fefp-1")
_LN2_LOW = float.fromhex("0x1.473de6af278edp-34")
_COEFFICIENTS = tuple(1 / factorial(power) for power in range(13, -1, -1))


def exp(values: Any) -> Any:
    """Return e to the power of each value.

    Parameters
    ----------
    values : float32 scalar or array

    Returns
    -------
    float32, likewise
        Bit for bit what `EXP_C` computes; other dtypes take NumPy's own function.

    Examples
    --------
    >>> exp(np.float32(1))
    np.float32(2.7182817)
    """
    if np.asarray(values).dtype != np.float32:
        return np.exp(values)
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        x = np.clip(np.asarray(values, np.float64), -_LIMIT, _LIMIT)
        k = np.rint(x * _INVERSE_LN2)
        r = (x - k * _LN2_HIGH) - k * _LN2_LOW
        total: NDArray[np.float64] = np.full(r.shape, _COEFFICIENTS[0])
        for coefficient in _COEFFICIENTS[1:]:
            total = total * r + coefficient
        return np.ldexp(total, k.astype(np.int32)).astype(np.float32)[()]


def fused_multiply_add(a: Any, b: Any, c: Any) -> Any:
    """Return `a * b + c` of float32 with one rounding, as C's `fmaf`.

    The product is exact in f64. The sum is rounded to odd there: then a second rounding, to f32,
    gives what one rounding would have given.
    """
    with np.errstate(all="ignore"):
        product = np.asarray(a, np.float64) * np.asarray(b, np.float64)
        addend = np.asarray(c, np.float64)
        total = np.asarray(product + addend)
        rest = total - product
        error = (product - (total - rest)) + (addend - rest)
        is_inexact = np.isfinite(total) & (error != 0)
        bits = total.view(np.int64)
        away = (error > 0) == (total > 0)
        is_even = (bits & 1) == 0
        odd = np.where(away, bits + 1, bits - 1)
        rounded = np.where(is_inexact & is_even, odd, bits).view(np.float64)
        return rounded.astype(np.float32)[()]


def _exp_c() -> str:
    first, *others = (coefficient.hex() for coefficient in _COEFFICIENTS)
    steps = "\n".join(f"    total = total * r + {coefficient};" for coefficient in others)
    return f"""
/* e to the power of x, as ember_hw.compiler.float_math defines it. */
static inline float ember_exp(float value)
{{
    double x = value;
    x = x < {(-_LIMIT).hex()} ? {(-_LIMIT).hex()} : x;
    x = x > {_LIMIT.hex()} ? {_LIMIT.hex()} : x;
    x = x == x ? x : 0.0;
    const double shift = 0x1.8p52; /* what is added to it is rounded to an integer */
    const double k = (x * {_INVERSE_LN2.hex()} + shift) - shift;
    const double r = (x - k * {_LN2_HIGH.hex()}) - k * {_LN2_LOW.hex()};
    double total = {first};
{steps}
    const uint64_t bits = (uint64_t)((int64_t)(int32_t)k + 1023) << 52;
    double scale;
    memcpy(&scale, &bits, sizeof scale);
    const float result = (float)(total * scale);
    return value == value ? result : value;
}}
"""


#: The same in C: `float ember_exp(float)`; needs `stdint.h`, `string.h` and no contraction.
EXP_C = _exp_c()
