from __future__ import annotations

import re

import numpy as np
import pytest

from ember_hw.boards.host.board import BLOCK_BYTES, Board
from ember_hw.boards.host.client import LinkClient
from ember_hw.boards.host.tests.fakes import DESCRIPTION, FakeBoard
from ember_hw.boards.links.frame import ARGUMENT_BYTES, ErrorCount, Frame, Operation, Status
from ember_hw.errors import DeviceError, EmberError, LinkError

BASE = DESCRIPTION.memory_base


def connected(board: FakeBoard) -> Board:
    opened = Board(LinkClient(board, seed=1))
    board.log.clear()
    return opened


def fails(message: str, kind: type[EmberError] = LinkError):
    return pytest.raises(kind, match=f"^{re.escape(message)}$")


def test_a_board_says_what_it_is() -> None:
    with connected(FakeBoard()) as board:
        assert board.description == DESCRIPTION
        assert board.port == "fake"
        assert board.read_errors() == {kind: int(kind) for kind in ErrorCount}


def test_registers_go_in_few_frames() -> None:
    fake = FakeBoard(registers=dict.fromkeys(range(0x800, 0x800 + 800, 4), 0))
    board = connected(fake)
    board.write_registers(0x800, list(range(200)))
    assert board.read_registers(0x800, 200) == list(range(200))
    assert len(fake.log) == 4


def test_only_blocks_that_differ_are_uploaded() -> None:
    fake = FakeBoard()
    content = np.random.default_rng(1).integers(0, 256, 2 * BLOCK_BYTES + 64, np.uint8)
    board, seen = connected(fake), []
    first = board.upload(BASE, content, lambda *numbers: seen.append(numbers))
    assert (first.num_bytes, first.written_bytes) == (content.size, content.size)
    assert seen[-1] == (content.size, content.size)
    assert fake.memory[: content.size] == content.tobytes()
    fake.log.clear()
    assert board.upload(BASE, content).written_bytes == 0
    assert fake.log == []  # the session knows what lies there
    content[BLOCK_BYTES] ^= 1
    assert board.upload(BASE, content).written_bytes == BLOCK_BYTES
    again = connected(fake)  # another session asks the board
    again_upload = again.upload(BASE, content)
    assert again_upload.written_bytes == 0
    assert again_upload.megabytes_per_second == 0.0
    assert {frame.operation for frame in fake.log} == {Operation.CHECK_MEMORY}


def bytes_written(fake: FakeBoard) -> int:
    """Return the bytes of memory in the frames that came."""
    writes = [frame for frame in fake.log if frame.operation == Operation.WRITE_MEMORY]
    fake.log.clear()
    return sum(len(frame.payload) - ARGUMENT_BYTES for frame in writes)


def test_what_has_probably_changed_is_written_alone() -> None:
    fake = FakeBoard()
    content = np.random.default_rng(5).integers(0, 256, 3 * BLOCK_BYTES, np.uint8)
    board = connected(fake)
    board.upload(BASE, content)
    assert bytes_written(fake) == content.size
    # Two rows of 64 bytes in the first block, one over the edge to the second, one unchanged.
    likely = np.array([[64, 128], [256, 320], [BLOCK_BYTES - 32, BLOCK_BYTES + 32], [40000, 40064]])
    for first, end in likely[:3]:
        content[first:end] ^= 1
    assert board.upload(BASE, content, likely=likely).written_bytes == 3 * 64
    assert bytes_written(fake) == 3 * 64
    assert fake.memory[: content.size] == content.tobytes()
    assert board.upload(BASE, content).written_bytes == 0


def test_a_change_that_nobody_told_of_is_written_with_its_block() -> None:
    fake = FakeBoard()
    content = np.zeros(2 * BLOCK_BYTES, np.uint8)
    board = connected(fake)
    board.upload(BASE, content)
    content[[70, 3000, BLOCK_BYTES]] = 1
    likely = np.array([[64, 128]])
    written = board.upload(BASE, content, likely=likely).written_bytes
    assert written == 64 + 2 * BLOCK_BYTES
    assert fake.memory[: content.size] == content.tobytes()
    content[5] = 1
    assert board.upload(BASE, content, likely=np.zeros((0, 2), np.int64)).written_bytes == (
        BLOCK_BYTES
    )
    content[6] = 1
    whole = np.array([[0, content.size]])
    assert board.upload(BASE, content, likely=whole).written_bytes == BLOCK_BYTES


def test_parts_that_break_off_are_written_again() -> None:
    fake = FakeBoard()
    content = np.zeros(BLOCK_BYTES, np.uint8)
    board = connected(fake)
    board.upload(BASE, content)
    content[64:128] = 1
    fake.is_silent = True
    likely = np.array([[64, 128]])
    with pytest.raises(LinkError, match=r"must answer within .* and was silent"):
        board.upload(BASE, content, likely=likely)
    fake.is_silent = False
    assert connected(fake).upload(BASE, content, likely=likely).written_bytes == 64
    assert fake.memory[: content.size] == content.tobytes()


def test_an_upload_goes_on_where_a_broken_one_stopped() -> None:
    fake = FakeBoard()
    content = np.random.default_rng(2).integers(0, 256, 3 * BLOCK_BYTES, np.uint8)
    board = connected(fake)

    def stop(done: int, total: int) -> None:
        if done == BLOCK_BYTES:
            fake.is_silent = True

    with pytest.raises(LinkError, match=r"must answer within .* and was silent"):
        board.upload(BASE, content, stop)
    fake.is_silent = False
    assert connected(fake).upload(BASE, content).written_bytes == 2 * BLOCK_BYTES


def test_a_write_forgets_the_sums_of_what_it_touches() -> None:
    fake = FakeBoard()
    content = np.ones(2 * BLOCK_BYTES, np.uint8)
    board = connected(fake)
    board.upload(BASE, content)
    board.write_memory(BASE + BLOCK_BYTES, bytes(8))
    assert board.upload(BASE, content).written_bytes == BLOCK_BYTES


def test_memory_that_does_not_keep_bytes_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = FakeBoard()
    board = connected(fake)
    monkeypatch.setattr(board, "write_memory", lambda address, content: None)
    with fails(
        "check sum of 8 bytes at 0x100000 must be 0x2ea122d3 after they were written, not "
        "0x6522df69; run `ember-hw selftest`",
        DeviceError,
    ):
        board.upload(BASE, np.ones(8, np.uint8))


def test_queues_are_drained_while_someone_wants_more() -> None:
    fake = FakeBoard(queue=bytearray(range(256)) * 5)
    pieces: list[bytes] = []
    for piece in connected(fake).drain(lambda: b"" not in pieces):
        pieces.append(piece)
    assert b"".join(pieces) == bytes(range(256)) * 5


def test_errors_of_registers_and_memory_are_told() -> None:
    board = connected(FakeBoard())
    with fails(
        "registers from 0x8 must be there and ready, and an access was refused", DeviceError
    ):
        board.read_registers(8, 9)
    with fails("memory from 0x8 must be within the board's memory, and is not", DeviceError):
        board.read_memory(8, 8)
    with fails(
        "memory from 0x100000 must be answered by the board's memory, and is not: it isn't "
        "initialised, or stopped; reset the board",
        DeviceError,
    ):
        connected(FakeBoard(has_dead_memory=True)).write_memory(BASE, bytes(8))
    with fails("DRAIN of queues must be answered with OK, not BAD_OPERATION"):
        board.checked(Frame(Operation.DRAIN, 0, 0, Status.BAD_OPERATION), "queues")


def changed(at: int, value: int) -> FakeBoard:
    content = bytearray(DESCRIPTION.to_bytes())
    content[at] = value
    return FakeBoard(content=bytes(content))


@pytest.mark.parametrize(
    ("at", "value", "message"),
    [
        (0, 0, r"board at fake must begin with b'EMBR', not b'\\x00MBR'"),
        (
            4,
            9,
            "protocol version of the board at fake must be 2, not 9; build its gateware with this "
            "ember_hw",
        ),
        (30, 0, "check sum of the description of the board at fake must be 0x.*, not 0x.*"),
    ],
)
def test_what_is_no_board_is_refused_and_let_go(at: int, value: int, message: str) -> None:
    fake = changed(at, value)
    with pytest.raises(LinkError, match=f"^{message}$"):
        connected(fake)
    assert fake.is_closed
