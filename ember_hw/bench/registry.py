"""Finds the suites and runs one. A suite is a module of `ember_hw.bench.suites`."""

from __future__ import annotations

import ast
import fnmatch
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Protocol

from ember_hw.bench import suites
from ember_hw.bench.machine import commit, machine_facts
from ember_hw.bench.result import Result, Row

(_FOLDER,) = suites.__path__


class Watcher(Protocol):
    """Who is told how far a suite is; `ember_hw.cli.progress.Steps` is one."""

    def __call__(self, text: str) -> None:
        """Take note that a step begins."""

    def detail(self, text: str) -> None:
        """Take note of what the step does next."""

    def reached(self, done: int, total: int | None, cycles: int | None) -> None:
        """Take note of what is done, what there is in all, and the cycles that it took."""


@dataclass(frozen=True, kw_only=True)
class Job:
    """What a suite is asked for.

    Attributes
    ----------
    watcher : Watcher
        Told how far it is.
    quick : bool
        A selection that ends within a minute on two cores.
    seed : int
        Seed of every random number.
    only : str
        Pattern, as of file names, of the workloads wanted.

    Examples
    --------
    >>> job = Job(watcher=print, only="512-bit*")
    >>> job.wants("512-bit, 64 B"), job.wants("128-bit, 64 B")
    (True, False)
    """

    watcher: Watcher
    quick: bool = False
    seed: int = 0
    only: str = "*"

    def wants(self, workload: str) -> bool:
        """Whether a workload is to be measured; suites ask before they do."""
        return fnmatch.fnmatchcase(workload, self.only)


@dataclass(frozen=True)
class Suite:
    """A suite.

    Attributes
    ----------
    name : str
        Its module's name.
    summary : str
        First line of the module's docstring.
    """

    name: str
    summary: str

    def run(self, job: Job, on_row: Callable[[Row], None] = lambda row: None) -> Result:
        """Run the suite.

        Parameters
        ----------
        job : Job
            What is wanted.
        on_row : callable, optional
            Told each row as soon as it is known.

        Raises
        ------
        ValueError
            No workload of the suite matches the job's `only`.
        """
        module = import_module(f"{suites.__name__}.{self.name}")
        code = commit()  # now: a long run may see other files come
        rows: list[Row] = []
        measured: Iterator[Row] = module.run(job)
        for row in measured:
            rows.append(row)
            on_row(row)
        if not rows:
            raise ValueError(f"only must match a workload of suite {self.name!r}, not {job.only!r}")
        return Result(
            suite=self.name, commit=code, seed=job.seed, machine=machine_facts(), rows=tuple(rows)
        )


def all_suites(folder: Path = Path(_FOLDER)) -> dict[str, Suite]:
    """Return the suites by name, without importing any.

    Parameters
    ----------
    folder : Path
        Where their modules lie.
    """
    found: dict[str, Suite] = {}
    for path in sorted(folder.glob("[!_]*.py")):
        docstring = ast.get_docstring(ast.parse(path.read_text())) or ""
        found[path.stem] = Suite(path.stem, docstring.partition("\n")[0])
    return found


def suite_of(name: str) -> Suite:
    """Return the suite of that name.

    Raises
    ------
    ValueError
        There is none.
    """
    known = all_suites()
    if name not in known:
        raise ValueError(f"suite must be one of {', '.join(known)}, not {name!r}")
    return known[name]
