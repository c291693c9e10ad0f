"""scripts/workshop.sh says in one line what is missing, and starts without the network the second time."""

from __future__ import annotations

import shutil
import stat
import subprocess
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
TOOLS = ["sh", "cat", "cksum", "tr", "dirname", "grep", "ls", "rm", "tail", "printf", "mkdir", "env"]


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A copy of what the script looks at, and a PATH of its own with only the plain tools."""
    there = tmp_path / "a checkout with spaces"
    for name in ("scripts/workshop.sh", "pyproject.toml", "setup.py"):
        target = there / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(REPOSITORY / name, target)
    (there / "native").mkdir()
    (there / "bin").mkdir()
    for tool in TOOLS:
        found = shutil.which(tool)
        if found:
            (there / "bin" / tool).symlink_to(found)
    return there


def put(checkout: Path, name: str, script: str) -> None:
    path = checkout / "bin" / name
    path.unlink(missing_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


def start(checkout: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(checkout / "bin" / "sh"), "scripts/workshop.sh", *(arguments or ("start",))],
        cwd=checkout,
        env={"PATH": str(checkout / "bin"), "HOME": str(checkout), **variables},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )


def put_compiler(checkout: Path) -> None:
    put(checkout, "cc", "cat >/dev/null; exit 0")


def probe_answer(version: str, venv: str, headers: str) -> str:
    """A pretend interpreter: answers the probe, makes a pretend environment, knows no ensurepip if told so."""
    return (
        f'case "$2" in *sysconfig*) echo {version} {venv} {headers} "$0" ;; '
        f"*ensurepip*) [ {venv} = venv ] ;; esac; "
        'if [ "$1" = -m ]; then mkdir -p "$3/bin"; cp_venv "$3"; fi'
    )


def test_no_compiler_is_one_line(checkout: Path) -> None:
    done = start(checkout)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "no C compiler" in done.stderr
    assert "apt install gcc" in done.stderr


def test_a_compiler_without_headers_is_one_line(checkout: Path) -> None:
    put(checkout, "gcc", "cat >/dev/null; exit 1")
    done = start(checkout)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "libc6-dev" in done.stderr


def test_no_python_is_one_line(checkout: Path) -> None:
    put_compiler(checkout)
    done = start(checkout)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "no Python 3.11 to 3.13" in done.stderr
    assert "and no uv" in done.stderr


def test_a_python_too_old_or_too_new_does_not_count(checkout: Path) -> None:
    put_compiler(checkout)
    put(checkout, "python3", probe_answer("3.9", "venv", "headers"))
    put(checkout, "python", probe_answer("3.14", "venv", "headers"))
    assert "no Python 3.11 to 3.13" in start(checkout).stderr


def test_a_name_that_a_version_manager_refuses_to_run_does_not_count(checkout: Path) -> None:
    put_compiler(checkout)
    put(checkout, "python3.13", "echo 'version not installed' >&2; exit 127")
    assert "no Python 3.11 to 3.13" in start(checkout).stderr


def test_the_python_that_is_asked_for_comes_first(checkout: Path) -> None:
    put_compiler(checkout)
    put(checkout, "python3.13", probe_answer("3.13", "-", "headers"))
    put(checkout, "my-python", probe_answer("3.12", "venv", "-"))
    assert "python3-dev" in start(checkout, PYTHON="my-python").stderr
    assert "python3-venv" in start(checkout).stderr


@pytest.mark.parametrize(
    ("venv", "headers", "package"), [("venv", "-", "python3-dev"), ("-", "headers", "python3-venv")]
)
def test_missing_headers_and_missing_venv_are_told_apart(checkout: Path, venv: str, headers: str, package: str) -> None:
    put_compiler(checkout)
    put(checkout, "python3.12", probe_answer("3.12", venv, headers))
    done = start(checkout)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert package in done.stderr


PRETEND_VENV = r"""
mkdir -p "$1/bin"
printf '#!/bin/sh\necho "$0 $*" >>"%s/calls"\nexit 0\n' "$PWD" >"$1/bin/python"
printf '#!/bin/sh\nexit 0\n' >"$1/bin/pip"
printf '#!/bin/sh\necho started "$@"\n' >"$1/bin/jitter-workshop"
chmod +x "$1/bin/python" "$1/bin/pip" "$1/bin/jitter-workshop"
"""


@pytest.fixture
def installable(checkout: Path) -> Path:
    """A checkout whose pretend Python makes pretend environments and logs what pip is asked for."""
    put_compiler(checkout)
    chmod = shutil.which("chmod")
    assert chmod
    (checkout / "bin" / "chmod").symlink_to(chmod)
    put(checkout, "cp_venv", PRETEND_VENV)
    put(checkout, "python3.12", probe_answer("3.12", "venv", "headers"))
    return checkout


def test_a_version_has_an_environment_of_its_own(installable: Path) -> None:
    put(installable, "python3.13", probe_answer("3.13", "venv", "headers"))
    done = start(installable, PYTHON="3.13")
    assert done.stdout == "started\n", done.stderr
    assert (installable / ".venv.3.13").exists()
    assert not (installable / ".venv").exists()
    # The name says nothing: what counts is the version that the interpreter has.
    put(installable, "python3.11", probe_answer("3.12", "venv", "headers"))
    assert start(installable, PYTHON="3.11").returncode == 2


def pip_calls(checkout: Path) -> int:
    calls = checkout / "calls"
    return calls.read_text().count("-m pip install") if calls.exists() else 0


def test_the_second_start_fetches_nothing(installable: Path) -> None:
    first = start(installable)
    assert first.returncode == 0, first.stderr
    assert first.stdout == "started\n"
    fetched = pip_calls(installable)
    assert fetched > 0
    second = start(installable, "start", "--plain")
    assert second.stdout == "started --plain\n"
    assert second.stderr == ""
    assert pip_calls(installable) == fetched


def test_a_half_made_environment_is_removed(installable: Path) -> None:
    (installable / ".venv" / "bin").mkdir(parents=True)
    rubbish = installable / ".venv" / "rubbish"
    rubbish.touch()
    done = start(installable)
    assert done.returncode == 0, done.stderr
    assert not rubbish.exists()
    assert "half made" in done.stderr


def test_a_changed_native_source_is_rebuilt(installable: Path) -> None:
    start(installable)
    before = pip_calls(installable)
    (installable / "native" / "ring.c").write_text("int changed;")
    done = start(installable)
    assert done.returncode == 0, done.stderr
    assert pip_calls(installable) > before


def test_a_moved_checkout_gets_a_new_environment(installable: Path) -> None:
    start(installable)
    marker = installable / ".venv" / "marker"
    marker.touch()
    moved = installable.parent / "moved"
    installable.rename(moved)
    done = start(moved)
    assert done.returncode == 0, done.stderr
    assert not (moved / ".venv" / "marker").exists()
