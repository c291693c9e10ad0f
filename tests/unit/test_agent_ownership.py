"""Test the check of the code's owner: root is warned, and other users are refused."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from jitter_workshop.agent import ownership
from jitter_workshop.errors import HostError

OWNER = os.geteuid()


@pytest.fixture
def code(tmp_path: Path) -> Path:
    file = tmp_path / "package" / "module.py"
    file.parent.mkdir()
    file.write_text("x = 1\n")
    file.parent.chmod(0o755)
    file.chmod(0o644)
    return file


def ask(problem_file: Path, environment: dict[str, str], from_socket: bool = False, general: bool = False) -> str:
    asked: list[str] = []

    def may(user: str) -> bool:
        asked.append(user)
        return general

    return ownership.check_ownership(environment, from_socket, may, OWNER, lambda: [str(problem_file)])


def below(path: Path) -> str:
    """The first problem at or above ``path``, as far as this test's own folder goes."""
    return ownership.first_foreign([str(path)], OWNER)


def test_a_file_that_others_may_write_is_found(code: Path) -> None:
    code.chmod(0o666)
    assert below(code) == f"{code} can be written by others"


def test_a_folder_above_that_others_may_write_is_found(code: Path) -> None:
    code.parent.chmod(0o775)
    assert below(code) == f"{code.parent} can be written by others"


def test_a_sticky_folder_above_that_all_may_write_is_fine(code: Path) -> None:
    top = code.parent.parent
    top.chmod(0o1777)
    assert below(code) == ""
    top.chmod(0o777)
    assert below(code) == f"{top} can be written by others"


def test_a_folder_that_code_is_loaded_from_is_not_saved_by_being_sticky(code: Path) -> None:
    code.parent.chmod(0o1777)
    assert below(code) == ""
    assert below(code.parent) == f"{code.parent} can be written by others"
    # Whichever of the two is looked at first.
    assert ownership.first_foreign([str(code), str(code.parent)], OWNER) != ""


@pytest.mark.skipif(OWNER != 0, reason="only root can give files away")
def test_a_sticky_folder_of_another_user_is_found(code: Path) -> None:
    top = code.parent.parent
    top.chmod(0o1777)
    os.chown(top, 1000, 1000)
    assert below(code) == f"{top} belongs to user 1000"


@pytest.mark.skipif(OWNER != 0, reason="only root can give files away")
def test_a_file_of_another_user_is_found_also_behind_a_link(code: Path) -> None:
    os.chown(code, 1000, 1000)
    link = code.with_name("link.py")
    link.symlink_to(code)
    assert below(link) == f"{code} belongs to user 1000"


def test_a_file_that_is_gone_is_a_problem(code: Path) -> None:
    assert "cannot be checked" in below(code.with_name("gone.py"))


def test_root_itself_is_told(code: Path) -> None:
    code.chmod(0o666)
    for environment in ({}, {"SUDO_USER": "root"}):
        assert "other users can change" in ask(code, environment)


def test_general_sudo_is_told_and_goes_on(code: Path) -> None:
    code.chmod(0o666)
    assert "runs as root from" in ask(code, {"SUDO_USER": "ada", "SUDO_UID": "1000"}, general=True)


@pytest.mark.parametrize(
    ("environment", "from_socket"),
    [
        ({"SUDO_USER": "ada", "SUDO_UID": "1000"}, False),
        ({"PKEXEC_UID": "1000"}, False),
        ({"DOAS_USER": "ada"}, False),
        ({}, True),
    ],
)
def test_restricted_rights_need_roots_own_tree(environment: dict[str, str], from_socket: bool, code: Path) -> None:
    code.chmod(0o666)
    with pytest.raises(HostError, match="can be written by others"):
        ask(code, environment, from_socket)


def test_all_that_may_be_loaded_is_looked_at() -> None:
    files = set(ownership.own_files())
    package = Path(ownership.tree()) / "jitter_workshop"
    for name in (
        "__init__.py",
        "errors.py",
        "agent/__main__.py",
        "tuning/tunables/registry.py",
        "host/root.py",
    ):
        assert str(package / name) in files
    for room in ("agent", "host", "model", "tuning"):
        assert {str(path) for path in (package / room).rglob("*.py")} <= files, (
            "folders below a room are looked at, too"
        )
    interpreter = Path(sys.executable).resolve()
    assert {str(interpreter.parent), str(interpreter.parent.parent)} <= files
    assert os.path.realpath(os.__file__) in {os.path.realpath(file) for file in files}


def test_a_user_unknown_to_sudo_may_not_run_anything() -> None:
    assert ownership.may_run_anything("nobody-of-that-name") is False
