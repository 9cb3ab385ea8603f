"""A memory, a model of the controller's native ports, and both of those who ask it."""

from __future__ import annotations

from collections import deque
from dataclasses import replace

import numpy as np
from amaranth.sim import Simulator

from ember_hw.boards.ddr3.chip import BEAT_BYTES, CHIPS, Ddr3Chip
from ember_hw.boards.ddr3.memory import DdrMemory
from ember_hw.boards.tests.memory_users import MemoryUsers
from ember_hw.config import AcceleratorConfig
from ember_hw.rtl import axi

CONFIG = AcceleratorConfig.preset("small").with_changes(address_width_bits=32)
#: Eight rows a bank, of sixteen beats.
SMALL = replace(CHIPS["ecpix5"], name="small", row_bits=3, column_bits=7)


class NativePorts:
    """Takes commands and answers them, each port's in order, of all ports one answer a cycle.

    Ports overtake each other at random. `stall` is the chance that a port takes no command in a
    cycle, or that no answer comes.
    """

    def __init__(self, dut: DdrMemory, random, *, stall: float, latency: int = 8):
        self.dut = dut
        self.random = random
        self.stall = stall
        self.latency = latency
        size = dut.chip.size_bytes
        self.content = bytearray(random.integers(0, 256, size, dtype=np.uint8).tobytes())
        self.banks_seen: list[set[int]] = [set() for _ in dut.ports]
        self.commands = 0

    def beat(self, address: int) -> int:
        return int.from_bytes(self.content[address : address + BEAT_BYTES], "little")

    async def run(self, ctx):
        dut, pending, cycle = self.dut, [deque() for _ in self.dut.ports], 0
        while True:
            for port in dut.ports:
                ctx.set(port.cmd_ready, int(self.random.random() >= self.stall))
                ctx.set(port.rdata_valid, 0)
                ctx.set(port.wdata_ready, 0)
            ctx.set(dut.read_data, int(self.random.integers(1 << 62)))
            ripe = [
                number
                for number, queue in enumerate(pending)
                if queue and queue[0][0] <= cycle and self.random.random() >= self.stall
            ]
            written = None
            if ripe:
                number = int(self.random.choice(ripe))
                _, is_write, address = pending[number].popleft()
                if is_write:
                    ctx.set(dut.ports[number].wdata_ready, 1)
                    written = address
                else:
                    ctx.set(dut.ports[number].rdata_valid, 1)
                    ctx.set(dut.read_data, self.beat(address))
            sampled = [
                value
                for port in dut.ports
                for value in (port.cmd_valid, port.cmd_ready, port.cmd_we, port.cmd_addr)
            ]
            _, _, write_data, *values = await ctx.tick().sample(dut.write_data, *sampled)
            if written is not None:
                data = write_data.to_bytes(BEAT_BYTES, "little")
                self.content[written : written + BEAT_BYTES] = data
            for number, queue in enumerate(pending):
                valid, ready, is_write, beat = values[4 * number : 4 * number + 4]
                if valid and ready:
                    self.commands += 1
                    bank = beat >> dut.chip.page_beat_bits & (dut.chip.banks - 1)
                    self.banks_seen[number].add(bank)
                    queue.append((cycle + self.latency, is_write, beat * BEAT_BYTES))
            cycle += 1


class MemorySetup(MemoryUsers):
    """Memory and ports; every stall comes from one seed."""

    def __init__(
        self,
        seed: int,
        *,
        chip: Ddr3Chip = SMALL,
        ports: int = 4,
        stall: float = 0.3,
        unit_stall: float = 0.5,
        limit: int = 6000,
    ):
        random, dut = np.random.default_rng(seed), DdrMemory(chip=chip, ports=ports, config=CONFIG)
        super().__init__(dut, Simulator(dut), random, unit_stall=unit_stall)
        self.ports = NativePorts(dut, random, stall=stall)
        self.simulator.add_clock(1e-6)
        self.simulator.add_testbench(self.ports.run, background=True)
        self.limit = limit
        self.simulator.add_testbench(self._limit, background=True)

    async def _limit(self, ctx):
        ctx.set(self.dut.initialised, 1)
        for _ in range(self.limit):
            await ctx.tick()
        raise AssertionError(f"not done after {self.limit} cycles")

    def expected(self, reads: list[tuple[int, int, int]]) -> list[tuple]:
        """Return the beats that memory as it is now answers."""
        return [
            (tag, self.ports.beat(address + BEAT_BYTES * i), int(i == beats - 1), axi.Response.OKAY)
            for address, beats, tag in reads
            for i in range(beats)
        ]
