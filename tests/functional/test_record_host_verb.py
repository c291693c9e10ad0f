"""``record-host``: the verb, what it says, and every reading verb on what it made."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from jitter_workshop.cli import main
from tests import hosttrees

Trees = Callable[[str], Path]


def test_record_host_names_its_folder_and_the_next_command(
    host_tree: Trees, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    copy = tmp_path / "copy"
    assert main(["record-host", str(copy), "--root", str(host_tree("server64"))]) == 0
    out = capsys.readouterr().out
    assert out.startswith("Recorded ")
    assert f"jitter-workshop status --root {copy}" in out
    assert json.loads((copy / "RECORDING.json").read_text())["cpus"] == 64


def test_json(host_tree: Trees, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    copy = tmp_path / "copy"
    words = [
        "record-host",
        str(copy),
        "--root",
        str(host_tree("guest")),
        "--note",
        "a \x1b[31mred\x1b[0m one",
        "--json",
    ]
    assert main(words) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["format_version"] == 1
    assert told["folder"] == str(copy)
    assert told["files"] == sum(1 for p in copy.rglob("*") if p.is_file()) - 1
    assert "\x1b" not in json.loads((copy / "RECORDING.json").read_text())["note"]


@pytest.mark.parametrize("name", sorted(hosttrees.EVERY))
def test_status_and_plan_say_the_same_of_it(
    host_tree: Trees, tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    tree, copy = host_tree(name), tmp_path / "copy"
    assert main(["record-host", str(copy), "--root", str(tree), "--with-hostname"]) == 0
    capsys.readouterr()
    for words in (["status", "--json"], ["plan", "--json"]):
        answers = []
        for root in (tree, copy):
            code = main([*words, "--root", str(root)])
            answers.append((code, json.loads(capsys.readouterr().out)))
        assert answers[0] == answers[1]


def test_the_workshop_opens_on_it(host_tree: Trees, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    copy = tmp_path / "copy"
    assert main(["record-host", str(copy), "--root", str(host_tree("guest"))]) == 0
    capsys.readouterr()
    assert main(["--plain", "--root", str(copy)]) == 0
    assert "recorded" in capsys.readouterr().out


def test_a_folder_in_use_is_refused(host_tree: Trees, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "mine").write_text("keep")
    assert main(["record-host", str(tmp_path), "--root", str(host_tree("guest"))]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert "is not empty" in err
    assert (tmp_path / "mine").read_text() == "keep"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_no_right_to_write(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tmp_path.chmod(0o500)
    assert main(["record-host", str(tmp_path / "copy")]) == 2
    assert "cannot make" in capsys.readouterr().err


def test_this_machine(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    copy = tmp_path / "copy"
    assert main(["record-host", str(copy)]) == 0
    capsys.readouterr()
    assert main(["status", "--json", "--root", str(copy)]) in (0, 1)
    checks = {c["id"]: c for c in json.loads(capsys.readouterr().out)["checks"]}
    assert main(["status", "--json"]) in (0, 1)
    live = {c["id"]: c for c in json.loads(capsys.readouterr().out)["checks"]}
    assert checks.keys() == live.keys()
    for name in ("governor", "irq-affinity", "thp", "workqueue-mask", "watchdogs", "rps-xps"):
        assert checks[name] == live[name]


@pytest.mark.parametrize("kept", [False, True])
def test_the_hosts_name_is_nowhere_unless_asked_for(tmp_path: Path, kept: bool) -> None:
    name, tree, copy = "zweb17", tmp_path / "tree", tmp_path / "copy"
    hosttrees.small(tree, 4)
    hosttrees.write(
        tree,
        {
            "proc/sys/kernel/hostname": f"{name}\n",
            "proc/cmdline": f"BOOT_IMAGE=/vmlinuz root=/dev/mapper/{name}-root {name} quiet isolcpus=3\n",
            "proc/self/cgroup": f"0::/lxc/{name}/user@alice.service\n",
            "proc/self/mountinfo": "31 23 0:28 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n",
            "sys/fs/cgroup/cgroup.controllers": "cpuset cpu\n",
            "sys/fs/cgroup/lxc/cpu.max": "max 100000\n",
            f"sys/fs/cgroup/lxc/{name}/cpu.max": "50000 100000\n",
            f"sys/fs/cgroup/lxc/{name}/user@alice.service/cpu.max": "max 100000\n",
            f"sys/fs/cgroup/{name}/cpuset.cpus": "0-1\n",
        },
    )
    asked = ["--with-hostname"] if kept else []
    assert main(["record-host", str(copy), "--root", str(tree), *asked]) == 0
    written = {str(p.relative_to(copy)): p.read_text(errors="replace") for p in copy.rglob("*") if p.is_file()}
    places = [path for path, text in written.items() if name in path or name in text]
    assert bool(places) is kept, places
    assert not [path for path, text in written.items() if "alice" in path or "alice" in text]
    assert written["proc/sys/kernel/hostname"] == (f"{name}\n" if kept else "recorded-host\n")
    if not kept:
        assert "/lxc/recorded-host/user@removed.service" in written["proc/self/cgroup"]
        assert "sys/fs/cgroup/lxc/recorded-host/cpu.max" in written
