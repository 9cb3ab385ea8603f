# pyright: basic
from __future__ import annotations

import re

import pytest

from ember_hw.host.nn.devices import chosen_device, default_device, set_default_device


def test_default_device_is_an_interpreter_that_is_opened_once():
    set_default_device(None)
    opened = default_device()
    assert (opened.name, opened.config.name) == ("interpreter", "tables")
    assert default_device() is opened


def test_default_device_can_be_chosen(device):
    assert default_device() is device


def test_other_values_are_refused():
    message = "device must be one that ember_hw.open_device returned, not str"
    with pytest.raises(TypeError, match=f"^{re.escape(message)}$"):
        set_default_device("interpreter")  # pyright: ignore[reportArgumentType]
    message = (
        "device must be one that ember_hw.open_device returned, the name of a backend or None, "
        "not int"
    )
    with pytest.raises(TypeError, match=f"^{re.escape(message)}$"):
        chosen_device(3)  # pyright: ignore[reportArgumentType]
