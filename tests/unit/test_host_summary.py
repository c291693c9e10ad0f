"""A host in a page and in a line: every None has its reason, and a hostile tree does no harm."""

from __future__ import annotations

import dataclasses
import json
import os
import random
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jitter_workshop.host.root import HostRoot
from jitter_workshop.host.summary import host_line, short_cpu_name, summarise_host
from jitter_workshop.model.codec import from_plain, to_plain
from jitter_workshop.model.host import HostSummary
from tests import hosttrees


def check_notes(summary: HostSummary) -> None:
    """Each None is explained, and notes speak of fields that exist."""
    values = {f.name: getattr(summary, f.name) for f in dataclasses.fields(summary)}
    for name, value in values.items():
        assert value is not None or summary.notes.get(name), name
    assert set(summary.notes) <= set(values)


@pytest.mark.parametrize("name", [*hosttrees.EVERY, "this host", "empty"])
def test_every_none_has_a_reason(name: str, host_tree: Callable[[str], Path], tmp_path: Path) -> None:
    root = HostRoot() if name == "this host" else HostRoot(tmp_path if name == "empty" else host_tree(name))
    summary = summarise_host(root)
    check_notes(summary)
    assert from_plain(HostSummary, json.loads(json.dumps(to_plain(summary)))) == summary
    assert host_line(summary).isprintable()


@pytest.mark.parametrize(
    ("name", "hot", "line"),
    [
        (
            "guest",
            (1,),
            "KVM guest · 2 CPUs, hot (to keep free): 1 · limited to 1.5 CPUs by its cgroup · no cpufreq"
            " · steal 0.4 % · recorded",
        ),
        (
            "server64",
            (),
            "Intel Xeon Gold 6130 · 64 CPUs (2 packages, SMT) · limited to 4 CPUs by its cgroup · governor powersave"
            " · isolated 30-31,62-63 · 54 °C · recorded",
        ),
        (
            "hybrid_laptop",
            (2, 4, 5),
            "12th Gen Intel Core i7-1260P · 16 CPUs (SMT), hot (to keep free): 2,4-5 · on battery"
            " · governors performance, powersave · PREEMPT_RT · recorded",
        ),
        ("small1", (), "Intel Celeron J1900 · 1 CPU · no cpufreq · recorded"),
        ("offline", (), "AMD Ryzen 7 5800X · 5 CPUs (SMT) · no cpufreq · recorded"),
        ("arm_server", (), "Cortex-A76 · 8 CPUs · no cpufreq · recorded"),
    ],
)
def test_host_lines(name: str, hot: tuple[int, ...], line: str, host_tree: Callable[[str], Path]) -> None:
    assert host_line(summarise_host(HostRoot(host_tree(name))), hot) == line


def test_the_line_names_the_usable_cpus_and_the_rights(host_tree: Callable[[str], Path]) -> None:
    summary = dataclasses.replace(
        summarise_host(HostRoot(host_tree("guest"))),
        recorded=False,
        cpus_allowed=(1,),
        steal_percent=0.02,
        cpu_max_quota_us=None,
    )
    facts = ["KVM guest", "may run on 1 of 2 CPUs", "no cpufreq", "steal 0.02 %", "not root"]
    assert host_line(summary).split(" · ") == facts
    assert host_line(dataclasses.replace(summary, is_root=True)).endswith(" · root")


def test_a_guest_without_steal_says_that_it_cannot_tell(tmp_path: Path) -> None:
    hosttrees.guest(tmp_path)
    (tmp_path / "proc/stat").write_text(hosttrees.stat([0, 1]))
    summary = summarise_host(HostRoot(tmp_path))
    assert summary.steal_percent is None
    assert "no steal clock" in summary.notes["steal_percent"]
    assert "steal" not in host_line(summary)


def test_rights_of_this_process_are_not_claimed_of_a_recorded_host(host_tree: Callable[[str], Path]) -> None:
    summary = summarise_host(HostRoot(host_tree("small3")))
    assert summary.recorded
    assert summary.memlock_limit_bytes is None
    assert {"is_root", "cpus_allowed", "memlock_limit_bytes"} <= set(summary.notes)


@pytest.mark.parametrize(
    ("model", "short"),
    [
        ("Intel(R) Xeon(R) Gold 6130 CPU @ 2.10GHz", "Intel Xeon Gold 6130"),
        ("AMD EPYC 7302 16-Core Processor", "AMD EPYC 7302"),
        ("AMD Ryzen 7 PRO 4750U with Radeon Graphics", "AMD Ryzen 7 PRO 4750U"),
        ("13th Gen Intel(R) Core(TM) i7-1360P", "13th Gen Intel Core i7-1360P"),
        ("Intel(R) Xeon(R) CPU E5-2670 v3 @ 2.30GHz", "Intel Xeon E5-2670 v3"),
        ("QEMU Virtual CPU version 2.5+", "QEMU Virtual CPU version 2.5+"),
        ("Neoverse-N1", "Neoverse-N1"),
        ("CPU", "CPU"),
    ],
)
def test_short_cpu_names(model: str, short: str) -> None:
    assert short_cpu_name(model) == short


@given(st.text(max_size=60))
def test_short_names_are_never_longer(model: str) -> None:
    assert len(short_cpu_name(model)) <= len(model)


@pytest.mark.parametrize("seed", range(12))
def test_a_tree_that_lies_in_every_file(seed: int, tmp_path: Path) -> None:
    """Files become folders, pipes, loops, links out, binary, torn or enormous: a summary still comes, with reasons."""
    hosttrees.hybrid_laptop(tmp_path) if seed % 2 else hosttrees.guest(tmp_path)
    chance = random.Random(seed)
    files = sorted(path for path in tmp_path.rglob("*") if path.is_file())
    for path in chance.sample(files, len(files) * 2 // 3):
        data = path.read_bytes()
        path.unlink()
        kind = chance.randrange(9)
        if kind == 0:
            path.mkdir()
        elif kind == 1:
            os.mkfifo(path)
        elif kind == 2:
            path.symlink_to(path.name)
        elif kind == 3:
            path.symlink_to("../" * 30 + "etc/passwd")
        elif kind == 4:
            path.write_bytes(chance.randbytes(200))
        elif kind == 5:
            path.write_bytes(data[: chance.randrange(len(data) + 1)])
        elif kind == 6:
            with path.open("wb") as file:
                file.truncate(1 << 36)
        elif kind == 7:
            path.write_bytes(b"\0" * 20 + b"\x1b[2J999999999999999999999\n")
    summary = summarise_host(HostRoot(tmp_path))
    check_notes(summary)
    line = host_line(summary)
    assert line.isprintable()
    assert "root:" not in json.dumps(to_plain(summary))


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=st.text(max_size=60))
def test_the_same_garbage_in_every_file(text: str, tmp_path: Path) -> None:
    for path in ("cpuinfo", "stat", "interrupts", "softirqs", "self/cgroup", "self/mountinfo", "cmdline"):
        (tmp_path / "proc" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "proc" / path).write_bytes(text.encode(errors="replace"))
    for path in (f"{hosttrees.CPU}/online", f"{hosttrees.CPU}/isolated", "sys/hypervisor/type"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_bytes(text.encode(errors="replace"))
    check_notes(summarise_host(HostRoot(tmp_path)))
