"""Test the places where a report may be written, and the lines that open it."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

import pytest

from jitter_workshop import paths
from jitter_workshop.flow.reporting.draft import FORMATS, RAW, opened_with, report_folders


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty home, with a working directory that is another folder."""
    (tmp_path / "work").mkdir()
    folder = tmp_path / "home"
    folder.mkdir()
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.chdir(tmp_path / "work")
    return folder


def said(tmp_path: Path, line: str) -> None:
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "user-dirs.dirs").write_text(f"# made by xdg-user-dirs-update\n{line}\n")


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ('XDG_DOCUMENTS_DIR="$HOME/Dokumente"', "home/Dokumente"),
        ('XDG_DOCUMENTS_DIR="$HOME/"', "home"),
        ('XDG_DOCUMENTS_DIR="relative"', None),
        ('XDG_MUSIC_DIR="$HOME/Music"', None),
        ("", None),
    ],
)
def test_documents_are_where_the_desktop_says(home: Path, tmp_path: Path, line: str, found: str | None) -> None:
    said(tmp_path, line)
    assert paths.documents_dir() == (tmp_path / found if found else None)


def test_an_absolute_folder_is_taken_as_it_is(home: Path, tmp_path: Path) -> None:
    said(tmp_path, f'XDG_DOCUMENTS_DIR="{tmp_path}/elsewhere"')
    assert paths.documents_dir() == tmp_path / "elsewhere"


def test_a_home_without_a_named_documents_folder_has_none(home: Path) -> None:
    assert paths.documents_dir() is None


def test_the_working_directory_is_first_then_documents_then_home(home: Path, tmp_path: Path) -> None:
    said(tmp_path, 'XDG_DOCUMENTS_DIR="$HOME/Documents"')
    assert report_folders() == (tmp_path / "work", home)
    (home / "Documents").mkdir()
    assert report_folders() == (tmp_path / "work", home / "Documents", home)


def test_a_folder_that_can_be_written_comes_before_one_that_cannot(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "access", lambda path, _: Path(path) == home)
    assert report_folders() == (home, tmp_path / "work")


def test_a_working_directory_that_is_gone_is_left_out(home: Path, tmp_path: Path) -> None:
    (tmp_path / "work").rmdir()
    assert report_folders() == (home,)


@pytest.mark.parametrize("name", ["plain.html", "with blank.html", "$(reboot).html", "it's; rm -rf.html", "-o x.html"])
def test_the_lines_that_open_it_are_safe_to_paste(name: str) -> None:
    here, there = opened_with(Path("/tmp") / name, "lab 03")
    assert shlex.split(here) == ["xdg-open", f"/tmp/{name}"]
    assert shlex.split(there) == ["scp", f"lab 03:/tmp/{name}", "."]


def test_the_page_comes_first() -> None:
    assert next(iter(FORMATS)) == RAW
