"""A wheel of this project, installed where there is no checkout."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]


def test_a_wheel_installed_elsewhere_finds_its_lessons_and_assets(tmp_path: Path) -> None:
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input"]
    if subprocess.run([*pip, "--version"], capture_output=True, check=False).returncode:
        pytest.skip("this environment has no pip (made by uv): the wheel is built where pip is")
    source = tmp_path / "source"
    shutil.copytree(
        REPOSITORY,
        source,
        ignore=shutil.ignore_patterns(".*", "tests", "bench-results", "build", "*.egg-info", "__pycache__", "*.so"),
    )
    built = subprocess.run(
        [*pip, "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", str(tmp_path / "wheels"), str(source)],
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    assert built.returncode == 0, built.stderr
    (wheel,) = (tmp_path / "wheels").glob("*.whl")
    assert "-cp311-abi3-" in wheel.name
    there = tmp_path / "there"
    subprocess.run(
        [*pip, "install", "-q", "--no-deps", "--target", str(there), str(wheel)], check=True, timeout=120, cwd=tmp_path
    )
    environment = os.environ | {
        "PYTHONPATH": str(there),
        "XDG_STATE_HOME": str(tmp_path / "state"),
        "XDG_CONFIG_HOME": str(tmp_path / "config"),
    }
    code = (
        "import jitter_workshop, pathlib, sys; from importlib.resources import files;"
        "assert pathlib.Path(jitter_workshop.__file__).is_relative_to(sys.argv[1]), jitter_workshop.__file__;"
        "print((files('jitter_workshop.lessons') / 'course.toml').is_file(),"
        "(files('jitter_workshop.assets') / 'published-latencies.json').is_file())"
    )
    found = subprocess.run(
        [sys.executable, "-c", code, str(there)],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert found.stdout.split() == ["True", "True"]
    toured = subprocess.run(
        [sys.executable, "-m", "jitter_workshop", "lessons", "list"],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert toured.returncode == 0, toured.stderr
    assert "Pinning" in toured.stdout
