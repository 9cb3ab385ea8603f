# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false
# Not all types of torch are known.
"""Drop-in modules for `torch.nn.Embedding` and `torch.nn.EmbeddingBag`.

They are torch's modules with another forward: parameters, attributes, initialisation, `state_dict`
and `from_pretrained` are torch's own.
"""

from __future__ import annotations

from typing import Any, ClassVar, Self

import torch

from ember_hw.compiler.frontend.row_types import output_name
from ember_hw.host.device import Device
from ember_hw.host.nn.devices import chosen_device, split_device
from ember_hw.host.nn.functional import BagOptions, refuse_max_norm, run_bag, run_rows
from ember_hw.host.nn.graphs import outside_graphs, torch_forward
from ember_hw.host.nn.lookups import Lookups, check_weight
from ember_hw.host.request import check_mode, padding_row

__all__ = ["Embedding", "EmbeddingBag", "OnDevice"]

Tensor = torch.Tensor


class OnDevice(torch.nn.Module):
    """A module whose lookups run on a device."""

    _lookups: Lookups

    @property
    def accelerator(self) -> Device:
        """The device that computes the lookups; its `report` tells of the latest run."""
        return self._lookups.device

    def reload(self, rows: Tensor | None = None) -> None:
        """Tell the device that the table was changed, and which rows of it; see `Device.reload`.

        Nothing depends on it: a call never uses values that are out of date. A device with a memory
        of its own gets along with fewer bytes, where rows changed that no call has looked up.

        Parameters
        ----------
        rows : int32 or int64 (N,), optional
            The rows; all of them if absent.

        Raises
        ------
        TypeError, IndexError
            They are no integers, or no rows of the table.
        """
        self._lookups.reload(rows)


class _DropIn(OnDevice):
    """What both modules have: a way from torch's own."""

    _theirs: ClassVar[type[torch.nn.Module]]
    _output_dtype: torch.dtype | None

    @classmethod
    def from_torch(
        cls,
        module: torch.nn.Module,
        *,
        device: Device | str | None = None,
        opt_level: int = 3,
        output_dtype: torch.dtype | None = None,
    ) -> Self:
        """Return a module that shares the table of torch's.

        Parameters
        ----------
        module : torch.nn.Embedding or torch.nn.EmbeddingBag
            Of the class that this one stands for. Its parameter becomes this module's, too.
        device : Device, str or None
            Computes the lookups: a device, a backend by name, or the default device.
        opt_level : int
            0 to 3.
        output_dtype : torch.dtype, optional
            As of the constructor; by default that of the module, if it is a drop-in module.

        Raises
        ------
        TypeError
            It is another kind of module.
        ValueError
            It has hooks, or an option that is no legal value.
        UnsupportedError
            It has a `max_norm`.
        """
        check_source(module, cls._theirs, cls)
        made = cls.__new__(cls)
        torch.nn.Module.__init__(made)
        made.weight = module.weight
        facts = {name: value for name, value in vars(module).items() if name not in vars(made)}
        vars(made).update(facts)
        own: torch.dtype | None = facts.get("_output_dtype")
        made._finish(chosen_device(device), opt_level, output_dtype or own)
        return made.train(module.training)

    def _finish(
        self, accelerator: Device | None, opt_level: int, output_dtype: torch.dtype | None
    ) -> None:
        """Check the options of torch's module, and add what is this one's own."""
        facts: Any = self
        refuse_max_norm(facts.max_norm, facts.norm_type)
        padding_row(facts.padding_idx, facts.num_embeddings, "weight")
        if isinstance(self, torch.nn.EmbeddingBag):
            check_mode(facts.mode, "weight")
        if output_dtype is not None:
            output_name(output_dtype)  # legal
        self._lookups = Lookups(accelerator, opt_level)
        self._output_dtype = output_dtype


class Embedding(_DropIn, torch.nn.Embedding):
    """`torch.nn.Embedding` whose rows are looked up on a device.

    Parameters
    ----------
    num_embeddings, embedding_dim, padding_idx, norm_type, scale_grad_by_freq, sparse, dtype
        As of `torch.nn.Embedding`.
    max_norm : None
        Refused otherwise, with the remedy.
    device : Device, torch.device, str or None
        A `Device` computes the lookups, the default device if it is none
        (`ember_hw.nn.default_device`); anything else says where torch keeps the table.
    opt_level : int
        0 to 3, of the program.
    output_dtype : torch.dtype, optional
        float32, float16 or bfloat16: of the rows that come back; by default the table's.

    Raises
    ------
    UnsupportedError
        There is a `max_norm`.
    ValueError
        `padding_idx` is no row, or `opt_level` no level.

    Examples
    --------
    >>> import torch
    >>> rows = Embedding(10, 3)
    >>> rows(torch.tensor([[1, 2, 4, 5], [4, 3, 2, 9]])).shape
    torch.Size([2, 4, 3])
    """

    _theirs = torch.nn.Embedding

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
        _weight: Tensor | None = None,
        _freeze: bool = False,
        device: Any = None,
        dtype: torch.dtype | None = None,
        *,
        opt_level: int = 3,
        output_dtype: torch.dtype | None = None,
    ) -> None:
        refuse_max_norm(max_norm, norm_type)
        padding_row(padding_idx, num_embeddings, "weight")
        accelerator, place = split_device(device)
        super().__init__(
            num_embeddings,
            embedding_dim,
            padding_idx,
            max_norm,
            norm_type,
            scale_grad_by_freq,
            sparse,
            _weight,
            _freeze,
            place,
            dtype,
        )
        self._finish(accelerator, opt_level, output_dtype)

    def forward(self, input: Tensor) -> Tensor:
        """Look up rows; see `ember_hw.nn.functional.embedding`."""
        if torch.compiler.is_exporting():  # what is exported is compiled later, by whoever wants
            return torch_forward(torch.nn.Embedding, self, input)
        return self._look_up(input)

    @outside_graphs
    def _look_up(self, input: Tensor) -> Tensor:
        refuse_max_norm(self.max_norm, self.norm_type)
        check_weight(self.weight, "weight")
        return run_rows(
            self._lookups,
            input,
            self.weight,
            self.padding_idx,
            self.scale_grad_by_freq,
            self.sparse,
            output_dtype=self._output_dtype,
        )


class EmbeddingBag(_DropIn, torch.nn.EmbeddingBag):
    """`torch.nn.EmbeddingBag` whose rows are pooled on a device.

    Parameters
    ----------
    num_embeddings, embedding_dim, norm_type, scale_grad_by_freq, mode, sparse, dtype
        As of `torch.nn.EmbeddingBag`.
    include_last_offset, padding_idx
        As of `torch.nn.EmbeddingBag`.
    max_norm : None
        Refused otherwise, with the remedy.
    device : Device, torch.device, str or None
        A `Device` computes the lookups, the default device if it is none
        (`ember_hw.nn.default_device`); anything else says where torch keeps the table.
    opt_level : int
        0 to 3, of the program.
    output_dtype : torch.dtype, optional
        float32, float16 or bfloat16: of the rows that come back; by default the table's.

    Raises
    ------
    UnsupportedError
        There is a `max_norm`.
    ValueError
        `mode`, `padding_idx` or `opt_level` is no legal value.

    Examples
    --------
    >>> import torch
    >>> bag = EmbeddingBag(10, 3, mode="sum")
    >>> bag(torch.tensor([1, 2, 4, 5, 4, 3, 2, 9]), torch.tensor([0, 4])).shape
    torch.Size([2, 3])
    """

    _theirs = torch.nn.EmbeddingBag

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        sparse: bool = False,
        _weight: Tensor | None = None,
        include_last_offset: bool = False,
        padding_idx: int | None = None,
        device: Any = None,
        dtype: torch.dtype | None = None,
        *,
        opt_level: int = 3,
        output_dtype: torch.dtype | None = None,
    ) -> None:
        refuse_max_norm(max_norm, norm_type)
        check_mode(mode, "weight")
        padding_row(padding_idx, num_embeddings, "weight")
        accelerator, place = split_device(device)
        super().__init__(
            num_embeddings,
            embedding_dim,
            max_norm,
            norm_type,
            scale_grad_by_freq,
            mode,
            sparse,
            _weight,
            include_last_offset,
            padding_idx,
            place,
            dtype,
        )
        self._finish(accelerator, opt_level, output_dtype)

    def forward(
        self,
        input: Tensor,
        offsets: Tensor | None = None,
        per_sample_weights: Tensor | None = None,
    ) -> Tensor:
        """Pool rows; see `ember_hw.nn.functional.embedding_bag`."""
        if torch.compiler.is_exporting():  # what is exported is compiled later, by whoever wants
            return torch_forward(torch.nn.EmbeddingBag, self, input, offsets, per_sample_weights)
        return self._pool(input, offsets, per_sample_weights)

    @outside_graphs
    def _pool(
        self, input: Tensor, offsets: Tensor | None, per_sample_weights: Tensor | None
    ) -> Tensor:
        check_weight(self.weight, "weight")
        return run_bag(
            self._lookups, options_of(self), input, self.weight, offsets, per_sample_weights
        )


def options_of(bag: torch.nn.EmbeddingBag, name: str = "weight") -> BagOptions:
    """Return what a module is, besides its table, as its attributes say now."""
    return BagOptions(
        bag.mode,
        bag.include_last_offset,
        bag.padding_idx,
        bag.scale_grad_by_freq,
        bag.sparse,
        bag.max_norm,
        bag.norm_type,
        name,
        getattr(bag, "_output_dtype", None),
    )


def check_source(
    module: object, kind: type[torch.nn.Module], drop_in: type[torch.nn.Module]
) -> None:
    """Refuse a module that the drop-in module wouldn't do the same as.

    Raises
    ------
    TypeError
        It is of another class, which may have another forward.
    ValueError
        It has hooks, which would be lost.
    """
    if type(module) not in (kind, drop_in):
        raise TypeError(
            f"module must be a torch.nn.{kind.__name__} itself, not {type(module).__name__}"
        )
    facts = vars(module)
    for hooks in ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks"):
        if facts[hooks]:
            raise ValueError(
                f"module must have no hooks, and has {hooks.strip('_').replace('_', ' ')}; "
                "register them on the result of from_torch"
            )
