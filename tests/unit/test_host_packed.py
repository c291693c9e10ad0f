"""Recordings in one file: those of the project, and archives that mean harm or are none."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jitter_workshop.errors import HostError
from jitter_workshop.host.recording import packed
from jitter_workshop.host.recording.packed import unpacked
from jitter_workshop.host.root import HostRoot

RECORDINGS = Path(__file__).parents[2] / "assets" / "recordings"


def archive(path: Path, *members: tuple[str, bytes | str | None], mode: str = "w:gz") -> Path:
    """bytes: a file, str: a symbolic link, None: a FIFO."""
    with tarfile.open(path, mode) as tar:  # type: ignore[call-overload]
        for name, content in members:
            member = tarfile.TarInfo(name)
            if isinstance(content, bytes):
                member.size = len(content)
                tar.addfile(member, io.BytesIO(content))
                continue
            member.type, member.linkname = (tarfile.FIFOTYPE, "") if content is None else (tarfile.SYMTYPE, content)
            tar.addfile(member)
    return path


@pytest.mark.parametrize("mode", ["w", "w:gz", "w:xz"])
@pytest.mark.parametrize("top", ["", "./", "recorded/"])
def test_an_archive_is_unpacked_once(tmp_path: Path, mode: str, top: str) -> None:
    file = archive(tmp_path / "a.tar", (f"{top}proc/a", b"1\n"), (f"{top}sys/b/c", b"2\n"), mode=mode)
    folder = unpacked(file, tmp_path / "cache")
    assert HostRoot(folder).text("/proc/a") == "1"
    assert HostRoot(folder).text("/sys/b/c") == "2"
    (folder / "proc/a").write_text("still here")
    assert unpacked(file, tmp_path / "cache") == folder
    assert (folder / "proc/a").read_text() == "still here"


@pytest.mark.parametrize(
    ("name", "content"),
    [("../out", b"x"), ("proc/../../out", b"x"), ("proc", "/etc"), ("proc/pipe", None)],
)
def test_an_entry_that_is_no_plain_file_inside_is_refused(
    tmp_path: Path, name: str, content: bytes | str | None
) -> None:
    file = archive(tmp_path / "a.tar", ("sys/fine", b"1"), (name, content))
    with pytest.raises(HostError, match="is not a recording"):
        unpacked(file, tmp_path / "cache")
    assert list((tmp_path / "cache").iterdir()) == []
    assert not (tmp_path / "out").exists()


def test_absolute_names_land_below_the_folder(tmp_path: Path) -> None:
    folder = unpacked(archive(tmp_path / "a.tar", ("/proc/x", b"1"), ("/sys/y", b"2")), tmp_path / "cache")
    assert (folder / "proc/x").read_bytes() == b"1"


def test_a_file_twice_is_refused(tmp_path: Path) -> None:
    with pytest.raises(HostError, match="File exists"):
        unpacked(archive(tmp_path / "a.tar", ("proc/x", b"1"), ("proc/x", b"2")), tmp_path / "cache")


def test_too_large_is_refused_before_it_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = archive(tmp_path / "a.tar", ("proc/x", b"1" * 1000), ("proc/y", b"1" * 1000))
    monkeypatch.setattr(packed, "MAX_TOTAL_BYTES", 1500)
    with pytest.raises(HostError, match="too large"):
        unpacked(file, tmp_path / "cache")
    monkeypatch.setattr(packed, "MAX_PACKED_BYTES", 10)
    with pytest.raises(HostError, match="too large for a recording"):
        unpacked(file, tmp_path / "cache")


@given(st.binary(max_size=300), st.booleans())
def test_any_bytes_are_told_in_one_sentence(tmp_path_factory: pytest.TempPathFactory, data: bytes, begun: bool) -> None:
    folder = tmp_path_factory.mktemp("bytes")
    file = archive(folder / "a.tar", ("proc/x", b"1" * 5000), mode="w:xz")
    file.write_bytes(file.read_bytes()[:100] + data if begun else data)
    with pytest.raises(HostError, match="cannot be unpacked"):
        unpacked(file, folder / "cache")
    assert list((folder / "cache").iterdir()) == []
