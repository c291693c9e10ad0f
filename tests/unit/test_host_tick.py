"""CONFIG_HZ from the kernel's own configuration, or from the distribution's copy of it."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jitter_workshop.host.kernel.release import read_tick_hz
from jitter_workshop.host.root import HostRoot

CONFIG = b"CONFIG_HZ_300=y\nCONFIG_HZ=300\nCONFIG_NO_HZ_FULL=y\n"


def tree(top: Path, files: dict[str, bytes]) -> HostRoot:
    for name, data in files.items():
        (top / name).parent.mkdir(parents=True, exist_ok=True)
        (top / name).write_bytes(data)
    return HostRoot(top)


def test_the_running_kernels_own_configuration_comes_first(tmp_path: Path) -> None:
    root = tree(tmp_path, {"proc/config.gz": gzip.compress(CONFIG), "boot/config-6.1": b"CONFIG_HZ=100\n"})
    assert read_tick_hz(root, "6.1") == (300, "/proc/config.gz")


def test_the_distributions_copy_serves_where_there_is_none(tmp_path: Path) -> None:
    root = tree(tmp_path, {"boot/config-6.1": b"CONFIG_HZ=100\n"})
    assert read_tick_hz(root, "6.1") == (100, "/boot/config-6.1")


# mtime: the data name the test, and each worker of a parallel run has to find the same names.
@pytest.mark.parametrize(
    "data", [b"", b"no gzip", gzip.compress(CONFIG, mtime=0)[:12], gzip.compress(b"CONFIG_HZ=many\n", mtime=0)]
)
def test_a_file_that_is_no_configuration_gives_no_tick_rate(tmp_path: Path, data: bytes) -> None:
    assert read_tick_hz(tree(tmp_path, {"proc/config.gz": data}), "6.1")[0] is None


def test_a_small_file_that_inflates_without_end_is_cut(tmp_path: Path) -> None:
    root = tree(tmp_path, {"proc/config.gz": gzip.compress(b"x" * (64 << 20))})
    assert read_tick_hz(root, "6.1")[0] is None


@given(st.binary(max_size=200))
def test_bytes_come_back_as_they_are(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    assert tree(tmp_path_factory.mktemp("raw"), {"file": data}).raw("/file") == data
