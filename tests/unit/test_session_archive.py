"""A session packed into one piece of bytes and back: bit for bit, within limits, and never outside its folder."""

from __future__ import annotations

import dataclasses
import io
import json
import lzma
import os
import tarfile
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jitter_workshop.errors import SessionError
from jitter_workshop.model.codec import to_plain
from jitter_workshop.session import archive
from jitter_workshop.session.archive import File, Index, LeftOut
from jitter_workshop.session.store import SessionStore
from tests.madeup import make_run

Content = dict[str, bytes]


@pytest.fixture
def session(tmp_path: Path) -> Path:
    """A session's folder: two runs, one of them traced, an import, a lock, and what was set aside."""
    with SessionStore(tmp_path / "sessions").create("monday", "lab03") as opened:
        for number in (1, 2):
            values = [100 * number] * 500 + [70_000 + number] * 20
            opened.add_run(*make_run([values, values], run_id=f"20260101-00000{number}-aaaa", label=f"run {number}"))
        folder = opened.folder
    (folder / "runs" / "20260101-000002-aaaa" / "trace.bin").write_bytes(os.urandom(5_000))
    (folder / "imports").mkdir()
    (folder / "imports" / "20260101-000003-bbbb.json").write_bytes(b"{}\n")
    (folder / "runs" / "20260101-000001-aaaa.damaged-1").mkdir()
    (folder / ".new-session.json-1234").write_bytes(b"half")
    return folder


def content_of(folder: Path) -> Content:
    return {
        path: (folder / path).read_bytes()
        for path in (str(p.relative_to(folder)) for p in sorted(folder.rglob("*")) if p.is_file())
        if path != "lock" and ".new-" not in path
    }


def test_a_session_comes_back_from_its_archive_bit_for_bit(session: Path, tmp_path: Path) -> None:
    packed = archive.pack_session(session)
    assert packed == archive.pack_session(session)
    unpacked = archive.unpack(packed)
    assert unpacked.left_out == ()
    back = archive.bring_back(tmp_path / "elsewhere", unpacked)
    assert (back.session, back.name, back.runs, back.already, back.old_id) == (session.name, "monday", 2, False, "")
    assert content_of(tmp_path / "elsewhere" / session.name) == content_of(session)
    with SessionStore(tmp_path / "elsewhere").open("monday") as opened:
        assert [run.label for run in opened.runs()] == ["run 1", "run 2"]
        assert opened.notices == []


def test_files_without_room_are_named_and_the_newest_go_in_first(session: Path, tmp_path: Path) -> None:
    everything = archive.pack_session(session)
    index = archive.read_index(everything)
    trace = next(f for f in index.files if f.path.endswith("trace.bin"))
    without_trace = archive.pack_session(session, room=len(everything) - trace.size // 2)
    kept = archive.read_index(without_trace)
    assert [f.path for f in kept.left_out] == [trace.path]
    least = archive.pack_session(session, room=0)
    needed = archive.read_index(least)
    assert {f.path.rpartition("/")[2] for f in needed.left_out} == {"trace.bin", "histograms.hlog"}
    assert {f.why for f in needed.left_out} == {archive.NO_ROOM}
    sizes = {f.path: (session / f.path).stat().st_size for f in needed.left_out}
    assert {f.path: f.size for f in needed.left_out} == sizes
    for room in range(len(least), len(everything), 40):
        found = archive.read_index(archive.pack_session(session, room=room))
        out = {f.path for f in found.left_out if f.path.endswith("histograms.hlog")}
        assert out <= {"runs/20260101-000001-aaaa/histograms.hlog", "runs/20260101-000002-aaaa/histograms.hlog"}
        assert "runs/20260101-000001-aaaa/histograms.hlog" in out or not out
    # All curves are there without the histograms of single blocks.
    archive.bring_back(tmp_path / "least", archive.unpack(least))
    with SessionStore(tmp_path / "least").open("monday") as opened, SessionStore(session.parent).open("monday") as old:
        assert [opened.curve(r) for r in opened.runs()] == [old.curve(r) for r in old.runs()]
        assert opened.notices == []


def test_another_session_of_its_id_keeps_its_place(session: Path, tmp_path: Path) -> None:
    unpacked = archive.unpack(archive.pack_session(session))
    assert archive.bring_back(session.parent, unpacked).already
    before = content_of(session)
    path = session / "session.json"
    path.write_bytes(path.read_bytes().replace(b"monday", b"sunday"))
    back = archive.bring_back(session.parent, unpacked)
    assert (back.old_id, back.name) == (session.name, "monday (imported)")
    assert back.session != session.name
    brought = content_of(session.parent / back.session)
    assert {k: v for k, v in brought.items() if k != "session.json"} == {
        k: v for k, v in before.items() if k != "session.json"
    }
    told = json.loads(brought["session.json"])
    assert told | {"id": session.name, "name": "monday"} == json.loads(before["session.json"])
    with SessionStore(session.parent).open(back.session) as opened:
        assert len(opened.runs()) == 2


def test_a_whole_session_is_here_already_though_the_report_left_some_of_it_out(session: Path) -> None:
    assert archive.bring_back(session.parent, archive.unpack(archive.pack_session(session, room=0))).already


def test_a_file_that_is_not_of_a_session_stays_out(session: Path) -> None:
    (session / "passwd").symlink_to("/etc/passwd")
    os.mkfifo(session / "pipe")
    (session / "a name.txt").write_text("blanks")
    index = archive.read_index(archive.pack_session(session))
    assert {f.path for f in index.left_out} == {"passwd", "pipe", "a name.txt"}
    assert not {"lock", "passwd", "pipe"} & {f.path for f in index.files}
    with pytest.raises(SessionError, match="there is no session"):
        archive.pack_session(session / "runs")


# -- crafted -----------------------------------------------------------------------------------------------------------


SESSION: dict[str, Any] = {
    "format_version": 1,
    "id": "20260101-000000-cccc",
    "name": "crafted",
    "host": "h",
    "created_at": "2026-01-01T00:00:00.000000Z",
    "updated_at": "2026-01-01T00:00:00.000000Z",
}


def tar(entries: list[tuple[tarfile.TarInfo, bytes]], kind: int = tarfile.USTAR_FORMAT) -> bytes:
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w", format=kind) as made:
        for entry, content in entries:
            made.addfile(entry, io.BytesIO(content))
    return plain.getvalue()


def entry(path: str, content: bytes, **changed: Any) -> tuple[tarfile.TarInfo, bytes]:
    found = tarfile.TarInfo(path)
    found.size = len(content)
    for name, value in changed.items():
        setattr(found, name, value)
    return found, content


def manifest(files: Content | list[tuple[str, bytes]], /, **changed: Any) -> bytes:
    listed = list(files.items()) if isinstance(files, dict) else files
    index = Index(2, str(SESSION["id"]), tuple(File(p, len(c), archive._digest(c)) for p, c in listed), ())
    return json.dumps(to_plain(dataclasses.replace(index, **changed))).encode()


def crafted(files: Content | list[tuple[str, bytes]], /, **changed: Any) -> bytes:
    """An archive of any files, right in itself unless ``changed`` says otherwise."""
    listed = list(files.items()) if isinstance(files, dict) else files
    entries = [entry(archive.MANIFEST, manifest(listed, **changed)), *(entry(p, c) for p, c in listed)]
    return lzma.compress(tar(entries, tarfile.GNU_FORMAT))


def crafted_session(**more: bytes) -> Content:
    return {"session.json": json.dumps(SESSION).encode(), **more}


def test_a_valid_archive_made_by_hand_is_accepted(tmp_path: Path) -> None:
    assert archive.bring_back(tmp_path, archive.unpack(crafted(crafted_session()))).name == "crafted"


@pytest.mark.parametrize(
    "path",
    [
        "../evil",
        "/etc/evil",
        "runs/../../evil",
        "runs//evil",
        "./session.json",
        "runs/.hidden",
        "a\\b",
        "C:evil",
        "runs/a/b/c",
        "",
        "runs/",
        "lock",
        "runs/lock",
        "a\nb",
        "\u202ea",
        "session.json.damaged-1",
        "x" * 101,
        "runs/20260101-000000-cccc/x.bin",
        "runs/20260101-000000-cccc/merged.hlog/x",
        "proofs/a.txt",
        "proofs/.json",
        "other.json",
        "current",
    ],
)
def test_no_path_leads_out_of_the_folder(path: str, tmp_path: Path) -> None:
    with pytest.raises(SessionError, match="is damaged") as caught:
        archive.unpack(crafted([("session.json", json.dumps(SESSION).encode()), (path, b"evil")]))
    assert caught.value.sentence().isprintable()
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "files",
    [
        [("session.json", b"{}"), ("session.json", b"{}")],
        [("session.json", b"{}"), ("Session.JSON", b"{}")],
        [("session.json", b"{}"), ("proofs/a.json", b"{}"), ("proofs/A.json", b"{}")],
        [("session.json", b"{}"), ("session.json/a", b"{}")],
        [("session.json", b"{}"), ("runs", b""), ("runs/a/run.json", b"")],
        [("runs/a/run.json", b"{}")],
        [("session.json", b"[]")],
        [("session.json", b"{}")],
        [("session.json", b"[" * 100_000)],
        [("session.json", json.dumps(SESSION | {"id": "20260101-000000-dddd"}).encode())],
    ],
)
def test_an_archive_without_a_session_is_refused(files: list[tuple[str, bytes]], tmp_path: Path) -> None:
    with pytest.raises(SessionError, match="is damaged"):
        archive.bring_back(tmp_path, archive.unpack(crafted(files)))
    assert not list(tmp_path.iterdir())


def test_two_paths_that_differ_in_case_alone_are_refused() -> None:
    # A file system that ignores case would store both as one file.
    twice = [*crafted_session().items(), ("imports/ab.json", b"{}"), ("imports/Ab.json", b"{}")]
    assert all(archive.is_known(path) for path, _ in twice)
    with pytest.raises(SessionError, match="is damaged"):
        archive.unpack(crafted(twice))


@pytest.mark.parametrize("ident", ["../x", "", "a/b", ".", "..", ".new-x", "-x", "x.damaged-1"])
def test_its_id_is_a_plain_name(ident: str, tmp_path: Path) -> None:
    content = {"session.json": json.dumps(SESSION | {"id": ident}).encode()}
    with pytest.raises(SessionError, match="is damaged"):
        archive.bring_back(tmp_path, archive.unpack(crafted(content, session=ident)))
    assert not list(tmp_path.iterdir())


def refused_in_little_memory(data: bytes, limit: int = 24 << 20) -> str:
    tracemalloc.start()
    try:
        with pytest.raises(SessionError, match="is damaged") as caught:
            archive.unpack(data)
        assert tracemalloc.get_traced_memory()[1] < limit
    finally:
        tracemalloc.stop()
    return caught.value.sentence()


RUN = "runs/20260101-000000-dddd"


def test_a_bomb_is_not_unpacked() -> None:
    for more in (bytes(30 << 20), b""):
        told = manifest(crafted_session()) + more
        bomb = lzma.compress(tar([entry(archive.MANIFEST, told)]) + bytes(30 << 20), preset=0)
        said = refused_in_little_memory(bomb)
        assert "cut off or too large" in said


def test_a_piece_that_asks_for_gigabytes_to_be_read_is_refused() -> None:
    filters = [{"id": lzma.FILTER_LZMA2, "preset": 0, "dict_size": 1 << 30}]
    greedy = lzma.compress(lzma.decompress(crafted(crafted_session())), filters=filters)
    assert "memory" in refused_in_little_memory(greedy).lower()
    with pytest.raises(SessionError, match="cut off or too large"):
        archive.unpack(crafted(crafted_session()) + b"x")


def test_an_index_without_end_is_not_read() -> None:
    data = lzma.compress(tar([entry(archive.MANIFEST, b" " * (archive.MOST_INDEX + 10))]))
    with pytest.raises(SessionError, match="too large"):
        archive.read_index(data)


def test_too_many_files_and_newer_forms_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SessionError, match="newer version"):
        archive.read_index(crafted(crafted_session(), format_version=3))
    with pytest.raises(SessionError, match="newer version"):
        archive.unpack(crafted(crafted_session(), format_version=3))
    for other in (b"jitter-workshop session 1\n", b"PK\x03\x04"):
        with pytest.raises(SessionError, match="no session of this tool"):
            archive.unpack(other)
    monkeypatch.setattr(archive, "MOST_FILES", 3)
    with pytest.raises(SessionError, match="larger than a session may be"):
        archive.read_index(crafted(crafted_session(**{f"proofs/{name}.json": b"" for name in "abc"})))


SOUND = File("session.json", len(json.dumps(SESSION)), archive._digest(json.dumps(SESSION).encode()))


@pytest.mark.parametrize(
    "changed",
    [
        {"files": ()},
        {"files": (dataclasses.replace(SOUND, size=SOUND.size + 1),)},
        {"files": (dataclasses.replace(SOUND, size=-1),)},
        {"files": (dataclasses.replace(SOUND, sha256="0" * 64),)},
        {"files": (SOUND, SOUND)},
        {"files": (SOUND, File("history.jsonl", 0, ""))},
        {"session": "20260101-000000-dddd"},
    ],
)
def test_an_index_that_contradicts_its_files_is_refused(changed: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(SessionError, match="is damaged"):
        archive.bring_back(tmp_path, archive.unpack(crafted(crafted_session(), **changed)))


@pytest.mark.parametrize(
    "odd",
    [
        {"type": tarfile.SYMTYPE, "linkname": "/etc/passwd"},
        {"type": tarfile.LNKTYPE, "linkname": "session.json"},
        {"type": tarfile.DIRTYPE},
        {"type": tarfile.FIFOTYPE},
        {"type": tarfile.CHRTYPE},
        {"type": tarfile.GNUTYPE_SPARSE},
        {"type": tarfile.XHDTYPE},
        {"type": tarfile.GNUTYPE_LONGNAME},
    ],
)
def test_only_plain_files_come_in(odd: dict[str, Any]) -> None:
    told = json.dumps(SESSION).encode()
    files = [("session.json", told), ("history.jsonl", b"x" * 20)]
    entries = [entry(archive.MANIFEST, manifest(files)), entry("session.json", told), entry(*files[1], **odd)]
    with pytest.raises(SessionError, match="not a file"):
        archive.unpack(lzma.compress(tar(entries)))


def test_data_behind_or_beside_the_files_are_refused() -> None:
    told = json.dumps(SESSION).encode()
    sound = [entry(archive.MANIFEST, manifest({"session.json": told})), entry("session.json", told)]
    assert archive.unpack(lzma.compress(tar(sound))).files == {"session.json": told}
    plain = tar(sound)
    for wrong in (
        plain + b"more",
        tar([*sound, entry("history.jsonl", b"")]),
        tar(sound[1:]),
        tar([sound[1], sound[0]]),
        plain[:700],
        b"",
        bytes(1024),
    ):
        with pytest.raises(SessionError, match="is damaged"):
            archive.unpack(lzma.compress(wrong))


def test_a_small_page_brings_no_large_files(tmp_path: Path) -> None:
    zeros = bytes(2 << 20)
    with pytest.raises(SessionError, match="too large"):
        archive.unpack(crafted([("session.json", json.dumps(SESSION).encode()), (f"{RUN}/trace.bin", zeros)]))
    assert archive.most_unpacked(0) == 1 << 20
    assert archive.most_unpacked(1 << 40) == archive.MOST_BYTES


def test_an_index_that_is_too_large_for_its_archive_is_refused() -> None:
    left_out = tuple(LeftOut("x" * 60, 0, "y" * 60) for _ in range(20_000))
    with pytest.raises(SessionError, match="too large"):
        archive.read_index(crafted(crafted_session(), left_out=left_out))


def test_runs_that_are_listed_and_not_there_are_told(tmp_path: Path) -> None:
    listed = [f"20260101-00000{number}-eeee" for number in range(3)]
    told = json.dumps(SESSION | {"runs": listed}).encode()
    data = crafted([("session.json", told), (f"runs/{listed[1]}/run.json", b"{}")])
    back = archive.bring_back(tmp_path, archive.unpack(data))
    assert (back.runs, back.missing) == (1, (listed[0], listed[2]))


PACKED: dict[str, bytes] = {}


def packed_once(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    if "it" not in PACKED:
        folder = tmp_path_factory.mktemp("packed")
        with SessionStore(folder).create("monday", "lab03") as opened:
            opened.add_run(*make_run([[100] * 50, [200, 70_000]]))
        PACKED["it"] = archive.pack_session(opened.folder)
    return PACKED["it"]


@settings(max_examples=150)
@given(st.data())
def test_no_byte_can_be_changed_unnoticed(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    packed = packed_once(tmp_path_factory)
    place = data.draw(st.integers(0, len(packed) - 1))
    how = data.draw(st.sampled_from(("flip", "cut", "insert", "remove", "repeat")))
    changed = {
        "flip": lambda: packed[:place] + bytes([packed[place] ^ data.draw(st.integers(1, 255))]) + packed[place + 1 :],
        "cut": lambda: packed[:place],
        "insert": lambda: packed[:place] + data.draw(st.binary(min_size=1, max_size=9)) + packed[place:],
        "remove": lambda: packed[:place] + packed[place + 1 :],
        "repeat": lambda: packed + packed[place:],
    }[how]()
    try:
        found = archive.unpack(changed)
    except SessionError as error:
        refusal = error.sentence()
    else:
        assert found.files == archive.unpack(packed).files
        return
    assert refusal.isprintable()
    assert len(refusal) < 400


def test_a_full_disk_leaves_nothing(session: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    unpacked = archive.unpack(archive.pack_session(session))
    synced: list[object] = []

    def full(file: object) -> None:
        synced.append(file)
        if len(synced) == 4:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr("jitter_workshop.session.files._sync", full)
    with pytest.raises(SessionError, match="no space left"):
        archive.bring_back(tmp_path / "full", unpacked)
    assert not list((tmp_path / "full").iterdir())


def test_names_of_left_out_files_are_never_written(tmp_path: Path) -> None:
    """Names of files that are not in it are only shown, and never written."""
    unpacked = archive.unpack(crafted(crafted_session(), left_out=(LeftOut("../../evil", 3, "x"),)))
    archive.bring_back(tmp_path / "in", unpacked)
    assert {p.name for p in tmp_path.rglob("*")} == {"in", str(SESSION["id"]), "session.json"}
