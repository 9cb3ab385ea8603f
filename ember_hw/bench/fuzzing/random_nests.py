"""Random loop nests of the scf that the compiler accepts, with inputs: what a fuzz test runs.

A function has one or two nests of up to five loops, dense, from offset to offset, or to a number
that was loaded; loads of indices, through indices, and at sums, differences, products and quotients
of them; loops over the elements of rows that add to a row, fold, or both; scalars, conditions,
stores in any place between, and values that loops carry.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import Any

import numpy as np

ROWS, LOOKUPS = 4, 6
#: Elements of the vectors that computed indices select, and the largest constant in them.
FAR, _MOST_CONSTANT = 64, 8
_PARAMETERS = (
    "%off: !X, %idx: !X, %col: !I, %psw: !V, %tab: !T, %rel: !T, %vec: !V, %out: !T, %sc: !V, "
    "%map: !X, %grid: !J, %far: !V, %acc: !V, %N: index, %K: index, %M: index"
)
_NAMES = (
    "off", "idx", "col", "psw", "tab", "rel", "vec", "out", "sc", "map", "grid", "far", "acc",
    "N", "K", "M",
)  # fmt: skip
#: Arrays that nests write.
WRITTEN = ("out", "sc", "acc")
_HEAD = f"""
!X = memref<?xindex>
!I = memref<?xi64>
!V = memref<?xf32>
!T = memref<?x?xf32>
!J = memref<?x?xindex>
func.func @kernel({_PARAMETERS})
    attributes {{ember.args = [{", ".join(f'"{name}"' for name in _NAMES)}], ember.noalias}} {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %c8 = arith.constant {_MOST_CONSTANT} : index
  %f0 = arith.constant 0.0 : f32
  %f1 = arith.constant 1.0 : f32
  %D = memref.dim %tab, %c1 : !T
"""
_BINARY = ("addf", "mulf", "subf", "maximumf", "minimumf")
_FOLDS = ("addf", "mulf", "maximumf")


@dataclass
class _Scope:
    """What a statement may use: rows and lookups as indices, floats, computed indices."""

    rows: list[str]
    lookups: list[str] = field(default_factory=list[str])
    floats: list[str] = field(default_factory=lambda: ["%f1"])
    #: Each with the most that it can be.
    computed: list[tuple[str, int]] = field(default_factory=list[tuple[str, int]])

    def inner(self) -> _Scope:
        return _Scope(list(self.rows), list(self.lookups), list(self.floats), list(self.computed))

    @property
    def indices(self) -> list[tuple[str, int]]:
        return [
            *((row, ROWS - 1) for row in self.rows),
            *((lookup, LOOKUPS - 1) for lookup in self.lookups),
            *self.computed,
        ]


class _Writer:
    """Writes statements one after the other."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.lines: list[str] = []
        self.names = 0

    def name(self) -> str:
        self.names += 1
        return f"%v{self.names}"

    def emit(self, line: str, depth: int) -> None:
        self.lines.append("  " * depth + line)

    def value(self, text: str, depth: int) -> str:
        name = self.name()
        self.emit(f"{name} = {text}", depth)
        return name

    def load(self, memory: str, index: str, type_: str, depth: int) -> str:
        return self.value(f"memref.load {memory}[{index}] : {type_}", depth)

    def pick(self, choices: list[str]) -> str:
        return self.random.choice(choices)

    def function(self) -> str:
        carried = self.random.random() < 0.2
        self.loop(_Scope([]), 1, dense=True, carried=carried, root=True)
        if self.random.random() < 0.15:
            self.loop(_Scope([]), 1, dense=True, carried=False, root=True)
        body = "\n".join(self.lines)
        return f"{_HEAD}{body}\n  func.return\n}}\n"

    def loop(
        self, scope: _Scope, depth: int, *, dense: bool, carried: bool, root: bool = False
    ) -> None:
        """Write a loop of rows, dense or from one offset to the next, and what is in it."""
        if dense:
            lower = self.pick(["%c0", "%c0", "%c1"])
            upper = "%N" if root else self.pick(["%N", "%K", *scope.rows])
            step = self.pick(["%c1", "%c1", "%c1", "%c2"])
        else:
            row = self.pick(scope.rows)
            lower = self.load("%off", row, "!X", depth)
            following = self.value(f"arith.addi {row}, %c1 : index", depth)
            upper, step = self.load("%off", following, "!X", depth), "%c1"
        variable, result, value = self.name(), self.name(), self.name()
        head = f"scf.for {variable} = {lower} to {upper} step {step}"
        inner = scope.inner()
        if carried:
            initial = self.pick(scope.floats)
            head = f"{result} = {head} iter_args({value} = {initial}) -> (f32)"
            inner.floats.append(value)
        self.emit(f"{head} {{", depth)
        (inner.rows if dense else inner.lookups).append(variable)
        for _ in range(self.random.randint(1, 4)):
            self.statement(inner, depth + 1)
        if carried:
            other = self.pick(inner.floats)
            new = self.value(f"arith.{self.pick(list(_BINARY))} {value}, {other} : f32", depth + 1)
            self.emit(f"scf.yield {self.pick([new, new, new, value])} : f32", depth + 1)
            scope.floats.append(result)
        self.emit("}", depth)
        if root and carried:
            self.emit(f"memref.store {result}, %sc[%c0] : !V", depth)

    def statement(self, scope: _Scope, depth: int) -> None:
        kinds = ["load", "load", "row", "row", "row", "scalar", "store", "condition", "index"]
        if scope.computed:
            kinds += ["index", "far", "far"]
        if depth < 4:
            kinds += ["loop", "loop", "loop"]
        getattr(self, f"_{self.pick(kinds)}")(scope, depth)

    def _load(self, scope: _Scope, depth: int) -> None:
        if scope.lookups and self.random.random() < 0.8:
            lookup = self.pick(scope.lookups)
            kind = self.random.randrange(3)
            if kind == 0:
                scope.rows.append(self.load("%idx", lookup, "!X", depth))
            elif kind == 1:
                wide = self.load("%col", lookup, "!I", depth)
                scope.rows.append(self.value(f"arith.index_cast {wide} : i64 to index", depth))
            else:
                scope.floats.append(self.load("%psw", lookup, "!V", depth))
        else:
            scope.floats.append(self.load("%vec", self.pick(scope.rows), "!V", depth))

    def _index(self, scope: _Scope, depth: int) -> None:
        """Write a sum, difference, product or quotient that selects an element of `far`."""
        value, most = self.random.choice(scope.indices)
        other, other_most = self.random.choice([*scope.indices, ("%c1", 1), ("%c3", 3)])
        factor, times = self.random.choice([("%c2", 2), ("%c3", 3), ("%M", 2)])
        choices = [
            (f"addi {value}, {other}", most + other_most),
            (f"addi {other}, {value}", most + other_most),
            (f"muli {value}, {factor}", most * times),
            (f"muli {factor}, {value}", most * times),
            (f"muli {value}, {other}", most * other_most),
            (f"divsi {value}, %c2", most // 2),
        ]
        if most <= _MOST_CONSTANT:
            choices.append((f"subi %c8, {value}", _MOST_CONSTANT))
        text, limit = self.random.choice(choices)
        if limit < FAR:
            scope.computed.append((self.value(f"arith.{text} : index", depth), limit))

    def _far(self, scope: _Scope, depth: int) -> None:
        """Write an access at a computed index, or at two."""
        index, _ = self.random.choice(scope.computed)
        kind = self.random.randrange(4)
        if kind == 0:
            scope.rows.append(self.load("%map", index, "!X", depth))
        elif kind == 1:
            scope.floats.append(self.load("%far", index, "!V", depth))
        elif kind == 2:
            self.emit(f"memref.store {self.pick(scope.floats)}, %acc[{index}] : !V", depth)
        else:
            columns = [name for name, most in scope.indices if most < LOOKUPS]
            if scope.rows:
                place = f"{self.pick(scope.rows)}, {self.pick(columns)}"
                scope.rows.append(self.load("%grid", place, "!J", depth))

    def _loop(self, scope: _Scope, depth: int) -> None:
        dense = self.random.random() < 0.4
        self.loop(scope, depth, dense=dense, carried=self.random.random() < 0.3)

    def _scalar(self, scope: _Scope, depth: int) -> None:
        left, right = self.pick(scope.floats), self.pick(scope.floats)
        value = self.value(f"arith.{self.pick(list(_BINARY))} {left}, {right} : f32", depth)
        if self.random.random() < 0.3:
            value = self.value(f"arith.negf {value} : f32", depth)
        scope.floats.append(value)

    def _store(self, scope: _Scope, depth: int) -> None:
        row, value = self.pick(scope.rows), self.pick(scope.floats)
        if self.random.random() < 0.5:
            old = self.load("%sc", row, "!V", depth)
            value = self.value(f"arith.addf {old}, {value} : f32", depth)
        self.emit(f"memref.store {value}, %sc[{row}] : !V", depth)

    def _condition(self, scope: _Scope, depth: int) -> None:
        row, other = self.pick(scope.rows), self.pick([*scope.rows, "%c1"])
        truth = self.value(f"arith.cmpi slt, {row}, {other} : index", depth)
        self.emit(f"scf.if {truth} {{", depth)
        self._store(scope.inner(), depth + 1)
        self.emit("}", depth)

    def _row(self, scope: _Scope, depth: int) -> None:
        """Write a loop over the elements of rows: it adds to a row, folds, or both."""
        folds = self.random.random() < 0.4
        stores = not folds or self.random.random() < 0.2
        carried, result, column = self.name(), self.name(), self.name()
        head = f"scf.for {column} = %c0 to %D step %c1"
        if folds:
            head = f"{result} = {head} iter_args({carried} = {self.pick(scope.floats)}) -> (f32)"
        self.emit(f"{head} {{", depth)
        values = [
            self.value(f"memref.load %{table}[{self.pick(scope.rows)}, {column}] : !T", depth + 1)
            for table in self.random.sample(["tab", "rel", "tab"], self.random.randint(1, 3))
        ]
        value = values.pop()
        for other in (*values, *([self.pick(scope.floats)] if self.random.random() < 0.5 else [])):
            operation = self.pick(list(_BINARY))
            value = self.value(f"arith.{operation} {value}, {other} : f32", depth + 1)
        if stores:
            row = self.pick(scope.rows)
            old = self.value(f"memref.load %out[{row}, {column}] : !T", depth + 1)
            total = self.value(f"arith.addf {old}, {value} : f32", depth + 1)
            self.emit(f"memref.store {total}, %out[{row}, {column}] : !T", depth + 1)
        if folds:
            operation = self.pick([*_FOLDS, "divf"] if self.random.random() < 0.1 else list(_FOLDS))
            folded = self.value(f"arith.{operation} {carried}, {value} : f32", depth + 1)
            self.emit(f"scf.yield {folded} : f32", depth + 1)
            scope.floats.append(result)
        self.emit("}", depth)


def random_nest(seed: int) -> str:
    """Return the text of a module with one function `@kernel`, the same for the same seed."""
    return _Writer(seed).function()


def nest_arguments(seed: int, columns: int) -> dict[str, Any]:
    """Return a value of each argument of every nest."""
    random = np.random.default_rng(seed)

    def floats(*shape: int) -> Any:
        # Few different magnitudes, so that products over a whole nest stay finite.
        return random.choice(np.array([-1.25, -1, -0.5, 0, 0.5, 1, 1.125], np.float32), shape)

    lengths = random.permutation([0, 1, 2, 3])
    return {
        "off": np.cumsum([0, *lengths]).astype(np.int64),
        "idx": random.integers(0, ROWS, LOOKUPS),
        "col": random.integers(0, ROWS, LOOKUPS),
        "psw": floats(LOOKUPS),
        "tab": floats(ROWS, columns),
        "rel": floats(ROWS, columns),
        "vec": floats(ROWS),
        "out": floats(ROWS, columns),
        "sc": floats(ROWS),
        "map": random.integers(0, ROWS, FAR),
        "grid": random.integers(0, ROWS, (ROWS, LOOKUPS)),
        "far": floats(FAR),
        "acc": floats(FAR),
        "N": ROWS,
        "K": 3,
        "M": 2,
    }
