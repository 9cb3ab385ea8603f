"""The levels against each other: same result bit by bit, and the traffic that each promises."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

from ember_hw import isa
from ember_hw.compiler import pipeline as pipeline_module
from ember_hw.compiler.backend.allocate import allocate
from ember_hw.compiler.backend.lower import lower
from ember_hw.compiler.interpreters import Schedule, interpret
from ember_hw.compiler.interpreters.au import run_au
from ember_hw.compiler.ir_text import parse_module
from ember_hw.compiler.pipeline import (
    OPT_LEVELS,
    PASSES,
    pipeline,
    run_pipeline,
    vector_length_of,
)
from ember_hw.compiler.tests.kernels import (
    BB_PV,
    EB_MAX,
    EB_MEAN,
    EB_MULTI,
    EB_SUM,
    KERNELS,
    SPMM,
    Kernel,
)
from ember_hw.compiler.transforms.access_slice import decoupling_report
from ember_hw.compiler.transforms.choose_decoupling import ChooseDecoupling
from ember_hw.config import AcceleratorConfig
from ember_hw.errors import CompileError

SCHEDULES = (Schedule.AHEAD, Schedule.LOCKSTEP, Schedule.random(1, 2, 3))


def run(module: ModuleOp, kernel: Kernel, columns: int, **options: Any) -> Any:
    arguments = kernel.arguments(columns, 0)
    result = interpret(module, "kernel", list(arguments.values()), **options)
    return arguments["out"], result.counts


def same_bits(left: np.ndarray, right: np.ndarray) -> bool:
    return np.array_equal(left.view(np.uint32), right.view(np.uint32))


def columns_for(lanes: int) -> tuple[int, ...]:
    return (1, lanes - 1, lanes, lanes + 1, 20)


@pytest.mark.parametrize("lanes", [2, 4, 8, 16])
@pytest.mark.parametrize("opt_level", OPT_LEVELS)
def test_bag_sum_is_the_same_after_every_pass_for_every_vector_length(
    opt_level: int, lanes: int
) -> None:
    expected = {c: run(parse_module(EB_SUM.text), EB_SUM, c)[0] for c in columns_for(lanes)}
    seen: list[str] = []

    def observe(name: str, module: ModuleOp) -> None:
        seen.append(name)
        for columns, answer in expected.items():
            assert same_bits(run(module, EB_SUM, columns)[0], answer), (name, columns)

    run_pipeline(parse_module(EB_SUM.text), opt_level, lanes, observe=observe)
    names = [s.module_pass.name for s in pipeline(opt_level) if not s.temporaries]
    assert seen == names


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
@pytest.mark.parametrize("opt_level", OPT_LEVELS)
def test_levels_agree_under_every_schedule(kernel: Kernel, opt_level: int) -> None:
    expected = run(parse_module(kernel.text), kernel, 7)[0]
    module = parse_module(kernel.text)
    run_pipeline(module, opt_level, 4)
    for schedule in SCHEDULES:
        assert same_bits(run(module, kernel, 7, schedule=schedule)[0], expected), schedule


@pytest.mark.parametrize("kernel", [EB_SUM, SPMM, EB_MEAN, EB_MAX, EB_MULTI], ids=str)
@pytest.mark.parametrize("opt_level", OPT_LEVELS)
def test_access_unit_text_agrees(kernel: Kernel, opt_level: int) -> None:
    expected = run(parse_module(kernel.text), kernel, 7)[0]
    module = parse_module(kernel.text)
    run_pipeline(module, opt_level, 4)
    (function,) = (op for op in module.ops if isinstance(op, FuncOp))
    program = allocate(function, "default")
    program.verify()
    arguments = kernel.arguments(7, 0)
    environment = {**arguments, "tab.dim1": 7}
    run_au([program], module, "kernel", list(arguments.values()), environment)
    assert same_bits(arguments["out"], expected)


PUSHES = {
    0: ["t2, ite: b d v"],
    1: ["t2, ite: b d v"],
    2: ["t1, ite: b row"],
    3: ["t1, ite: row", "t1, end:"],
}


@pytest.mark.parametrize("opt_level", OPT_LEVELS)
def test_push_lists_of_a_bag_sum(opt_level: int) -> None:
    text = run_pipeline(parse_module(EB_SUM.text), opt_level, 8).texts["dlc"]
    pushes: list[str] = []
    for match in re.finditer(r"register_(callback|operand) %(t\d, \w+)(?:, %(\w+))?", text):
        if match[1] == "callback":
            pushes.append(f"{match[2]}:")
        else:
            pushes[-1] += f" {match[3]}"
    assert pushes == PUSHES[opt_level]
    assert ("vector<8xf32>" in text) == (opt_level > 0)


def test_a_padded_last_row_is_never_read_beyond_its_end() -> None:
    arguments = EB_SUM.arguments(5, 0)
    padded = np.full((7, 8), np.nan, np.float32)
    padded[:, :5] = arguments["tab"]
    expected = run(parse_module(EB_SUM.text), EB_SUM, 5)[0]
    for opt_level in (1, 2, 3):
        module = parse_module(EB_SUM.text)
        run_pipeline(module, opt_level, 4)
        arguments = {**EB_SUM.arguments(5, 0), "tab": padded[:, :5]}
        interpret(module, "kernel", list(arguments.values()))
        assert same_bits(arguments["out"], expected)


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_passes_that_say_so_are_idempotent(kernel: Kernel) -> None:
    module = parse_module(kernel.text)
    context = Context()
    for step in pipeline(3, 4):
        step.module_pass.apply(context, module)
        if step.module_pass.name in ("simplify-casts", "simplify-mem-ops", "replace-to-val"):
            once = str(module)
            step.module_pass.apply(context, module)
            assert str(module) == once


@pytest.mark.parametrize(
    ("attribute", "flag", "hint"),
    [
        ("nontemporal = true", "{nontemporal}", isa.Hint.NON_TEMPORAL),
        ("ember.keep", "{keep}", isa.Hint.KEEP),
    ],
)
@pytest.mark.parametrize("opt_level", OPT_LEVELS)
def test_hints_reach_the_microcode(
    opt_level: int, attribute: str, flag: str, hint: isa.Hint
) -> None:
    text = EB_SUM.text.replace("%tab[%r, %d] :", f"%tab[%r, %d] {{{attribute}}} :")
    text = text.replace("%idx[%j] :", f"%idx[%j] {{{attribute}}} :")
    lowered = lower(parse_module(text), opt_level, AcceleratorConfig(data_width_bits=128))
    (program,), (assembly,) = lowered.programs, lowered.assemblies
    assert str(program).count(flag) == 2
    records = assembly.microcode.records
    assert records["unit1.stream0"]["hint"] == hint
    assert records["unit2.stream0" if opt_level == 0 else "row0"]["hint"] == hint
    assert sum(record.get("hint", 0) != 0 for record in records.values()) == 2


def test_two_nests_run_one_after_the_other() -> None:
    loops = EB_SUM.text[EB_SUM.text.index("  scf.for") : EB_SUM.text.index("  func.return")]
    text = EB_SUM.text.replace(loops, loops + loops)
    expected = run(parse_module(text), EB_SUM, 5)[0]
    for opt_level in OPT_LEVELS:
        module = parse_module(text)
        run_pipeline(module, opt_level, 4)
        assert str(module).count("dlc.compute_loop") == 2
        assert same_bits(run(module, EB_SUM, 5)[0], expected)


def test_counters_respect_lower_bound_and_step() -> None:
    text = EB_SUM.text.replace("%b = %c0 to %B step %c1", "%b = %c1 to %B step %c2").replace(
        "  %D =", "  %c2 = arith.constant 2 : index\n  %D ="
    )
    expected = run(parse_module(text), EB_SUM, 5)[0]
    module = parse_module(text)
    run_pipeline(module, 3, 4)
    assert "dlc.increment_var {step = 2 : i64}" in str(module)
    assert same_bits(run(module, EB_SUM, 5)[0], expected)


def test_inner_counters_are_set_back() -> None:
    text = run_pipeline(parse_module(BB_PV.text), 3, 4).texts["dlc"]
    assert len(re.findall(r"dlc\.set_var %c0", text)) == 5  # three first values, two resets


def test_registry_holds_every_pass() -> None:
    steps = [step.module_pass.name for step in pipeline(3)]
    before, behind = (
        ("check-dae", "split-siblings", "divide-nests"),
        (
            "recompute-indices",
            "dlc-to-au",
        ),
    )
    assert list(PASSES) == [*before, *steps, *behind]


@pytest.mark.parametrize("opt_level", [-1, 4, "3"])
def test_opt_level_must_be_known(opt_level: Any) -> None:
    with pytest.raises(ValueError, match=rf"^opt_level must be 0, 1, 2 or 3, not {opt_level!r}$"):
        pipeline(opt_level)


def test_ir_that_does_not_verify_after_a_pass_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def break_module(self: ChooseDecoupling, ctx: Context, op: ModuleOp) -> None:
        (function,) = (inner for inner in op.ops if isinstance(inner, FuncOp))
        last = function.body.block.last_op
        assert last is not None
        last.detach()

    monkeypatch.setattr(pipeline_module.ChooseDecoupling, "apply", break_module)
    with pytest.raises(CompileError, match=r"^IR after 'choose-decoupling' must verify: "):
        run_pipeline(parse_module(EB_SUM.text), 0)


#: Preset each bag before its lookups, add rows 2 i + 1 of integers, and tell where each row went.
BEGIN_CALLBACK = """
func.func @kernel(%off: memref<?xindex>, %idx: memref<?xindex>, %tab: memref<?x?xi64>,
                  %out: memref<?x?xi64>, %seen: memref<?xindex>, %B: index)
    attributes {ember.args = ["off", "idx", "tab", "out", "seen", "B"], ember.noalias} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %D = memref.dim %tab, %c1 : memref<?x?xi64>
  scf.for %b = %c0 to %B step %c1 {
    %b1 = arith.addi %b, %c1 : index
    %s = memref.load %off[%b] : memref<?xindex>
    %e = memref.load %off[%b1] : memref<?xindex>
    %first = memref.load %tab[%b, %c0] : memref<?x?xi64>
    memref.store %first, %out[%b, %c0] : memref<?x?xi64>
    scf.for %j = %s to %e step %c1 {
      %i = memref.load %idx[%j] : memref<?xindex>
      %i2 = arith.muli %i, %c2 : index
      %r = arith.addi %i2, %c1 : index
      scf.for %d = %c0 to %D step %c1 {
        %v = memref.load %tab[%r, %d] : memref<?x?xi64>
        %a = memref.load %out[%b, %d] : memref<?x?xi64>
        %n = arith.addi %a, %v : i64
        memref.store %n, %out[%b, %d] : memref<?x?xi64>
      }
    }
    memref.store %b1, %seen[%b] : memref<?xindex>
  }
  func.return
}
"""


@pytest.mark.parametrize("opt_level", OPT_LEVELS)
def test_callbacks_before_and_after_a_loop_and_integer_lanes(opt_level: int) -> None:
    lengths = [0, 2, 0, 3, 0]
    random = np.random.default_rng(0)
    table = random.integers(-(2**62), 2**62, (11, 7))
    offsets, indices = np.cumsum([0, *lengths]), random.integers(0, 5, sum(lengths))
    expected = np.zeros((5, 7), np.int64)
    expected[:, 0] = table[:5, 0]
    np.add.at(expected, np.repeat(np.arange(5), lengths), table[2 * indices + 1])

    module = parse_module(BEGIN_CALLBACK)
    seen: list[str] = []

    def observe(name: str, module: ModuleOp) -> None:
        for schedule in SCHEDULES:
            out, places = np.zeros((5, 7), np.int64), np.zeros(5, np.int64)
            arguments: list[Any] = [offsets, indices, table, out, places, 5]
            interpret(module, "kernel", arguments, schedule=schedule)
            assert np.array_equal(out, expected), name
            assert np.array_equal(places, np.arange(1, 6)), name
        seen.append(name)

    text = run_pipeline(module, opt_level, 4, observe=observe).texts["dlc"]
    assert seen[-1] == "slc-to-dlc"
    assert "register_callback %t1, beg" in text
    assert ("vector<4xi64>" in text) == (opt_level > 0)


def test_what_was_offloaded_is_reported_and_why_not_the_rest() -> None:
    result = run_pipeline(parse_module(EB_MEAN.text, "k.mlir"), 3, 4)
    lines = [str(decision) for decision in result.decisions]
    assert [decision.is_offloaded for decision in result.decisions] == [True] * 7 + [
        False, False, False,
    ]  # fmt: skip
    assert lines[0] == "kernel: 'scf.for' (k.mlir:14:3) %b: access unit"
    assert lines[-3].endswith("from %out: %out is written in the nest")
    assert lines[-2].endswith("%d: it holds no load that the access unit can do")
    assert result.remarks == ()


def test_of_f64_the_access_unit_loads_rows_only() -> None:
    result = run_pipeline(parse_module(SPMM.text.replace("f32", "f64")), 3, 4)
    reasons = {d.subject: d.reason for d in result.decisions if d.op.startswith("'memref.load'")}
    assert reasons["from %tab"] == ""
    assert reasons["from %psw"] == "an f64 is wider than a value of the unit, and it is of no row"


@pytest.mark.parametrize(("element_bytes", "lanes"), [(4, (2, 16)), (8, (2, 8))])
def test_a_vector_is_a_beat_of_the_narrowest_element(
    element_bytes: int, lanes: tuple[int, int]
) -> None:
    buses = [AcceleratorConfig(data_width_bits=bits) for bits in (64, 512)]
    assert tuple(vector_length_of(config, element_bytes) for config in buses) == lanes


REASONS = {
    "%st": "its step isn't a positive constant",
    "%k": "its bound %k is no value of the access unit",
}


@pytest.mark.parametrize("reason", REASONS)
def test_a_loop_that_stays_on_the_execute_side_says_why(reason: str) -> None:
    step, upper = ("%st", "%n") if reason == "%st" else ("%c1", "%k")
    text = f"""
func.func @kernel(%idx: memref<?xindex>, %x: memref<?xf32>, %y: memref<?xf32>, %n: index,
                  %st: index) attributes {{ember.noalias}} {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c1 {{
    %r = memref.load %idx[%i] : memref<?xindex>
    %k = arith.maxsi %r, %c1 : index
    scf.for %j = %c0 to {upper} step {step} {{
      %v = memref.load %x[%j] : memref<?xf32>
      memref.store %v, %y[%r] : memref<?xf32>
    }}
  }}
  func.return
}}
"""
    (_, _, loop, load) = run_pipeline(parse_module(text), 0).decisions
    assert (loop.is_offloaded, loop.reason) == (False, REASONS[reason])
    assert (load.is_offloaded, load.reason) == (False, "it stands in code of the execute side")


@pytest.mark.parametrize(
    ("view", "reason"),
    [
        ("before", "%out is written in the nest"),
        ("inside", "its memory %y is a view made in the nest"),
    ],
)
def test_a_view_of_the_output_stays_with_the_execute_side(view: str, reason: str) -> None:
    cast = '%y = "memref.cast"(%out) : (memref<?xf32>) -> memref<?xf32>'
    text = f"""
func.func @kernel(%x: memref<?xf32>, %n: index) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %idx = memref.alloc(%n) : memref<?xindex>
  %out = memref.alloc(%n) : memref<?xf32>
  {cast if view == "before" else ""}
  scf.for %i = %c0 to %n step %c1 {{
    %r = memref.load %idx[%i] : memref<?xindex>
    {cast if view == "inside" else ""}
    %v = memref.load %y[%r] : memref<?xf32>
    memref.store %v, %x[%i] : memref<?xf32>
    memref.store %v, %out[%i] : memref<?xf32>
  }}
  func.return
}}
"""
    decisions = run_pipeline(parse_module(text), 0).decisions
    assert [decision.is_offloaded for decision in decisions] == [True, True, False]
    assert decisions[-1].reason == reason


def test_levels_limit_what_is_offloaded() -> None:
    decisions = decoupling_report(parse_module(EB_SUM.text), levels=2)
    loops = [decision for decision in decisions if "scf.for" in decision.op]
    assert [loop.reason for loop in loops] == [
        "",
        "",
        "the access unit has 2 loops one in the other",
    ]
