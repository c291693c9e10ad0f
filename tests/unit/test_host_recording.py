"""A recording gives the answers that the host gave; what was begun and failed is gone again."""

from __future__ import annotations

import errno
import inspect
import json
import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from jitter_workshop.errors import HostError
from jitter_workshop.flow.host_ops.record_host import read_every_file
from jitter_workshop.host.recording import recorder
from jitter_workshop.host.recording.recorder import RecordingReport, RecordingRoot, write_recording
from jitter_workshop.host.recording.recording_filter import HIDDEN_NAME, Scrubber
from jitter_workshop.host.root import HostRoot
from jitter_workshop.host.tasks.listing import PF_KTHREAD
from tests import hosttrees
from tests.all_readers import gather, readers
from tests.hosttrees import irq, network_card, task, write

MAC = "52:54:00:12:34:56"


def record(tree: Path, target: Path, scrubber: Scrubber | None = None) -> RecordingReport:
    root = RecordingRoot(tree)
    read_every_file(root)
    return write_recording(root, target, {"note": "made"}, scrubber)


def without_names(answers: dict[str, object]) -> dict[str, str]:
    """Answers as text, but for the host's name and the parameters that are not kept."""
    return {
        name: str(answer).replace("'recorded-host'", "'NAME'").replace("BOOT_IMAGE=removed root=removed", "BOOT")
        for name, answer in answers.items()
        if name != "boot.cmdline.read_command_line"
    }


@pytest.mark.parametrize("name", sorted(hosttrees.EVERY))
def test_a_recording_answers_like_its_host(host_tree: Callable[[str], Path], tmp_path: Path, name: str) -> None:
    tree = host_tree(name)
    report = record(tree, tmp_path / "copy")
    live, copy = HostRoot(tree), HostRoot(tmp_path / "copy")
    host_name = (live.text("/proc/sys/kernel/hostname") or "").join("''")
    told = {k: v.replace(host_name, "'NAME'") for k, v in without_names(gather(live)).items()}
    told = {k: v.replace("BOOT_IMAGE=/vmlinuz root=/dev/sda1", "BOOT") for k, v in told.items()}
    assert without_names(gather(copy)) == told
    assert report.files > 10
    assert (report.changed, report.left_out) == ((), ())


def private_tree(tmp_path: Path) -> Path:
    tree = hosttrees.guest(tmp_path / "host")
    files = task(2, "kthreadd", flags=PF_KTHREAD) | task(700, "irqbalance") | task(900, "alices-secret")
    files |= {"proc/900/cmdline": "alices-secret\0--password=hunter2\0", "proc/900/comm": "alices-secret\n"}
    files |= irq(36, "0-1", "1") | network_card("enx525400123456")
    files |= {"proc/cmdline": f"root=UUID=0f5c1a52-3d77-4f0e-9a9e-6d2f2f7f1c11 ip=10.9.8.7 mac={MAC} isolcpus=1\n"}
    files |= {"sys/class/power_supply/hid-aa:bb:cc:dd:ee:ff-battery/type": "Battery\n"}
    return write(tree, files)


def everything_in(folder: Path) -> str:
    paths = sorted(folder.rglob("*"))
    return "\n".join([*map(str, paths), *(p.read_text(errors="replace") for p in paths if p.is_file())])


def test_nothing_private_is_in_it(tmp_path: Path) -> None:
    record(private_tree(tmp_path), tmp_path / "copy")
    text = everything_in(tmp_path / "copy").replace(str(tmp_path), "")
    for secret in ("secret", "hunter2", MAC, "525400123456", "10.9.8.7", "6d2f2f7f1c11 ", "lab-vm", "aa:bb:cc", "mac="):
        assert secret not in text.replace("mac=removed", ""), secret
    assert "isolcpus=1" in text
    assert "irqbalance" in text
    assert HIDDEN_NAME in text
    assert not list((tmp_path / "copy").rglob("cmdline*"))[1:]


def test_the_hosts_name_when_it_is_asked_for(tmp_path: Path) -> None:
    record(private_tree(tmp_path), tmp_path / "copy", Scrubber("lab-vm"))
    assert HostRoot(tmp_path / "copy").text("/proc/sys/kernel/hostname") == "lab-vm"


def test_a_recording_names_its_format_and_note(tmp_path: Path) -> None:
    record(private_tree(tmp_path), tmp_path / "copy")
    assert HostRoot(tmp_path / "copy").recording is not None
    said = json.loads((tmp_path / "copy/RECORDING.json").read_text())
    assert (said["format_version"], said["note"]) == (1, "made")


def test_a_recording_of_a_recording_is_the_same(tmp_path: Path) -> None:
    record(private_tree(tmp_path), tmp_path / "one")
    record(tmp_path / "one", tmp_path / "two")
    one, two = (everything_in(tmp_path / n).replace(str(tmp_path / n), "") for n in ("one", "two"))
    assert one == two


def test_there_are_no_links_and_nothing_special_in_it(tmp_path: Path) -> None:
    tree = private_tree(tmp_path)
    (tree / "sys/class/net/eth7").symlink_to("../../../../..")
    (tree / "sys/class/thermal").mkdir()
    (tree / "sys/class/thermal/thermal_zone0").symlink_to("thermal_zone0")
    os.mkfifo(tree / "proc/irq/36/effective_affinity")
    record(tree, tmp_path / "copy")
    kinds = {stat.S_IFMT(p.lstat().st_mode) for p in (tmp_path / "copy").rglob("*")}
    assert kinds == {stat.S_IFREG, stat.S_IFDIR}


def test_this_machine(tmp_path: Path) -> None:
    report = record(Path("/"), tmp_path / "copy")
    assert report.files > 50
    live, copy = gather(HostRoot()), gather(HostRoot(tmp_path / "copy"))
    for name in (
        "cpu.topology.read_memory_nodes",
        "irq.irq_affinity.read_movable",
    ):
        assert copy[name] == live[name]
    assert (
        os.uname().nodename not in json.dumps(str(copy["kernel.release.read_kernel"])) or len(os.uname().nodename) < 4
    )


def test_every_way_to_read_is_noted(tmp_path: Path) -> None:
    """A way to read that somebody adds to HostRoot has to be noted too, or recordings would lack files."""
    write(tmp_path, {"sys/f": "7\n", "sys/d/x1": "1\n"})
    asked = {"prefix": "x", "limit": 100}
    for name, method in inspect.getmembers(HostRoot, inspect.isfunction):
        if name.startswith("_"):
            continue
        takes = list(inspect.signature(method).parameters.values())[1:]
        assert takes[0].name == "path", name
        more = [asked[p.name] for p in takes[1:] if p.default is inspect.Parameter.empty]
        for path in ("/sys/f", "/sys/d"):
            root = RecordingRoot(tmp_path)
            before = HostRoot(tmp_path)
            assert getattr(root, name)(path, *more) == getattr(before, name)(path, *more)
            assert path in root.files or path in root.folders_seen or path in root.refused or path == "/sys/f", name
            if path == "/sys/f" and name not in ("list_dir", "folders", "numbered", "is_dir"):
                assert root.files == {"/sys/f": b"7\n"}, name


def test_the_readers_are_found() -> None:
    names = {name for name, _, _ in readers()}
    assert {
        "irq.irq_affinity.read_irqs",
        "services.read_services",
        "cpu.topology.read_topology",
        "cpu.stat.read_stat",
    } <= names


def test_a_longer_reading_replaces_a_shorter_one(tmp_path: Path) -> None:
    root = RecordingRoot(write(tmp_path, {"sys/f": "long enough\n"}))
    root.head("/sys/f", 4)
    assert root.files["/sys/f"] == b"long"
    root.text("/sys/f")
    root.head("sys//./f", 2)
    assert root.files == {"/sys/f": b"long enough\n"}


@pytest.mark.parametrize("kind", ["not empty", "a file", "a link"])
def test_targets_that_cannot_be_taken(tmp_path: Path, kind: str) -> None:
    target = tmp_path / "target"
    if kind == "not empty":
        write(target, {"mine": "keep\n"})
    elif kind == "a file":
        target.write_text("keep\n")
    else:
        (tmp_path / "elsewhere").mkdir()
        target.symlink_to(tmp_path / "elsewhere")
    tree = private_tree(tmp_path)
    before = everything_in(tmp_path)
    with pytest.raises(HostError, match="not empty" if kind == "not empty" else "not a folder"):
        record(tree, target)
    assert everything_in(tmp_path) == before


def test_an_empty_folder_is_taken_and_a_deep_one_is_not_made(tmp_path: Path) -> None:
    tree = private_tree(tmp_path)
    (tmp_path / "copy").mkdir()
    assert record(tree, tmp_path / "copy").files > 20
    with pytest.raises(HostError, match="cannot make"):
        record(tree, tmp_path / "no/such/parent")


def test_a_host_that_shows_nothing(tmp_path: Path) -> None:
    (tmp_path / "host").mkdir()
    with pytest.raises(HostError, match="nothing can be read"):
        record(tmp_path / "host", tmp_path / "copy")
    assert not (tmp_path / "copy").exists()


@pytest.mark.parametrize("made_before", [True, False])
def test_a_full_disk_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, made_before: bool) -> None:
    target = tmp_path / "copy"
    if made_before:
        target.mkdir()
    written = recorder._write_file
    left = [5]

    def full(folder: int, name: str, data: bytes) -> None:
        left[0] -= 1
        if left[0] < 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        written(folder, name, data)

    monkeypatch.setattr(recorder, "_write_file", full)
    with pytest.raises(HostError, match="No space left on device") as failed:
        record(private_tree(tmp_path), target)
    assert failed.value.advice.startswith("nothing was kept")
    assert target.exists() == made_before
    assert not made_before or not list(target.iterdir())


def test_an_interruption_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(folder: int, name: str, data: bytes) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(recorder, "_write_file", interrupted)
    with pytest.raises(KeyboardInterrupt):
        record(private_tree(tmp_path), tmp_path / "copy")
    assert not (tmp_path / "copy").exists()


def test_a_host_that_changed_meanwhile(tmp_path: Path) -> None:
    root = RecordingRoot(private_tree(tmp_path))
    read_every_file(root)
    root.files["/sys/was/a/file"] = b"1\n"
    root.files["/sys/was/a"] = b"2\n"
    root.files["/sys/class/" + "n" * 300] = b"3\n"
    report = write_recording(root, tmp_path / "copy", {})
    assert sorted(report.changed)[0].startswith("/sys/class/nnn")
    assert sorted(report.changed)[1:] in (["/sys/was/a"], ["/sys/was/a/file"])


def test_a_recording_keeps_the_list_of_files_that_were_not_permitted(tmp_path: Path) -> None:
    root = RecordingRoot(private_tree(tmp_path))
    read_every_file(root)
    root.refused["/sys/kernel/debug/sched/preempt"] = "not permitted"
    root.refused["/sys/kernel/other"] = "no such file"
    report = write_recording(root, tmp_path / "copy", {})
    assert report.not_permitted == ("/sys/kernel/debug/sched/preempt",)
    copy = HostRoot(tmp_path / "copy")
    assert copy.reading("/sys/kernel/debug/sched/preempt").reason == "not permitted"
    assert copy.reading("/sys/kernel/other").reason == "no such file"


def test_no_kernel_addresses_are_recorded(host_tree: Callable[[str], Path], tmp_path: Path) -> None:
    tree = host_tree("server64")
    (tree / "proc/kallsyms").write_text("ffffffff81000000 T _text\n")
    record(tree, tmp_path / "copy")
    assert not (tmp_path / "copy/proc/kallsyms").exists()
