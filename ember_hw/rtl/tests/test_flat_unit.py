from __future__ import annotations

import pytest

from ember_hw.config import AcceleratorConfig
from ember_hw.rtl.flat_unit import AccessUnitInstance, FlatAccessUnit, unit_members
from ember_hw.rtl.tests.harness import CONFIG

FULL = CONFIG.with_changes(memory_ports=2, index_port_bits=64, input_queue=1)


@pytest.mark.parametrize("config", [CONFIG, FULL], ids=["plain", "full"])
def test_an_instance_has_the_ports_of_the_unit(config: AcceleratorConfig):
    unit, instance = FlatAccessUnit(config=config), AccessUnitInstance(config=config)
    assert dict(unit.signature.members.items()) == unit_members(config)
    assert dict(instance.signature.members.items()) == unit_members(config)
    for component in (unit, instance):
        component._MustUse__used = True  # not elaborated here
