"""Microcode of sums across rows: what `config.reduce_dot` adds to the reduce unit's records.

With `fold` other than `none` the unit keeps three rows, the first, second and third one, and sums
across their columns. For each bundle it goes through the row entries in order, as their rows come.
For an entry r of whose events the bundle has one, the row becomes the one of its `place`, each of
its numbers with the other sign if `negated` is set, and stays that until another comes to its
place, in later requests and programs too: a program brings its rows before it asks for a sum. Then,
if the bundle has an event of `emit_events`, a result of one fp32 number leaves:

    sum = +0
    for e in 0 .. D - 1:
        x = first[e]
        x = x (second) second[e]      unless `second` is `none`
        x = x (third) third[e]        unless `third` is `none`
        sum = sum + (fold) x

where each operation is rounded. Every NaN that is a result is the same one. It is a fault if no row
has come yet to a place in use: the first one, and those that `second` and `third` ask for. `length`
is fixed, the bytes of D numbers of fp32; results have 4 bytes. `format` says what rows are, as for
pooled ones; `operation` and `scaled` are 0.

Of a triple of rows, `h + r - t` in the L1 norm is ``place=first``,
``place=second``, ``place=third negated=1`` with ``second=add third=add fold=absolute``; in the L2
norm, before the root, ``fold=square``; ``h * r * t`` has ``second=multiply third=multiply
fold=sum``; the product of two rows ``second=multiply fold=sum``.
"""

from __future__ import annotations

from amaranth.lib import enum  # pyright: ignore[reportMissingTypeStubs]  # amaranth has none

from ember_hw.isa.fields import Field, FieldKind


class Fold(enum.IntEnum, shape=2):
    """What is summed across a row; NONE: rows are pooled column by column."""

    NONE = 0
    SUM = 1
    ABSOLUTE = 2
    SQUARE = 3


class Chain(enum.IntEnum, shape=2):
    """How a row's number joins the one that was computed so far; NONE: it doesn't."""

    NONE = 0
    ADD = 1
    MULTIPLY = 2


class Place(enum.IntEnum, shape=2):
    """Which of the rows that are summed across a row is."""

    FIRST = 0
    SECOND = 1
    THIRD = 2


def dot_header_fields() -> tuple[Field, ...]:
    """Return what record ``reduce`` has besides."""
    return (
        Field("fold", 2, "what is summed across rows; NONE: nothing is", FieldKind.ENUM, Fold),
        Field("second", 2, "how the second row joins the first", FieldKind.ENUM, Chain),
        Field(
            "third", 2, "how the third row joins; not MULTIPLY with SQUARE", FieldKind.ENUM, Chain
        ),
    )


def dot_step_fields() -> tuple[Field, ...]:
    """Return what records ``reduce<r>`` have besides."""
    return (
        Field("place", 2, "which row it is, of those summed across", FieldKind.ENUM, Place),
        Field("negated", 1, "its numbers get the other sign, where it is summed across"),
    )
