# pyright: basic
"""Many bags in one program: rules of inputs by table, and answers by the bit."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

import ember_hw
from ember_hw.compiler.build import build
from ember_hw.compiler.frontend.embedding_bag import EmbeddingBagSpec
from ember_hw.compiler.frontend.emit_operation import emit_scf
from ember_hw.compiler.frontend.tables import TablesSpec
from ember_hw.compiler.self_check import check_of
from ember_hw.config import AcceleratorConfig
from ember_hw.errors import AssemblyError, DeviceError, ProgramError, UnsupportedError
from ember_hw.host.bindings import tables
from ember_hw.host.device import open_device
from ember_hw.host.launch import LoadedProgram
from ember_hw.host.reference import bit_equal
from ember_hw.host.request import LookupRequest
from ember_hw.registers import FaultCode

CONFIG = AcceleratorConfig.preset("tables")
NARROW = replace(
    AcceleratorConfig.preset("tiny"),
    name="narrow tables",
    streams_per_unit=4,
    exports=10,
    bundle_scalars=6,
)
MODES = (("sum", False), ("sum", True), ("mean", False), ("max", False))
SHAPES = ((5, 3), (100, 16), (7, 64), (0, 4), (9, 130))


def spec_of(mode, weighted, shapes=SHAPES, dtype="int64", share=False, **facts):
    random = np.random.default_rng(3)
    arrays = [random.standard_normal(shape).astype(np.float32) for shape in shapes]
    if share:
        arrays.append(arrays[0])
    bags = tuple(
        EmbeddingBagSpec(
            name=f"t{number}.weight",
            num_embeddings=array.shape[0],
            embedding_dim=array.shape[1],
            index_dtype=np.dtype(dtype),
            include_last_offset=False,
            input_names=(),
            two_dimensional=False,
            indices_name=f"i{number}",
            offsets_name=f"o{number}",
            weights_name=f"w{number}" if weighted else None,
            mode=mode,
            weight=array,
            **facts,
        )
        for number, array in enumerate(arrays)
    )
    return TablesSpec(
        bags=bags,
        symbols=tuple(f"tab{number % len(shapes)}" for number in range(len(bags))),
        input_names=tuple(
            f"{letter}{number}"
            for number in range(len(bags))
            for letter in ("iow" if weighted else "io")
        ),
    )


@cache
def compiled(mode="sum", weighted=False, opt_level=3, config=CONFIG, dtype="int64", share=False):
    spec = spec_of(mode, weighted, dtype=dtype, share=share)
    return build(emit_scf(spec), spec, opt_level=opt_level, config=config)


def inputs_of(program, lengths, seed=0):
    """Return inputs with so many lookups in the bags of each table."""
    random = np.random.default_rng(seed)
    found = {}
    for number, (bag, of_bags) in enumerate(zip(program.model["bags"], lengths, strict=True)):
        rows = bag["num_embeddings"]
        of_bags = np.array(of_bags, np.int64) * (rows > 0)
        count = int(of_bags.sum())
        indices = random.integers(0, max(rows, 1), count)
        found[f"i{number}"] = indices.astype(program.model["index_dtype"])
        found[f"o{number}"] = np.cumsum(of_bags) - of_bags
        if bag["weights_name"]:
            found[f"w{number}"] = random.standard_normal(count).astype(np.float32)
    return found


LENGTHS = ([0, 2, 0, 3, 0], [4], [], [1, 1], [0, 5, 1, 0])


@pytest.fixture(scope="module")
def device():
    with open_device("interpreter", config=CONFIG) as opened:
        yield opened


def torch_answers(program, inputs):
    answers = []
    for number, bag in enumerate(program.model["bags"]):
        module = nn.EmbeddingBag.from_pretrained(
            torch.from_numpy(program.tables[bag["table"]]), mode=bag["mode"]
        )
        names = [f"i{number}", f"o{number}"]
        indices, offsets = (torch.from_numpy(inputs[name].astype(np.int64)) for name in names)
        weights = torch.from_numpy(inputs[f"w{number}"]) if bag["weights_name"] else None
        answers.append(module(indices, offsets, weights).numpy())
    return answers


def separate_answers(device, program, inputs):
    answers = []
    for number, bag in enumerate(program.model["bags"]):
        spec = replace(
            spec_of(bag["mode"], bag["weights_name"] is not None).bags[number],
            input_names=tuple(
                bag[name] for name in ("indices_name", "offsets_name", "weights_name") if bag[name]
            ),
        )
        single = build(emit_scf(spec), spec, opt_level=3, config=CONFIG)
        names = spec.input_names
        answers.append(device.run(single, {name: inputs[name] for name in names}))
    return answers


@pytest.mark.parametrize(("mode", "weighted"), MODES)
def test_together_is_separate_is_torch(device, mode, weighted):
    program = compiled(mode, weighted)
    inputs = inputs_of(program, LENGTHS)
    found = device.run(program, inputs)
    expected = tables.reference(program, inputs)
    separate = separate_answers(device, program, inputs)
    for one, exact, alone, torchs in zip(
        found, expected, separate, torch_answers(program, inputs), strict=True
    ):
        assert bit_equal(one, exact)
        assert bit_equal(one, alone)
        np.testing.assert_allclose(one, torchs, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("mode", "weighted"), MODES)
@pytest.mark.parametrize("opt_level", [2, 3])
def test_every_level_of_the_ir_agrees(mode, weighted, opt_level):
    spec = spec_of(mode, weighted, dtype="int32")
    module = emit_scf(spec)
    build(module, spec, opt_level=opt_level, config=NARROW, check=check_of(spec, module))


@settings(max_examples=30, deadline=None)
@given(
    st.sampled_from(MODES),
    st.lists(st.lists(st.integers(0, 4), max_size=4), min_size=6, max_size=6),
    st.integers(0, 99),
)
def test_random_bags_are_exact(mode, lengths, seed):
    program = compiled(*mode, dtype="int32", share=True)
    inputs = inputs_of(program, lengths, seed)
    with open_device("interpreter", config=CONFIG) as opened:
        found = opened.run(program, inputs)
    for one, exact in zip(found, tables.reference(program, inputs), strict=True):
        assert bit_equal(one, exact)


def test_shared_table_is_placed_once():
    program = compiled(share=True)
    assert list(program.tables) == ["tab0", "tab1", "tab2", "tab3", "tab4"]
    loaded = LoadedProgram(program)
    request = tables.request(program, inputs_of(program, [*LENGTHS, [2, 2]]))
    run = loaded.prepare(request)
    place = run.arrays["place"]
    assert place[5] == place[0]
    assert len(set(place)) == 5
    regions = {region.symbol: region for region in run.launch(0).regions}
    assert [symbol for symbol in regions if symbol.startswith("tab")] == list(program.tables)
    # 16 and 64 columns need no padding, and lie where the model has them.
    for symbol in ("tab1", "tab2"):
        assert np.may_share_memory(regions[symbol].data, program.tables[symbol])


def test_changes_in_place_are_seen(device):
    program = compiled()
    inputs = inputs_of(program, LENGTHS)
    for table in (0, 2):  # padded, and passed by pointer
        row = int(inputs[f"i{table}"][0]) if len(inputs[f"i{table}"]) else 0
        before = program.tables[f"tab{table}"][row].copy()
        device.run(program, inputs)
        program.tables[f"tab{table}"][row] = 7.0
        for one, exact in zip(
            device.run(program, inputs), tables.reference(program, inputs), strict=True
        ):
            assert bit_equal(one, exact)
        program.tables[f"tab{table}"][row] = before


@pytest.mark.parametrize(
    "lengths", [[[]] * 5, [[0]] * 5, [[0, 0], [], [0], [0, 0, 0], []]], ids=str
)
def test_nothing_is_looked_up(device, lengths):
    program = compiled()
    found = device.run(program, inputs_of(program, lengths))
    for one, (_, columns), bags in zip(found, SHAPES, lengths, strict=True):
        assert bit_equal(one, np.zeros((len(bags), columns), np.float32))


@pytest.mark.parametrize("index", [5, -1])
def test_index_outside_its_own_table_is_refused_by_its_name(device, index):
    inputs = inputs_of(compiled(), LENGTHS)
    inputs["i0"][2] = index
    text = f"indices[2] must be in [0, 5), the rows of table 't0.weight', not {index}"
    with pytest.raises(IndexError, match=f"^{re.escape(text)}$"):
        device.run(compiled(), inputs)


def without_check(monkeypatch, row):
    """Let a lookup of table 0 through that its table doesn't have."""
    checked = tables.lookup_requests

    def unchecked(program, inputs):
        first, *others = checked(program, inputs)
        indices = first.indices.copy()
        indices[-1] = row
        return [LookupRequest(indices, first.offsets, first.num_bags, first.weights), *others]

    monkeypatch.setattr(tables, "lookup_requests", unchecked)
    # The copies that a run brings up to date know no such row either.
    bind = tables.bind
    monkeypatch.setattr(tables, "bind", lambda *a, **k: replace(bind(*a, **k), rows={}))


def test_hardware_knows_the_rows_of_each_table(device, monkeypatch):
    program = compiled()
    inputs = inputs_of(program, LENGTHS)
    without_check(monkeypatch, 5)  # there is memory behind the 5 rows of the table
    with pytest.raises(DeviceError) as raised:
        device.run(program, inputs)
    assert raised.value.code == FaultCode.INDEX_OUT_OF_RANGE
    monkeypatch.undo()
    assert len(device.run(program, inputs)) == 5


@pytest.mark.verilator
@pytest.mark.timeout(900)  # builds the model
def test_simulated_unit_agrees_and_knows_the_rows_of_each_table(monkeypatch):
    with open_device("verilator", config=NARROW, optimise=False) as unit:
        for mode, weighted in MODES:
            program = compiled(mode, weighted, config=NARROW)
            inputs = inputs_of(program, LENGTHS)
            found = unit.run(program, inputs)
            for one, exact in zip(found, tables.reference(program, inputs), strict=True):
                assert bit_equal(one, exact)
        program = compiled(config=NARROW)
        without_check(monkeypatch, 5)
        with pytest.raises(DeviceError) as raised:
            unit.run(program, inputs_of(program, LENGTHS))
        assert raised.value.code == FaultCode.INDEX_OUT_OF_RANGE


def test_sizes_and_names_of_inputs_are_checked(device):
    program = compiled()
    inputs = inputs_of(program, LENGTHS)
    del inputs["i3"]
    with pytest.raises(ProgramError, match=r"and 'i3' must not be left out$"):
        device.run(program, inputs)
    inputs = inputs_of(program, LENGTHS)
    inputs["o1"] = np.array([1])
    text = "offsets[0] must be 0, not 1 (table 't1.weight')"
    with pytest.raises(ValueError, match=f"^{re.escape(text)}$"):
        device.run(program, inputs)
    inputs["o1"] = np.array([0.0])
    with pytest.raises(TypeError, match=r"'t1\.weight'"):
        device.run(program, inputs)


def test_table_of_another_shape_is_refused(device):
    program = compiled()
    other = {**program.tables, "tab1": np.zeros((3, 16), np.float32)}
    text = (
        "table 'tab1' of program 'tables_sum' must be float32 of shape (100, 16), not float32 of "
        "shape (3, 16)"
    )
    with pytest.raises(ProgramError, match=f"^{re.escape(text)}$"):
        device.load(replace(program, tables=other))


def test_more_bags_than_the_unit_counts_are_refused():
    program = compiled()
    lookup = LookupRequest(np.zeros(0, np.int64), np.zeros(1, np.int64), 1 << 30)
    text = (
        "bags must be at most 2147483647, the largest 32-bit value of the access unit, not "
        "5368709120; split the request (table '5 bags in 5 tables')"
    )
    with pytest.raises(ValueError, match=f"^{re.escape(text)}$"):
        tables.bind(program, [lookup] * 5)


class Towers(nn.Module):
    """Three bags, two of them in one table."""

    def __init__(self):
        super().__init__()
        self.user = nn.EmbeddingBag(9, 4, mode="sum", padding_idx=0)
        self.item = nn.EmbeddingBag(20, 16, mode="sum", include_last_offset=True)

    def forward(self, seen, item, offsets, liked):
        return self.item(item, offsets), self.user(seen), self.user(liked)


TOWERS = (
    torch.tensor([[1, 2], [0, 8]]),
    torch.tensor([1, 19, 4]),
    torch.tensor([0, 0, 2, 3]),
    torch.tensor([[5]]),
)


def test_model_with_several_bags_is_one_program(device, tmp_path):
    model = Towers()
    program = ember_hw.compile(model, TOWERS, config=CONFIG)
    program.save(tmp_path / "towers.ember")
    program = ember_hw.load(tmp_path / "towers.ember")
    assert (program.model["kind"], program.model["name"]) == ("tables", "3 bags in 2 tables")
    found = device.run(program, TOWERS)
    for one, expected in zip(found, model(*TOWERS), strict=True):
        torch.testing.assert_close(one, expected)


def test_config_that_is_too_small_is_refused_with_the_preset_that_fits():
    with pytest.raises(AssemblyError) as raised:
        ember_hw.compile(Towers(), TOWERS)
    assert str(raised.value) == (
        "au: 'au.mem s2 on t0': needs a relay below t0, so 4 units in all, config 'default' has 3 "
        "(limit traversal_units; a config with 4 would do); the preset 'tables' is made for many "
        "bags in one program (AcceleratorConfig.preset('tables'), --config tables)"
    )


def test_model_that_returns_more_than_its_bags_is_refused():
    class More(Towers):
        def forward(self, seen, item, offsets, liked):
            rows = super().forward(seen, item, offsets, liked)
            return (*rows, rows[0])

    with pytest.raises(UnsupportedError) as raised:
        ember_hw.compile(More(), TOWERS, config=CONFIG)
    assert re.fullmatch(
        r"model must return the rows of its 3 bags, each once, and nothing else, not \(.*\)",
        str(raised.value),
    )


def test_row_that_is_too_long_is_refused_by_its_table():
    spec = spec_of("sum", False, shapes=((2, 3), (1, 1 << 20)))
    with pytest.raises(UnsupportedError) as raised:
        build(emit_scf(spec), spec, opt_level=3, config=CONFIG)
    assert re.fullmatch(
        r"embedding_dim of table 't1\.weight' must be at most \d+ at opt_level 3 on config "
        r"'tables', not 1048576; .*",
        str(raised.value),
    )
