"""Runs tests and programs on a model that counts, and reports what they reach.

The benches of cocotb (registers, stalls, faults, resets), the case table, the op classes' programs,
directed and random ones run on one config; their counts are added. Points that `waivers.txt` lists
need not be reached. What is missing stands in ``build/coverage/missing.txt``. The end is a failure
if a bar is not met, a test fails, or a waiver waives nothing.
"""

from __future__ import annotations

import argparse
import ctypes
import sys
from collections import Counter as Tally
from collections.abc import Iterator
from itertools import chain

from cocotb_tests.configs import CONFIGS
from cocotb_tests.coverage import waivers
from cocotb_tests.coverage.directed import directed
from cocotb_tests.coverage.functional import Functional
from cocotb_tests.coverage.points import Point, points_of, read_counts
from cocotb_tests.coverage.programs import case_table, op_classes, random_programs
from cocotb_tests.coverage.report import Blocks, listing
from cocotb_tests.runner import OUTPUT_FOLDER, names_of, simulate
from cocotb_tests.test_benches import BENCHES
from ember_hw.bench.fuzzing.case import Case
from ember_hw.bench.fuzzing.compare import judge
from ember_hw.bench.fuzzing.hardware import Hardware
from ember_hw.config import AcceleratorConfig
from ember_hw.host.backends.verilog import cached_verilog

FOLDER = OUTPUT_FOLDER.parent / "coverage"
CONFIG = CONFIGS["tiny"]

_Counts = Tally[tuple[str, str, str, str]]


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def run_programs(
    config: AcceleratorConfig, count: int, failures: list[str]
) -> tuple[_Counts, Functional]:
    """Run all programs, the random ones as many as told. Return counts and what they used."""
    hardware = Hardware(config, optimise=False, coverage=True, progress=_say)
    functional = Functional(config)
    cases: Iterator[tuple[str, Case]] = chain(
        case_table(config),
        op_classes(config),
        directed(config),
        random_programs(config, count),
    )
    ran = 0
    for name, case in cases:
        outcome = hardware.run(case, with_counters=True)
        reason = judge(case, outcome)
        if reason is not None:
            failures.append(f"{name}: {reason}")
        functional.note(case, outcome)
        ran += 1
    path = FOLDER / "programs.dat"
    ctypes.CDLL(str(hardware.library)).ember_write_coverage(str(path).encode())
    hardware.close()
    _say(f"programs: {ran}")
    return read_counts(path), functional


def run_benches(config: AcceleratorConfig, failures: list[str]) -> _Counts:
    """Run all benches. Return their counts."""
    counts: _Counts = Tally()
    for bench in BENCHES:
        names = names_of(bench)
        outcome = simulate(bench, config, names, coverage=True)
        failed = [name for name in names if outcome.failures.get(name, "not run") is not None]
        failures += [f"{bench}: {name}" for name in failed]
        counts.update(read_counts(outcome.log.with_name("coverage.dat")))
        _say(f"{bench}: {len(names) - len(failed)} of {len(names)} tests passed")
    return counts


def main(arguments: list[str] | None = None) -> int:
    """Run, report, and return 0 if all is well."""
    parser = argparse.ArgumentParser(prog="make coverage", description="coverage of the RTL")
    parser.add_argument("--random", type=int, default=500, help="random programs")
    parser.add_argument("--no-benches", action="store_true", help="leave out cocotb")
    options = parser.parse_args(arguments)
    FOLDER.mkdir(parents=True, exist_ok=True)
    failures: list[str] = []
    counts, functional = run_programs(CONFIG, options.random, failures)
    if not options.no_benches:
        counts.update(run_benches(CONFIG, failures))

    verilog = cached_verilog(CONFIG).splitlines()
    hit: list[Point] = []
    missed: list[Point] = []
    for point, is_hit in points_of(counts, verilog):
        (hit if is_hit else missed).append(point)
    known = waivers.read_waivers(waivers.FILE.read_text())
    left = waivers.apply(known, missed)
    waived = [point for waiver in known for point in waiver.matched]
    blocks = Blocks()
    blocks.count(hit, waived, left)
    (FOLDER / "missing.txt").write_text(listing(left))
    (FOLDER / "waived.txt").write_text(listing(waived))
    _say(f"\nConfig {CONFIG.name}; in brackets what is waived\n{blocks.table()}\n")
    unused = list(functional.missing())
    total = functional.total()
    _say(f"choices of the ISA, event bits, fault codes: {total - len(unused)} of {total} used")
    failures += [f"no program used {choice}" for choice in unused]
    failures += blocks.fails()
    failures += [
        f"waiver of {waiver.name!r} in {waiver.block!r} waives nothing"
        for waiver in known
        if not waiver.matched
    ]
    for failure in failures:
        _say(f"FAILED {failure}")
    _say(f"missing points: {FOLDER / 'missing.txt'}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
