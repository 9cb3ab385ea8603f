"""Random legal programs, from a seed."""

from __future__ import annotations

import random
from dataclasses import dataclass

from ember_hw.bench.fuzzing.case import Case
from ember_hw.bench.fuzzing.rows import RowMaker
from ember_hw.bench.fuzzing.space import Space
from ember_hw.bench.fuzzing.streams import Reach, StreamMaker
from ember_hw.bench.fuzzing.values import ANY, LEAST, MOST, Known, alignment, computed
from ember_hw.compiler.interpreters.scalar_values import TooLongError
from ember_hw.config import AcceleratorConfig
from ember_hw.isa import AluOperation, BoundSource, Event, Microcode, Source, event_bit

_TRIES = 100
_PAIR_CHANCE = 0.5


@dataclass(frozen=True)
class _Loop:
    """A unit's bounds: fields, what is known of its induction value, whether it always iterates."""

    record: dict[str, int]
    induction: Known
    is_never_empty: bool


def legal_case(
    config: AcceleratorConfig, seed: int, *, is_long: bool = True, is_fed: bool = False
) -> Case:
    """Return a legal program for ideal surroundings.

    Parameters
    ----------
    config : AcceleratorConfig
    seed : int
    is_long : bool
        It has a hundred leaf tokens or more, over all requests.
    is_fed : bool
        The input queue feeds all its streams, where the config has one; else some of them at times.
    """
    rng = random.Random(f"{config.name} {seed}")
    for _ in range(_TRIES):
        case = _Generator(config, rng, is_long).case(seed)
        try:
            tokens = case.whole.leaf_tokens
        except TooLongError:
            continue
        assert not case.whole.faults, case.describe()
        if not is_long or tokens >= 100:
            return _feed_queue(case, rng, is_fed)
    raise AssertionError(f"a long program must come of seed {seed}")


def _feed_queue(case: Case, rng: random.Random, feeds_all: bool) -> Case:
    """Let the input queue bring what some streams would read from memory."""
    config = case.config
    fed = [
        (unit, stream)
        for unit in range(config.traversal_units)
        for stream in range(config.streams_per_unit)
        if case.microcode.get(f"unit{unit}.stream{stream}", "enable")
        and config.input_queue
        and (feeds_all or rng.random() < 0.3)
    ]
    if not fed or (not feeds_all and rng.random() < 0.3):
        return case
    lines: dict[tuple[int, int], list[bytes]] = {who: [] for who in fed}
    for unit, stream, address in case.whole.lines_read:
        if (unit, stream) in lines:
            base, content = next(
                (base, content)
                for base, content in case.regions
                if base <= address < base + len(content)
            )
            lines[unit, stream].append(content[address - base :][:64].tobytes())
    changes = {(f"unit{unit}.stream{stream}", "source"): 1 for unit, stream in fed}
    return Case(
        seed=case.seed,
        kind=case.kind,
        microcode=case.microcode.with_fields(changes),
        regions=case.regions,
        requests=case.requests,
        lines={who: tuple(brought) for who, brought in lines.items()},
    )


class _Generator:
    """Makes one program, unit by unit."""

    def __init__(self, config: AcceleratorConfig, rng: random.Random, is_long: bool) -> None:
        self.config, self.rng = config, rng
        self.space = Space(config, rng)
        self.streams = StreamMaker(config, rng, self.space)
        most = config.traversal_units
        self.units = rng.choice([most, rng.randint(1, most)])
        self.requests = rng.choice([1, 1, 2, 3, config.request_entries + 2])
        tokens = rng.choice([130, 250, 400]) if is_long else rng.randint(0, 40)
        self.tokens = tokens / self.requests
        self.records: dict[str, dict[str, int]] = {}

    def case(self, seed: int) -> Case:
        """Return the program with its memory."""
        arguments, values = self._arguments()
        never_empty: list[bool] = []
        for level in range(self.units):
            values, loop = self._unit(level, values)
            never_empty.append(loop.is_never_empty)
        self._rows(values, never_empty)
        events = self.rng.getrandbits(self.config.events)
        if self.rng.random() < 0.3:
            events = (1 << self.config.events) - 1
        self.records["issue"] = {"events": events}
        most = self.config.outstanding_reads
        limit = self.rng.choice([0, 0, 0, 1, 2, most, self.rng.randint(0, most)])
        self.records["header"] = {"outstanding_reads": limit}
        return Case(
            seed=seed,
            kind="legal",
            microcode=Microcode(self.config, self.records),
            regions=tuple(self.space.regions),
            requests=tuple(arguments),
        )

    def _arguments(self) -> tuple[list[tuple[int, ...]], list[Known | None]]:
        """Return each request's arguments, and what is known of them."""
        rng = self.rng
        columns: list[list[int]] = []
        for _ in range(self.config.exports):
            kind = rng.choice(["small", "index", "bytes", "wild", "same"])
            choose = {
                "small": lambda: rng.randrange(7),
                "index": lambda: rng.randrange(40),
                "bytes": lambda: 64 * rng.randrange(1, 5),
                "wild": lambda: rng.randrange(LEAST, 1 << 32),
                "same": lambda: 3,
            }[kind]
            columns.append([choose() for _ in range(self.requests)])
        known: list[Known | None] = []
        for column in columns:
            signed = [value - (1 << 32) if value > MOST else value for value in column]
            align = min(alignment(value) for value in column)
            known.append(Known(min(signed), max(signed), align=align))
        return list(zip(*columns, strict=True)), known

    def _unit(self, level: int, values: list[Known | None]) -> tuple[list[Known | None], _Loop]:
        rng, streams = self.rng, self.config.streams_per_unit
        loop = self._loop(level, values)
        record = self._unused_bounds() | loop.record | {"enable": 1}
        reach = Reach(loop.induction, record["step"], values)
        own: list[Known | None] = [loop.induction]
        pair = None
        is_pair = level + 1 < self.units and rng.random() < _PAIR_CHANCE
        for s in range(streams):
            if s == 0 and is_pair:
                stream, known = self.streams.make(reach, gap=2 * self._trips(level + 1))
                pair = [k.at(level) for k in known]
                own.append(pair[0])
            elif rng.random() < 0.75:
                stream, known = self.streams.make(reach)
                own.append(known[0].at(level))
            else:
                stream = {"base": 64 * rng.randrange(100), "elements": rng.randrange(1 << 32)}
                own.append(None)
            self.records[f"unit{level}.stream{s}"] = stream
        if pair is not None:
            record["pair"] = 1
            own.append(pair[1])
        else:
            own.append(self._alu(record, own, values, level))

        exports = [rng.choice([0, rng.randrange(len(own) + 1)]) for _ in range(self.config.exports)]
        if pair is not None:
            lower, upper = rng.sample(range(self.config.exports), 2)
            exports[lower], exports[upper] = 2, len(own)
        record |= {f"export{i}": choice for i, choice in enumerate(exports)}
        self.records[f"unit{level}"] = record
        return [own[c - 1] if c else values[i] for i, c in enumerate(exports)], loop

    def _unused_bounds(self) -> dict[str, int]:
        """Return values of fields that the bounds will not look at, or that are set later."""
        numbers = ("lower_immediate", "upper_immediate")
        exports = ("lower_export", "upper_export")
        return {name: self.rng.randint(LEAST, MOST) for name in numbers} | {
            name: self.rng.randrange(self.config.exports) for name in exports
        }

    def _trips(self, level: int) -> int:
        """Return a random number of iterations of one entry, to reach the aim on average."""
        mean = max(1.0, self.tokens ** (1 / self.units))
        if level == 0:
            mean *= 1.3
        return max(1, round(self.rng.uniform(0.6, 1.5) * mean))

    def _loop(self, level: int, values: list[Known | None]) -> _Loop:
        """Return bounds of one of many kinds."""
        rng, trips = self.rng, self._trips(level)
        step = rng.choice([1, 1, 1, 2, 3, 40000])
        length = step * (trips - 1) + rng.randint(1, step)
        usable = [(i, known) for i, known in enumerate(values) if known is not None]
        lowers = [(i, k) for i, k in usable if k.pair is not None and not k.is_upper]
        pairs = [
            (i, j, k, n)
            for i, k in lowers
            for j, n in usable
            if n.is_upper and n.pair == k.pair and n.level == k.level
        ]
        if pairs and rng.random() < 0.9:
            i, j, lower, upper = rng.choice(pairs)
            record = {"lower_source": Source.SLOT, "lower_export": i}
            record |= {"upper_source": BoundSource.SLOT, "upper_export": j}
            step = max(1, min(step, lower.gap // 3))
            known = Known(lower.low, max(lower.low, upper.high - 1))
            return _Loop(record | {"step": step}, known.at(level), False)
        record: dict[str, int] = {"step": step}
        near = [(i, k) for i, k in usable if k.span <= 8 * step and LEAST + 10**6 < k.low]
        near = [(i, k) for i, k in near if k.high < MOST - 10**6]
        if near and rng.random() < 0.45:
            export, bound = rng.choice(near)
            kind = rng.choice(["lower", "upper", "relative"])
            if kind == "relative":
                record |= {"lower_source": Source.SLOT, "lower_export": export}
                record |= {"upper_source": BoundSource.LOWER_PLUS, "upper_immediate": length}
                low, high, is_full = bound.low, bound.high + length - 1, True
            elif kind == "lower":
                record |= {"lower_source": Source.SLOT, "lower_export": export}
                upper = rng.choice([bound.low, bound.high]) + length
                record["upper_immediate"] = upper
                low, high, is_full = bound.low, upper - 1, bound.high < upper
            else:
                record |= {"upper_source": BoundSource.SLOT, "upper_export": export}
                lower = rng.choice([bound.low, bound.high]) - length
                record["lower_immediate"] = lower
                low, high, is_full = lower, bound.high - 1, lower < bound.low
            return _Loop(record, Known(low, max(low, high)).at(level), is_full)
        lower = rng.choice([0, 0, 0, 5, -7, LEAST, MOST - length, rng.randrange(LEAST, MOST // 2)])
        upper = lower + length
        if rng.random() < 0.05:
            upper = lower - rng.randrange(3)
        upper = max(LEAST, upper)
        record["lower_immediate"] = lower
        if rng.random() < 0.5:
            record["upper_immediate"] = upper
        else:
            record |= {"upper_source": BoundSource.LOWER_PLUS, "upper_immediate": upper - lower}
        return _Loop(record, Known(lower, max(lower, upper - 1)).at(level), lower < upper)

    def _alu(
        self,
        record: dict[str, int],
        own: list[Known | None],
        values: list[Known | None],
        level: int,
    ) -> Known | None:
        """Choose an operation. Return what is known of the result."""
        rng = self.rng
        slots = [*own, *values]
        record["alu_operation"] = rng.randrange(4)
        record["alu_a_slot"] = rng.randrange(len(own))
        record["alu_b_slot"] = rng.randrange(len(slots))
        record["alu_b_source"] = rng.randrange(2)
        immediate = rng.choice([0, 1, 2, -1, 64, rng.randint(LEAST, MOST)])
        record["alu_immediate"] = immediate
        a, b = own[record["alu_a_slot"]], slots[record["alu_b_slot"]]
        if not record["alu_b_source"]:
            b = Known(immediate, immediate, align=alignment(immediate))
        if a is None or b is None:
            return None
        result = computed(AluOperation(record["alu_operation"]), a, b)
        return (ANY if result.align < 1 else result).at(level)

    def _rows(self, exports: list[Known | None], never_empty: list[bool]) -> None:
        """Make row entries with random events."""
        config, rng = self.config, self.rng
        maker = RowMaker(config, rng, self.space, exports)
        for r in range(config.row_entries):
            record = None
            for _ in range(rng.choice([0, 4, 4, 4])):
                record = record or maker.make(*self._row_events(never_empty))
            if record is None:
                record = {"base": 64, "pitch": 64, "index_export": config.exports - 1}
            self.records[f"row{r}"] = record

    def _row_events(self, never_empty: list[bool]) -> tuple[int, int]:
        """Return an event mask, and the innermost unit whose values are defined with all of it."""
        config, rng = self.config, self.rng
        chosen = [
            (event, level)
            for event in Event
            for level in range(config.traversal_units)
            if rng.random() < (0.5 if event is Event.ITERATE else 0.25)
        ]
        depth = self.units - 1
        mask = 0
        for event, level in rng.sample(chosen, min(len(chosen), rng.choice([1, 1, 2, 9]))):
            mask |= 1 << event_bit(event, level, config)
            if level < self.units:
                depth = min(depth, self._defined(event, level, never_empty))
        return mask, depth

    def _defined(self, event: Event, level: int, never_empty: list[bool]) -> int:
        """Return the innermost unit that iterates whenever this event occurs."""
        depth = level if event is Event.ITERATE else level - 1
        while depth + 1 < self.units and never_empty[depth + 1]:
            depth += 1
        return depth
