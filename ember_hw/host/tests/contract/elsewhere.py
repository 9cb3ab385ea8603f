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
    "row-wise int8 and int4, fp16 and bf16: each entry point, each output dtype": (
        "host/tests/test_contract_dtypes.py",
        "test_rows_are_those_of_exact",
    ),
    "row-wise int8 and int4 in a graph of torch": (
        "host/tests/test_contract_dtypes.py",
        "test_a_graph_of_torch_holds_quantised_tables",
    ),
    "row-wise int8 and int4: at most half a step off, a constant row exact": (
        "compiler/tests/test_quantized_rows.py",
        "test_an_element_is_at_most_half_a_step_off",
    ),
    "row-wise int8 and int4: NaN and infinity in a row to be packed": (
        "compiler/tests/test_quantized_rows.py",
        "test_what_can_t_be_packed_is_refused",
    ),
    "row-wise int4: an odd D is padded and masked": (
        "host/tests/test_quantized_programs.py",
        "test_bags_of_every_format_run_as_one_program",
    ),
    "tables of several dtypes in a collection": (
        "host/nn/tests/test_quantized.py",
        "test_a_collection_has_tables_of_several_dtypes",
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
        "host/tests/test_torch_explain.py",
        "test_explanation_lists_what_would_run_and_what_not",
    ),
    "gradients of sparse and scale_grad_by_freq": (
        "host/nn/tests/test_gradients.py",
        "test_scale_by_frequency_divides_by_the_lookups_of_each_row",
    ),
}
