"""ULX3S with an LFE5U-85F: 32 MB of SDR SDRAM, UART over its FTDI chip."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Const, Elaboratable, Module, Signal
from amaranth.lib import io, wiring
from amaranth.lib.cdc import FFSynchronizer

from ember_hw.boards.bitstream.clocks import Ecp5Clocks
from ember_hw.boards.bitstream.target import BoardMemory, BoardTarget, Device
from ember_hw.boards.block_memory import BlockMemory
from ember_hw.boards.core import BoardCore
from ember_hw.boards.description import BoardDescription
from ember_hw.boards.leds import signs_of_life
from ember_hw.boards.links.uart import BAUD, Uart
from ember_hw.boards.sdram.chip import CHIPS
from ember_hw.boards.sdram.memory import DOMAIN, SdramMemory
from ember_hw.boards.sdram.pads import SdramPads, SdramPorts
from ember_hw.config import AcceleratorConfig

_OSCILLATOR_MHZ = 25.0
_CLOCK_MHZ = {"sync": 50.0, DOMAIN: 100.0}
_CHIP = CHIPS["ulx3s"]

#: The host places tables from here on.
_TABLES_BEGIN = 1 << 20
_MEMORIES = {
    "sdram": BoardMemory(kind="SDRAM", base=0, num_bytes=_CHIP.size_bytes),
    # More than half of the chip's block RAM; the next power of two is more than there is.
    "block": BoardMemory(kind="block RAM", base=_TABLES_BEGIN, num_bytes=1 << 18),
}


class Ulx3s(Elaboratable):
    """The board's gateware: link, access unit, memory; LEDs that say whether it lives.

    LED 0: the SDRAM is initialised; LED 1: a program has ended since the last one lit it; LED 7:
    blinks every second.

    Parameters
    ----------
    description : BoardDescription
    memory : str
        "sdram" or "block".
    """

    def __init__(self, description: BoardDescription, memory: str):
        self.description = description
        self.memory = memory

    def elaborate(self, platform):
        m = Module()
        uses_sdram = self.memory == "sdram"
        output_mhz = _CLOCK_MHZ if uses_sdram else {"sync": _CLOCK_MHZ["sync"]}
        m.submodules.clocks = clocks = Ecp5Clocks(input_mhz=_OSCILLATOR_MHZ, output_mhz=output_mhz)
        m.domains += clocks.domains
        m.submodules.core = core = BoardCore(description=self.description)
        m.submodules.uart = uart = Uart(clock_hz=self.description.clock_hz, baud=BAUD)
        wiring.connect(m, uart.o, core.i)
        wiring.connect(m, core.o, uart.i)
        pins = platform.request("uart", dir="-")
        m.submodules.rx = rx = io.Buffer("i", pins.rx)
        m.submodules.tx = tx = io.Buffer("o", pins.tx)
        m.d.comb += [uart.rx.eq(rx.i), tx.o.eq(uart.tx)]
        is_ready = self._sdram(m, core, platform) if uses_sdram else self._block_ram(m, core)
        self._leds(m, platform, is_ready, core.irq)
        return m

    def _sdram(self, m: Module, core: BoardCore, platform) -> Signal:
        m.submodules.memory = memory = SdramMemory(
            chip=_CHIP, clock_mhz=_CLOCK_MHZ[DOMAIN], config=self.description.config
        )
        pins = platform.request("sdram", dir="-")
        m.submodules.pads = pads = SdramPads(
            chip=_CHIP, ports=SdramPorts.of_resource(pins), domain=DOMAIN
        )
        # Half a period behind the controller's clock: see `SdramPads`.
        m.submodules.sdram_clock = clock = io.DDRBuffer("o", pins.clk, o_domain=DOMAIN)
        wiring.connect(m, core.unit_memory[0], memory.unit)
        wiring.connect(m, core.link_memory, memory.link)
        wiring.connect(m, memory.pins, pads.pins)
        is_ready = Signal()
        m.d.comb += [clock.o[0].eq(0), clock.o[1].eq(1)]
        m.submodules.is_ready = FFSynchronizer(memory.initialised, is_ready)
        return is_ready

    def _block_ram(self, m: Module, core: BoardCore) -> Const:
        m.submodules.memory = memory = BlockMemory(
            config=self.description.config,
            base=self.description.memory_base,
            num_bytes=self.description.memory_bytes,
        )
        wiring.connect(m, core.unit_memory[0], memory.unit)
        wiring.connect(m, core.link_memory, memory.link)
        return Const(1)

    def _leds(self, m: Module, platform, is_ready, irq) -> None:
        toggled, blinks = signs_of_life(m, clock_hz=self.description.clock_hz, irq=irq)
        for number, value in ((0, is_ready), (1, toggled), (7, blinks)):
            port = platform.request("led", number, dir="-")
            m.submodules[f"led{number}"] = led = io.Buffer("o", port)
            m.d.comb += led.o.eq(value)


def _platform() -> Any:
    # The extra `boards`, which type checks do without.
    from amaranth_boards.ulx3s import (  # pyright: ignore[reportMissingImports]
        ULX3S_85F_Platform,
    )

    return ULX3S_85F_Platform()


TARGET = BoardTarget(
    name="ulx3s",
    device=Device(
        name="LFE5U-85F-6BG381C",
        nextpnr=("--85k", "--package", "CABGA381", "--speed", "6"),
        capacity={"LUT": 83_640, "FF": 83_640, "EBR": 208, "DSP": 156},
    ),
    clock_mhz=_CLOCK_MHZ,
    memories=_MEMORIES,
    # Two loops, as a bag of lookups has: place and route take time that grows faster than the unit.
    # Queues shorter than these would be LUT memory, which is harder to place than block RAM.
    config=AcceleratorConfig(
        name="ulx3s",
        data_width_bits=128,
        address_width_bits=32,
        traversal_units=2,
        exports=3,
        bundle_scalars=2,
        outstanding_reads=16,
        max_burst_beats=16,
        reorder_buffer_beats=128,
        execute="reduce",
    ),
    platform=_platform,
    top=Ulx3s,
)
