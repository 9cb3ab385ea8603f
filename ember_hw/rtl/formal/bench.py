"""What every proof shares: a block whose registers can be read, and streams that keep the rules."""

from __future__ import annotations

from amaranth.hdl import Assert, Assume, Const, Elaboratable, Fragment, Module, Shape, Signal, Value

# The instance is the only form of a memory that still takes a port after elaboration.
from amaranth.hdl._mem import MemoryInstance
from amaranth.lib import wiring
from amaranth.lib.wiring import In


class Opened:
    """A block, elaborated: what its registers are called is what properties may read.

    Parameters
    ----------
    block : Elaboratable
        Elaborated here. Its ports stay its own.

    Attributes
    ----------
    fragment : Fragment
        To be added to a module as a submodule, in the block's place.
    """

    def __init__(self, block: Elaboratable | Fragment):
        self.fragment = block if isinstance(block, Fragment) else Fragment.get(block, None)

    def signal(self, name: str) -> Signal:
        """Return the signal of that name that the block drives.

        Raises
        ------
        KeyError
            There is none, or more than one.
        """
        driven = {
            id(signal): signal
            for statements in self.fragment.statements.values()
            for signal in statements._lhs_signals()
            if signal.name == name
        }
        if len(driven) != 1:
            raise KeyError(f"the block must drive one signal named {name!r}, not {len(driven)}")
        return next(iter(driven.values()))

    def inner(self, name: str) -> Opened:
        """Return the submodule of that name.

        Raises
        ------
        KeyError
            There is none.
        """
        for fragment, its_name, _ in self.fragment.subfragments:
            if its_name == name:
                return Opened(fragment)
        raise KeyError(f"the block must have a submodule named {name!r}")

    def look(self, address: Value) -> Signal:
        """Return what this memory holds at an address, by a read port of its own.

        Parameters
        ----------
        address : Signal
            As wide as the memory's addresses.
        """
        memory = self._memory()
        word = Signal(Shape.cast(memory._data.shape).width)
        memory.read_port(domain="comb", addr=address, data=word, en=Const(1), transparent_for=())
        return word

    def read(self) -> Value:
        """Return the output of this memory's first read port."""
        return self._memory()._read_ports[0]._data

    def _memory(self) -> MemoryInstance:
        if not isinstance(self.fragment, MemoryInstance):
            raise TypeError(f"the block must be a memory, not a {type(self.fragment).__name__}")
        return self.fragment


class Bench(Elaboratable):
    """A module around a block under proof, and the clock it runs with.

    There is no reset after the first cycle: registers begin with their initial values, memories
    with anything.

    Parameters
    ----------
    block : Component

    Attributes
    ----------
    inputs : list of Signal
        Of the block. Those that nothing drives have any value in any cycle.
    m : Module
        For properties and what they need; the block is in it.
    component, block : Component, Opened
    """

    def __init__(self, block: wiring.Component):
        self.m = Module()
        self.inputs = [
            Value.cast(port)
            for _, member, port in block.signature.flatten(block)
            if member.flow is In
        ]
        self.component = block
        self.block = Opened(block)
        self.m.submodules.block = self.block.fragment
        self.m.submodules.history = self._history = Module()

    def offer(self, port) -> None:
        """Assume of a stream into the block what its producer keeps: a payload waits unchanged."""
        waited = self.after(port.valid & ~port.ready)
        held = self.after(port.payload)
        self.m.d.comb += [
            Assume(~waited | port.valid),
            Assume(~waited | (Value.cast(port.payload) == held)),
        ]

    def after(self, value) -> Signal:
        """Return what a value was a cycle ago; 0 in the first cycle.

        The register runs under whatever condition of `m` this is called.
        """
        value = Value.cast(value)
        before = Signal(len(value))
        self._history.d.sync += before.eq(value)
        return before

    def stays(self, port) -> None:
        """Assert of a stream out of the block that a payload waits unchanged."""
        waited = self.after(port.valid & ~port.ready)
        held = self.after(port.payload)
        self.m.d.comb += [
            Assert(~waited | port.valid),
            Assert(~waited | (Value.cast(port.payload) == held)),
        ]

    def elaborate(self, platform):
        return self.m
