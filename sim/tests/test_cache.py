import re
import threading
from pathlib import Path

import pytest

from ember_hw.errors import ToolError
from ember_hw.sim.cache import build_once, cache_folder


def test_cache_folder_follows_the_environment(monkeypatch, tmp_path):
    monkeypatch.setenv("EMBER_HW_CACHE", str(tmp_path / "chosen"))
    assert cache_folder() == tmp_path / "chosen"
    monkeypatch.delenv("EMBER_HW_CACHE")
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "ember_hw"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache_folder() == Path.home() / ".cache" / "ember_hw"
    monkeypatch.setattr("sys.platform", "darwin")
    assert cache_folder() == Path.home() / "Library" / "Caches" / "ember_hw"


def test_cache_folder_refuses_white_space(monkeypatch):
    monkeypatch.setenv("EMBER_HW_CACHE", "/a b/c")
    message = (
        "the cache folder must be a path without white space, not '/a b/c'; "
        "set EMBER_HW_CACHE to another folder"
    )
    with pytest.raises(ToolError, match=f"^{re.escape(message)}$"):
        cache_folder()


def test_concurrent_callers_build_once(tmp_path):
    builds = []

    def build(draft: Path) -> None:
        builds.append(draft)
        threading.Event().wait(0.05)
        (draft / "content").write_text("whole")

    def call() -> None:
        assert (build_once(tmp_path / "key", build) / "content").read_text() == "whole"

    threads = [threading.Thread(target=call) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(builds) == 1


def test_a_failed_build_leaves_nothing_and_is_tried_again(tmp_path):
    def fail(draft: Path) -> None:
        (draft / "content").write_text("half")
        raise ToolError("no compiler")

    with pytest.raises(ToolError, match=r"^no compiler$"):
        build_once(tmp_path / "key", fail)
    assert [path.name for path in tmp_path.iterdir()] == ["key.lock"]
    build_once(tmp_path / "key", lambda draft: (draft / "content").touch())
    assert (tmp_path / "key" / "content").exists()
