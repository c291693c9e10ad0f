"""``sessions import REPORT.html``: the session comes back, or one line says why not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import cast

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jitter_workshop.cli import main
from jitter_workshop.commands import sessions
from jitter_workshop.report import html as page
from jitter_workshop.session import archive, reportfile
from jitter_workshop.session.archive import BroughtBack, Unpacked
from jitter_workshop.session.store import SessionStore
from tests import madereports
from tests.madeup import make_run
from tests.unit.test_session_archive import content_of

SAMPLES = Path(__file__).parents[1] / "imports"


@pytest.fixture
def report(tmp_path: Path) -> Path:
    """A report with a session of two runs in it; that session lies elsewhere."""
    with SessionStore(tmp_path / "theirs").create("monday <b>", "lab03") as opened:
        for number in (1, 2):
            opened.add_run(*make_run([[100] * 500 + [70_000] * 20] * 2, run_id=f"20260101-00000{number}-aaaa"))
        folder = opened.folder
    path = tmp_path / "report.html"
    path.write_text(page.html_page(madereports.bare(), archive.pack_session(folder)), encoding="utf-8")
    return path


def theirs(report: Path) -> Path:
    return next((report.parent / "theirs").glob("2*"))


def ours() -> dict[str, dict[str, bytes]]:
    """Every session here with its files."""
    folder = SessionStore().folder
    return {p.name: content_of(p) for p in folder.iterdir() if p.is_dir()} if folder.is_dir() else {}


def test_a_session_comes_back_from_its_report_bit_for_bit(report: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sessions", "import", str(report)]) == 0
    said = capsys.readouterr().out
    assert "monday <b>" in said
    assert "back with 2 runs, bit for bit" in said
    assert ours() == {theirs(report).name: content_of(theirs(report))}
    assert main(["sessions", "import", str(report)]) == 0
    assert "exists here already" in capsys.readouterr().out
    assert len(ours()) == 1


def test_its_json(report: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sessions", "import", str(report), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    (back,) = told["brought_back"]
    assert [one["id"] for one in told["sessions"]] == [back["session"]] == [theirs(report).name]
    assert (back["runs"], back["already_here"], back["old_id"], back["page_as_written"]) == (2, False, None, True)
    assert (back["left_out"], back["compressed_anew"], told["imported"]) == ([], [], [])


def test_another_session_of_its_id_is_left_as_it_is(report: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sessions", "import", str(report)]) == 0
    ident = theirs(report).name
    with SessionStore().open(ident) as opened:
        opened.add_run(*make_run(run_id="20260101-000009-aaaa"))
    before = ours()[ident]
    assert main(["sessions", "import", str(report)]) == 0
    assert f"Another session here has the id {ident} already" in capsys.readouterr().out
    assert ours()[ident] == before
    (new,) = set(ours()) - {ident}
    assert SessionStore().find(new).name == "monday <b> (imported)"


def test_edited_sentences_of_a_report_leave_its_data_unchanged(
    report: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    report.write_text(report.read_text().replace("Nothing was proven", "All was proven"))
    assert main(["sessions", "import", str(report)]) == 0
    assert "the data are unchanged" in capsys.readouterr().out
    assert ours() == {theirs(report).name: content_of(theirs(report))}


@pytest.mark.parametrize(
    "front",
    [
        b"\xef\xbb\xbf",
        b"<!-- saved from url=(0014)about:internet -->\r\n",
        b"\xef\xbb\xbf\n<!-- saved from url=(0027)https://example.com/a.html -->\n",
    ],
)
def test_bytes_in_front_of_a_report_do_not_change_its_import(
    front: bytes, report: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    report.write_bytes(front + report.read_bytes())
    assert main(["sessions", "import", str(report)]) == 0
    said = capsys.readouterr().out
    assert "back with 2 runs" in said
    assert "was changed" not in said
    words = front + b"<p>All was proven</p>" + report.read_bytes().removeprefix(front)
    assert not reportfile.archive_in(words).page_as_written


def test_runs_that_are_not_in_it_are_told(report: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A session that lists runs which a report does not have is not said to be whole."""
    folder = theirs(report)
    told = json.loads((folder / "session.json").read_bytes())
    told["runs"] += [f"20260101-00001{number}-bbbb" for number in range(5)]
    (folder / "session.json").write_bytes(json.dumps(told).encode())
    report.write_text(page.html_page(madereports.bare(), archive.pack_session(folder)), encoding="utf-8")
    assert main(["sessions", "import", str(report)]) == 0
    said = capsys.readouterr().out
    assert "5 runs that the session lists were not in the report: 20260101-000010-bbbb, " in said
    assert "back with 2 runs" in said


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"<!doctype html><p>hello", "did not write"),
        (b"<HTML>", "did not write"),
        (page.html_page(madereports.bare(), None).encode(), "without raw data"),
    ],
)
def test_other_pages_are_refused(content: bytes, told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "x.html"
    path.write_bytes(content)
    assert main(["sessions", "import", str(path)]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert told in err
    assert err.count("\n") == 1
    assert ours() == {}


@pytest.mark.parametrize("words", [["--unit", "us"], ["--label", "x"], ["--session", "y"]])
def test_a_report_takes_no_names(words: list[str], report: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sessions", "import", str(report), *words]) == 2
    assert "restores its whole session" in capsys.readouterr().err
    assert ours() == {}


def test_a_mistake_in_another_file_leaves_nothing_half_done(report: Path, tmp_path: Path) -> None:
    bad = tmp_path / "bad.txt"
    bad.write_text("nothing")
    assert main(["sessions", "import", str(report), str(bad)]) == 2
    assert ours() == {}


def test_a_report_and_a_curve_together(report: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with SessionStore().create("mine", "here"):
        pass
    assert main(["sessions", "import", str(report), str(SAMPLES / "oslat.txt")]) == 0
    said = capsys.readouterr().out
    assert "back with 2 runs" in said
    assert "Kept in session mine" in said
    with SessionStore().open("mine") as opened:
        assert len(opened.imports()) == 1


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_every_changed_file_is_read_or_refused_in_a_line(
    data: st.DataObject, report: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = report.read_bytes()
    first = whole.index(b"<!-- jitter")
    place = data.draw(st.integers(first, len(whole) - 1) | st.integers(0, len(whole) - 1))
    length = data.draw(st.integers(0, 40))
    path = report.with_name("changed.html")
    path.write_bytes(whole[:place] + data.draw(st.binary(max_size=40)) + whole[place + length :])
    code = main(["sessions", "import", str(path)])
    out, err = capsys.readouterr()
    assert code in (0, 2)
    if code == 2:
        assert out == ""
        assert err.count("\n") == 1
    assert set(ours()) <= {theirs(report).name}
    for found in ours().values():
        assert found == content_of(theirs(report))


def test_left_out_files_do_not_come_back_and_the_rest_is_bit_for_bit() -> None:
    unpacked = cast(Unpacked, None)  # what is said needs none of it
    left = archive.LeftOut("runs/a/trace", 5, "too large")
    back = BroughtBack("20260101-000000-aaaa", "monday", 112, False, "", (left,))
    said = " ".join(sessions.page_lines(sessions.UnpackedReport("report.html", unpacked, True), back))
    assert "is back with 112 runs" in said
    assert "bit for bit as far as the report contains it." in said
    assert "lacks 1 file of the session" in said
