"""MovieLens lookups on simulated boards, over UART and memory, against the interpreter.

The board runs in Verilator behind a pseudo-terminal, and the driver of every board opens that. The
pooled rows must be those of the backend `interpreter`, bit for bit, and the SDRAM's chip must see
no command too early. *ULX3S*: the config, the rate of the UART, the clocks and the SDRAM of
`ember-hw build ulx3s`, whose reduce unit pools the rows before they leave; *small*: a unit without
one and a faster UART, so that every row leaves.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

import ember_hw
from ember_hw.bench.registry import Job
from ember_hw.bench.result import Row
from ember_hw.boards.links.uart import BAUD as UART_BAUD
from ember_hw.boards.simulated.board import BAUD, BOARD, CLOCK_HZ, CONFIG
from ember_hw.boards.targets.ulx3s import TARGET as ULX3S
from ember_hw.compiler.program import Program
from ember_hw.config import AcceleratorConfig
from ember_hw.demo import movielens
from ember_hw.host.backends.board import Backend
from ember_hw.host.device import Device

FEW_USERS = 16
#: Most seconds that all users may take.
MOST_SECONDS = 600.0


@dataclass(frozen=True)
class Workload:
    """A simulated board, and how many users look their films up on it.

    Attributes
    ----------
    name : str
    users, columns : int
        Bags, and columns of the table.
    config : AcceleratorConfig
    memory : str
        See `ember_hw.boards.simulated.board`.
    baud : int
        Of the UART.
    most_seconds : float or None
        Bar of the simulation's time.
    """

    name: str
    users: int
    columns: int
    config: AcceleratorConfig
    memory: str
    baud: int
    most_seconds: float | None = None


#: A quick job takes the first.
WORKLOADS = (
    Workload("small, block RAM, 16 users", FEW_USERS, 8, CONFIG, "block RAM", BAUD),
    Workload("small, SDRAM, 16 users", FEW_USERS, 8, CONFIG, "SDRAM", BAUD),
    Workload("ULX3S, 16 users", FEW_USERS, 16, ULX3S.config, "SDRAM", UART_BAUD),
    Workload(
        "ULX3S, all users", movielens.USERS, 8, ULX3S.config, "SDRAM", UART_BAUD, MOST_SECONDS
    ),
)


def run(job: Job) -> Iterator[Row]:
    """Run the lookups of each workload on its board and in the interpreter."""
    for workload in WORKLOADS[:1] if job.quick else WORKLOADS:
        if job.wants(workload.name):
            yield from _lookups(job, workload)


def _lookups(job: Job, workload: Workload) -> Iterator[Row]:
    name, users = workload.name, workload.users
    job.watcher(f"board: {name}: reading MovieLens-100K, compiling the program")
    program, inputs, table_bytes = _program(job, workload)
    with ember_hw.open_device("interpreter", config=workload.config) as device:
        wanted = np.asarray(device.run(program, inputs))

    job.watcher(f"board: {name}: opening the simulated board")
    backend = Backend(
        workload.config,
        board=BOARD,
        memory=workload.memory,
        baud=workload.baud,
        progress=job.watcher.detail,
    )
    with Device(f"board:{BOARD}", backend) as device:
        job.watcher(f"board: {name}: {inputs[0].size:,} lookups")
        assert backend.terminal is not None
        began, began_processor = time.perf_counter(), time.process_time()
        began_cycles = backend.terminal.cycles
        before = replace(backend.board.client.counts)
        found = np.asarray(device.run(program, inputs, progress=job.watcher.reached))
        seconds = time.perf_counter() - began
        processor_seconds = time.process_time() - began_processor
        cycles = backend.terminal.cycles - began_cycles
        after = backend.board.client.counts
        unit_cycles = device.report.cycles
        violations = backend.terminal.memory_violations
    sent = after.sent_bytes - before.sent_bytes
    received = after.received_bytes - before.received_bytes
    params = {
        "config": workload.config.to_dict(),
        "memory": workload.memory,
        "memory_violations": violations,
        "users": users,
        "lookups": int(inputs[0].size),
        "row_bytes": table_bytes // movielens.NUM_EMBEDDINGS,
        "table_bytes": table_bytes,
        "sent_bytes": sent,
        "received_bytes": received,
        "unit_cycles": unit_cycles,
        "clock_hz": CLOCK_HZ,
        "baud": workload.baud,
        "processor_seconds": processor_seconds,
    }
    same = int((found == wanted).all(axis=1).sum())
    yield Row(
        workload=name,
        metric="pooled rows equal to the interpreter's, no limit of memory broken",
        value=0 if violations else same,
        unit="1",
        params=params,
        reference_name="users",
        reference=users,
        bar=1.0,
    )
    yield Row(
        workload=name,
        metric="bytes on the link",
        value=sent + received,
        unit="B",
        params=params,
    )
    yield Row(
        workload=name,
        metric="time on the board, upload included",
        value=cycles / CLOCK_HZ,
        unit="s",
        params=params,
    )
    yield Row(
        workload=name,
        metric="time of the simulation, upload included",
        value=seconds,
        unit="s",
        params=params,
        reference_name=None if workload.most_seconds is None else "most allowed",
        reference=workload.most_seconds,
        is_smaller_better=True,
        bar=None if workload.most_seconds is None else 1.0,
    )


def _program(
    job: Job, workload: Workload
) -> tuple[Program, tuple[NDArray[np.int32], NDArray[np.int32]], int]:
    """Return the sum of each user's films, indices and offsets, and the bytes of the table."""
    import torch  # slow to import, and not needed to list suites

    bags = movielens.load()
    ends = np.append(bags.offsets, bags.indices.size)
    offsets = ends[: workload.users].astype(np.int32)
    indices = bags.indices[: ends[workload.users]].astype(np.int32)
    rng = np.random.default_rng(job.seed)
    shape = movielens.NUM_EMBEDDINGS, workload.columns
    table = rng.standard_normal(shape, dtype=np.float32)
    bag = torch.nn.EmbeddingBag.from_pretrained(torch.from_numpy(table), mode="sum")
    inputs = indices, offsets
    return ember_hw.compile(bag, inputs, config=workload.config), inputs, table.nbytes
