"""Microcode in the making: fields that are set so far, and what the launch will fill in."""

from __future__ import annotations

from ember_hw import isa
from ember_hw.compiler.backend.exports import Item, Places, refuse
from ember_hw.compiler.dialects.au import Event as EventName
from ember_hw.compiler.dialects.au import Slot, SlotKind
from ember_hw.compiler.dialects.au_program import AccessProgram, MemoryStream, Push, Row
from ember_hw.compiler.program import Patch
from ember_hw.config import AcceleratorConfig

EVENTS = {
    EventName.BEGIN: isa.Event.BEGIN,
    EventName.ITERATE: isa.Event.ITERATE,
    EventName.END: isa.Event.END,
}


class Draft:
    """Records and patches of a program that is being assembled.

    Parameters
    ----------
    program : AccessProgram
        A verified program.
    config : AcceleratorConfig
        Gives the limits.

    Raises
    ------
    AssemblyError
        As `Places`.
    """

    def __init__(self, program: AccessProgram, config: AcceleratorConfig) -> None:
        self.program, self.config = program, config
        self.places = Places(program, config)
        self.symbols = {argument.number: argument.symbol for argument in program.arguments}
        self.records: dict[str, dict[str, int]] = {}
        self.patches: list[Patch] = []

    def set(self, item: Item | str, record: str, field: str, value: int) -> None:
        """Set a field.

        Raises
        ------
        AssemblyError
            The value is out of the field's range; the text names the op that asks for it.
        """
        legal = isa.layouts(self.config)[record].field(field)
        if not legal.least <= value <= legal.most:
            raise refuse(
                item,
                f"field {field!r} of record {record!r} must be "
                f"from {legal.least} to {legal.most}, not {value}",
            )
        self.records.setdefault(record, {})[field] = value

    def patch(self, record: str, field: str, symbol: str, scale: int = 1, addend: int = 0) -> None:
        """Have the launch set a field to ``scale * symbol + addend``."""
        self.patches.append(Patch(record, field, symbol, scale, addend))

    def set_constant(
        self, item: Item | str, record: str, field: str, slot: Slot, scale: int = 1
    ) -> None:
        """Set a field to an integer, or have the launch set it to an argument."""
        if slot.kind is SlotKind.INTEGER:
            self.set(item, record, field, slot.number * scale)
        else:
            self.patch(record, field, self.symbols[slot.number], scale)

    def set_hint(self, item: MemoryStream | Row, record: str) -> None:
        """Set the hint of a stream or row."""
        if item.nontemporal:
            self.set(item, record, "hint", isa.Hint.NON_TEMPORAL)
        if item.keep:
            self.set(item, record, "hint", isa.Hint.KEEP)

    def mask(self, push: Push) -> int:
        """Return the event mask of a push."""
        event = EVENTS[push.event], self.places.levels[push.unit]
        return isa.event_mask([event], self.config)
