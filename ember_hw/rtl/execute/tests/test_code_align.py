from __future__ import annotations

import pytest

from ember_hw.rtl.execute.code_align import HALF_HEADER_BYTES, HEADER_BYTES, CodeAlign
from ember_hw.rtl.tests.harness import CONFIG, Bench, gaps, payloads

_BYTES = CONFIG.bus_bytes


def _rows(header_bytes: int, columns: list[int]) -> list[bytes]:
    """Return rows of which every byte is another than its neighbours."""
    return [
        bytes((37 * row + byte) % 251 for byte in range(header_bytes + count))
        for row, count in enumerate(columns)
    ]


def _beats(row: bytes) -> list[dict[str, int]]:
    firsts = range(0, len(row), _BYTES)
    parts = [row[first : first + _BYTES] for first in firsts]
    return [
        {
            "data": int.from_bytes(part + b"\xee" * (_BYTES - len(part)), "little"),
            "bytes": len(part),
            "last": int(first + _BYTES >= len(row)),
        }
        for first, part in zip(firsts, parts, strict=True)
    ]


def _coded(beat: dict) -> tuple[bytes, bool]:
    return bytes(beat["codes"][: beat["count"]]), bool(beat["last"])


@pytest.mark.parametrize("stall", [0.0, 0.3])
@pytest.mark.parametrize("header_bytes", [HALF_HEADER_BYTES, HEADER_BYTES])
def test_codes_come_in_full_beats_without_scale_and_bias(header_bytes, stall):
    seed = 7
    rows = _rows(header_bytes, [0, 1, 4, 5, 8, 0, 24, 3, 12, 13, 16, 17, 40, 8])
    dut = CodeAlign(config=CONFIG)
    bench = Bench(dut, seed=seed)
    beats = [beat for row in rows for beat in _beats(row)]

    async def microcode(ctx):
        ctx.set(dut.half_scale, header_bytes == HALF_HEADER_BYTES)

    bench.process(microcode)
    sent = bench.send(dut.i, beats, stall=stall)
    codes = [row[header_bytes:] for row in rows]
    expected = [
        (text[first : first + _BYTES], first + _BYTES >= len(text))
        for text in codes
        for first in range(0, max(1, len(text)), _BYTES)
    ]
    taken = bench.receive(dut.o, len(expected), stall=stall)
    bench.run(1000)
    assert [_coded(beat) for beat in payloads(taken)] == expected
    headers = [row[:header_bytes] for row, text in zip(rows, codes, strict=True)]
    counts = [max(1, -(-len(text) // _BYTES)) for text in codes]
    for beat, header in zip(
        payloads(taken),
        [header for header, count in zip(headers, counts, strict=True) for _ in range(count)],
        strict=True,
    ):
        assert beat["factors"].to_bytes(HEADER_BYTES, "little")[:header_bytes] == header
    if not stall:
        assert gaps(sent) == {1}
