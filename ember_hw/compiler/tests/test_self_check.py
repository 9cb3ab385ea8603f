import re

import numpy as np
import pytest
import torch
from xdsl.dialects.func import FuncOp

from ember_hw.compiler.backend.allocate import allocate
from ember_hw.compiler.dialects import make_context
from ember_hw.compiler.frontend import FrontendResult, import_module
from ember_hw.compiler.ir_text import parse_module
from ember_hw.compiler.pipeline import OPT_LEVELS, run_pipeline
from ember_hw.compiler.self_check import BAG_LENGTHS, LevelCheck, SelfCheck
from ember_hw.compiler.tests.kernels import EB_SUM, KERNELS, Kernel
from ember_hw.errors import CheckError


@pytest.fixture
def imported() -> FrontendResult:
    bag = torch.nn.EmbeddingBag(50, 5, mode="sum")
    return import_module(bag, (torch.tensor([1, 2]), torch.tensor([0, 1])))


def test_reference_is_the_sum_of_each_bag(imported: FrontendResult) -> None:
    check = SelfCheck(imported.spec, "eb_sum")
    bags = np.split(check.table[check.indices], np.cumsum(BAG_LENGTHS)[:-1])
    sums = [np.add.reduce(rows, axis=0, dtype=np.float32) for rows in bags]
    np.testing.assert_allclose(check.expected, np.array(sums), rtol=1e-6)
    check.check("import", imported.module)


@pytest.mark.parametrize("opt_level", [0, 3])
def test_a_pass_that_changes_the_result_is_found(imported: FrontendResult, opt_level: int) -> None:
    check = SelfCheck(imported.spec, "eb_sum")
    run_pipeline(imported.module, opt_level, 4)
    check.check("slc-to-dlc", imported.module)
    broken = parse_module(
        str(imported.module).replace("arith.addf", "arith.subf"), "<test>", make_context()
    )
    message = (
        r"^IR after 'slc-to-dlc' must give the exact reference, .* in column 0 of bag 1, not .*$"
    )
    with pytest.raises(CheckError, match=message):
        check.check("slc-to-dlc", broken)


def test_an_access_program_that_reads_elsewhere_is_found(imported: FrontendResult) -> None:
    check = SelfCheck(imported.spec, "eb_sum")
    run_pipeline(imported.module, 3, 4)
    (function,) = (op for op in imported.module.ops if isinstance(op, FuncOp))
    program = allocate(function, "small", {"tab": (50, 5)})
    check.check_au([program], imported.module)
    text = str(program).replace("[s2 *", "[t0 *")
    (broken,) = parse_module(text, "<test>", make_context()).ops
    with pytest.raises(CheckError) as error:
        check.check_au([broken], imported.module)  # pyright: ignore[reportArgumentType]
    assert re.fullmatch(
        r"program of the access unit must give the exact reference, .* in column 0 of bag 1, "
        r"not .*",
        str(error.value),
    )


@pytest.mark.parametrize("opt_level", OPT_LEVELS)
@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_every_pass_keeps_what_a_kernel_does(kernel: Kernel, opt_level: int) -> None:
    module = parse_module(kernel.text)
    check = LevelCheck(module, "kernel", lambda: list(kernel.arguments(5, 1).values()))
    run_pipeline(module, opt_level, 4, hardware=True, observe=check.check)


def test_a_pass_that_changes_the_answer_is_named_with_the_place() -> None:
    module = parse_module(EB_SUM.text)
    check = LevelCheck(module, "kernel", lambda: list(EB_SUM.arguments(5, 1).values()))
    wrong = parse_module(EB_SUM.text.replace("arith.addf", "arith.subf"))
    value = check.expected[4][1, 0]
    with pytest.raises(CheckError) as error:
        check.check("a-pass", wrong)
    assert str(error.value) == (
        f"IR after 'a-pass' must leave {value!r} at (1, 0) of argument 4, as scf does, "
        f"not {-value!r}"
    )
