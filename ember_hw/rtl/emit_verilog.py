"""Verilog of the access unit and of a cluster, with flat ports that AXI tools recognise."""

from __future__ import annotations

import re

from amaranth.back import verilog
from amaranth.lib import wiring

from ember_hw.config import AcceleratorConfig
from ember_hw.rtl.cluster import AccessCluster
from ember_hw.rtl.flat_unit import UNIT_NAME, AccessUnitInstance, FlatAccessUnit

TOP_NAME = UNIT_NAME
CLUSTER_NAME = "access_cluster"


def _convert(top: wiring.Component, name: str) -> str:
    return verilog.convert(
        top,
        name=name,
        emit_src=False,  # source locations would bring paths of this machine
        strip_internal_attrs=True,
    )


def emit_verilog(config: AcceleratorConfig) -> str:
    """Return the Verilog of an access unit.

    The top module is `access_unit`, its clock `clk`, its synchronous reset `rst`. The text depends
    on the config alone.
    """
    return _convert(FlatAccessUnit(config=config), TOP_NAME)


def emit_cluster_verilog(
    config: AcceleratorConfig, *, units: int, channels: int, sharing: str
) -> str:
    """Return the Verilog of several access units on several memory channels.

    The top module is `access_cluster`, its clock `clk`, its synchronous reset `rst`; the module
    `access_unit` stands in the text once. See `AccessCluster` for parameters and ports.
    """
    cluster = AccessCluster(
        config=config,
        units=units,
        channels=channels,
        sharing=sharing,
        make_unit=AccessUnitInstance,
    )
    return _convert(cluster, CLUSTER_NAME) + emit_verilog(config)


def without_assertions(text: str) -> str:
    """Return Verilog without its assertions, which Verilog-2005 has no word for.

    Parameters
    ----------
    text : str
        What one of the functions above returned.
    """
    return re.sub(r"^ *assert \(.*\);\n", "", text, flags=re.MULTILINE)
