"""Which block of the source stands behind each part of the hardware, what its streams carry."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from amaranth.hdl import Fragment
from amaranth.lib import data, wiring
from amaranth.lib.wiring import Flow

from ember_hw.config import AcceleratorConfig
from ember_hw.rtl.flat_unit import FlatAccessUnit

_PACKAGE = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class StreamPort:
    """A stream of a block.

    Attributes
    ----------
    name : str
        Of the port; its signals are ``<name>__valid``, ``<name>__ready`` and ``<name>__payload``.
    is_output : bool
        Whether the block drives it.
    fields : mapping of str to (int, int)
        Highest and lowest bit of each part of the payload; empty where it has none.
    """

    name: str
    is_output: bool
    fields: dict[str, tuple[int, int]]


@dataclass(frozen=True)
class Block:
    """A block of the access unit.

    Attributes
    ----------
    path : tuple of str
        Names of the submodules that lead to it; () is the unit with flat ports.
    name, source, purpose : str
        Its class, the file of that below `ember_hw`, and the first line of its documentation.
    streams : tuple of StreamPort
        In the order of its members.
    """

    path: tuple[str, ...]
    name: str
    source: str
    purpose: str
    streams: tuple[StreamPort, ...]


@cache
def blocks(config: AcceleratorConfig) -> tuple[Block, ...]:
    """Return the blocks of an access unit, each before those inside it.

    Examples
    --------
    >>> found = {".".join(block.path): block for block in blocks(AcceleratorConfig())}
    >>> found["unit.datapath.gather"].source
    'rtl/gather_engine.py'
    >>> [stream.name for stream in found["unit.datapath.gather"].streams]
    ['descriptor', 'request', 'row']
    """
    return tuple(_walk(Fragment.get(FlatAccessUnit(config=config), None), ()))


def _walk(fragment: Fragment, path: tuple[str, ...]) -> Iterator[Block]:
    for origin in fragment.origins or ():
        source = Path(inspect.getfile(type(origin))).resolve()
        if isinstance(origin, wiring.Component) and source.is_relative_to(_PACKAGE):
            yield _block(origin, path, str(source.relative_to(_PACKAGE)))
            break
    for inner, name, _ in fragment.subfragments:
        yield from _walk(inner, (*path, name))


def _block(component: wiring.Component, path: tuple[str, ...], source: str) -> Block:
    kind = type(component)
    return Block(
        path=path,
        name=kind.__name__,
        source=source,
        purpose=(inspect.getdoc(kind) or "").partition("\n")[0],
        streams=tuple(_streams(component)),
    )


def _streams(component: wiring.Component) -> Iterator[StreamPort]:
    flat = component.signature.flatten(component)
    ports = {path: (member.flow, value) for path, member, value in flat}
    for path, (flow, payload) in ports.items():
        port = path[:-1]
        if path[-1] == "payload" and {(*port, "valid"), (*port, "ready")} <= ports.keys():
            name = "__".join(map(str, port))
            yield StreamPort(name, flow is Flow.Out, dict(_fields(payload.shape(), "", 0)))


def _fields(shape, prefix: str, offset: int) -> Iterator[tuple[str, tuple[int, int]]]:
    """Yield the fields of a layout, those of inner layouts with dots; nothing of another shape."""
    try:
        layout = data.Layout.cast(shape)
    except TypeError:  # an integer or a choice
        return
    for key, field in layout:
        name = f"{prefix}{key}"
        start = offset + field.offset
        inner = list(_fields(field.shape, f"{name}.", start))
        yield from inner or [(name, (start + field.width - 1, start))]
