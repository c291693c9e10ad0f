"""The templates of a class host, read by the programs that they are for: systemd, visudo."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from jitter_workshop.classroom import hoststeps
from jitter_workshop.classroom.hoststeps import fill

LIMIT_S = 60.0
REPOSITORY = Path(__file__).parents[2]
UNITS = [f"{one}.{kind}" for one in hoststeps.SERVICES for kind in ("socket", "service")]


def needs(program: str, package: str) -> str:
    found = shutil.which(program, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")
    if found is None:
        pytest.skip(f"{program} is not here (Debian: apt install {package})")
    return found


def filled(name: str, folder: Path) -> Path:
    """A template with an interpreter and a library that are there."""
    made = folder / name
    text = fill(name, PYTHON=sys.executable, HOMES="yes", HOUSEKEEPING="0-1 4", LIB=str(REPOSITORY))
    made.write_text(text)
    return made


@pytest.mark.parametrize("name", UNITS)
def test_systemd_finds_nothing_wrong_with_a_unit(name: str, tmp_path: Path) -> None:
    verify = needs("systemd-analyze", "systemd")
    for one in UNITS:
        filled(one, tmp_path)
    words = [verify, "verify", "--man=no", str(tmp_path / name)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    ours = [line for line in (done.stdout + done.stderr).splitlines() if "jitter-workshop" in line]
    assert (done.returncode, ours) == (0, [])


def test_a_word_that_systemd_does_not_know_would_be_found(tmp_path: Path) -> None:
    verify = needs("systemd-analyze", "systemd")
    for one in UNITS:
        filled(one, tmp_path)
    unit = tmp_path / UNITS[1]
    unit.write_text(unit.read_text().replace("KillMode=mixed", "KillMood=mixed"))
    done = subprocess.run([verify, "verify", "--man=no", str(unit)], capture_output=True, text=True, timeout=LIMIT_S, check=False)  # fmt: skip  # noqa: E501
    assert "KillMood" in done.stderr


def test_systemd_reads_the_cpus_of_logins(tmp_path: Path) -> None:
    verify = needs("systemd-analyze", "systemd")
    unit = tmp_path / "user.slice"
    unit.write_text(filled("logins.conf", tmp_path).read_text())
    done = subprocess.run([verify, "verify", "--man=no", str(unit)], capture_output=True, text=True, timeout=LIMIT_S, check=False)  # fmt: skip  # noqa: E501
    assert (done.returncode, [line for line in done.stderr.splitlines() if str(unit) in line]) == (0, [])
    assert "AllowedCPUs=0-1 4\n" in unit.read_text()


def test_sudo_reads_its_rule(tmp_path: Path) -> None:
    visudo = needs("visudo", "sudo")
    rule = filled("sudoers", tmp_path)
    done = subprocess.run([visudo, "-cf", str(rule)], capture_output=True, text=True, timeout=LIMIT_S, check=False)
    assert done.returncode == 0, done.stderr
    assert "NOPASSWD: ALL" not in rule.read_text()
    lines = [line for line in rule.read_text().splitlines() if line and not line.startswith("#")]
    assert [line.split()[0] for line in lines] == ["%jitterlab", "%jitterlab"]
    assert all(line.endswith("__main__.py") and "*" not in line for line in lines)
    rule.write_text(rule.read_text().replace("NOPASSWD:", "NOPASWD:"))
    done = subprocess.run([visudo, "-cf", str(rule)], capture_output=True, text=True, timeout=LIMIT_S, check=False)
    assert done.returncode == 1
