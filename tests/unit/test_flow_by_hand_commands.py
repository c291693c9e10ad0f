"""By-hand commands that the host shows as run: by a tunable, by an affinity, by a running program."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jitter_workshop.bench import lock
from jitter_workshop.course.loader import builtin_course, load_course
from jitter_workshop.flow.chapters import command_checks
from jitter_workshop.flow.chapters.command_checks import CommandFound
from jitter_workshop.flow.chapters.commands import HandCommands
from jitter_workshop.flow.chapters.lessoncheck import check_course
from jitter_workshop.flow.host_ops.recordings import recorded_host
from jitter_workshop.model.by_hand import HandCommand
from jitter_workshop.model.course import OPEN
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.presenter.course.chapter import Fold, command_list_lines, open_commands
from tests import hosttrees, livehost
from tests.fakes import FakeWorkshop, open_workshop

LESSON = "01-pages/lesson.toml"
WHY = 'why = "How often each CPU is asked for its counters."\n'
READS = f"{WHY}reads = true\n"


def with_check(course: Path, more: str) -> Path:
    file = course / LESSON
    text = file.read_text()
    assert READS in text
    file.write_text(text.replace(READS, f"{WHY}{more}\n", 1))
    return course


def opened(tree: Path, course: Path, monkeypatch: pytest.MonkeyPatch) -> FakeWorkshop:
    return livehost.open_live(tree, course, monkeypatch)


def a_process(tree: Path, pid: int, cpus: str, *line: str) -> None:
    """Write a process. ``pid``: above the largest that a kernel gives (4,194,304), so that it is never this test's own
    process, at which the workshop does not look."""
    hosttrees.write(tree, hosttrees.task(pid, "some", allowed=cpus))
    (tree / f"proc/{pid}/cmdline").write_bytes(b"".join(word.encode() + b"\0" for word in line))


def test_a_tunable_shows_that_its_command_was_run(tree: Path, course: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    workshop = opened(tree, with_check(course, 'check = "stat-interval=10"'), monkeypatch)
    commands = HandCommands(workshop.walk("pages"), lambda: 0.0, lambda: False)
    assert [one.state for one in commands.look()] == ["open"]
    (tree / "proc/sys/vm/stat_interval").write_text("11\n")
    (one,) = commands.look()
    assert one.state == "wrong"
    assert one.found == "/proc/sys/vm/stat_interval has the value '11', but the wanted value is '10'"
    (tree / "proc/sys/vm/stat_interval").write_text("10\n")
    assert [one.state for one in commands.listed()] == ["wrong"]
    assert [one.state for one in commands.look()] == ["done"]
    # It was done, whatever comes after it.
    (tree / "proc/sys/vm/stat_interval").write_text("1\n")
    assert [one.state for one in commands.look()] == ["done"]
    workshop.close()


@pytest.mark.parametrize(
    ("check_it", "path", "right", "other"),
    [
        ("stat-interval=10", "proc/sys/vm/stat_interval", "10\n", "1\n"),
        ("file:/etc/quiet.profile", "etc/quiet.profile", "thp\n", None),
        ("holds:/etc/quiet.profile=thp", "etc/quiet.profile", "thp\n", "isolation\n"),
    ],
)
def test_a_state_that_held_already_is_no_work_of_the_learner(
    tree: Path, course: Path, monkeypatch: pytest.MonkeyPatch, check_it: str, path: str, right: str, other: str | None
) -> None:
    hosttrees.write(tree, {path: right})
    workshop = opened(tree, with_check(course, f'check = "{check_it}"'), monkeypatch)
    commands = HandCommands(workshop.walk("pages"), lambda: 0.0, lambda: False)
    for _ in range(2):
        (one,) = commands.look()
        assert (one.state, one.found) == ("already", "")
    told = "\n".join(line.plain for line in command_list_lines([one], 80))
    assert "= already so" in told
    assert f"= {one.command}" in told
    # A learner who takes it back and makes it again has done it.
    if other is None:
        (tree / path).unlink()
    else:
        (tree / path).write_text(other)
    assert [one.state for one in commands.look()] == ["wrong" if check_it.startswith("holds") else "open"]
    (tree / path).write_text(right)
    assert [one.state for one in commands.look()] == ["done"]
    workshop.close()


def test_another_line_in_the_file_is_told(tree: Path, course: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As at the step apply: the old value is missing work, and any other value is wrong."""
    path = "etc/tuned/active_profile"
    hosttrees.write(tree, {path: "balanced\n"})
    workshop = opened(tree, with_check(course, f'check = "holds:/{path}=cpu-partitioning"'), monkeypatch)
    commands = HandCommands(workshop.walk("pages"), lambda: 0.0, lambda: False)
    for text, state in (("balanced\n", "open"), ("", "open"), ("cpu-partition\n", "wrong"), ("one\ntwo\n", "wrong")):
        (tree / path).write_text(text)
        (one,) = commands.look()
        assert one.state == state
        assert bool(one.found) == (state == "wrong")
    assert one.found == f"/{path} has 2 lines, but not the line 'cpu-partitioning'"
    lines = [line.plain for line in command_list_lines([one], 80)]
    assert any("✗ another value was found" in line for line in lines)
    assert any(line.startswith("    Found: ") for line in lines)
    workshop.close()


def test_a_shell_on_another_cpu_is_told(tree: Path, course: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    workshop = opened(tree, with_check(course, 'check = "affinity:{accumulator_cpu}"'), monkeypatch)
    walk = workshop.walk("pages")
    hot = walk.host.hot().cpus[-1]
    elsewhere = next(cpu for cpu in range(4) if cpu != hot)

    def a_task(name: str, allowed: str) -> None:
        hosttrees.write(tree, hosttrees.task(5_000_004, name, allowed=allowed, uid=os.getuid()))
        (tree / "proc/5000004/cmdline").write_bytes(name.encode() + b"\0")

    commands = HandCommands(walk, lambda: 0.0, lambda: False)
    for name, allowed, state in (
        ("bash", "0-3", "open"),
        ("bash", str(elsewhere), "wrong"),
        ("bash", "0-3", "open"),
        ("daemon", str(elsewhere), "open"),
        ("bash", str(hot), "done"),
        ("bash", str(elsewhere), "done"),
    ):
        a_task(name, allowed)
        (one,) = commands.look()
        assert one.state == state, (name, allowed)
        if state == "wrong":
            assert one.found == f"the shell 5000004 is bound to CPU {elsewhere}, and not to CPU {hot}"
    workshop.close()


@pytest.mark.parametrize(("owners", "state"), [((0,), "wrong"), ((0, 0), "open"), ((1,), "open"), ((0, 1), "wrong")])
def test_only_one_shell_of_the_learner_that_is_bound_elsewhere_is_told(
    tree: Path, course: Path, monkeypatch: pytest.MonkeyPatch, owners: tuple[int, ...], state: str
) -> None:
    """An isolation binds every shell, and another user's shell is not the learner's work. ``owners``: the difference of
    each shell's user id from the learner's."""
    workshop = opened(tree, with_check(course, 'check = "affinity:{accumulator_cpu}"'), monkeypatch)
    walk = workshop.walk("pages")
    elsewhere = next(cpu for cpu in range(4) if cpu != walk.host.hot().cpus[-1])
    commands = HandCommands(walk, lambda: 0.0, lambda: False)
    for allowed, expected in (("0-3", "open"), (str(elsewhere), state)):
        for n, owner in enumerate(owners):
            pid = 5_000_010 + n
            hosttrees.write(tree, hosttrees.task(pid, "bash", allowed=allowed, uid=os.getuid() + owner))
            (tree / f"proc/{pid}/cmdline").write_bytes(b"bash\0")
        assert [one.state for one in commands.look()] == [expected]
    workshop.close()


def test_with_sudo_the_shells_of_its_caller_are_the_learners(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SUDO_UID", "1234")
    monkeypatch.setattr(os, "getuid", lambda: 0)
    assert command_checks._learner() == {0, 1234}
    monkeypatch.setattr(os, "getuid", lambda: 1000)
    assert command_checks._learner() == {1000}


def test_a_command_that_was_done_stays_done_at_the_next_visit(
    tree: Path, course: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workshop = opened(tree, with_check(course, 'check = "holds:/etc/quiet.profile=thp"'), monkeypatch)
    walk = workshop.walk("pages")
    first = HandCommands(walk, lambda: 0.0, lambda: False)
    assert [one.state for one in first.look()] == ["open"]
    hosttrees.write(tree, {"etc/quiet.profile": "thp\n"})
    assert [one.state for one in first.look()] == ["done"]
    second = HandCommands(walk, lambda: 0.0, lambda: False)
    assert [one.state for one in second.listed()] == ["done"]
    assert [one.state for one in second.look()] == ["done"]
    # The work of a visit in which nothing was typed is not the learner's.
    assert [one.state for one in HandCommands(workshop.walk("pages"), lambda: 0.0, lambda: False).look()] == ["already"]
    workshop.close()


def test_a_new_affinity_shows_it_and_an_old_one_does_not(
    tree: Path, course: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workshop = opened(tree, with_check(course, 'check = "affinity:{accumulator_cpu}"'), monkeypatch)
    walk = workshop.walk("pages")
    hot = str(walk.host.hot().cpus[-1])
    a_process(tree, 5_000_001, hot, "an", "old", "one")
    commands = HandCommands(walk, lambda: 0.0, lambda: False)
    assert [one.state for one in commands.look()] == ["open"]
    a_process(tree, 5_000_002, "0-3", "a", "shell")
    assert [one.state for one in commands.look()] == ["open"]
    a_process(tree, 5_000_002, hot, "a", "shell")
    assert [one.state for one in commands.look()] == ["done"]
    workshop.close()


def test_a_running_program_shows_it(tree: Path, course: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    workshop = opened(tree, with_check(course, 'check = "running:measure --label half"'), monkeypatch)
    commands = HandCommands(workshop.walk("pages"), lambda: 0.0, lambda: False)
    assert [one.state for one in commands.look()] == ["open"]
    a_process(tree, 5_000_003, "0-3", "/usr/bin/python3", "jitter-workshop", "measure", "--label", "half")
    assert [one.state for one in commands.look()] == ["done"]
    workshop.close()


def test_a_run_is_looked_at_once_and_then_left_in_peace(
    tree: Path, course: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workshop = opened(tree, with_check(course, 'check = "stat-interval=10"'), monkeypatch)
    runs = [False, True, True, False]
    commands = HandCommands(workshop.walk("pages"), lambda: 0.0, lambda: runs.pop(0))
    looked: list[int] = []

    def look(checks: Sequence[str]) -> dict[str, CommandFound]:
        looked.append(len(runs))
        return dict.fromkeys(checks, CommandFound("open"))

    monkeypatch.setattr(commands._host_checks, "look", look)
    for _ in range(4):
        commands.look()
    assert looked == [3, 2, 0]
    workshop.close()


def test_a_slow_look_is_made_seldom(tree: Path, course: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading thousands of processes takes at most a tenth of the time."""
    workshop = opened(tree, with_check(course, 'check = "stat-interval=10"'), monkeypatch)
    clock = [100.0]
    commands = HandCommands(workshop.walk("pages"), lambda: clock[0], lambda: False)

    def slow(checks: Sequence[str]) -> dict[str, CommandFound]:
        clock[0] += 0.5
        return dict.fromkeys(checks, CommandFound("open"))

    monkeypatch.setattr(commands._host_checks, "look", slow)
    began = clock[0]
    for _ in range(20):
        commands.look()
        clock[0] += 1.0
    spent = clock[0] - began - 20
    assert 0 < spent <= 20 / 8
    workshop.close()


def test_a_run_on_this_host_is_seen_without_waking_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name = f"jitter-test-{os.getpid()}"
    monkeypatch.setenv(lock.TURN_VARIABLE, name)
    assert not lock.run_in_progress()
    with lock.host_turn():
        assert lock.run_in_progress()
    assert not lock.run_in_progress()
    assert not lock.run_in_progress(str(tmp_path / "missing"))


def test_a_command_that_reads_has_no_check(tree: Path, course: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    workshop = opened(tree, with_check(course, "reads = true"), monkeypatch)
    commands = HandCommands(workshop.walk("pages"), lambda: 0.0, lambda: False)
    assert not commands.checks_any
    assert [one.state for one in commands.look()] == ["reads"]
    workshop.close()


@pytest.mark.parametrize(
    ("more", "named"),
    [
        ('check = "stat-interval"\nreads = true', "only reads"),
        ('check = "stat-intervall"', "stat-interval"),
        ('check = "affinty:2"', "affinity"),
        ('check = "running:"', "running"),
        ('check = "affinity:{cpuss}"', "cpus"),
        ('check = "holds:/etc/tuned/active_profile"', "holds:PATH=LINE"),
        ('check = "holds:/etc/tuned/active_profile="', "holds:PATH=LINE"),
        ('check = "holds:/etc/quiet.profile=thp\\n\\nisolation"', "holds:PATH=LINE"),
        ('check = "file:/etc/one\\n/etc/two"', "more than one line"),
        ('check = "gone:"', "gone:…"),
        ('reads = true\nunchecked = "No file shows it."', "unchecked"),
        ("", "unchecked"),
    ],
)
def test_a_wrong_check_is_found(course: Path, more: str, named: str) -> None:
    with_check(course, more)
    found = [one.message for one in check_course(course).problems if "check" in one.message or named in one.message]
    assert len(found) == 1
    assert named in found[0]


def test_a_value_in_effect_does_not_show_a_file(course: Path) -> None:
    file = with_check(course, 'check = "stat-interval"') / LESSON
    text = file.read_text()
    reads = "grep -H . /proc/sys/vm/stat_interval # {cpus}"
    assert reads in text
    file.write_text(text.replace(reads, "echo vm.stat_interval=10 | sudo tee /etc/sysctl.d/a.conf"))
    found = [one.message for one in check_course(course).problems if "below /etc" in one.message]
    assert len(found) == 1


def test_a_file_shows_it(tree: Path, course: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    workshop = opened(tree, with_check(course, 'check = "file:/etc/quiet.profile"'), monkeypatch)
    commands = HandCommands(workshop.walk("pages"), lambda: 0.0, lambda: False)
    assert [one.state for one in commands.look()] == ["open"]
    hosttrees.write(tree, {"etc/quiet.profile": "thp\n"})
    assert [one.state for one in commands.look()] == ["done"]
    workshop.close()


def test_a_removed_folder_shows_it_only_if_it_was_there(
    tree: Path, course: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workshop = opened(tree, with_check(course, 'check = "gone:/sys/fs/resctrl/hot"'), monkeypatch)
    commands = HandCommands(workshop.walk("pages"), lambda: 0.0, lambda: False)
    assert [one.state for one in commands.look()] == ["open"]
    (tree / "sys/fs/resctrl/hot").mkdir(parents=True)
    assert [one.state for one in commands.look()] == ["open"]
    (tree / "sys/fs/resctrl/hot").rmdir()
    assert [one.state for one in commands.look()] == ["done"]
    workshop.close()


def test_a_line_in_a_file_shows_it(tree: Path, course: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The whole line has to be there, with the housekeeping CPUs of this host."""
    check_it = 'check = "holds:/sys/fs/cgroup/user.slice/cpuset.cpus={housekeeping}"'
    workshop = opened(tree, with_check(course, check_it), monkeypatch)
    walk = workshop.walk("pages")
    left = walk.host.values_by_hand()["housekeeping"]
    assert CpuSet.parse_list(left)
    assert not CpuSet.parse_list(left) & walk.host.hot()
    commands = HandCommands(walk, lambda: 0.0, lambda: False)
    for text, state in (("", "open"), (f"{left},77", "wrong"), (left, "done")):
        hosttrees.write(tree, {"sys/fs/cgroup/user.slice/cpuset.cpus": f"{text}\n"})
        assert [one.state for one in commands.look()] == [state]
    workshop.close()


def test_a_file_has_each_line_of_a_check(tree: Path, course: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    workshop = opened(
        tree, with_check(course, 'check = """holds:/etc/quiet.profile=isolation\nthp=madvise"""'), monkeypatch
    )
    commands = HandCommands(workshop.walk("pages"), lambda: 0.0, lambda: False)
    for text, state in (("", "open"), ("isolation\n", "wrong"), ("thp=madvise\n# more\n  isolation\n", "done")):
        hosttrees.write(tree, {"etc/quiet.profile": text})
        assert [one.state for one in commands.look()] == [state]
    workshop.close()


def test_a_command_that_nothing_can_show_says_why(tree: Path, course: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    workshop = opened(tree, with_check(course, 'unchecked = "The kernel keeps no record."'), monkeypatch)
    assert [
        one.message for one in check_course(course).problems if one.file == LESSON and "command" in one.message
    ] == []
    (one,) = HandCommands(workshop.walk("pages"), lambda: 0.0, lambda: False).look()
    assert (one.state, one.unchecked) == ("", "The kernel keeps no record.")
    told = " ".join(line.plain.strip() for line in command_list_lines([one], 80))
    assert "Not checked: The kernel keeps no record." in told
    workshop.close()


def test_every_built_in_command_reads_or_is_checked() -> None:
    for chapter in load_course(builtin_course()).chapters:
        assert [one.command for one in chapter.by_hand if not one.reads and not one.check] == [], chapter.id


def test_checks_of_a_chapter_differ() -> None:
    """One run must not show two commands as run."""
    for chapter in load_course(builtin_course()).chapters:
        checks = [one.check for one in chapter.by_hand if one.check]
        assert len(set(checks)) == len(checks), chapter.id
        for one in chapter.by_hand:
            words = one.check.removeprefix("running:")
            assert not one.check.startswith("running:") or words in one.command
            form, _, path = one.check.partition(":")
            # 'systemctl enable' makes a link that has the name of the unit.
            named = path if "systemctl enable" not in one.command else Path(path).name
            assert form not in ("file", "gone") or not path.startswith("/etc") or named in one.command


def test_make_it_last_is_not_done_by_a_value_in_effect() -> None:
    """A value of the running kernel does not last. So no check of this chapter is the state of a tunable."""
    last = load_course(builtin_course()).chapter("make-it-last")
    assert last is not None
    checks = [one.check for one in last.by_hand if one.check]
    assert len(checks) == 10
    assert [one for one in checks if ":" not in one] == []


@given(st.integers(0, 12), st.integers(0, 5))
def test_at_most_three_commands_are_open_and_each_comes_up(count: int, turns: int) -> None:
    commands = [HandCommand(f"command{n:02}", "why") for n in range(count)]
    seen: set[str] = set()
    first = 0
    for _ in range(max(turns, (count + OPEN - 1) // OPEN)):
        text = "\n".join(line.plain for line in command_list_lines(commands, 80, Fold(first, "f")))
        shown = {one.command for one in commands if one.command in text}
        assert len(shown) <= OPEN
        assert ("folded" in text) == (count > OPEN)
        seen |= shown
        first = first + OPEN if first + OPEN < count else 0
    assert seen == {one.command for one in commands}


@given(st.integers(1, 14), st.integers(0, 13), st.integers(0, 60))
def test_more_commands_are_open_if_they_have_room(count: int, first: int, rows: int) -> None:
    commands = [HandCommand(f"command{n:02}", "why") for n in range(count)]
    fold = Fold(first % count, "f", rows=rows)
    shown = open_commands(commands, 80, fold)
    lines = command_list_lines(commands, 80, fold)
    assert [n for n in range(count) if any(f"command{n:02}" in line.plain for line in lines)] == list(shown)
    assert shown.start <= fold.first < shown.stop
    assert len(shown) >= min(OPEN, count - fold.first)
    more = len(shown) > min(OPEN, count - fold.first)
    assert not more or len(lines) <= rows
    everything = 3 * count
    assert (len(shown) == count) == (rows >= everything or (count <= OPEN and fold.first == 0))


def test_commands_keep_their_numbers_when_others_are_shown() -> None:
    """The lesson of isolation speaks of the third command."""
    commands = [HandCommand(f"command{n}", "why") for n in range(1, 13)]
    for first, number in ((0, 3), (3, 4), (9, 12)):
        lines = [line.plain for line in command_list_lines(commands, 80, Fold(first, "f"))]
        assert f"{number:<2}$ command{number}" in lines
    assert any(
        line.startswith("$ only")
        for line in (one.plain for one in command_list_lines([HandCommand("only", "why")], 80))
    )


def test_the_marks_are_explained_above_the_commands() -> None:
    """Below the last command the legend would read as this command's own mark."""
    checked = HandCommand("first", "why", "done")
    lines = [line.plain for line in command_list_lines([checked, HandCommand("last", "why")], 80)]
    legend = next(n for n, line in enumerate(lines) if line.startswith("Marks: ▸"))
    assert legend < next(n for n, line in enumerate(lines) if "first" in line)
    assert not any(
        line.startswith("Marks:") for line in (one.plain for one in command_list_lines([HandCommand("a", "why")], 80))
    )


def test_commands_name_the_cpus_of_a_recording(tmp_path: Path) -> None:
    """A learner without rights sees CPUs that exist on the host that is shown, and no placeholder."""
    workshop = open_workshop(recorded_host("lab-stock", None).root, course=builtin_course())
    for chapter in workshop.course.chapters:
        walk = workshop.walk(chapter.id)
        for one in HandCommands(walk).look():
            unfilled = r"\b(CPUS|PRODUCER_CPU|ACCUMULATOR_CPU|HOUSEKEEPING)\b|\{([a-z_]*cpu|hous|l3|resctrl)"
            assert not re.search(unfilled, f"{one.command} {one.why}"), chapter.id
            assert one.state in ("reads", "")
    workshop.close()
