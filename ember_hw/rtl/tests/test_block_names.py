from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

import ember_hw
from ember_hw.config import AcceleratorConfig
from ember_hw.rtl.block_names import Block, blocks

pytestmark = pytest.mark.rtl


@pytest.fixture(scope="module")
def found() -> dict[str, Block]:
    config = AcceleratorConfig.preset("tiny")
    return {".".join(block.path): block for block in blocks(config)}


def test_every_block_has_its_source_and_what_it_is_for(found: dict[str, Block]) -> None:
    (package,) = ember_hw.__path__
    for block in found.values():
        assert f"class {block.name}(" in Path(package, block.source).read_text()
        assert block.purpose
    assert {"", "unit", "unit.datapath.unit2", "unit.ports.port0"} <= found.keys()


def test_blocks_come_before_those_inside_them(found: dict[str, Block]) -> None:
    names = list(found)
    assert all(names.index(name.rpartition(".")[0]) < n for n, name in enumerate(names) if name)


def test_stream_has_direction_and_fields(found: dict[str, Block]) -> None:
    ports = {stream.name: stream for stream in found["unit"].streams}
    assert list(ports) == ["bundle", "row"]
    assert ports["row"].is_output
    assert ports["row"].fields == {"data": (63, 0), "bytes": (67, 64), "last": (68, 68)}
    into = {stream.name: stream.is_output for stream in found["unit.datapath.gather"].streams}
    assert into == {"descriptor": False, "request": True, "row": True}


def test_inner_layouts_have_dots(found: dict[str, Block]) -> None:
    (parent,) = (s for s in found["unit.datapath.unit0"].streams if s.name == "parent")
    assert any("." in name for name in parent.fields)
    bits = sorted(parent.fields.values(), key=lambda field: field[1])
    assert all(below[0] < above[1] for below, above in pairwise(bits))


def test_payload_that_is_a_number_has_no_fields(found: dict[str, Block]) -> None:
    assert any(not s.fields for block in found.values() for s in block.streams)
