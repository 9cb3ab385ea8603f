"""What a board says of itself: written into its gateware, read by the host when it connects."""

from __future__ import annotations

import json
import zlib
from dataclasses import asdict, dataclass, fields
from typing import Any

from ember_hw.boards.links.frame import (
    DESCRIPTION_HEAD,
    MAGIC,
    PROTOCOL_VERSION,
    pack,
)
from ember_hw.config import AcceleratorConfig
from ember_hw.isa import ISA_VERSION

#: How far a board can be proved.
PROOFS = {
    "simulated": "a simulation in Verilator, no board",
    "built": "built with its timing met, and simulated in Verilator; never run on a board",
    "built in parts": (
        "built with its timing met; its memory path was simulated in Verilator without the pads' "
        "logic, its initialisation in Python; never run on a board"
    ),
    "run": "run on a board",
}


@dataclass(frozen=True, kw_only=True)
class BoardDescription:
    """What a host must know to use a board.

    Attributes
    ----------
    board : str
        Name of the board.
    config : AcceleratorConfig
        Of its access unit.
    gateware_id : int
        32 bits that tell this gateware from every other.
    clock_hz : int
        Clock of the access unit.
    memory_base, memory_bytes : int
        Memory that the unit reads: its first address and its size.
    memory : str
        What it is: "block RAM", "SDRAM", ..
    isa_version : int
        Version of the microcode.
    proof : str
        How far this board was proved: a key of `PROOFS`.

    Raises
    ------
    ValueError
        `proof` is none of them.
    """

    board: str
    config: AcceleratorConfig
    gateware_id: int
    clock_hz: int
    memory_base: int
    memory_bytes: int
    memory: str
    isa_version: int = ISA_VERSION
    proof: str = "built"

    def __post_init__(self) -> None:
        """Check that the proof is known."""
        if self.proof not in PROOFS:
            raise ValueError(f"proof must be one of {', '.join(PROOFS)}, not {self.proof!r}")

    def to_bytes(self) -> bytes:
        """Return head and JSON, as the gateware holds them.

        Raises
        ------
        ValueError
            `gateware_id` has more than 32 bits.
        """
        values = {**asdict(self), "config": self.config.to_dict()}
        del values["gateware_id"]
        text = json.dumps(values, sort_keys=True, separators=(",", ":")).encode()
        head = {
            "magic": int.from_bytes(MAGIC, "little"),
            "version": PROTOCOL_VERSION,
            "beat_bytes": self.config.bus_bytes,
            "length": len(text),
            "gateware_id": self.gateware_id,
            "description_crc": zlib.crc32(text),
        }
        return pack(DESCRIPTION_HEAD, head) + text

    @staticmethod
    def from_json(text: bytes, gateware_id: int) -> BoardDescription:
        """Return what a board's JSON says; what another version says besides is left out.

        Raises
        ------
        ValueError
            Something is missing, or the config is none of this version.
        """
        values: dict[str, Any] = json.loads(text)
        legal = {field.name for field in fields(BoardDescription)} - {"gateware_id"}
        for name in sorted(legal):
            if name not in values:
                raise ValueError(f"description of a board must have {name!r}, and has not")
        kept = {name: values[name] for name in legal - {"config"}}
        config = AcceleratorConfig.from_dict(values["config"])
        return BoardDescription(config=config, gateware_id=gateware_id, **kept)
