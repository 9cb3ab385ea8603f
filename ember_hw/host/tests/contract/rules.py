# pyright: basic
"""The rules for arguments, as calls with one answer each."""

from __future__ import annotations

import numpy as np

from ember_hw.host.tests.contract.rule import (
    CLI,
    GRAPH,
    IS_GRAPH,
    IS_MODEL,
    RUN,
    TABLE,
    Bag,
    Rule,
    call,
    index_error,
    ints,
)

LOOKUPS, STARTS = ints(3, 1, 4, 1), ints(0, 0, 3)
BAGS = ([], [0, 1, 2], [3])

RULES: list[Rule] = [
    # Kinds of arrays
    *(
        Rule(
            f"{first}_and_{second}",
            "int32 and int64, mixed, give one answer",
            call(LOOKUPS.astype(first), STARTS.astype(second)),
            bags=BAGS,
            not_at={} if first == second else {GRAPH: "torch wants one dtype in a graph"},
        )
        for first in ("int32", "int64")
        for second in ("int32", "int64")
    ),
    *(
        Rule(
            f"{argument}_{dtype}",
            "no other index dtype, and no cast",
            call(LOOKUPS.astype(dtype), STARTS)
            if argument == "indices"
            else call(LOOKUPS, STARTS.astype(dtype)),
            error=TypeError,
            message=f"{argument} must be of dtype int32 or int64, not {dtype}; nothing is cast "
            f"{TABLE}",
            not_at={GRAPH: IS_GRAPH},
        )
        for argument in ("indices", "offsets")
        for dtype in ("bool", "float32", "float64", "uint8", "int16")
    ),
    # Shapes
    Rule(
        "1d_without_offsets",
        "1-D indices need offsets",
        call(LOOKUPS),
        error=ValueError,
        message="offsets must be given with 1-D indices, not None; 2-D indices (B, L) need none "
        f"{TABLE}",
        not_at={GRAPH: IS_GRAPH},
    ),
    Rule(
        "3d",
        "indices have one or two dimensions",
        call(np.zeros((1, 2, 3), np.int64)),
        error=ValueError,
        message=f"indices must be 1-D with offsets or 2-D (B, L), not of shape (1, 2, 3) {TABLE}",
        not_at={GRAPH: IS_GRAPH},
    ),
    Rule(
        "2d_offsets",
        "offsets have one dimension",
        call(LOOKUPS, ints(0, 1).reshape(1, 2)),
        error=ValueError,
        message=f"offsets must be 1-D, not of shape (1, 2) {TABLE}",
        not_at={GRAPH: IS_GRAPH},
    ),
    Rule(
        "2d_with_offsets",
        "2-D indices have no offsets",
        call(LOOKUPS.reshape(2, 2), ints(0)),
        error=ValueError,
        message="offsets must be None with 2-D indices, where each row is a bag, not {offsets} "
        f"{TABLE}",
        not_at={GRAPH: IS_GRAPH},
    ),
    Rule(
        "2d", "each row of 2-D indices is a bag", call(LOOKUPS.reshape(2, 2)), bags=([0, 1], [2, 3])
    ),
    Rule(
        "2d_include_last_offset",
        "include_last_offset has no effect on 2-D indices",
        call(LOOKUPS.reshape(2, 2)),
        Bag(include_last_offset=True),
        bags=([0, 1], [2, 3]),
    ),
    Rule("2d_no_rows", "(0, L) gives (0, D)", call(np.zeros((0, 3), np.int64)), bags=()),
    Rule(
        "2d_no_columns", "(B, 0) gives zeros", call(np.zeros((3, 0), np.int64)), bags=([], [], [])
    ),
    # Offsets
    Rule(
        "first_offset",
        "offsets begin at 0",
        call(LOOKUPS, ints(1)),
        error=ValueError,
        message=f"offsets[0] must be 0, not 1 {TABLE}",
    ),
    Rule(
        "negative_offset",
        "no offset is negative",
        call(LOOKUPS, ints(0, -1)),
        error=ValueError,
        message=f"offsets[1] must be at least 0, not -1 {TABLE}",
    ),
    Rule(
        "decreasing_offset",
        "no offset decreases",
        call(LOOKUPS, ints(0, 2, 1)),
        error=ValueError,
        message=f"offsets[2] must be at least offsets[1] = 2, not 1 {TABLE}",
    ),
    Rule(
        "large_offset",
        "no offset is beyond the indices",
        call(LOOKUPS, ints(0, 5)),
        error=ValueError,
        message=f"offsets[1] must be at most 4, the number of indices, not 5 {TABLE}",
    ),
    Rule(
        "large_last_offset",
        "nor is the last end",
        call(LOOKUPS, ints(0, 5)),
        Bag(include_last_offset=True),
        error=ValueError,
        message=f"offsets[1] must be at most 4, the number of indices, not 5 {TABLE}",
    ),
    Rule("no_offsets", "no offset and no index is no bag", call(ints(), ints()), bags=()),
    Rule(
        "no_offsets_with_indices",
        "indices need a bag",
        call(LOOKUPS, ints()),
        error=ValueError,
        message=f"offsets must have an entry for each bag, not be empty with 4 indices {TABLE}",
    ),
    *(
        Rule(
            f"trailing_{mode}",
            "trailing indices of include_last_offset belong to no bag, in all modes alike",
            call(ints(3, 1, 4, 1, 5), ints(0, 2, 3)),
            Bag(mode, include_last_offset=True),
            bags=([0, 1], [2]),
        )
        for mode in ("sum", "mean", "max")
    ),
    Rule(
        "last_offset_alone",
        "include_last_offset with one entry is no bag",
        call(ints(), ints(0)),
        Bag(include_last_offset=True),
        bags=(),
    ),
    # Indices
    *(
        Rule(
            f"index_{value}",
            "an index outside the table is an error, whatever its width; nothing wraps around",
            call(ints(1, value), ints(0)),
            error=IndexError,
            message=index_error("1", value),
        )
        for value in (-1, -10, 10, 2**31, 2**32, 2**32 + 3, 2**63 - 1, -(2**63))
    ),
    Rule(
        "index_of_no_bag",
        "indices of no bag are checked, too",
        call(ints(3, 1, 10), ints(0, 2)),
        Bag(include_last_offset=True),
        error=IndexError,
        message=index_error("2", 10),
    ),
    Rule(
        "index_in_matrix",
        "the position of an index is that in the caller's array",
        call(ints(3, 1, 4, 11).reshape(2, 2)),
        error=IndexError,
        message=index_error("1, 1", 11),
    ),
    Rule(
        "index_int32",
        "int32 indices are checked alike",
        call(ints(3, -2, dtype="int32"), ints(0, dtype="int32")),
        error=IndexError,
        message=index_error("1", -2),
    ),
    Rule(
        "too_many_indices",
        "more indices than the access unit counts are refused before anything reads them",
        call(np.broadcast_to(np.int64(0), 2**31), ints(0)),
        error=ValueError,
        message="indices must be at most 2147483647, the largest 32-bit value of the access unit, "
        f"not 2147483648; split the request {TABLE}",
        not_at={CLI: "a file of so many indices has 16 GiB"},
    ),
    # Weights of lookups
    Rule(
        "weighted",
        "weights multiply rows",
        call(LOOKUPS, STARTS, np.array([0.5, -2, 3, 0], np.float32)),
        bags=BAGS,
    ),
    Rule(
        "weighted_matrix",
        "weights of 2-D indices are 2-D",
        call(LOOKUPS.reshape(2, 2), None, np.array([[0.5, -2], [3, 0]], np.float32)),
        bags=([0, 1], [2, 3]),
    ),
    *(
        Rule(
            f"weighted_{mode}",
            "weights go with mode sum alone",
            call(LOOKUPS, STARTS, np.ones(4, np.float32)),
            Bag(mode),
            error=NotImplementedError,
            message=f"mode must be 'sum' with per_sample_weights, not {mode!r} {TABLE}",
            not_at={RUN: IS_MODEL, GRAPH: IS_GRAPH, CLI: IS_MODEL},
        )
        for mode in ("mean", "max")
    ),
    Rule(
        "weights_of_other_shape",
        "there is a weight of each lookup",
        call(LOOKUPS, STARTS, np.ones(3, np.float32)),
        error=ValueError,
        message=f"per_sample_weights must be of shape (4,), not (3,) {TABLE}",
    ),
    Rule(
        "weights_of_other_dtype",
        "weights are float32",
        call(LOOKUPS, STARTS, np.ones(4, np.float64)),
        error=TypeError,
        message="per_sample_weights must be of dtype float32, not float64; nothing is cast "
        f"{TABLE}",
        not_at={GRAPH: IS_GRAPH},
    ),
    # Padding
    *(
        Rule(
            f"padding_{mode}_{padding_idx}",
            "rows of padding_idx count in no mode, counted from either end",
            call(ints(3, 1, 1, 4, 1), ints(0, 2, 4)),
            Bag(mode, padding_idx=padding_idx),
            bags=([0], [3], []),
        )
        for mode in ("sum", "mean", "max")
        for padding_idx in (1, -9)
    ),
    Rule(
        "padding_with_weights",
        "weights of padding don't count",
        call(ints(3, 1, 4), ints(0), np.array([2, np.nan, 3], np.float32)),
        Bag(padding_idx=1),
        bags=([0, 2],),
    ),
    *(
        Rule(
            f"padding_{value}",
            "padding_idx is a row",
            call(LOOKUPS, STARTS),
            Bag(padding_idx=value),
            error=ValueError,
            message=f"padding_idx must be in [-10, 10), the rows of table 'weight' counted from "
            f"either end, not {value}",
            not_at={GRAPH: IS_GRAPH},
        )
        for value in (10, -11)
    ),
    # Tables
    Rule(
        "no_rows",
        "a table without rows gives zeros without lookups",
        call(ints(), ints(0, 0)),
        Bag(num_embeddings=0),
        bags=([], []),
    ),
    Rule(
        "no_rows_looked_up",
        "and an error with one",
        call(ints(0), ints(0)),
        Bag(num_embeddings=0),
        error=IndexError,
        message=index_error("0", 0, 0),
    ),
    Rule(
        "max_norm",
        "max_norm is never ignored",
        call(LOOKUPS, STARTS),
        Bag(max_norm=1.0),
        error=Exception,
        message="max_norm must be None, not 1.0; renormalise the table once before it is loaded: "
        "weight.data.renorm_(2.0, 0, 1.0)",
        not_at={RUN: IS_MODEL, CLI: IS_MODEL, GRAPH: "left to torch, and the record says why"},
    ),
    Rule(
        "mode",
        "there are three modes",
        call(LOOKUPS, STARTS),
        Bag("min"),
        error=ValueError,
        message=f"mode must be 'sum', 'mean' or 'max', not 'min' {TABLE}",
        not_at={GRAPH: IS_GRAPH},
    ),
    Rule(
        "backward_options",
        "sparse and scale_grad_by_freq have no effect on rows",
        call(LOOKUPS, STARTS),
        Bag("mean", sparse=True, scale_grad_by_freq=True),
        bags=BAGS,
        not_at={RUN: IS_MODEL, CLI: IS_MODEL},
    ),
]
