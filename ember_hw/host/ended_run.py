"""A run that ended: what its report is made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ember_hw.config import AcceleratorConfig
from ember_hw.host.account import RunAccount
from ember_hw.host.profile import LaunchSample
from ember_hw.host.report import Report, profiler_of

__all__ = ["EndedRun"]


@dataclass
class EndedRun:
    """A run that ended without an error: what its report is made of, once somebody asks."""

    program: str
    seed: int | None
    versions: Mapping[str, str]
    memory: str
    sink: str
    engine: str
    lookups: int | None
    samples: Sequence[LaunchSample | None]
    account: RunAccount
    seconds: float

    def report(
        self, backend: str, config: AcceleratorConfig, config_facts: Mapping[str, Any]
    ) -> Report:
        """Return the report."""
        return Report(
            program=self.program,
            backend=backend,
            memory=self.memory,
            sink=self.sink,
            engine=self.engine,
            lookups=self.lookups,
            seed=self.seed,
            versions=dict(self.versions),
            wall_seconds=self.seconds,
            profiler=profiler_of(self.samples, config),
            **config_facts,
            **self.account.facts(),
        )
