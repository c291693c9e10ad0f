"""The banner: what its owner wrote is read, and nothing else."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from jitter_workshop.classroom import store
from jitter_workshop.errors import HostError
from jitter_workshop.model.board import Banner

SAID = Banner("ada", "2026-01-01T00:00:00Z", "pinning", "compare", "look here")
ME = frozenset({os.geteuid()})


def test_it_is_read_as_it_was_written(tmp_path: Path) -> None:
    assert store.read_banner(tmp_path, ME) is None
    store.publish_banner(tmp_path, SAID)
    assert store.read_banner(tmp_path, ME) == SAID
    assert (tmp_path / store.BANNER_FILE).stat().st_mode & 0o777 == 0o644
    store.publish_banner(tmp_path, None)
    store.publish_banner(tmp_path, None)
    assert store.read_banner(tmp_path, ME) is None
    assert list(tmp_path.iterdir()) == []


def test_a_banner_of_another_writer_is_not_read(tmp_path: Path) -> None:
    store.publish_banner(tmp_path, SAID)
    assert store.read_banner(tmp_path, frozenset({os.geteuid() + 1})) is None


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    store.publish_banner(tmp_path, SAID)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / store.BANNER_FILE).symlink_to(tmp_path / store.BANNER_FILE)
    assert store.read_banner(tmp_path / "other", ME) is None
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / store.BANNER_FILE).unlink()
    (tmp_path / "fifo").rename(tmp_path / store.BANNER_FILE)
    assert store.read_banner(tmp_path, ME) is None


@pytest.mark.parametrize("data", [b"", b"null", b"[]", b"{}", b"\xff", b'{"by":7,"at":""}', b" " * 5000, b"[" * 4000])
def test_an_invalid_banner_file_is_read_as_no_banner(tmp_path: Path, data: bytes) -> None:
    (tmp_path / store.BANNER_FILE).write_bytes(data)
    assert store.read_banner(tmp_path, ME) is None


def test_a_folder_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(HostError, match="cannot be shown"):
        store.publish_banner(tmp_path / "none", SAID)
