import re
import stat
import struct

import numpy as np
import pytest

from ember_hw.sim.model import SimulationError
from ember_hw.sim.softcore.run import Job, Kernel, argument_bytes, run_softcore

JOB = Job(
    kernel=Kernel.POP_PARTS,
    columns=2,
    bags=1,
    offsets=0x1000,
    indices=0x2000,
    table=0x3000,
    regions=[(0x3000, np.array([[7, 9]], np.int32))],
    pops_lines=True,
    row_events=1,
    sum_events=2,
    program_events=4,
    register_writes=[(0x800, 0xFFFF_FFFF)],
)
COUNTED = '"core_reads": 1, "core_words": 2, "unit_reads": 3, "unit_bytes": 4'


def program_of(tmp_path, body):
    """A stand-in for the simulation: a shell script whose $1 is the plan."""
    path = tmp_path / "softcore"
    path.write_text(f"#!/bin/sh\nset -e\ncp $1 {tmp_path}/plan\n{body}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def run(tmp_path, body):
    return run_softcore(
        program_of(tmp_path, body), b"code", JOB, latency_cycles=30, limit_cycles=1000
    )


def markers(text):
    """Copies the table to the output and prints what was counted with these markers."""
    return (
        "cp $(sed -n 's/^map 12288 //p' $1) $(sed -n 's/^output [0-9]* 8 //p' $1)\n"
        f"echo '{{{COUNTED}, \"markers\": {text}}}'"
    )


def test_arguments_are_laid_out_as_the_c_structure():
    words = struct.unpack("<14I", argument_bytes(JOB))
    assert words[:6] == (3, 1, 0x1000, 0x2000, 0x3000, 0x4000_0000)
    assert words[6:9] == (1, 2, 4)
    assert words[9:11] == (0x7000_0000, 0x7000_1000)
    assert words[11:] == (1, 0x800, 0xFFFF_FFFF)


def test_a_result_holds_the_sums_and_the_cycles_between_markers(tmp_path):
    result = run(tmp_path, markers("[[3, 5], [1, 20], [2, 120], [4, 130]]"))
    assert result.sums.tolist() == [[7, 9]]
    assert (result.setup_cycles, result.cycles) == (15, 100)
    assert (result.core_reads, result.core_words) == (1, 2)
    assert (result.unit_reads, result.unit_bytes) == (3, 4)
    plan = (tmp_path / "plan").read_text().splitlines()
    assert plan[:2] == ["latency 30", "limit 1000"]
    assert plan[-3:-1] == ["last 4", "last 5"]


def test_a_unit_that_does_not_end_well_is_an_error(tmp_path):
    message = r"^the access unit must end in state DONE, and the core saw another$"
    with pytest.raises(SimulationError, match=message):
        run(tmp_path, markers("[[3, 5], [1, 20], [2, 120], [5, 130]]"))


def test_what_the_simulation_says_when_it_fails_is_the_error(tmp_path):
    message = "the firmware must end within 1000 cycles, and didn't (cycle 1000)"
    with pytest.raises(SimulationError, match=f"^{re.escape(message)}$"):
        run(tmp_path, f'echo "{message}" >&2; exit 1')
