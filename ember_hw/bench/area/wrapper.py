"""A Verilog top of few pins around a design, so that place and route needs no package of its size.

A register drives each input and takes each output, so every path of the design lies between two
registers and counts in Fmax; what the registers cost is measured alone and told apart.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

TOP_NAME = "few_pins"
CLOCK = "clk"

_PORT = re.compile(
    r"^\s*(input|output)\s+(?:wire\s+)?(?:\[(\d+):(\d+)\]\s*)?(\w+)\s*;", re.MULTILINE
)


@dataclass(frozen=True)
class Port:
    """A port of a Verilog module.

    Attributes
    ----------
    name : str
        Its name.
    is_input : bool
        An input of the module; else an output.
    width_bits : int
        Its width.
    """

    name: str
    is_input: bool
    width_bits: int


def ports_of(verilog: str, module: str) -> tuple[Port, ...]:
    r"""Return the ports of a module, in the order of their declarations.

    Parameters
    ----------
    verilog : str
        Text as Amaranth writes it: ports declared in the body, one a line.
    module : str
        Name of the module.

    Raises
    ------
    ValueError
        The text has no such module.

    Examples
    --------
    >>> ports_of("module m(a, b);\n  input a;\n  output [3:0] b;\nendmodule", "m")[1]
    Port(name='b', is_input=False, width_bits=4)
    """
    found = re.search(rf"^module {re.escape(module)}\b.*?^endmodule", verilog, re.M | re.S)
    if found is None:
        raise ValueError(f"verilog must have a module {module!r}, not only others")
    return tuple(
        Port(name, direction == "input", 1 + abs(int(first or 0) - int(last or 0)))
        for direction, first, last, name in _PORT.findall(found[0])
    )


def wrap(ports: Sequence[Port], module: str) -> str:
    """Return the top `few_pins`: three pins around a module of any number of ports.

    The inputs come from one shift register. The outputs are folded into another: each of its bits
    takes the bit before it, exclusive-or an output, so that none can be optimised away. Synthesis
    keeps the module apart from its wrapper, so that the cells of each can be counted.

    Parameters
    ----------
    ports : sequence of Port
        The module's; one of them is the clock `clk`.
    module : str
        Its name.
    """
    inputs = [port for port in ports if port.is_input and port.name != CLOCK]
    outputs = [port for port in ports if not port.is_input]
    width_in, width_out = (sum(port.width_bits for port in some) for some in (inputs, outputs))
    connections = [f".{CLOCK}({CLOCK})"]
    for some, register in ((inputs, "stimulus"), (outputs, "response")):
        first = 0
        for port in some:
            last = first + port.width_bits - 1
            connections.append(f".{port.name}({register}[{last}:{first}])")
            first = last + 1
    lines = ",\n        ".join(connections)
    return f"""\
module {TOP_NAME}(input {CLOCK}, input shift_in, output shift_out);
    reg [{width_in - 1}:0] stimulus;
    reg [{width_out - 1}:0] folded;
    wire [{width_out - 1}:0] response;
    always @(posedge {CLOCK}) begin
        stimulus <= {{stimulus, shift_in}};
        folded <= {{folded, 1'b0}} ^ response;
    end
    assign shift_out = folded[{width_out - 1}];
    (* keep_hierarchy *) {module} unit(
        {lines});
endmodule
"""
