"""Read a class's board for an instructor, from one machine or from the files of many machines."""

from __future__ import annotations

import csv
import datetime
import io
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from jitter_workshop.course.guesses import judge_value
from jitter_workshop.course.loader import load_course
from jitter_workshop.errors import UsageError
from jitter_workshop.model.board import BEST_BY, Board, BoardRow, PostedChapter, PostedRun, compared_at
from jitter_workshop.model.codec import CodecError, from_plain
from jitter_workshop.model.course import GuessTask
from jitter_workshop.model.host import EMULATED, NO_VERDICT
from jitter_workshop.model.record import dataclass
from jitter_workshop.model.session import Guess
from jitter_workshop.model.text import ID, LINE, PATH, SHORT, USER, WORD, clean, minute
from jitter_workshop.session.files import read_json

OLD_S = 900.0
"""A machine counts as not reached if its board is more than this many seconds older than the newest board."""
_SPREADSHEET = ("=", "+", "-", "@", "\t", "\r")


@dataclass(frozen=True, slots=True)
class ClassTable:
    """Hold the board and the status of one machine of a class.

    - ``board``: the machine's board, or None.
    - ``error``: the reason why there is no board, or "".
    - ``status``: the JSON that ``status`` printed on the machine; None if it is missing.
    """

    host: str
    board: Board | None
    status: dict[str, Any] | None = None
    error: str = ""


@dataclass(frozen=True, slots=True)
class BoardColumn:
    """Hold a chapter of the course, which is a column of the board. ``sets``: True if the chapter has a mark for
    changed settings or placement. ``reads``: True if the chapter measures nothing and has no mark; it is done after its
    last step."""

    number: int
    id: str
    title: str
    sets: bool
    reads: bool = False


class CourseJudge:
    """Sort posted chapters by the order of the course, and judge posted guesses."""

    def __init__(self) -> None:
        """Load the built-in course. Raise LessonError for a damaged course."""
        self._course = load_course()

    @property
    def columns(self) -> tuple[BoardColumn, ...]:
        """Return the course's chapters, numbered in teaching order."""
        return tuple(
            BoardColumn(number, chapter.id, chapter.title, chapter.sets, not chapter.measures)
            for number, chapter in enumerate(self._course.chapters, 1)
        )

    def near(self, row: BoardRow, chapter: PostedChapter) -> bool | None:
        """Return True if a posted guess was near, False if it was not (``course.guesses``). Return None if the post
        does not show this, or if the times are those of an emulated machine."""
        task, guess = self._task(chapter), chapter.prediction
        if task is None or guess is None:
            return None
        if task.kind == "choice":
            given = next((answer for answer in task.answers if answer.id == guess.choice), None)
            if given is None or (task.slot is not None and self._run(row, chapter, task) is None):
                return None
            return given.right is True if any(answer.right is not None for answer in task.answers) else None
        measured = self.measured(row, chapter)
        return judge_value(guess.value_ns, measured)[0] if guess.value_ns and measured is not None else None

    def measured(self, row: BoardRow, chapter: PostedChapter) -> int | None:
        """Return the measured value in ns that decides a posted guess; None if there is none. The value comes from a
        run with the lesson's workload whose curve reaches the percentile. A guess that is a choice has no such value.
        Times of an emulated machine do not count."""
        task, guess = self._task(chapter), chapter.prediction
        if task is None or guess is None or task.kind == "choice":
            return None
        run, known = self._run(row, chapter, task), self._course.chapter(chapter.id)
        if run is not None and run.mark == EMULATED:
            return None
        asked = known.measurement(task.slot) if known is not None and task.slot is not None else None
        if run is None or (asked is not None and asked.workload != run.workload):
            return None
        return run.value_at(float(task.percentile or BEST_BY))

    def _task(self, chapter: PostedChapter) -> GuessTask | None:
        known = self._course.chapter(chapter.id)
        return known.prediction if known is not None else None

    def _run(self, row: BoardRow, chapter: PostedChapter, task: GuessTask) -> PostedRun | None:
        return next((run for run in row.posted.runs if (run.chapter, run.slot) == (chapter.id, task.slot)), None)


def gathered(folder: Path) -> tuple[ClassTable, ...]:
    """Return the machines of a class from a folder with ``HOST/board.json`` and ``HOST/status.json``. A machine with a
    missing or invalid file is returned with the reason. Raise UsageError if the folder does not exist."""
    if not folder.is_dir():
        raise UsageError(f"there is no folder {clean(folder, PATH)}")
    found = []
    for place in sorted(one for one in folder.iterdir() if one.is_dir()):
        why: list[str] = []
        made = _load(place / "board.json", why)
        status = _load(place / "status.json", why)
        theirs: Board | None = None
        if made is not None:
            try:
                theirs = from_plain(Board, made)
            except (CodecError, RecursionError) as error:
                why.append(f"board.json: {clean(error, LINE)}")
        found.append(ClassTable(clean(place.name, USER), theirs, status, "; ".join(why)))
    return _without_old(found)


def machines(boards: Iterable[ClassTable]) -> tuple[ClassTable, ...]:
    """Return the machines in the order of the board. For each machine, the longest time for which a member is stuck
    decides. The machine with the largest such time comes first.
    """
    return tuple(sorted(boards, key=lambda one: -_longest_stuck(one.board)))


def _longest_stuck(board: Board | None) -> float:
    """Return the longest time in seconds for which a member is stuck; -1 if no member is stuck."""
    return max((row.idle_s for row in (board.rows if board else ()) if row.group == "stuck"), default=-1.0)


def merge_boards(boards: Sequence[ClassTable]) -> Board:
    """Return one board with the members of all machines. A user name that several machines have becomes
    ``name@host``."""
    rows = [(one.host, row) for one in boards if one.board is not None for row in one.board.rows]
    named = Counter(user for _, user in {(host, row.user) for host, row in rows})
    made = (replace(row, user=f"{row.user}@{host}") if named[row.user] > 1 else row for host, row in rows)
    return Board("", max((one.board.at for one in boards if one.board is not None), default=""), tuple(made))


def _without_old(found: Sequence[ClassTable]) -> tuple[ClassTable, ...]:
    """Return the machines, with each old board removed and reported in the machine's ``error``. A board is old if
    another machine's board is much newer."""
    times = {one.host: _time(one.board.at) for one in found if one.board is not None}
    newest = max((at for at in times.values() if at is not None), default=None)
    kept = []
    for one in found:
        at = times.get(one.host)
        if one.board is not None and newest is not None and (at is None or (newest - at).total_seconds() > OLD_S):
            why = f"the newest board is of {minute(one.board.at) or 'a time that cannot be read'} UTC"
            kept.append(ClassTable(one.host, None, error="; ".join(filter(None, (one.error, why)))))
        else:
            kept.append(one)
    return tuple(kept)


def _time(stamp: str) -> datetime.datetime | None:
    try:
        found = datetime.datetime.fromisoformat(stamp)
    except ValueError:
        return None
    return found if found.tzinfo is not None else None


def board_json(boards: Sequence[ClassTable]) -> dict[str, Any]:
    """Return the JSON of ``class board``: the machines, and a row for each member."""
    return {
        "hosts": [
            {
                "host": one.host,
                "seen_at": one.board.at if one.board is not None else None,
                "error": one.error or None,
                "notes": {} if one.board is not None else {"seen_at": "the board could not be read: see error"},
            }
            for one in boards
        ],
        "students": [_student(one.host, row) for one in boards if one.board is not None for row in one.board.rows],
    }


_HEADS = (
    "host", "user", "people", "seen_at", "chapter", "step", "done", "setting", "curve", "hints",
    "guess", "guess_percentile", "guess_ns", "guess_near", "last_p99.9_ns", "best_p99.9_ns",
    "percentile", "last_ns", "best_ns", "measured_at_guess_ns", "mark", "scenarios",
)  # fmt: skip


def csv_table(boards: Sequence[ClassTable], course: CourseJudge) -> str:
    """Return a table in CSV, with one line for each member and chapter. A run that belongs to no chapter has a line
    with an empty chapter cell. A member who has done nothing also has a line with an empty chapter cell. ``scenarios``
    is the number of scenarios that the member has solved. An apostrophe precedes each cell that a spreadsheet would
    take for a formula.
    """
    out = io.StringIO()
    table = csv.writer(out, lineterminator="\n")
    table.writerow(_HEADS)
    for one in boards:
        for row in one.board.rows if one.board is not None else ():
            first = [_cell(one.host), _cell(row.user), _cell(" + ".join(row.posted.people)), _cell(row.seen_at)]
            solved = len(row.posted.scenarios)
            own = sorted((run for run in row.posted.runs if not run.chapter), key=lambda run: run.at)
            alone = [(_measured(row, run, best_like(row, run)), _cell(run.mark)) for run in own]
            for shown, mark in alone or ([] if row.posted.chapters else [(_measured(row, None, None), "")]):
                table.writerow([*first, *[""] * (len(_HEADS) - len(first) - len(shown) - 3), *shown, "", mark, solved])
            for chapter in row.posted.chapters:
                table.writerow([*first, *_of_chapter(row, chapter, course), solved])
    return out.getvalue()


def _of_chapter(row: BoardRow, chapter: PostedChapter, course: CourseJudge) -> list[str | int]:
    guess, near = chapter.prediction, course.near(row, chapter)
    last, best = last_and_best(row, chapter.id)
    return [
        _cell(chapter.id),
        _cell(chapter.step),
        *(int(flag) for flag in (chapter.done, chapter.setting, chapter.curve)),
        chapter.hints,
        _cell(guess.choice or "") if guess is not None else "",
        _cell(guess.percentile or "") if guess is not None else "",
        _known(guess.value_ns if guess is not None else None),
        _known(near),
        *_measured(row, last, best),
        _known(course.measured(row, chapter)),
        _cell(last.mark) if last is not None else "",
    ]


def _measured(row: BoardRow, last: PostedRun | None, best: PostedRun | None) -> list[str | int]:
    """Return five cells on a member's newest run and best run; empty cells without a run.

    - the p99.9 of the newest run;
    - the p99.9 of the best run;
    - the percentile at which the two runs are compared;
    - the value of the newest run at this percentile;
    - the value of the best run at this percentile.
    """
    if last is None:
        return [""] * 5
    by = compared_at(row.posted, last)
    shown = [_known(run.value_at(at) if run is not None else None) for at in (BEST_BY, by) for run in (last, best)]
    return [*shown[:2], f"{by:.10g}", *shown[2:]]


def _known(number: int | None) -> str | int:
    return "" if number is None else int(number)


def _student(host: str, row: BoardRow) -> dict[str, Any]:
    last, best = last_and_best(row)
    by = compared_at(row.posted, last) if last is not None else BEST_BY
    notes = {}
    if row.posted.chapter is None:
        notes["chapter"] = "no member has begun a chapter yet"
    if last is None:
        notes["last_run"] = "no member has measured yet"
    if best is None and last is not None and last.mark == EMULATED:
        notes["best_run"] = NO_VERDICT
    elif best is None:
        notes["best_run"] = (
            f"no run has enough messages for p{by:.10g} yet" if last is not None else "no member has measured yet"
        )
    return {
        "id": clean(row.user, USER),
        "people": [clean(name, USER) for name in row.posted.people],
        "host": host,
        "chapter": clean(row.posted.chapter) if row.posted.chapter is not None else None,
        "step": clean(row.posted.step, ID),
        "marks": {clean(c.id): {"setting": c.setting, "curve": c.curve} for c in row.posted.chapters},
        "predictions": {clean(c.id): _guess(c.prediction) for c in row.posted.chapters if c.prediction is not None},
        "scenarios": [clean(ident) for ident in row.posted.scenarios],
        "done": sum(c.done for c in row.posted.chapters),
        "last_run": _run(last, by),
        "best_run": _run(best, by),
        "seen_at": clean(row.seen_at, SHORT),
        "idle_s": row.idle_s,
        "stuck": row.group == "stuck",
        "group": row.group,
        "notes": notes,
    }


def _guess(guess: Guess) -> dict[str, Any]:
    plain = {
        "choice": clean(guess.choice) if guess.choice is not None else None,
        "percentile": clean(guess.percentile, WORD) if guess.percentile is not None else None,
        "value_ns": guess.value_ns,
    }
    chosen = "the question asked for one of its answers, not for a value"
    value = "the question asked for a value, not for one of its answers"
    why = {"choice": value, "percentile": chosen, "value_ns": chosen}
    return {**plain, "notes": {name: why[name] for name, value in plain.items() if value is None}}


def _run(run: PostedRun | None, by: float) -> dict[str, Any] | None:
    """Return the JSON of a run. ``by``: the percentile at which the run is compared with others."""
    if run is None:
        return None
    values = {"p99.9_ns": run.value_at(), "value_ns": run.value_at(by)}
    return {
        "id": clean(run.id, USER),
        "label": clean(run.label),
        "chapter": clean(run.chapter),
        "workload": clean(run.workload, ID),
        **values,
        "percentile": by,
        "mark": clean(run.mark, WORD),
        "notes": {name: "too few messages for this percentile" for name, value in values.items() if value is None},
    }


def _cell(word: str) -> str:
    shown = clean(word)
    return f"'{shown}" if shown.startswith(_SPREADSHEET) else shown


def _load(file: Path, why: list[str]) -> dict[str, Any] | None:
    try:
        return read_json(file)
    except FileNotFoundError:
        why.append(f"{file.name} is missing")
    except OSError as error:
        why.append(f"{file.name} cannot be read: {error.strerror}")
    except ValueError as error:
        why.append(f"{file.name} is not valid: {clean(error)}")
    return None


def last_and_best(row: BoardRow, chapter: str | None = None) -> tuple[PostedRun | None, PostedRun | None]:
    """Return a member's newest run, and the member's best run of the same chapter and workload. Each is None if there
    is no such run. ``chapter``: take only runs of this chapter; None for all."""
    mine = [run for run in row.posted.runs if chapter in (None, run.chapter)]
    last = max(mine, key=lambda run: run.at, default=None)
    return last, best_like(row, last) if last is not None else None


def best_like(row: BoardRow, run: PostedRun) -> PostedRun | None:
    """Return the member's best run that is comparable with ``run``; None if there is none. Comparable runs have the
    same chapter, workload and mark. The best one has the lowest value at the percentile of ``compared_at``. Also return
    None if ``run`` was made on an emulated machine.
    """
    if run.mark == EMULATED:
        return None
    by, like = compared_at(row.posted, run), (run.chapter, run.workload, run.mark)
    alike = [r for r in (*row.posted.runs, *row.best) if (r.chapter, r.workload, r.mark) == like]
    known = [(ns, one) for one in alike if (ns := one.value_at(by)) is not None]
    return min(known, key=lambda one: one[0])[1] if known else None
