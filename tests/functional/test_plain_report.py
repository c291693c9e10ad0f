"""The report line by line: shown, then written to a new file."""

from __future__ import annotations

import functools
import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from jitter_workshop.bench.cancel import CancelToken
from jitter_workshop.flow.reporting import draft
from jitter_workshop.flow.reporting.subject import ReportSubject
from jitter_workshop.model.run import SilentObserver
from jitter_workshop.presenter.report_preview import FOR_OTHERS
from tests import madereports
from tests.fakes import FakeWorkshop, open_workshop
from tests.talking import talk

rich = functools.cache(madereports.rich)


def measured() -> FakeWorkshop:
    workshop = open_workshop()
    walk = workshop.walk("baseline")
    walk.record("measure", workshop.measure(walk.measuring.request("measure"), SilentObserver(), CancelToken()))
    return workshop


def of_made_report(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(draft, "prepare_report", lambda *_, **__: None)
    monkeypatch.setattr(draft, "build_report", lambda subject: rich())


def test_a_report_is_shown_and_written_in_the_chosen_format(folder: Path) -> None:
    workshop = measured()
    said = talk(workshop, "r|json|q")
    (path,) = folder.iterdir()
    assert json.loads(path.read_text())["session_id"] == workshop.context.session.id
    assert f"Written: {path}\n" in said
    assert f"open it:   xdg-open {path}\n" in said
    assert f"fetch it:  scp {workshop.context.host.name}:{path} .\n" in said
    heads = ("THE REPORT:\n", "\nWHO TOOK THE TIME\n", "\nCHANGES\n", "\nRUNS\n", FOR_OTHERS)
    assert [said.index(head) for head in heads] == sorted(said.index(head) for head in heads)


def test_enter_writes_a_page_and_a_second_one_gets_another_name(folder: Path) -> None:
    workshop = measured()
    talk(workshop, "r||q")
    (first,) = folder.iterdir()
    assert first.suffix == ".html"
    before = first.read_bytes()
    with workshop.context.handle:
        talk(open_workshop(), "report||q")
    assert {path.name for path in folder.iterdir()} == {first.name, f"{first.stem}-2.html"}
    assert first.read_bytes() == before


def test_names_can_be_left_out_and_going_back_writes_nothing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    of_made_report(monkeypatch)
    workshop = measured()
    said = talk(workshop, "r|n|nonsense|json|q")
    assert "Names of hosts: lab03" in said
    assert "Unknown command 'nonsense'" in said
    (path,) = folder.iterdir()
    assert "lab03" not in path.read_text()
    path.unlink()
    talk(workshop, "r|b|q")
    assert not list(folder.iterdir())


@pytest.mark.parametrize("width", [30, 60, 80, 200])
def test_no_line_of_it_is_wider_than_the_terminal(width: int, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    of_made_report(monkeypatch)
    said = talk(measured(), "r|b|q", width=width)
    part = said[said.index("THE REPORT:") : said.index("WHAT OTHERS WILL SEE")]
    assert max(map(len, part.split("\n"))) < width
    assert "\x1b" not in part


def test_a_report_without_runs_is_refused(folder: Path) -> None:
    said = " ".join(talk(open_workshop(), "r|q").split())
    assert "has no runs to report on" in said
    assert not list(folder.iterdir())


def test_where_nothing_can_be_written_another_folder_is_offered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.chdir("/proc")
    monkeypatch.setattr(os, "access", lambda *_: True)
    workshop = measured()
    said = "".join(talk(workshop, "r|json|no|b|q").split())
    assert "cannotwrite/proc/" in said
    assert f"Entertries{home}" in said
    assert not list(home.iterdir())
    with workshop.context.handle:
        talk(open_workshop(), "r|json||q")
    assert len(list(home.iterdir())) == 1


def test_ctrl_c_stops_the_report_and_not_the_workshop(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def pressed(workshop: Any, progress: Any) -> ReportSubject:
        progress("explaining", 0, 2)
        os.kill(os.getpid(), signal.SIGINT)
        progress("explaining", 1, 2)
        raise AssertionError("it was stopped")

    monkeypatch.setattr(draft, "subject_of", pressed)
    before = signal.getsignal(signal.SIGINT)
    said = talk(measured(), "r|status|q")
    assert "Stopped: r begins anew." in said
    assert "guesses are kept" in said
    assert signal.getsignal(signal.SIGINT) == before
