"""Kinds of tasks and control groups, and the tunables built of them, on made hosts that answer as a kernel does."""

from __future__ import annotations

import dataclasses
import errno
import os
import uuid
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jitter_workshop.host.root import HostRoot
from jitter_workshop.host.tasks.cpusets import find_cpusets, isolated_at_run_time
from jitter_workshop.host.tasks.listing import PF_KTHREAD, PF_NO_SETAFFINITY, PF_WQ_WORKER
from jitter_workshop.model.change import Change, Wanted
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.tuning.applying import accounted, apply_changes, shown_only
from jitter_workshop.tuning.base import Unavailable
from jitter_workshop.tuning.context import Host
from jitter_workshop.tuning.planning import digest, plan_changes
from jitter_workshop.tuning.setting_types.cgroup import cpuset_text, parse_cpuset_text
from jitter_workshop.tuning.setting_types.kinds import kind_of
from jitter_workshop.tuning.setting_types.tasks import affinity_call, parse_call, task_name
from jitter_workshop.tuning.tunables.registry import find_tunable
from tests import hosttrees
from tests.madekernel import MadeKernel, tree

V2 = "/sys/fs/cgroup"
V1 = "/sys/fs/cgroup/cpuset"
cpus = st.frozensets(st.integers(0, 200), max_size=20).map(CpuSet.of)


def quad(root: Path, *, release: str = "6.12.9", cgroups: dict[str, str] | None = None) -> Path:
    """Four CPUs, a version 2 hierarchy whose top hands only memory down, and a few tasks."""
    files = hosttrees.kernel("quad", release=release) | hosttrees.cpu_lists("0-3")
    for n in range(4):
        files |= hosttrees.cpu_files(n, package_cpus=range(4))
    files |= hosttrees.cgroup2(
        "/",
        {
            "cgroup.controllers": "cpuset cpu memory\n",
            "cgroup.subtree_control": "memory\n",
            "cgroup.procs": "1\n2\n10\n11\n12\n20\n",
            **(cgroups or {}),
        },
    )
    return hosttrees.write(root, files | tasks())


def quad_v1(root: Path) -> Path:
    """The same with version 1 cpusets beside a version 2 hierarchy that has none."""
    files = hosttrees.kernel("quad1") | hosttrees.cpu_lists("0-3")
    for n in range(4):
        files |= hosttrees.cpu_files(n, package_cpus=range(4))
    files |= tasks() | {
        "proc/self/cgroup": "3:cpuset:/\n0::/\n",
        "proc/self/mountinfo": (
            f"34 31 0:31 / {V1} rw - cgroup cgroup rw,cpuset\n41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 c rw\n"
        ),
        f"{V1[1:]}/cpuset.cpus": "0-3\n",
        f"{V1[1:]}/cpuset.mems": "0\n",
        f"{V1[1:]}/cpuset.sched_load_balance": "1\n",
        f"{V1[1:]}/tasks": "1\n2\n10\n11\n12\n20\n",
        "sys/fs/cgroup/unified/cgroup.controllers": "\n",
    }
    for tid in (1, 2, 10, 11, 12, 20):
        files[f"proc/{tid}/cgroup"] = "3:cpuset:/\n0::/\n"
    return hosttrees.write(root, files)


def tasks() -> dict[str, str]:
    bound = PF_KTHREAD | PF_NO_SETAFFINITY
    return (
        hosttrees.task(1, "init", allowed="0-3")
        | hosttrees.task(2, "kthreadd", flags=PF_KTHREAD, allowed="0-3")
        | hosttrees.task(10, "ksoftirqd/3", flags=bound, allowed="3")
        | hosttrees.task(11, "rcuop/3", flags=PF_KTHREAD, allowed="0-3", start=150)
        | hosttrees.task(12, "kworker/u8:1", flags=PF_KTHREAD | PF_WQ_WORKER, allowed="0-3")
        | hosttrees.task(20, "pin)ned", allowed="2-3", start=900)
    )


def wanted(root: Path, hot: str, *ids: str) -> Sequence[Change]:
    return plan_changes(Host(HostRoot(root), CpuSet.parse_list(hot)), [Wanted(i) for i in ids]).changes


def make(kernel: MadeKernel, changes: Sequence[Change]) -> None:
    for change in changes:
        kind = kind_of(change.kind)
        assert (found := kind.read(kernel.reader, change.path).text) is not None, change
        assert kind.same(found, change.before) or kind.same(found, change.after), change
        kind.write(kernel, change.path, change.after)
        assert (now := kind.read(kernel.reader, change.path).text) is not None
        assert kind.same(now, change.after), change


def undo(kernel: MadeKernel, changes: Sequence[Change]) -> None:
    for change in reversed(changes):
        kind = kind_of(change.kind)
        if kind.exists(kernel.reader, change.path):
            kind.write(kernel, change.path, change.before)


def round_trip(kernel: MadeKernel, hot: str, *ids: str) -> Sequence[Change]:
    before = tree(kernel.top)
    changes = wanted(kernel.top, hot, *ids)
    make(kernel, changes)
    assert wanted(kernel.top, hot, *ids) == ()
    for i in ids:
        assert find_tunable(i).assess(Host(kernel.reader, CpuSet.parse_list(hot))).state == "ok", i
    undo(kernel, changes)
    assert tree(kernel.top) == before
    return changes


# Kinds ------------------------------------------------------------------------------------------------------------


@given(tid=st.integers(1, 1 << 31), start=st.integers(0, 1 << 62))
def test_a_tasks_call_reads_back(tid: int, start: int) -> None:
    assert parse_call(affinity_call(tid, start), "sched_setaffinity") == (tid, start)


@given(st.text(max_size=40))
def test_any_text_is_a_call_or_refused(text: str) -> None:
    try:
        tid, start = parse_call(text, "cgroup")
    except ValueError:
        return
    assert tid > 0
    assert start >= 0
    assert text.startswith("cgroup(")


@given(cpus, cpus)
def test_a_cpusets_text_reads_back(some: CpuSet, mems: CpuSet) -> None:
    text = cpuset_text(str(some), str(mems))
    assert parse_cpuset_text(text) == (some, mems)
    assert kind_of("cpuset").same(text, text)


def test_a_reused_number_is_never_touched(tmp_path: Path) -> None:
    kernel = MadeKernel(quad(tmp_path))
    kind = kind_of("affinity")
    ours = affinity_call(20, 900)
    assert kind.read(kernel.reader, ours).text == "2-3"
    assert task_name(kernel.reader, ours) == "pin)ned"
    hosttrees.write(tmp_path, hosttrees.task(20, "another", allowed="0-3", start=901))
    assert task_name(kernel.reader, ours) == ""
    assert not kind.exists(kernel.reader, ours)
    assert kind.read(kernel.reader, ours).reason == "no such file"
    with pytest.raises(ProcessLookupError):
        kind.write(kernel, ours, "0")
    assert kernel.written == []


def test_a_group_is_removed_with_the_tasks_that_came_into_it(tmp_path: Path) -> None:
    kernel = MadeKernel(quad(tmp_path), groups={V2: 2})
    kind = kind_of("cgroup")
    kind.write(kernel, f"{V2}/jitter-workshop", "present")
    kernel.write(f"{V2}/jitter-workshop/cgroup.procs", "20")
    kind.write(kernel, f"{V2}/jitter-workshop", "absent")
    assert kind.read(kernel.reader, f"{V2}/jitter-workshop").text == "absent"
    assert "20" in (tmp_path / "sys/fs/cgroup/cgroup.procs").read_text().split()
    kind.write(kernel, f"{V2}/jitter-workshop", "absent")


def test_a_group_gives_its_cpus_up_only_when_its_tasks_have_left(tmp_path: Path) -> None:
    kernel = MadeKernel(quad(tmp_path), groups={V2: 2})
    kernel.make_folder(f"{V2}/jitter-workshop")
    kind, path = kind_of("cgroup-cpus"), f"{V2}/jitter-workshop/cpuset.cpus"
    kind.write(kernel, path, "3")
    kernel.write(f"{V2}/jitter-workshop/cgroup.procs", "20")
    with pytest.raises(OSError, match="No space left"):
        kernel.write(path, "")
    kind.write(kernel, path, "")
    assert kind.read(kernel.reader, path).text == ""
    assert (tmp_path / "sys/fs/cgroup/jitter-workshop/cgroup.procs").read_text() == ""


def test_an_invalid_partition_has_failed_with_the_kernels_reason(tmp_path: Path) -> None:
    kernel = MadeKernel(quad(tmp_path), groups={V2: 2})
    kernel.invalid = "Cpu list in cpuset.cpus not exclusive"
    kernel.make_folder(f"{V2}/jitter-workshop")
    kind = kind_of("partition")
    path = f"{V2}/jitter-workshop/cpuset.cpus.partition"
    with pytest.raises(OSError, match=r"Cpu list in cpuset\.cpus not exclusive"):
        kind.write(kernel, path, "isolated")
    found = kind.read(kernel.reader, path).text or ""
    assert not kind.same(found, "isolated")
    assert kind.halfway(found, "isolated")
    kind.write(kernel, path, "member")
    assert kind.read(kernel.reader, path).text == "member"


def test_half_a_cpuset_is_known_as_our_own(tmp_path: Path) -> None:
    kind = kind_of("cpuset")
    after = "cpus 0-2 mems 0"
    assert kind.halfway("cpus none mems none", after)
    assert kind.halfway("cpus 0-2 mems none", after)
    assert not kind.halfway("cpus 1 mems none", after)
    assert not kind.halfway("absent", after)


def test_only_our_controller_is_looked_at(tmp_path: Path) -> None:
    kernel = MadeKernel(quad(tmp_path), groups={V2: 2})
    kind, path = kind_of("controllers"), f"{V2}/cgroup.subtree_control"
    assert kind.read(kernel.reader, path).text == ""
    kind.write(kernel, path, "cpuset")
    assert (tmp_path / path[1:]).read_text() == "cpuset memory\n"
    with pytest.raises(OSError, match="only the cpuset controller"):
        kind.write(kernel, path, "memory")


# Isolation --------------------------------------------------------------------------------------------------------


def test_a_partition_is_made_and_undone(tmp_path: Path) -> None:
    changes = round_trip(MadeKernel(quad(tmp_path), groups={V2: 2}), "3", "isolation")
    assert [(c.kind, c.before, c.after) for c in changes] == [
        ("controllers", "", "cpuset"),
        ("cgroup", "absent", "present"),
        ("cgroup-cpus", "", "3"),
        ("partition", "member", "isolated"),
        ("affinity-across", "2-3", "2"),
    ]


def test_version_1_sets_take_the_tasks_that_can_be_moved(tmp_path: Path) -> None:
    changes = round_trip(MadeKernel(quad_v1(tmp_path), groups={V1: 1}), "3", "isolation")
    moved = [c.path.partition("@")[0] for c in changes if c.kind == "task-cgroup"]
    assert moved == ["cgroup(1", "cgroup(11", "cgroup(12", "cgroup(20"]
    assert [c.path for c in changes][-1] == f"{V1}/cpuset.sched_load_balance"


def test_a_version_1_set_that_shares_a_hot_cpu_is_in_the_way(tmp_path: Path) -> None:
    kernel = MadeKernel(quad_v1(tmp_path), groups={V1: 1})
    kind_of("cpuset").write(kernel, f"{V1}/docker", "cpus 0-3 mems 0")
    assert "'docker' has CPU 3 too" in find_tunable("isolation").assess(host(tmp_path)).reason


def host(root: Path, hot: str = "3") -> Host:
    return Host(HostRoot(root), CpuSet.parse_list(hot))


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({"a/cpuset.cpus": "2-3\n", "a/cpuset.cpus.partition": "root\n"}, "'a' has a partition of its own with CPU 3"),
        ({"a/cpuset.cpus": "2-3\n", "a/cpuset.cpus.partition": "member\n"}, "'a' also lists CPU 3"),
        ({"a/cpuset.cpus": "2-3\n", "a/cpuset.cpus.partition": "member\n", "a/cpuset.cpus.exclusive": "\n"}, ""),
        ({"a/cpuset.cpus": "\n", "a/cpuset.cpus.partition": "member\n"}, ""),
    ],
)
def test_siblings_with_hot_cpus_are_in_the_way(tmp_path: Path, files: dict[str, str], said: str) -> None:
    quad(tmp_path, cgroups=files)
    assessed = find_tunable("isolation").assess(host(tmp_path))
    assert assessed.state == ("unavailable" if said else "improve")
    assert said in assessed.reason
    if said:
        with pytest.raises(Unavailable, match="CPU 3"):
            find_tunable("isolation").writes(host(tmp_path), None)


def test_a_partition_of_an_old_kernel_counts_without_a_list(tmp_path: Path) -> None:
    quad(
        tmp_path,
        cgroups={"x/cpuset.cpus": "3\n", "x/cpuset.cpus.effective": "3\n", "x/cpuset.cpus.partition": "isolated\n"},
    )
    root = HostRoot(tmp_path)
    assert isolated_at_run_time(root, find_cpusets(root)) == CpuSet((3,))
    assert find_tunable("isolation").assess(host(tmp_path)).state == "ok"
    (tmp_path / "sys/fs/cgroup/x/cpuset.cpus.partition").write_text("isolated invalid (Cpu list not exclusive)\n")
    assert find_tunable("isolation").assess(host(tmp_path)).state == "unavailable"


def test_isolation_at_boot_is_enough(tmp_path: Path) -> None:
    quad(tmp_path)
    (tmp_path / "sys/devices/system/cpu/isolated").write_text("2-3\n")
    assert find_tunable("isolation").assess(host(tmp_path)).state == "ok"
    assert find_tunable("isolation").writes(host(tmp_path), None) == ()


@pytest.mark.parametrize("tunable", ["isolation", "irq-affinity", "workqueue-mask", "kernel-threads", "rps-xps"])
def test_the_last_cpu_is_left_for_the_rest(tmp_path: Path, tunable: str) -> None:
    quad(tmp_path)
    everyone = host(tmp_path, "0-3")
    assert find_tunable(tunable).assess(everyone).state == "info"
    with pytest.raises(Unavailable, match="every CPU is hot"):
        find_tunable(tunable).writes(everyone, None)


def test_a_container_cannot_isolate(tmp_path: Path) -> None:
    quad(tmp_path)
    info = tmp_path / "proc/self/mountinfo"
    info.write_text(info.read_text().replace(" / /sys/fs/cgroup ", " /docker/x /sys/fs/cgroup "))
    assessed = find_tunable("isolation").assess(host(tmp_path))
    assert assessed.state == "unavailable"
    assert assessed.only_host


# Kernel threads and other tasks -----------------------------------------------------------------------------------


def test_movable_kernel_threads_are_moved_and_given_back(tmp_path: Path) -> None:
    changes = round_trip(MadeKernel(quad(tmp_path)), "3", "kernel-threads")
    assert [(c.path, c.before, c.after) for c in changes] == [
        ("sched_setaffinity(2@100)", "0-3", "0-2"),
        ("sched_setaffinity(11@150)", "0-3", "0-2"),
    ]


def test_other_tasks_are_counted_and_named(tmp_path: Path) -> None:
    quad(tmp_path)
    assessed = find_tunable("user-tasks").assess(host(tmp_path))
    assert (assessed.state, assessed.value) == ("info", "2")
    assert "2 of 2 processes may run on CPU 3: init, pin)ned" in assessed.reason
    (tmp_path / "proc/1/status").write_text("Cpus_allowed_list:\t0-2\n")
    (tmp_path / "proc/20/status").write_text("Cpus_allowed_list:\t2\n")
    assert find_tunable("user-tasks").assess(host(tmp_path)).state == "ok"


def test_a_refused_affinity_is_the_kernels_own_error(tmp_path: Path) -> None:
    kernel = MadeKernel(quad(tmp_path))
    kernel.refusals["/proc/11/status"] = errno.EINVAL
    with pytest.raises(OSError, match="Invalid argument"):
        kind_of("affinity").write(kernel, affinity_call(11, 150), "0")


# With the steps that the agent makes --------------------------------------------------------------------------------


class Remembered:
    """A journal in memory."""

    def __init__(self) -> None:
        self.refusals: list[str] = []
        self.made: set[int] = set()

    def intents(self, changes: Sequence[Change]) -> None: ...
    def then(self, name: str) -> None: ...

    def written(self, n: int, read_back: str | None) -> None:
        self.made.add(n)

    def refused(self, n: int, reason: str) -> None:
        self.refusals.append(reason)


def test_limits_that_stand_already_are_noted_and_not_refused(tmp_path: Path) -> None:
    kernel = MadeKernel(quad(tmp_path), groups={V2: 2})
    hosttrees.write(tmp_path, hosttrees.task(20, "pinned", allowed="2", start=900))
    changes = wanted(tmp_path, "3", "isolation")
    assert changes[-1].before == changes[-1].after == "2"
    result = apply_changes(kernel.reader, kernel, changes, Remembered())
    assert result.refused == ()
    assert len(result.applied) == len(changes)


def test_a_task_that_began_after_the_plan_is_no_refusal(tmp_path: Path) -> None:
    quad_v1(tmp_path)
    before = wanted(tmp_path, "3", "isolation")
    hosttrees.write(tmp_path, hosttrees.task(30, "new", allowed="0-3") | {"proc/30/cgroup": "3:cpuset:/\n"})
    after = wanted(tmp_path, "3", "isolation")
    assert len(after) == len(before) + 1
    shown, refused = shown_only(after, [digest(change) for change in before])
    assert [(c.path, c.after) for c in shown] == [(c.path, c.after) for c in before]
    assert refused == []


def test_a_task_that_has_ended_and_was_not_asked_for_is_not_moved(tmp_path: Path) -> None:
    """The kernel takes the write for a zombie and leaves it in the top set."""
    quad_v1(tmp_path)
    ended = hosttrees.task(30, "gone", allowed="2", state="Z", start=77) | {"proc/30/cgroup": "3:cpuset:/\n"}
    hosttrees.write(tmp_path, ended)
    assert not any("30@77" in change.path for change in wanted(tmp_path, "3", "isolation"))


class EndsWhileItIsMoved(MadeKernel):
    def _move(self, path: str, tid: str) -> None:
        if tid == "30":
            hosttrees.write(self.top, hosttrees.task(30, "going", allowed="0-3", state="Z", start=77))
            raise ProcessLookupError(errno.ESRCH, os.strerror(errno.ESRCH))
        super()._move(path, tid)


def test_a_task_that_ends_before_or_while_it_is_moved_is_no_refusal(tmp_path: Path) -> None:
    quad_v1(tmp_path)
    for tid, start in ((29, 76), (30, 77)):
        cgroup = {f"proc/{tid}/cgroup": "3:cpuset:/\n"}
        hosttrees.write(tmp_path, hosttrees.task(tid, "going", allowed="0-3", start=start) | cgroup)
    changes = wanted(tmp_path, "3", "isolation")
    hosttrees.write(tmp_path, hosttrees.task(29, "going", allowed="0-3", state="Z", start=76))
    kernel = EndsWhileItIsMoved(tmp_path, groups={V1: 1})
    result = apply_changes(kernel.reader, kernel, changes, Remembered())
    assert result.refused == ()
    assert len(result.applied) == len(changes) - 2
    counted = accounted(kernel.reader, changes, result)
    assert (counted.ended, counted.changed) == (2, 0)
    lives = accounted(kernel.reader, changes, dataclasses.replace(result, applied=()))
    assert (lives.ended, lives.changed) == (2, len(changes) - 2), "who lives and was left alone has not ended"


class RefusesToMove(MadeKernel):
    """``stay``: the tasks that this kernel does not move."""

    stay: set[str]

    def _move(self, path: str, tid: str) -> None:
        if tid in self.stay:
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
        super()._move(path, tid)


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.sampled_from(("made", "refused", "ended", "elsewhere", "as wanted")), max_size=12))
def test_each_shown_write_is_counted_once_and_the_journal_has_the_made_ones(tmp_path: Path, fates: list[str]) -> None:
    """``elsewhere``: a task that left the top cpuset by itself after the plan was shown, so that a new plan does not
    have it; ``as wanted``: a setting of the host that somebody else made meanwhile."""
    top = tmp_path / str(uuid.uuid4())
    quad_v1(top)
    for tid, _ in enumerate(fates, start=30):
        cgroup = {f"proc/{tid}/cgroup": "3:cpuset:/\n"}
        hosttrees.write(top, hosttrees.task(tid, "task", allowed="0-3", start=77) | cgroup)
    shown = wanted(top, "3", "isolation")
    of_host = next(c for c in shown if c.path.endswith("-hot/cpuset.sched_load_balance"))
    for tid, fate in enumerate(fates, start=30):
        if fate == "ended":
            hosttrees.write(top, hosttrees.task(tid, "task", allowed="0-3", state="Z", start=77))
        if fate == "elsewhere":
            hosttrees.write(top, {f"proc/{tid}/cgroup": "3:cpuset:/other\n"})
    kernel = RefusesToMove(top, groups={V1: 1})
    kernel.stay = {str(tid) for tid, fate in enumerate(fates, start=30) if fate == "refused"}
    fresh, others = shown_only(wanted(top, "3", "isolation"), [digest(change) for change in shown])
    dropped = 0
    if "as wanted" in fates:
        fresh, dropped = [c for c in fresh if c.path != of_host.path], 1
    journal = Remembered()
    result = accounted(kernel.reader, shown, apply_changes(kernel.reader, kernel, fresh, journal))
    assert not others
    assert len(result.refused) == fates.count("refused")
    assert (result.ended, result.changed) == (fates.count("ended"), fates.count("elsewhere") + dropped)
    assert len(shown) == len(result.applied) + len(result.refused) + result.ended + result.changed
    assert journal.made == {one.n for one in result.applied}


def test_a_partition_that_the_kernel_marks_invalid_is_refused_and_the_rest_done(tmp_path: Path) -> None:
    kernel = MadeKernel(quad(tmp_path), groups={V2: 2})
    kernel.invalid = "Cpu list in cpuset.cpus not exclusive"
    result = apply_changes(kernel.reader, kernel, wanted(tmp_path, "3", "isolation"), Remembered())
    (refused,) = result.refused
    assert refused.path == f"{V2}/jitter-workshop/cpuset.cpus.partition"
    assert "Cpu list in cpuset.cpus not exclusive" in refused.reason
    assert (tmp_path / refused.path[1:]).read_text() == "member\n"


def test_version_1_sets_that_balance_nothing_at_all_are_to_improve(tmp_path: Path) -> None:
    kernel = MadeKernel(quad_v1(tmp_path), groups={V1: 1})
    for change in wanted(tmp_path, "3", "isolation"):
        kind_of(change.kind).write(kernel, change.path, change.after)
    assert find_tunable("isolation").assess(host(tmp_path)).state == "ok"
    kernel.write(f"{V1}/jitter-workshop-rest/cpuset.sched_load_balance", "0")
    assessed = find_tunable("isolation").assess(host(tmp_path))
    assert assessed.state == "improve"
    assert "the kernel balances no tasks between" in assessed.reason
