"""Test the lines about a plan and its settings: they keep their width, show every write, and clean hostile names."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from jitter_workshop.model.change import Change, LeftAlone, Plan, Restored, RestoreResult, Skipped, When
from jitter_workshop.model.proof import PLACEMENT
from jitter_workshop.model.walk import PlanView, SettingChange
from jitter_workshop.presenter.course.chapter import settings_compared
from jitter_workshop.presenter.host.changes import restored_lines, with_values
from jitter_workshop.presenter.host.plan import (
    has_equal_writes,
    of_host,
    plain_plan_lines,
    plan_step_lines,
    shown_value,
    value_told,
)
from jitter_workshop.presenter.text.lines import Lines, written
from jitter_workshop.tuning.tunables.isolation import Isolation
from tests.madeplans import change, isolation

WORDS = st.text(max_size=60)
WIDTHS = st.integers(24, 120)


def plain(lines: Lines) -> list[str]:
    return [line.plain.rstrip() for line in lines]


def plan_lines(plan: PlanView, width: int) -> list[str]:
    return plain(plain_plan_lines(plan, width))


def told_restored(result: RestoreResult, width: int) -> list[str]:
    return plain(restored_lines(result, width))


def test_a_plan_that_binds_threads_counts_system_calls() -> None:
    call = Change(1, PLACEMENT, "sched_setaffinity(producer)", "any (0-1)", "0", "run", "low", "")
    view = PlanView((call, dataclasses.replace(call, n=2)), 0, "No file is written.")
    shown = "\n".join(line.plain for line in plan_step_lines(view, (), False, 76))
    assert "2 system calls" in shown
    assert "write" not in shown.replace("No file is written", "").replace("WHAT WOULD BE DONE", "")
    assert "2 system calls." in "\n".join(line.plain for line in plain_plan_lines(view, 76))


@given(WORDS, WORDS, WORDS, WIDTHS)
def test_no_plan_is_wider_than_the_terminal_or_steers_it(path: str, before: str, after: str, width: int) -> None:
    plan = PlanView((change(path=path, before=before, after=after),), 1, "All.", left_out=(f"{path}.",))
    for line in plan_lines(plan, width):
        assert len(line) <= width
        assert line.isprintable()


@pytest.mark.parametrize("width", [24, 40, 80, 100])
def test_every_write_is_in_the_plan_with_both_values(width: int) -> None:
    changes = tuple(change(n, path=f"/sys/devices/system/cpu/cpu{n}/cpufreq/scaling_governor") for n in range(1, 13))
    text = "".join("".join(plan_lines(PlanView(changes, 12, "That is all."), width)).split())
    for one in changes:
        assert f"{one.n}{one.path}{one.before}→{one.after}" in text
    assert "12writesto12filesofthehost." in text
    assert text.endswith("Thatisall.")


def test_many_tasks_are_one_line_nearest_to_the_question() -> None:
    lines = plan_lines(PlanView(isolation(31), 3, "That is all."), 120)
    assert lines[-4:] == [
        "34 writes to 3 files of the host.",
        "  isolation: 34 writes; 31 tasks leave the hot CPUs; 1 task keeps its own limit.",
        "",
        "That is all.",
    ]
    few = plan_lines(PlanView(isolation(3), 3, "That is all."), 120)
    assert few[-3:] == ["6 writes to 3 files of the host.", "", "That is all."]


def test_a_mask_is_shown_with_its_cpus_and_a_task_with_its_name() -> None:
    mask = change(1, tunable="workqueue-mask", path="/sys/x/cpumask", kind="workqueue-mask", before="3", after="1")
    task = change(
        2, tunable="kernel-threads", path="sched_setaffinity(2@24)", kind="affinity", before="0-1", after="0",
        why="The kernel thread 'kthreadd'.",
    )  # fmt: skip
    lines = plan_lines(PlanView((mask, task), 1, "All."), 100)
    assert any("3 (CPUs 0-1) → 1 (CPU 0)" in line for line in lines)
    assert any("sched_setaffinity(2@24)" in line and "'kthreadd'" in line for line in lines)
    assert value_told("00000000,00000000", "cpu-mask") == "00000000,00000000 (no CPU)"
    assert value_told("3", "value") == "3"
    assert value_told("\x1b[2J", "cpu-mask") == shown_value("\x1b[2J")


def test_a_reason_stands_once_and_a_value_that_is_written_again_stays() -> None:
    why = Isolation.why
    file = change(1, tunable="isolation", path="/sys/fs/cgroup/cpuset/a", why=why)
    thread = change(
        2, tunable="isolation", path="sched_setaffinity(5@9)", kind="irq-thread", before="0", after="0",
        why="Making the cpuset overwrites the affinity of 'irq/24'.",
    )  # fmt: skip
    lines = plan_lines(PlanView((file, thread, dataclasses.replace(file, n=3)), 2, "All."), 120)
    shown = " ".join(" ".join(lines).split())
    assert shown.count(why) == 1
    assert "sched_setaffinity(5@9) written again: CPU 0 Making the cpuset overwrites the affinity of 'irq/24'." in shown
    assert "0 → 0" not in shown
    assert shown.count("1 → 0") == 2


def test_a_plan_of_a_few_dozen_writes_is_one_list_on_the_screen() -> None:
    view = PlanView(isolation(16), 3, "All.")
    lines = [line.plain for line in plan_step_lines(view, (), True, 74)]
    assert not [line for line in lines if "more" in line or "listed below" in line]
    numbers = [int(line.split()[0]) for line in lines if line[:6].strip().isdigit()]
    assert numbers == [one.n for one in view.changes]


@pytest.mark.parametrize("width", [40, 74])
def test_on_the_screen_the_first_writes_are_in_view_and_every_one_stands_below(width: int) -> None:
    changes = (
        *isolation(40),
        *(
            change(
                n,
                tunable="kernel-threads",
                path=f"sched_setaffinity({n}@7)",
                kind="affinity",
                why=f"The kernel thread 'k{n}'.",
            )
            for n in range(50, 60)
        ),
    )
    lines = [line.plain for line in plan_step_lines(PlanView(changes, 3, "All."), (), True, width)]
    assert max(map(len, lines)) <= width
    first = " ".join(" ".join(lines[:21]).split())
    assert "53 writes in 3 files. All of them are listed below." in first
    for said in ("43 writes", "/sys/fs/cgroup/cpuset/2", "/sys/fs/cgroup/cpuset/3", "40 tasks leave the hot CPUs"):
        assert said in first
    assert "leaves the hot CPUs" not in first
    below = lines.index("EVERY WRITE, IN ITS ORDER")
    assert "+ 10 tasks get other CPUs, including these" in " ".join(" ".join(lines[:below]).split())
    for one in changes:
        assert any(one.path in line for line in lines[below:]), one
        assert one.why in " ".join(" ".join(lines[below:]).split())
    short = [line.plain for line in plan_step_lines(PlanView(isolation(3), 3, "All."), (), True, width)]
    assert "EVERY WRITE, IN ITS ORDER" not in short
    assert any("in this order." in line for line in short)


@pytest.mark.parametrize("width", [40, 78, 120])
def test_equal_writes_to_tasks_are_one_line_until_each_is_asked_for(width: int) -> None:
    many, few = isolation(60), isolation(5)
    view = PlanView(many, 3, "All.")
    folded = [line.plain for line in plan_step_lines(view, (), True, width, "+")]
    assert max(map(len, folded)) <= width
    told = " ".join(" ".join(folded).split())
    assert "63 writes in 3 files, in this order." in told
    assert "4–63 60 tasks leave the hot CPUs: 1 → 0 (+ shows each)" in told
    assert "EVERY WRITE, IN ITS ORDER" not in told
    assert "cgroup(" not in told
    assert "sched_setaffinity(9@9)" in told
    each = " ".join(line.plain for line in plan_step_lines(view, (), True, width))
    assert all(one.path in each for one in many)
    assert has_equal_writes(many)
    assert not has_equal_writes(few)
    short = " ".join(line.plain for line in plan_step_lines(PlanView(few, 3, "All."), (), True, width, "+"))
    assert "shows each" not in short
    assert all(one.path in short for one in few)


def test_writes_of_other_values_are_never_one_line() -> None:
    files = tuple(change(n, after=str(n)) for n in range(1, 20))
    other_kinds = tuple(change(n, path=f"/sys/{'abcdefghij'[n]}/x") for n in range(10))
    tasks = tuple(change(n, kind="task-cgroup", after=str(n)) for n in range(1, 20))
    assert not has_equal_writes((*files, *other_kinds, *tasks))
    one_more = tuple(change(n, kind="task-cgroup", before=str(n % 2), path=f"cgroup({n}@1)") for n in range(30, 40))
    view = PlanView((*files, *one_more), 9, "")
    lines = " ".join(" ".join(line.plain for line in plan_step_lines(view, (), True, 100, "+")).split())
    assert lines.count("30–39 10 tasks leave the hot CPUs: several → 0 (+ shows each)") == 1
    assert all(f" {one.path} " in lines for one in files)


def _interrupts(count: int, **fields: str) -> tuple[Change, ...]:
    made = {"tunable": "irq-affinity", "kind": "cpu-list", "before": "0-1", "after": "0", **fields}
    return tuple(change(n, **made, path=f"/proc/irq/{n + 23}/smp_affinity_list") for n in range(1, count + 1))


@pytest.mark.parametrize("width", [40, 78, 120])
def test_equal_writes_to_one_kind_of_file_are_one_line_from_seven_on(width: int) -> None:
    many, few = _interrupts(7), _interrupts(6)
    folded = [line.plain for line in plan_step_lines(PlanView(many, 7, "All."), (), True, width, "+")]
    assert max(map(len, folded)) <= width
    told = " ".join(" ".join(folded).split())
    ends = "/proc/irq/24/smp_affinity_list to /proc/irq/30/smp_affinity_list"
    assert f"1–7 7 files, {ends}: CPUs 0-1 → CPU 0 (+ shows each)" in told
    assert "/proc/irq/25" not in told
    each = " ".join(line.plain for line in plan_step_lines(PlanView(many, 7, "All."), (), True, width))
    assert all(one.path in each for one in many)
    assert has_equal_writes(many)
    assert not has_equal_writes(few)


def test_a_write_that_only_keeps_a_value_is_in_no_group_of_changes() -> None:
    kept = tuple(dataclasses.replace(one, before="0") for one in _interrupts(7))
    view = PlanView((*_interrupts(7), *kept), 7, "")
    lines = " ".join(" ".join(line.plain for line in plan_step_lines(view, (), True, 100, "+")).split())
    assert lines.count("CPUs 0-1 → CPU 0 (+ shows each)") == 1
    assert lines.count("written again: CPU 0 (+ shows each)") == 1


def test_the_command_after_the_writes_is_said_once() -> None:
    changes = tuple(change(n, then="update-grub") for n in (1, 2))
    lines = plan_lines(PlanView(changes, 1, ""), 80)
    assert lines.count("Then, once: update-grub") == 1
    assert "2 writes to 1 file of the host." in lines


def test_an_empty_plan_is_its_sentence() -> None:
    assert plan_lines(PlanView((), 0, "No write, and why."), 80) == ["No write, and why."]


def test_restored_settings_are_one_line_and_each_other_one_is_a_line() -> None:
    restored = tuple(Restored(ident, f"/sys/{n}", "1", "0") for n, ident in enumerate(("thp", "ksm", "thp")))
    left = (LeftAlone("ksm", "/sys/b", "1", "7", "somebody else changed it"), LeftAlone("ksm", "/c", "1", None, "gone"))
    lines = told_restored(RestoreResult(restored, left, True), 100)
    assert lines == [
        "Restored: 2 settings, 3 writes (thp, ksm).",
        "Left alone: /sys/b: somebody else changed it (the value is now 7).",
        "Left alone: /c: gone.",
        "Some of the changes take effect at the next boot.",
    ]
    assert told_restored(RestoreResult(restored[:1], (), False), 100) == ["Restored: 1 setting, 1 write (thp)."]
    assert told_restored(RestoreResult((), (), False), 100) == []


@given(WORDS, WORDS, WIDTHS)
def test_foreign_values_are_made_fit_for_the_terminal(path: str, found: str, width: int) -> None:
    result = RestoreResult((), (LeftAlone("ksm", path, "1", found, path),), False)
    compared = [SettingChange(path, found, path, False)]
    for line in [*told_restored(result, width), *[line[:width] for line in plain(settings_compared(compared, width))]]:
        assert cell_len(line) <= width
        assert line.isprintable()


def test_applied_settings_are_named_with_their_values() -> None:
    standing = ({"id": "governor", "value": "performance"}, {"id": "thp", "value": ""}, {"id": "x", "value": "\x1b[2J"})
    assert with_values(standing) == "governor=performance, thp, x= [2J"


def write(n: int, path: str, before: str, after: str, when: When = "runtime", then: str = "") -> Change:
    return Change(n, "governor", path, before, after, when, "low", "Because.", then=then)


def of_changes(*changes: Change, skipped: tuple[Skipped, ...] = ()) -> Plan:
    return Plan("a boot", (1,), changes, skipped)


@pytest.mark.parametrize("width", [60, 80, 160])
def test_every_write_is_shown_whole(width: int) -> None:
    long = ",".join(str(n) for n in range(0, 400, 2))
    path = "/sys/devices/pci0000:00/0000:00:02.0/0000:01:00.0/net/eth0/queues/rx-0/rps_cpus"
    made = of_changes(write(1, path, long, "0"), skipped=(Skipped("epp", "not here: a guest has none"),))
    text = written(of_host(made, width, "asked"))
    assert max(len(line) for line in text.split("\n")) <= width
    together = "".join(text.split())
    assert path + long + "→0" in together
    assert "epp:nothere" in together
    assert text.count("CPU governor") == 1


def test_an_empty_plan_and_the_next_steps_of_a_plan_are_told() -> None:
    assert written(of_host(of_changes(), 80)).startswith("Nothing would be written.")
    boot = write(1, "/etc/x", "", "a", when="boot", then="update-grub")
    text = written(of_host(of_changes(boot), 80))
    assert "update-grub" in text
    assert "next boot" in text
    assert "(empty) → a" in text


def test_all_of_a_plan_or_a_part_waits_for_the_boot() -> None:
    boot = write(1, "/etc/x", "", "a", when="boot")
    assert "\nAll of the plan takes effect only at the next boot.\n" in written(of_host(of_changes(boot), 80))
    both = written(of_host(of_changes(boot, write(2, "/sys/number", "1", "2")), 80))
    assert "\nA part of the plan takes effect only at the next boot.\n" in both


def test_names_in_a_plan_do_not_steer_the_terminal() -> None:
    text = written(of_host(of_changes(write(1, "/sys/\x1b[31mx", "a\x07", "b\u202e")), 80))
    assert all(c == "\n" or c.isprintable() for c in text)


def test_the_number_of_every_write_has_one_colour_however_long_the_write_is() -> None:
    writes = (change(1), change(75, path="/sys/fs/cgroup/cpuset/a/long/name/cpuset.sched_load_balance"))
    lines = of_host(Plan(None, (1,), writes), 40)
    numbered = [line for line in lines if line.plain[:6].strip().isdigit()]
    assert [line.plain[:6] for line in numbered] == ["   1  ", "  75  "]
    for line in numbered:
        assert [span.style for span in line.spans if span.start < 6] == ["dim"]
