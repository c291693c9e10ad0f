"""Scenarios without a machine: what is found of each kind of requirement, the commands inside, what was solved."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jitter_workshop.course.scenarios import load_scenarios
from jitter_workshop.errors import SessionError
from jitter_workshop.flow.scenarios import checking, playing
from jitter_workshop.flow.scenarios.checking import Counts, check_requirements, figures_between
from jitter_workshop.flow.scenarios.playing import PlantedScenario, Playing, as_state, solved_in
from jitter_workshop.host.cpu.stat import CpuTimes
from jitter_workshop.host.irq.interrupts import parse_counters
from jitter_workshop.host.root import HostRoot
from jitter_workshop.model.scenario import Outcome, Requirement, Scenario, with_drawn_values
from jitter_workshop.practice.qemu import MachineError, PowerLost
from jitter_workshop.presenter.course import scenario as words

CROWD = load_scenarios()["crowd"]
STAT = (
    "{pid} ({name}) S 1 1 1 0 -1 {flags} 0 0 0 0 0 0 0 0 20 0 1 0 77 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 17 {cpu} 0 0 0 0 0"
)


def task(root: Path, pid: int, name: str, allowed: str) -> None:
    place = root / "proc" / str(pid)
    place.mkdir(parents=True)
    (place / "stat").write_text(STAT.format(pid=pid, name=name, flags=0, cpu=0) + "\n")
    (place / "status").write_text(f"Name:\t{name}\nCpus_allowed_list:\t{allowed}\n")


def only(requirement: Requirement, seconds: float = 0.0) -> Scenario:
    return Scenario("x", "X", "bare", 1, "t", ("h",), "l", {}, "", "true", (requirement,), seconds)


def found(root: Path, requirement: Requirement) -> Outcome:
    return check_requirements(HostRoot(root), only(requirement), {})[0]


@pytest.mark.parametrize(("text", "met"), [("1\n", True), ("2", True), ("12", False), ("", False)])
def test_a_file_is_one_of_the_wanted_texts(tmp_path: Path, text: str, met: bool) -> None:
    (tmp_path / "sys").mkdir()
    (tmp_path / "sys/one").write_text(text)
    assert found(tmp_path, Requirement("s", "file", "/sys/one", wanted="1|2")).met is met


def test_a_file_that_is_missing_is_not_met(tmp_path: Path) -> None:
    outcome = found(tmp_path, Requirement("s", "file", "/sys/none", wanted="1"))
    assert (outcome.met, "/sys/none" in outcome.found) == (False, True)


def test_a_task_must_run_and_keep_off(tmp_path: Path) -> None:
    task(tmp_path, 10, "batch", "0-3")
    task(tmp_path, 11, "batch", "0-1")
    task(tmp_path, 12, "other", "2")
    assert found(tmp_path, Requirement("s", "task", "batch", off="2")) == Outcome("s", False, "10 may use 0-3")
    assert found(tmp_path, Requirement("s", "task", "batch", off="4")) == Outcome("s", True, "2 run")
    assert found(tmp_path, Requirement("s", "task", "batch")).met
    assert found(tmp_path, Requirement("s", "task", "gone", off="4")) == Outcome("s", False, "no task has this name")


@pytest.mark.parametrize(
    ("program", "met", "said"),
    [
        ('[ "$CPU" = 2 ]', True, "yes"),
        ('echo "CPU $CPU"; false', False, "CPU 2"),
        ("printf '\\033[31mred'", True, "red"),
        ("exit 3", False, "no"),
    ],
)
def test_a_command_tells_its_result(monkeypatch: pytest.MonkeyPatch, program: str, met: bool, said: str) -> None:
    monkeypatch.setattr(checking, "PRELUDE", "")
    [outcome] = check_requirements(HostRoot(), only(Requirement("s", "command", program)), {"cpu": "2"})
    assert outcome.met is met
    assert said in outcome.found
    assert outcome.found.isprintable()


HEADER = "           CPU0       CPU1\n"


def reading(at: float, loc: int, irq: int, timer: int, busy: int, idle: int) -> Counts:
    rows = (
        f" LOC: 0 {loc} Local timer interrupts",
        f"  9: 5 {irq} IO-APIC 9-edge ttyS0",
        f" 11: 0 {timer} GICv3 27 Level arch_timer",
        f" 12: 0 {loc + timer} GICv3 23 Level     arm-pmu",
    )
    text = HEADER + "\n".join(rows) + "\n"
    softirqs = parse_counters(HEADER + f"TIMER: 0 {loc}\nSCHED: 0 {irq}\n")
    return Counts(at, parse_counters(text), softirqs, {1: CpuTimes(user=busy, idle=idle)})


small = st.integers(0, 10**6)


@given(small, small, small, small, small, st.floats(0.1, 100))
def test_figures_are_growth_by_time(loc: int, irq: int, timer: int, busy: int, idle: int, seconds: float) -> None:
    before = reading(5.0, 100, 100, 100, 100, 100)
    after = reading(5.0 + seconds, 100 + loc, 100 + irq, 100 + timer, 100 + busy, 100 + idle)
    figures = figures_between(before, after, 1)
    assert figures["ticks"] == pytest.approx((loc + timer) / seconds)
    assert figures["interrupts"] == pytest.approx(irq / seconds)
    assert figures["softirqs"] == pytest.approx((loc + irq) / seconds)
    assert figures["busy"] == pytest.approx(100 * busy / (busy + idle) if busy + idle else 0)
    assert figures_between(before, after, 0) == {}
    assert figures_between(before, before, 1) == {}


def test_a_figure_has_both_limits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    readings = iter([reading(0, 0, 0, 0, 0, 0), reading(2, 20, 0, 0, 1, 1)] * 3)
    monkeypatch.setattr(checking, "read_counts", lambda _root: next(readings))

    def met(low: float | None, high: float | None) -> bool:
        return found(tmp_path, Requirement("s", "figure", "ticks", cpu="1", at_least=low, at_most=high)).met

    assert [met(10, 10), met(10.1, None), met(None, 9.9)] == [True, False, False]


def test_a_cpu_that_is_not_online_has_no_figure(tmp_path: Path) -> None:
    outcome = found(tmp_path, Requirement("s", "figure", "ticks", cpu="7", at_most=5))
    assert outcome == Outcome("s", False, "CPU 7 is not online")


def inside(tmp_path: Path, seed: int = 3) -> Path:
    scenario, values = with_drawn_values(CROWD, seed)
    place = tmp_path / "scenario.json"
    place.write_text(json.dumps(as_state(scenario, values, seed)))
    return place


def test_the_machine_gets_the_scenario_without_its_solution(tmp_path: Path) -> None:
    place = inside(tmp_path)
    here = PlantedScenario.open(str(place))
    assert here.scenario.requirements == with_drawn_values(CROWD, 3)[0].requirements
    assert here.scenario.solution == ""
    assert CROWD.solution not in place.read_text()


def test_hints_come_one_after_another_and_the_last_stays(tmp_path: Path) -> None:
    place = str(inside(tmp_path))
    told = [PlantedScenario.open(place).next_hint(place) for _ in range(len(CROWD.hints) + 2)]
    assert told[: len(CROWD.hints)] == list(with_drawn_values(CROWD, 3)[0].hints)
    assert set(told[len(CROWD.hints) :]) == {told[-1]}
    here = PlantedScenario.open(place)
    assert here.hints == len(CROWD.hints)
    here.note_solved(tmp_path)
    [solved] = solved_in(tmp_path)
    assert (solved.scenario, solved.seed, solved.hints) == ("crowd", 3, len(CROWD.hints))


@pytest.mark.parametrize(
    "text", ["", "{}", "[1]", '{"scenario": 5}', '{"scenario": {"id": "x"}, "values": {}, "seed": 1}']
)
def test_a_host_without_a_scenario_says_so(tmp_path: Path, text: str) -> None:
    place = tmp_path / "scenario.json"
    if text:
        place.write_text(text)
    with pytest.raises(SessionError, match="this machine has no scenario"):
        PlantedScenario.open(str(place))


anything: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["scenario", "seed", "at", "hints"]), inner)
    ),
    max_leaves=8,
)


@given(anything)
def test_the_file_of_the_machine_is_read_strictly(tmp_path_factory: pytest.TempPathFactory, said: Any) -> None:
    folder = tmp_path_factory.mktemp("kept")
    (folder / playing.SOLVED).write_text(json.dumps({"solved": said}))
    assert all(isinstance(one.scenario, str) and isinstance(one.seed, int) for one in solved_in(folder))


class Machine:
    """A machine that fails to boot with ``bad``, and takes all else."""

    python = "python3"

    def __init__(self) -> None:
        self.options = type("O", (), {"append": "old"})()
        self.booted: list[str] = []
        self.ran: list[str] = []

    def boot(self, append: str) -> None:
        self.booted.append(append)
        self.options.append = append
        if append == "bad":
            raise PowerLost("panic")

    def console(self) -> str:
        return "line\nKernel panic - not syncing"

    def run(self, argv: list[str], **_: Any) -> Any:
        self.ran.append(argv[2])
        return type("Done", (), {"code": 0, "stdout": "no json", "stderr": ""})()


def playing_in(tmp_path: Path, machine: Machine) -> Playing:
    return Playing(machine, *with_drawn_values(CROWD, 1), 1, tmp_path)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("left", "booted"),
    [
        (None, []),
        (b"nohz_full=3\n", ["nohz_full=3"]),
        (b"\n", [""]),
        (b"bad", ["bad", "old"]),
        (b"x" * 501, []),
        (b"a\x1b[2Jb", []),
        (b"a\nb", []),
    ],
)
def test_the_machine_boots_with_the_parameters_of_the_learner(
    tmp_path: Path, left: bytes | None, booted: list[str]
) -> None:
    machine, told = Machine(), list[str]()
    if left is not None:
        (tmp_path / playing.BOOT).write_bytes(left)
    assert playing_in(tmp_path, machine).boot_anew(told.append) is bool(booted)
    assert machine.booted == booted
    assert not (tmp_path / playing.BOOT).exists()
    assert ("Kernel panic" in " ".join(told)) is (left == b"bad")
    assert any(CROWD.plant in program for program in machine.ran) is bool(booted)


def test_a_check_that_prints_no_json_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(MachineError, match="the check gave no result"):
        playing_in(tmp_path, Machine()).check()


def test_the_page_names_each_requirement_and_the_end_tells_the_lesson() -> None:
    scenario = with_drawn_values(CROWD, 1)[0]
    page = "\n".join(words.task_lines(scenario))
    assert all(one.says in page for one in scenario.requirements)
    met = [Outcome(one.says, True, "so") for one in scenario.requirements]
    assert "Solved." in words.outcome_lines(scenario, met)
    left = words.outcome_lines(scenario, [Outcome("a", False, "b"), *met])
    assert "1 requirement not met yet." in left
    assert "  ✗ a: b" in left
