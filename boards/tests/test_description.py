from __future__ import annotations

import json
import re
import zlib
from dataclasses import replace

import pytest

from ember_hw.boards.description import BoardDescription
from ember_hw.boards.links.frame import DESCRIPTION_HEAD, DESCRIPTION_HEAD_BYTES, MAGIC, unpack
from ember_hw.config import AcceleratorConfig

BOARD = BoardDescription(
    board="test",
    config=AcceleratorConfig.preset("small"),
    gateware_id=0x01020304,
    clock_hz=50_000_000,
    memory_base=0,
    memory_bytes=1 << 25,
    memory="SDRAM",
)


def test_a_description_comes_back() -> None:
    content = BOARD.to_bytes()
    head, text = content[:DESCRIPTION_HEAD_BYTES], content[DESCRIPTION_HEAD_BYTES:]
    assert head.startswith(MAGIC)
    fields = unpack(DESCRIPTION_HEAD, head)
    assert (fields["version"], fields["beat_bytes"], fields["length"]) == (2, 16, len(text))
    assert fields["description_crc"] == zlib.crc32(text)
    assert BoardDescription.from_json(text, fields["gateware_id"]) == BOARD


def test_what_a_later_version_says_besides_is_left_out() -> None:
    values = json.loads(BOARD.to_bytes()[DESCRIPTION_HEAD_BYTES:]) | {"colour": "green"}
    found = BoardDescription.from_json(json.dumps(values).encode(), BOARD.gateware_id)
    assert found == BOARD


def test_proof_is_one_that_is_known() -> None:
    with pytest.raises(
        ValueError, match=r"^proof must be one of simulated, built, built in parts, run, not 'ok'$"
    ):
        replace(BOARD, proof="ok")


def test_what_is_missing_is_told() -> None:
    values = json.loads(BOARD.to_bytes()[DESCRIPTION_HEAD_BYTES:])
    del values["clock_hz"]
    message = "description of a board must have 'clock_hz', and has not"
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        BoardDescription.from_json(json.dumps(values).encode(), 0)
