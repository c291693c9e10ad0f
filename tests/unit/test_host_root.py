"""Reading below one root: what is read, what is refused, and that nothing raises."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jitter_workshop.host.root import MAX_BYTES, HostRoot, line_value, parse_integer, printable


@pytest.fixture(params=["recorded", "live"])
def both(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[HostRoot, str]:
    """The same folder as a recorded tree and through ``/``, with the prefix that its paths have there."""
    return (HostRoot(tmp_path), "") if request.param == "recorded" else (HostRoot(), str(tmp_path))


def test_text_is_stripped_and_missing_files_are_none(both: tuple[HostRoot, str], tmp_path: Path) -> None:
    root, prefix = both
    (tmp_path / "a").write_text("  performance \n\0")
    (tmp_path / "empty").write_text("")
    (tmp_path / "number").write_text("-42\n")
    assert root.text(f"{prefix}/a") == "performance"
    assert root.text(f"{prefix}/empty") == ""
    assert root.integer(f"{prefix}/number") == -42
    assert root.text(f"{prefix}/missing") is None
    assert root.reading(f"{prefix}/missing").reason == "no such file"
    assert root.reading(f"{prefix}/a/below").reason == "no such file"
    assert root.list_dir(prefix or "/") == ("a", "empty", "number")
    assert root.list_dir(f"{prefix}/missing") == ()
    assert root.list_dir(f"{prefix}/a") == ()


def test_the_leading_slash_may_be_missing(tmp_path: Path) -> None:
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/stat").write_text("x")
    root = HostRoot(tmp_path)
    assert root.text("proc/stat") == root.text("/proc/stat") == root.text("//proc//./stat") == "x"
    assert HostRoot().text("proc/self/comm") is not None


def test_bytes_that_are_no_text_are_replaced(both: tuple[HostRoot, str], tmp_path: Path) -> None:
    root, prefix = both
    (tmp_path / "binary").write_bytes(b"a\xff\xfe\0b\n")
    assert root.text(f"{prefix}/binary") == "a\ufffd\ufffd\0b"


def test_only_regular_files_are_read(both: tuple[HostRoot, str], tmp_path: Path) -> None:
    root, prefix = both
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "folder").mkdir()
    with socket.socket(socket.AF_UNIX) as unix:
        unix.bind(str(tmp_path / "socket"))
        for name in ("fifo", "folder", "socket"):
            reading = root.reading(f"{prefix}/{name}")
            assert reading.text is None
            assert reading.reason
    assert root.is_dir(f"{prefix}/folder")
    assert not root.is_dir(f"{prefix}/fifo")


def test_a_link_to_a_device_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "dev").mkdir()
    (tmp_path / "zero").symlink_to("/dev/zero")
    assert HostRoot(tmp_path).reading("/zero").reason == "no such file"
    assert HostRoot().reading("/dev/zero").reason == "not a regular file"


def test_a_huge_sparse_file_is_refused_without_reading_it(both: tuple[HostRoot, str], tmp_path: Path) -> None:
    root, prefix = both
    with (tmp_path / "huge").open("wb") as file:
        file.truncate(1 << 40)
    assert root.reading(f"{prefix}/huge").reason == f"larger than {MAX_BYTES} bytes"
    assert root.head(f"{prefix}/huge", 16) == ""


def test_the_limit_is_exact(both: tuple[HostRoot, str], tmp_path: Path) -> None:
    root, prefix = both
    (tmp_path / "full").write_text("x" * 100)
    assert root.text(f"{prefix}/full", limit=100) == "x" * 100
    assert root.text(f"{prefix}/full", limit=99) is None
    assert root.head(f"{prefix}/full", 7) == "x" * 7


def test_files_without_a_size_are_read_to_their_end() -> None:
    """procfs files say size 0 and give a page or so a read."""
    text = HostRoot().text("/proc/self/mountinfo")
    assert text == Path("/proc/self/mountinfo").read_text().strip()
    assert HostRoot().text("/proc/self/mountinfo", limit=10) is None


def test_links_stay_inside_the_tree(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    (tree / "real/deep").mkdir(parents=True)
    (tree / "real/file").write_text("inside")
    (tree / "etc").mkdir()
    (tree / "etc/hostname").write_text("the recorded host")
    (tmp_path / "secret").write_text("outside")
    links = {
        "absolute": "/real/file",
        "relative": "real/file",
        "real/deep/up": "../file",
        "real/deep/top": "/real/file",
        "host": "/etc/hostname",
        "folder": "real",
        "chain": "absolute",
        "climbs": "../secret",
        "climbs_far": "real/../../../../../../../etc/passwd",
        "by_name": str(tmp_path / "secret"),
        "loop_a": "loop_b",
        "loop_b": "loop_a",
        "self": "self/self",
    }
    for name, target in links.items():
        (tree / name).symlink_to(target)
    root = HostRoot(tree)
    for name in (
        "absolute",
        "relative",
        "real/deep/up",
        "real/deep/top",
        "folder/file",
        "chain",
        "folder/deep/../file",
    ):
        assert root.text(name) == "inside", name
    assert root.text("host") == "the recorded host"
    for name in ("climbs", "climbs_far", "../secret", "/../secret", "real/../../secret"):
        assert "leads out of the recorded tree" in root.reading(name).reason, name
    assert root.reading("by_name").reason == "no such file"
    for name in ("loop_a", "loop_b", "self"):
        assert root.reading(name).reason == "the links lead in a circle", name
        assert root.list_dir(name) == ()
        assert not root.is_dir(name)
    assert root.list_dir("folder") == ("deep", "file")
    assert root.list_dir("climbs") == ()


def test_a_chain_of_links_is_followed_as_far_as_the_kernel_would(tmp_path: Path) -> None:
    (tmp_path / "link0").write_text("end")
    for n in range(1, 42):
        (tmp_path / f"link{n}").symlink_to(f"link{n - 1}")
    root = HostRoot(tmp_path)
    assert root.text("link40") == (tmp_path / "link40").read_text() == "end"
    assert root.text("link41") is None


def test_links_that_grow_without_end_are_given_up(tmp_path: Path) -> None:
    (tmp_path / "grow").symlink_to("grow/" + "x/" * 200)
    assert HostRoot(tmp_path).reading("grow").reason == "the links lead in a circle"


def test_no_descriptor_is_left_open(tmp_path: Path) -> None:
    (tmp_path / "a/b").mkdir(parents=True)
    (tmp_path / "a/b/file").write_text("x")
    (tmp_path / "a/loop").symlink_to("loop")
    os.mkfifo(tmp_path / "a/fifo")
    root = HostRoot(tmp_path)
    before = os.listdir("/proc/self/fd")  # noqa: PTH208
    for path in ("a/b/file", "a/b", "a/loop", "a/fifo", "a/missing", "a/../../b", "a/b/../b/file"):
        root.text(path)
        root.list_dir(path)
        root.is_dir(path)
        HostRoot().text(f"{tmp_path}/{path}")
    assert len(os.listdir("/proc/self/fd")) == len(before)  # noqa: PTH208


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads every file")
def test_a_file_that_may_not_be_read_has_its_reason(both: tuple[HostRoot, str], tmp_path: Path) -> None:
    root, prefix = both
    (tmp_path / "closed").write_text("x")
    (tmp_path / "closed").chmod(0)
    assert root.reading(f"{prefix}/closed").reason == "not permitted"


def test_kernel_refusals_have_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    """Some attributes open and then fail to be read, such as a sensor that sleeps (ENODATA) or a group in the way."""

    def refuse(file: int, size: int) -> bytes:
        raise OSError(61, "No data available")

    monkeypatch.setattr(os, "read", refuse)
    assert HostRoot().reading("/proc/self/comm").reason == "the kernel says ENODATA"
    monkeypatch.setattr(os, "open", lambda *a, **k: (_ for _ in ()).throw(PermissionError(13, "no")))
    assert HostRoot().reading("/proc/self/comm").reason == "not permitted"


def test_a_missing_tree_reads_as_nothing(tmp_path: Path) -> None:
    root = HostRoot(tmp_path / "absent")
    assert root.recorded
    assert root.reading("/proc/stat").reason == "no such file"
    assert root.list_dir("/") == ()


def test_the_real_root_under_another_name_is_not_recorded(tmp_path: Path) -> None:
    (tmp_path / "slash").symlink_to("/")
    assert not HostRoot(tmp_path / "slash").recorded
    assert not HostRoot(Path("/proc/..")).recorded


def test_numbered_entries_come_in_number_order(tmp_path: Path) -> None:
    for name in ("cpu10", "cpu2", "cpu0", "cpufreq", "cpu", "cpu-1", "cpu99999999999", "cpu٣"):
        (tmp_path / name).mkdir()
    assert HostRoot(tmp_path).numbered("/", "cpu") == ((0, "/cpu0"), (2, "/cpu2"), (10, "/cpu10"))


@given(st.text(max_size=40))
def test_any_path_is_a_value_and_no_exception(path: str) -> None:
    for root in (HostRoot(Path("/nowhere-to-be-found")), HostRoot()):
        reading = root.reading("/nowhere-to-be-found/" + path)
        assert reading.text is None
        assert reading.reason
        assert root.list_dir("/nowhere-to-be-found/" + path) == () or ".." in path


def test_names_that_no_file_can_have(both: tuple[HostRoot, str]) -> None:
    root, prefix = both
    assert root.reading(f"{prefix}/a\0b").reason == "not a file name"
    assert root.reading(f"{prefix}/{'x' * 5000}").reason == "the name is too long"
    assert root.list_dir(f"{prefix}/a\0b") == ()
    assert not root.is_dir(f"{prefix}/a\0b")


@given(st.integers(-(10**19), 10**19))
def test_integers_round_trip(number: int) -> None:
    assert parse_integer(str(number)) == number


@given(st.text(max_size=30))
def test_a_text_that_is_no_integer_is_none(text: str) -> None:
    value = parse_integer(text)
    assert value is None or text.lstrip("+-").isascii()
    assert parse_integer("9" * 5_000) is None


@pytest.mark.parametrize("text", ["", "-", "+-1", "1 2", "0x10", "1_000", "1.5", "٣", "²", "n/a", "<unknown>"])
def test_words_that_sysfs_writes_instead_of_numbers_are_none(text: str) -> None:
    assert parse_integer(text) is None


@given(st.text(max_size=400), st.integers(2, 130))
def test_printable_is_one_clean_line(text: str, limit: int) -> None:
    line = printable(text, limit)
    assert len(line) <= limit
    assert line.isprintable()
    assert line == line.strip()
    assert printable(line, limit) == line


def test_printable_takes_the_teeth_out_of_escapes() -> None:
    assert printable("\x1b[31mred\x1b]0;title\x07\u202eevil\r\nline") == "[31mred ]0;title evil line"


def test_a_task_cannot_forge_a_line_of_its_status_by_its_name() -> None:
    status = "Name:\ta\x1cUid:\t0\nUid:\t1000\t1001\n"
    assert line_value(status, "Uid") == "1000\t1001"
    assert line_value(status, "Gid") == line_value(None, "Uid") == ""


def test_host_imports_the_standard_library_only() -> None:
    """Root's side imports these modules: nothing from outside may come with them."""
    program = (
        "import importlib, pkgutil, sys\n"
        "import jitter_workshop.host as host\n"
        "for m in pkgutil.iter_modules(host.__path__): importlib.import_module(f'{host.__name__}.{m.name}')\n"
        "names = {n.partition('.')[0] for n in sys.modules}\n"
        "print(sorted(names - set(sys.stdlib_module_names) - {'jitter_workshop', '__main__'}))\n"
        "print(sorted(n for n in sys.modules if n.startswith('jitter_workshop.')))\n"
    )
    top = str(Path(__file__).parents[2])
    done = subprocess.run(
        [sys.executable, "-S", "-c", f"import sys; sys.path.insert(0, {top!r})\n{program}"],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    foreign, own = done.stdout.splitlines()
    assert foreign == "[]"
    assert "jitter_workshop.host.summary" in own
    assert not any(
        f"jitter_workshop.{room}" in own for room in ("bench", "stats", "session", "flow", "tui", "commands")
    )
