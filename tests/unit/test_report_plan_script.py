"""Test the shell script of a plan: it makes exactly the writes of the plan, and restores exactly these."""

from __future__ import annotations

import os
import pkgutil
import shutil
import subprocess
import threading
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jitter_workshop.flow.host_ops.hotcpus import choose_hot
from jitter_workshop.host.root import HostRoot
from jitter_workshop.model.change import Change, Plan, Skipped, Wanted
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.report import plan_script
from jitter_workshop.report.plan_script import NOT_BY_A_SCRIPT, functions, step
from jitter_workshop.tuning import setting_types
from jitter_workshop.tuning.context import Host
from jitter_workshop.tuning.planning import plan_changes as draw
from jitter_workshop.tuning.setting_types.kinds import Kind
from jitter_workshop.tuning.tunables.registry import tunables
from tests import hosttrees
from tests.unit.test_tuning_tasks_and_groups import V1, quad_v1

BOOT = "0f5c1a52-3d77-4f0e-9a9e-6d2f2f7f1c11"
SHELLS = [shell for shell in ("sh", "dash", "bash", "busybox") if shutil.which(shell)]


def change(n: int, path: str, before: str, after: str, **more: Any) -> Change:
    fields: dict[str, Any] = {"tunable": "governor", "when": "runtime", "risk": "low", "why": "Because."}
    return Change(n=n, path=path, before=before, after=after, **(fields | more))


def plan_of(*changes: Change, skipped: tuple[Skipped, ...] = ()) -> Plan:
    return Plan(BOOT, (1,), changes, skipped)


def sh(script: str, verb: str, root: Path, shell: str = "sh") -> subprocess.CompletedProcess[str]:
    file = root.parent / "plan.sh"
    file.write_text(script)
    command = [shell, "sh"] if shell == "busybox" else [shell]
    return subprocess.run(
        [*command, str(file), verb],
        env={"PATH": os.environ["PATH"], "JITTER_ROOT": str(root)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    root = tmp_path / "it's a host"
    files = {
        "proc/sys/kernel/random/boot_id": f"{BOOT}\n",
        "sys/governor": "powersave\n",
        "sys/mask": "00000003\n",
        "sys/list": "0-1\n",
        "sys/number": "0500\n",
        "sys/choice": "always [madvise] never\n",
    }
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


EVERYTHING = plan_of(
    change(1, "/sys/governor", "powersave", "performance"),
    change(2, "/sys/mask", "3", "1", kind="cpu-mask"),
    change(3, "/sys/list", "0,1", "0", kind="cpu-list"),
    change(4, "/sys/number", "500", "1500", kind="number"),
)


@pytest.mark.parametrize("shell", SHELLS)
def test_the_script_makes_the_plan_and_restores_it(shell: str, tree: Path) -> None:
    script = plan_script.script_of_plan(EVERYTHING, "lab03", "today")
    done = sh(script, "apply", tree, shell)
    assert (done.returncode, done.stderr) == (0, "")
    assert (tree / "sys/governor").read_text() == "performance\n"
    assert [(tree / f"sys/{n}").read_text() for n in ("mask", "list", "number")] == ["1\n", "0\n", "1500\n"]
    assert sh(script, "apply", tree, shell).returncode == 0, "a second time there is nothing to do"
    restored = sh(script, "restore", tree, shell)
    assert (restored.returncode, restored.stderr) == (0, "")
    assert [(tree / f"sys/{n}").read_text() for n in ("governor", "mask", "list", "number")] == [
        "powersave\n",
        "3\n",
        "0-1\n",
        "500\n",
    ]


def test_a_value_that_changed_since_is_left_alone_and_the_rest_is_done(tree: Path) -> None:
    (tree / "sys/governor").write_text("schedutil\n")
    done = sh(plan_script.script_of_plan(EVERYTHING, "lab03", "today"), "apply", tree)
    assert done.returncode == 1
    assert "left alone: /sys/governor says 'schedutil', not 'powersave'" in done.stderr
    assert (tree / "sys/governor").read_text() == "schedutil\n"
    assert (tree / "sys/mask").read_text() == "1\n"


def test_a_missing_file_and_a_refused_write_are_said(tree: Path) -> None:
    (tree / "sys/mask").unlink()
    (tree / "sys/list").unlink()
    (tree / "sys/list").mkdir()
    wanted = plan_of(
        change(1, "/sys/mask", "3", "1", kind="cpu-mask"), change(2, "/sys/list", "0-1", "0", kind="cpu-list")
    )
    done = sh(plan_script.script_of_plan(wanted, "lab03", "today"), "apply", tree)
    assert done.returncode == 1
    assert "/sys/mask cannot be read" in done.stderr
    assert "/sys/list" in done.stderr


def test_the_earlier_word_undo_still_restores(tree: Path) -> None:
    script = plan_script.script_of_plan(EVERYTHING, "lab03", "today")
    assert sh(script, "apply", tree).returncode == 0
    done = sh(script, "undo", tree)
    assert (done.returncode, done.stderr) == (0, "")
    assert (tree / "sys/governor").read_text() == "powersave\n"
    assert "apply|restore" in sh(script, "help", tree).stderr


def test_another_boot_writes_nothing_and_has_nothing_to_restore(tree: Path) -> None:
    (tree / "proc/sys/kernel/random/boot_id").write_text("another\n")
    script = plan_script.script_of_plan(EVERYTHING, "lab03", "today")
    assert sh(script, "apply", tree).returncode == 2
    assert sh(script, "restore", tree).returncode == 0
    assert (tree / "sys/governor").read_text() == "powersave\n"


def test_wrong_use_is_said(tree: Path) -> None:
    script = plan_script.script_of_plan(EVERYTHING, "lab03", "today")
    for verb in ("", "aply"):
        done = sh(script, verb, tree)
        assert (done.returncode, done.stdout) == (2, "")
        assert "usage" in done.stderr


def test_a_choice_is_the_word_in_brackets(tree: Path) -> None:
    script = plan_script.script_of_plan(
        plan_of(change(1, "/sys/choice", "never", "always", kind="choice")), "lab03", "today"
    )
    done = sh(script, "apply", tree)
    assert done.returncode == 1
    assert "says 'madvise', not 'never'" in done.stderr


def test_a_control_group_is_made_and_removed(tree: Path) -> None:
    (tree / "sys/fs/cgroup").mkdir(parents=True)
    script = plan_script.script_of_plan(
        plan_of(change(1, "/sys/fs/cgroup/hot", "absent", "present", kind="cgroup")), "lab03", "today"
    )
    assert sh(script, "apply", tree).returncode == 0
    assert (tree / "sys/fs/cgroup/hot").is_dir()
    assert sh(script, "restore", tree).returncode == 0
    assert not (tree / "sys/fs/cgroup/hot").exists()


def test_every_kind_of_a_file_is_done_and_restored(tree: Path) -> None:
    """Each kind that is a file, on a made tree: what is written, and that it is restored."""
    before = {
        "sys/kernel/soft_watchdog": "1\n",
        "sys/kernel/nmi_watchdog": "0\n",
        "sys/kernel/watchdog": "1\n",
        "sys/vm/dirty_ratio": "0\n",
        "sys/vm/dirty_bytes": "100000\n",
        "sys/disable": "2\n",
        "sys/wq/cpumask": "1\n",
        "sys/wq/cpumask_requested": "00000003\n",
        "sys/preempt": "none voluntary (full)\n",
    }
    for name, text in before.items():
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text(text)
    (tree / "etc").mkdir()
    script = plan_script.script_of_plan(
        plan_of(
            change(1, "/sys/kernel/watchdog", "soft=1 nmi=0", "soft=0 nmi=0", kind="watchdog"),
            change(2, "/sys/vm/dirty_ratio", "100000", "200000", kind="dirty-limit"),
            change(3, "/sys/disable", "0", "1", kind="idle-disable"),
            change(4, "/etc/grub.d", "absent", "present", kind="folder", when="boot"),
            change(5, "/etc/grub.d/zz.cfg", "", "skew_tick=1", kind="grub", when="boot", then="update-grub"),
        ),
        "lab03",
        "today",
    )
    done = sh(script, "apply", tree)
    assert done.returncode == 0, done.stderr
    assert "tried out: update-grub" in done.stderr
    assert [(tree / f"sys/kernel/{n}").read_text() for n in ("soft_watchdog", "watchdog")] == ["0\n", "0\n"]
    assert (tree / "sys/vm/dirty_bytes").read_text() == "200000\n"
    assert (tree / "sys/disable").read_text() == "1\n"
    assert 'GRUB_CMDLINE_LINUX="$GRUB_CMDLINE_LINUX skew_tick=1"' in (tree / "etc/grub.d/zz.cfg").read_text()
    restored = sh(script, "restore", tree)
    assert restored.returncode == 0, restored.stderr
    assert not (tree / "etc/grub.d").exists()
    assert (tree / "sys/kernel/watchdog").read_text() == "1\n"
    assert (tree / "sys/vm/dirty_bytes").read_text() == "100000\n"
    assert (tree / "sys/disable").read_text() == "0\n"


def test_a_real_task_is_moved_and_put_back(tmp_path: Path) -> None:
    """Run on this machine, on a task of its own: only this one is touched."""
    cpus = sorted(os.sched_getaffinity(0))
    if len(cpus) < 2 or shutil.which("taskset") is None:
        pytest.skip("one CPU, or no taskset, here")
    sleeper = subprocess.Popen(["sleep", "60"])
    try:
        stat = Path(f"/proc/{sleeper.pid}/stat").read_text()
        started = stat.rpartition(") ")[2].split()[19]
        everywhere = str(CpuSet.of(cpus))
        moved = change(
            1, f"sched_setaffinity({sleeper.pid}@{started})", everywhere, f"{cpus[0]}", kind="affinity", when="boot"
        )
        script = plan_script.script_of_plan(plan_of(moved), "lab03", "today")
        file = tmp_path / "plan.sh"
        file.write_text(script)
        assert subprocess.run(["sh", str(file), "apply"], timeout=30, check=False).returncode == 0
        assert os.sched_getaffinity(sleeper.pid) == {cpus[0]}
        assert subprocess.run(["sh", str(file), "restore"], timeout=30, check=False).returncode == 0
        assert os.sched_getaffinity(sleeper.pid) == set(cpus)
    finally:
        sleeper.kill()
        sleeper.wait()


def test_a_write_that_no_script_can_make_is_said_with_the_way_that_can(tree: Path) -> None:
    held = change(1, "/dev/cpu_dma_latency", "none", "2", kind="held", lease=True, tunable="pm-qos-fd")
    done = sh(plan_script.script_of_plan(plan_of(held), "lab03", "today"), "apply", tree)
    assert done.returncode == 1
    assert "jitter-workshop apply pm-qos-fd --hold" in done.stderr


LIMIT = "/sys/devices/system/cpu/cpufreq/policy0/scaling_min_freq"
RAISED = plan_of(change(1, LIMIT, "800000", "2400000", kind="frequency-limit"))


@pytest.mark.parametrize("shell", SHELLS)
def test_a_frequency_limit_is_done_and_restored(shell: str, tree: Path) -> None:
    file = tree / LIMIT[1:]
    file.parent.mkdir(parents=True)
    file.write_text("800000\n")
    script = plan_script.script_of_plan(RAISED, "lab03", "today")
    for verb, stands in (("apply", "2400000\n"), ("apply", "2400000\n"), ("restore", "800000\n")):
        done = sh(script, verb, tree, shell)
        assert (done.returncode, done.stderr, file.read_text()) == (0, "", stands)


def with_a_late_kernel(tree: Path, answers: list[str | None]) -> list[str]:
    """A pipe in the place of the limit, and a thread that answers as a kernel does that takes its time: None stands for
    a write, which the list that is given back will hold. A pipe is read to its end, so each answer has an end."""
    file = tree / LIMIT[1:]
    file.parent.mkdir(parents=True)
    os.mkfifo(file)
    told: list[str] = []

    def answer() -> None:
        for text in answers:
            if text is None:
                told.append(file.read_text())
            else:
                file.write_text(f"{text}\n")
            time.sleep(0.05)

    threading.Thread(target=answer, daemon=True).start()
    return told


@pytest.mark.parametrize(("verb", "first", "then"), [("apply", "800000", "2400000"), ("restore", "2400000", "800000")])
def test_a_frequency_limit_that_is_taken_up_a_moment_later_is_waited_for(
    verb: str, first: str, then: str, tree: Path
) -> None:
    told = with_a_late_kernel(tree, [first, None, first, first, then])
    done = sh(plan_script.script_of_plan(RAISED, "lab03", "today"), verb, tree)
    assert (done.returncode, done.stderr, told) == (0, "", [f"{then}\n"])


def test_a_frequency_limit_that_is_never_taken_up_is_refused(tree: Path) -> None:
    told = with_a_late_kernel(tree, ["800000", None, *["800000"] * 11])
    done = sh(plan_script.script_of_plan(RAISED, "lab03", "today"), "apply", tree)
    assert told == ["2400000\n"]
    assert (done.returncode, done.stderr) == (1, f"refused: {LIMIT} says '800000' after '2400000' was written\n")


def test_a_frequency_limit_of_another_program_is_left_alone(tree: Path) -> None:
    file = tree / LIMIT[1:]
    file.parent.mkdir(parents=True)
    script = plan_script.script_of_plan(RAISED, "lab03", "today")
    gone = sh(script, "apply", tree)
    assert (gone.returncode, gone.stderr) == (1, f"left alone: {LIMIT} cannot be read\n")
    file.write_text("1200000\n")
    other = sh(script, "apply", tree)
    assert (other.returncode, other.stderr) == (1, f"left alone: {LIMIT} says '1200000', not '800000'\n")


SAMPLES: dict[str, tuple[str, str, str]] = {
    "value": ("/sys/a", "x", "y"),
    "number": ("/sys/a", "1", "2"),
    "choice": ("/sys/a", "never", "always"),
    "cpu-list": ("/sys/a", "0-1", "0"),
    "cpu-mask": ("/sys/a", "3", "1"),
    "affinity": ("sched_setaffinity(12@34)", "0-1", "0"),
    "affinity-across": ("sched_setaffinity(12@34)", "0", "0 or 0-1"),
    "task-cgroup": ("cgroup(12@34)", "/", "/rest"),
    "cgroup": ("/sys/fs/cgroup/x", "absent", "present"),
    "cgroup-cpus": ("/sys/fs/cgroup/x/cpuset.cpus", "0", "1"),
    "cpuset": ("/sys/fs/cgroup/cpuset/x", "absent", "cpus 1 mems 0"),
    "controllers": ("/sys/fs/cgroup/cgroup.subtree_control", "", "cpuset"),
    "partition": ("/sys/fs/cgroup/x/cpuset.cpus.partition", "member", "isolated"),
    "workqueue-mask": ("/sys/devices/virtual/workqueue/cpumask", "3", "1"),
    "cpu-cycle": ("/sys/devices/system/cpu/cpu1/online", "1", "0, then 1"),
    "idle-disable": ("/sys/a", "0", "1"),
    "frequency-limit": ("/sys/a", "1", "2"),
    "irq-across": ("/proc/irq/1/smp_affinity_list", "1", "1"),
    "mask-across": ("/sys/a", "3", "3"),
    "irq-thread": ("sched_setaffinity(1@2)", "0", "1"),
    "governor-thread": ("sugov(policy0)", "bound", "bound"),
    "held": ("/dev/cpu_dma_latency", "not held", "2"),
    "preempt": ("/sys/a", "none", "full"),
    "watchdog": ("/proc/sys/kernel/watchdog", "soft=1 nmi=0", "soft=0 nmi=0"),
    "dirty-limit": ("/proc/sys/vm/dirty_ratio", "20%", "100000"),
    "unit": ("systemd(irqbalance.service)", "active", "inactive"),
    "folder": ("/etc/default/grub.d", "absent", "present"),
    "grub": ("/etc/default/grub.d/zz.cfg", "", "skew_tick=1"),
    "grubby": ("grubby(nohz_full)", "", "nohz_full=1"),
    "grub-entry": ("/boot/grub/custom.cfg", "", "x"),
    "grub-once": ("/boot/grub/custom.cfg(nohz_full)", "", "nohz_full=1"),
    "grub-next": ("/boot/grub/grubenv(next_entry)", "", "x"),
}
"""A path and two values for each kind of setting there is: a new kind needs a line here, and one in the script."""


def every_kind() -> list[str]:
    modules = [name for _, name, _ in pkgutil.iter_modules(setting_types.__path__)]
    found = [vars(import_module(f"{setting_types.__name__}.{name}")) for name in modules]
    kinds = {
        item.name for names in found for item in names.values() if isinstance(item, type) and issubclass(item, Kind)
    }
    assert len(kinds) > 15
    return sorted(kinds)


@pytest.mark.parametrize("kind", every_kind())
def test_a_script_does_every_kind_or_says_why_not(kind: str, tmp_path: Path) -> None:
    path, before, after = SAMPLES[kind]
    one = change(1, path, before, after, kind=kind, tunable="governor")
    forward, back = step(one, restore=False), step(one, restore=True)
    if kind in NOT_BY_A_SCRIPT:
        assert (forward.split(" ")[0], back) == ("fail", "true")
        assert NOT_BY_A_SCRIPT[kind] in forward.replace("'\\''", "'")
    else:
        assert forward.split(" ")[0] in functions()
        assert back.split(" ")[0] in functions() or back == "true"


def test_only_settings_held_by_a_process_are_left_out_of_a_script() -> None:
    """The kinds of an entry for one boot are refused before there is a script (``commands/plan.py``)."""
    assert {kind for kind in NOT_BY_A_SCRIPT if not kind.startswith("grub-")} == {"held"}


@pytest.mark.parametrize("name", sorted(hosttrees.EVERY))
def test_each_plan_of_a_host_is_done_by_the_script(name: str, host_tree: Callable[[str], Path]) -> None:
    place = HostRoot(host_tree(name))
    asked = [Wanted(t.id) for t in tunables() if t.changes_host and t.id != "pm-qos-fd"]
    made = draw(Host(place, choose_hot(place, None).cpus), asked)
    assert all(change.kind in SAMPLES for change in made.changes)
    assert {step(change, restore=False).split(" ")[0] for change in made.changes} <= functions().keys()


def test_a_task_that_has_ended_needs_nothing(tmp_path: Path) -> None:
    moved = change(1, "sched_setaffinity(1@999999999999)", "0-1", "0", kind="affinity", when="boot")
    file = tmp_path / "plan.sh"
    file.write_text(plan_script.script_of_plan(plan_of(moved), "lab03", "today"))
    done = subprocess.run(["sh", str(file), "apply"], capture_output=True, text=True, timeout=30, check=False)
    assert (done.returncode, done.stderr) == (0, "")


nasty = st.text(alphabet=st.characters(exclude_categories=("Cs",), exclude_characters="\0"), max_size=20)


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(nasty, nasty, nasty)
def test_nothing_in_a_plan_is_run(tree: Path, before: str, why: str, host: str) -> None:
    """Values, reasons and names are words of the shell, never its code."""
    hostile = f"'; touch {tree}/owned; $(touch {tree}/owned) `touch {tree}/owned` {before}"
    (tree / "sys/governor").write_text(hostile)
    made = plan_of(
        change(1, "/sys/governor", hostile, "performance", why=why + hostile),
        skipped=(Skipped("epp", f"{why}\ntouch {tree}/owned"),),
    )
    done = sh(plan_script.script_of_plan(made, f"{host}\n{hostile}", hostile), "apply", tree)
    assert not (tree / "owned").exists()
    assert done.returncode in (0, 1)


@pytest.mark.parametrize(
    "made",
    [
        EVERYTHING,
        plan_of(),
        plan_of(
            change(1, "/sys/fs/cgroup/hot", "absent", "present", kind="cgroup"),
            change(2, "/sys/devices/system/cpu/cpu1/online", "1", "cycled", kind="cpu-cycle"),
            change(3, "systemd(irqbalance.service)", "active", "inactive", kind="unit"),
            change(4, "sched_setaffinity(12@34)", "0-1", "0", kind="affinity"),
            change(5, "/dev/cpu_dma_latency", "none", "2", kind="held", lease=True),
            change(6, "/etc/default/grub.d/zz.cfg", "", "skew_tick=1", kind="grub", when="boot", then="update-grub"),
            change(7, "grubby(nohz_full+rcu_nocbs)", "", "nohz_full=1 rcu_nocbs=1", kind="grubby", when="boot"),
            change(8, "/sys/fs/cgroup/cpuset/hot", "absent", "cpus 1 mems 0", kind="cpuset"),
            change(9, "cgroup(12@34)", "/", "/rest", kind="task-cgroup"),
            change(10, "/sys/fs/cgroup/cgroup.subtree_control", "", "cpuset", kind="controllers"),
            change(11, "/proc/sys/kernel/watchdog", "soft=1 nmi=0", "soft=0 nmi=0", kind="watchdog"),
            change(12, "/proc/sys/vm/dirty_ratio", "20%", "100000", kind="dirty-limit"),
            change(13, "sched_setaffinity(12@34)", "0", "0 or 0-1", kind="affinity-across"),
            change(14, "/sys/devices/virtual/workqueue/cpumask", "3", "1", kind="workqueue-mask"),
            change(15, "/sys/fs/cgroup/hot/cpuset.cpus", "", "1", kind="cgroup-cpus"),
            change(16, "/etc/default/grub.d", "absent", "present", kind="folder", when="boot"),
            change(17, "/sys/devices/system/cpu/cpufreq/policy0/scaling_min_freq", "1", "2", kind="frequency-limit"),
        ),
    ],
    ids=["files", "nothing", "every kind"],
)
def test_the_script_is_clean_shell(made: Plan, tmp_path: Path) -> None:
    file = tmp_path / "plan.sh"
    file.write_text(plan_script.script_of_plan(made, "lab03", "today"))
    assert subprocess.run(["sh", "-n", str(file)], timeout=20, check=False).returncode == 0
    checker = shutil.which("shellcheck")
    if checker is None:
        pytest.skip("shellcheck is not installed")
    checked = subprocess.run([checker, str(file)], capture_output=True, text=True, timeout=60, check=False)
    assert checked.returncode == 0, checked.stdout


def test_a_script_of_no_writes_says_so_and_why(tree: Path) -> None:
    why = "not for one boot alone: only root can read /boot/grub/grub.cfg"
    script = plan_script.script_of_plan(plan_of(skipped=(Skipped("nohz-full", why),)), "lab03", "today")
    assert f"# nothing is written for nohz-full: {why}\n" in script
    done = sh(script, "apply", tree)
    assert (done.returncode, done.stderr) == (0, f"nothing is written for nohz-full: {why}\n")
    assert (
        "nothing needs to be improved"
        in sh(plan_script.script_of_plan(plan_of(), "lab03", "today"), "apply", tree).stderr
    )
    full = plan_script.script_of_plan(plan_of(change(1, "/sys/number", "0500", "1", kind="number")), "lab03", "today")
    assert "nothing is written" not in full


# A settings file of our own, and what the host says with more than it should ----------------------------------------

DROP_IN = "/etc/grub.d/zz.cfg"


def drop_in(before: str, after: str) -> str:
    return plan_script.script_of_plan(
        plan_of(change(1, DROP_IN, before, after, kind="grub", when="boot")), "lab03", "today"
    )


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize("before", ["", "skew_tick=1"])
def test_a_settings_file_that_was_changed_by_hand_is_left_alone(shell: str, before: str, tree: Path) -> None:
    file = tree / DROP_IN[1:]
    file.parent.mkdir(parents=True)
    if before:
        assert sh(drop_in("", before), "apply", tree, shell).returncode == 0
    planned_from = file.read_bytes() if before else None
    script = drop_in(before, "nohz_full=1")
    file.write_text("mine\n")
    refused = sh(script, "apply", tree, shell)
    assert refused.returncode == 1
    assert f"left alone: {DROP_IN} was changed by hand" in refused.stderr
    assert file.read_text() == "mine\n"
    file.unlink()
    if planned_from is not None:
        file.write_bytes(planned_from)
    assert sh(script, "apply", tree, shell).returncode == 0
    ours = file.read_text()
    assert "nohz_full=1" in ours
    assert sh(script, "apply", tree, shell).returncode == 0, "a second time there is nothing to do"
    file.write_text(f"{ours}# and a word of mine\n")
    kept = sh(script, "restore", tree, shell)
    assert kept.returncode == 1
    assert f"left alone: {DROP_IN} was changed by hand" in kept.stderr
    assert file.read_text() == f"{ours}# and a word of mine\n"
    file.write_text(ours)
    assert sh(script, "restore", tree, shell).returncode == 0
    assert (file.read_bytes() if file.exists() else None) == planned_from


@pytest.mark.parametrize(
    "mems", ["0\x1b[31m", "\x07", "0\x00", "0\r-1", "0; touch owned", "$(touch owned)", "\u202e0", ""]
)
def test_memory_nodes_that_are_no_list_reach_no_plan_and_no_script(mems: str, tmp_path: Path) -> None:
    root = quad_v1(tmp_path / "host")
    (root / V1[1:] / "cpuset.mems").write_text(f"{mems}\n")
    made = draw(Host(HostRoot(root), CpuSet((3,))), [Wanted("isolation")])
    texts = [one.after for one in made.changes if one.kind == "cpuset"]
    assert sorted(texts) == ["cpus 0-2 mems 0", "cpus 3 mems 0"]
    script = plan_script.script_of_plan(made, "lab03", "today")
    assert all(line.isprintable() for line in script.replace("\t", " ").split("\n"))
    assert "touch" not in script
    file = tmp_path / "plan.sh"
    file.write_text(script)
    assert subprocess.run(["sh", "-n", str(file)], timeout=20, check=False).returncode == 0


def test_memory_nodes_are_those_of_the_top(tmp_path: Path) -> None:
    root = quad_v1(tmp_path)
    (root / V1[1:] / "cpuset.mems").write_text("0-1\n")
    made = draw(Host(HostRoot(root), CpuSet((3,))), [Wanted("isolation")])
    assert [one.after for one in made.changes if one.path.endswith("-hot") and one.kind == "cpuset"] == [
        "cpus 3 mems 0-1"
    ]


def test_a_partition_is_not_ended_while_a_cpu_has_not_come_back(tree: Path) -> None:
    online, folder = "/sys/devices/system/cpu/cpu1/online", "/sys/fs/cgroup/jitter-workshop"
    hosttrees.write(tree, {online[1:]: "0\n", f"{folder[1:]}/cpuset.cpus.partition": "isolated\n"})
    script = plan_script.script_of_plan(
        plan_of(
            change(1, f"{folder}/cpuset.cpus.partition", "member", "isolated", kind="partition"),
            change(2, online, "1", "0", kind="number"),
        ),
        "host",
        "now",
    )
    assert "overwrites masks that were set after" in script
    (tree / online[1:]).unlink()
    (tree / online[1:]).mkdir()  # takes no write
    done = sh(script, "restore", tree)
    assert done.returncode == 1
    assert "stopped: " + online in done.stderr
    assert (tree / folder[1:] / "cpuset.cpus.partition").read_text() == "isolated\n"
    (tree / online[1:]).rmdir()
    hosttrees.write(tree, {online[1:]: "0\n"})
    assert sh(script, "restore", tree).returncode == 0
    assert (tree / folder[1:] / "cpuset.cpus.partition").read_text() == "member\n"
