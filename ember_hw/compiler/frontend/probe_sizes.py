"""The sizes at which a module is tried again, as torch.export sees only some of them.

torch.export starts free sizes at 2, so that a module which branches on fewer would slip through;
and it may take two sizes for one that the example had equal.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import count
from string import digits
from typing import Any, cast

from ember_hw.compiler.frontend.embedding_bag import EmbeddingBagSpec
from ember_hw.compiler.frontend.import_graph import ImportedGraph
from ember_hw.compiler.frontend.operation_spec import OperationSpec, Source
from ember_hw.compiler.frontend.tables import TablesSpec

__all__ = ["is_same", "probes"]

_FIRST_DISTINCT_SIZE = 211
#: Letters of sizes that torch itself wants to be 1 at least: lookups of a bag in 2-D indices,
#: blocks of queries and keys, and gathered blocks.
_AT_LEAST_ONE = ("L", "QB", "KB", "NB")
#: Letter, what is added to it, and what it is multiplied by before, by input and dimension.
_Letters = dict[tuple[str, int], tuple[str, int, int]]


def probes(
    graph: ImportedGraph, examples: Mapping[str, tuple[int, ...]]
) -> Iterator[tuple[str, dict[str, tuple[int, ...]]]]:
    """Give the shapes to try, each with what to call it.

    Parameters
    ----------
    graph : ImportedGraph
        The module as it was found at first.
    examples : mapping of str to tuple of int
        The shapes of the user's examples, for the sizes that the operation says nothing about.

    Yields
    ------
    (str, dict of str to tuple of int)
        Name, like "sizes of 0", and the shape of each input.
    """
    letters = _letters(graph)
    for name, dimension, smallest, largest in graph.spec.size_limits:
        if smallest == largest:
            letters.pop((name, dimension), None)
    names = list(dict.fromkeys(letter for letter, *_ in letters.values()))
    distinct = dict(zip(names, count(_FIRST_DISTINCT_SIZE), strict=False))
    for title, sizes in (
        ("sizes of 0", {name: int(name.rstrip(digits) in _AT_LEAST_ONE) for name in names}),
        ("sizes of 1", dict.fromkeys(names, 1)),
        ("other sizes", distinct),
    ):
        yield (
            title,
            {
                name: tuple(
                    _size(sizes, *letters[name, dimension])
                    if (name, dimension) in letters
                    else size
                    for dimension, size in enumerate(shape)
                )
                for name, shape in examples.items()
            },
        )


def _letters(graph: ImportedGraph) -> _Letters:
    """Return the letter of each free size of the inputs, and what is added to it."""
    found: _Letters = {}
    same: dict[str, str] = {}
    for role, source in _sources(graph).items():
        offset = 0 if source.row is None else 1
        for dimension, size in enumerate(graph.operation.sizes.get(role, ())):
            if size is None:
                continue
            given = cast("tuple[Any, ...]", size) if isinstance(size, tuple) else (str(size), 0)
            letter, extra, factor = cast("tuple[str, int, int]", (*given, 1)[:3])
            place = source.name, dimension + offset
            if place in found:
                same[letter] = found[place][0]
            else:
                found[place] = letter, extra, factor
        if role in graph.operation.tables:
            found.setdefault((source.name, 0), (f"rows of {source.name}", 0, 1))
    return {
        place: (same.get(letter, letter), extra, factor)
        for place, (letter, extra, factor) in found.items()
    }


def _size(sizes: Mapping[str, int], letter: str, extra: int, factor: int) -> int:
    return sizes[letter] * factor + extra


def _sources(graph: ImportedGraph) -> Mapping[str, Source]:
    spec = graph.spec
    if isinstance(spec, EmbeddingBagSpec):
        return _sources_of_bag(spec)
    if isinstance(spec, TablesSpec):
        return {
            f"{number}.{role}": source
            for number, bag in enumerate(spec.bags)
            for role, source in _sources_of_bag(bag).items()
        }
    return spec.sources


def _sources_of_bag(spec: EmbeddingBagSpec) -> dict[str, Source]:
    names = {
        "indices": spec.indices_name,
        "offsets": spec.offsets_name,
        "per_sample_weights": spec.weights_name,
    }
    return {role: Source(name) for role, name in names.items() if name is not None}


def is_same(graph: ImportedGraph, other: ImportedGraph) -> bool:
    """Tell whether a module is at fixed sizes what it was at free ones.

    Parameters
    ----------
    graph : ImportedGraph
        At free sizes.
    other : ImportedGraph
        At fixed sizes.
    """
    if _identity(graph) != _identity(other):
        return False
    spec, found = graph.spec, other.spec
    if not isinstance(spec, OperationSpec) or not isinstance(found, OperationSpec):
        return True
    if "rows" not in spec.facts or spec.facts["rows"] == found.facts["rows"]:
        return True
    wanted = spec.facts["rows"]
    if isinstance(wanted, int):
        return False
    if wanted in spec.weights:
        return found.facts["rows"] == spec.weights[wanted][1].shape[0]
    return found.facts["rows"] in (wanted, other.shapes[spec.sources[wanted].name][0])


def _identity(graph: ImportedGraph) -> tuple[Any, ...]:
    """Return what must be the same at all sizes, but for the number of rows of the result."""
    spec = graph.spec
    if not isinstance(spec, OperationSpec):
        return tuple(value for key, value in spec.model().items() if key != "size_limits")
    free = ("rows", "columns")
    facts = {name: value for name, value in spec.facts.items() if name not in free}
    names = {role: name for role, (name, _) in spec.weights.items()}
    return graph.operation.kind, facts, dict(spec.sources), names, spec.input_names
