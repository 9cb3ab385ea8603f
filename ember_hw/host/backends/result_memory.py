"""Where the results of an interpreted access unit go that writes them into memory."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ember_hw.config import AcceleratorConfig
from ember_hw.host.launch import Launch
from ember_hw.host.result_region import ResultRegion
from ember_hw.registers import NO_UNIT, FaultCode, fault_error

__all__ = ["ResultMemory"]


class ResultMemory:
    """Writes results one behind the other into the region of a launch, as `ResultWriter` does.

    Parameters
    ----------
    launch : Launch
        Its microcode names the region.
    results : ResultRegion
        The memory there.

    Attributes
    ----------
    written_bytes : int
        Bytes of results so far.

    Raises
    ------
    DeviceError
        The region does not begin on a beat, or ends beyond all addresses.
    """

    def __init__(self, launch: Launch, results: ResultRegion) -> None:
        config: AcceleratorConfig = launch.microcode.config
        record = launch.microcode.records["result"]
        self._bus_bytes = config.bus_bytes
        self._base, self._region_bytes = record["base"], record["region_bytes"]
        end = self._base + self._region_bytes
        if self._base % config.bus_bytes or end > 1 << config.address_width_bits:
            raise fault_error(FaultCode.ILLEGAL_REDUCE_MICROCODE, NO_UNIT)
        self._data = results.region.data[self._base - results.region.base :]
        self._offset = 0
        self.written_bytes = 0

    def write(self, results: NDArray[np.uint8]) -> None:
        """Write results, uint8 (R, length).

        Raises
        ------
        DeviceError
            One does not lie in the region: RESULT_OUT_OF_BOUNDS, with the address of its first beat
            that doesn't. Nothing of these results is written then.
        """
        count, length = results.shape
        pitch = -(-length // self._bus_bytes) * self._bus_bytes
        room = self._region_bytes - self._offset
        fitting = 0 if room < length else (room - length) // pitch + 1
        if fitting < count:
            left = max(0, room - fitting * pitch)
            beat = self._offset + fitting * pitch + left // self._bus_bytes * self._bus_bytes
            address = self._base + beat
            raise fault_error(FaultCode.RESULT_OUT_OF_BOUNDS, NO_UNIT, 0, address)
        end = self._offset + count * pitch
        self._data[self._offset : end].reshape(count, pitch)[:, :length] = results
        self._offset = end
        self.written_bytes += results.size
