"""Clock domains of an ECP5 board, from one PLL."""

from __future__ import annotations

from amaranth.hdl import ClockDomain, Const, Elaboratable, Instance, Module, Signal
from amaranth.lib import io
from amaranth.lib.cdc import ResetSynchronizer

#: What the PLL's oscillator can run at. Ref: Lattice FPGA-DS-02012, sysCLOCK PLL timing.
_OSCILLATOR_MHZ = (400.0, 800.0)
_MOST_DIVISION = 128
#: Names of the PLL's outputs; the first feeds it back.
_OUTPUTS = ("CLKOP", "CLKOS", "CLKOS2", "CLKOS3")


def divisions(input_mhz: float, output_mhz: dict[str, float]) -> tuple[int, dict[str, int]]:
    """Return the PLL's feedback division, and that of each output.

    Parameters
    ----------
    input_mhz : float
    output_mhz : dict of str to float
        By domain; the first is a multiple of the input.

    Raises
    ------
    ValueError
        There are more clocks than outputs, or no such division.

    Examples
    --------
    >>> divisions(25.0, {"sync": 50.0, "sdram": 100.0})
    (2, {'sync': 16, 'sdram': 8})
    """
    if not 1 <= len(output_mhz) <= len(_OUTPUTS):
        raise ValueError(f"clocks of a PLL must be 1 to {len(_OUTPUTS)}, not {len(output_mhz)}")
    first = next(iter(output_mhz.values()))
    feedback = round(first / input_mhz)
    fastest = int(_OSCILLATOR_MHZ[1] // first)
    # The fastest oscillator jitters least.
    for division in range(min(fastest, _MOST_DIVISION), 0, -1):
        oscillator = first * division
        if feedback * input_mhz != first or oscillator < _OSCILLATOR_MHZ[0]:
            break
        found = {name: round(oscillator / mhz) for name, mhz in output_mhz.items()}
        if all(
            1 <= found[name] <= _MOST_DIVISION and found[name] * mhz == oscillator
            for name, mhz in output_mhz.items()
        ):
            return feedback, found
    wanted = ", ".join(f"{name} {mhz:g} MHz" for name, mhz in output_mhz.items())
    raise ValueError(
        f"clocks must be such that a PLL can make them of {input_mhz:g} MHz (the first a multiple "
        f"of it, all of them parts of one of {_OSCILLATOR_MHZ[0]:g} to {_OSCILLATOR_MHZ[1]:g} "
        f"MHz), not {wanted}"
    )


class Ecp5Clocks(Elaboratable):
    """Drives clock domains from the board's oscillator; their resets end once the PLL is locked.

    The domains are the parent's: ``m.domains += clocks.domains``. nextpnr derives their frequencies
    from the oscillator's and the PLL's divisions.

    Parameters
    ----------
    input_mhz : float
        The oscillator.
    output_mhz : dict of str to float
        By domain, see `divisions`.
    """

    def __init__(self, *, input_mhz: float, output_mhz: dict[str, float]):
        self.input_mhz = input_mhz
        self.output_mhz = output_mhz
        self.feedback, self.divisions = divisions(input_mhz, output_mhz)
        self.domains = [ClockDomain(name) for name in output_mhz]

    def elaborate(self, platform):
        m = Module()
        m.submodules.oscillator = oscillator = io.Buffer(
            "i", platform.request(platform.default_clk, dir="-")
        )
        locked = Signal()
        ports: dict[str, object] = {}
        for output, domain in zip(_OUTPUTS, self.domains, strict=False):
            division = self.divisions[domain.name]
            m.submodules[f"{domain.name}_reset"] = ResetSynchronizer(~locked, domain=domain.name)
            ports |= {
                f"p_{output}_ENABLE": "ENABLED",
                f"p_{output}_DIV": division,
                f"p_{output}_CPHASE": division - 1,
                f"p_{output}_FPHASE": 0,
                f"o_{output}": domain.clk,
            }
        first = next(iter(self.output_mhz))
        m.submodules.pll = Instance(
            "EHXPLLL",
            a_FREQUENCY_PIN_CLKI=f"{self.input_mhz:g}",
            a_FREQUENCY_PIN_CLKOP=f"{self.output_mhz[first]:g}",
            a_ICP_CURRENT="12",
            a_LPF_RESISTOR="8",
            a_MFG_ENABLE_FILTEROPAMP="1",
            a_MFG_GMCREF_SEL="2",
            p_CLKI_DIV=1,
            p_CLKFB_DIV=self.feedback,
            p_FEEDBK_PATH="CLKOP",
            p_OUTDIVIDER_MUXA="DIVA",
            p_OUTDIVIDER_MUXB="DIVB",
            p_OUTDIVIDER_MUXC="DIVC",
            p_OUTDIVIDER_MUXD="DIVD",
            i_CLKI=oscillator.i,
            i_CLKFB=ports[f"o_{_OUTPUTS[0]}"],
            i_RST=Const(0),
            i_STDBY=Const(0),
            i_ENCLKOP=Const(0),
            o_LOCK=locked,
            **ports,
        )
        return m
