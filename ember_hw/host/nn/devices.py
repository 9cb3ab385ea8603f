"""Which device the drop-in modules run on."""

from __future__ import annotations

from typing import Any

from ember_hw.config import AcceleratorConfig
from ember_hw.host.device import Device, open_device

__all__ = ["chosen_device", "default_device", "set_default_device", "split_device"]

_default: Device | None = None


def default_device() -> Device:
    """Return the device of modules and functions that were given none.

    It is an `interpreter` with the config ``AcceleratorConfig.preset("tables")``, opened when it is
    first needed, unless `set_default_device` has chosen another one.
    """
    global _default
    if _default is None:
        _default = open_device("interpreter", config=AcceleratorConfig.preset("tables"))
    return _default


def set_default_device(device: Device | None) -> None:
    """Choose the default device; None for the interpreter again.

    Raises
    ------
    TypeError
        It is no device.
    """
    global _default
    if device is not None and not isinstance(device, Device):  # pyright: ignore[reportUnnecessaryIsInstance] -- a user's value
        raise TypeError(
            f"device must be one that ember_hw.open_device returned, not {type(device).__name__}"
        )
    _default = device


def chosen_device(device: Device | str | None) -> Device | None:
    """Return a device from what `from_torch` takes.

    Parameters
    ----------
    device : Device, str or None
        A device; the name of a backend, which is opened with the config of the default device;
        None for the default device.

    Raises
    ------
    TypeError
        It is something else.
    """
    if isinstance(device, str):
        return open_device(device, config=AcceleratorConfig.preset("tables"))
    if device is not None and not isinstance(device, Device):  # pyright: ignore[reportUnnecessaryIsInstance] -- a user's value
        raise TypeError(
            "device must be one that ember_hw.open_device returned, the name of a backend or None, "
            f"not {type(device).__name__}"
        )
    return device


def split_device(device: Any) -> tuple[Device | None, Any]:
    """Tell an accelerator from what torch calls a device.

    Parameters
    ----------
    device : Device, torch.device, str, int or None
        The argument `device` of a module's constructor.

    Returns
    -------
    Device or None, torch.device or None
        Where lookups run, and where torch keeps the parameters.
    """
    return (device, None) if isinstance(device, Device) else (None, device)
