# pyright: basic
"""The operators in eager torch: their values, gradients and shapes."""

from __future__ import annotations

import pytest
import torch

from ember_hw.compiler.frontend import torch_ops

CROW = torch.tensor([0, 2, 2, 5])
COL = torch.tensor([3, 0, 1, 1, 2])


def _matrix() -> tuple[torch.Tensor, torch.Tensor]:
    torch.manual_seed(0)
    return torch.randn(5, requires_grad=True), torch.randn(4, 3, requires_grad=True)


def test_spmm_is_a_sparse_product_with_its_gradients():
    values, dense = _matrix()
    sparse = torch.zeros(3, 4)
    for row in range(3):
        for entry in range(CROW[row], CROW[row + 1]):
            column = torch.nn.functional.one_hot(COL[entry], 4)
            sparse = sparse + values[entry] * torch.outer(
                torch.nn.functional.one_hot(torch.tensor(row), 3), column
            )
    expected = sparse @ dense
    found = torch_ops.spmm(CROW, COL, values, dense)
    torch.testing.assert_close(found, expected)
    grad = torch.randn(3, 3)
    torch.testing.assert_close(
        torch.autograd.grad(found, (values, dense), grad),
        torch.autograd.grad(expected, (values, dense), grad),
    )


@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning")
def test_operators_are_what_torch_expects_of_them():
    values, dense = _matrix()
    torch.library.opcheck(torch_ops.spmm, (CROW, COL, values, dense))
    plain = dense.detach()
    torch.library.opcheck(torch_ops.fusedmm, (CROW, COL, plain[:3].clone(), plain, "sigmoid"))
    blocks = torch.tensor([[0, 1], [1, 1]])
    torch.library.opcheck(
        torch_ops.block_attention, (plain, plain.clone(), plain.clone(), blocks, 2, 0.5)
    )


def test_other_nonlinearities_are_refused():
    _, dense = _matrix()
    rule = "^nonlinearity must be one of identity, sigmoid, relu, exp, not 'tanh'$"
    with pytest.raises(ValueError, match=rule):
        torch_ops.fusedmm(CROW, COL, dense[:3].detach(), dense.detach(), "tanh")
