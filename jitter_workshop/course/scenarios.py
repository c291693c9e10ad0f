"""Load scenarios. Each scenario is one file ``ID.toml`` in a folder. Scenarios are data, and their programs run only in
a practice machine."""

from __future__ import annotations

import re
from pathlib import Path

from jitter_workshop.course.files import Problems, nearest, read_source
from jitter_workshop.course.lesson import ID_PATTERN, check_version
from jitter_workshop.course.loader import builtin_course
from jitter_workshop.course.table import TomlTable, parse_table
from jitter_workshop.errors import LessonError
from jitter_workshop.model.scenario import FIGURES, Requirement, Scenario
from jitter_workshop.model.text import LABEL, LINE, PARAGRAPH, PATH
from jitter_workshop.practice.shape import SHAPES

FOLDER = "scenarios"
MOST = 200
"""The largest number of scenarios in a folder."""
MOST_VALUES = 16
SCRIPT_CHARACTERS = 4000
SECONDS = (1.0, 60.0)
_TASK = 1_200
"""The largest length of the text of a scenario's task."""
_TASK_NAME = 15
"""The largest length of a task's name in the kernel."""
_NAME = re.compile(r"[a-z][a-z0-9_]{0,19}")
_PLACEHOLDER = re.compile(r"(?<!\$)\{([a-z][a-z0-9_]*)\}")
_FILE = re.compile(r"/(sys|proc|dev|run)/[\x21-\x7e]+")
_VALUE = re.compile(r"[A-Za-z0-9][A-Za-z0-9 .,:_/-]{0,59}")
"""The form of a value that a scenario draws. Sentences contain the value, and shell programs get it as a variable."""


def load_scenarios(folder: Path | None = None) -> dict[str, Scenario]:
    """Return the scenarios in ``folder``, or the built-in ones, by id. Raise LessonError ``file:line: …`` at the first
    mistake."""
    found, problems = read_scenarios(folder)
    if problems.found:
        raise problems.error()
    return found


def read_scenarios(folder: Path | None = None) -> tuple[dict[str, Scenario], Problems]:
    """Return the scenarios without mistakes, by id, and all mistakes. Raise LessonError if there is no such folder."""
    base = builtin_course() / FOLDER if folder is None else folder
    problems = Problems()
    try:
        files = sorted(path.name for path in base.iterdir() if path.suffix == ".toml")
    except OSError as error:
        raise LessonError(f"{base} cannot be read: {error.strerror}", "name a folder of scenarios") from error
    if not files:
        raise LessonError(f"{base} has no scenario", "a scenario is a file ID.toml, see docs/writing-lessons.md")
    found: dict[str, Scenario] = {}
    for name in files[:MOST]:
        scenario = _read(base, name, problems)
        if scenario is not None:
            found[scenario.id] = scenario
    return found, problems


def _read(base: Path, name: str, problems: Problems) -> Scenario | None:
    """Return the scenario of one file; None if it has a mistake."""
    before = len(problems.found)
    source = read_source(base, name, problems)
    table = parse_table(source, problems) if source else None
    if table is None:
        return None
    check_version(table)
    scenario = _scenario(table, name.removesuffix(".toml"))
    table.finish()
    return scenario if len(problems.found) == before else None


def _scenario(table: TomlTable, ident: str) -> Scenario:
    if not ID_PATTERN.fullmatch(ident):
        table.wrong(None, "the file's name, without .toml, may have only small letters, digits and hyphens")
    values = _values(table)
    requirements = tuple(_requirement(one) for one in table.tables("require"))
    if not requirements:
        table.wrong(None, "a scenario needs at least one [[require]]")
    scenario = Scenario(
        id=ident,
        title=table.text("title", limit=LABEL),
        shape=table.choice("shape", SHAPES) or "laptop",
        minutes=table.integer("minutes", 1, 60) or 1,
        task=table.text("task", limit=_TASK),
        hints=table.texts("hints"),
        learnt=table.text("learnt", limit=PARAGRAPH),
        values=values,
        plant=table.text("plant", required=False, limit=SCRIPT_CHARACTERS),
        solution=table.text("solution", limit=SCRIPT_CHARACTERS),
        requirements=requirements,
        seconds=table.number("seconds", *SECONDS) or 5.0,
        append=table.text("append", required=False, limit=PATH),
    )
    if not scenario.hints:
        table.wrong("hints", "a scenario needs at least one hint")
    _check_placeholders(table, scenario)
    return scenario


def _values(table: TomlTable) -> dict[str, tuple[str, ...]]:
    """Return the values of a scenario: name → possible values. When the scenario begins, one value of each name is
    drawn."""
    inner = table.table("values")
    found = {}
    for name in inner.data if inner is not None else ():
        assert inner is not None
        several = inner.texts(name, limit=LABEL, most=MOST_VALUES)
        if not _NAME.fullmatch(name):
            inner.wrong(name, f"{name!r} is no name: use small letters, digits and underscores")
        elif not several:
            inner.wrong(name, f"{name} must be a list of texts; one of them is chosen at random")
        elif bad := [value for value in several if not _VALUE.fullmatch(value)]:
            inner.wrong(name, f"{bad[0]!r} has a wrong character: use letters, digits, blanks and .,:_/-")
        else:
            found[name] = several
    return found


def _requirement(table: TomlTable) -> Requirement:
    says = table.text("says", limit=LINE)
    kinds = [kind for kind in ("figure", "file", "task", "command") if kind in table.data]
    if len(kinds) != 1:
        table.wrong(None, "a [[require]] needs exactly one of the keys 'figure', 'file', 'task' and 'command'")
        table.taken |= table.data.keys()
        return Requirement(says, "command", "true")
    if kinds == ["figure"]:
        figure = table.choice("figure", FIGURES) or "ticks"
        cpu = table.text("cpu")
        low, high = table.number("at_least", 0, 1e9), table.number("at_most", 0, 1e9)
        if low is None and high is None:
            table.wrong("figure", "a figure needs at_least, at_most or both")
        return Requirement(says, "figure", figure, cpu=cpu, at_least=low, at_most=high)
    if kinds == ["file"]:
        path = table.text("file", limit=PATH)
        if not _FILE.fullmatch(path) or ".." in path:
            table.wrong("file", "'file' must be a path below /sys, /proc, /dev or /run")
        return Requirement(says, "file", path, wanted=table.text("is"))
    if kinds == ["task"]:
        return Requirement(says, "task", table.text("task", limit=_TASK_NAME), off=table.text("off", required=False))
    return Requirement(says, "command", table.text("command", limit=PARAGRAPH))


def _check_placeholders(table: TomlTable, scenario: Scenario) -> None:
    """Add a mistake for each placeholder without values, and for each unused list of values. Also add a mistake for a
    placeholder in the title.
    """
    used: set[str] = set()

    def look(key: str, *texts: str) -> None:
        for text in texts:
            for name in _PLACEHOLDER.findall(text):
                used.add(name)
                if name not in scenario.values:
                    table.wrong(key, f"{{{name}}} has no values{nearest(name, sorted(scenario.values))}")

    if _PLACEHOLDER.search(scenario.title):
        table.wrong("title", "a title cannot have a placeholder: titles are shown before the random values are chosen")
    for key in ("task", "learnt", "append"):
        look(key, getattr(scenario, key))
    look("hints", *scenario.hints)
    for one in scenario.requirements:
        texts = (one.says, one.cpu, one.wanted, one.off)
        look("require", *texts, *((one.name,) if one.kind == "file" else ()))
    programs = " ".join((scenario.plant, scenario.solution, *(r.name for r in scenario.requirements)))
    for name in scenario.values:
        if name not in used and not re.search(rf"\${{?{name.upper()}\b", programs):
            table.wrong("values", f"{name} is never used: write {{{name}}} in a text, or ${name.upper()} in a program")
