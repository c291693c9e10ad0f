"""The board's verbs: ``class board``, ``results`` and ``collect``, before a board whose service is real."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
import os
import re
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from jitter_workshop import cli
from jitter_workshop.classroom import client
from jitter_workshop.classroom.client import started
from jitter_workshop.classroom.store import FILE, SENT_AGAIN, STUCK_S, TOO_MUCH, BoardStore
from jitter_workshop.errors import UsageError
from jitter_workshop.flow.classes import classboard
from jitter_workshop.flow.classes.presenting import NONE_MEASURED, class_curves
from jitter_workshop.host.root import HostRoot
from jitter_workshop.model.board import MAX_CHAPTERS, MAX_SCENARIOS, Board, Posted, PostedChapter, PostedRun
from jitter_workshop.model.codec import to_plain
from jitter_workshop.model.host import EMULATED, NO_VERDICT
from jitter_workshop.model.session import Guess
from jitter_workshop.model.turn import Process, TurnState, Waiting
from jitter_workshop.tuning.journal import current_boot
from tests.madeboard import run, work

CHECKOUT = Path(client.__file__).resolve().parents[2]
SERVE = """
import sys
from pathlib import Path
sys.path.insert(0, {tree!r})
from jitter_workshop import paths
paths.RUN_DIR = {folder!r}
from jitter_workshop.agent.policy import Member
from jitter_workshop.classroom.service import serve_board_connection
serve_board_connection(Path({folder!r}), Member({uid}, {user!r}, {instructor}, (), None))
"""
ADA, GRACE, ALAN = 1000, 1001, 1002


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "board"
    made.mkdir()
    return made


Asks = Callable[..., tuple[int, str, str]]


@pytest.fixture
def ask(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Asks:
    """Runs ``class …`` as somebody: exit code, standard output, standard error."""

    def asks(*words: str, user: str = "ada") -> tuple[int, str, str]:
        uid, instructor = {"ada": (ADA, True), "grace": (GRACE, False)}[user]
        program = SERVE.format(tree=str(CHECKOUT), folder=str(folder), uid=uid, user=user, instructor=instructor)
        monkeypatch.setattr(client, "connect_to_board", lambda: started((sys.executable, "-c", program)))
        capsys.readouterr()
        code = cli.main(["class", *words])
        told = capsys.readouterr()
        return code, told.out, told.err

    return asks


@pytest.fixture
def marked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let pinning, a chapter with a setting, ask for the mark of the first chapter, about its second run."""
    course = classboard.load_course()
    first = course.chapters[0].prediction
    assert first is not None
    mark = dataclasses.replace(first, slot="again")
    chapters = tuple(dataclasses.replace(c, prediction=mark) if c.id == "pinning" else c for c in course.chapters)
    monkeypatch.setattr(classboard, "load_course", lambda: dataclasses.replace(course, chapters=chapters))


@pytest.fixture
def full(folder: Path, marked: None) -> Path:
    """Grace is stuck, Alan is not."""
    now = time.time()
    with BoardStore(folder) as store:
        guess = Guess(percentile="99.9", value_ns=40_000)
        chapter = PostedChapter("pinning", "compare", False, True, True, 2, guess)
        mine = Posted(
            "s", ("grace", "ilse"), "pinning", "compare", (chapter,), (run("r1", 50_000), again("r2", 30_000))
        )
        store.post(GRACE, "grace", mine, now - STUCK_S - 5)
        store.post(GRACE, "grace", mine, now)
        store.post(ALAN, "alan", work(run("a1", 9_000)), now)
        store.post(ALAN, "alan", work(run("a2", 90_000), step="plan"), now)
    return folder


def again(ident: str, p999: int) -> PostedRun:
    return dataclasses.replace(run(ident, p999, at="2026-01-01T11:00:00Z"), slot="again")


def test_the_board_of_a_class(ask: Asks, full: Path) -> None:
    code, out, err = ask("board")
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert "2 members: 1 stuck · 1 at work" in lines[0]
    grace = next(line for line in lines if "grace with ilse" in line)
    assert re.search(r"●✓ +4 compare +30 µs +30 µs +10 min$", grace)
    alan = next(line for line in lines if "alan" in line)
    assert re.search(r"4 plan +90 µs +9 µs$", alan)
    assert lines.index(grace) < lines.index(alan)
    assert lines[-1] == "Stuck: grace with ilse (10 min)"


def test_its_json_is_as_promised(ask: Asks, full: Path) -> None:
    code, out, _ = ask("board", "--json")
    told = json.loads(out)
    assert code == 0
    assert told["format_version"] == 1
    (host,) = told["hosts"]
    assert host.keys() >= {"host", "seen_at", "error"}
    assert host["error"] is None
    grace, alan = told["students"]
    assert {"id", "host", "chapter", "marks", "last_run", "best_run", "idle_s", "stuck"} <= grace.keys()
    assert (grace["id"], grace["people"], grace["chapter"]) == ("grace", ["grace", "ilse"], "pinning")
    assert grace["marks"] == {"pinning": {"setting": True, "curve": True}}
    assert grace["predictions"]["pinning"]["value_ns"] == 40_000
    assert (grace["stuck"], alan["stuck"]) == (True, False)
    assert grace["idle_s"] >= STUCK_S
    assert (grace["last_run"]["id"], grace["last_run"]["p99.9_ns"]) == ("r2", 30_000)
    assert (alan["last_run"]["id"], alan["best_run"]["id"]) == ("a2", "a1")


def test_a_member_in_the_queue_is_not_stuck(ask: Asks, full: Path) -> None:
    """As root's agent writes it down, read by the board's service."""
    root = Process(1, 1)
    state = TurnState(current_boot(HostRoot()) or "", 1, queue=(Waiting(GRACE, ("grace",), root, root, 0.0),))
    (full / "turns.json").write_text(json.dumps(to_plain(state)))
    out = ask("board")[1]
    assert "1 at work · 1 waiting" in out
    assert "tuck" not in out
    grace = next(one for one in json.loads(ask("board", "--json")[1])["students"] if one["id"] == "grace")
    assert (grace["stuck"], grace["group"]) == (False, "waiting")


def test_an_unknown_field_is_null_with_a_reason(ask: Asks, folder: Path) -> None:
    with BoardStore(folder) as store:
        store.post(GRACE, "grace", Posted("s"), time.time())
    (grace,) = json.loads(ask("board", "--json")[1])["students"]
    for name in ("chapter", "last_run", "best_run"):
        assert grace[name] is None
        assert grace["notes"][name]


def test_the_class_is_drawn_over_each_other_at_one_step(ask: Asks, folder: Path) -> None:
    now = time.time()
    with BoardStore(folder) as store:
        for n in range(12):
            first, second = run("m", 90_000 + n), again("a", 10_000 * (n + 1))
            store.post(2000 + n, f"s{n:02}", work(first, second), now)
    code, out, _ = ask("board", "--chapter", "pinning", "--step", "compare")
    assert code == 0
    assert "lowest p99.9: s00" in out
    assert re.search(r"p99.9: s00 +p50 100 ns +p99.9 10 µs", out)
    assert "middle p99.9: s05" in out
    assert "highest p99.9: s11" in out
    assert "p99.9 120 µs" in out
    assert "12 members: each member's newest run, as" in out
    # The greatest value is not posted, so none is claimed.
    assert all("max –" in line for line in out.splitlines() if " max " in line)
    early = ask("board", "--chapter", "pinning", "--step", "measure")[1]
    assert "p99.9 90 µs" in early
    assert "p99.9 120 µs" not in early
    assert ask("board", "--chapter", "isolation")[1] == "No member has measured here yet.\n"
    code, out, err = ask("board", "--chapter", "nosuch")
    assert (code, out) == (2, "")
    assert "there is no chapter 'nosuch'" in err


# Rights to see -------------------------------------------------------------------------------------------------------


def test_a_student_has_no_board_and_is_told_of_class_results(ask: Asks, full: Path) -> None:
    for words in (["board"], ["board", "--json"], ["board", "--csv"], ["board", "--machine", "--json"]):
        code, out, err = ask(*words, user="grace")
        assert (code, out) == (2, "")
        assert "only an instructor may see the board" in err
        assert "class results" in err


def test_a_students_results_are_their_own(ask: Asks, full: Path) -> None:
    for form in ([], ["--csv"], ["--json"]):
        code, out, _ = ask("results", *form, user="grace")
        assert code == 0
        assert "grace" in out
        assert "alan" not in out
    assert "alan" in ask("results", "--csv")[1]


def test_a_student_can_forget_only_their_own_results(ask: Asks, full: Path) -> None:
    for words in (["--forget", "alan"], ["--forget-all", "--yes"], ["--forget", "ada"]):
        code, out, err = ask("results", *words, user="grace")
        assert (code, out) == (2, "")
        assert "instructor" in err
    assert ask("results", "--forget", "grace", user="grace")[:2] == (0, "1 forgotten\n")
    assert "grace" not in ask("results", "--csv")[1]


def test_a_forgotten_row_is_gone_from_the_disk_and_the_rest_stays(ask: Asks, full: Path) -> None:
    assert b"ilse" in (full / FILE).read_bytes()
    assert ask("results", "--forget", "grace")[:2] == (0, "1 forgotten\n")
    assert all(b"ilse" not in file.read_bytes() and b"grace" not in file.read_bytes() for file in full.iterdir())
    for words in (["grace"], ["nobody", "--json"]):
        code, out, err = ask("results", "--forget", *words)
        assert (code, out) == (2, "")
        assert f"no member '{words[0]}' has" in err
        assert "; 'class results' lists" in err
    assert "alan" in ask("board")[1]
    assert ask("results", "--forget-all")[0] == 2
    assert ask("results", "--forget-all", "--yes")[:2] == (0, "1 forgotten\n")
    assert "no results have been sent yet" in ask("board")[1]


# The table -----------------------------------------------------------------------------------------------------------


def table(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_the_table_has_a_line_for_each_chapter(ask: Asks, full: Path) -> None:
    grace, alan = table(ask("results", "--csv")[1])
    assert (grace["user"], grace["people"], grace["chapter"], grace["step"]) == (
        "grace", "grace + ilse", "pinning", "compare",
    )  # fmt: skip
    assert (grace["done"], grace["setting"], grace["curve"], grace["hints"]) == ("0", "1", "1", "2")
    assert (grace["guess_percentile"], grace["guess_ns"], grace["guess_near"]) == ("99.9", "40000", "1")
    assert (grace["last_p99.9_ns"], grace["best_p99.9_ns"]) == ("30000", "30000")
    assert (alan["last_p99.9_ns"], alan["best_p99.9_ns"], alan["guess_near"]) == ("90000", "9000", "")


@pytest.mark.usefixtures("marked")
def test_the_table_has_runs_of_no_chapter_and_the_measured_value_of_each_guess(ask: Asks, folder: Path) -> None:
    now = time.time()
    with BoardStore(folder) as store:
        store.post(GRACE, "grace", Posted("s", runs=(run("own", 7_000, chapter=""),)), now)
        pair = run("own", 6_000, chapter=""), run("luck", 7_500, chapter="", at="2026-01-01T11:00:00Z")
        store.post(ALAN, "alan", work(run("a1", 9_000), again("a2", 8_000), *pair), now)
    first, second, alone, pinned = sorted(
        table(ask("results", "--csv")[1]), key=lambda line: (line["chapter"], line["user"])
    )
    found = ((first, "alan", "6000", "6000"), (second, "alan", "7500", "6000"), (alone, "grace", "7000", "7000"))
    for line, user, last, best in found:
        assert (line["user"], line["chapter"], line["last_p99.9_ns"], line["best_p99.9_ns"]) == (user, "", last, best)
        assert (line["percentile"], line["measured_at_guess_ns"]) == ("99.9", "")
    assert (pinned["chapter"], pinned["guess_ns"], pinned["measured_at_guess_ns"]) == ("pinning", "80000", "8000")


@pytest.mark.usefixtures("marked")
def test_times_of_an_emulated_machine_are_marked_and_judge_nothing(ask: Asks, folder: Path) -> None:
    with BoardStore(folder) as store:
        for uid, name, mark in ((GRACE, "grace", EMULATED), (ALAN, "alan", "")):
            runs = (run("a1", 30_000), again("a2", 79_000))
            store.post(uid, name, work(*(dataclasses.replace(one, mark=mark) for one in runs)), time.time())
    alan, grace = sorted(table(ask("results", "--csv")[1]), key=lambda line: line["user"])
    assert (grace["mark"], alan["mark"]) == (EMULATED, "")
    assert (grace["guess_near"], alan["guess_near"]) == ("", "1")
    assert (grace["last_ns"], grace["best_ns"], alan["best_ns"]) == ("79000", "", "30000")
    students = {one["id"]: one for one in json.loads(ask("board", "--json")[1])["students"]}
    assert (students["grace"]["last_run"]["mark"], students["alan"]["last_run"]["mark"]) == (EMULATED, "")
    assert (students["grace"]["best_run"], students["grace"]["notes"]["best_run"]) == (None, NO_VERDICT)
    marked = {line.split()[0]: EMULATED in line for line in ask("board")[1].splitlines() if "µs" in line}
    assert marked == {"grace": True, "alan": False}
    shown, _ = class_curves(_board_of(folder), "pinning", "compare")
    assert {one.curve.label: one.curve.origin for one in shown} == {"grace": EMULATED, "alan": ""}


def _board_of(folder: Path) -> Board:
    with BoardStore(folder) as store:
        return store.board("host", time.time())


def test_solved_scenarios_are_counted_on_the_board(ask: Asks, folder: Path) -> None:
    assert "solved" not in ask("board")[1]
    with BoardStore(folder) as store:
        solved = dataclasses.replace(work(run("a1")), scenarios=("crowd", "quota"))
        store.post(GRACE, "grace", solved, time.time())
        store.post(ALAN, "alan", work(run("a1")), time.time())
        with pytest.raises(UsageError, match=TOO_MUCH):
            store.post(ALAN, "alan", dataclasses.replace(solved, scenarios=("crowd",) * (MAX_SCENARIOS + 1)), 0)
    lines = {line.split()[0]: line.split()[-1] for line in ask("board")[1].splitlines() if line.split()}
    assert lines["grace"] == "2"
    assert lines["alan"] != "2"
    assert {line["user"]: line["scenarios"] for line in table(ask("results", "--csv")[1])} == {
        "grace": "2",
        "alan": "0",
    }
    students = {one["id"]: one["scenarios"] for one in json.loads(ask("board", "--json")[1])["students"]}
    assert students == {"grace": ["crowd", "quota"], "alan": []}


def test_a_chapter_of_spin_is_ranked_where_its_curves_differ(ask: Asks, folder: Path) -> None:
    """At p99.9 each reads the clock's own 30 ns."""

    def spun(ident: str, tail_ns: int) -> PostedRun:
        points = ((50.0, 20), (99.9, 30), (99.99, tail_ns // 2), (99.9999, tail_ns))
        return dataclasses.replace(run(ident, chapter="isolation"), workload="spin", points=points)

    def isolated(made: PostedRun, guess: Guess | None) -> Posted:
        chapter = PostedChapter("isolation", "compare", False, True, True, 0, guess)
        return Posted("s", (), "isolation", "compare", (chapter,), (made,))

    guess = Guess(percentile="99.99", value_ns=1_000)
    with BoardStore(folder) as store:
        for tail_ns in (90_000, 5_000, 40_000):
            store.post(GRACE, "grace", isolated(spun(f"g{tail_ns}", tail_ns), None), time.time())
            store.post(ALAN, "alan", isolated(spun(f"a{tail_ns}", tail_ns), guess), time.time())
    alan, grace = json.loads(ask("board", "--json")[1])["students"]
    for one, percentile, best in ((grace, 99.9999, 5_000), (alan, 99.99, 2_500)):
        assert (one["best_run"]["percentile"], one["best_run"]["value_ns"]) == (percentile, best)
        assert (one["last_run"]["p99.9_ns"], one["best_run"]["p99.9_ns"]) == (30, 30)
    assert re.search(r"40 µs +5 µs", ask("board")[1])
    with BoardStore(folder) as store:
        for n in range(9):  # the higher the middle, the lower the tail
            made = dataclasses.replace(spun(f"s{n}", 90_000), points=((99.9, 30 + n), (99.9999, 90_000 - n)))
            store.post(2000 + n, f"s{n}", isolated(made, None), time.time())
    curves = ask("board", "--chapter", "isolation")[1]
    assert re.search("lowest p99.9999: (alan|grace)", curves)
    assert "highest p99.9999: s0" in curves
    (line,) = (line for line in table(ask("board", "--csv")[1]) if line["user"] == "grace")
    assert (line["percentile"], line["last_ns"], line["best_ns"]) == ("99.9999", "40000", "5000")


def nulls(found: object, where: str = "") -> list[str]:
    """Return where in a JSON something is null and no notes beside it say why."""
    if isinstance(found, list):
        return [one for n, each in enumerate(found) for one in nulls(each, f"{where}.{n}")]
    if not isinstance(found, dict):
        return []
    said = found.get("notes", {})
    here = [f"{where}.{name}" for name, value in found.items() if value is None and not said.get(name)]
    return here + [one for name, value in found.items() for one in nulls(value, f"{where}.{name}")]


def test_each_null_of_the_gathered_json_has_its_reason(ask: Asks, gathered: Path) -> None:
    (gathered / "lab02" / "board.json").unlink()
    short = dataclasses.replace(run("short"), points=((50.0, 100),))
    with BoardStore(gathered.parent / "board") as store:
        store.post(GRACE, "grace", work(short), time.time())
        store.post(
            ALAN,
            "alan",
            Posted("s", (), None, "", (PostedChapter("tick", "look", False, False, False, 0, Guess("a")),)),
            time.time(),
        )
    for words in (["board", "--json"], ["collect", str(gathered), "--json"], ["results", "--json"]):
        left = nulls(json.loads(ask(*words)[1]))
        assert [one for one in left if not one.endswith(".error")] == [], words


FORMULAS = ("=HYPERLINK(1)", "+1", "-1", "@x", " =1", "\t=1", "\r=1", "\x00=1", "\u202e=1", "x=1,=2\n=3")


@pytest.mark.parametrize("word", FORMULAS)
def test_no_cell_is_a_formula(ask: Asks, folder: Path, word: str) -> None:
    with BoardStore(folder) as store:
        guess = Guess(choice=word, percentile=word, value_ns=1)
        chapters = (PostedChapter(word, word, False, False, False, 0, guess),)
        store.post(GRACE, word, Posted(word, (word,), word, word, chapters, (run(word, chapter=word),)), time.time())
    (line,) = table(ask("results", "--csv")[1])
    assert line["user"]
    for cell in line.values():
        assert not cell.startswith(("=", "+", "-", "@", "\t", "\r", " ")), cell
        assert cell.isprintable()


# Many machines -------------------------------------------------------------------------------------------------------


def status(**states: str) -> str:
    return json.dumps({"format_version": 1, "checks": [{"id": i, "state": s} for i, s in states.items()]})


@pytest.fixture
def gathered(ask: Asks, full: Path, tmp_path: Path) -> Path:
    """Two machines that answered well, as the playbook keeps it, one of them with a board."""
    place = tmp_path / "gathered"
    for host in ("lab01", "lab02"):
        (place / host).mkdir(parents=True)
        (place / host / "status.json").write_text(status(governor="ok", thp="info"))
        (place / host / "board.json").write_text(ask("board", "--machine", "--json")[1])
    return place


def test_collect_says_that_two_good_machines_need_no_change(ask: Asks, gathered: Path) -> None:
    code, out, err = ask("collect", str(gathered))
    assert (code, err) == (0, "")
    assert "Nothing to improve on 2 of 2 machines" in out
    stuck = out.splitlines()[-1]
    assert stuck.startswith("Stuck: ")
    assert all(f"grace with ilse on {host} (10 min)" in stuck for host in ("lab01", "lab02"))
    told = json.loads(ask("collect", str(gathered), "--json")[1])
    assert [host["host"] for host in told["hosts"]] == ["lab01", "lab02"]
    assert len(told["students"]) == 4
    assert {student["host"] for student in told["students"]} == {"lab01", "lab02"}
    assert all(row["well"] for row in told["fleet"])
    assert [line["host"] for line in table(ask("collect", str(gathered), "--csv")[1])] == [
        "lab01",
        "lab01",
        "lab02",
        "lab02",
    ]


def test_a_machine_with_something_to_improve_is_exit_code_1(ask: Asks, gathered: Path) -> None:
    (gathered / "lab02" / "status.json").write_text(status(governor="improve"))
    code, out, _ = ask("collect", str(gathered))
    assert code == 1
    assert re.search(r"governor +✓ +▲", out)


@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        (lambda place: [file.unlink() for file in place.iterdir()], "board.json is missing; status.json is missing"),
        (lambda place: (place / "board.json").unlink(), "board.json is missing"),
        (lambda place: (place / "board.json").write_text("{"), "board.json is not valid"),
        (lambda place: (place / "board.json").write_text("[]"), "the text holds no JSON object"),
        (lambda place: (place / "board.json").write_text('{"host": 7}'), "board.json: "),
        (lambda place: (place / "board.json").write_text("[" * 100_000), "board.json is not valid"),
        (lambda place: (place / "board.json").write_bytes(b"\xff\xfe"), "board.json is not valid"),
        (
            lambda place: (place / "board.json").write_text(
                re.sub(r'"at": "20\d\d-', '"at": "2001-', (place / "board.json").read_text(), count=1)
            ),
            "the newest board is of 2001-",
        ),
    ],
)
def test_a_silent_machine_is_told_and_the_others_are_shown(
    ask: Asks, gathered: Path, spoil: Callable[[Path], object], why: str
) -> None:
    spoil(gathered / "lab02")
    answered = "status.json" not in why and "since" not in why
    code, out, _ = ask("collect", str(gathered))
    assert code == 1
    (told_once,) = [line for line in out.splitlines() if line.startswith("lab02")]
    assert told_once.startswith("lab02: " if answered else "lab02: silent (")
    assert why in out
    assert "grace with ilse" in out
    told = json.loads(ask("collect", str(gathered), "--json")[1])
    one, other = told["hosts"]
    assert one["error"] is None
    assert other["seen_at"] is None
    assert why in other["error"]
    assert {student["host"] for student in told["students"]} == {"lab01"}


def test_the_whole_class_is_drawn_from_all_machines(ask: Asks, gathered: Path, folder: Path) -> None:
    """Two hosts with the same two members, one of whom is then called otherwise on the second."""
    second = gathered / "lab02" / "board.json"
    second.write_text(second.read_text().replace('"alan"', '"anna"'))
    code, out, err = ask("collect", str(gathered), "--chapter", "pinning", "--step", "compare")
    assert (code, err) == (0, "")
    for name in ("grace@lab01", "grace@lab02", "alan", "anna"):
        assert re.search(rf"p99.9: {name} |^. {name} ", out, re.MULTILINE), name
    assert not re.search(r"alan@|anna@| grace ", out)
    assert "4 members: each member's newest run" in out
    assert "governor" not in out, "the checks are another table"
    early = ask("collect", str(gathered), "--chapter", "pinning", "--step", "measure")[1]
    assert re.search(r"grace@lab01 .*p99.9 50 µs", early)
    assert re.search(r"grace@lab01 .*p99.9 30 µs", out)


def test_machines_with_a_stuck_member_come_first(ask: Asks, gathered: Path) -> None:
    first = gathered / "lab01" / "board.json"
    told = json.loads(first.read_text())
    for row in told["rows"]:
        row["group"] = "at work"
    first.write_text(json.dumps(told))
    lines = ask("collect", str(gathered))[1].splitlines()
    heads = [line.split()[0] for line in lines if re.match(r"lab0\d  20", line)]
    assert heads == ["lab02", "lab01"]
    assert lines[-1].startswith("Stuck: grace with ilse on lab02")
    assert lines[-1].endswith(" (10 min)")


def test_curves_ignore_the_status_and_name_silent_machines(ask: Asks, gathered: Path) -> None:
    (gathered / "lab01" / "status.json").write_text(status(governor="improve"))
    assert ask("collect", str(gathered), "--chapter", "pinning")[0] == 0
    (gathered / "lab02" / "board.json").unlink()
    code, out, _ = ask("collect", str(gathered), "--chapter", "pinning")
    assert code == 1
    assert out.splitlines()[0] == "lab02: silent (board.json is missing)"
    assert "2 members: " in out
    (gathered / "lab01" / "board.json").unlink()
    code, out, _ = ask("collect", str(gathered), "--chapter", "pinning")
    assert code == 1
    assert out.splitlines()[-1] == NONE_MEASURED


def test_collect_refuses_a_folder_without_gathered_results(ask: Asks, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for words, why in (
        ([], "give one folder"),
        ([str(tmp_path / "none")], "there is no folder"),
        ([str(tmp_path / "empty")], "this folder has no gathered results"),
    ):
        code, out, err = ask("collect", *words)
        assert (code, out) == (2, "")
        assert why in err


# The service ---------------------------------------------------------------------------------------------------------


def test_its_file_is_the_boards_own(ask: Asks, folder: Path) -> None:
    ask("board")
    assert (folder / FILE).stat().st_mode & 0o777 == 0o600


def test_two_services_and_many_kills_lose_no_post_that_was_answered(folder: Path) -> None:
    """Processes that write at once, each ended with SIGKILL after some posts that were answered."""
    words = """
import os, sys
sys.path.insert(0, {tree!r})
from pathlib import Path
from jitter_workshop.classroom.store import BoardStore
from tests.madeboard import run, work
n = 0
while True:
    with BoardStore(Path({folder!r})) as store:
        store.post({uid}, "s{uid}", work(run(f"r{{n:06}}", 10_000, chapter=f"c{{n % 5}}")), float(n))
    print(n, flush=True)
    n += 1
"""
    for attempt in range(2):
        writers = [
            subprocess.Popen(
                [sys.executable, "-c", words.format(tree=str(CHECKOUT), folder=str(folder), uid=uid)],
                stdout=subprocess.PIPE,
                text=True,
            )
            for uid in (1, 2)
        ]
        answered = {}
        for uid, writer in enumerate(writers, 1):
            assert writer.stdout is not None
            for _ in range(7 + attempt):
                answered[uid] = int(writer.stdout.readline())
        for writer in writers:
            writer.kill()
        for uid, writer in enumerate(writers, 1):
            assert writer.stdout is not None
            for line in writer.stdout.read().splitlines():
                answered[uid] = int(line)
            writer.stdout.close()
            writer.wait()
        with BoardStore(folder) as store:
            kept = {row.uid: int(row.posted.runs[0].id[1:]) for row in store.board("here", 0.0).rows}
            # One more may have been written and not answered.
            assert all(answered[uid] <= kept[uid] <= answered[uid] + 1 for uid in answered), (answered, kept)
    with sqlite3.connect(folder / FILE) as base:
        assert base.execute("pragma integrity_check").fetchone() == ("ok",)


@pytest.mark.skipif(os.geteuid() != 0, reason="mounts a small disk: needs root")
def test_a_full_disk(tmp_path: Path) -> None:
    """A real one, in a mount namespace of its own: what was there stays, and a post when there is room brings all."""
    words = f"""
import sys
sys.path.insert(0, {str(CHECKOUT)!r})
from pathlib import Path
from jitter_workshop.classroom.store import BoardStore
from jitter_workshop.errors import HostError
from tests.madeboard import run, work
folder = Path({str(tmp_path)!r})
big = work(*(run("r" + "x" * 150 + str(n), chapter="c" * 100 + str(n)) for n in range({2 * MAX_CHAPTERS})))
with BoardStore(folder) as store:
    store.post(1, "grace", work(run("first")), 0.0)
room = (folder / "ballast").open("wb", buffering=0)
try:
    while True:
        room.write(bytes(4096))
except OSError:
    pass
for _ in range(2):
    try:
        with BoardStore(folder) as store:
            store.post(1, "grace", big, 1.0)
        print("kept")
    except HostError as error:
        print(error.sentence())
with BoardStore(folder) as store:
    print([run.id for run in store.board("here", 1.0).rows[0].posted.runs])
(folder / "ballast").unlink()
room.close()
with BoardStore(folder) as store:
    store.post(1, "grace", work(run("later")), 2.0)
    print([run.id for run in store.board("here", 1.0).rows[0].posted.runs])
"""
    mount = f'mount -t tmpfs -o size=256k none {tmp_path} && exec {sys.executable} -c "$WORDS"'
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", mount],
        env={**os.environ, "WORDS": words},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    if "unshare" in done.stderr or "mount" in done.stderr:
        pytest.skip(f"no mount namespace is to be had here: {done.stderr.strip()}")
    told = done.stdout.splitlines()
    assert done.stderr == ""
    assert "the board cannot be written" in told[0]
    assert SENT_AGAIN in told[0]
    assert told[1] == told[0]
    assert told[2:] == ["['first']", "['later']"]
