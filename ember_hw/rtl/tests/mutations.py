"""Access units that are wrong on purpose: what a comparison that finds nothing has to find.

Each mutation breaks one rule in a copy of a block's source. `mutated_verilog` gives the Verilog of
a broken access unit; a test that simulates it must fail where `Mutation.shows` says.

>>> sorted(MUTATIONS)[:2]
['beat_misplaced', 'burst_crosses_page']
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from importlib import import_module
from types import FunctionType, ModuleType

from ember_hw.config import AcceleratorConfig
from ember_hw.rtl.emit_verilog import emit_verilog


class Shows(Enum):
    """Where a mutation must show."""

    RESULT = "result"  # in what an EmbeddingBag returns, whatever its opt level
    BUNDLES = "bundles"  # in the bundles; a result that does not depend on them may be right
    FAULT = "fault"  # a lookup request outside the table does not fault
    PROTOCOL = "protocol"  # the memory sees an illegal read, where rows cross a page
    PROOF = "proof"  # a proof about the block alone fails


@dataclass(frozen=True)
class Mutation:
    """One change of a block's source.

    Parameters
    ----------
    rule : str
        What is broken.
    shows : Shows
    module, component : str
        Module of `ember_hw.rtl`, and the class in it.
    before, after : str
        Text that stands once in the module, and what takes its place.
    """

    rule: str
    shows: Shows
    module: str
    component: str
    before: str
    after: str


MUTATIONS: dict[str, Mutation] = {
    "line_change_unseen": Mutation(
        "a stream asks for a line when it differs from the one before",
        Shows.RESULT,
        "stream_address",
        "StreamAddress",
        "(line != previous)",
        "(line != line)",
    ),
    "iterate_event_dropped": Mutation(
        "every iteration has its event, the last as well",
        Shows.RESULT,
        "iterator",
        "Iterator",
        "Mux(iterates, own[isa.Event.ITERATE], 0)",
        "Mux(iterates & ~last, own[isa.Event.ITERATE], 0)",
    ),
    "end_event_dropped": Mutation(
        "the last iteration of an inner loop has its end",
        Shows.BUNDLES,
        "iterator",
        "Iterator",
        "Mux(entered & last, own[isa.Event.END], 0)",
        "Mux(entered & last & (self.level == 0), own[isa.Event.END], 0)",
    ),
    "next_value_stale": Mutation(
        "the NEXT value is that of the step that follows",
        Shows.RESULT,
        "join",
        "Join",
        "out_values, values[0]",
        "out_values, held_values[0]",
    ),
    "beat_misplaced": Mutation(
        "the beats of a burst have places that follow each other",
        Shows.RESULT,
        "gather_engine",
        "GatherEngine",
        "buffer.position.eq(reads.note.start + reads.count)",
        "buffer.position.eq(reads.note.start ^ reads.count)",
    ),
    "row_pitch_ignored": Mutation(
        "a row lies its index times the pitch after the base",
        Shows.RESULT,
        "row_address",
        "RowAddress",
        "address.eq(begin + product)",
        "address.eq(begin)",
    ),
    "index_unchecked": Mutation(
        "a row that is not of the table or not in its region is a fault",
        Shows.FAULT,
        "row_address",
        "RowAddress",
        "good.eq(inside & good5.all())",
        "good.eq(1)",
    ),
    "burst_crosses_page": Mutation(
        "no burst crosses a multiple of 4096 bytes",
        Shows.PROTOCOL,
        "burst_splitter",
        "BurstSplitter",
        "to_boundary[:chunk_bits].eq(~beat[:chunk_bits])",
        "to_boundary[:chunk_bits].eq((1 << chunk_bits) - 1)",
    ),
}


@contextmanager
def mutated(name: str) -> Iterator[None]:
    """Break a block while the context is open: components that are elaborated in it are wrong.

    Raises
    ------
    ValueError
        There is no such mutation, or the block no longer has the text that it changes.
    """
    if name not in MUTATIONS:
        raise ValueError(f"mutation must be one of {', '.join(MUTATIONS)}, not {name!r}")
    with applied(name, MUTATIONS[name]):
        yield


@contextmanager
def applied(name: str, mutation: Mutation) -> Iterator[None]:
    """Break a block as `mutation` says, while the context is open. `name` is for messages.

    Raises
    ------
    ValueError
        The block no longer has the text that the mutation changes.
    """
    module = import_module(f"ember_hw.rtl.{mutation.module}")
    source = inspect.getsource(module)
    if source.count(mutation.before) != 1:
        raise ValueError(
            f"text of mutation {name!r} must stand once in {mutation.module}.py, "
            f"not {source.count(mutation.before)} times: {mutation.before!r}"
        )
    copy = ModuleType(module.__name__)
    changed = source.replace(mutation.before, mutation.after)
    exec(compile(changed, f"<{name}>", "exec", dont_inherit=True), copy.__dict__)
    component = getattr(module, mutation.component)
    # The constructor stays: its ports have to be of the types that the other blocks know.
    methods = {
        attribute: value
        for attribute, value in vars(getattr(copy, mutation.component)).items()
        if isinstance(value, FunctionType) and attribute != "__init__"
    }
    originals = {attribute: getattr(component, attribute) for attribute in methods}
    try:
        for attribute, value in methods.items():
            setattr(component, attribute, value)
        yield
    finally:
        for attribute, value in originals.items():
            setattr(component, attribute, value)


def mutated_verilog(name: str, config: AcceleratorConfig) -> str:
    """Return the Verilog of an access unit with that mutation; ports are those of `emit_verilog`.

    Raises
    ------
    ValueError
        There is no such mutation, or the block no longer has the text that it changes.
    """
    with mutated(name):
        return emit_verilog(config)
