"""What every exercise of a board's memory in Verilator is asked, and what comes of it."""

from __future__ import annotations

from dataclasses import dataclass, fields

__all__ = ["AccessOutcome", "AccessPlan"]

#: Beats of the longest request that may be asked for.
_MOST_BEATS = 256


@dataclass(frozen=True, kw_only=True)
class AccessPlan:
    """What is asked of a memory.

    Attributes
    ----------
    requests : int
    most_beats : int
        Beats of the longest request, 1 to 256.
    aligned : bool
        Every request has `most_beats` and begins at a multiple of them: rows of a table.
    request_stall, response_stall : float
        Chance that a clock brings no request, takes no beat.
    region_beats : int
        Requests fall within the first beats of the chip; 0: anywhere.
    seed : int
    """

    requests: int
    most_beats: int = 1
    aligned: bool = False
    request_stall: float = 0.0
    response_stall: float = 0.0
    region_beats: int = 0
    seed: int = 0

    def __post_init__(self) -> None:
        """Check ranges."""
        for field in fields(self):
            value = getattr(self, field.name)
            if field.type == "float" and not 0 <= value < 1:
                raise ValueError(f"{field.name} must be from 0 to below 1, not {value!r}")
        if not 1 <= self.most_beats <= _MOST_BEATS:
            raise ValueError(f"most_beats must be from 1 to {_MOST_BEATS}, not {self.most_beats!r}")
        if self.region_beats and self.region_beats < self.most_beats:
            raise ValueError(
                f"region_beats must be 0 or at least most_beats ({self.most_beats}), "
                f"not {self.region_beats!r}"
            )


@dataclass(frozen=True, kw_only=True)
class AccessOutcome:
    """What came of it.

    Attributes
    ----------
    beats : int
        That were read.
    wrong : int
        Answers that weren't what they must be.
    violations : int
        Limits of the chip that were broken.
    is_hung : bool
        Nothing moved for long.
    first : str
        The first thing wrong; empty where nothing is.
    """

    beats: int
    wrong: int
    violations: int
    is_hung: bool
    first: str

    @property
    def is_right(self) -> bool:
        """Nothing was wrong."""
        return not (self.wrong or self.violations or self.is_hung)
