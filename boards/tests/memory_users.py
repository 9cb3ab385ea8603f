"""The two who ask a board's memory, the access unit and the host, for its tests."""

from __future__ import annotations

from ember_hw.rtl import axi


class MemoryUsers:
    """Both of those who ask a memory.

    Parameters
    ----------
    dut
        The memory, with the ports of `memory.memory_members`.
    simulator : Simulator
        Of it.
    random : numpy Generator
        Every stall of the unit comes from it.
    unit_stall : float
        Chance that the unit takes no beat in a cycle.
    """

    def __init__(self, dut, simulator, random, *, unit_stall: float = 0.5):
        self.dut = dut
        self.simulator = simulator
        self.random = random
        self.unit_stall = unit_stall

    def ask(self, reads: list[tuple[int, int, int]], seen: list, cycles: list | None = None):
        """Send reads (address, beats, id) and note the beats (id, data, last, response)."""

        async def sender(ctx):
            bus = self.dut.unit
            for address, beats, tag in reads:
                ctx.set(bus.araddr, address)
                ctx.set(bus.arlen, beats - 1)
                ctx.set(bus.arid, tag)
                ctx.set(bus.arvalid, 1)
                await ctx.tick().until(bus.arready)
                ctx.set(bus.arvalid, 0)

        async def receiver(ctx):
            bus, held, cycle = self.dut.unit, None, 0
            while len(seen) < sum(beats for _, beats, _ in reads):
                takes = int(self.random.random() >= self.unit_stall)
                ctx.set(bus.rready, takes)
                _, _, valid, *beat = await ctx.tick().sample(
                    bus.rvalid, bus.rid, bus.rdata, bus.rlast, bus.rresp
                )
                assert held is None or (valid and beat == held), "payload let go"
                held = beat if valid and not takes else None
                if valid and takes:
                    seen.append((beat[0], beat[1], beat[2], axi.Response(beat[3])))
                    if cycles is not None:
                        cycles.append(cycle)
                cycle += 1

        self.simulator.add_testbench(sender)
        self.simulator.add_testbench(receiver)

    async def access(self, ctx, address: int, data: int | None = None) -> tuple[int, int]:
        """Access a beat as the host does; returns data and error."""
        port = self.dut.link
        request = {"address": address, "is_write": data is not None, "data": data or 0}
        ctx.set(port.request.payload, request)
        ctx.set(port.request.valid, 1)
        await ctx.tick().until(port.request.ready)
        ctx.set(port.request.valid, 0)
        # What the port shows later must not matter.
        ctx.set(port.request.payload, {"address": 0, "is_write": 0, "data": 0})
        while not ctx.get(port.answer_valid):
            await ctx.tick()
        answer = ctx.get(port.answer_data), ctx.get(port.answer_error)
        await ctx.tick()
        return answer
