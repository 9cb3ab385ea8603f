"""The host's end of the frame protocol: sessions, retries, and one answer for each request."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ember_hw.boards.host.channel import Channel
from ember_hw.boards.links.frame import (
    ARGUMENTS,
    WINDOW_FRAMES,
    Frame,
    FrameDecoder,
    Operation,
    Status,
    encode,
    pack,
)
from ember_hw.errors import LinkError

_NUMBERS = 256
#: How many times the patience a request may stay without an answer while others get theirs.
_PROGRESS = 20


@dataclass(frozen=True)
class Request:
    """What the host asks for.

    Attributes
    ----------
    operation : Operation
        What.
    address, count : int
        Its arguments.
    data : bytes
        What it brings.
    """

    operation: Operation
    address: int = 0
    count: int = 0
    data: bytes = b""


@dataclass
class _Open:
    """A request without an answer, or with one that waits for those before it."""

    request: Request
    sequence: int
    content: bytes
    answer: Frame | None = None


@dataclass
class LinkCounts:
    """What a client has seen of its link.

    Attributes
    ----------
    sent_bytes, received_bytes : int
        Bytes on the channel.
    frames, repeats, bad_frames : int
        Requests sent for the first time, and again; answers that were no frames.
    timeouts, gaps : int
        Times without an answer; answers that told of a missing request.
    """

    sent_bytes: int = 0
    received_bytes: int = 0
    frames: int = 0
    repeats: int = 0
    bad_frames: int = 0
    timeouts: int = 0
    gaps: int = 0


@dataclass
class _Timer:
    """When the host last heard of the board, got an answer, and repeated what has none.

    `gap` is the request that was repeated because the board missed it.
    """

    heard: float = 0.0
    answered: float = 0.0
    repeated: float = 0.0
    gap: int | None = None


class LinkClient:
    """Has requests executed exactly once, in order, over a channel that may fail.

    Parameters
    ----------
    channel : Channel
        Leads to the board.
    timeout_seconds : float
        Time after which a request without an answer is repeated.
    patience_seconds : float
        Time without any answer after which the link counts as broken.
    seed : int, optional
        Of the sessions' numbers; of the system's choice if absent.
    """

    def __init__(
        self,
        channel: Channel,
        *,
        timeout_seconds: float = 0.1,
        patience_seconds: float = 3.0,
        seed: int | None = None,
    ) -> None:
        for name, value in (
            ("timeout_seconds", timeout_seconds),
            ("patience_seconds", patience_seconds),
        ):
            if value <= 0:
                raise ValueError(f"{name} must be positive, not {value!r}")
        self.channel = channel
        self.timeout_seconds = timeout_seconds
        self.patience_seconds = patience_seconds
        self.counts = LinkCounts()
        self._random = random.Random(seed)
        self._decoder = FrameDecoder()
        self._open: deque[_Open] = deque()
        self._session = 0
        self._sequence = 0
        self._timer = _Timer()

    def begin_session(self, count: int) -> bytes:
        """Begin a session, whatever the board was in, and return so many bytes of its description.

        Raises
        ------
        LinkError
            The board doesn't answer, or not as this protocol says.
        """
        hello = Request(Operation.HELLO, 0, count)
        # The board may be in the session that is drawn first. Of the second it can't be.
        numbers = self._random.sample(range(_NUMBERS), 2)
        self._hello(hello, numbers[0])
        answer = self._hello(hello, numbers[1])
        if answer.status != Status.OK or answer.operation != Operation.HELLO:
            raise LinkError(
                f"{self.channel.name} must answer HELLO with OK, not {self._describe(answer)}"
            )
        return answer.payload

    def transact(self, requests: Iterable[Request]) -> Iterator[Frame]:
        """Have requests executed, several at a time on their way, and yield their answers in order.

        A request may be made as late as the answers before it are known. What the consumer doesn't
        wait for is still executed, once.

        Raises
        ------
        LinkError
            The link broke, or the board was reset or taken over.
        """
        while self._open:  # left by a consumer that stopped
            self._await()
            self._open.popleft()
        source = iter(requests)
        while True:
            while len(self._open) < WINDOW_FRAMES:
                request = next(source, None)
                if request is None:
                    break
                self._send(request)
            if not self._open:
                return
            answer = self._await()
            self._open.popleft()
            yield answer

    def ask(self, request: Request) -> Frame:
        """Have one request executed, and return its answer."""
        (answer,) = self.transact([request])
        return answer

    def close(self) -> None:
        """Close the channel."""
        self.channel.close()

    def _hello(self, request: Request, session: int) -> Frame:
        self._open.clear()
        self._session, self._sequence = session, 0
        self._send(request)
        answer = self._await(takes_any=True)
        self._open.clear()
        return answer

    def _send(self, request: Request) -> None:
        arguments = pack(ARGUMENTS, {"address": request.address, "count": request.count})
        frame = Frame(
            request.operation, self._session, self._sequence, payload=arguments + request.data
        )
        one = _Open(request, self._sequence, encode(frame))
        self._sequence = (self._sequence + 1) % _NUMBERS
        if not self._open:
            now = self.channel.now()
            self._timer = _Timer(now, now, now)
        self._open.append(one)
        self.counts.frames += 1
        self._write(one.content)

    def _write(self, content: bytes) -> None:
        self.channel.write(content)
        self.counts.sent_bytes += len(content)

    def _await(self, *, takes_any: bool = False) -> Frame:
        """Return the answer of the oldest request that is open.

        `takes_any`: an answer of this session to anything will do.
        """
        timer = self._timer
        while self._open[0].answer is None:
            content = self.channel.read(self.timeout_seconds / 4)
            self.counts.received_bytes += len(content)
            for frame in self._decoder.feed(content):
                if frame.session != self._session:
                    continue
                timer.heard = self.channel.now()
                if takes_any:
                    return frame
                self._take(frame)
            self.counts.bad_frames = self._decoder.bad
            now = self.channel.now()
            if now - timer.heard > self.patience_seconds:
                raise LinkError(
                    f"board at {self.channel.name} must answer within {self.patience_seconds} s, "
                    f"and was silent ({self._state()}); check its cable and open it again"
                )
            if now - timer.answered > _PROGRESS * self.patience_seconds:
                raise LinkError(
                    f"board at {self.channel.name} must answer each request, and one has none "
                    f"({self._state()}); open it again"
                )
            if now - max(timer.answered, timer.repeated) > self.timeout_seconds:
                self.counts.timeouts += 1
                self._repeat(0)
        return self._open[0].answer

    def _take(self, frame: Frame) -> None:
        """Put an answer to its request, or act on a gap."""
        if frame.status == Status.NO_SESSION:
            raise LinkError(
                f"board at {self.channel.name} must stay in its session, and left it: it was "
                "reset, or another program opened it; open it again"
            )
        first = self._open[0].sequence
        position = (frame.sequence - first) % _NUMBERS
        if frame.status == Status.OUT_OF_ORDER:
            if position < len(self._open) and self._timer.gap != frame.sequence:
                self.counts.gaps += 1
                self._repeat(position)
                self._timer.gap = frame.sequence
            return
        if position < len(self._open):
            self._open[position].answer = frame
            self._timer.answered = self.channel.now()
            self._timer.gap = None

    def _repeat(self, position: int) -> None:
        """Send again what has no answer, from a position on."""
        self._timer.gap = None
        for one in list(self._open)[position:]:
            if one.answer is None:
                self.counts.repeats += 1
                self._write(one.content)
        self._timer.repeated = self.channel.now()

    def _state(self) -> str:
        counts = self.counts
        return (
            f"{counts.frames} requests sent, {counts.repeats} repeats, {counts.bad_frames} bad "
            "frames received"
        )

    @staticmethod
    def _describe(answer: Frame) -> str:
        try:
            return f"{Operation(answer.operation).name} with {Status(answer.status).name}"
        except ValueError:
            return f"operation {answer.operation} with status {answer.status}"
