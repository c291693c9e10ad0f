"""Apply and restore on modelled machines: whatever was applied, killed, restored in part and changed by others in
between, the machine is as before afterwards, or each difference is named truthfully."""

from __future__ import annotations

import itertools
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, event, given, settings
from hypothesis import strategies as st

from jitter_workshop.model.change import Restored, RestoreResult
from jitter_workshop.model.cpuset import CpuSet
from tests.modelkernel import CPU, V2, Shape, differences
from tests.modelworld import World

WORDS = (
    *("smt", "smt=off", "hotplug", "isolation", "kernel-threads", "irq-affinity", "workqueue-mask"),
    *("governor=performance", "governor=powersave", "min-frequency", "stat-interval"),
)
MANY = int(os.environ.get("MODEL_EXAMPLES", "25"))
PHASES = [phase for phase in Phase if phase is not Phase.explain]
SOMEBODY = "another program or user changed it"


@contextmanager
def world(shape: Shape) -> Iterator[World]:
    """A machine in memory."""
    place = "/dev/shm" if Path("/dev/shm").is_dir() else None
    top = Path(tempfile.mkdtemp(prefix="model-", dir=place))
    try:
        yield World(top, shape)
    finally:
        shutil.rmtree(top)


def named(name: str, **more: Any) -> Shape:
    return Shape(name=name, **more)


SHAPES = (
    named("6.1, SMT"),
    named("6.1, SMT numbered in halves", siblings="halves"),
    named("6.12, SMT", kernel=(6, 12)),
    named("6.1, version 1", cgroup=1),
    named("6.12, version 1", cgroup=1, kernel=(6, 12)),
    named("6.1, no cgroup", cgroup=0),
    named("6.1, two nodes", cpus=8, nodes=2),
    named("6.12, two nodes", cpus=8, nodes=2, kernel=(6, 12)),
    named("6.1, shared frequency domains", frequency="shared", bound=True),
    named("6.1, own frequency domains, no SMT", threads=1, frequency="own", bound=True),
    named("6.1, PREEMPT_RT", realtime=True),
    named("6.12, PREEMPT_RT", realtime=True, kernel=(6, 12)),
    named("6.1, one CPU offline", cpus=6, threads=1, offline=(5,)),
    named("6.12, one CPU offline", cpus=6, threads=1, offline=(5,), kernel=(6, 12)),
    named("6.1, version 1, one CPU offline", cpus=6, threads=1, offline=(5,), cgroup=1),
)


def shapes() -> st.SearchStrategy[Shape]:
    return st.sampled_from(SHAPES)


ALL = ("smt", "isolation", "kernel-threads", "irq-affinity", "workqueue-mask", "governor=performance", "min-frequency")


@pytest.mark.parametrize("split", [False, True], ids=["at once", "one by one"])
@pytest.mark.parametrize("shape", [one for one in SHAPES if not one.offline], ids=lambda one: one.name)
def test_everything_comes_back(shape: Shape, split: bool) -> None:
    with world(shape) as made:
        before = made.kernel.snapshot()
        for words in [(word,) for word in ALL] if split else [ALL]:
            applied = made.apply(words, "2")
            assert applied is not None
            assert applied.refused == (), applied.refused
        made.kernel.threads_follow()
        back = made.restore()
        assert back is not None
        assert back.left_alone == ()
        assert made.active() == []
        made.kernel.threads_follow()
        assert differences(before, made.kernel.snapshot()) == []


@dataclass
class Others:
    """Hold what others did meanwhile. ``values``: by the name of a snapshot, each value that it may have afterwards.
    ``touched``: paths that others set."""

    values: dict[str, set[str]] = field(default_factory=dict)
    touched: set[str] = field(default_factory=set)


def stranger(made: World, others: Others, before: dict[str, str], what: str, cpus: frozenset[int]) -> None:
    """Somebody sets a task's affinity, an interrupt's, a number, or ends a task."""
    kernel = made.kernel
    if what == "ends" and 301 in kernel.tasks:
        kernel.stranger_ends(301)
    elif what in ("sh", "some", "pinned"):
        task = next((t for t in kernel.tasks.values() if t.name == what), None)
        asked = set(cpus) & kernel.effective(task.group) if task is not None else set()
        if task is None or not asked or task.group not in ("/", "/jitter-workshop-rest"):
            return
        same = asked == task.mask
        kernel.step, step = (lambda name: None), kernel.step
        kernel.set_affinity(task.tid, asked)
        kernel.step = step
        name = f"task {what}"
        others.touched.add(f"sched_setaffinity({task.tid}@{task.start})")
        # Our own value, or one that the kernel gives by itself, cannot be told from a stranger's.
        older = others.values.get(name, set()) | {before[name]} if same or _ambiguous(made, asked) else set()
        others.values[name] = {kernel.snapshot()[name].replace("/jitter-workshop-rest", "/")} | older
    elif what == "irq" and set(cpus) & kernel.online:
        kernel.irqs[24].mask = set(cpus) & kernel.online
        path = "/proc/irq/24/smp_affinity_list"
        others.touched.add(path)
        kernel.show()
        others.values[path] = {kernel.snapshot()[path], before[path]}
        # Its thread, where it has one, follows it.
        name = next((f"task {task.name}" for task in kernel.tasks.values() if task.follows == 24), "")
        others.values[name] = {f"{text} in /" for text in others.values[path]}
    elif what == "number":
        kernel.files["/proc/sys/vm/stat_interval"] = "7"
        kernel.show()
        others.touched.add("/proc/sys/vm/stat_interval")


def _ambiguous(made: World, mask: set[int]) -> bool:
    """Return True if the kernel itself gives tasks such a mask here: it then cannot be told from a stranger's."""
    return made.kernel.effective("/") - {1, 2, 3} <= mask or len(mask) <= 2


@st.composite
def actions(draw: st.DrawFn) -> list[tuple[Any, ...]]:
    """Return what happens to a machine, in order."""
    hot = st.sampled_from(("1", "2", "3", "2-3", "1,3"))
    kill = st.one_of(st.none(), st.integers(0, 120))
    words = st.lists(st.sampled_from(WORDS), min_size=1, max_size=5, unique_by=lambda word: word.partition("=")[0])
    given_back = ("smt", "isolation", "kernel-threads", "irq-affinity", "governor")
    some = st.lists(st.sampled_from(given_back), max_size=2, unique=True)
    return draw(
        st.lists(
            st.one_of(
                st.tuples(st.just("apply"), words, hot, kill),
                st.tuples(st.just("apply"), words, hot, st.none()),
                st.tuples(st.just("restore"), some, kill),
                st.tuples(st.just("follow")),
            ),
            min_size=1,
            max_size=5,
        )
    )


def act(made: World, one: tuple[Any, ...]) -> RestoreResult | None:
    """One of ``actions``."""
    if one[0] == "apply":
        if made.host(one[2]).hot:
            made.apply(one[1], one[2], one[3])
    elif one[0] == "restore":
        return made.restore(one[1], kill_at=one[2])
    elif made.kernel.shape.realtime:
        made.kernel.threads_follow()
    return None


@settings(
    max_examples=MANY,
    deadline=None,
    phases=PHASES,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(shape=shapes(), doings=actions())
def test_restore_brings_every_value_back_after_any_changes_and_kills(
    shape: Shape, doings: list[tuple[Any, ...]]
) -> None:
    with world(shape) as made:
        before = made.kernel.snapshot()
        for one in doings:
            result = act(made, one)
            for left in result.left_alone if result is not None else ():
                assert SOMEBODY not in left.reason, left
        back = made.restore()
        assert back is not None
        for left in back.left_alone:
            assert SOMEBODY not in left.reason, left
        made.kernel.threads_follow()
        lines = differences(before, made.kernel.snapshot())
        if not shape.offline:
            assert [(left.path, left.reason) for left in back.left_alone] == []
            assert made.active() == []
            assert lines == []
            return
        # A CPU that was offline before: kernels before 6.2 forget that tasks may use it. Each such task is named.
        named = {left.path for left in back.left_alone}
        told = {
            f"task {task.name}"
            for task in made.kernel.tasks.values()
            if f"sched_setaffinity({task.tid}@{task.start})" in named
        }
        assert {line.partition(":")[0] for line in lines} <= told, lines
        event(f"{len(lines)} masks wait for a CPU")
        made.kernel.write(f"{CPU}/cpu{shape.offline[0]}/online", "1")
        again = made.restore()
        assert again is not None
        assert again.left_alone == ()
        with world(shape) as untouched:
            untouched.kernel.write(f"{CPU}/cpu{shape.offline[0]}/online", "1")
            assert differences(untouched.kernel.snapshot(), made.kernel.snapshot()) == []


@settings(
    max_examples=MANY,
    deadline=None,
    phases=PHASES,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(
    shape=shapes().filter(lambda one: not one.offline),
    doings=actions(),
    meanwhile=st.lists(
        st.tuples(
            st.integers(0, 5),
            st.sampled_from(("sh", "some", "pinned", "irq", "number", "ends")),
            st.frozensets(st.integers(0, 7), min_size=1),
        ),
        min_size=1,
        max_size=3,
    ),
)
def test_only_settings_of_others_are_left_to_them(
    shape: Shape, doings: list[tuple[Any, ...]], meanwhile: list[tuple[int, str, frozenset[int]]]
) -> None:
    with world(shape) as made:
        before = made.kernel.snapshot()
        others = Others()
        results = []
        for position, one in enumerate(doings):
            results.append(act(made, one))
            for when, what, cpus in meanwhile:
                if when == position:
                    stranger(made, others, before, what, cpus)
        results += [made.restore(), made.restore(forget=True), made.restore()]
        for result in results:
            for left in result.left_alone if result is not None else ():
                if SOMEBODY in left.reason:
                    assert left.path in others.touched, left
        last = results[-1]
        assert last is not None
        assert last.left_alone == ()
        assert made.active() == []
        made.kernel.threads_follow()
        after = made.kernel.snapshot()
        for line in differences(before, after):
            name = line.partition(":")[0]
            assert after[name] in others.values.get(name, set()), line


@pytest.mark.parametrize("shape", [SHAPES[0], SHAPES[2], SHAPES[3]], ids=lambda one: one.name)
def test_a_lease_that_ends_leaves_the_settings_from_before_it(shape: Shape) -> None:
    with world(shape) as made:
        before = made.kernel.snapshot()
        made.apply(["kernel-threads"], "2")
        standing = made.kernel.snapshot()
        made.apply(["smt", "isolation", "hotplug"], "2")
        ended = made.restore(among=[made.journals[-1].id])
        assert ended is not None
        assert ended.left_alone == ()
        assert differences(standing, made.kernel.snapshot()) == []
        made.restore()
        assert differences(before, made.kernel.snapshot()) == []


PAIRS = tuple(itertools.permutations(("smt", "isolation", "hotplug", "kernel-threads", "irq-affinity"), 2))


def two_and_one_back(shape: Shape, first: str, then: str, hot: tuple[str, str], back: str) -> str:
    """Apply two tunables, give one back, and then all. Return the fault, "" for none."""
    with world(shape) as made:
        before = made.kernel.snapshot()
        made.apply([first], hot[0])
        made.apply([then], hot[1])
        results = [made.restore([back]), made.restore(), made.restore()]
        for result in results:
            assert result is not None
            if any(SOMEBODY in left.reason for left in result.left_alone):
                return f"{first}, {then} for {hot}, {back} back: no user changed {result.left_alone}"
        made.kernel.threads_follow()
        lines = differences(before, made.kernel.snapshot())
        left = [*lines, *made.active()]
        return f"{first}, {then} for {hot}, {back} back: {left}" if left else ""


def every_pair(shape: Shape, hots: tuple[tuple[str, str], ...]) -> list[str]:
    found = (two_and_one_back(shape, a, b, hot, back) for a, b in PAIRS for hot in hots for back in (a, b))
    return [one for one in found if one]


@pytest.mark.parametrize("shape", [SHAPES[0], SHAPES[4]], ids=lambda one: one.name)
def test_one_of_two_is_given_back_before_the_other(shape: Shape) -> None:
    assert every_pair(shape, (("1", "1"), ("1", "2"))) == []


@pytest.mark.soak
@pytest.mark.parametrize("shape", [one for one in SHAPES if not one.offline], ids=lambda one: one.name)
def test_one_of_any_two_is_given_back_before_the_other(shape: Shape) -> None:
    assert every_pair(shape, tuple(itertools.product(("1", "2", "2-3"), repeat=2))) == []


SLICE, OTHER = "user.slice", "other"
SWITCHES = ("off", "on", "hand", "slice", "partition", "gone slice", "gone partition", "enter", "leave")
Doing = tuple[str, str, tuple[int, ...]]


def doing_of(what: str, cpus: frozenset[int], task: int) -> Doing:
    """Return what ``ModelKernel.stranger_does`` is told for one draw."""
    if what in ("off", "on"):
        return what, "", (min(cpus),)
    if what == "enter":
        return "enter", SLICE, (task,)
    if what == "leave":
        return "enter", "", (task,)
    if what.startswith("gone"):
        return "gone", SLICE if what == "gone slice" else OTHER, ()
    return what, OTHER if what == "partition" else SLICE, tuple(sorted(cpus))


def owners() -> st.SearchStrategy[list[tuple[int, Doing]]]:
    """When somebody does what to CPUs and groups."""
    one = st.builds(
        doing_of, st.sampled_from(SWITCHES), st.frozensets(st.integers(1, 3), min_size=1, max_size=2),
        st.sampled_from((300, 302)),
    )  # fmt: skip
    return st.lists(st.tuples(st.integers(-1, 4), one), min_size=1, max_size=5).map(
        lambda found: sorted(found, key=lambda pair: pair[0])
    )


def paths_of(made: World, names: Iterable[str]) -> set[str]:
    """The settings behind names of a snapshot: a task is one for its mask and one for its place."""
    found = set(names)
    for task in made.kernel.tasks.values():
        if f"task {task.name}" in found:
            found |= {f"{call}({task.tid}@{task.start})" for call in ("sched_setaffinity", "cgroup")}
    return found


def others_do(made: World, one: Doing) -> set[str] | None:
    """Let somebody do it. The settings that it changed, itself or by way of the kernel; None where it was refused."""
    was = made.kernel.snapshot()
    if not made.kernel.stranger_does(*one):
        return None
    made.kernel.threads_follow()
    now = made.kernel.snapshot()
    about = {f"{CPU}/cpu{one[2][0]}/online", f"{CPU}/smt/control"} if one[0] in ("off", "on") else set()
    return paths_of(made, {name for name in was.keys() | now.keys() if was.get(name) != now.get(name)} | about)


def switched_by(doings: list[tuple[Any, ...]]) -> set[int]:
    """The CPUs that an apply which may have been cut short cycles or switches."""
    applied = [one for one in doings if one[0] == "apply"]
    if any("smt" in word for one in applied for word in one[1]):
        return set(range(8))
    return {cpu for one in applied if "hotplug" in one[1] for cpu in CpuSet.parse_list(one[2])}


@settings(
    max_examples=MANY,
    deadline=None,
    phases=PHASES,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(shape=shapes().filter(lambda one: not one.offline), doings=actions(), meanwhile=owners())
def test_cpus_and_groups_of_others_stay_as_they_made_them(
    shape: Shape, doings: list[tuple[Any, ...]], meanwhile: list[tuple[int, Doing]]
) -> None:
    done: list[Doing] = []
    touched: set[str] = set()
    with world(shape) as made:
        before = made.kernel.snapshot()
        results = []
        for position in range(-1, len(doings)):
            if position >= 0:
                results.append(act(made, doings[position]))
            for when, one in meanwhile:
                if when == position:
                    about = others_do(made, one)
                    if about is not None:
                        done.append(one)
                        touched |= about
        results += [made.restore(), made.restore()]
        for result in results:
            for left in result.left_alone if result is not None else ():
                if SOMEBODY in left.reason:
                    assert left.path in touched, (left, done)
        last = results[-1]
        assert last is not None
        named = {left.path for left in last.left_alone}
        made.kernel.threads_follow()
        after = made.kernel.snapshot()
        paths = {name: paths_of(made, [name]) for name in after}
        # The thread of an interrupt follows it; a driver puts its queues anew at each switch of a CPU.
        moving = {f"task {t.name}" for t in made.kernel.tasks.values() if t.follows is not None}
        if any(what in ("off", "on") for what, _, _ in done):
            moving |= {f"/proc/irq/{n}/smp_affinity_list" for n, i in made.kernel.irqs.items() if i.queue is not None}
            moving |= {name for name in after if name.endswith("xps_cpus")}
    with world(shape) as alone:
        for one in done:
            alone.kernel.stranger_does(*one)
        alone.kernel.threads_follow()
        wanted = alone.kernel.snapshot()
        back = {cpu for cpu in made.kernel.online - alone.kernel.online if cpu not in shape.offline}
        # A CPU that is off while a cycle of ours is announced may be off by that: it comes back, and then the masks
        # that its coming changes are those with it.
        for cpu in sorted(back):
            alone.kernel.stranger_does("on", "", (cpu,))
        alone.kernel.threads_follow()
        wanted = alone.kernel.snapshot() if back else wanted
    assert back <= {cpu for cpu in switched_by(doings) if cpu}
    for line in differences(wanted, after):
        name = line.partition(":")[0]
        if paths.get(name, {name}) & named or name in moving or after.get(name) == before.get(name):
            continue
        raise AssertionError((line, done, [(left.path, left.reason) for left in last.left_alone]))


def test_a_partition_of_others_made_while_our_cpus_are_offline_keeps_no_task_off_them() -> None:
    with world(SHAPES[0]) as made:
        made.apply(["smt"], "2")
        assert made.kernel.stranger_does("partition", OTHER, (1,))
        back = made.restore()
        assert back is not None
        assert [left.path for left in back.left_alone if SOMEBODY in left.reason] == []
        masks = {t.name: t.mask for t in made.kernel.tasks.values() if not t.fixed}
        assert (masks["init"], masks["pinned"], masks["some"]) == ({0, 2, 3}, {3}, {0, 2, 3})


def test_a_task_that_others_put_into_a_narrower_group_waits_for_that() -> None:
    with world(SHAPES[0]) as made:
        made.apply(["smt"], "2")
        made.kernel.stranger_does("slice", SLICE, (0, 1, 2))
        made.kernel.stranger_does("enter", SLICE, (301,))
        back = made.restore()
        assert back is not None
        found = {left.path: left.reason for left in back.left_alone}
        assert "control group 'user.slice'" in found["sched_setaffinity(301@100)"]
        assert "has only CPU 0-2" in found["sched_setaffinity(301@100)"]
        made.kernel.stranger_does("enter", "", (301,))
        assert made.restore() == RestoreResult((Restored("smt", "sched_setaffinity(301@100)", "0-3", "3"),), (), False)


@pytest.mark.parametrize("shape", [SHAPES[0], SHAPES[2]], ids=lambda one: one.name)
@pytest.mark.parametrize("words", [["isolation"], ["smt"], ["kernel-threads"], ["smt", "isolation", "kernel-threads"]])
def test_a_partition_of_others_that_stood_at_apply_and_is_gone_keeps_no_task_off(
    shape: Shape, words: list[str]
) -> None:
    with world(shape) as alone:
        for what in ("partition", "gone"):
            alone.kernel.stranger_does(what, OTHER, (1,))
        wanted = {task.name: task.mask for task in alone.kernel.tasks.values() if task.tid < 300}
    with world(shape) as made:
        assert made.kernel.stranger_does("partition", OTHER, (1,))
        made.apply(words, "2")
        assert made.kernel.stranger_does("gone", OTHER)
        back = made.restore()
        assert back is not None
        assert back.left_alone == ()
        assert {task.name: task.mask for task in made.kernel.tasks.values() if task.tid < 300} == wanted
        if made.kernel.new:
            assert made.kernel.tasks[302].mask == {0, 3}


def test_a_version_1_set_that_lost_a_cpu_to_others_narrows_no_task_afterwards() -> None:
    with world(SHAPES[3]) as made:
        before = made.kernel.snapshot()
        made.apply(["isolation"], "2")
        for what in ("off", "on"):
            assert made.kernel.stranger_does(what, "", (1,))
        made.restore()
        assert differences(before, made.kernel.snapshot()) == []


GOVERNED = [one for one in SHAPES if one.bound]


@pytest.mark.parametrize("shape", GOVERNED, ids=lambda one: one.name)
@pytest.mark.parametrize("first", [(), ("governor",), ("isolation",)], ids=["at once", "governor first", "set first"])
@pytest.mark.parametrize(
    "apart", [(("governor",), ("isolation",)), (("isolation",), ("governor",)), (("governor", "isolation"),)]
)
def test_a_governors_new_thread_stays_with_its_policy(
    shape: Shape, apart: tuple[tuple[str, ...], ...], first: tuple[str, ...]
) -> None:
    """It begins when its governor is given back, and kernels before 6.2 open it when a partition ends."""
    with world(shape) as made:
        before = made.kernel.snapshot()
        for words in apart:
            applied = made.apply([f"{w}=performance" if w == "governor" else w for w in words], "2")
            assert applied is not None
            assert applied.refused == ()
        if first:
            made.restore(first)
        back = made.restore()
        assert back is not None
        assert back.left_alone == ()
        assert made.active() == []
        assert differences(before, made.kernel.snapshot()) == []


@pytest.mark.parametrize("words", [("isolation",), ("hotplug", "isolation"), ("smt", "isolation")])
def test_a_users_mask_that_is_our_list_survives_a_killed_restore_and_a_cpu_of_others(words: tuple[str, ...]) -> None:
    with world(SHAPES[0]) as alone:
        for what in ("off", "on"):
            alone.kernel.stranger_does(what, "", (1,))
        wanted = alone.kernel.snapshot()
    for kill in range(2, 60, 6):
        with world(SHAPES[0]) as made:
            made.apply(words, "3")
            made.restore(kill_at=kill)
            made.kernel.stranger_does("off", "", (1,))
            made.restore()
            made.kernel.stranger_does("on", "", (1,))
            made.restore()
            made.restore()
            found = [line for line in differences(wanted, made.kernel.snapshot()) if line.startswith("task ")]
            assert found == [], kill


def test_a_mask_that_the_host_clamped_in_a_killed_restore_is_ours() -> None:
    with world(next(one for one in SHAPES if one.name == "6.1, one CPU offline")) as made:
        made.apply(("kernel-threads",), "1")
        for kill in range(12):
            made.restore(kill_at=kill)
            back = made.restore(("smt",))
            assert back is not None
            assert [left for left in back.left_alone if SOMEBODY in left.reason] == []
        back = made.restore()
        assert back is not None
        assert back.left_alone
        assert [left for left in back.left_alone if "CPU 5 is offline" not in left.reason] == []


@pytest.mark.parametrize("words", [("isolation",), ("smt", "isolation", "kernel-threads")])
@pytest.mark.parametrize("shape", [one for one in SHAPES if one.cgroup == 2], ids=lambda one: one.name)
def test_masks_of_tasks_in_slices_come_back(shape: Shape, words: tuple[str, ...]) -> None:
    """As under systemd, whose slices have no CPUs of their own: kernels before 6.2 overwrite the masks in them when the
    controller is handed down, and again when it is taken back."""
    with world(shape) as made:
        made.kernel.make_folder(f"{V2}/{SLICE}")
        for tid in (300, 301, 302):
            made.kernel.stranger_does("enter", SLICE, (tid,))
            made.kernel.set_affinity(tid, {300: made.kernel.possible, 301: {max(made.kernel.online)}, 302: {0}}[tid])
        made.kernel.show()
        before = made.kernel.snapshot()
        made.apply(words, "2")
        back = made.restore()
        assert back is not None
        assert [left for left in back.left_alone if "is offline" not in left.reason] == []
        made.kernel.threads_follow()
        if not shape.offline:
            assert differences(before, made.kernel.snapshot()) == []
