"""Scenarios as data: those of the course are whole, each mistake has its file and line, and a seed fills all places."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jitter_workshop.course.scenarios import load_scenarios, read_scenarios
from jitter_workshop.errors import LessonError
from jitter_workshop.model.scenario import with_drawn_values

GOOD = """\
format_version = 1
title = "A clock"
shape = "laptop"
minutes = 5
task = "Set CPU {cpu}."
hints = ["Look at CPU {cpu}."]
learnt = "A governor."
plant = "echo $CPU"
solution = "true"
[values]
cpu = ["1", "2"]
[[require]]
says = "CPU {cpu} is set"
file = "/sys/devices/system/cpu/cpu{cpu}/online"
is = "1"
"""
BUILT_IN = load_scenarios()


def written(tmp_path: Path, text: str, name: str = "clock") -> Path:
    (tmp_path / f"{name}.toml").write_text(text)
    return tmp_path


@pytest.mark.parametrize("seed", [0, 1, 7, 4711])
@pytest.mark.parametrize("ident", BUILT_IN)
def test_a_seed_fills_every_place(ident: str, seed: int) -> None:
    scenario, values = with_drawn_values(BUILT_IN[ident], seed)
    texts = [scenario.task, scenario.learnt, scenario.append, *scenario.hints]
    for one in scenario.requirements:
        texts += [one.says, one.cpu, one.off, one.wanted] + ([one.name] if one.kind != "command" else [])
    assert not [text for text in texts if re.search(r"\{[a-z]", text)]
    assert with_drawn_values(BUILT_IN[ident], seed) == (scenario, values)
    assert {name: value in BUILT_IN[ident].values[name] for name, value in values.items()} == dict.fromkeys(
        values, True
    )
    assert all(one.cpu.isdigit() for one in scenario.requirements if one.kind == "figure")


def test_there_are_twenty_and_each_has_a_way_and_an_end() -> None:
    assert len(BUILT_IN) >= 20
    assert all(len(one.hints) >= 2 and one.solution and one.requirements for one in BUILT_IN.values())
    assert {one.shape for one in BUILT_IN.values()} == {"laptop", "bare", "server"}


def test_seeds_differ() -> None:
    assert len({with_drawn_values(BUILT_IN["crowd"], seed)[1]["cpu"] for seed in range(20)}) > 1


def test_a_good_one_is_read(tmp_path: Path) -> None:
    found = load_scenarios(written(tmp_path, GOOD))
    assert list(found) == ["clock"]
    assert found["clock"].values == {"cpu": ("1", "2")}
    assert found["clock"].seconds == 5.0


@pytest.mark.parametrize(
    ("before", "after", "line", "said"),
    [
        ('title = "A clock"', 'title = "CPU {cpu}"', 2, "a title cannot have a placeholder"),
        ('shape = "laptop"', 'shape = "lapptop"', 3, "did you mean 'laptop'"),
        ("minutes = 5", "minutes = 0", 4, "minutes must be"),
        ("Set CPU {cpu}.", "Set CPU {cp}.", 5, "{cp} has no values"),
        ('hints = ["Look at CPU {cpu}."]', "hints = []", 6, "at least one hint"),
        ('cpu = ["1", "2"]', 'cpu = ["$(reboot)"]', 11, "'$(reboot)' has a wrong character"),
        ('cpu = ["1", "2"]', "cpu = []", 11, "cpu must be a list of texts"),
        ('cpu = ["1", "2"]', 'cpu = ["1"]\nother = ["3"]', 10, "other is never used"),
        ('is = "1"', "", 12, "is is missing"),
        ('file = "/sys/devices/system/cpu/cpu{cpu}/online"', 'file = "/etc/shadow"', 14, "a path below /sys"),
        ('file = "/sys/devices', 'file = "/sys/../etc', 14, "a path below /sys"),
        ('is = "1"', 'is = "1"\nfigure = "ticks"', 12, "exactly one of the keys"),
        ("[[require]]", "[[requires]]", 1, "at least one [[require]]"),
        ("format_version = 1", "format_version = 2", 1, "reads only 1"),
        ('solution = "true"', "", 1, "solution is missing"),
    ],
)
def test_each_mistake_has_its_line(tmp_path: Path, before: str, after: str, line: int, said: str) -> None:
    assert before in GOOD
    _, problems = read_scenarios(written(tmp_path, GOOD.replace(before, after)))
    told = [one.sentence() for one in problems.found]
    assert any(f"clock.toml:{line}: " in one and said in one for one in told), told


@pytest.mark.parametrize(
    ("require", "said"),
    [
        ('figure = "ticks"\ncpu = "1"', "at_least, at_most or both"),
        ('figure = "tics"\ncpu = "1"\nat_most = 1', "did you mean 'ticks'"),
        ('figure = "ticks"\ncpu = "1"\nat_most = -1', "at_most must be"),
        ('task = "a-name-that-no-task-has"', "longer than 15"),
    ],
)
def test_mistakes_of_requirements(tmp_path: Path, require: str, said: str) -> None:
    text = GOOD[: GOOD.index("[[require]]")] + f'[[require]]\nsays = "It is so"\n{require}\n'
    _, problems = read_scenarios(written(tmp_path, text))
    assert any(said in one.message for one in problems.found), problems.found


def test_a_file_s_name_is_its_id(tmp_path: Path) -> None:
    _, problems = read_scenarios(written(tmp_path, GOOD, "A Clock"))
    assert any("the file's name" in one.message for one in problems.found)


def test_no_folder_and_no_scenario(tmp_path: Path) -> None:
    with pytest.raises(LessonError, match="cannot be read"):
        load_scenarios(tmp_path / "none")
    with pytest.raises(LessonError, match="has no scenario"):
        load_scenarios(tmp_path)


@given(st.text(max_size=200), st.integers(0, len(GOOD)))
def test_no_file_breaks_the_reader(tmp_path_factory: pytest.TempPathFactory, junk: str, place: int) -> None:
    folder = tmp_path_factory.mktemp("junk")
    (folder / "clock.toml").write_text(GOOD[:place] + junk + GOOD[place:], encoding="utf-8", errors="replace")
    found, problems = read_scenarios(folder)
    assert bool(found) != bool(problems.found)
