"""Builds the emitted Verilog for cocotb once per content, and runs test benches on it.

Used from pytest (`test_benches.py`). The simulation is another process; what it found comes back
through cocotb's results file.
"""

from __future__ import annotations

import json
import logging
import os
import re
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from xml.etree import ElementTree

from cocotb_tools.runner import Verilator

from ember_hw.config import AcceleratorConfig
from ember_hw.host.backends.verilog import cached_verilog
from ember_hw.rtl.emit_verilog import TOP_NAME
from ember_hw.sim.cache import build_once, cache_folder
from ember_hw.sim.verilator import find_verilator

#: Name of the environment variable by which a bench learns its config.
CONFIG_VARIABLE = "EMBER_HW_COCOTB_CONFIG"

#: Logs, results and waveforms, a folder for each bench and config.
OUTPUT_FOLDER = Path(__file__).resolve().parent.parent / "build" / "cocotb"

# Machine-made Verilog trips style warnings. Only the ports are to be seen from outside: cocotb's
# own flag for all signals keeps Verilator from optimising, which triples the time of a build.
_SETTINGS = f'`verilator_config\nlint_off\npublic_flat_rw -module "{TOP_NAME}" -var "*"\n'
_COVERAGE_ARGUMENTS = ("--coverage-line", "--coverage-toggle")
_BUILD_ARGUMENTS = ("--assert", "--x-initial", "unique", "-O3", "--output-split", "15000")
# Registers without an initial value start with random bits of the seed.
_PLUSARGS = ("+verilator+rand+reset+2",)
# The model is built far more often than it runs long.
_MAKE_VARIABLES = "OPT_FAST=-O1 OPT_SLOW=-O0 OPT_GLOBAL=-O0"
_LOG_LINES_SHOWN = 60


class SimulationFailed(Exception):
    """A simulation that could not be built, ended early, or a test in it that failed."""


@dataclass(frozen=True)
class Outcome:
    """What a simulation found out about its tests.

    Attributes
    ----------
    failures : dict of str to str or None
        By name of the test: why it failed; None if it passed.
    log : Path
        What the simulation printed.
    """

    failures: dict[str, str | None]
    log: Path

    def check(self, name: str) -> None:
        """Raise unless the test ran and passed.

        Raises
        ------
        SimulationFailed
            It failed, or the simulation ended before it.
        """
        if name not in self.failures:
            raise SimulationFailed(
                f"{name} must have run, but the simulation ended before it; "
                f"the end of {self.log}:\n{_tail(self.log)}"
            )
        failure = self.failures[name]
        if failure is not None:
            raise SimulationFailed(f"{name}: {failure}\nthe whole log: {self.log}")


def names_of(bench: str) -> list[str]:
    """Return the names of a bench's tests, in their order.

    Parameters
    ----------
    bench : str
        A module of this package, such as ``tb_access_unit``.
    """
    from cocotb._decorators import TestGenerator

    members = vars(import_module(f"{__package__}.{bench}")).values()
    generators = [member for member in members if isinstance(member, TestGenerator)]
    return [test.name for generator in generators for test in generator.generate_tests()]


def build(config: AcceleratorConfig, *, waves: bool = False, coverage: bool = False) -> Path:
    """Return the folder with the simulation of a config, from the cache or freshly built.

    Parameters
    ----------
    config : AcceleratorConfig
        The access unit.
    waves : bool
        Build in tracing, which costs speed.
    coverage : bool
        Build in the counting of lines and toggles, which costs speed too.

    Raises
    ------
    ToolError
        No usable Verilator.
    SimulationFailed
        The Verilog or the C++ doesn't compile; the message holds the end of the log.
    """
    verilator = find_verilator()
    verilog = cached_verilog(config)
    arguments = (*_BUILD_ARGUMENTS, *(_COVERAGE_ARGUMENTS if coverage else ()))
    parts = (verilog, _SETTINGS, *arguments, _MAKE_VARIABLES, str(waves))
    tools = (str(verilator.root), verilator.version, version("cocotb"))
    key = sha256("\n".join((*parts, *tools)).encode()).hexdigest()[:32]

    def make(draft: Path) -> None:
        objects = draft / "objects"
        objects.mkdir()
        (draft / f"{TOP_NAME}.v").write_text(verilog)
        (draft / "settings.vlt").write_text(_SETTINGS)
        path = f"{verilator.path.parent}{os.pathsep}{os.environ['PATH']}"
        log = objects / "build.log"
        try:
            with _environment(PATH=path, MAKEFLAGS=_MAKE_VARIABLES, MAKELEVEL=None, WAVES=None):
                _Runner().build(
                    sources=[draft / "settings.vlt", draft / f"{TOP_NAME}.v"],
                    hdl_toplevel=TOP_NAME,
                    build_args=arguments,
                    build_dir=objects,
                    timescale=("1ns", "1ns"),
                    waves=waves,
                    log_file=log,
                )
        except (RuntimeError, SystemExit) as error:
            raise SimulationFailed(f"the model must compile: {error}\n{_tail(log)}") from None
        shutil.move(objects / TOP_NAME, draft / TOP_NAME)
        shutil.rmtree(objects)

    return build_once(cache_folder() / "cocotb" / key, make)


def simulate(
    bench: str,
    config: AcceleratorConfig,
    names: Sequence[str],
    *,
    seed: int = 1,
    waves: bool = False,
    coverage: bool = False,
) -> Outcome:
    """Run tests of a bench in one simulation.

    Parameters
    ----------
    bench : str
        A module of this package.
    config : AcceleratorConfig
        The access unit.
    names : sequence of str
        Tests of the bench; they run in the bench's order.
    seed : int
        Of the stalls, and of registers without an initial value.
    waves : bool
        Write ``dump.vcd`` beside the log.
    coverage : bool
        Write ``coverage.dat`` beside the log.

    Raises
    ------
    ToolError, SimulationFailed
        As `build`.
    """
    module = f"{__package__}.{bench}"
    folder = OUTPUT_FOLDER / f"{bench}-{config.name}"
    folder.mkdir(parents=True, exist_ok=True)
    results, log = folder / "results.xml", folder / "simulation.log"
    built = build(config, waves=waves, coverage=coverage)
    chosen = "|".join(re.escape(name) for name in names)
    try:
        with _environment(WAVES=None, COCOTB_TESTCASE=None):
            _Runner().test(
                test_module=module,
                hdl_toplevel=TOP_NAME,
                hdl_toplevel_lang="verilog",
                test_filter=rf"^{re.escape(module)}\.({chosen})$",
                build_dir=built,
                test_dir=folder,
                results_xml=str(results),
                log_file=log,
                seed=seed,
                plusargs=[*_PLUSARGS, f"+verilator+seed+{seed}"],
                waves=waves,
                extra_env={
                    CONFIG_VARIABLE: json.dumps(config.to_dict()),
                    # cocotbext-axi uses what cocotb 2 calls by other names.
                    "PYTHONWARNINGS": "ignore::DeprecationWarning",
                },
            )
    except (RuntimeError, SystemExit):
        pass  # the results, or their absence, say what went wrong
    return Outcome(_read_results(results), log)


def _read_results(path: Path) -> dict[str, str | None]:
    failures: dict[str, str | None] = {}
    try:
        cases = ElementTree.parse(path).iter("testcase")
    except (FileNotFoundError, ElementTree.ParseError):
        return failures
    for case in cases:
        bad = [child for child in case if child.tag in ("failure", "error", "skipped")]
        texts = [f"{child.get('message', '')}\n{child.text or ''}".strip() for child in bad]
        failures[case.get("name", "")] = "\n".join(texts) if bad else None
    return failures


class _Runner(Verilator):
    """cocotb's runner, quiet, without the flag that makes every signal public."""

    def __init__(self) -> None:
        super().__init__()
        self.log.setLevel(logging.CRITICAL)

    def _build_command(self) -> list[list[str]]:
        commands = super()._build_command()
        return [[part for part in c if part != "--public-flat-rw"] for c in commands]


def _tail(log: Path) -> str:
    if not log.exists():
        return "(no log)"
    return "\n".join(log.read_text(errors="replace").splitlines()[-_LOG_LINES_SHOWN:])


@contextmanager
def _environment(**changes: str | None) -> Iterator[None]:
    """Change environment variables for a while; None takes one away."""
    before = {name: os.environ.get(name) for name in changes}
    _set(changes)
    try:
        yield
    finally:
        _set(before)


def _set(values: dict[str, str | None]) -> None:
    for name, value in values.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value
