"""Sessions and runs on disk: whole or not there, found by name, safe against damage, full disks and second writers."""

from __future__ import annotations

import dataclasses
import errno
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jitter_workshop.errors import SessionError, UsageError
from jitter_workshop.model.session import ChapterProgress, Guess
from jitter_workshop.model.text import LABEL
from jitter_workshop.session import checked, files, hlog, ids
from jitter_workshop.session import store as store_module
from jitter_workshop.session.store import SessionStore
from jitter_workshop.stats import histogram as hg

MakeRun = Callable[..., tuple[Any, Any]]


@pytest.fixture
def store(tmp_path: Path) -> SessionStore:
    return SessionStore(tmp_path / "sessions")


def test_an_empty_store_is_read_without_making_folders(store: SessionStore) -> None:
    assert store.list() == ((), ())
    assert store.current() is None
    assert not store.folder.exists()


def test_progress_and_runs_come_back(store: SessionStore, make_run: MakeRun) -> None:
    run, blocks = make_run()
    with store.create("monday", "lab03") as opened:
        progress = ChapterProgress(step="compare", prediction=Guess(percentile="99.9", value_ns=5), hints=1)
        opened.save(dataclasses.replace(opened.session, chapters={"baseline": progress}, current_chapter="baseline"))
        opened.add_run(run, blocks)
    with store.open("monday") as again:
        assert again.session.chapters == {"baseline": progress}
        assert again.session.runs == (run.id,)
        assert again.runs() == (run,)
        assert again.notices == []
        whole = again.histogram(run.id, "accumulator_transit")
        assert whole.total_count == 6
        assert again.curve(run).points[-1].value_ns == 70_000
    assert oct((store.folder / again.session.id / "session.json").stat().st_mode)[-3:] == "600"


def test_merged_histograms_equal_the_blocks_added_up(store: SessionStore, make_run: MakeRun) -> None:
    run, blocks = make_run()
    with store.create("s", "h") as opened:
        opened.add_run(run, blocks)
        merged = hg.non_zero(opened.histogram(run.id, "accumulator_transit"))
        (store.folder / opened.session.id / "runs" / run.id / "merged.hlog").unlink()
        assert hg.non_zero(opened.histogram(run.id, "accumulator_transit")) == merged
        with pytest.raises(SessionError, match="missing"):
            opened.histogram(run.id, "journaller_transit")


def test_saving_an_older_copy_of_the_session_loses_no_run(store: SessionStore, make_run: MakeRun) -> None:
    with store.create("s", "h") as opened:
        before = opened.session
        run, blocks = make_run()
        opened.add_run(run, blocks)
        opened.save(before)
        assert opened.session.runs == (run.id,)


def test_runs_are_found_by_id_beginning_label_and_age(store: SessionStore, make_run: MakeRun) -> None:
    with store.create("s", "h") as opened:
        for ident, label in [("20260101-000000-aaaa", "base"), ("20260102-000000-bbbb", "pin"), ("x1", "base")]:
            opened.add_run(*make_run(run_id=ident, label=label))
        assert opened.find("20260101-000000-aaaa").label == "base"
        assert opened.find("20260102").label == "pin"
        assert opened.find("base").id == "x1"
        assert opened.find("@1").id == "x1"
        assert opened.find("@3").id == "20260101-000000-aaaa"
        for wanted, said in [
            ("2026", "matches 2 run ids"),
            ("@4", "no run @4"),
            ("@0", "no run"),
            ("nope", "no run nope"),
        ]:
            with pytest.raises(SessionError, match=said):
                opened.find(wanted)


def test_a_second_workshop_only_reads_and_names_the_first(store: SessionStore, make_run: MakeRun) -> None:
    with store.create("s", "h") as first:
        second = store.open("s")
        assert f"pid {os.getpid()}" in second.read_only
        assert second.notices == [second.read_only]
        with pytest.raises(SessionError, match="read-only"):
            second.save(second.session)
        with pytest.raises(SessionError, match="read-only"):
            second.add_run(*make_run())
        with pytest.raises(SessionError, match="another workshop"):
            store.remove("s")
        first.add_run(*make_run())
        assert len(second.runs()) == 1
    with store.open("s") as third:
        assert third.read_only == ""


def test_the_lock_dies_with_its_holder(store: SessionStore) -> None:
    store.create("s", "h").close()
    code = "import os,sys;from jitter_workshop.session.store import SessionStore as S;from pathlib import Path;" + (
        "o=S(Path(sys.argv[1])).open('s');print(o.read_only,flush=True);sys.stdin.read()"
    )
    command = [sys.executable, "-c", code, str(store.folder)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "\n"
        assert f"pid {child.pid}" in store.open("s").read_only
        child.kill()
    with store.open("s") as opened:
        assert opened.read_only == ""


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"format_version": 1}', b"\xff\xfe", b"[" * 100_000])
def test_a_damaged_session_is_set_aside_and_keeps_its_runs(
    store: SessionStore, make_run: MakeRun, content: bytes
) -> None:
    run, blocks = make_run()
    with store.create("monday", "h") as opened:
        opened.add_run(run, blocks)
        ident = opened.session.id
    path = store.folder / ident / "session.json"
    path.write_bytes(content)
    sessions, damaged = store.list()
    assert damaged[0].file == str(path)
    assert damaged[0].set_aside_as == f"{path}.damaged-1"
    assert Path(f"{path}.damaged-1").read_bytes() == content
    assert sessions[0].runs == (run.id,)
    assert store.list()[1] == ()
    path.write_bytes(content)
    with store.open(ident) as again:
        assert "damaged-2" in again.notices[0]
        assert again.runs() == (run,)


@pytest.mark.parametrize("content", [b"", b"{}", b'{"id": "20260101-000000-aaaa"}', b"null"])
def test_a_damaged_run_is_set_aside_and_the_others_stay(store: SessionStore, make_run: MakeRun, content: bytes) -> None:
    with store.create("s", "h") as opened:
        opened.add_run(*make_run())
        opened.add_run(*make_run(run_id="good"))
        ident = opened.session.id
    folder = store.folder / ident / "runs"
    (folder / "20260101-000000-aaaa" / "run.json").write_bytes(content)
    with store.open("s") as again:
        assert [r.id for r in again.runs()] == ["good"]
        assert "set aside as 20260101-000000-aaaa.damaged-1" in again.notices[0]
        assert (folder / "20260101-000000-aaaa.damaged-1" / "histograms.hlog").exists()


@pytest.mark.parametrize("value", ["NaN", "Infinity", "1e308", "1" + "0" * 400])
def test_a_run_with_a_number_that_nothing_measures_is_set_aside(
    store: SessionStore, make_run: MakeRun, value: str
) -> None:
    """It would stop every report of its session."""
    with store.create("s", "h") as opened:
        opened.add_run(*make_run())
        path = store.folder / opened.session.id / "runs" / "20260101-000000-aaaa" / "run.json"
    plain = {**json.loads(path.read_text()), "duration_s": "HERE"}
    path.write_text(json.dumps(plain).replace('"HERE"', value))
    with store.open("s") as again:
        assert again.runs() == ()
        assert "set aside" in again.notices[0]


def test_a_run_that_was_found_good_is_read_again_only_when_it_has_changed(
    store: SessionStore, make_run: MakeRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    with store.create("s", "h") as opened:
        opened.add_run(*make_run())
        path = store.folder / opened.session.id / "runs" / "20260101-000000-aaaa" / "run.json"
    read: list[str] = []
    real = store_module.read_run
    monkeypatch.setattr(store_module, "read_run", lambda path, ident: read.append(ident) or real(path, ident))
    for _ in range(2):
        assert store.list(check_runs=True)[1] == ()
    assert read == [path.parent.name]
    os.utime(path, ns=(1, 1))
    assert store.list(check_runs=True)[1] == ()
    assert len(read) == 2
    for content in (b"", b"[]", b'{"format_version": 1, "runs": 3}'):
        (store.folder / checked.FILE).write_bytes(content)
        assert store.list(check_runs=True)[1] == ()
    assert len(read) == 5


def test_checking_the_runs_of_all_sessions(store: SessionStore, make_run: MakeRun) -> None:
    with store.create("s", "h") as opened:
        opened.add_run(*make_run())
        path = store.folder / opened.session.id / "runs" / "20260101-000000-aaaa" / "run.json"
    assert store.list(check_runs=True)[1] == ()
    path.write_bytes(path.read_bytes()[:100])
    (found,) = store.list(check_runs=True)[1]
    assert found.set_aside_as == f"{path.parent}.damaged-1"
    assert store.list()[0][0].runs == ()


@pytest.mark.parametrize(("begins", "origin"), [("ready", ""), (None, "hand-off")])
def test_the_curve_of_an_older_ring_is_marked_as_hand_off(
    store: SessionStore, make_run: MakeRun, begins: str | None, origin: str
) -> None:
    run, blocks = make_run(transit_from=begins)
    with store.create("s", "h") as opened:
        opened.add_run(run, blocks)
        assert opened.curve(run).origin == origin


def test_a_damaged_histogram_leaves_the_table(store: SessionStore, make_run: MakeRun) -> None:
    run, blocks = make_run()
    with store.create("s", "h") as opened:
        opened.add_run(run, blocks)
        folder = store.folder / opened.session.id / "runs" / run.id
        for name in ("merged.hlog", "histograms.hlog"):
            (folder / name).write_bytes(b"Tag=accumulator_transit,0,1,1,AAAA\n")
        curve = opened.curve(run)
        assert curve.points[-1].value_ns == 70_000
        assert len(curve.points) < 10
        assert sorted(p.name for p in folder.glob("*.damaged-1")) == [
            "histograms.hlog.damaged-1",
            "merged.hlog.damaged-1",
        ]


def test_other_sessions_are_told_newest_first_without_mending_any(store: SessionStore, make_run: MakeRun) -> None:
    with store.create("vm 2026-01-01", "vm") as first:
        first.add_run(*make_run())
    with store.create("to look at", "lab", recorded=True):
        pass
    with store.create("torn", "vm") as torn:
        damaged = torn.folder / "session.json"
    damaged.write_text("{")
    with store.create("big", "vm") as big:
        assert [(one.name, len(one.runs)) for one in store.others(big.session.id)] == [("vm 2026-01-01", 1)]
        assert store.others(first.session.id)[0].name == "big"
    assert damaged.read_text() == "{"


def test_a_session_of_a_newer_version_is_only_read(store: SessionStore, make_run: MakeRun) -> None:
    with store.create("s", "h") as opened:
        opened.add_run(*make_run())
        path = store.folder / opened.session.id / "session.json"
    value = json.loads(path.read_text())
    path.write_text(json.dumps({**value, "format_version": 99, "novelty": [1]}))
    before = path.read_bytes()
    with store.open("s") as again:
        assert "newer version" in again.read_only
        assert len(again.runs()) == 1
        with pytest.raises(SessionError, match="newer version"):
            again.save(again.session)
    path.write_text(json.dumps({"format_version": 99}))
    (found,) = store.list()[1]
    assert found.set_aside_as is None
    assert "newer version" in found.reason
    assert before


def test_a_run_of_a_newer_version_is_left_alone(store: SessionStore, make_run: MakeRun) -> None:
    run, blocks = make_run()
    with store.create("s", "h") as opened:
        opened.add_run(run, blocks)
        path = store.folder / opened.session.id / "runs" / run.id / "run.json"
    path.write_text(json.dumps({"format_version": 99, "id": run.id}))
    with store.open("s") as again:
        assert again.runs() == ()
        assert "newer version" in again.notices[0]
        assert path.exists()


@pytest.mark.parametrize("failing", ["write", "fsync", "rename"])
def test_a_full_disk_loses_nothing_that_was_stored(
    store: SessionStore, make_run: MakeRun, monkeypatch: pytest.MonkeyPatch, failing: str
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with store.create("s", "h") as opened:
        opened.add_run(*make_run(run_id="first"))
        if failing == "write":
            monkeypatch.setattr(hlog, "write_log", full)
        elif failing == "fsync":
            monkeypatch.setattr(files.os, "fsync", full)
        else:
            monkeypatch.setattr(Path, "rename", full)
        with pytest.raises(SessionError) as caught:
            opened.add_run(*make_run(run_id="second"))
        assert "no space left on device; " in caught.value.sentence()
        assert "disk is full: free some space" in caught.value.sentence()
        monkeypatch.undo()
        assert [r.id for r in opened.runs()] == ["first"]
        left = [p.name for p in store.folder.rglob("*") if p.name.startswith(files.TEMPORARY_PREFIX)]
        assert left == []
        opened.add_run(*make_run(run_id="second"))
    with store.open("s") as again:
        assert [r.id for r in again.runs()] == ["first", "second"]


def test_files_of_a_killed_writer_are_removed_and_a_finished_run_is_kept(
    store: SessionStore, make_run: MakeRun
) -> None:
    with store.create("s", "h") as opened:
        opened.add_run(*make_run(run_id="finished"))
        folder = store.folder / opened.session.id
    value = json.loads((folder / "session.json").read_text())
    (folder / "session.json").write_text(json.dumps({**value, "runs": []}))
    (folder / "runs" / ".new-torn").mkdir()
    (folder / ".new-session.json-1234").write_text("{")
    with store.open("s") as again:
        assert [r.id for r in again.runs()] == ["finished"]
    assert not (folder / "runs" / ".new-torn").exists()
    assert not (folder / ".new-session.json-1234").exists()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_an_unwritable_state_folder_is_one_sentence(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(SessionError, match="cannot make the folder") as caught:
            SessionStore(tmp_path / "sessions").create("s", "h")
        assert "XDG_STATE_HOME" in caught.value.sentence()
    finally:
        tmp_path.chmod(0o700)


def test_a_file_in_the_place_of_the_folder_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "sessions").write_text("")
    store = SessionStore(tmp_path / "sessions")
    with pytest.raises(SessionError, match="cannot read the sessions"):
        store.list()
    with pytest.raises(SessionError, match="cannot make the folder"):
        store.create("s", "h")


def test_choosing_and_removing_sessions(store: SessionStore) -> None:
    first = store.create("one", "h")
    second = store.create("two", "h")
    assert store.current_id() == second.session.id
    assert store.use("one").id == first.session.id == store.current_id()
    first.close()
    second.close()
    assert store.remove("one").name == "one"
    assert [s.name for s in store.list()[0]] == ["two"]
    assert store.current_id() == second.session.id
    (store.folder / "current").write_bytes(b"\xff../../etc")
    assert store.current_id() == second.session.id
    with pytest.raises(SessionError, match="no session one"):
        store.open("one")


def test_a_named_session_is_made_once(store: SessionStore) -> None:
    with store.open_or_create("mine", "h") as first:
        ident = first.session.id
    with store.open_or_create("mine", "h") as again:
        assert again.session.id == ident
    with pytest.raises(SessionError):
        store.open_or_create("@7", "h")


def test_names_are_cleaned_and_checked(store: SessionStore) -> None:
    with store.create("a\x1b[31m\nb" + "c" * 200, "host\x07name") as opened:
        assert opened.session.name.startswith("a [31m b")
        assert len(opened.session.name) <= LABEL
        assert "\x07" not in opened.session.host
    for name in ("", "\x1b\n", "@1", "-x"):
        with pytest.raises(UsageError):
            store.create(name, "h")


@pytest.mark.parametrize("ident", ["../../etc", "", ".", "..", "a/b", "x.damaged-1", "ä", "a" * 65])
def test_no_id_leaves_the_folder(store: SessionStore, make_run: MakeRun, ident: str) -> None:
    assert not ids.is_folder_id(ident)
    with store.create("s", "h") as opened:
        with pytest.raises(SessionError):
            opened.add_run(*make_run(run_id=ident))
        with pytest.raises(SessionError):
            opened.histogram(ident, "accumulator_transit")


def test_the_same_run_is_not_stored_twice(store: SessionStore, make_run: MakeRun) -> None:
    with store.create("s", "h") as opened:
        opened.add_run(*make_run())
        with pytest.raises(SessionError):
            opened.add_run(*make_run())


def test_folders_that_are_no_sessions_are_left_alone(store: SessionStore) -> None:
    (store.folder / "lost+found").mkdir(parents=True)
    (store.folder / "notes").mkdir()
    (store.folder / "file").write_text("x")
    assert store.list() == ((), ())
    assert list((store.folder / "notes").iterdir()) == []


def test_new_ids_sort_by_time() -> None:
    moment = ids.now()
    later = moment.replace(year=moment.year + 1)
    assert ids.is_folder_id(ids.new_id())
    assert ids.new_id(moment) < ids.new_id(later)


@given(st.text(max_size=12), st.lists(st.tuples(st.text(min_size=1, max_size=6), st.text(max_size=6)), max_size=6))
def test_a_lookup_finds_something_known_or_says_no(wanted: str, known: list[tuple[str, str]]) -> None:
    items = [SimpleNamespace(id=ident, name=name) for ident, name in known]
    try:
        assert ids.lookup("run", wanted, items, lambda item: str(item.name), "look") in items
    except SessionError:
        assert wanted not in [ident for ident, _ in known] or wanted.startswith("@")


def test_sessions_of_one_second_are_in_the_order_they_were_made(store: SessionStore) -> None:
    names = [f"s{n}" for n in range(6)]
    for name in names:
        store.create(name, "h").close()
    assert [s.name for s in store.list()[0]] == names
    assert store.find("@1").name == "s5"


def test_a_file_that_is_larger_than_any_of_ours_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "MAX_JSON_BYTES", 20)
    path = tmp_path / "run.json"
    path.write_bytes(b'{"a": 1}'.ljust(20))
    assert files.read_json(path) == {"a": 1}
    path.write_bytes(b'{"a": 1}'.ljust(21))
    with pytest.raises(ValueError, match="too large"):
        files.read_json(path)


def test_a_copied_folder_is_another_session_with_the_same_runs(store: SessionStore, make_run: MakeRun) -> None:
    run, blocks = make_run()
    with store.create("first", "host") as opened:
        opened.add_run(run, blocks)
        first = opened.session.id
    copied = f"{first[:-4]}ffff"
    shutil.copytree(store.folder / first, store.folder / copied)
    sessions, damaged = store.list()
    assert sorted(one.id for one in sessions) == sorted([first, copied])
    assert [one.runs for one in sessions] == [(run.id,), (run.id,)]
    assert [one.reason for one in damaged] == ["the file belongs to another session"]
