import re
from dataclasses import replace

import pytest

from ember_hw.sim.dram import DRAM_PRESETS

DDR4 = DRAM_PRESETS["ddr4-2400"]


@pytest.mark.parametrize(
    ("name", "gigabytes_per_second", "megabytes"),
    [
        ("ecpix5-ddr3", 0.6, 512),
        ("ulx3s-sdram", 0.2, 32),
        ("ddr4-2400", 19.2, 8192),
        ("hbm2-pc", 14.4, 256),
    ],
)
def test_presets_have_the_rate_and_size_of_their_parts(name, gigabytes_per_second, megabytes):
    dram = DRAM_PRESETS[name]
    assert dram.peak_bytes_per_second == pytest.approx(gigabytes_per_second * 1e9)
    assert dram.size_bytes == megabytes << 20
    assert dram.source


def test_a_description_names_every_parameter():
    assert DDR4.describe() == (
        "ddr4-2400 (modelled DRAM: 19.2 GB/s, unit 300 MHz, memory 1200 MHz; accesses of 64 bytes, "
        "FR-FCFS over 32, 64 waiting, 8 + 10 cycles to and from the port; map row16 bank2 group2 "
        "column7; clocks: burst 4, cl 16, trcd 16, trp 16, tras 39, trc 55, trtp 9, trrd_s 4, "
        "trrd_l 6, tfaw 26, tccd_s 4, tccd_l 6, trfc 421, trefi 9364, cwl 12, twr 18, twtr_s 3, "
        "twtr_l 9, trtw 10, trtrs 2)"
    )
    assert "two command buses" in DRAM_PRESETS["hbm2-pc"].describe()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"burst": 0}, "burst must be 1 to 1048575 clocks, not 0"),
        ({"trcd": -1}, "trcd must be 0 to 1048575 clocks, not -1"),
        (
            {"trefi": 476},
            "trefi must be more than trfc + trp + tras (476 clocks), not 476: "
            "nothing but refreshes would happen",
        ),
        (
            {"trtw": 7},
            "trtw must be at least cl + burst - cwl (8 clocks), not 7: data of a READ and a WRITE "
            "would meet on the bus",
        ),
    ],
)
def test_impossible_timing_is_refused(changes, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        replace(DDR4.timing, **changes)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"access_bytes": 48}, "access_bytes must be a power of two from 4 to 256, not 48"),
        ({"queue_entries": 0}, "queue_entries must be 1 to 2**32 - 1, not 0"),
        ({"front_cycles": -1}, "front_cycles must be 0 to 2**32 - 1, not -1"),
        (
            {"mapping": "row16 lane2"},
            "mapping must be parts such as 'row16 bank2 column7', highest first, not 'row16 lane2'",
        ),
        (
            {"mapping": "bank2 column7"},
            "mapping must have rows, at most 16 parts and at most 30 bits a field, "
            "not 'bank2 column7'",
        ),
        (
            {"mapping": "row16 bank7"},
            "mapping must have at most 6 bits of banks, groups and ranks, not 'row16 bank7'",
        ),
    ],
)
def test_impossible_channels_are_refused(changes, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        replace(DDR4, **changes)
