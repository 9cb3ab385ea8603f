from __future__ import annotations

import pytest

from ember_hw import isa
from ember_hw.config import AcceleratorConfig
from ember_hw.rtl.layouts import request_tag_bits, tag_bits
from ember_hw.rtl.memory_ports import MemoryPorts
from ember_hw.rtl.tests.harness import CONFIG, Bench, ReadMemory, payloads, stamp

BASE = CONFIG.with_changes(outstanding_reads=64, reorder_buffer_beats=64)
CONFIGS = {
    "one": BASE,
    "one_and_index": BASE.with_changes(index_port_bits=128),
    "two": BASE.with_changes(memory_ports=2, port_interleave_bytes=64),
    "four": BASE.with_changes(memory_ports=4, port_interleave_bytes=256),
    "regions": BASE.with_changes(memory_ports=2, port_interleave_bytes=1 << 18),
    "eight_and_index": BASE.with_changes(
        memory_ports=8, port_interleave_bytes=128, index_port_bits=64
    ),
}


class Ports(Bench):
    """Memory ports, and a memory at each that notes who was asked."""

    def __init__(
        self,
        config: AcceleratorConfig,
        *,
        seed: int = 0,
        stall: float = 0.0,
        pause: float = 0.0,
        latency: tuple[int, int] = (1, 30),
    ):
        self.config = config
        super().__init__(MemoryPorts(config=config), seed=seed)
        self.memories = []
        buses = list(self.dut.memory)
        if config.index_port_bits:
            buses.append(self.dut.index_memory)
        for bus in buses:
            memory = ReadMemory(
                self,
                bus_bytes=len(bus.rdata) // 8,
                latency=latency,
                interleave=True,
                pause=pause,
            )
            self.process(memory.serve_axi(bus, stall=stall), background=True)
            self.memories.append(memory)
        self.beats = {
            "index": self.watch(self.dut.index_valid, self.dut.index_beat),
            "row": self.watch(self.dut.row_valid, self.dut.row_beat),
        }

    def requests(self, client: str, count: int, tags: int = 4) -> list[dict]:
        """Return reads that a client may ask for: none crosses the ports' interleave."""
        config = self.config
        index_bytes = (config.index_port_bits or config.data_width_bits) // 8
        result = []
        for number in range(count):
            address, length = self.random.randrange(0, 1 << 20, 64), self.random.randrange(8)
            if client == "index":
                length = 64 // index_bytes - 1
            hint = self.random.choice(list(isa.Hint))
            read = {"address": address, "length": length, "tag": number % tags, "hint": hint}
            result.append(read)
        return result

    def port(self, address: int) -> int:
        """Return the number of the port that an address belongs to."""
        return address // self.config.port_interleave_bytes % self.config.memory_ports

    def check(self, client: str, requests: list[dict]) -> None:
        """Compare the beats of a client with its requests, tag by tag and port by port."""
        own = client == "index" and self.config.index_port_bits
        size = (own or self.config.data_width_bits) // 8
        expected: dict[int, list] = {}
        for request in requests:
            port = 0 if own else self.port(request["address"])
            tag = request["tag"] | port << request_tag_bits(self.config)
            for i in range(request["length"] + 1):
                word = int.from_bytes(stamp(request["address"] + size * i, size), "little")
                expected.setdefault(tag, []).append((word, int(i == request["length"])))
        seen: dict[int, list] = {}
        for beat in payloads(self.beats[client]):
            seen.setdefault(beat["tag"], []).append((beat["data"], beat["last"]))
        assert seen == expected, f"seed {self.seed}, {client}"


@pytest.mark.parametrize("name", CONFIGS)
@pytest.mark.parametrize("stall", [0.0, 0.5])
def test_each_read_goes_to_its_port_and_each_beat_to_its_client(name: str, stall: float):
    ports = Ports(CONFIGS[name], seed=1, stall=stall, pause=stall)
    dut, config = ports.dut, ports.config
    requests = {client: ports.requests(client, 20) for client in ("index", "row")}
    bus_bytes = config.bus_bytes
    for read in requests["row"]:  # as the burst splitter cuts them
        room = min(4096, config.port_interleave_bytes) - read["address"] % min(
            4096, config.port_interleave_bytes
        )
        read["length"] = min(read["length"], room // bus_bytes - 1)
    ports.send(dut.index_request, requests["index"], stall=stall)
    ports.send(dut.row_request, requests["row"], stall=stall)
    wanted = {client: sum(r["length"] + 1 for r in reads) for client, reads in requests.items()}

    async def wait(ctx):
        while any(len(ports.beats[client]) < count for client, count in wanted.items()):
            _, _, idle = await ctx.tick().sample(dut.idle)
            assert not idle or all(memory.is_idle for memory in ports.memories)
        await ctx.tick().repeat(5)
        assert ctx.get(dut.idle)

    ports.process(wait)
    ports.run(4000)
    for client, reads in requests.items():
        ports.check(client, reads)
    for number, memory in enumerate(ports.memories[: config.memory_ports]):
        assert all(ports.port(address) == number for address, _, _ in memory.requests)
    if config.index_port_bits:
        assert len(ports.memories[-1].requests) == 20
        top = 1 << tag_bits(config) - 1
        assert all(tag < top for m in ports.memories for _, _, tag in m.requests)


def test_a_busy_port_does_not_hold_back_the_other():
    config = CONFIGS["two"]
    dut = MemoryPorts(config=config)
    bench = Bench(dut)
    reads = [{"address": 64 * i, "length": 0, "tag": i % 4, "hint": 0} for i in range(20)]
    bench.send(dut.row_request, reads)
    asked = [bench.watch(bus.arvalid & bus.arready, bus.araddr) for bus in dut.memory]

    async def drive(ctx):
        ctx.set(dut.memory[1].arready, 1)  # port 0 takes nothing
        await ctx.tick().repeat(40)
        assert ctx.get(dut.waiting)
        assert payloads(asked[1]) == [64 * i for i in range(1, 20, 2)]
        ctx.set(dut.memory[0].arready, 1)
        await ctx.tick().repeat(20)
        assert payloads(asked[0]) == [64 * i for i in range(0, 20, 2)]

    bench.process(drive)
    bench.run(100)


def test_ports_share_the_beats_fairly_and_without_a_bubble():
    """Both ports return a beat a cycle; one a cycle is handed on, in turn."""
    config = CONFIGS["two"]
    ports = Ports(config, latency=(2, 2))
    reads = [{"address": 64 * i, "length": 7, "tag": i % 4, "hint": 0} for i in range(40)]
    ports.send(ports.dut.row_request, reads)

    async def wait(ctx):
        while len(ports.beats["row"]) < 320:
            await ctx.tick()

    ports.process(wait)
    ports.run(1000)
    steady = ports.beats["row"][40:280]
    assert steady[-1].cycle - steady[0].cycle == len(steady) - 1
    numbers = [beat["tag"] >> request_tag_bits(config) for beat in payloads(steady)]
    assert abs(numbers.count(0) - numbers.count(1)) <= 2


def test_a_port_asks_for_no_more_beats_than_its_queue_holds():
    """The memories answer at once, and a port's beats can leave only every other cycle."""
    config = CONFIGS["two"].with_changes(reorder_buffer_beats=16)
    ports = Ports(config, latency=(1, 1))
    reads = [{"address": 64 * i, "length": 7, "tag": i % 4, "hint": 0} for i in range(60)]
    ports.send(ports.dut.row_request, reads)

    async def wait(ctx):
        while len(ports.beats["row"]) < 480:
            await ctx.tick()

    ports.process(wait)
    ports.run(2000)  # the queues' assertions hold
    ports.check("row", reads)


@pytest.mark.parametrize("name", ["one", "two", "eight_and_index"])
@pytest.mark.parametrize("cycle", [3, 6, 9, 14])
def test_a_stop_drains_and_leaves_nothing_behind(name: str, cycle: int):
    ports = Ports(CONFIGS[name], seed=cycle, stall=0.3, latency=(5, 20))
    dut = ports.dut
    reads = {client: ports.requests(client, 12) for client in ("index", "row")}
    for read in reads["row"]:
        read["length"] = read["length"] % (64 // ports.config.bus_bytes)

    async def drive(ctx):
        ctx.set(dut.index_request.valid, 1)
        ctx.set(dut.row_request.valid, 1)
        for number in range(cycle):
            ctx.set(dut.index_request.payload, reads["index"][number % 12])
            ctx.set(dut.row_request.payload, reads["row"][number % 12])
            await ctx.tick()
        ctx.set(dut.stop, 1)
        asked = sum(len(memory.requests) for memory in ports.memories)
        await ctx.tick().until(dut.idle)
        assert all(memory.is_idle for memory in ports.memories)
        # At most what was shown on each port's AR.
        now = sum(len(memory.requests) for memory in ports.memories)
        assert now - asked <= len(ports.memories)
        await ctx.tick().repeat(30)
        ctx.set(dut.index_request.valid, 0)
        ctx.set(dut.row_request.valid, 0)
        ctx.set(dut.stop, 0)
        await ctx.tick().repeat(30)
        assert sum(len(memory.requests) for memory in ports.memories) == now
        assert ctx.get(dut.idle)

    ports.process(drive)
    ports.run(1000)
