"""Programs on the simulated board: the driver, the link, the gateware, all of it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

import ember_hw
from ember_hw.boards.host import finder
from ember_hw.boards.host.finder import Candidate, look
from ember_hw.boards.simulated.board import CONFIG
from ember_hw.config import AcceleratorConfig
from ember_hw.errors import DeviceError, LinkError, ProgramError
from ember_hw.host.backends.board import Backend, check_identity
from ember_hw.host.backends.requests import check_leaves
from ember_hw.host.backends.selftest import run_selftest
from ember_hw.host.device import Device, open_device
from ember_hw.host.launch import Launch
from ember_hw.registers import FaultCode

pytestmark = [pytest.mark.verilator, pytest.mark.timeout(900)]  # builds the model


def fails(message: str, kind: type[Exception]) -> Any:
    return pytest.raises(kind, match=f"^{re.escape(message)}$")


class Lookups:
    """A bag, requests for it, and what the interpreter answers."""

    def __init__(self, seed: int, rows: int = 40, columns: int = 12) -> None:
        rng = np.random.default_rng(seed)
        table = torch.tensor(rng.standard_normal((rows, columns), np.float32))
        self.indices = rng.integers(0, rows, 50)
        self.offsets = np.array([0, 3, 3, 20, 49])
        bag = torch.nn.EmbeddingBag.from_pretrained(table, mode="sum")
        self.program = ember_hw.compile(bag, (self.indices, self.offsets), config=CONFIG)
        with open_device("interpreter", config=CONFIG) as device:
            self.wanted = device.run(self.program, (self.indices, self.offsets))

    def run(self, device: Device) -> None:
        pooled = device.run(self.program, (self.indices, self.offsets))
        assert np.array_equal(pooled, self.wanted)


@pytest.fixture(scope="module")
def backend() -> Iterator[Backend]:
    opened = Backend(None, board="sim")
    yield opened
    opened.close()


@pytest.fixture
def device(backend: Backend) -> Device:
    return Device("board:sim", backend)


def test_lookups_are_those_of_the_interpreter(device: Device) -> None:
    lookups = Lookups(1)
    lookups.run(device)
    report = device.report
    assert report.backend == "board:sim"
    assert report.memory == "block RAM of board sim (simulated)"
    assert report.sink == "host, over the link"
    assert report.rows == report.lookups == 50
    assert report.cycles is not None


def test_tables_are_uploaded_once_and_changes_are_seen(
    backend: Backend, device: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    lookups = Lookups(2)
    written: list[int] = []
    upload = backend.board.upload

    def counted(*arguments: Any, **options: Any) -> Any:
        done = upload(*arguments, **options)
        written.append(done.written_bytes)
        return done

    monkeypatch.setattr(backend.board, "upload", counted)
    lookups.run(device)
    assert sum(written) > 0
    written.clear()
    lookups.run(device)
    assert sum(written) == 0
    (table,) = lookups.program.tables.values()
    table *= 2.0
    lookups.wanted *= 2.0
    lookups.run(device)
    assert sum(written) > 0


def test_a_step_of_training_uploads_the_rows_it_changed(device: Device) -> None:
    bag = torch.nn.EmbeddingBag(2048, 16, mode="sum", sparse=True)  # 128 KiB, 8 blocks
    ours = ember_hw.nn.EmbeddingBag.from_torch(bag, device=device)
    optimizer: Any = torch.optim.SGD(ours.parameters(), lr=0.5)
    indices = torch.tensor([[3, 4, 2000], [3, 39, 1000]])
    uploaded: list[int] = []
    for _ in range(3):
        optimizer.zero_grad()
        found = ours(indices)
        assert torch.equal(found, bag.weight[indices].sum(1))
        uploaded.append(device.report.uploaded_bytes or 0)
        found.sum().backward()
        optimizer.step()
    inputs = uploaded[1] - 5 * 64
    assert 0 <= inputs <= 1024, "indices and offsets, if anything"
    assert uploaded[0] >= 2048 * 64
    assert uploaded[2] == 5 * 64, "the same indices are there"
    with torch.no_grad():
        bag.weight[7] += 1.0  # no run had read it: its whole block is written
        assert torch.equal(ours(torch.tensor([[7, 3]])), bag.weight[[7, 3]].sum(0, keepdim=True))


def launch_of(lookups: Lookups, backend: Backend) -> Launch:
    """Run the lookups, and return what the backend was given."""
    launches: list[Launch] = []
    device = Device("board:sim", _Recorder(backend, launches))  # pyright: ignore[reportArgumentType]
    lookups.run(device)
    return launches[0]


def test_a_fault_is_told_and_the_next_run_is_right(backend: Backend, device: Device) -> None:
    lookups = Lookups(3)
    launch = launch_of(lookups, backend)
    microcode = launch.microcode.with_field("row0", "rows", 3)
    with pytest.raises(
        DeviceError, match=r"^access unit fault INDEX_OUT_OF_RANGE \(row entry 0, index 0x"
    ) as caught:
        list(backend.execute(replace(launch, microcode=microcode)))
    assert caught.value.code == FaultCode.INDEX_OUT_OF_RANGE
    lookups.run(device)


def test_a_consumer_that_stops_aborts_the_program(backend: Backend, device: Device) -> None:
    lookups = Lookups(4)
    for _ in backend.execute(launch_of(lookups, backend)):
        break
    lookups.run(device)


class _Recorder:
    """A backend that notes its launches."""

    def __init__(self, inner: Backend, launches: list[Launch]) -> None:
        self._inner = inner
        self._launches = launches

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def execute(self, launch: Launch) -> Any:
        self._launches.append(launch)
        return self._inner.execute(launch)


def test_a_link_that_breaks_is_told_and_the_next_run_goes_on(
    backend: Backend, device: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    lookups = Lookups(5)
    lookups.run(device)
    channel = backend.board.client.channel
    write = channel.write
    calls: list[bytes] = []

    def pulled(content: bytes) -> None:
        calls.append(content)
        if len(calls) == 8:
            raise LinkError("port must stay connected, and was pulled")
        write(content)

    monkeypatch.setattr(channel, "write", pulled)
    with fails("port must stay connected, and was pulled", LinkError):
        device.run(lookups.program, (lookups.indices, lookups.offsets))
    lookups.run(device)
    assert backend.board.client.channel is not channel


def test_a_program_beyond_memory_is_refused(device: Device) -> None:
    lookups = Lookups(6, rows=40_000)
    message = r"^'.*' must lie within the memory of board 'sim', 0x100000 to 0x200000, not at 0x.*"
    with pytest.raises(ProgramError, match=message):
        device.run(lookups.program, (lookups.indices, lookups.offsets))


def test_rows_that_cannot_leave_are_refused() -> None:
    (nest,) = Lookups(7).program.nests
    launch = Launch(nest.microcode, (), (), nest=replace(nest, reason="of its weights"))
    config = CONFIG.with_changes(name="reducing", execute="reduce")
    check_leaves(launch, CONFIG)
    with fails(
        f"rows of nest {nest.name!r} must leave through the reduce unit of config 'reducing', and "
        "can't: of its weights; compile it for a config with execute='queues'",
        ProgramError,
    ):
        check_leaves(launch, config)


def test_a_port_in_use_is_told(backend: Backend) -> None:
    assert backend.terminal is not None
    one = look(Candidate(backend.terminal.port))
    assert one.description is None
    assert one.state.startswith(f"port {backend.terminal.port} must be free and open, and isn't: ")


def test_another_config_is_refused(backend: Backend, monkeypatch: pytest.MonkeyPatch) -> None:
    assert backend.terminal is not None
    backend.disconnect()  # frees the port
    tiny = AcceleratorConfig.preset("tiny")
    with fails(
        f"config of board 'sim' must be 'tiny' (hash {tiny.hash():#010x}), not 'sim' (hash "
        f"{CONFIG.hash():#010x}); compile for `device.config`, or build the board's gateware for "
        "this config",
        DeviceError,
    ):
        open_device("board:sim", config=tiny, port=backend.terminal.port)


def test_another_isa_and_other_registers_are_refused(backend: Backend) -> None:
    board = backend.board
    description = board.description
    board.description = replace(description, isa_version=99)
    with pytest.raises(
        DeviceError, match=r"^ISA version of board 'sim' must be \d+, not 99; build"
    ):
        check_identity(board)
    board.description = replace(description, config=AcceleratorConfig.preset("tiny"))
    with pytest.raises(
        DeviceError, match=r"^register CONFIG_HASH of board 'sim' must be 0x\w+, as"
    ):
        check_identity(board)
    board.description = description


def test_selftest_passes(backend: Backend) -> None:
    verdicts = list(run_selftest(backend, memory_bytes=1024))
    assert [verdict.test for verdict in verdicts] == ["address lines", "memory", "gather", "link"]
    assert all(verdict.is_good for verdict in verdicts), verdicts


def test_selftest_finds_memory_that_forgets(
    backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    def forget(address: int, content: bytes) -> None:
        """Write nothing."""

    monkeypatch.setattr(backend.board, "write_memory", forget)
    verdicts = {one.test: one for one in run_selftest(backend, memory_bytes=64, seed=9)}
    assert not verdicts["address lines"].is_good
    assert verdicts["address lines"].detail.startswith("memory at 0x")
    assert not verdicts["memory"].is_good
    assert verdicts["memory"].detail.startswith("check sum of 64 bytes at 0x100000 must be 0x")
    assert not verdicts["gather"].is_good
    assert verdicts["link"].is_good


@pytest.mark.parametrize("memory_bytes", [0, 8, 1 << 21])
def test_bytes_of_a_selftest_are_checked(backend: Backend, memory_bytes: int) -> None:
    message = f"memory_bytes must be a multiple of 16, at most 1048576, not {memory_bytes}"
    with fails(message, ValueError):
        list(run_selftest(backend, memory_bytes=memory_bytes))


@pytest.mark.parametrize("name", ["memory", "sink"])
def test_memory_and_sink_are_the_boards(name: str) -> None:
    with fails(f"{name} must be left out with a board, not 'core-like'", ValueError):
        Backend(None, board="ulx3s", **{name: "core-like"})  # pyright: ignore[reportArgumentType]


def test_memory_of_the_simulated_board_is_checked() -> None:
    with fails("memory must be one of block RAM, SDRAM, not 'core-like'", ValueError):
        Backend(None, board="sim", memory="core-like")


def test_a_board_that_is_not_there_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(finder.list_ports, "comports", list)
    message = "a board ulx3s must be connected, and isn't; ports with a known USB chip: none"
    with fails(message, LinkError):
        open_device("board:ulx3s")
