"""The built-in course as it was kept: equal to what is read, and never used once something has changed."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from jitter_workshop import paths
from jitter_workshop.course import kept, loader
from jitter_workshop.course.loader import builtin_course, load_course, read_course


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the course's first chapters, kept in a cache of its own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    course = tmp_path / "course"
    shutil.copytree(builtin_course(), course)
    return course


def keep(folder: Path) -> Path:
    course = read_course(folder).course
    assert course is not None
    kept.keep_course(folder, course)
    assert kept.read_kept_course(folder) == course
    return paths.cache_dir() / kept.FILE


def test_the_kept_course_is_equal_to_the_read_one(folder: Path) -> None:
    assert kept.read_kept_course(folder) is None
    file = keep(folder)
    assert file.stat().st_mode & 0o777 == 0o600
    assert kept.read_kept_course(builtin_course()) is None


@pytest.mark.parametrize("name", ["course.toml", "01-baseline/lesson.toml", "01-baseline/lesson.md"])
def test_a_changed_file_is_read_again(folder: Path, name: str) -> None:
    keep(folder)
    known = (folder / name).stat()
    os.utime(folder / name, ns=(known.st_atime_ns, known.st_mtime_ns + 1))
    assert kept.read_kept_course(folder) is None
    os.utime(folder / name, ns=(known.st_atime_ns, known.st_mtime_ns))
    assert kept.read_kept_course(folder) is not None
    (folder / "01-baseline" / "new.txt").write_text("")
    assert kept.read_kept_course(folder) is None


def test_a_changed_reader_reads_again(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keep(folder)
    monkeypatch.setattr(kept, "__version__", "another")
    assert kept.read_kept_course(folder) is None


@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b'{"format_version": 2}', b"\xff\xfe", b'{"format_version": 1'])
def test_a_damaged_file_is_no_course(folder: Path, content: bytes) -> None:
    keep(folder).write_bytes(content)
    assert kept.read_kept_course(folder) is None


def test_a_file_that_others_can_write_is_not_trusted(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = keep(folder)
    file.chmod(0o620)
    assert kept.read_kept_course(folder) is None
    file.chmod(0o600)
    assert kept.read_kept_course(folder) is not None
    monkeypatch.setattr(os, "geteuid", lambda: file.stat().st_uid + 1)
    assert kept.read_kept_course(folder) is None


def test_where_nothing_can_be_written_nothing_is_kept(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    course = read_course(folder).course
    assert course is not None
    kept.keep_course(folder, course)
    assert kept.read_kept_course(folder) is None


def test_the_course_is_kept_on_disk_only_if_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    loader._builtin.cache_clear()
    loader._keep.cache_clear()
    course = load_course()
    assert not list(tmp_path.iterdir())
    assert load_course(keep=True) == course
    assert kept.read_kept_course(builtin_course()) == course
    loader._builtin.cache_clear()
    monkeypatch.setattr(loader, "read_course", pytest.fail)
    assert load_course() == course
    loader._builtin.cache_clear()
