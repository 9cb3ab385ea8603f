"""The package's own errors. A caller who catches `EmberError` catches them all.

Bad arguments of a lookup raise Python's own errors instead: `TypeError` for a wrong kind,
`ValueError` for a wrong value, `IndexError` for an index outside a table.
"""

from __future__ import annotations


class EmberError(Exception):
    """Base of every error that ember_hw defines; never raised itself."""


class CompileError(EmberError):
    """A model or its IR can't become a program, for a reason other than a missing feature.

    Raised by the front end and the passes: an input the graph doesn't read, IR that breaks a
    pass's precondition, a program that doesn't fit the configuration.

    Parameters
    ----------
    message : str
        What must hold and what was found.
    node : str, optional
        The torch node, IR op or pass the message speaks of, for tools that point at it. The
        message names it too.
    """

    def __init__(self, message: str, *, node: str | None = None) -> None:
        super().__init__(message)
        self.node = node


class UnsupportedError(CompileError):
    """The model is legal, but ember_hw doesn't compile this op, mode, dtype or option.

    The message names the node and says what works instead. Nothing falls back silently.
    """


class CheckError(EmberError):
    """IR verifies op by op but breaks a soundness rule of its level.

    Raised by the checks that run before and after each pass, for example a value that leaves its
    callback or an operand that is popped but never pushed.
    """


class AssemblyError(EmberError):
    """Access-unit text can't be encoded, or microcode words can't be decoded.

    Raised for a field out of range, an unknown name, or more units, streams or rows than the
    configuration has.
    """


class ProgramError(EmberError):
    """A program can't be used as it stands.

    Raised when a program file is damaged or incomplete, when its ISA version or configuration isn't
    the device's, and when the inputs given don't match the program's arguments.
    """


class DeviceError(EmberError):
    """The access unit stopped on a fault; the result is void, the unit ready for the next program.

    Parameters
    ----------
    message : str
        The fault in words, with what to do about it.
    code : int, optional
        The fault code as the hardware reports it.
    unit : int, optional
        The traversal unit that was running.
    stream : int, optional
        The stream of that unit which faulted.
    address : int, optional
        The byte address, element or index that faulted; `ember_hw.registers` says which by code.
    completed : int, optional
        Requests of the launch that had ended before the fault.
    """

    def __init__(
        self,
        message: str,
        *,
        code: int | None = None,
        unit: int | None = None,
        stream: int | None = None,
        address: int | None = None,
        completed: int | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.unit = unit
        self.stream = stream
        self.address = address
        self.completed = completed


class LinkError(EmberError):
    """A board can't be reached, its link broke, or what it says is none of this protocol.

    What was running is lost; opening the board again begins afresh.
    """


class ToolError(EmberError):
    """An external tool (Verilator, a C++ compiler, Yosys) is missing, too old or has failed.

    The message names the tool and the command, and says how to get a version that works.
    """
