"""Execute code as JSON values: an object for each part, its class as `kind`."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, cast

from ember_hw.compiler.backend.execute_code import (
    Carried,
    Case,
    Compute,
    Constant,
    ExecuteCode,
    Extent,
    For,
    GetVariable,
    If,
    Increment,
    Load,
    Memory,
    Merged,
    Pop,
    ReadRow,
    Scalar,
    SetVariable,
    Store,
    Variable,
)
from ember_hw.errors import ProgramError

__all__ = ["decode", "encode"]

_KINDS: dict[str, type] = {
    kind.__name__: kind
    for kind in (
        Memory,
        Variable,
        Constant,
        Extent,
        Scalar,
        Compute,
        Load,
        Store,
        Pop,
        ReadRow,
        GetVariable,
        SetVariable,
        Increment,
        Carried,
        For,
        Merged,
        If,
        Case,
        ExecuteCode,
    )
}


def encode(code: ExecuteCode) -> dict[str, Any]:
    """Return code as JSON values."""
    return cast("dict[str, Any]", _encode(code))


def decode(value: Any) -> ExecuteCode:
    """Return the code that `encode` wrote; ProgramError if it isn't code."""
    decoded = _decode(value)
    if not isinstance(decoded, ExecuteCode):
        raise ProgramError(f"execute code must be an object of kind 'ExecuteCode', not {value!r}")
    return decoded


def _encode(value: Any) -> Any:
    if isinstance(value, float):
        return {"float": value.hex()}  # JSON has neither infinity nor NaN
    if isinstance(value, tuple):
        return [_encode(item) for item in cast("tuple[Any, ...]", value)]
    if type(value).__name__ in _KINDS:
        members = {field.name: _encode(getattr(value, field.name)) for field in fields(value)}
        return {"kind": type(value).__name__, **members}
    return value


def _decode(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(_decode(item) for item in cast("list[Any]", value))
    if not isinstance(value, dict):
        return value
    members = dict(cast("dict[str, Any]", value))
    if set(members) == {"float"}:
        return float.fromhex(members["float"])
    kind = members.pop("kind", None)
    if kind not in _KINDS:
        raise ProgramError(f"kind of execute code must be one of {', '.join(_KINDS)}, not {kind!r}")
    try:
        return _KINDS[kind](**{name: _decode(item) for name, item in members.items()})
    except (AttributeError, TypeError) as error:
        raise ProgramError(f"members of execute code {kind!r} must fit: {error}") from error
