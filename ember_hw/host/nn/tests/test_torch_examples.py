# pyright: basic
"""torch's own documented examples, with only the import changed."""

from __future__ import annotations

import codeop
import doctest
import inspect
import re

import pytest
import torch
import torch.nn.functional

import ember_hw.nn
import ember_hw.nn.functional
from ember_hw.errors import UnsupportedError

DOCUMENTED = {
    "Embedding": torch.nn.Embedding,
    "Embedding.from_pretrained": torch.nn.Embedding.from_pretrained,
    "EmbeddingBag": torch.nn.EmbeddingBag,
    "EmbeddingBag.from_pretrained": torch.nn.EmbeddingBag.from_pretrained,
    "functional.embedding": torch.nn.functional.embedding,
    "functional.embedding_bag": torch.nn.functional.embedding_bag,
}


def sources(text: str) -> list[str]:
    """Return the statements of the examples in a docstring."""
    found = []
    for example in doctest.DocTestParser().get_examples(inspect.cleandoc(text)):
        source = example.source
        if codeop.compile_command(source.rstrip("\n")) is None and source.endswith("(\n"):
            source += example.want  # torch has a call whose further lines have no prompt
        found.append(source)
    return found


def values(text: str, nn, functional) -> list[torch.Tensor]:
    """Run the examples and return the tensors that they show, and those that have names."""
    torch.manual_seed(0)
    names = {"torch": torch, "nn": nn, "F": functional}
    shown = []
    for source in sources(text):
        try:
            expression = compile(source, "example", "eval")
        except SyntaxError:
            exec(compile(source, "example", "exec"), names)
        else:
            shown.append(eval(expression, names))
    shown += [names[name] for name in sorted(names) if isinstance(names[name], torch.Tensor)]
    return [value.detach() for value in shown]


@pytest.mark.parametrize("name", DOCUMENTED)
def test_documented_example_gives_torch_s_values(device, counting, name):
    text = DOCUMENTED[name].__doc__
    found = values(text, ember_hw.nn, ember_hw.nn.functional)
    wanted = values(text, torch.nn, torch.nn.functional)
    assert len(found) == len(wanted) > 1
    for one, other in zip(found, wanted, strict=True):
        torch.testing.assert_close(one, other)
    assert counting.launches >= 1


@pytest.mark.parametrize("kind", ["Embedding"])
def test_documented_example_of_max_norm_is_refused_with_the_remedy(device, counting, kind):
    text = inspect.cleandoc(DOCUMENTED[kind].__doc__)
    example = re.search(r"For example::\n\n((?: +.*\n|\n)+)", text)
    assert example is not None
    source = inspect.cleandoc(example[1])
    exec(source, {"torch": torch, "nn": torch.nn})
    message = (
        "max_norm must be None, not 1.0; renormalise the table once before it is loaded: "
        "weight.data.renorm_(2.0, 0, 1.0)"
    )
    with pytest.raises(UnsupportedError, match=f"^{re.escape(message)}$"):
        exec(source, {"torch": torch, "nn": ember_hw.nn})
    assert counting.launches == 0
