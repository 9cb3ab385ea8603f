from __future__ import annotations

import subprocess
import sys

import pytest

import ember_hw
from ember_hw.config import AcceleratorConfig
from ember_hw.host.device import open_device


def test_public_names_are_those_of_their_modules() -> None:
    assert ember_hw.AcceleratorConfig is AcceleratorConfig
    assert ember_hw.open_device is open_device
    assert callable(ember_hw.compile)
    assert callable(ember_hw.load)
    assert set(ember_hw.__all__) <= set(dir(ember_hw))


def test_other_names_are_refused() -> None:
    with pytest.raises(AttributeError, match=r"^module 'ember_hw' has no attribute 'compyle'$"):
        _ = ember_hw.compyle


def test_package_is_imported_at_once_and_devices_without_torch() -> None:
    code = (
        "import sys, ember_hw; assert not {'amaranth', 'numpy'} & sys.modules.keys()\n"
        "ember_hw.open_device('interpreter')\n"
        "assert 'torch' not in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
