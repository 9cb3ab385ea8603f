# pyright: reportUnknownMemberType=false
# Not all types of torch are known.
"""Many embedding bags as one module, and one run of one program where the device has room."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self, cast

import torch

from ember_hw.compiler.quantized_rows import QuantizedTable
from ember_hw.errors import EmberError
from ember_hw.host.device import Device
from ember_hw.host.nn.devices import chosen_device, split_device
from ember_hw.host.nn.features import Feature, KeyedRows, read_features
from ember_hw.host.nn.functional import checked_bag
from ember_hw.host.nn.gradients import BagGradient, needs_gradient, pooled_with_gradient
from ember_hw.host.nn.graphs import outside_graphs
from ember_hw.host.nn.lookups import BagCall, Lookups, check_weight
from ember_hw.host.nn.modules import EmbeddingBag, options_of
from ember_hw.host.nn.quantized import QuantizedEmbeddingBag
from ember_hw.host.nn.table_config import Bag, TableConfig, data_type_of, named, stored_as

__all__ = ["EmbeddingBagCollection", "Group", "TableConfig"]

Tensor = torch.Tensor


@dataclass(frozen=True)
class Group:
    """Bags of one kind.

    Attributes
    ----------
    names : tuple of str
        Of the pooled rows.
    reason : str or None
        Why they run one by one; None if one program runs them.
    """

    names: tuple[str, ...]
    reason: str | None = None

    def __str__(self) -> str:
        names = ", ".join(self.names)
        if self.reason is None:
            return f"one program: {names}"
        return f"one by one: {names}: {self.reason}"


class EmbeddingBagCollection(torch.nn.Module):
    """Several embedding bags: ``rows[f][b] = pooled rows of feature f's bag b in its table``.

    The interface is that of TorchRec's `EmbeddingBagCollection`; so are the names of parameters,
    ``embedding_bags.<name>.weight``.

    Parameters
    ----------
    tables : sequence of TableConfig, or of TorchRec's EmbeddingBagConfig
        The tables.
    is_weighted : bool
        Whether lookups have weights.
    device : Device, torch.device, str or None
        As of `EmbeddingBag`.
    opt_level : int
        0 to 3; 2 and 3 can run many bags in one program.
    output_dtype : torch.dtype, optional
        float32, float16 or bfloat16: of all pooled rows; by default each table's own, float32 of a
        quantised one.

    Attributes
    ----------
    embedding_bags : ModuleDict of EmbeddingBag and QuantizedEmbeddingBag
        By name of the table.
    groups : tuple of Group
        What the latest call ran in one program, and what not.

    Raises
    ------
    ValueError
        Two tables have one name, or an option is no legal value.

    Examples
    --------
    >>> import torch
    >>> bags = EmbeddingBagCollection([
    ...     TableConfig(name="user", num_embeddings=9, embedding_dim=4, feature_names=["u"]),
    ...     TableConfig(name="item", num_embeddings=99, embedding_dim=8, feature_names=["i", "j"]),
    ... ])
    >>> indices, offsets = torch.tensor([1, 2, 4]), torch.tensor([0, 2])
    >>> rows = bags({"u": (indices, offsets), "i": (indices, offsets), "j": indices[None, :2].T})
    >>> rows.keys(), rows.values().shape
    (['u', 'i', 'j'], torch.Size([2, 20]))
    >>> print(*bags.groups)
    one program: u, i, j
    """

    def __init__(
        self,
        tables: Sequence[Any],
        is_weighted: bool = False,
        device: Any = None,
        *,
        opt_level: int = 3,
        output_dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        accelerator, _ = split_device(device)
        self.embedding_bags = torch.nn.ModuleDict()
        self._features: dict[str, tuple[str, ...]] = {}
        for table in tables:
            name = str(table.name)
            stored = stored_as(table)
            bag: Bag = EmbeddingBag(
                table.num_embeddings,
                table.embedding_dim,
                mode=named(table.pooling),
                include_last_offset=getattr(table, "include_last_offset", False),
                padding_idx=getattr(table, "padding_idx", None),
                sparse=getattr(table, "sparse", False),
                device=device,
                dtype=stored if isinstance(stored, torch.dtype) else None,
                opt_level=opt_level,
                output_dtype=output_dtype,
            )
            if isinstance(stored, str):
                bag = QuantizedEmbeddingBag.from_torch(
                    bag,
                    stored,
                    output_dtype=output_dtype or torch.float32,
                    device=accelerator,
                    opt_level=opt_level,
                )
            self._add(name, bag, table.feature_names)
        self._finish(is_weighted, accelerator, opt_level)

    def _add(self, name: str, bag: Bag, features: Sequence[str]) -> None:
        if name in self._features:
            raise ValueError(f"names of tables must be distinct, and {name!r} stands twice")
        self.embedding_bags[name] = bag
        self._features[name] = tuple(features)

    def _finish(self, is_weighted: bool, accelerator: Device | None, opt_level: int) -> None:
        self._is_weighted = is_weighted
        self._lookups = Lookups(accelerator, opt_level)
        self.groups: tuple[Group, ...] = ()

    @classmethod
    def from_torch(
        cls,
        module: Any,
        *,
        device: Device | str | None = None,
        opt_level: int = 3,
        tables: Mapping[str, str | QuantizedTable] | None = None,
        output_dtype: torch.dtype | None = None,
    ) -> Self:
        """Return a collection that shares the tables of another one.

        Parameters
        ----------
        module : mapping of str to torch.nn.EmbeddingBag, or TorchRec's EmbeddingBagCollection
            Of a mapping, like a ModuleDict, each key names a table and its one feature; its bags
            may be `QuantizedEmbeddingBag`, too.
        device : Device, str or None
            Computes the lookups: a device, a backend by name, or the default device.
        opt_level : int
            0 to 3.
        tables : mapping of str to str or QuantizedTable, optional
            Quantised tables for some of the module's, by name: "int8" or "int4" packs the bag's own
            as `ember_hw.quantize` does, a `QuantizedTable` stands for it.
        output_dtype : torch.dtype, optional
            As of the class.

        Raises
        ------
        TypeError, ValueError, UnsupportedError
            It is something else, a bag is one that `EmbeddingBag.from_torch` refuses, or `tables`
            names none of its tables.
        """
        accelerator = chosen_device(device)
        bags: Any = getattr(module, "embedding_bags", module)
        if not isinstance(bags, Mapping | torch.nn.ModuleDict):
            raise TypeError(
                "module must be a mapping of EmbeddingBags or have one as embedding_bags, not "
                f"{type(module).__name__}"
            )
        features = {str(name): (str(name),) for name in cast("Mapping[str, Any]", bags)}
        is_weighted = False
        if bags is not module:
            features = {
                config.name: tuple(config.feature_names)
                for config in module.embedding_bag_configs()
            }
            is_weighted = bool(module.is_weighted())
        packed = dict(tables or {})
        for name in packed:
            if name not in features:
                raise ValueError(
                    f"name in tables must be one of {', '.join(features)}, not {name!r}"
                )
        made = cls((), device=accelerator, opt_level=opt_level)
        for name, bag in cast("Mapping[str, Any]", bags).items():
            own: Bag
            if name in packed:
                own = QuantizedEmbeddingBag.from_torch(
                    bag,
                    packed[name],
                    output_dtype=output_dtype or torch.float32,
                    device=accelerator,
                    opt_level=opt_level,
                )
            elif isinstance(bag, QuantizedEmbeddingBag):
                own = QuantizedEmbeddingBag(
                    bag.table,
                    bag.mode,
                    bag.include_last_offset,
                    bag.padding_idx,
                    output_dtype=output_dtype or bag.output_dtype,
                    device=accelerator,
                    opt_level=opt_level,
                )
            else:
                own = EmbeddingBag.from_torch(
                    bag, device=accelerator, opt_level=opt_level, output_dtype=output_dtype
                )
            made._add(name, own, features[name])
        made._finish(is_weighted, accelerator, opt_level)
        return made

    @property
    def accelerator(self) -> Device:
        """The device that computes the lookups; its `report` tells of the latest run."""
        return self._lookups.device

    def embedding_bag_configs(self) -> list[TableConfig]:
        """Return what each table is."""
        return [
            TableConfig(
                num_embeddings=bag.num_embeddings,
                embedding_dim=bag.embedding_dim,
                name=name,
                feature_names=self._features[name],
                pooling=bag.mode,
                include_last_offset=bag.include_last_offset,
                padding_idx=bag.padding_idx,
                sparse=isinstance(bag, EmbeddingBag) and bag.sparse,
                data_type=data_type_of(bag),
            )
            for name, bag in self._bags().items()
        ]

    def is_weighted(self) -> bool:
        """Whether lookups have weights."""
        return self._is_weighted

    def forward(self, features: Any) -> KeyedRows:
        """Pool the rows of each feature in its table.

        Parameters
        ----------
        features : mapping or KeyedJaggedTensor
            By name (indices, offsets), (indices, offsets, per_sample_weights), 2-D indices or a
            nested tensor; or a KeyedJaggedTensor. Others than those of the tables have no effect.

        Returns
        -------
        KeyedRows
            By feature; a feature that looks up in several tables is called ``feature@table``.

        Raises
        ------
        TypeError, ValueError, IndexError, NotImplementedError
            A feature breaks a rule; the device wasn't touched. Messages name the table.
        """
        return self._look_up(features)

    @outside_graphs
    def _look_up(self, features: Any) -> KeyedRows:
        pairs = [(f, name) for name, own in self._features.items() for f in own]
        names = [feature for feature, _ in pairs]
        given = read_features(features, names, is_weighted=self._is_weighted)
        checked = {
            feature if names.count(feature) == 1 else f"{feature}@{table}": self._checked(
                given[feature], table
            )
            for feature, table in pairs
        }
        counts = {name: gradient.call.lookup.num_bags for name, gradient in checked.items()}
        if len(set(counts.values())) > 1:
            told = ", ".join(f"{name!r} {count}" for name, count in counts.items())
            raise ValueError(f"features must have the same number of bags, not {told}")
        calls = {name: gradient.call for name, gradient in checked.items()}
        tensors = [g.call.weight for g in checked.values()]
        scales = [g.per_sample_weights for g in checked.values()]
        if needs_gradient(*tensors, *scales):
            rows = pooled_with_gradient(lambda: self._pool(calls), list(checked.values()))
        else:
            rows = self._pool(calls)
        return KeyedRows(dict(zip(calls, rows, strict=True)))

    def _bags(self) -> dict[str, Bag]:
        return cast("dict[str, Bag]", dict(self.embedding_bags.items()))

    def _checked(self, feature: Feature, table: str) -> BagGradient:
        bag = self._bags()[table]
        if isinstance(bag, QuantizedEmbeddingBag):
            weight, options = bag.table, bag.options(table)
        else:
            weight, options = bag.weight, options_of(bag, table)
            check_weight(weight, table)
        if feature.ends_with_last is not None:
            options = replace(options, include_last_offset=feature.ends_with_last)
        return checked_bag(
            options, feature.indices, weight, feature.offsets, feature.per_sample_weights
        )

    def _pool(self, calls: Mapping[str, BagCall]) -> list[Tensor]:
        """Return the pooled rows of each call; those of one kind by one program if that fits."""
        kinds: dict[tuple[Any, ...], list[str]] = {}
        for name, call in calls.items():
            kinds.setdefault(call.shape_class, []).append(name)
        rows: dict[str, Tensor] = {}
        groups: list[Group] = []
        for kind, names in kinds.items():
            reason = None
            if len(names) > 1:
                reason = self._together(kind, {name: calls[name] for name in names}, rows)
            for name in names:
                if name not in rows:
                    rows[name] = self._lookups.pool(calls[name])
            groups.append(Group(tuple(names), reason))
        self.groups = tuple(groups)
        return [rows[name] for name in calls]

    def _together(
        self, kind: tuple[Any, ...], calls: Mapping[str, BagCall], rows: dict[str, Tensor]
    ) -> str | None:
        """Pool with one program and add the rows, or say why not."""
        device = self.accelerator
        key = device, *kind, *calls
        if key not in self._lookups.refused:
            try:
                program = self._lookups.program_together(list(calls.values()))
            except EmberError as error:
                self._lookups.refused[key] = str(error)
                warnings.warn(
                    f"{len(calls)} bags run one by one, as one program for them doesn't fit the "
                    f"device: {error}; AcceleratorConfig.preset('tables') at opt_level 2 or 3 is "
                    "made for them",
                    stacklevel=2,
                )
            else:
                results = self._lookups.run_together(program, list(calls.values()))
                rows.update(zip(calls, results, strict=True))
        return self._lookups.refused.get(key)
