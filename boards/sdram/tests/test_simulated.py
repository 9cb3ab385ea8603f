"""The chip behind flat pins and the pads' registers answers as it does without them."""

from __future__ import annotations

import pytest

from ember_hw.boards.sdram.tests.memory_setup import MemorySetup

pytestmark = pytest.mark.rtl


def test_unit_and_host_reach_the_chip_through_the_pads():
    setup = MemorySetup(1, with_pads=True)
    seen: list = []
    setup.ask([(64 * i, 4, i) for i in range(8)], seen)
    answers = []

    async def host(ctx):
        await setup.access(ctx, 0x8000, data=0xFACE << 96)
        answers.append(await setup.access(ctx, 0x8000))

    setup.simulator.add_testbench(host)
    setup.simulator.run()
    assert [(tag, data) for tag, data, _, _ in seen] == [
        (i, setup.beat(64 * i + 16 * beat)) for i in range(8) for beat in range(4)
    ]
    assert answers == [(0xFACE << 96, 0)]
    assert setup.model.violations() == []
