"""The byte code of tests that is made before a ring is what pytest looks for."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]


def kept_files(folder: Path) -> list[tuple[str, int]]:
    """Names and inodes: pytest replaces a file that it refuses, and writes another where it looks for another name."""
    return [(path.name, path.stat().st_ino) for path in (folder / "__pycache__").iterdir()]


def test_pytest_takes_the_kept_files_and_shows_values(tmp_path: Path) -> None:
    test = tmp_path / "test_made.py"
    test.write_text("def test_it():\n    two = 1 + 1\n    assert two == 3\n", encoding="utf-8")
    subprocess.run([sys.executable, "-m", "tests.rewritten", str(tmp_path)], cwd=REPOSITORY, timeout=60, check=True)
    before = kept_files(tmp_path)
    assert len(before) == 1
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-c", os.devnull, "-p", "no:cacheprovider", str(test)],
        env=environment | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert "assert 2 == 3" in done.stdout
    assert kept_files(tmp_path) == before
