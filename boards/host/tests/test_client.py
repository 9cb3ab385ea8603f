from __future__ import annotations

import re

import pytest

from ember_hw.boards.host.client import LinkClient, Request
from ember_hw.boards.host.tests.fakes import FakeBoard
from ember_hw.boards.links.frame import MAGIC, Frame, Operation, Status
from ember_hw.errors import LinkError

ADDRESS = 0x40


def connected(**values: object) -> tuple[FakeBoard, LinkClient]:
    board = FakeBoard(registers=dict.fromkeys(range(ADDRESS, ADDRESS + 64, 4), 0))
    client = LinkClient(board, timeout_seconds=0.1, patience_seconds=1.0, seed=1)
    assert client.begin_session(4) == MAGIC
    board.log.clear()
    for name, value in values.items():
        setattr(board, name, value)
    return board, client


def writes(values: range) -> list[Request]:
    return [
        Request(Operation.WRITE_REGISTERS, ADDRESS, data=value.to_bytes(4, "little"))
        for value in values
    ]


def fails(message: str):
    return pytest.raises(LinkError, match=f"^{re.escape(message)}$")


def test_answers_come_in_order_and_requests_may_wait_for_them() -> None:
    board, client = connected()
    seen: list[int] = []

    def requests():
        for number in range(10):
            seen.append(len(board.log))
            yield Request(Operation.READ_REGISTERS, ADDRESS, 4 * (number % 3))

    lengths = [len(answer.payload) for answer in client.transact(requests())]
    assert lengths == [4 * (number % 3) for number in range(10)]
    assert seen[:5] == [0, 1, 2, 3, 4]  # four are on their way before the first is waited for


def test_answers_that_were_lost_are_sent_again_and_nothing_is_done_twice() -> None:
    board, client = connected(answers_lost=3)
    answers = list(client.transact(writes(range(20))))
    assert [answer.status for answer in answers] == [Status.OK] * 20
    assert len(board.log) == 20
    assert client.counts.repeats > 0


def test_a_consumer_that_stops_leaves_nothing_undone() -> None:
    board, client = connected()
    for _ in client.transact(writes(range(6))):
        break
    answer = client.ask(Request(Operation.READ_REGISTERS, ADDRESS, 4))
    assert int.from_bytes(answer.payload, "little") == len(board.log) - 2  # the last that was sent


def test_a_silent_board_is_given_up() -> None:
    _, client = connected(is_silent=True)
    with fails(
        "board at fake must answer within 1.0 s, and was silent (3 requests sent, 9 repeats, 0 bad "
        "frames received); check its cable and open it again"
    ):
        client.ask(Request(Operation.READ_ERRORS))


def test_a_board_that_was_reset_is_told() -> None:
    _, client = connected(session=None)
    with fails(
        "board at fake must stay in its session, and left it: it was reset, or another program "
        "opened it; open it again"
    ):
        client.ask(Request(Operation.READ_ERRORS))


def test_a_board_that_never_gets_to_a_request_is_given_up() -> None:
    board, client = connected()

    def judge(frame: Frame) -> Frame:
        return Frame(frame.operation, frame.session, 99, Status.OUT_OF_ORDER)

    board._judge = judge
    with pytest.raises(LinkError, match=r"^board at fake must answer each request, and one has no"):
        client.ask(Request(Operation.READ_ERRORS))


def test_a_session_begins_whatever_the_board_was_in() -> None:
    for seed in range(300):
        board = FakeBoard()
        board.session, board._awaited = seed % 256, 7
        board._kept = {n: Frame(Operation.DRAIN, seed % 256, n) for n in range(3, 7)}
        client = LinkClient(board, seed=seed)
        assert client.begin_session(4) == MAGIC


def test_an_answer_to_hello_that_is_none_is_told() -> None:
    board = FakeBoard()
    board._judge = lambda frame: Frame(77, frame.session, frame.sequence, 88)
    with fails("fake must answer HELLO with OK, not operation 77 with status 88"):
        LinkClient(board, seed=1).begin_session(4)
    board._judge = lambda frame: Frame(0, frame.session, frame.sequence, 3)
    with fails("fake must answer HELLO with OK, not HELLO with BAD_OPERATION"):
        LinkClient(board, seed=1).begin_session(4)


@pytest.mark.parametrize("name", ["timeout_seconds", "patience_seconds"])
def test_times_are_checked(name: str) -> None:
    message = f"{name} must be positive, not 0"
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        LinkClient(FakeBoard(), **{name: 0})
