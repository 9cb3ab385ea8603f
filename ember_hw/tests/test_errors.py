import pytest

from ember_hw import errors


@pytest.mark.parametrize(
    ("error", "parent"),
    [
        (errors.CompileError, errors.EmberError),
        (errors.UnsupportedError, errors.CompileError),
        (errors.CheckError, errors.EmberError),
        (errors.AssemblyError, errors.EmberError),
        (errors.ProgramError, errors.EmberError),
        (errors.DeviceError, errors.EmberError),
        (errors.ToolError, errors.EmberError),
    ],
)
def test_all_are_caught_as_ember_error(error, parent):
    assert issubclass(error, parent)
    assert str(error("the message alone")) == "the message alone"


def test_compile_error_points_at_its_node():
    assert errors.UnsupportedError("no", node="linear").node == "linear"
    assert errors.CompileError("no").node is None


def test_device_error_carries_the_fault():
    error = errors.DeviceError("no", code=3, unit=1, stream=2, address=0x40, completed=5)
    assert (error.code, error.unit, error.stream, error.address) == (3, 1, 2, 0x40)
    assert error.completed == 5
    error = errors.DeviceError("no")
    assert (error.code, error.unit, error.stream, error.address) == (None, None, None, None)
    assert error.completed is None
