"""What all bindings ask of the inputs of a run: their names, sizes, and where they come from."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from ember_hw.compiler.program import Program
from ember_hw.errors import ProgramError
from ember_hw.host.request import LookupRequest


def named_inputs(
    program: Program,
    inputs: Sequence[Any] | Mapping[str, Any],
    *,
    needed: Sequence[str] = (),
) -> dict[str, Any]:
    """Return the inputs of a run by name.

    Parameters
    ----------
    program : Program
        Says in ``model["input_names"]`` what its inputs are called.
    inputs : sequence or mapping
        The values in the order of the module's arguments, or by their names.
    needed : sequence of str
        What must not be left out.

    Raises
    ------
    ProgramError
        The inputs don't match the program's arguments.
    """
    model: Mapping[str, Any] = program.model
    names: list[str] = list(model["input_names"])
    rule = f"inputs of program {program.name!r} must be ({', '.join(names)})"
    if isinstance(inputs, Mapping):
        given = dict(inputs)
    elif isinstance(inputs, list | tuple):
        if len(inputs) > len(names):
            raise ProgramError(f"{rule}, not {len(inputs)} values")
        given = dict(zip(names, inputs, strict=False))
    else:
        raise ProgramError(f"{rule}, as a tuple or by name, not {type(inputs).__name__}")
    for name in given:
        if name not in names:
            raise ProgramError(f"{rule}, not {name!r}")
    for name in needed:
        if name not in given:
            raise ProgramError(f"{rule}, and {name!r} must not be left out")
    return given


def checked_lookups(inputs: object) -> list[LookupRequest] | None:
    """Return inputs that are lookups which were checked before, None if they are something else."""
    if not isinstance(inputs, list) or not inputs:
        return None
    values = cast("list[object]", inputs)
    lookups = [value for value in values if isinstance(value, LookupRequest)]
    return lookups if len(lookups) == len(values) else None


def check_sizes(limits: Iterable[Any], given: Mapping[str, Any]) -> None:
    """Refuse sizes that an exported program excludes; kinds and ranks are the binding's rules.

    Parameters
    ----------
    limits : iterable of (str, int, int, int or None)
        Input, dimension, smallest and largest size.
    given : mapping of str to object
        The inputs by name.

    Raises
    ------
    ValueError
        A size is one that the program was not exported for.
    """
    for name, dimension, smallest, largest in limits:
        shape: tuple[int, ...] = tuple(getattr(given.get(name), "shape", ()))
        if dimension >= len(shape):
            continue
        size = shape[dimension]
        if size < smallest or (largest is not None and size > largest):
            raise ValueError(
                f"{name}.shape[{dimension}] must be {_size_rule(smallest, largest)}, as the "
                f"program was exported for, not {size}; export it again with Dim.AUTO for this "
                "dimension"
            )


def _size_rule(smallest: int, largest: int | None) -> str:
    from ember_hw.compiler.frontend.embedding_bag import size_rule  # imports xDSL

    return size_rule(smallest, largest)


def is_torch(value: object) -> bool:
    """Whether a value is a torch tensor; never imports torch."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)
