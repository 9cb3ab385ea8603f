"""ECPIX-5 with an LFE5UM5G-85F: 512 MB of DDR3 SDRAM behind LiteDRAM, UART over its FTDI chip."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Elaboratable, Module
from amaranth.lib import io, wiring

from ember_hw.boards.bitstream.target import BoardMemory, BoardTarget, Device
from ember_hw.boards.core import BoardCore
from ember_hw.boards.ddr3 import CPU_KIND, HOST_KIND
from ember_hw.boards.ddr3.chip import CHIPS
from ember_hw.boards.ddr3.core import DdrCore
from ember_hw.boards.ddr3.generate import PACKAGES, Order
from ember_hw.boards.ddr3.memory import DdrMemory
from ember_hw.boards.description import BoardDescription
from ember_hw.boards.leds import signs_of_life
from ember_hw.boards.links.uart import BAUD, Uart
from ember_hw.config import AcceleratorConfig

_OSCILLATOR_MHZ = 100.0
CLOCK_MHZ = {"sync": 75.0}
_CHIP = CHIPS["ecpix5"]
_DEVICE = "LFE5UM5G-85F-8BG554I"
#: Native ports: bank machines in pairs.
PORTS = 4

_MEMORIES = {
    "ddr3": BoardMemory(kind=HOST_KIND, base=0, num_bytes=_CHIP.size_bytes),
    # The fallback: a VexRiscv initialises the chip with LiteX's own program.
    "ddr3-cpu": BoardMemory(kind=CPU_KIND, base=0, num_bytes=_CHIP.size_bytes),
}
_CPUS = {"ddr3": None, "ddr3-cpu": "vexriscv"}


class Ecpix5(Elaboratable):
    """The board's gateware: link, access unit, DDR3; LEDs that say whether it lives.

    LED 0: the DDR3 is initialised; LED 1: a program has ended since the last one lit it; LED 2:
    blinks every second.

    Parameters
    ----------
    description : BoardDescription
    memory : str
        "ddr3" or "ddr3-cpu".
    """

    def __init__(self, description: BoardDescription, memory: str):
        self.description = description
        self.memory = memory

    def elaborate(self, platform):
        m = Module()
        config = self.description.config
        m.submodules.memory = memory = DdrMemory(chip=_CHIP, ports=PORTS, config=config)
        oscillator = platform.request(platform.default_clk, dir="-")
        m.submodules.clock = clock = io.Buffer("i", oscillator)
        m.submodules.button = button = io.Buffer("i", platform.request("rst", dir="-"))
        m.submodules.ddr3 = ddr3 = DdrCore(
            order=Order(
                kind="core",
                chip=_CHIP,
                ports=PORTS,
                clock_mhz=CLOCK_MHZ["sync"],
                input_mhz=_OSCILLATOR_MHZ,
                device=_DEVICE,
                cpu=_CPUS[self.memory],
            ),
            memory=memory,
            clock=clock.i,
            reset=button.i,
            pads=platform.request("ddr3", dir="-"),
        )
        m.domains += ddr3.domain
        m.submodules.core = core = BoardCore(description=self.description, has_board_bus=True)
        m.submodules.uart = uart = Uart(clock_hz=self.description.clock_hz, baud=BAUD)
        wiring.connect(m, uart.o, core.i)
        wiring.connect(m, core.o, uart.i)
        pins = platform.request("uart", dir="-")
        m.submodules.rx = rx = io.Buffer("i", pins.rx)
        m.submodules.tx = tx = io.Buffer("o", pins.tx)
        m.d.comb += [uart.rx.eq(rx.i), tx.o.eq(uart.tx)]
        wiring.connect(m, core.unit_memory[0], memory.unit)
        wiring.connect(m, core.link_memory, memory.link)
        wiring.connect(m, core.board_bus, ddr3.bus)
        m.d.comb += memory.initialised.eq(ddr3.initialised)
        self._leds(m, platform, ddr3.initialised, core.irq)
        return m

    def _leds(self, m: Module, platform, is_ready, irq) -> None:
        toggled, blinks = signs_of_life(m, clock_hz=self.description.clock_hz, irq=irq)
        for number, value in enumerate((is_ready, toggled, blinks)):
            port = platform.request("rgb_led", number, dir="-")
            m.submodules[f"led{number}"] = led = io.Buffer("o", port.g)
            m.d.comb += led.o.eq(value)


def _platform() -> Any:
    # The extra `boards`, which type checks do without.
    from amaranth_boards.ecpix5 import (  # pyright: ignore[reportMissingImports]
        ECPIX585Platform,
    )

    return ECPIX585Platform()


TARGET = BoardTarget(
    name="ecpix5",
    device=Device(
        name=_DEVICE,
        nextpnr=("--um5g-85k", "--package", "CABGA554", "--speed", "8"),
        capacity={"LUT": 83_640, "FF": 83_640, "EBR": 208, "DSP": 156},
    ),
    clock_mhz=CLOCK_MHZ,
    memories=_MEMORIES,
    # Two loops, as a bag of lookups has: place and route take time that grows faster than the unit.
    config=AcceleratorConfig(
        name="ecpix5",
        data_width_bits=128,
        address_width_bits=32,
        traversal_units=2,
        exports=3,
        bundle_scalars=2,
        outstanding_reads=32,
        max_burst_beats=16,
        reorder_buffer_beats=128,
        token_entries=64,
        lines_per_stream=8,
        bundle_entries=64,
        descriptor_entries=8,
        execute="reduce",
    ),
    platform=_platform,
    top=Ecpix5,
    packages=PACKAGES,
    proof="built in parts",
)
