"""Makes the virtual environment that `make` works in; quick when nothing changed.

    python3 tools/setup_venv.py .venv [--extras test,lint]

Standard library only: it runs before anything is installed. A record in the environment holds
its extras and a digest of everything that decides its content: a second run does nothing.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import json
import platform
import re
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
OLDEST_PYTHON, NEWEST_PYTHON = (3, 11), (3, 13)
OLDEST_TORCH = (2, 13)
# PyTorch's index of builds without CUDA. PyPI's build for Linux brings gigabytes of CUDA libraries.
CPU_INDEX = "https://download.pytorch.org/whl/cpu"
PROBE_SECONDS = 5


def digest() -> str:
    """Hash what decides the content: this script, the two lists of versions, the Python."""
    state = hashlib.sha256(sys.version.encode())
    for path in (Path(__file__), ROOT / "pyproject.toml", ROOT / "constraints.txt"):
        state.update(path.read_bytes())
    return state.hexdigest()


def run(*command: str | Path) -> None:
    """Run a command, its output going to ours.

    Raises
    ------
    subprocess.CalledProcessError
        If it ends with anything but 0.
    """
    print("+", *command, flush=True)
    subprocess.run([str(word) for word in command], check=True)


def has_pip(python: Path) -> bool:
    """Whether `python` is this Python's version and has pip."""
    question = "import sys, pip; print(sys.version)"
    answer = subprocess.run([python, "-c", question], capture_output=True, text=True)
    return answer.returncode == 0 and answer.stdout.strip() == sys.version


def create_venv(venv: Path) -> Path:
    """Create the environment, unless it is there, and return its Python.

    Debian splits `ensurepip` off into python3-venv. Without it, the system's pip puts pip into the
    environment.
    """
    python = venv / "bin" / "python"
    if python.exists() and has_pip(python):
        return python
    if importlib.util.find_spec("ensurepip") is not None:
        run(sys.executable, "-m", "venv", "--clear", venv)
    else:
        run(sys.executable, "-m", "venv", "--clear", "--without-pip", venv)
        run(sys.executable, "-m", "pip", "--python", python, "install", "pip")
    return python


def installed_torch(python: Path) -> str | None:
    """Return the version of the torch that the environment imports, or None."""
    probe = subprocess.run(
        [python, "-c", "import torch; print(torch.__version__)"], capture_output=True, text=True
    )
    return probe.stdout.strip() if probe.returncode == 0 else None


def is_supported_torch(version: str) -> bool:
    """Whether pyproject.toml's range of torch holds `version`."""
    numbers = re.match(r"(\d+)\.(\d+)", version)
    return numbers is not None and OLDEST_TORCH <= (int(numbers[1]), int(numbers[2])) < (3, 0)


def answers(url: str) -> bool:
    """Whether `url` answers within `PROBE_SECONDS`: pip would retry for minutes on no answer."""
    try:
        with urllib.request.urlopen(url, timeout=PROBE_SECONDS) as reply:
            return reply.status == 200
    except (urllib.error.URLError, OSError):
        return False


def install_torch(python: Path, pin: str) -> str:
    """Install a CPU build of torch where pip can have one, any build otherwise; return the version.

    A torch in the supported range that the environment has already stays.
    """
    version = installed_torch(python)
    if version is not None and is_supported_torch(version):
        print(f"torch {version} is installed")
        return version
    install = [python, "-m", "pip", "install"]
    if platform.system() == "Linux":
        # Only CPU builds carry the local version +cpu: this takes one from wherever pip is
        # configured to look, or from PyTorch's index, and ends quickly where there is none.
        index = ["--extra-index-url", CPU_INDEX] if answers(f"{CPU_INDEX}/torch/") else []
        try:
            run(*install, *index, f"torch=={pin}+cpu")
            return f"{pin}+cpu"
        except subprocess.CalledProcessError:
            print("no CPU build of torch can be had; taking what pip gives")
    run(*install, f"torch=={pin}")
    return pin


def write_constraints(venv: Path, torch_version: str) -> Path:
    """Copy constraints.txt into the environment with torch held at the installed version."""
    text = (ROOT / "constraints.txt").read_text()
    copy = venv / "constraints.txt"
    copy.write_text(re.sub(r"(?m)^torch==.*$", f"torch=={torch_version}", text))
    return copy


def main() -> int:
    """Create or update the environment; return the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("venv", type=Path)
    parser.add_argument(
        "--extras", default="", help="extras of pyproject.toml, separated by commas"
    )
    arguments = parser.parse_args()
    venv: Path = arguments.venv
    if not OLDEST_PYTHON <= sys.version_info[:2] <= NEWEST_PYTHON:
        print(
            f"Python must be 3.11 to 3.13, not {platform.python_version()} ({sys.executable}); "
            "name another: make PYTHON=python3.12 ..."
        )
        return 1

    wanted = {extra for extra in arguments.extras.split(",") if extra}
    record = venv / "ember-hw.json"
    known = json.loads(record.read_text()) if record.exists() else {"digest": "", "extras": []}
    if known["digest"] == digest() and wanted <= set(known["extras"]):
        return 0

    extras = sorted(wanted | set(known["extras"]))
    try:
        python = create_venv(venv)
        pin = re.search(r"(?m)^torch==(\S+)$", (ROOT / "constraints.txt").read_text())
        assert pin is not None, "constraints.txt pins torch"
        constraints = write_constraints(venv, install_torch(python, pin[1]))
        target = f"{ROOT}[{','.join(extras)}]" if extras else str(ROOT)
        run(python, "-m", "pip", "install", "--constraint", constraints, "--editable", target)
    except subprocess.CalledProcessError as error:
        command = " ".join(map(str, error.cmd))
        print(f"setting up {venv} failed: {command!r} ended with {error.returncode}")
        if error.cmd[1:3] == ["-m", "venv"] or "--python" in error.cmd:
            print("Install pip for this Python first; on Debian: apt install python3-venv")
        return 1
    record.write_text(json.dumps({"digest": digest(), "extras": extras}, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
