"""Rules that aren't a call of one float32 embedding bag: the tests that hold them."""

from __future__ import annotations

#: By rule: file and test, both of which must exist.
ELSEWHERE: dict[str, tuple[str, str]] = {
    "padding_idx of an Embedding: the stored row is returned": (
        "host/nn/tests/test_modules.py",
        "test_embedding_takes_indices_of_any_shape",
    ),
    "non-contiguous and transposed tables": (
        "host/nn/tests/test_modules.py",
        "test_table_that_was_changed_is_never_stale",
    ),
    "a table changed after it was loaded": (
        "host/tests/test_device.py",
        "test_table_changed_in_place_is_never_stale",
    ),
    "several tables, shared: bounds of the physical table": (
        "host/nn/tests/test_collection.py",
        "test_features_that_break_a_rule_are_refused",
    ),
    "accumulation of fp16 and bf16 rows": (
        "host/nn/tests/test_modules.py",
        "test_narrow_tables_give_rows_of_their_dtype",
    ),
    "NestedTensor": ("host/nn/tests/test_nested.py", "test_each_part_is_a_bag"),
    "KeyedJaggedTensor": (
        "host/nn/tests/test_collection.py",
        "test_rows_are_torchrec_s_from_one_run",
    ),
    "KeyedJaggedTensor of a batch of 0": (
        "host/nn/tests/test_collection.py",
        "test_no_bag_at_all_gives_no_rows",
    ),
    "max_norm in a graph": (
        "host/tests/test_torch_backend.py",
        "test_explanation_lists_what_would_run_and_what_not",
    ),
    "gradients of sparse and scale_grad_by_freq": (
        "host/nn/tests/test_gradients.py",
        "test_scale_by_frequency_divides_by_the_lookups_of_each_row",
    ),
}
