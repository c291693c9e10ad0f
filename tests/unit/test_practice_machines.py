"""Practice machines without one: whose they are, if a kernel is whole, what QEMU is told, what the verb refuses."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jitter_workshop import cli
from jitter_workshop.commands.common import guest
from jitter_workshop.errors import HostError, WorkshopError
from jitter_workshop.flow.scenarios.playing import NO_SCENARIO
from jitter_workshop.practice import kernels, kvm, qemu, relay, room, running
from jitter_workshop.practice.kernels import NotHere, UnpackedKernel
from jitter_workshop.practice.qemu import MachineOptions
from jitter_workshop.practice.running import Owner
from jitter_workshop.practice.shape import SHAPES

HOLDER = """
import signal, sys, threading
from pathlib import Path
from jitter_workshop.practice import running
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
with running.folder(sys.argv[1], Path(sys.argv[2])):
    print("held", flush=True)
    threading.Event().wait(60)
"""


def holder(shape: str, cache: Path) -> subprocess.Popen[str]:
    """A process that has a machine's folder."""
    words = [sys.executable, "-c", HOLDER, shape, str(cache)]
    child = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    assert child.stdout.readline() == "held\n"
    child.stdout.close()
    return child


def made_kernel(cache: Path, image: bytes = b"\x7fELF kernel") -> UnpackedKernel:
    folder = cache.parent / "6.1.0-made"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "virtio_pci.ko").write_bytes(b"\0depends=virtio\0")
    (folder / "virtio.ko").write_bytes(b"\0depends=\0")
    (cache.parent / "vmlinuz").write_bytes(image)
    return kernels.add_kernel(cache.parent / "vmlinuz", folder, "stock", cache)


VALUES = st.none() | st.booleans() | st.integers() | st.text(max_size=5)
SAID = st.dictionaries(st.sampled_from(["shape", "pid", "since"]), VALUES).map(lambda said: json.dumps(said).encode())


@given(st.binary(max_size=60) | SAID)
def test_every_owners_file_names_a_process_or_none(text: bytes) -> None:
    owner = running.parsed(text)
    assert owner is None or (owner.pid > 1 and isinstance(owner.shape, str))


@given(st.text(max_size=10), st.integers(2, 1 << 22), st.floats(0, 2e9))
def test_an_owners_file_is_read_as_it_was_written(shape: str, pid: int, since: float) -> None:
    text = json.dumps({"shape": shape, "pid": pid, "since": since}).encode()
    assert running.parsed(text) == Owner(shape, pid, since)


def test_a_machine_is_its_owners_until_that_ends_and_then_swept(tmp_path: Path) -> None:
    one, two = holder("laptop", tmp_path), holder("server", tmp_path)
    try:
        assert [(owner.shape, owner.pid) for owner in running.owners_of_machines(tmp_path)] == [
            ("laptop", one.pid),
            ("server", two.pid),
        ]
        one.send_signal(signal.SIGKILL)
        one.wait(20)
        assert [owner.pid for owner in running.owners_of_machines(tmp_path)] == [two.pid]
        assert (running.remove_dead_folders(tmp_path), running.remove_dead_folders(tmp_path)) == (1, 0)
        ended, going = running.stop(tmp_path, "laptop")
        assert (ended, going) == ([], [])
        ended, going = running.stop(tmp_path)
        assert ([owner.pid for owner in ended], going) == ([two.pid], [])
        assert list((tmp_path / running.FOLDER).iterdir()) == []
    finally:
        for child in (one, two):
            child.kill()
            child.wait()


def test_the_console_outlives_the_machine(tmp_path: Path) -> None:
    with running.folder("bare", tmp_path) as own:
        (own / "console").write_text("panic")
    assert (tmp_path / running.LAST_LOG).read_text() == "panic"
    assert not own.exists()


@given(st.data())
def test_a_damaged_byte_is_found_in_any_kept_file(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    cache = tmp_path_factory.mktemp("kernel") / "cache"
    kernel = made_kernel(cache)
    kernels.verify_kernel(kernel)
    assert [module.stem for module in kernel.modules] == ["virtio", "virtio_pci"]
    assert kernel.release == "6.1.0-made"
    kept = sorted(path for path in kernel.folder.rglob("*") if path.is_file() and path.stat().st_size)
    file = data.draw(st.sampled_from([path for path in kept if path.name != kernels.SUMS]))
    content = bytearray(file.read_bytes())
    content[data.draw(st.integers(0, len(content) - 1))] ^= data.draw(st.integers(1, 255))
    file.write_bytes(content)
    with pytest.raises(NotHere, match="damaged") as told:
        kernels.verify_kernel(kernel)
    assert file.name in told.value.message
    assert "practice fetch" in told.value.advice


@pytest.mark.parametrize("cut", ["vmlinux", kernels.SUMS])
def test_a_kernel_that_was_half_deleted_is_not_whole(tmp_path: Path, cut: str) -> None:
    kernel = made_kernel(tmp_path / "cache")
    (kernel.folder / cut).unlink()
    with pytest.raises(NotHere, match="is incomplete"):
        kernels.verify_kernel(kernel)
    (kernel.folder / kernels.SUMS).write_text("")
    with pytest.raises(NotHere, match="damaged"):
        kernels.verify_kernel(kernel)


@given(st.binary(max_size=1200))
def test_every_file_given_as_a_kernel_is_taken_or_refused_in_words(
    tmp_path_factory: pytest.TempPathFactory, image: bytes
) -> None:
    cache = tmp_path_factory.mktemp("own") / "cache"
    try:
        kernels.verify_kernel(made_kernel(cache, image))
    except WorkshopError:
        assert not (cache / f"stock-{kernels.LAYOUT}").exists()


def words_of(options: MachineOptions, tmp_path: Path) -> list[str]:
    kernel = made_kernel(tmp_path / "cache")
    return qemu.qemu_command(options, kernel, tmp_path, None, [Path("/usr"), Path("/a,b")])


def test_memory_in_files_is_each_nodes_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels, "tool", lambda name: f"/usr/bin/{name}")
    kernel = made_kernel(tmp_path / "cache")
    for name, sizes in (("laptop", [768]), ("server", [512, 512])):
        files = tuple(Path(f"/m,{node}") for node in range(len(sizes)))
        memory = qemu.MemoryFiles(files, shared=False)
        words = qemu.qemu_command(MachineOptions.of(SHAPES[name]), kernel, tmp_path, None, [], memory)
        objects = [word for word in words if word.startswith("memory-backend-")]
        assert objects == [
            f"memory-backend-file,mem-path=/m,,{node},share=off,id=m{node},size={size}M"
            for node, size in enumerate(sizes)
        ]
        used = [word for word in words if word.startswith("node,") or word == "memory-backend=m0"]
        assert len(used) == len(sizes)
    assert words_of(MachineOptions(accelerator="kvm"), tmp_path)[6:8] == ["-accel", "kvm"]


def test_shares_are_read_only_but_for_the_one_that_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels, "tool", lambda name: f"/usr/bin/{name}")
    words = words_of(MachineOptions.of(SHAPES["laptop"]), tmp_path)
    shares = [word for word in words if word.startswith("local,")]
    assert len(shares) == 2
    assert all("readonly=on" in share for share in shares)
    # QEMU reads a comma in a path where it is written twice.
    assert "path=/a,,b," in shares[1]
    kept = MachineOptions(kept=Path("/home/l/kept"))
    (written,) = [word for word in words_of(kept, tmp_path) if word.startswith("local,") and "readonly" not in word]
    assert "path=/home/l/kept," in written
    assert not any(word.startswith(("user,", "tap,")) for word in words), "no network"
    (network,) = [word for word in words_of(MachineOptions(network=True), tmp_path) if word.startswith("user,")]
    assert "restrict=on" in network
    assert "fwd" not in network
    assert words[words.index("-accel") + 1].startswith("tcg")


@pytest.fixture
def verb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))

    def run(*words: str) -> tuple[int, str, str]:
        code = cli.main(["practice", *words])
        said = capsys.readouterr()
        return code, said.out, said.err

    return run


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--shape", "guest", "--", "true"], "no steal clock"),
        (["--shape", "rt", "--", "true"], "practice fetch --shape rt"),
        (["list", "--network"], "takes no --network"),
        (["--shape", "../x", "--", "true"], "there is no shape"),
        (["list", "--", "true"], "takes no command"),
        (["--kernel", "x", "--", "true"], "are for 'practice fetch'"),
        (["fetch", "--kernel", "/no"], "belong together"),
        (["--json"], "--json is for"),
        (["fetch", "--kernel", "/no/such", "--modules", "/no"], "this kernel cannot be used"),
        (["--", "true"], "practice fetch"),
        (["scenario"], "needs the id of a scenario"),
        (["scenario", "\x1b[2Jcrowd"], "there is no scenario"),
        (["scenario", "crowd"], "needs a terminal"),
        (["scenario", "crowd", "--try", "--shape", "laptop"], "needs the shape bare"),
        (["scenario", "crowd", "--folder", "/no/such"], "/no/such cannot be read"),
        (["list", "crowd"], "are for 'practice scenario'"),
        (["--seed", "3"], "are for 'practice scenario'"),
        (["check"], NO_SCENARIO),
        (["hint"], NO_SCENARIO),
    ],
)
def test_a_refusal_is_one_sentence(verb: Any, monkeypatch: pytest.MonkeyPatch, words: list[str], told: str) -> None:
    monkeypatch.setattr(kernels, "TOOLS", {})
    code, out, err = verb(*words)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert told in err
    assert "\x1b" not in err


def test_scenarios_are_listed_with_those_that_were_solved(verb: Any, tmp_path: Path) -> None:
    kept = tmp_path / "state" / "jitter-workshop" / "practice" / "bare"
    kept.mkdir(parents=True)
    (kept / "solved.json").write_text(json.dumps({"solved": [{"scenario": "crowd", "seed": 1, "at": 1.0, "hints": 0}]}))
    code, out, _ = verb("scenarios")
    assert code == 0
    assert [line.split()[1] for line in out.splitlines() if line.startswith("✓")] == ["crowd"]
    said = json.loads(verb("scenarios", "--json")[1])
    assert [one["id"] for one in said["scenarios"] if one["solved"]] == ["crowd"]


def test_mistakes_of_a_teacher_s_folder_are_listed_with_their_lines(verb: Any, tmp_path: Path) -> None:
    (tmp_path / "own.toml").write_text('format_version = 1\nshape = "lap"\n')
    code, _, err = verb("scenarios", "--folder", str(tmp_path))
    assert code == 1
    assert "own.toml:2: unknown shape 'lap'" in err
    assert "own.toml:1: title is missing" in err


def test_a_missing_emulator_is_named_with_its_package(verb: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels, "TOOLS", {"no-such-emulator": "its-package"})
    code, _, err = verb("--", "true")
    assert code == 2
    assert "no-such-emulator" in err
    assert "apt install its-package" in err


def test_the_list_names_missing_programs_and_running_machines(
    verb: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kernels, "TOOLS", {})
    monkeypatch.setattr(kvm, "probe_kvm", lambda: kvm.KvmProbe(True, "measured", 0.5, 2.0))
    said = json.loads(verb("list", "--json")[1])
    assert (said["accelerator"], said["kvm_turn_ns"]) == ("kvm", 0.5)
    monkeypatch.setattr(kvm, "probe_kvm", lambda: kvm.KvmProbe(False, "made slow", 700.0, 14.0))
    assert "made slow" in verb("list")[1]
    code, out, _ = verb("--list", "--json")
    said = json.loads(out)
    assert (code, said["accelerator"], said["running"]) == (0, "tcg", [])
    assert (said["why"], said["kvm_turn_ns"], said["saved_mib"]) == ("made slow", 700.0, 0)
    assert [shape["name"] for shape in said["shapes"]] == list(SHAPES)
    assert {shape["ready"] for shape in said["shapes"]} == {False}
    assert "practice fetch" in said["shapes"][0]["why"]
    cache = tmp_path / "cache" / "jitter-workshop" / "practice"
    made_kernel(cache)
    with running.folder("bare", cache):
        said = json.loads(verb("list", "--json")[1])
    stock = [shape for shape in said["shapes"] if shape["flavour"] == "stock"]
    assert {(shape["ready"], shape["kernel"]) for shape in stock} == {(True, "6.1.0-made")}
    (rt,) = (shape for shape in said["shapes"] if shape["flavour"] != "stock")
    assert (rt["name"], rt["ready"]) == ("rt", False)
    lines = verb("list")[1]
    assert "(stock): 6.1.0-made" in lines
    assert "(rt): there is no rt kernel" in lines
    assert said["running"] == [{"shape": "bare", "pid": os.getpid()}]


@given(st.integers(0, 1 << 40))
def test_the_memory_that_is_left_is_read_in_mib(tmp_path_factory: pytest.TempPathFactory, kib: int) -> None:
    file = tmp_path_factory.mktemp("proc") / "meminfo"
    file.write_text(f"MemTotal: 1 kB\nMemAvailable:{kib:>9} kB\n")
    assert room.available_mib(file) == kib // 1024


@given(st.text(max_size=60))
def test_every_meminfo_gives_a_number_or_not_known(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    file = tmp_path_factory.mktemp("proc") / "meminfo"
    file.write_text(text)
    assert room.available_mib(file) in (None, *range(1 << 20))
    assert room.available_mib(file / "none") is None


def test_a_machine_needs_the_memory_of_its_guest_and_of_qemu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "MEMINFO", tmp_path / "meminfo")
    guest_mib, needed = 512, 512 + room.QEMU_MIB
    for left in (needed, needed - 1):
        room.MEMINFO.write_text(f"MemAvailable: {left << 10} kB\n")
        if left == needed:
            room.check_memory("bare", guest_mib)
            continue
        with pytest.raises(HostError, match=f"takes up to {needed} MiB of memory, but this host has {left} MiB left"):
            room.check_memory("bare", guest_mib)


@pytest.mark.parametrize(("least", "name"), [("meminfo", "of memory"), ("disk", "MiB are free")])
def test_too_little_room_is_said_before_anything_starts(
    verb: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, least: str, name: str
) -> None:
    cache = tmp_path / "cache" / "jitter-workshop" / "practice"
    made_kernel(cache)
    monkeypatch.setattr(kernels, "TOOLS", {})
    monkeypatch.setattr(qemu, "launch", lambda *_, **__: pytest.fail("QEMU was started"))
    (tmp_path / "meminfo").write_text("MemAvailable: 500000 kB\n")
    monkeypatch.setattr(room, "MEMINFO", tmp_path / ("meminfo" if least == "meminfo" else "none"))
    if least == "disk":
        monkeypatch.setattr(room, "free_mib", lambda folder: room.START_MIB - 1)
    monkeypatch.setattr(guest.base, "find_base", lambda cache: None)
    code, out, err = verb("--", "true")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert name in err
    assert list((cache / running.FOLDER).iterdir()) == []


def test_a_kernel_is_not_fetched_to_a_disk_without_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels.shutil, "which", lambda name: f"/usr/bin/{name}")
    monkeypatch.setattr(kernels.apt, "Apt", lambda *_: pytest.fail("apt was started"))
    monkeypatch.setattr(room, "free_mib", lambda folder: room.FETCH_MIB - 1)
    killed, mine = tmp_path / "fetch-killed", tmp_path / "fetch-mine"
    for folder in (killed, mine):
        folder.mkdir()
    os.utime(killed, (0, 0))
    with pytest.raises(HostError) as told:
        kernels.fetch("stock", tmp_path)
    assert str(room.FETCH_MIB) in told.value.message
    assert [one.name for one in tmp_path.iterdir()] == ["fetch-mine"], "what a killed one has left is removed"


def test_the_reason_of_a_panic_is_found_in_the_console(tmp_path: Path) -> None:
    assert qemu.panic(tmp_path) == ""
    (tmp_path / "console").write_bytes(b"[ 1.0] Kernel panic - not syncing: sysrq\x1b[2J triggered\r\n[ 1.1] CPU: 0\n")
    found = qemu.panic(tmp_path)
    assert found.startswith("sysrq")
    assert found.endswith("triggered")
    assert "\x1b" not in found


class _Hangs:
    """Stand for a machine that takes no key. It answers pings if ``answers`` is True."""

    argv = ("sh",)
    code: int | None = None
    untaken = 0

    def __init__(self, answers: bool) -> None:
        self.answers, self.pings, self.heard, self.resized = answers, 0, 0, 0

    def turn(self, timeout_s: float | None, others: Sequence[int], what: str) -> Sequence[int]:
        if not self.untaken:
            return [0]
        time.sleep(min(timeout_s or 0, 0.01))
        if self.pings > 3:
            self.code = 5
        if not self.answers or self.heard == self.pings:
            return []
        self.heard = self.pings
        return [77]

    def send(self, data: bytes) -> None:
        self.untaken += len(data)

    def ping(self) -> int:
        self.pings += 1
        return self.pings

    def resize(self, rows: int, columns: int) -> None:
        self.resized += 1


@pytest.mark.parametrize(
    ("answers", "key", "code"), [(True, b"", 5), (False, b"q", -signal.SIGTERM), (False, b"x", 5), (False, b"r", None)]
)
def test_a_machine_that_hangs_gives_the_keys_back_and_a_slow_one_does_not(
    answers: bool, key: bytes, code: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine: Any = _Hangs(answers)
    keys = [b"typed", key, key, key, key]
    told: list[bytes] = []
    monkeypatch.setattr(relay, "PING_S", 0.01)
    monkeypatch.setattr(relay, "SILENT_S", 0.03)
    monkeypatch.setattr(relay, "_write", lambda out, err: told.append(out))
    monkeypatch.setattr(relay, "_size", lambda: (24, 80))
    monkeypatch.setattr(relay.termios, "tcflush", lambda *_: None)
    monkeypatch.setattr(relay.os, "read", lambda file, size: keys.pop(0))
    if code is None:
        with pytest.raises(relay.ResetAsked):
            relay._relay(machine, machine, 99)
    else:
        assert relay._relay(machine, machine, 99) == code
    assert bool(told) == (not answers)
    assert machine.resized == (2 * len(told) if key == b"x" else 0)


def test_the_clock_is_set_once_this_host_has_slept(monkeypatch: pytest.MonkeyPatch) -> None:
    slept, sets = [0.0, 0.0, 7200.0], []
    ends: Any = _Ends()
    ends.set_clock = lambda: sets.append(1)
    monkeypatch.setattr(relay, "_asleep_s", lambda: slept.pop(0) if len(slept) > 1 else slept[0])
    monkeypatch.setattr(relay.os, "read", lambda file, size: b"" if sets else b"typed")
    ends.send = lambda data: None
    assert relay._relay(ends, ends, -1) == 0
    assert sets == [1]


class _Ends:
    """Stand for a machine whose program ends once its stdin has been closed, and whose input has always something."""

    argv = ("sh",)
    untaken = 0
    code: int | None = None

    def turn(self, timeout_s: float | None, others: Sequence[int], what: str) -> Sequence[int]:
        return others

    def close_stdin(self) -> None:
        self.code = 0


@pytest.mark.parametrize(("wake", "code"), [(99, -signal.SIGHUP), (-1, 0)])
def test_a_terminal_that_vanishes_ends_the_machine_and_the_end_of_a_pipe_does_not(
    wake: int, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read(file: int, size: int) -> bytes:
        if file == 0 and wake >= 0:
            raise OSError(errno.EIO, "the terminal is gone")
        return b""

    monkeypatch.setattr(relay.os, "read", read)
    ends: Any = _Ends()
    assert relay._relay(ends, ends, wake) == code
