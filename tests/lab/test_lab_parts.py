"""The lab's parts that need no QEMU: the initrd's archive, the kernel's packing, module order, what is a change."""

from __future__ import annotations

import gzip
import lzma
import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jitter_workshop.practice import images, kernels
from tests.lab import fetch, watched

NAMES = st.text("abcdefgh", min_size=1, max_size=6)


def unpack(archive: bytes) -> dict[str, tuple[int, bytes]]:
    """Path → (mode, content) of a newc archive, read by its specification."""
    found, at = {}, 0
    while True:
        assert archive[at : at + 6] == b"070701"
        assert at % 4 == 0
        fields = [int(archive[at + 6 + 8 * n : at + 14 + 8 * n], 16) for n in range(13)]
        mode, size, name_size = fields[1], fields[6], fields[11]
        name = archive[at + 110 : at + 110 + name_size - 1].decode()
        start = (at + 110 + name_size + 3) // 4 * 4
        if name == "TRAILER!!!":
            return found
        assert name not in found
        found[name] = (mode, archive[start : start + size])
        at = (start + size + 3) // 4 * 4


@given(st.dictionaries(st.lists(NAMES, min_size=1, max_size=3).map(lambda parts: "/".join(["top", *parts, "file"])),
                       st.binary(max_size=40), max_size=6))  # fmt: skip
def test_an_archive_holds_the_given_files(files: dict[str, bytes]) -> None:
    found = unpack(images.cpio((name, stat.S_IFREG | 0o644, content) for name, content in files.items()))
    assert {name: content for name, (mode, content) in found.items() if stat.S_ISREG(mode)} == files
    parents = {str(parent) for name in files for parent in Path(name).parents} - {"."}
    assert {name for name, (mode, _) in found.items() if stat.S_ISDIR(mode)} == parents


@given(st.binary(max_size=200), st.integers(1, 4), st.binary(max_size=20), st.sampled_from(["xz", "gz"]))
def test_kernel_comes_out_of_its_packing(kernel: bytes, sectors: int, before: bytes, packing: str) -> None:
    packed = lzma.compress(kernel) if packing == "xz" else gzip.compress(kernel)
    payload = packed + len(kernel).to_bytes(4, "little")
    image = bytearray((sectors + 1) * 512) + before + payload + b"trailing"
    image[0x1F1] = sectors
    image[0x248:0x24C] = len(before).to_bytes(4, "little")
    image[0x24C:0x250] = len(payload).to_bytes(4, "little")
    assert kernels.vmlinux(bytes(image)) == kernel


def test_unknown_packing_is_said() -> None:
    with pytest.raises(kernels.NotHere, match="unknown way"):
        kernels.vmlinux(bytes(4096))


@given(st.lists(st.lists(st.integers(0, 30), max_size=3), min_size=1, max_size=12), st.randoms())
def test_modules_load_after_the_modules_that_they_need(needs: list[list[int]], random: object) -> None:
    # Module n may need only earlier ones, as in a kernel.
    modules, wants = {}, {}
    for number, raw in enumerate(needs):
        wants[f"m-{number}"] = {f"m-{n % number}" for n in raw} if number else set()
        field = ",".join(name.replace("-", "_") for name in sorted(wants[f"m-{number}"]))
        modules[f"m-{number}"] = b"\x7fELF\0license=GPL\0depends=" + field.encode() + b"\0name=x\0"
    order = kernels.load_order([*reversed(modules), "built-in"], modules)
    assert sorted(order) == sorted(modules)
    for name in modules:
        assert all(order.index(need) < order.index(name) for need in wants[name])


def test_soft_dependencies_load_too() -> None:
    modules = {"a": b"\0depends=\0softdep=pre: b c\0", "b": b"\0depends=\0", "c": b"\0"}
    assert kernels.load_order(["a"], modules) == ["b", "c", "a"]


def test_changes_are_named_and_passing_threads_are_none() -> None:
    before = {"/a": "1", "/b": "2", "/gone": "x", "task 5 kworker began 9": "cpus 0", "task 6 x began 3": "cpus 1"}
    after = {"/a": "1", "/b": "3", "/new/": "a cgroup", "task 6 x began 3": "cpus 2", "task 7 y began 11": "cpus 0"}
    expected = [
        "/b: '2' -> '3'",
        "/gone: 'x' -> '(is gone)'",
        "/new/: '(was not there)' -> 'a cgroup'",
        "task 6 x began 3: 'cpus 1' -> 'cpus 2'",
    ]
    assert watched.differences(before, after) == expected


@pytest.mark.parametrize(("switch", "code"), [("", 0), ("required", 2)])
def test_fetch_says_why_there_is_no_lab(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path, switch: str, code: int
) -> None:
    monkeypatch.setenv("JITTER_WORKSHOP_LAB", switch)
    monkeypatch.setenv("JITTER_WORKSHOP_LAB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(kernels, "TOOLS", {"no-such-emulator": "its-package"})
    assert fetch.main() == code
    assert "no-such-emulator not installed (Debian: apt install its-package)" in capsys.readouterr().err
    assert not (tmp_path / "cache").exists()


def test_a_fetch_that_fails_is_tried_again_where_required(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    tried: list[str] = []

    def refuse(flavour: str, cache: Path) -> kernels.UnpackedKernel:
        tried.append(flavour)
        raise kernels.NotHere("apt-get download failed: no network")

    monkeypatch.setenv("JITTER_WORKSHOP_LAB", "required")
    monkeypatch.setenv("JITTER_WORKSHOP_LAB_CACHE", str(tmp_path))
    monkeypatch.setattr(kernels, "check_tools", lambda: None)
    monkeypatch.setattr(kernels, "fetch", refuse)
    monkeypatch.setattr(fetch.time, "sleep", lambda seconds: None)
    assert fetch.main() == 2
    assert tried == ["stock"] * 4
    assert "no network" in capsys.readouterr().err
