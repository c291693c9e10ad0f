"""report from the command line: where it goes, what it never touches, and what each wrong input is told."""

from __future__ import annotations

import errno
import json
import os
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from jitter_workshop import cli, paths
from jitter_workshop.commands import report as verb
from jitter_workshop.flow import attribution as causes
from jitter_workshop.flow.reporting import build as reporting
from jitter_workshop.flow.reporting import files as reporting_files
from jitter_workshop.flow.reporting import prepare as preparing
from jitter_workshop.flow.reporting.draft import FORMATS
from jitter_workshop.flow.reporting.subject import subject_of
from jitter_workshop.model.run import Stall
from jitter_workshop.session.store import SessionStore
from tests import hosttrees, madereports, reportschema
from tests.madereports import HOSTILE
from tests.madesessions import make_session
from tests.madetrace import OTHER, TIDS, switch, tick, trace_of

MakeRun = Callable[..., tuple[Any, Any]]
A, B = "20260101-000000-aaaa", "20260102-000000-bbbb"
LABEL = 'it\'s "mine"; rm -rf $HOME `x`'


@pytest.fixture
def session(make_run: MakeRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two runs of the ring in the current session; its folder. The working directory is an empty one."""
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    with SessionStore().create("Monday & Söhne", "lab03") as opened:
        opened.add_run(*make_run([[100] * 1000 + [3_000_000] * 100], run_id=A, label=LABEL))
        opened.add_run(*make_run([[100] * 1000 + [4_000] * 100], run_id=B, label="pinned", preset=None))
        return opened.folder


@pytest.fixture
def say(capfd: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    def run(*words: str) -> tuple[int, str, str]:
        code = cli.main(words)
        out, err = capfd.readouterr()
        return code, out, err

    return run


Say = Callable[..., tuple[int, str, str]]


def files() -> list[str]:
    return sorted(path.name for path in Path.cwd().iterdir())


def test_a_page_in_this_folder_has_a_name_that_describes_it(session: Path, say: Say) -> None:
    code, out, err = say("report")
    (name,) = files()
    assert (code, out) == (0, f"{name}\n")
    assert name.startswith("jitter-workshop-monday-sohne-20")
    assert name.endswith(".html")
    assert Path(name).read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    assert err == ""


def test_json_fits_its_schema_and_says_how_to_get_there_again(session: Path, say: Say) -> None:
    code, out, _ = say("report", "--format", "json", "-o", "-")
    assert code == 0
    value = json.loads(out)
    whole = json.loads(reportschema.ASSET.read_text(encoding="utf-8"))
    assert reportschema.problems(value, whole, whole) == []
    assert files() == []
    assert (value["format_version"], value["session_name"], value["recorded"]) == (1, "Monday & Söhne", "")
    assert [run["label"] for run in value["runs"]] == [LABEL, "pinned"]
    assert value["chapters"] == value["proofs"] == []
    assert not [point for point in value["still_open"] if point["kind"] == "chapter"]
    assert value["after"] is None
    assert "lab03" in value["notes"]["after"]
    lines = [shlex.split(one["command"]) for one in value["commands"]]
    assert all(line[0] == "jitter-workshop" for line in lines)
    (asked,) = (line for line in lines if line[1] == "measure" and LABEL in line)
    assert asked == ["jitter-workshop", "measure", "--label", LABEL, "--placement", "none"]
    assert ["jitter-workshop", "measure", "--label", "pinned", "--duration", "0.25", "--placement", "none"] in lines


def test_every_command_of_a_report_is_one_that_this_program_takes(session: Path, say: Say) -> None:
    from importlib import import_module

    from jitter_workshop.commands.common.base import VERBS, verb_parser

    _, out, _ = say("report", "--format", "json", "-o", "-")
    for one in json.loads(out)["commands"]:
        _, name, *words = shlex.split(one["command"])
        assert name in VERBS
        module = import_module(f"jitter_workshop.commands.{name.replace('-', '_')}")
        parser = verb_parser(name, module.__doc__)
        module.add_arguments(parser)
        parser.parse_args(words)


@pytest.mark.parametrize("label", [*HOSTILE, "--force", "-- reboot"])
def test_a_hostile_label_stays_one_word_on_one_line(make_run: MakeRun, session: Path, say: Say, label: str) -> None:
    with SessionStore().open("@1") as opened:
        opened.add_run(*make_run(run_id="20260103-000000-cccc", label=label))
    _, out, _ = say("report", "--format", "json", "-o", "-")
    lines = [one["command"] for one in json.loads(out)["commands"]]
    assert all(line.isprintable() for line in lines)
    assert all(word != "rm" for line in lines for word in shlex.split(line))
    measured = [shlex.split(line) for line in lines if shlex.split(line)[1] == "measure"]
    assert len(measured) == 3
    assert all(len(words) <= 8 for words in measured)
    assert not [words for words in measured if "--force" in words]


def test_an_edited_session_puts_no_command_into_a_line(make_run: MakeRun, session: Path, say: Say) -> None:
    applied = ({"id": "--", "value": ""}, {"id": "reboot", "value": ""})
    options = {"noise": "--evidence", "preset": "-- reboot", "workload": "--help"}
    with SessionStore().open("@1") as opened:
        opened.add_run(*make_run(run_id="20260103-000000-cccc", applied=applied))
        opened.add_run(*make_run(run_id="20260104-000000-cccc", applied=({"id": "thp", "value": "never"},)))
        opened.add_run(*make_run(run_id="20260105-000000-cccc", **options))
        opened.add_proof(madereports.made_proof(subject="-- reboot"))
    _, out, _ = say("report", "--format", "json", "-o", "-")
    lines = [shlex.split(one["command"]) for one in json.loads(out)["commands"]]
    assert all("--" not in line and "reboot" not in line for line in lines)
    assert ["jitter-workshop", "apply", "thp=never"] in lines
    assert not [line for line in lines if line[1] == "prove"]


def test_nothing_is_overwritten_unasked_and_nothing_half_written_is_left(session: Path, say: Say) -> None:
    Path("mine.html").write_text("mine")
    code, out, err = say("report", "-o", "mine.html")
    assert (code, out) == (2, "")
    assert err.startswith("jitter-workshop: mine.html exists already; ")
    assert len(err.splitlines()) == 1
    assert "replace it with --force" in err
    assert "with -o" in err
    assert Path("mine.html").read_text() == "mine"
    code, out, _ = say("report", "-o", "mine.html", "--force")
    assert (code, out) == (0, "mine.html\n")
    assert Path("mine.html").stat().st_size > 10_000
    assert files() == ["mine.html"]


@pytest.mark.parametrize("force", [[], ["--force"]])
def test_a_link_is_never_followed(session: Path, say: Say, force: list[str]) -> None:
    Path("secret").write_text("of others")
    Path("report.html").symlink_to("secret")
    Path("dangling.html").symlink_to("nothing")
    for name in ("report.html", "dangling.html"):
        code, out, err = say("report", "-o", name, *force)
        assert (code, out) == (2, "")
        assert f"{name} is a link to" in err
    assert Path("secret").read_text() == "of others"
    assert not Path("nothing").exists()


def test_where_nothing_can_be_written_one_line_says_why(session: Path, say: Say) -> None:
    Path("folder").mkdir()
    Path("file").write_text("")
    os.mkfifo("pipe.html")
    for target, why in {
        "folder": "is a folder",
        "folder/": "is a folder",
        "missing/report.html": "make the folder first",
        "file/report.html": "not a directory",
        "pipe.html": "not a regular file",
        "n" * 300: "choose a shorter name",
        "..": "is not a file name",
        "": "-o names no file",
    }.items():
        code, out, err = say("report", "--format", "json", "-o", target)
        assert (code, out) == (2, "")
        assert why in err, target
        assert err.count("\n") == 1
    assert files() == ["file", "folder", "pipe.html"]


def test_an_obstacle_to_writing_is_told_before_any_work(
    session: Path, say: Say, monkeypatch: pytest.MonkeyPatch
) -> None:
    def built(*_: object, **__: object) -> None:
        raise AssertionError("the report was made")

    assert say("report", "--format", "json")[0] == 0
    monkeypatch.setattr(preparing, "prepare_report", built)
    for words in (["-o", "missing/x.html"], ["--format", "json"], ["-o", "."]):
        code, out, _ = say("report", *words)
        assert (code, out) == (2, "")


def test_a_full_disk_leaves_nothing(session: Path, say: Say, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("report.md").write_text("old")

    def full(handle: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(reporting_files.os, "fsync", full)
    code, out, err = say("report", "--format", "json", "-o", "report.md", "--force")
    assert (code, out) == (2, "")
    assert "no space left on device;" in err
    assert "the disk is full" in err
    assert files() == ["report.md"]
    assert Path("report.md").read_text() == "old"


def test_without_runs_there_is_nothing_to_report(say: Say, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    code, out, err = say("report")
    assert (code, out) == (2, "")
    assert "there is no session yet" in err
    SessionStore().create("empty", "lab").close()
    for words in (["report"], ["report", "--format", "json", "-o", "-"], ["report", "--session", "empty"]):
        code, out, err = say(*words)
        assert (code, out) == (2, "")
        assert "session empty has no runs" in err
        assert "measure first" in err
    assert [path for path in tmp_path.iterdir() if path.suffix == ".html"] == []


def test_report_refuses_invalid_options(session: Path, say: Say) -> None:
    for words, why in (
        (["--format", "pdf"], "invalid choice"),
        (["-o", "report.pdf"], "unknown format 'pdf'"),
        (["-o", "-", "--force"], "--force is only for files"),
        (["--run", "nobody"], "there is no run nobody"),
        (["--run"], "expected at least one argument"),
        (["--session", "nobody"], "there is no session nobody"),
        (["--course", "nowhere"], "there is no folder"),
        (["extra"], "unrecognized arguments"),
    ):
        code, out, err = say("report", *words)
        assert (code, out) == (2, "")
        assert why in err
    assert files() == []


def test_only_the_runs_that_were_picked(session: Path, say: Say) -> None:
    code, out, _ = say("report", "--run", "pinned", "--format", "json", "-o", "-")
    value = json.loads(out)
    assert code == 0
    assert [run["id"] for run in value["runs"]] == [B]
    assert value["chapters"] == value["proofs"] == value["changes"] == value["events"] == []
    assert (value["before"], value["after"]) == (None, None)
    assert value["commands"][-1]["command"].endswith(f"--run {B}")


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_is_made(session: Path, make_run: MakeRun, say: Say, name: str) -> None:
    make_session(paths.sessions_dir(), 2).close()
    if name == "perfetto":
        pytest.importorskip("perfetto", reason="the extra 'perfetto' is not installed")
        with SessionStore().open("@1") as opened:
            run, blocks = make_run([[100] * 1000], run_id="20991231-000000-cccc", name="spin_gap", workload="spin")
            opened.add_run(run, blocks, trace=trace_of(tick(50_000, 4_000), ()))
    code, out, err = say("report", "--format", name, "--run", "@1")
    assert code == 0, err
    assert Path(out.strip()).stat().st_size > 100
    assert out.strip().endswith(FORMATS[name].ending)
    assert set(verb.NAMES) == set(FORMATS)


def test_the_name_of_the_file_says_which_format(session: Path, say: Say) -> None:
    assert say("report", "-o", "x.json")[0] == 0
    assert json.loads(Path("x.json").read_text())["format_version"] == 1
    assert say("report", "-o", "x.HTM")[0] == 0
    assert Path("x.HTM").read_text(encoding="utf-8").startswith("<!DOCTYPE html>")


def test_the_causes_of_stolen_time_are_computed_once(
    session: Path, make_run: MakeRun, say: Say, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ("", "thief")
    events = [
        switch(10_000, TIDS["sampler"], OTHER, stays=True, names=names),
        switch(30_000, OTHER, TIDS["sampler"], names=("thief", "")),
        *tick(50_000, 4_000),
    ]
    stalls = (Stall(0, "sampler", 1, 9_000, 31_000, 1), Stall(0, "sampler", 1, 50_000, 54_000, 1))
    with SessionStore().open("@1") as opened:
        run, blocks = make_run([[100] * 1000], run_id="20260103-000000-cccc", name="spin_gap", workload="spin")
        opened.add_run(run, blocks, trace=trace_of(events, stalls))
        assert reporting.build_report(subject_of(opened)).culprits[0].evidence == "trace"
    kept = session / "runs" / "20260103-000000-cccc" / causes.KEPT_FILE
    assert not kept.exists(), "building a report writes nothing"
    first = json.loads(say("report", "--format", "json", "-o", "-")[1])["culprits"]
    assert [(one["run"], one["evidence"]) for one in first] == [("20260103-000000-cccc", "trace")]
    assert {"kind": "task", "name": "thief"}.items() <= first[0]["report"]["causes"][0].items()

    def again(*_: object) -> None:
        raise AssertionError("explained twice")

    with monkeypatch.context() as patch:
        patch.setattr(causes, "explain", again)
        assert json.loads(say("report", "--format", "json", "-o", "-")[1])["culprits"] == first
    for damage in (b"", b"{}", b'{"made_by": "another"}', kept.read_bytes()[:-40], b"[" * 100_000):
        kept.write_bytes(damage)
        assert json.loads(say("report", "--format", "json", "-o", "-")[1])["culprits"] == first


def test_of_a_recorded_host_it_says_so(
    say: Say, host_tree: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    tree = host_tree(next(iter(hosttrees.EVERY)))
    code, out, err = say("report", "--root", str(tree))
    assert (code, out) == (2, "")
    assert "no session of this recorded host" in err


def test_for_others_it_names_no_host(session: Path, say: Say) -> None:
    code, out, _ = say("report", "--private", "--format", "json", "-o", "-")
    assert code == 0
    assert "lab03" not in out
    assert json.loads(out)["private"] is True
