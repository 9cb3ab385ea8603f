"""A task: a program with seeded inputs, what must come of it, and the least it must move."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ember_hw.bench.programs.expected import Delivery
from ember_hw.compiler.backend.assemble import assemble_text
from ember_hw.config import LINE_BYTES, AcceleratorConfig
from ember_hw.host.launch import Launch
from ember_hw.host.memory_layout import MemoryLayout, Region

#: Type of indices and offsets in a program's text, and the types they may be.
INDEX_TYPE = "i32"
IndexType = Literal["i32", "i64"]


def program_text(name: str, index_type: IndexType = INDEX_TYPE) -> str:
    """Return the text of a program, its indices and offsets of the type given.

    Parameters
    ----------
    name : str
        Of its file, without ``.au``.
    index_type : str
        ``i32`` or ``i64``. Tables' places and shapes keep 4 bytes, as `distance` and `shape` do.

    Raises
    ------
    ValueError
        There is no program of that name.
    """
    folder = files("ember_hw.bench.programs")
    names = sorted(entry.name[:-3] for entry in folder.iterdir() if entry.name.endswith(".au"))
    if name not in names:
        raise ValueError(f"program must be one of {', '.join(names)}, not {name!r}")
    text = (folder / f"{name}.au").read_text()
    if index_type == INDEX_TYPE:
        return text
    kept = set(re.findall(r'au\.arg (a\d+) "(?:distance|shape)"', text))
    lines: list[str] = []
    for line in text.splitlines(keepends=True):
        memory = re.match(r" *au\.(?:arg (a\d+)|mem s\d+ on t\d+ = (a\d+))", line)
        if memory and not kept & set(memory.groups()):
            line = re.sub(rf"\b(x?){INDEX_TYPE}\b", rf"\g<1>{index_type}", line)
        lines.append(line)
    return "".join(lines)


@dataclass(frozen=True, kw_only=True)
class Task:
    """What a unit is to do, what its queues must deliver, and what must pass the memory port.

    Attributes
    ----------
    name : str
        What results call it.
    text : str
        Program of the `au` dialect; its `target` is not looked at.
    needs : mapping of str to int
        What the config must have at least.
    arrays : mapping of str to array
        By symbol: vectors (N,) that memory streams read, tables (R, D) of rows.
    values : mapping of str to int
        Other arguments.
    requests : sequence of mappings of str to int
        What each request carries, by symbol. All of them have the same microcode.
    queue : mapping of (unit, stream) to lists of vectors
        What the input queue brings, a vector a request; its symbol is among `queue_symbols`.
    queue_symbols : mapping of str to int
        Elements of the vectors that stand behind a symbol without memory.
    expected : Delivery
        Every bundle and row, by loops that know nothing of microcode.
    index_bytes : int
        Bytes that memory streams read: of every element, once.
    params : mapping of str to JSON values
        What a row of results says of it.
    """

    name: str
    text: str
    arrays: Mapping[str, NDArray[Any]]
    values: Mapping[str, int]
    expected: Delivery
    index_bytes: int
    needs: Mapping[str, int] = field(default_factory=dict[str, int])
    requests: Sequence[Mapping[str, int]] = ({},)
    queue: Mapping[tuple[int, int], Sequence[NDArray[Any]]] = field(
        default_factory=dict[tuple[int, int], Sequence[NDArray[Any]]]
    )
    queue_symbols: Mapping[str, int] = field(default_factory=dict[str, int])
    params: Mapping[str, Any] = field(default_factory=dict[str, Any])

    @property
    def rows(self) -> NDArray[np.uint8]:
        """Bytes of all rows in order, uint8 (N,)."""
        return self.expected.row_bytes

    @property
    def lines(self) -> dict[tuple[int, int], NDArray[np.uint8]]:
        """What the input queue brings to each stream, by (unit, stream): uint8 (N, 64)."""
        return {place: _lines(vectors) for place, vectors in self.queue.items()}

    @property
    def feed(self) -> list[tuple[tuple[int, int], NDArray[np.uint8]]]:
        """What the input queue brings in an order that stops no stream: (unit, stream) and line.

        A line waits until its stream has room, and those behind it wait too. So the lines of a
        request come together, the outer unit's first: more of them than `lines_per_stream` of one
        stream in a row could wait for an inner unit whose own lines stand behind.
        """
        feed: list[tuple[tuple[int, int], NDArray[np.uint8]]] = []
        for number in range(len(self.requests)):
            for place in sorted(self.queue):
                feed += [(place, line) for line in _lines([self.queue[place][number]])]
        return feed

    def config(self, base: AcceleratorConfig) -> AcceleratorConfig:
        """Return a config with as much as the program needs."""
        return enough(base, [self.needs])

    def launch(self, config: AcceleratorConfig, *, outstanding_reads: int = 0) -> Launch:
        """Place the arrays and bind the program to its first request; see `launches`."""
        return self.launches(config, outstanding_reads=outstanding_reads)[0]

    def launches(self, config: AcceleratorConfig, *, outstanding_reads: int = 0) -> list[Launch]:
        """Place the arrays and bind the program: a launch a request, alike but for `arguments`.

        Parameters
        ----------
        config : AcceleratorConfig
            The access unit.
        outstanding_reads : int
            Limit of row reads in flight that the microcode sets; 0 for all that the unit has.

        Raises
        ------
        AssemblyError
            The program doesn't fit the config.
        """
        layout = MemoryLayout(config)
        regions: list[Region] = []
        environment = dict(self.values)
        for symbol, array in self.arrays.items():
            place = layout.place_vector if array.ndim == 1 else layout.place_table
            regions.append(place(symbol, array))
            environment |= regions[-1].environment()
        for symbol, elements in self.queue_symbols.items():
            environment[f"{symbol}.elements"] = elements
        assembly = assemble_text(self.text, config)
        nest = assembly.nest()
        microcode = nest.bind(environment)
        microcode = microcode.with_field("header", "outstanding_reads", outstanding_reads)
        return [
            Launch(
                microcode,
                tuple(regions),
                assembly.callbacks,
                nest.request_arguments({**environment, **request}),
            )
            for request in self.requests
        ]

    def limit(self, config: AcceleratorConfig) -> float:
        r"""Return the largest share of the row queue's bytes that can be useful.

        Every row moves whole beats, every element that a memory stream reads is moved once, and the
        unit makes at most one token and asks for at most one row a cycle:

        .. math:: U = \frac{\sum R}{W \max(\frac{\sum W \lceil R / W \rceil + \sum s}{W}, rows,
                  tokens)}

        with R the bytes of a row, W those of the bus and s those of an element. With index lines on
        a port of their own (w bytes wide) the two sums take their own times,
        :math:`\max(\sum \lceil R / W \rceil, \sum s / w)`. Of several ports, as of one, at most a
        beat a cycle leaves by the row queue, so they bring back only what the indices take. The
        docstrings of the tasks say what that is for each op class.

        Parameters
        ----------
        config : AcceleratorConfig
            The access unit.

        Returns
        -------
        float
            Useful bytes of rows over cycles x bus bytes.
        """
        bus_bytes = config.bus_bytes
        lengths = self.expected.row_lengths
        beats = int((-(-lengths // bus_bytes)).sum())
        if config.index_port_bits:
            moved = max(beats, self.index_bytes / (config.index_port_bits // 8))
        else:
            moved = max(beats, (beats + self.index_bytes / bus_bytes) / config.memory_ports)
        cycles = max(moved, len(lengths), self.expected.tokens)
        return int(lengths.sum()) / (bus_bytes * cycles)


def enough(base: AcceleratorConfig, needs: Iterable[Mapping[str, int]]) -> AcceleratorConfig:
    """Return a config with at least what some tasks need, else as it is."""
    wanted: dict[str, int] = {}
    for need in needs:
        for name, least in need.items():
            has: int = getattr(base, name)
            wanted[name] = max(least, wanted.get(name, has))
    return base.with_changes(**wanted) if wanted else base


def _lines(vectors: Sequence[NDArray[Any]]) -> NDArray[np.uint8]:
    """Return vectors as lines; each begins a new one."""
    lines: list[NDArray[np.uint8]] = []
    for vector in vectors:
        content = np.ascontiguousarray(vector).view(np.uint8)
        padded = np.zeros(-(-content.size // LINE_BYTES) * LINE_BYTES, np.uint8)
        padded[: content.size] = content
        lines.append(padded.reshape(-1, LINE_BYTES))
    return np.concatenate(lines) if lines else np.zeros((0, LINE_BYTES), np.uint8)
