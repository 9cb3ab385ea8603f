"""Random execute code with queues: the engines run it and must agree."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ember_hw.compiler.backend.execute_code import (
    Carried,
    Case,
    Compute,
    Constant,
    ExecuteCode,
    Extent,
    For,
    GetVariable,
    If,
    Increment,
    Load,
    Memory,
    Merged,
    Pop,
    ReadRow,
    Scalar,
    SetVariable,
    Statement,
    Store,
    Variable,
)
from ember_hw.host.execution.tests.codes import ELEMENTS

ROWS = 4
_FLOATS = ("addf", "subf", "mulf", "divf", "maximumf", "minimumf", "maxnumf", "minnumf", "copysign")
_UNARY = ("negf", "absf", "ceil", "floor", "trunc", "roundeven", "sqrt", "rsqrt", "exp")
_FOLDS = ("addf", "mulf", "maximumf", "subf")


class _Writer:
    """Writes cases; `indices` are in [0, ROWS) if queues and memories hold what `arrays` gives."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.names = 0

    def name(self) -> str:
        self.names += 1
        return f"v{self.names}"

    def code(self) -> ExecuteCode:
        entry = (
            Constant("c0", "index", 0),
            Constant("c1", "index", 1),
            Constant("c2", "index", 2),
            Constant("c3", "index", 3),
            Constant("f0", "f32", 0.0),
            Constant("f1", "f32", 1.5),
            Extent("D", "out", 1),
            Scalar("n", "N"),
        )
        cases = tuple(Case(number, tuple(self.case())) for number in (1, 2, 3))
        end = (GetVariable("last", 1), Store("sc", ("c3",), "last"))
        return ExecuteCode(
            memories=(
                Memory("out", "f32", 2, True),
                Memory("sc", "f32", 1, True),
                Memory("ix", "index", 1, False),
                Memory("table", "f32", 2, False),
            ),
            variables=(
                Variable(0, "index", "c1"),
                Variable(1, "f32", "f1"),
                Variable(2, "row<f32>"),
                Variable(3, "f32", "f0"),
                Variable(4, "index", "c0"),
            ),
            entry=entry,
            cases=cases,
            end=end,
            no_alias=True,
        )

    def case(self) -> list[Statement]:
        index, number, row = self.name(), self.name(), self.name()
        body: list[Statement] = [Pop(index, "index"), Pop(number, "f32")]
        rows: list[str] = []
        if self.random.random() < 0.7:
            body.append(Pop(row, "row<f32>"))
            rows.append(row)
            if self.random.random() < 0.5:
                body.append(SetVariable(2, row))
                kept = self.name()
                body.append(GetVariable(kept, 2))
                rows.append(kept)
        self.block(body, [index, "c0", "c2"], [number, "f1"], rows, 0)
        return body

    def block(
        self,
        body: list[Statement],
        indices: list[str],
        floats: list[str],
        rows: list[str],
        depth: int,
    ) -> None:
        indices, floats = list(indices), list(floats)
        for _ in range(self.random.randint(1, 4)):
            kinds = ["load", "compute", "store", "variable", "index"]
            if depth < 2:
                kinds += ["loop", "loop", "condition"]
            getattr(self, f"_{self.random.choice(kinds)}")(body, indices, floats, rows, depth)

    def _compute(self, body: Any, indices: Any, floats: Any, rows: Any, depth: int) -> None:
        name = self.name()
        if self.random.random() < 0.3:
            operation, operands = self.random.choice(_UNARY), (self.random.choice(floats),)
        else:
            operation = self.random.choice(_FLOATS)
            operands = tuple(self.random.choice(floats) for _ in range(2))
        body.append(Compute(name, "f32", operation, operands))
        floats.append(name)

    def _index(self, body: Any, indices: Any, floats: Any, rows: Any, depth: int) -> None:
        name, other = self.name(), self.name()
        if self.random.random() < 0.5:
            body.append(Load(name, "ix", (self.random.choice(indices),)))
        else:
            left, right = (self.random.choice(indices) for _ in range(2))
            operation = self.random.choice(("addi", "muli", "subi", "maxsi"))
            body.append(Compute(other, "index", operation, (left, right)))
            body.append(Compute(name, "index", "andi", (other, "c3")))
        indices.append(name)

    def _load(self, body: Any, indices: Any, floats: Any, rows: Any, depth: int) -> None:
        name, row = self.name(), self.random.choice(indices)
        if rows and self.random.random() < 0.3:
            body.append(ReadRow(name, self.random.choice(rows), row))
        elif self.random.random() < 0.5:
            body.append(Load(name, "sc", (row,)))
        else:
            symbol = self.random.choice(("out", "table"))
            body.append(Load(name, symbol, (row, self.random.choice(indices))))
        floats.append(name)

    def _store(self, body: Any, indices: Any, floats: Any, rows: Any, depth: int) -> None:
        place = (self.random.choice(indices),)
        value = self.random.choice(floats)
        symbol = "sc"
        if self.random.random() < 0.5:
            symbol, place = "out", (*place, self.random.choice(indices))
        if self.random.random() < 0.6:
            old, new = self.name(), self.name()
            body.append(Load(old, symbol, place))
            body.append(Compute(new, "f32", self.random.choice(_FOLDS), (old, value)))
            value = new
        body.append(Store(symbol, place, value))

    def _variable(self, body: Any, indices: Any, floats: Any, rows: Any, depth: int) -> None:
        name, number = self.name(), self.random.choice((0, 1, 1, 3, 4))
        kind = self.random.randrange(3)
        if number in (0, 4):
            masked = self.name()
            if kind == 0:
                body.append(Increment(number, self.random.choice((1, -1, 2))))
            elif kind == 1:
                body.append(SetVariable(number, self.random.choice(indices)))
            else:
                body.append(GetVariable(name, number))
                body.append(Compute(masked, "index", "andi", (name, "c3")))
                indices.append(masked)
            return
        if kind == 0:
            body.append(SetVariable(number, self.random.choice(floats)))
            return
        body.append(GetVariable(name, number))
        if kind == 1:
            floats.append(name)
            return
        new = self.name()
        operation = self.random.choice(_FOLDS)
        body.append(Compute(new, "f32", operation, (name, self.random.choice(floats))))
        body.append(SetVariable(number, new))

    def _loop(self, body: Any, indices: Any, floats: Any, rows: Any, depth: int) -> None:
        index = self.name()
        inner: list[Statement] = []
        upper = self.random.choice(("D", "D", "n", self.random.choice(indices)))
        lower, step = self.random.choice(("c0", "c0", "c1")), self.random.choice(("c1", "c1", "c2"))
        carried: tuple[Carried, ...] = ()
        inside = list(floats)
        if self.random.random() < 0.4:
            argument, following, result = self.name(), self.name(), self.name()
            initial = self.random.choice(floats)
        else:
            argument = following = result = initial = ""
        values: list[str] = []
        for _ in range(self.random.randint(1, 2)):
            name = self.name()
            if rows and self.random.random() < 0.5:
                inner.append(ReadRow(name, self.random.choice(rows), index))
            else:
                symbol = self.random.choice(("table", "table", "out"))
                inner.append(Load(name, symbol, (self.random.choice(indices), index)))
            values.append(name)
        new = self.name()
        other = self.random.choice(inside)
        inner.append(Compute(new, "f32", self.random.choice(_FLOATS), (values[-1], other)))
        if self.random.random() < 0.6:
            row, old, total = self.random.choice(indices), self.name(), self.name()
            inner.append(Load(old, "out", (row, index)))
            inner.append(Compute(total, "f32", self.random.choice(_FOLDS), (old, new)))
            inner.append(Store("out", (row, index), total))
        if argument:
            inner.append(Compute(following, "f32", self.random.choice(_FOLDS), (argument, new)))
            carried = (Carried(argument, initial, following, result),)
        if self.random.random() < 0.2:
            self.block(inner, indices, [*inside, new], rows, depth + 1)
        body.append(For(index, lower, upper, step, tuple(inner), carried))
        if argument:
            floats.append(result)

    def _condition(self, body: Any, indices: Any, floats: Any, rows: Any, depth: int) -> None:
        truth, name = self.name(), self.name()
        if self.random.random() < 0.5:
            predicate = self.random.choice(("eq", "ne", "slt", "uge"))
            pair = self.random.choice(indices), self.random.choice(indices)
            body.append(Compute(truth, "i1", f"cmpi_{predicate}", pair))
        else:
            predicate = self.random.choice(("olt", "une", "ugt", "ord"))
            pair = self.random.choice(floats), self.random.choice(floats)
            body.append(Compute(truth, "i1", f"cmpf_{predicate}", pair))
        then: list[Statement] = []
        otherwise: list[Statement] = []
        self.block(then, indices, floats, rows, depth + 1)
        if self.random.random() < 0.5:
            self.block(otherwise, indices, floats, rows, depth + 1)
        merged = Merged(name, self.random.choice(floats), self.random.choice(floats))
        body.append(If(truth, tuple(then), tuple(otherwise), (merged,)))
        floats.append(name)


def random_code(seed: int) -> ExecuteCode:
    """Return code with three cases, the same for the same seed."""
    return _Writer(seed).code()


def random_arrays(seed: int) -> dict[str, NDArray[Any]]:
    """Return the memories of every random code."""
    random = np.random.default_rng(seed)

    def floats(*shape: int) -> NDArray[np.float32]:
        return random.choice(np.array([-1.25, -1, -0.5, 0, -0.0, 0.5, 1, 3], np.float32), shape)

    return {
        "out": floats(ROWS, ELEMENTS),
        "sc": floats(ELEMENTS),
        "ix": random.integers(0, ROWS, ELEMENTS),
        "table": floats(ROWS, ELEMENTS),
    }
