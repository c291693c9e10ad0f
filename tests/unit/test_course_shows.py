"""Test [shows] and guesses by two runs in a lesson's file: what is read, and each mistake with its line."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import pytest

from jitter_workshop.course.checks import flaws
from jitter_workshop.course.lesson import EFFECTS
from jitter_workshop.course.loader import load_course, read_course
from jitter_workshop.flow.chapters.newlesson import new_lesson
from jitter_workshop.model.course import Chapter, Company, Shows
from jitter_workshop.stats.figures import counts_alone, figure_with_id, shows_on

SHOWS = '[shows]\nfigure = "migrations"\nat_least = 3.0\n'
GUESS = 'kind = "choice"'


def written(tmp_path: Path, old: str = "", new: str = "") -> Path:
    """A course with the chapter that 'lessons new' makes, and ``new`` in the place of ``old``."""
    course = tmp_path / "course"
    made = new_lesson("one", course)
    path = course / made.folder / "lesson.toml"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    return course


def mistakes(course: Path) -> list[tuple[str, str]]:
    """Each mistake's own line of the lesson, and its message."""
    lines = (course / "01-one" / "lesson.toml").read_text().split("\n")
    return [(lines[problem.line - 1], problem.message) for problem in read_course(course).problems.found]


def chapter_of(course: Path) -> Chapter:
    return load_course(course).chapters[0]


def test_a_new_chapter_names_its_figure_and_has_company(tmp_path: Path) -> None:
    chapter = chapter_of(written(tmp_path))
    assert (chapter.shows, chapter.accompanied) == (Shows("migrations", 3.0), True)
    assert chapter.company == Company("unbound", "ordinary tasks, as on any busy host")
    assert {one.noise for one in chapter.measurements} == {"unbound"}


READS = '[company]\nnoise = "disk"\nshown = "reads"\n[company.if_fixed]\n'
COMPANY = '[company]\nnoise = "unbound"\nshown = "ordinary tasks, as on any busy host"\n\n'
FREE, PLACED = 'slot = "measure"\n', 'slot = "again"\n'


def noises(course: Path) -> tuple[list[str | None], Company | None, bool]:
    chapter = chapter_of(course)
    return [one.noise for one in chapter.measurements], chapter.company, chapter.accompanied


def test_a_measurement_names_its_own_noise_or_none_beside_the_company(tmp_path: Path) -> None:
    course = written(tmp_path, FREE, f'{FREE}noise = "none"\n')
    assert noises(course)[0::2] == ([None, "unbound"], False)
    course = written(tmp_path / "other", PLACED, f'{PLACED}noise = "spinners"\n')
    assert noises(course)[0::2] == (["unbound", "spinners"], False)


def test_company_names_a_second_load_for_hosts_whose_kernel_keeps_the_interrupts_of_the_first(tmp_path: Path) -> None:
    course = written(tmp_path, COMPANY, f'{READS}noise = "hwrng"\nshown = "keys"\n\n')
    assert noises(course) == (["disk", "disk"], Company("disk", "reads", Company("hwrng", "keys")), True)


def test_company_names_a_control_run_that_follows_the_second_run(tmp_path: Path) -> None:
    course = written(tmp_path, COMPANY, f'{COMPANY}control = "alone"\n')
    (chapter,) = load_course(course).chapters
    assert chapter.company is not None
    assert chapter.company.control == "alone"


def test_a_lesson_that_names_the_noise_in_each_measurement_still_loads(tmp_path: Path) -> None:
    """Lessons were written so before there was a table [company]."""
    course = written(tmp_path, COMPANY, "")
    path = course / "01-one" / "lesson.toml"
    none = path.read_text()
    assert noises(course) == ([None, None], None, False)
    path.write_text(none.replace(FREE, f'{FREE}noise = "disk"\n', 1))
    assert noises(course) == (["disk", None], None, False)
    path.write_text(path.read_text().replace(PLACED, f'{PLACED}noise = "disk"\n', 1))
    assert noises(course) == (["disk", "disk"], Company("disk"), True)


WHY = 'without_company = "The change is about a CPU without any other task."\n'


def test_a_change_without_company_needs_a_reason_and_loads_without_one(tmp_path: Path) -> None:
    bare = chapter_of(written(tmp_path, COMPANY, ""))
    (flaw,) = flaws(bare)
    assert flaw.where == ("changes",)
    assert "has no [company]" in flaw.message
    assert "'without_company'" in flaw.message
    course = written(tmp_path / "why", COMPANY, "")
    path = course / "01-one" / "lesson.toml"
    path.write_text(path.read_text().replace("look = ", f"{WHY}look = ", 1))
    assert flaws(chapter_of(course)) == ()
    differ = dataclasses.replace(bare, changes="nothing", checks=(), prediction=None)
    assert [one.message for one in flaws(differ)] == [flaw.message]
    same = tuple(dataclasses.replace(one, placement="auto") for one in bare.measurements)
    assert flaws(dataclasses.replace(differ, measurements=same)) == ()


def test_a_reason_beside_company_is_a_mistake(tmp_path: Path) -> None:
    [(line, said)] = mistakes(written(tmp_path, "look = ", f"{WHY}look = "))
    assert line == WHY.strip()
    assert "remove the reason" in said


@pytest.mark.parametrize(
    ("new", "line", "said"),
    [
        ('[company]\nnoise = "unbond"\nshown = "tasks"\n', "noise =", "did you mean 'unbound'"),
        ('[company]\nnoise = "none"\nshown = "tasks"\n', "noise =", "unknown noise"),
        ('[company]\nnoise = "disk"\n', "[company]", "shown is missing"),
        ('[company]\nshown = "tasks"\n', "[company]", "noise is missing"),
        ('[company]\nnoise = "disk"\nshown = "tasks"\nshows = 3\n', "shows =", "unknown key"),
        (f'{READS}noise = "hwrg"\nshown = "keys"\n', 'noise = "hwrg"', "did you mean 'hwrng'"),
        (f'{READS}noise = "hwrng"\n', "[company.if_fixed]", "shown is missing"),
        (f'{READS}noise = "disk"\nshown = "reads"\n', 'noise = "disk"', "name another noise"),
    ],
)
def test_mistakes_in_company_are_found(tmp_path: Path, new: str, line: str, said: str) -> None:
    (found,) = mistakes(written(tmp_path, COMPANY, new))
    assert found[0].startswith(line)
    assert said in found[1]


@pytest.mark.parametrize(
    ("new", "line", "said"),
    [
        ('figure = "migration"\nat_most = 0\n', "figure =", "did you mean 'migrations'"),
        ('figure = "migrations"\n', "figure =", "needs a slot and at_most"),
        ("at_most = 0\n", "[[check]]", "figure is missing"),
        ('figure = "migrations"\nat_most = -1\n', "at_most =", "from 0 to"),
        ('figure = "work-items"\nat_most = 0\n', "figure =", "only a trace"),
    ],
)
def test_mistakes_in_a_check_of_a_figure_are_found(tmp_path: Path, new: str, line: str, said: str) -> None:
    check = '[[check]]\nmark = "setting"\n'
    (found,) = mistakes(written(tmp_path, check, f"{check}{new}"))
    assert found[0].startswith(line)
    assert said in found[1]


def test_company_that_never_runs_is_a_mistake(tmp_path: Path) -> None:
    course = written(tmp_path, FREE, f'{FREE}noise = "none"\n')
    path = course / "01-one" / "lesson.toml"
    path.write_text(path.read_text().replace(PLACED, f'{PLACED}noise = "disk"\n', 1))
    (found,) = mistakes(course)
    assert found == (
        'noise = "unbound"',
        'the noise unbound never runs: each [[measurement]] names a different noise, or "none"',
    )


@pytest.mark.parametrize("factor", [*EFFECTS, 2])
def test_factors_have_limits_and_a_figure_may_rise(tmp_path: Path, factor: float) -> None:
    new = f'[shows]\nfigure = "99.9"\nat_least = {factor}\nrises = true\n'
    assert chapter_of(written(tmp_path, SHOWS, new)).shows == Shows("99.9", float(factor), rises=True)


def test_a_change_may_show_in_a_count_alone(tmp_path: Path) -> None:
    shows = chapter_of(written(tmp_path, SHOWS, f"{SHOWS}latency = false\n")).shows
    assert shows == Shows("migrations", 3.0, latency=False)


def test_a_restored_value_may_need_time(tmp_path: Path) -> None:
    course = written(tmp_path, SHOWS, f"{SHOWS}settle_s = 11\n")
    assert chapter_of(course).shows == Shows("migrations", 3.0, settle_s=11.0)
    lesson = course / "01-one" / "lesson.toml"
    lesson.write_text(lesson.read_text().replace("settle_s = 11", "settle_s = 61"))
    assert any("0 to 60" in said for _, said in mistakes(course))


@pytest.mark.parametrize(
    ("new", "line", "said"),
    [
        ('[shows]\nfigure = "migration"\nat_least = 3.0\n', "figure =", "did you mean 'migrations'"),
        ("[shows]\nat_least = 3.0\n", "[shows]", "figure is missing"),
        ('[shows]\nfigure = "migrations"\n', "[shows]", "at_least is missing"),
        ('[shows]\nfigure = "migrations"\nat_least = 1.0\n', "at_least =", "1.1 to 1000"),
        ('[shows]\nfigure = "migrations"\nat_least = 3\nrise = true\n', "rise =", "did you mean 'rises'"),
    ],
)
def test_a_mistake_is_told_at_its_line(tmp_path: Path, new: str, line: str, said: str) -> None:
    found = mistakes(written(tmp_path, SHOWS, new))
    assert any(at.startswith(line) and said in message for at, message in found), found


@pytest.mark.parametrize(("memory", "said"), [("near", "only the workload spin has"), ("warm", "unknown memory")])
def test_a_use_of_memory_belongs_to_its_workload(tmp_path: Path, memory: str, said: str) -> None:
    found = mistakes(written(tmp_path, 'workload = "ring"\n', f'workload = "ring"\nmemory = "{memory}"\n'))
    assert any(at.startswith("memory =") and said in message for at, message in found), found


def test_a_measurement_names_its_use_of_memory(tmp_path: Path) -> None:
    course = written(tmp_path, 'workload = "ring"\n', 'workload = "ring"\nmemory = "fresh"\n')
    assert sorted(m.memory for m in chapter_of(course).measurements) == ["fresh", "none"]


def test_a_chapter_that_changes_something_has_to_show_it(tmp_path: Path) -> None:
    (flaw,) = flaws(chapter_of(written(tmp_path, SHOWS, "")))
    assert flaw.where == ("changes",)
    assert "[shows]" in flaw.message


@pytest.mark.parametrize(
    ("more", "what"),
    [('sched = "fifo:10"', "sched_priority"), ('noise = "none"', "noise"), ('memory = "fresh"', "memory")],
)
def test_a_chapter_whose_measurements_differ_needs_a_figure_that_the_change_moves(
    tmp_path: Path, more: str, what: str
) -> None:
    made = chapter_of(written(tmp_path, PLACED, f"{PLACED}{more}\n"))
    first = made.measurements[0].placement
    alike = tuple(dataclasses.replace(one, placement=first) for one in made.measurements)
    reading = dataclasses.replace(made, changes="nothing", measurements=alike, shows=None)
    said = [flaw.message for flaw in flaws(reading) if "[shows]" in flaw.message]
    assert said == [f"this chapter changes {what}, so it needs a [shows] with the figure that the change moves"]
    same = tuple(dataclasses.replace(alike[0], slot=one.slot, duration_s=n + 1.0) for n, one in enumerate(alike))
    assert not [f for f in flaws(dataclasses.replace(reading, measurements=same)) if "[shows]" in f.message]


FALLS = """kind = "choice"
by = "falls"
question = "Which falls most?"
slot = "again"

[[prediction.answer]]
id = "moves"
text = "migrations"
figure = "migrations"
explanation = "They are forbidden."

[[prediction.answer]]
id = "none"
text = "none of them"
explanation = "Nothing was there."

[[by_hand]]
command = "true"
why = "Nothing."

"""


def guessed(tmp_path: Path, block: str) -> Path:
    course = written(tmp_path)
    path = course / "01-one" / "lesson.toml"
    text = path.read_text()
    begin = text.index(GUESS)
    end = text.index("[[check]]")
    path.write_text(text[:begin] + block + text[end:])
    return course


def test_a_guess_by_two_runs_names_figures(tmp_path: Path) -> None:
    task = chapter_of(guessed(tmp_path, FALLS)).prediction
    assert task is not None
    assert (task.kind, task.by, [a.figure for a in task.answers]) == ("choice", "falls", ["migrations", None])


def test_a_guess_of_a_factor_has_ranges(tmp_path: Path) -> None:
    block = FALLS.replace('"falls"', '"factor"').replace('figure = "migrations"', "up_to = 2.5")
    task = chapter_of(guessed(tmp_path, block)).prediction
    assert task is not None
    assert (task.by, [a.up_to for a in task.answers]) == ("factor", [2.5, None])


@pytest.mark.parametrize(
    ("old", "new", "line", "said"),
    [
        ('slot = "again"', 'slot = "measure"', "by =", "with the slot 'again'"),
        ('figure = "migrations"\n', "", "[prediction]", "one answer must have no figure"),
        ('by = "falls"\n', "", "figure =", 'by = "falls"'),
        ('figure = "migrations"', "up_to = 2.0", "up_to =", 'by = "factor"'),
        ('by = "falls"', 'by = "rises"', "by =", "unknown by"),
    ],
)
def test_a_mistake_in_such_a_guess_is_told(tmp_path: Path, old: str, new: str, line: str, said: str) -> None:
    found = mistakes(guessed(tmp_path, FALLS.replace(old, new, 1)))
    assert any(at.startswith(line) and said in message for at, message in found), found


@pytest.mark.parametrize(
    ("old", "new", "key"),
    [
        ('by = "falls"\n', "", "question"),
        ('by = "falls"\nquestion = "Which falls most?"\nslot = "again"\n', 'question = "Which?"\n', "question"),
        ('by = "falls"', 'by = "factor"', "by"),
    ],
)
def test_a_guess_that_no_run_can_decide_is_refused(tmp_path: Path, old: str, new: str, key: str) -> None:
    block = FALLS.replace(old, new, 1)
    assert block != FALLS
    if key == "by":
        block = block.replace('figure = "migrations"', "up_to = 2.5")
    else:
        block = block.replace('figure = "migrations"', "right = true")
    chapter = chapter_of(guessed(tmp_path, block))
    told = [flaw for flaw in flaws(dataclasses.replace(chapter, shows=None)) if flaw.where[0] == "prediction"]
    assert [flaw.where for flaw in told] == [("prediction", key)]
    assert told[0].message.startswith("no run can decide this guess")
    decided = chapter_of(guessed(tmp_path / "decided", FALLS))
    assert not [flaw for flaw in flaws(decided) if flaw.where[0] == "prediction"]


TIMED = '[shows]\nfigure = "max"\nat_least = 1.3\n'
COUNTED = '\n[shows.counted]\nfigure = "slept"\nat_least = 3.0\nrises = true\n'
UNCOUNTED = 'uncounted = "No counter shows it."\n'


@pytest.mark.parametrize(("more", "wrong"), [("", True), (COUNTED, False), (UNCOUNTED, False)])
def test_a_time_has_a_counted_figure_or_the_reason_why_there_is_none(tmp_path: Path, more: str, wrong: bool) -> None:
    found = [flaw for flaw in flaws(chapter_of(written(tmp_path, SHOWS, f"{TIMED}{more}"))) if flaw.where[0] == "shows"]
    assert [flaw.where for flaw in found] == [("shows", "figure")] * wrong
    assert all("[shows.counted]" in flaw.message for flaw in found)


def test_a_counted_figure_takes_the_place_of_a_time_where_times_mean_nothing(tmp_path: Path) -> None:
    shows = chapter_of(written(tmp_path, SHOWS, f"{TIMED}{COUNTED}")).shows
    assert shows == Shows("max", 1.3, counted=Shows("slept", 3.0, rises=True))
    assert shows_on(shows, False) == shows
    assert shows_on(shows, True) == Shows("slept", 3.0, rises=True)
    assert shows_on(Shows("max", 1.3, uncounted="why"), True) is None
    assert shows_on(None, True) is None
    assert shows_on(Shows("migrations", 3.0), True) == Shows("migrations", 3.0)


@pytest.mark.parametrize(
    ("new", "said"),
    [
        (f"{SHOWS}{COUNTED}", "migrations is counted on every machine"),
        (f"{SHOWS}{UNCOUNTED}", "migrations is counted on every machine"),
        (f"{TIMED}{UNCOUNTED}{COUNTED}", "so remove this reason"),
        (f"{TIMED}{COUNTED.replace('slept', 'stalls-1ms')}", "stalls-1ms depends on times"),
    ],
)
def test_mistakes_in_a_counted_figure_are_found(tmp_path: Path, new: str, said: str) -> None:
    assert any(said in message for _, message in mistakes(written(tmp_path, SHOWS, new)))


def test_every_chapter_of_the_course_has_a_figure_to_compare_on_an_emulated_machine() -> None:
    for chapter in load_course().chapters:
        assert not [flaw for flaw in flaws(chapter) if flaw.where[:1] == ("shows",)], chapter.id
        found = shows_on(chapter.shows, True)
        assert chapter.shows is None or (found is None) == bool(chapter.shows.uncounted), chapter.id
        assert found is None or counts_alone(figure_with_id(found.figure)), chapter.id


def test_the_page_of_effects_has_ten_rounds_of_each_chapter_with_a_figure_or_says_which_it_lacks() -> None:
    chapters = load_course().chapters
    page = (Path(__file__).parents[2] / "docs" / "effects.md").read_text()
    tables, others = page.split("name no figure: ")
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in tables.split("\n") if " of 10 |" in line]
    wanted = {}
    for chapter_id, _, factor, *_, day, commit, shown in rows:
        wanted[chapter_id] = float(factor.removesuffix(" up"))
        assert re.fullmatch(r"20\d\d-\d\d-\d\d", day), chapter_id
        assert re.fullmatch(r"`[0-9a-f]{8}`", commit), chapter_id
        assert int(shown.removesuffix(" of 10")) >= 9, chapter_id
    untried = re.findall(r"([a-z-]+)\s+\(wanted factor (\d+)", page.partition("**Not tried yet**")[2])
    wanted.update((chapter_id, float(factor)) for chapter_id, factor in untried)
    assert wanted == {one.id: one.shows.at_least for one in chapters if one.shows is not None}
    assert " ".join(others.split()).rstrip(".").split(", ") == [one.id for one in chapters if one.shows is None]


def test_a_chapter_with_a_figure_and_no_company_says_why_and_the_page_of_effects_names_it() -> None:
    page = (Path(__file__).parents[2] / "docs" / "effects.md").read_text()
    special = page.split("## Where the load beside a chapter is special")[1]
    alone = [one for one in load_course().chapters if one.shows is not None and not one.accompanied]
    assert {"governor", "idle-states", "coordinated-omission", "own-part", "tick"} <= {one.id for one in alone}
    # The first run of migration is without its company: the load is what the chapter adds.
    assert [one.id for one in alone if not one.without_company] == ["migration"]
    for one in alone:
        assert f"**{one.id.replace('-', ' ').capitalize()}**" in (special if one.without_company else page), one.id
        assert not one.without_company or one.without_company.endswith("."), one.id


def test_a_chapter_judges_by_the_percentile_that_it_names() -> None:
    judged = {one.id: one.judged_percentile for one in load_course().chapters}
    named = ("baseline", "caches", "coordinated-omission", "system-calls", "memory", "locks", "your-program")
    assert [judged[ident] for ident in named] == ["99.9", "50", "99", "50", "99.99", None, None]
