from __future__ import annotations

from pathlib import Path

import pytest

from ember_hw.config import AcceleratorConfig
from ember_hw.host.backends import verilog
from ember_hw.rtl import emit_verilog


@pytest.fixture
def emitted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[AcceleratorConfig]:
    """The configs that were emitted, in a cache of the test's own."""
    configs: list[AcceleratorConfig] = []

    def emit(config: AcceleratorConfig) -> str:
        configs.append(config)
        return f"module {config.name}; endmodule"

    monkeypatch.setenv("EMBER_HW_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(emit_verilog, "emit_verilog", emit)
    return configs


def test_each_config_is_emitted_once(emitted: list[AcceleratorConfig]) -> None:
    presets = [AcceleratorConfig.preset(name) for name in ("tiny", "small", "tiny")]
    texts = [verilog.cached_verilog(config) for config in presets]
    assert texts[0] == texts[2] == "module tiny; endmodule"
    assert texts[1] == "module small; endmodule"
    assert emitted == presets[:2]


def test_changed_source_is_emitted_again(
    emitted: list[AcceleratorConfig], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (rtl,) = verilog.ember_hw.rtl.__path__
    copy = tmp_path / "ember_hw" / "rtl"
    copy.mkdir(parents=True)
    package = Path(rtl).parent
    for path in [*package.glob("*.py"), *package.glob("rtl/*.py"), *package.glob("isa/*.py")]:
        target = copy.parent / path.relative_to(package)
        target.parent.mkdir(exist_ok=True)
        target.write_text(path.read_text())
    monkeypatch.setattr(verilog.ember_hw.rtl, "__path__", [str(copy)])
    config = AcceleratorConfig.preset("tiny")
    for changed in (copy / "access_unit.py", copy.parent / "isa" / "records.py"):
        verilog.cached_verilog(config)
        changed.write_text(changed.read_text() + "\n")
    verilog.cached_verilog(config)
    assert len(emitted) == 3


def test_changed_tool_is_emitted_again(
    emitted: list[AcceleratorConfig], monkeypatch: pytest.MonkeyPatch
) -> None:
    config = AcceleratorConfig.preset("tiny")
    verilog.cached_verilog(config)
    monkeypatch.setattr(verilog, "TOOLS", ("amaranth", "no-such-package-of-ember-hw"))
    verilog.cached_verilog(config)
    assert len(emitted) == 2


def test_results_take_the_place_of_bundles_and_rows() -> None:
    config = AcceleratorConfig()
    assert verilog.model_shape(config).reduces == 0
    assert verilog.model_shape(config.with_changes(execute="reduce")).reduces == 1


def test_one_unit_writes_its_results() -> None:
    config = AcceleratorConfig(execute="reduce", results="memory")
    assert verilog.model_shape(config).writes == 1
    assert verilog.model_shape(config.with_changes(results="stream")).writes == 0
    with pytest.raises(ValueError, match=r"results") as caught:
        verilog.model_shape(config, units=2)
    assert str(caught.value) == "results must be stream in a simulation of 2 units, not 'memory'"
