"""Both ways of finding a file in a recorded tree give the same answers, and neither leaves it."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jitter_workshop.host.recorded_tree import PathRefused, Tree
from jitter_workshop.host.root import HostRoot

NAMES = ("a", "b", "c")
part = st.sampled_from([*NAMES, "..", ".", ""])
path = st.lists(part, max_size=6).map("/".join)
target = st.one_of(path, path.map(lambda text: "/" + text)).filter(bool)


def walking(top: str) -> Tree:
    """A tree that has no openat2."""
    tree = Tree(top)
    tree._opener = None
    return tree


def answer(tree: Tree, path: str) -> tuple[str, int]:
    try:
        looked = tree.look(path)
    except PathRefused as refusal:
        return str(refusal), 0
    except OSError as error:
        return errno.errorcode[error.errno or 0], 0
    try:
        return "found", os.fstat(looked).st_ino
    finally:
        os.close(looked)


def has_openat2(folder: Path) -> bool:
    tree = Tree(str(folder))
    os.close(tree.look("."))
    return tree._opener is not None


@settings(max_examples=300)
@given(
    st.lists(st.tuples(st.lists(st.sampled_from(NAMES), min_size=1, max_size=3), st.one_of(st.none(), target))),
    st.lists(path, min_size=1, max_size=8),
)
def test_one_call_and_the_walk_agree(entries: list[tuple[list[str], str | None]], paths: list[str]) -> None:
    with TemporaryDirectory() as folder:
        top = Path(folder, "tree")
        top.mkdir()
        Path(folder, "a").write_text("outside")
        for names, link in entries:
            place = top.joinpath(*names)
            try:
                place.parent.mkdir(parents=True, exist_ok=True)
                if link is None:
                    place.mkdir() if len(names) < 3 else place.write_text("x")
                else:
                    place.symlink_to(link)
            except OSError:
                continue
        quick, slow = Tree(str(top)), walking(str(top))
        inside = {entry.stat(follow_symlinks=False).st_ino for entry in [top, *top.rglob("*")]}
        for wanted in paths:
            found = answer(quick, wanted)
            assert found == answer(slow, wanted)
            assert found[0] != "found" or found[1] in inside


def test_a_container_without_the_call_is_asked_once(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("x")
    calls: list[str] = []

    def refuse(folder: int, path: str) -> int:
        calls.append(path)
        raise PermissionError(errno.EPERM, "seccomp")

    tree = Tree(str(tmp_path))
    tree._opener = refuse
    for _ in range(3):
        os.close(tree.look("/a"))
    assert calls == ["a"]


def test_a_path_without_links_needs_one_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not has_openat2(tmp_path):
        pytest.skip("this kernel or container has no openat2")
    (tmp_path / "a/b").mkdir(parents=True)
    (tmp_path / "a/b/c").write_text("x")
    (tmp_path / "link").symlink_to("a")
    walked: list[str] = []
    plain = Tree._walk
    monkeypatch.setattr(Tree, "_walk", lambda self, path: (walked.append(path), plain(self, path))[1])
    root = HostRoot(tmp_path)
    assert root.text("/a/b/c") == root.text("a//b/./c") == root.text("a/../a/b/c") == "x"
    assert root.text("/a/b/none") is None
    assert root.list_dir("/") == ("a", "link")
    assert walked == []
    assert root.text("/link/b/c") == "x"
    assert walked == ["/link/b/c"]


def test_the_descriptor_of_the_top_goes_with_the_tree(tmp_path: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208
    for _ in range(20):
        assert HostRoot(tmp_path).text("/none") is None
    assert len(os.listdir("/proc/self/fd")) == before  # noqa: PTH208


@pytest.mark.parametrize("live", [True, False])
def test_folders_of_a_folder(tmp_path: Path, live: bool) -> None:
    (tmp_path / "group.slice").mkdir()
    (tmp_path / "cpu.max").write_text("max 100000")
    (tmp_path / "away").symlink_to("/")
    root, prefix = (HostRoot(), str(tmp_path)) if live else (HostRoot(tmp_path), "")
    assert root.folders(f"{prefix}/") == ("group.slice",)
    assert root.folders(f"{prefix}/none") == root.folders(f"{prefix}/cpu.max") == ()
