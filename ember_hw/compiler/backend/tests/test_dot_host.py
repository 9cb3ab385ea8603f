# pyright: basic
"""What is left to the host where the reduce unit sums across rows, and where that can't be."""

from __future__ import annotations

import pytest

from ember_hw.compiler.backend import reduce_split
from ember_hw.compiler.backend.exports import LimitError
from ember_hw.compiler.backend.tests.dot_functions import NORM, nest_of, triples


def test_the_hosts_part_reads_sums() -> None:
    after = "%s = math.sqrt %q : TYPE\n    memref.store %s, %out[%k] : !V"
    nest = nest_of(triples(NORM, after=after))
    assert nest.fabric is not None
    text = str(nest.fabric.host.code)
    assert "q : f32 = read row[c0]" in text
    assert text.count("pop") == 1
    assert text.index("read row") < text.index("sqrt q") < text.index("store s to out[k]")


def test_a_walk_that_does_not_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise LimitError("au: 9 scalars", "bundle_scalars")

    monkeypatch.setattr(reduce_split, "dot_host", refuse)
    assert nest_of(triples(NORM)).reason == "the host's part doesn't fit its walk: au: 9 scalars"


def test_a_length_that_is_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reduce_split, "_length_scalar", lambda *_: 1)
    assert nest_of(triples(NORM)).reason == (
        "the length of its rows is loaded, and the unit sums across rows of one"
    )
