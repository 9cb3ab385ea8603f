import re

import pytest

from ember_hw.errors import ToolError
from ember_hw.sim.build import ModelShape
from ember_hw.sim.softcore import build
from ember_hw.sim.softcore.packages import CORES

SHAPE = ModelShape(bus_bytes=16, bundle_bytes=8, event_bits=6, id_bits=4, address_bits=40)


@pytest.mark.verilator
def test_an_error_in_the_verilog_is_shown(monkeypatch, tmp_path):
    (tmp_path / "cpu.v").write_text("module picorv32 (input clk); endmodule\n")
    monkeypatch.setattr(build, "core_verilog", lambda core: tmp_path / "cpu.v")
    message = (
        r"^verilator must compile the soft-core simulation, but ended with status 1; "
        r"the end of its log:\n.*%Error: access_unit\.v:1:\d+: syntax error"
    )
    with pytest.raises(ToolError, match=re.compile(message, re.DOTALL)):
        build.build_softcore(CORES["picorv32"], "module access_unit (;\n", SHAPE)
