"""Check the findings of the verb ``doctor``: a need is there, is missing with a command for it, or cannot be had."""

from __future__ import annotations

import importlib.util
import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from jitter_workshop import cli, paths
from jitter_workshop.agent.tracing import own_view
from jitter_workshop.bench.protocol import BUILD_IT
from jitter_workshop.flow.host_ops import doctor
from jitter_workshop.flow.host_ops.doctor import HostCheck, Need, examine
from jitter_workshop.host.root import HostRoot
from jitter_workshop.practice import kernels
from jitter_workshop.practice.shape import SHAPES
from jitter_workshop.presenter.host import doctor as shown
from tests.hosttrees import write

Tree = Callable[[str], Path]
MOUNT = "mount -t tracefs nodev /sys/kernel/tracing"


def needs(root: Path) -> dict[str, Need]:
    return {need.id: need for need in examine(HostRoot(root)).needs}


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """The native core is loaded by another process, which takes long; one test does it."""
    monkeypatch.setattr(doctor, "_core", lambda: Need("core", "measure", "ok", "made", measuring=True))


def without(monkeypatch: pytest.MonkeyPatch, *modules: str) -> None:
    found = importlib.util.find_spec

    def look(name: str, package: str | None = None) -> object:
        return None if name in modules else found(name, package)

    monkeypatch.setattr(importlib.util, "find_spec", look)


def test_a_missing_package_is_named_with_the_version_that_is_required(
    monkeypatch: pytest.MonkeyPatch, host_tree: Tree
) -> None:
    without(monkeypatch, "hdrh", "perfetto")
    found = needs(host_tree("server64"))
    assert (found["packages"].state, found["perfetto"].state, found["screen"].state) == ("missing", "missing", "ok")
    assert "hdrhistogram" in found["packages"].found
    assert "psutil" not in found["packages"].found
    pip, _, wanted = found["packages"].mend.partition(" install ")
    assert pip.endswith(" -m pip")
    assert wanted.startswith("'hdrhistogram<")
    assert found["perfetto"].mend.rpartition(" install ")[2].startswith("'perfetto<")


def test_where_there_is_no_pip_uv_installs(monkeypatch: pytest.MonkeyPatch, host_tree: Tree) -> None:
    without(monkeypatch, "psutil", "pip")
    assert needs(host_tree("server64"))["packages"].mend.startswith("uv pip install --python /")


@pytest.mark.parametrize(("module", "can"), [("psutil", False), ("textual", True), ("textual_serve", True)])
def test_only_the_needs_of_measuring_decide_the_exit_code(
    module: str, can: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    without(monkeypatch, module)
    monkeypatch.setattr(
        doctor, "read_checks", lambda *_: (_ for _ in ()).throw(kernels.NotHere("a test reads no settings"))
    )
    assert cli.main(["doctor", "--json"]) == (0 if can else 1)
    said = json.loads(capsys.readouterr().out)
    assert said["can_measure"] == can
    assert said["summary"]["missing"] == sum(need["state"] == "missing" for need in said["needs"]) > 0
    assert cli.main(["doctor"]) == (0 if can else 1)
    assert (shown.CAN in capsys.readouterr().out) == can


def test_the_core_is_loaded_by_another_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    there = doctor._core()
    assert (there.state, there.measuring) == ("ok", True)
    assert Path(there.found.split()[-1]).is_file()

    def refuse(words: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        return subprocess.CompletedProcess(words, 1, "", "Traceback\nImportError: no such \x1b[31mfile\n")

    monkeypatch.setattr(subprocess, "run", refuse)
    gone = doctor._core()
    assert (gone.state, gone.mend) == ("missing", BUILD_IT)
    assert "ImportError" in gone.found


def test_hosts_without_cpus_cannot_be_measured(tmp_path: Path) -> None:
    found = examine(HostRoot(write(tmp_path, {"proc/stat": ""})))
    assert not found.can_measure
    assert [need.id for need in found.needs if need.measuring and need.state != "ok"] == ["cpus"]


def test_the_number_of_cpus_is_told(host_tree: Tree) -> None:
    assert needs(host_tree("server64"))["cpus"].found.startswith("64 CPUs ")
    assert needs(host_tree("small1"))["cpus"].state == "ok"


@pytest.mark.parametrize(
    ("has", "files", "own", "state", "word"),
    [
        ("root", {"sys/kernel/tracing/trace_clock": "[local]"}, False, "ok", ""),
        ("sudo", {"sys/kernel/tracing/trace_clock": "[local]"}, False, "ok", ""),
        ("none", {"sys/kernel/tracing/trace_clock": "[local]"}, False, "missing", "as root"),
        ("root", {"sys/kernel/tracing/.empty": ""}, True, "ok", ""),
        ("root", {"sys/kernel/tracing/.empty": ""}, False, "missing", MOUNT),
        ("sudo", {"sys/kernel/tracing/.empty": ""}, False, "missing", f"sudo {MOUNT}"),
        ("none", {"sys/kernel/tracing/.empty": ""}, True, "missing", MOUNT),
        ("root", {}, True, "not_here", ""),
    ],
)
def test_the_trace_is_there_mounted_by_the_agent_or_missing(
    has: str,
    files: dict[str, str],
    own: bool,
    state: str,
    word: str,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.setattr(doctor, "rights", lambda: has)
    monkeypatch.setattr(own_view, "can_be_had", lambda _: own)
    found = doctor._trace(HostRoot(write(tmp_path, files | {"proc/stat": ""})))
    assert found.state == state
    assert found.mend.endswith(word) if word.endswith(MOUNT) else word in found.mend
    assert bool(found.mend) == (state == "missing")


def test_on_a_class_host_no_member_mounts_the_trace_alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(doctor, "rights", lambda: "root")
    monkeypatch.setattr(own_view, "can_be_had", lambda _: True)
    Path(paths.CLASS_FILE).write_text("")
    root = HostRoot(write(tmp_path, {"sys/kernel/tracing/.empty": ""}))
    assert doctor._trace(root).mend == MOUNT


@pytest.mark.parametrize(
    ("release", "sign", "machine"),
    [
        ("ID=debian\n", "sudo apt install openssh-client", "sudo apt install qemu-system-x86 acpica-tools"),
        ('ID=ubuntu\nID_LIKE="debian"\n', "sudo apt install openssh-client", "sudo apt install qemu-system-x86 "),
        ('ID=rocky\nID_LIKE="rhel fedora"\n', "sudo dnf install openssh-clients", "install qemu-system-x86_64, "),
        ("ID=alpine\n", "install ssh-keygen with ", "install qemu-system-x86_64, "),
        ("", "install ssh-keygen with ", "install qemu-system-x86_64, "),
    ],
)
def test_programs_are_installed_by_the_distribution_s_own_command(
    release: str, sign: str, machine: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("shutil.which", lambda name, path="": None)
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    found = needs(write(tmp_path, {"etc/os-release": release} if release else {"proc/stat": ""}))
    assert found["ssh-keygen"].mend.startswith(sign)
    assert found["qemu"].mend.startswith(machine)
    assert all(name in found["qemu"].found for name in kernels.TOOLS)


def test_a_practice_machine_needs_a_processor_a_kernel_and_memory(
    monkeypatch: pytest.MonkeyPatch, host_tree: Tree, tmp_path: Path
) -> None:
    monkeypatch.setattr("platform.machine", lambda: "riscv64")
    found = needs(host_tree("server64"))
    assert (found["qemu"].state, found["qemu"].mend) == ("not_here", "")
    assert found["practice-kernel"].mend.endswith("practice fetch")
    meminfo = tmp_path / "meminfo"
    meminfo.write_text("MemAvailable: 1024 kB\n")
    monkeypatch.setattr("jitter_workshop.practice.room.MEMINFO", meminfo)
    assert needs(host_tree("server64"))["practice-memory"].state == "missing"
    inside = write(tmp_path / "inside", {"proc/cmdline": "practice.accelerator=tcg\n"})
    assert needs(inside)["qemu"].state == "not_here"
    assert SHAPES["laptop"].kernel == "stock"


def test_a_feature_that_this_host_lacks_for_good_has_the_reason_of_status(host_tree: Tree) -> None:
    lacks, has = needs(host_tree("guest")), needs(host_tree("hybrid_laptop"))
    assert (lacks["cpufreq"].state, lacks["cpufreq"].mend) == ("not_here", "")
    assert "hypervisor" in lacks["cpufreq"].found
    assert has["cpufreq"].state == "ok"


def test_a_folder_that_cannot_be_written_is_said_and_none_is_made(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    there = doctor._state_folder()
    assert there.state == "ok"
    assert not paths.state_dir().exists()
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file" / "below"))
    gone = doctor._state_folder()
    assert (gone.state, gone.measuring) == ("missing", True)


def test_a_recorded_host_is_refused(host_tree: Tree, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["--root", str(host_tree("guest")), "doctor"]) == 2
    assert "--root" in capsys.readouterr().err


@pytest.mark.parametrize("width", [40, 80, 160])
def test_names_from_the_host_are_shown_clean_and_a_command_stays_whole(width: int) -> None:
    command = "sudo apt install " + " ".join(["qemu-system-x86"] * 8)
    bad = Need("qemu", "run a machine", "missing", "no \x1b[31mred\nname", command)
    star = Need("packages", "measure", "missing", "gone", "x", True)
    lines = [line.plain for line in shown.doctor_lines(HostCheck("3.11 (\x07/usr)", (), (bad, star)), "1.0", width)]
    assert not any(ord(letter) < 32 for line in lines for letter in line)
    assert sum(line.endswith(f"do: {command}") for line in lines) == 1
    assert any("packages*" in line for line in lines)
    assert any(shown.CANNOT.split()[0] in line for line in lines)
