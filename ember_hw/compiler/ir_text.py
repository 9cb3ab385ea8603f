"""Reading IR text: every op with its place in the file, and the printed form of the reference."""

from __future__ import annotations

import re
from bisect import bisect_right

from typing_extensions import override
from xdsl.context import Context
from xdsl.dialects.builtin import FileLineColLoc, IntAttr, ModuleOp, StringAttr, UnknownLoc
from xdsl.ir import Operation
from xdsl.parser import Parser
from xdsl.utils.exceptions import ParseError, VerifyException

from ember_hw.compiler.dialects import make_context
from ember_hw.compiler.transforms.violation import describe
from ember_hw.errors import CheckError

_PRINTED_FOR = re.compile(r"slcvec\.for <(\w+)x(\d+)>([^{]*)\{")
_REPEATED_LENGTH = re.compile(r",\s*vectorLength = \d+ : index|vectorLength = \d+ : index\s*,?\s*")


class _Places:
    """Turns positions in a text into line and column, both from 1."""

    def __init__(self, text: str) -> None:
        self._line_starts = [0, *(match.end() for match in re.finditer("\n", text))]

    def __call__(self, position: int) -> tuple[int, int]:
        line = bisect_right(self._line_starts, position)
        return line, position - self._line_starts[line - 1] + 1


class _LocatedParser(Parser):
    """Gives each op without a location of its own the place where its text begins."""

    def __init__(self, context: Context, text: str, name: str) -> None:
        super().__init__(context, text, name)
        self._file = StringAttr(name)
        self._places = _Places(text)

    @override
    def parse_operation(self) -> Operation:
        line, column = self._places(self.pos)
        op = super().parse_operation()
        if isinstance(op.location, UnknownLoc):
            op.location = FileLineColLoc(self._file, IntAttr(line), IntAttr(column))
        return op


def parse_module(text: str, name: str = "<text>", context: Context | None = None) -> ModuleOp:
    """
    Read and verify a module.

    Parameters
    ----------
    text : str
        IR text in the custom or the generic form.
    name : str
        What messages call the file.
    context : Context, optional
        Where the dialects come from; by default a new one with all of the pipeline's.

    Returns
    -------
    ModuleOp
        The module; each op's location is its place in the text.

    Raises
    ------
    CheckError
        The text doesn't parse or an op doesn't verify; the message has the file, line and column.
    """
    try:
        module = _LocatedParser(context or make_context(), text, name).parse_module()
    except ParseError as error:
        line, column = _Places(text)(error.span.start)
        raise CheckError(f"{name}:{line}:{column}: {_one_line(error.msg)}") from error
    except (VerifyException, ValueError) as error:  # of a type or a name, which have no place
        raise CheckError(f"{name}: {_one_line(str(error))}") from error
    verify_module(module)
    return module


def verify_module(module: ModuleOp) -> None:
    """Verify each op; raise `CheckError` that names the first op that doesn't, and its place."""
    try:
        module.verify()
    except VerifyException as error:
        raise CheckError(f"{_failing(module)}: {_one_line(str(error))}") from error


def _failing(module: ModuleOp) -> str:
    for op in module.walk(region_first=True):
        try:
            op.verify(verify_nested_ops=False)
        except VerifyException:
            return describe(op)
    return describe(module)


def _one_line(message: str) -> str:
    return " ".join(message.split())


def rewrite_reference_text(text: str) -> str:
    """
    Turn the printed form of the reference's vector loop into the form that parses.

    The reference prints `slcvec.for <bcastx8> (%i && %m) = ..` and repeats `vectorLength` in the
    attribute dictionary, but reads `slcvec.for<8>(%i xx %m) = ..` and refuses the repetition.
    Other text stays as it is.

    Examples
    --------
    >>> rewrite_reference_text("slcvec.for <bcastx8> (%i && %m) = %a to %b step %c mask %k {")
    'slcvec.for<8> (%i xx %m) = %a to %b step %c mask %k {'
    """
    text = _PRINTED_FOR.sub(
        lambda match: f"slcvec.for<{match[2]}>{match[3].replace('&&', 'xx')}{{", text
    )
    return _REPEATED_LENGTH.sub("", text)
