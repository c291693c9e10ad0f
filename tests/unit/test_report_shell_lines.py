"""The lines that a learner types: each makes exactly its change, and the way back restores it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jitter_workshop.flow.chapters import by_hand as watching
from jitter_workshop.host.root import HostRoot
from jitter_workshop.model.by_hand import HandWrite
from jitter_workshop.model.change import Change
from jitter_workshop.report.shell_lines import move_tasks_line, moves_alike, shell_line, way_back
from jitter_workshop.tuning import by_hand
from tests import tuned_tree

FILES = tuple(word for word in tuned_tree.MANY if word != "thp")
"""Tunables of plain files: a file of a made tree keeps the text that was written, which a choice of the kernel does
not."""


def change(path: str, before: str, after: str, kind: str = "value") -> Change:
    return Change(1, "some", path, before, after, "runtime", "low", "", kind=kind)


def typed(command: str, tree: Path) -> None:
    """Run a line in a shell for which ``tree`` is the root."""
    inside = (
        command.replace("> /", f"> {tree}/").replace("mkdir /", f"mkdir {tree}/").replace("rmdir /", f"rmdir {tree}/")
    )
    subprocess.run(["/bin/sh", "-eu", "-c", inside], check=True, timeout=30)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    return tuned_tree.make(tmp_path)


def test_the_typed_lines_make_the_plan_and_the_way_back_unmakes_it(tree: Path) -> None:
    before, drawn, root = tuned_tree.contents(tree), tuned_tree.planned(tree, FILES).changes, HostRoot(tree)
    assert len(drawn) > 10
    assert {one.state for one in by_hand.states_of_writes(root, drawn)} == {"missing"}
    for one in drawn:
        typed(shell_line(one), tree)
        assert [seen.state for seen in by_hand.states_of_writes(root, [one])] == ["done"]
    assert {one.state for one in by_hand.states_of_writes(root, drawn, shell_line)} == {"done"}
    back = way_back(drawn)
    assert {one.state for one in by_hand.states_of_writes(root, back)} == {"missing"}
    for one in back:
        typed(shell_line(one), tree)
    assert {one.state for one in by_hand.states_of_writes(root, back)} == {"done"}
    assert tuned_tree.contents(tree) == before


@pytest.mark.parametrize(
    ("made", "wanted"),
    [
        (
            change("/proc/irq/24/smp_affinity_list", "0-3", "0-1", "cpu-list"),
            "echo 0-1 > /proc/irq/24/smp_affinity_list",
        ),
        (change("sched_setaffinity(71@99)", "0-3", "0,1", "affinity"), "taskset -pc 0-1 71"),
        (change("cgroup(71@99)", "/", "/rest", "task-cgroup"), "echo 71 > /sys/fs/cgroup/cpuset/rest/tasks"),
        (
            change("/sys/fs/cgroup/jitter-workshop", "absent", "present", "cgroup"),
            "mkdir /sys/fs/cgroup/jitter-workshop",
        ),
        (
            change("/etc/default/grub.d/zz-x.cfg", "", "nohz_full=2-3", "grub"),
            "printf '%s\\n' 'GRUB_CMDLINE_LINUX=\"$GRUB_CMDLINE_LINUX nohz_full=2-3\"' > /etc/default/grub.d/zz-x.cfg",
        ),
        (change("/etc/default/grub.d/zz-x.cfg", "nohz_full=2-3", "", "grub"), "rm /etc/default/grub.d/zz-x.cfg"),
        (change("/etc/default/grub.d/zz-x.cfg", "a=1", "(changed by hand) $(reboot)", "grub"), ""),
        (
            change("grubby(processor.max_cstate+intel_idle.max_cstate)", "", "processor.max_cstate=1", "grubby"),
            "grubby --update-kernel=ALL --remove-args='processor.max_cstate intel_idle.max_cstate'"
            " --args='processor.max_cstate=1'",
        ),
        (
            change("grubby(nohz_full)", "nohz_full=2-3", "", "grubby"),
            "grubby --update-kernel=ALL --remove-args=nohz_full",
        ),
        (
            change("/sys/fs/cgroup/jitter-workshop", "present", "absent", "cgroup"),
            "rmdir /sys/fs/cgroup/jitter-workshop",
        ),
        (
            change("/sys/fs/cgroup/cgroup.subtree_control", "", "cpuset", "controllers"),
            "echo +cpuset > /sys/fs/cgroup/cgroup.subtree_control",
        ),
        (
            change("/sys/fs/cgroup/cgroup.subtree_control", "cpuset", "", "controllers"),
            "printf '%s\\n' -cpuset > /sys/fs/cgroup/cgroup.subtree_control",
        ),
        (change("systemd(tuned.service)", "active", "inactive", "unit"), "systemctl stop tuned.service"),
        (change("/proc/sys/vm/dirty_ratio", "20%", "1000", "dirty-limit"), "echo 1000 > /proc/sys/vm/dirty_bytes"),
        (
            change("/proc/sys/kernel/watchdog", "soft=1 nmi=1", "soft=0 nmi=0", "watchdog"),
            "echo 0 > /proc/sys/kernel/soft_watchdog; echo 0 > /proc/sys/kernel/nmi_watchdog; "
            "echo 0 > /proc/sys/kernel/watchdog",
        ),
        (change("/dev/cpu_dma_latency", "not held", "0", "held"), ""),
    ],
)
def test_each_kind_has_its_line(made: Change, wanted: str) -> None:
    assert shell_line(made) == wanted


@given(
    st.text(alphabet=st.characters(blacklist_characters="\0\n", blacklist_categories=("Cs",)), min_size=1, max_size=20)
)
def test_every_value_is_one_word_of_the_shell(value: str) -> None:
    """A value comes from the host, so it must not end a command and begin another one."""
    said = shell_line(change("/dev/stdout", "", value))
    shown = subprocess.run(["/bin/sh", "-c", said.replace(" > /dev/stdout", "")], capture_output=True, check=True)
    assert shown.stdout == value.strip().encode() + b"\n"


def test_moves_of_tasks_to_one_set_are_one_line_for_the_shell(tmp_path: Path) -> None:
    moves = [change(f"cgroup({tid}@9)", "/", "/rest", "task-cgroup") for tid in (71, 72, 73)]
    assert len({moves_alike(one) for one in moves}) == 1
    assert moves_alike(change("cgroup(71@9)", "/", "/other", "task-cgroup")) != moves_alike(moves[0])
    assert moves_alike(change("/proc/sys/vm/stat_interval", "1", "10")) is None
    place = tmp_path / "sys/fs/cgroup/cpuset/rest"
    place.mkdir(parents=True)
    subprocess.run(["sh", "-c", move_tasks_line(moves).replace("> /", f">> {tmp_path}/")], check=True)
    assert (place / "tasks").read_text().split() == ["71", "72", "73"]


def test_only_neighbours_are_joined() -> None:
    set_up = change("/sys/fs/cgroup/cpuset/rest", "absent", "0 0", "cpuset")
    moves = [change(f"cgroup({tid}@9)", "/", "/rest", "task-cgroup") for tid in (71, 72)]
    writes = [
        HandWrite(one, "missing", None, "", shell_line(one))
        for one in (set_up, *moves, change("/a", "1", "2"), moves[0])
    ]
    made = watching._lines(tuple(writes))
    assert [len(one.writes) for one in made] == [1, 2, 1, 1]
    assert made[1].command == move_tasks_line(moves)
    assert [one.command for one in (made[0], made[2], made[3])] == [one.command for one in (writes[0], *writes[3:])]
