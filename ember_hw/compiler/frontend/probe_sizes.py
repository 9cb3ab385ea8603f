"""The sizes at which a module is tried again, as torch.export sees only some of them.

torch.export starts free sizes at 2, so that a module which branches on fewer would slip through;
and it may take two sizes for one that the example had equal.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import count
from typing import Any, cast

from ember_hw.compiler.frontend.embedding_bag import EmbeddingBagSpec
from ember_hw.compiler.frontend.import_graph import ImportedGraph
from ember_hw.compiler.frontend.operation_spec import Source

__all__ = ["is_same", "probes"]

_FIRST_DISTINCT_SIZE = 211
#: Letters of sizes that torch itself wants to be 1 at least: lookups of a bag in 2-D indices.
_AT_LEAST_ONE = ("L",)
_Letters = dict[tuple[str, int], tuple[str, int]]


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
    names = list(dict.fromkeys(letter for letter, _ in letters.values()))
    distinct = dict(zip(names, count(_FIRST_DISTINCT_SIZE), strict=False))
    for title, sizes in (
        ("sizes of 0", {name: int(name in _AT_LEAST_ONE) for name in names}),
        ("sizes of 1", dict.fromkeys(names, 1)),
        ("other sizes", distinct),
    ):
        yield (
            title,
            {
                name: tuple(
                    sizes[letters[name, dimension][0]] + letters[name, dimension][1]
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
            letter, extra = cast("tuple[str, int]", size) if isinstance(size, tuple) else (size, 0)
            place = source.name, dimension + offset
            if place in found:
                same[letter] = found[place][0]
            else:
                found[place] = letter, extra
        if role in graph.operation.tables:
            found.setdefault((source.name, 0), (f"rows of {source.name}", 0))
    return {place: (same.get(letter, letter), extra) for place, (letter, extra) in found.items()}


def _sources(graph: ImportedGraph) -> Mapping[str, Source]:
    spec = graph.spec
    if not isinstance(spec, EmbeddingBagSpec):
        return spec.sources
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
    if isinstance(spec, EmbeddingBagSpec) or isinstance(found, EmbeddingBagSpec):
        return True
    if "rows" not in spec.facts or spec.facts["rows"] == found.facts["rows"]:
        return True
    wanted = spec.facts["rows"]
    if isinstance(wanted, int):
        return False
    if wanted in spec.weights:
        return found.facts["rows"] == len(spec.weights[wanted][1])
    return found.facts["rows"] in (wanted, other.shapes[spec.sources[wanted].name][0])


def _identity(graph: ImportedGraph) -> tuple[Any, ...]:
    """Return what must be the same at all sizes, but for the number of rows of the result."""
    spec = graph.spec
    if isinstance(spec, EmbeddingBagSpec):
        return tuple(value for key, value in spec.model().items() if key != "size_limits")
    free = ("rows", "columns")
    facts = {name: value for name, value in spec.facts.items() if name not in free}
    names = {role: name for role, (name, _) in spec.weights.items()}
    return graph.operation.kind, facts, dict(spec.sources), names, spec.input_names
