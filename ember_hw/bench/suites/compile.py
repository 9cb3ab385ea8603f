"""How long compiling takes: models with many tables, in one program or in one for each.

The model is handed to `torch.compile`; what counts is `Record.seconds`, which leaves torch's own
work out: finding the bags, scf, passes, microcode, execute code. Dimensions differ from table to
table. Programs that earlier models left are forgotten before each measurement.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ember_hw.bench.registry import Job
from ember_hw.bench.result import Row
from ember_hw.config import AcceleratorConfig
from ember_hw.errors import DeviceError

#: Tables of a DLRM on the Criteo data set, and the seconds that it may take.
TABLES, MOST_SECONDS = 26, 5.0
#: Tables of a large model, and the times of the small one's that it may take.
MANY_TABLES, MOST_TIMES = 1_000, 60.0
#: Config by what it lets a model be.
CONFIGS = {"one program": "tables", "a program each": "default"}
SAMPLES = 2


def run(job: Job) -> Iterator[Row]:
    """Measure the small model, then the large one, for each config."""
    for what, preset in CONFIGS.items():
        small, many = (f"{count:,} tables, {what}" for count in (TABLES, MANY_TABLES))
        wants_many = job.wants(many) and not job.quick
        if not job.wants(small) and not wants_many:
            continue
        job.watcher(f"compile: {small}")
        seconds, params = measure(TABLES, AcceleratorConfig.preset(preset), job.seed)
        yield Row(
            workload=small,
            metric="compile time",
            value=seconds,
            unit="s",
            params=params,
            reference_name="most allowed",
            reference=MOST_SECONDS,
            is_smaller_better=True,
            bar=1.0,
        )
        if not wants_many:
            continue
        job.watcher(f"compile: {many}")
        much, params = measure(MANY_TABLES, AcceleratorConfig.preset(preset), job.seed)
        yield Row(
            workload=many,
            metric="compile time",
            value=much,
            unit="s",
            params=params,
            reference_name=f"{MOST_TIMES:.0f} x that of {TABLES} tables",
            reference=MOST_TIMES * seconds,
            is_smaller_better=True,
            bar=1.0,
        )


def measure(tables: int, config: AcceleratorConfig, seed: int) -> tuple[float, dict[str, Any]]:
    """Return the seconds that a model with so many tables takes, and what else is known of it.

    Raises
    ------
    DeviceError
        The model doesn't run on the device, or gives other rows than torch.
    """
    import torch  # slow to import, and not needed to list suites
    from torch import nn

    import ember_hw
    from ember_hw.host.program_cache import forget_programs

    class Tables(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.bags = nn.ModuleList(
                nn.EmbeddingBag(10 + number % 50, (4, 8, 16, 64)[number % 4], mode="sum")
                for number in range(tables)
            )

        def forward(self, indices: Any, offsets: Any) -> Any:
            rows = [bag(i, o) for bag, i, o in zip(self.bags, indices, offsets, strict=True)]
            return torch.cat(rows, 1)

    torch.manual_seed(seed)
    model = Tables()
    indices = [torch.randint(0, 10, (2 * SAMPLES,)) for _ in range(tables)]
    offsets = [2 * torch.arange(SAMPLES) for _ in range(tables)]
    forget_programs()
    torch._dynamo.reset()
    record = ember_hw.Record()
    with ember_hw.open_device("interpreter", config=config) as device, torch.no_grad():
        options = {"device": device, "record": record}
        compiled: Any = torch.compile(model, backend="ember_hw", options=options)
        is_same = torch.equal(compiled(indices, offsets), model(indices, offsets))
    if not is_same or record.refusals:
        raise DeviceError(f"rows of {tables} tables must be torch's, and aren't")
    return record.seconds, {
        "tables": tables,
        "config": config.name,
        "programs": len(record.operations),
        "opt_level": 3,
    }
