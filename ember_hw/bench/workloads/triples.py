"""Knowledge graphs UMLS and Kinships, out of the wheel of pykeen 1.11.1; see `demo.wheels`.

Ref: McCray 2003 (UMLS semantic network), Denham 1973 (kinships of the Alyawarra).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ember_hw.bench.programs.graphs import knowledge_graph_of
from ember_hw.bench.workloads.case import Case, Sizes
from ember_hw.demo.wheels import file_of

PACKAGE = "pykeen==1.11.1"
#: SHA-256 of the training triples of each data set.
DIGESTS = {
    "UMLS": "873ef4925516b83e7f6f8cc02b4be51d848828710a7f65a956f0ac4a9e452f35",
    "Kinships": "738612111a6acf0e39662bde24c7e72a4d1edf20931beea077da367dda689731",
}


class Triples(NamedTuple):
    """Triples in the order of their file: numbers of heads, relations and tails, int32 (N,).

    Names are numbered in the order of the alphabet.
    """

    head: NDArray[np.int32]
    relation: NDArray[np.int32]
    tail: NDArray[np.int32]
    entities: int
    relations: int


def parse_triples(text: str) -> Triples:
    r"""Return the triples of a text: lines of head, relation and tail, separated by tabs.

    Examples
    --------
    >>> parse_triples("b\tis\ta\nc\thas\tb\n")[:3]
    (array([1, 2], dtype=int32), array([1, 0], dtype=int32), array([0, 1], dtype=int32))
    """
    heads, names, tails = zip(*(line.split("\t") for line in text.splitlines()), strict=True)
    entities = {name: number for number, name in enumerate(sorted({*heads, *tails}))}
    relations = {name: number for number, name in enumerate(sorted(set(names)))}
    head, tail = (np.array([entities[e] for e in column], np.int32) for column in (heads, tails))
    relation = np.array([relations[name] for name in names], np.int32)
    return Triples(head, relation, tail, len(entities), len(relations))


def load(name: str) -> Triples:
    """Return the training triples of UMLS or Kinships, downloading them on first use.

    Raises
    ------
    ToolError
        pip can't download the package, or the file in it isn't the one this module knows.
    """
    folder = name.lower()
    path = file_of(
        PACKAGE,
        f"pykeen/datasets/{folder}/train.txt",
        sha256=DIGESTS[name],
        folder=f"pykeen-{folder}",
        purpose=f"the triples of {name}",
    )
    return parse_triples(path.read_text())


def transe(name: str, *, seed: int, dim: int, most: int | None = None) -> Case:
    """Return scores of triples by TransE, the rows of entities and relations drawn.

    Parameters
    ----------
    name : str
        UMLS or Kinships.
    seed : int
        Of the rows.
    dim : int
        Elements of a row.
    most : int, optional
        Only the first so many triples.
    """
    known = load(name)
    rng = np.random.default_rng([seed, 43])
    entities, relations = (
        rng.standard_normal((count, dim), np.float32) for count in (known.entities, known.relations)
    )
    head, relation, tail = (column[:most] for column in known[:3])
    task = knowledge_graph_of(head, relation, tail, entities, relations)
    return Case(
        name=f"KG/{name}",
        family="KG",
        kernel="transe",
        rows=task.rows,
        task=task,
        arrays={
            "head": head,
            "relation": relation,
            "tail": tail,
            "entities": entities,
            "relations": relations,
        },
        outputs={"out": (len(head),)},
        values={"N": len(head)},
        sizes=Sizes(lookups=len(head), groups=len(head), dim=dim),
        params={
            "triples": len(head),
            "entities": known.entities,
            "relations": known.relations,
            "row_bytes": 4 * dim,
            "lookups": len(head),
        },
    )
