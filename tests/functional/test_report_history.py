"""The changes that a workshop and the verbs make to a made host are in the session's history and in its report."""

from __future__ import annotations

import dataclasses
import io
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from jitter_workshop import cli
from jitter_workshop.agent.client import AgentClient
from jitter_workshop.flow.host_ops import agent_connection as connection_module
from jitter_workshop.flow.host_ops import apply as verbs
from jitter_workshop.flow.host_ops.change_log import ChangeLog
from jitter_workshop.flow.reporting import build as reporting
from jitter_workshop.flow.reporting.host import GONE
from jitter_workshop.flow.reporting.subject import subject_of
from jitter_workshop.host.root import HostRoot
from jitter_workshop.model.change import Restored, RestoreResult
from jitter_workshop.model.report import ReportDocument
from jitter_workshop.session import history
from jitter_workshop.session.store import SessionStore
from tests import hosttrees, livehost, madecourse, tuned_tree
from tests.fake_agent_connection import LiveTree
from tests.fakes import FakeWorkshop
from tests.functional.test_agent_client import command
from tests.madeup import make_run

HOST = "a-host-in-a-class"


def told(folder: Path) -> list[tuple[str, str, str, bool]]:
    events, notices = history.read_history(folder)
    assert notices == ()
    return [(e.did, e.tunable, e.chapter, e.kept) for e in events]


# -- in the workshop --------------------------------------------------------------------------------------------------


@pytest.fixture
def live(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeWorkshop]:
    """The workshop on a made host, with the real agent session and a real agent, and its session's diary."""
    tree = tuned_tree.make(tmp_path / "tree")
    name = (tree / "proc/sys/kernel/hostname").read_text().strip()
    SessionStore().create(livehost.SESSION, name).close()
    workshop = livehost.open_live(tree, madecourse.write(tmp_path / "course"), monkeypatch)
    livehost.give_agent(workshop, tree, monkeypatch)
    workshop.context.agent_connection.change_log = ChangeLog(workshop.context.handle, LiveTree(tree))
    workshop.context.handle.add_run(*make_run(host={"name": name, "boot_id": hosttrees.BOOT_ID}))
    yield workshop
    workshop.close()


def report(workshop: FakeWorkshop) -> ReportDocument:
    return reporting.build_report(subject_of(workshop))


def test_a_chapter_that_was_applied_and_left(live: FakeWorkshop) -> None:
    live.walk(live.course.chapters[0].id).apply()
    folder = live.context.handle.folder
    ident = live.course.chapters[0].id
    before, _ = history.first(folder)
    assert before is not None
    assert before.applied == ()
    applied = [e for e in told(folder) if e[0] == "applied"]
    assert applied
    assert {e[2] for e in applied} == {ident}
    document = report(live)
    assert {c.fate for c in document.changes} == {"standing"}
    assert [p.kind for p in document.still_open][: len(applied)] == ["standing"] * len({e[1] for e in applied})
    live.close()
    given = [e for e in told(folder) if e[0] == "restored"]
    assert len(given) == len(applied)
    after, _ = history.last(folder)
    assert after is not None
    assert after.applied == ()
    with SessionStore().open(livehost.SESSION) as session:
        live.context.handle = session
        document = report(live)
    assert {c.fate for c in document.changes} == {"restored"}
    assert {c.chapter for c in document.changes} == {ident}
    assert not [p for p in document.still_open if p.kind == "standing"]


def test_kept_settings_are_told_as_kept(live: FakeWorkshop) -> None:
    live.walk(live.course.chapters[0].id).apply()
    live.context.agent_connection.keep()
    assert "kept" in {c.fate for c in report(live).changes}
    live.close()
    folder = live.context.handle.folder
    assert "restored" not in {e[0] for e in told(folder)}


def test_settings_that_a_killed_agent_restored_are_told_as_gone(live: FakeWorkshop) -> None:
    live.walk(live.course.chapters[0].id).apply()
    agent = live.context.agent_connection._agent
    assert agent is not None
    agent.close()  # as after a kill: the agent restores by itself, and no program is there to be told
    live.context.agent_connection._agent = None
    document = report(live)
    assert {c.fate for c in document.changes} == {"gone"}
    assert all(GONE in c.text for c in document.changes)


def test_a_proof_marks_its_writes_and_is_folded(live: FakeWorkshop) -> None:
    chapter, change_log = live.walk(live.course.chapters[0].id), live.context.agent_connection.change_log
    chapter.apply()
    with change_log.during(chapter.chapter.id, "20260101-000000-beef"):
        chapter.restore()
        chapter.apply()
        chapter.restore()
    events, _ = history.read_history(live.context.handle.folder)
    assert {e.proof for e in events} == {"", "20260101-000000-beef"}
    document = report(live)
    assert {c.proof for c in document.changes} == {""}
    assert {c.fate for c in document.changes} == {"restored"}
    assert "within proofs" in document.notes["changes"]


# -- by verbs ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def say(tree: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Callable[..., int]:
    livehost.give_verbs(tree, monkeypatch, lambda **_: AgentClient(command(tree)))
    for module in (connection_module, verbs):
        monkeypatch.setattr(module, "HostRoot", lambda *_: LiveTree(tree))
    monkeypatch.setattr("sys.stdin", io.StringIO())

    def run(*words: str) -> int:
        code = cli.main(words)
        capfd.readouterr()
        return code

    return run


def test_verbs_write_their_changes_down(say: Callable[..., int], tree: Path) -> None:
    with SessionStore().create("verbs", HOST) as session:
        folder = session.folder
    assert say("apply", "thp=never", "--cpus", "2-3", "--yes") == 0
    assert told(folder) == [("applied", "thp", "", True)]
    assert history.first(folder)[0] is not None
    assert say("restore", "thp") == 0
    assert told(folder)[1:] == [("restored", "thp", "", False)]
    assert say("apply", "thp=never", "--cpus", "2-3", "--yes", "--", "true") == 0
    assert told(folder)[2:] == [("applied", "thp", "", False), ("restored", "thp", "", False)]
    last, _ = history.last(folder)
    assert last is not None


def test_an_open_workshop_does_not_prevent_entries_in_the_history(say: Callable[..., int], tree: Path) -> None:
    with SessionStore().create("verbs", HOST) as session:
        assert say("apply", "thp=never", "--cpus", "2-3", "--yes") == 0
        assert [e[0] for e in told(session.folder)] == ["applied"]


def test_without_a_session_nothing_is_written_down_and_nothing_is_kept_from_happening(
    say: Callable[..., int], tree: Path
) -> None:
    assert say("apply", "thp=never", "--cpus", "2-3", "--yes") == 0
    assert say("restore") == 0
    assert SessionStore().list() == ((), ())


def test_a_history_that_cannot_be_written_is_told_and_no_more(
    tree: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], say: Callable[..., int]
) -> None:
    with SessionStore().create("verbs", HOST) as session:
        (session.folder / history.FILE).mkdir()
    capfd.readouterr()
    assert cli.main(["apply", "thp=never", "--cpus", "2-3", "--yes"]) == 0
    assert "this host are not logged" in capfd.readouterr().err


def test_a_recorded_host_has_no_diary(tmp_path: Path, tree: Path) -> None:
    with SessionStore().create("recorded", HOST, recorded=True) as session:
        change_log = ChangeLog(session, HostRoot(tree))
        change_log.begin()
        change_log.end()
        assert history.first(session.folder)[0] is None


def test_the_status_of_a_live_host_is_kept_before_the_first_and_after_the_last() -> None:
    with SessionStore().create("live", HOST) as session:
        change_log = ChangeLog(session)
        change_log.end()  # nothing was done yet: there is nothing to be after
        assert history.last(session.folder)[0] is None
        change_log.begin()
        first, _ = history.first(session.folder)
        assert first is not None
        assert first.checks
        assert first.boot_id == Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        ChangeLog(session).begin()
        assert history.first(session.folder)[0] == first
        change_log.end()
        last, _ = history.last(session.folder)
        assert last is not None
        assert last.at > first.at
        assert [check.id for check in last.checks] == [check.id for check in first.checks]


def test_a_session_of_a_newer_version_is_not_written_to(tmp_path: Path) -> None:
    with SessionStore().create("newer", HOST) as session:
        session._session = dataclasses.replace(session._session, format_version=99)
        change_log = ChangeLog(session)
        change_log.begin()
        change_log.restored(RestoreResult((Restored("thp", "/sys/thp", "never", "madvise"),), (), False))
        assert not (session.folder / history.FILE).exists()
        assert history.first(session.folder)[0] is None
