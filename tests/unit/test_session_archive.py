"""A session packed into one piece of bytes and back: bit for bit, within limits, and never outside its folder."""

from __future__ import annotations

import bz2
import contextlib
import dataclasses
import io
import json
import lzma
import os
import struct
import tracemalloc
import zlib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jitter_workshop.errors import SessionError
from jitter_workshop.model.codec import to_plain
from jitter_workshop.session import archive, packedlog, unpack
from jitter_workshop.session.archive import File, Index, LeftOut, Part
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


def test_it_comes_back_bit_for_bit(session: Path, tmp_path: Path) -> None:
    packed = archive.pack(session)
    assert packed == archive.pack(session)
    unpacked = unpack.unpack(packed)
    assert unpacked.anew == ()
    assert unpacked.left_out == ()
    back = unpack.bring_back(tmp_path / "elsewhere", unpacked)
    assert (back.session, back.name, back.runs, back.already, back.old_id) == (session.name, "monday", 2, False, "")
    assert content_of(tmp_path / "elsewhere" / session.name) == content_of(session)
    with SessionStore(tmp_path / "elsewhere").open("monday") as opened:
        assert [run.label for run in opened.runs()] == ["run 1", "run 2"]
        assert opened.notices == []


def test_logs_are_packed_without_their_own_compression(session: Path) -> None:
    index, _ = archive.read_index(archive.pack(session))
    forms = {f.path.rpartition("/")[2]: f.form for f in index.files}
    alone, _ = archive.read_index(archive.pack(session, room=0))
    assert {f.form for f in alone.files if f.path.endswith("merged.hlog")} == {"hlog"}
    assert (forms["histograms.hlog"], forms["merged.hlog"]) == ("hlog", "sums")
    assert forms["session.json"] == forms["run.json"] == forms["trace.bin"] == "plain"


def test_a_whole_log_that_is_no_sum_is_kept_as_it_is(session: Path, tmp_path: Path) -> None:
    merged = sorted(session.glob("runs/*/merged.hlog"))
    others = sorted(session.glob("runs/*/histograms.hlog"))
    merged[0].write_bytes(others[0].read_bytes())
    merged[1].write_bytes(b"#nothing\n")
    packed = archive.pack(session)
    index, _ = archive.read_index(packed)
    assert [f.form for f in index.files if f.path.endswith("merged.hlog")] == ["sums", "hlog"]
    assert unpack.unpack(packed).files == content_of(session)


@given(st.lists(st.lists(st.integers(1, 10**9), min_size=1, max_size=30), min_size=1, max_size=5))
def test_sums_are_those_of_the_library(blocks: list[list[int]]) -> None:
    from jitter_workshop.session import hlog
    from jitter_workshop.stats import histogram as hg

    whole = hg.new_histogram()
    parts = []
    for values in blocks:
        part = hg.new_histogram()
        for value in values:
            hg.record(part, value)
        hg.add(whole, part)
        parts.append(hlog.Interval("spin_gap", 1.0, 1.0, 0, hg.encode(part)))
    texts = []
    for intervals in (parts, [hlog.Interval("spin_gap", 1.0, 1.0, 0, hg.encode(whole))]):
        file = io.BytesIO()
        hlog.write(file, intervals, 0.0)
        texts.append(packedlog.packed(file.getvalue()))
    by_block, merged = texts
    assert by_block is not None
    assert merged is not None
    text = packedlog.summed(merged, by_block)
    assert text is not None
    assert b"".join(packedlog.from_sums(text, packedlog.split(by_block)).form()) == merged


def test_what_has_no_room_is_named_and_the_newest_go_in_first(session: Path, tmp_path: Path) -> None:
    everything = archive.pack(session)
    index, _ = archive.read_index(everything)
    trace = next(f for f in index.files if f.path.endswith("trace.bin"))
    without_trace = archive.pack(session, room=len(everything) - trace.size // 2)
    kept, _ = archive.read_index(without_trace)
    assert [f.path for f in kept.left_out] == [trace.path]
    least = archive.pack(session, room=0)
    needed, _ = archive.read_index(least)
    assert {f.path.rpartition("/")[2] for f in needed.left_out} == {"trace.bin", "histograms.hlog"}
    assert {f.why for f in needed.left_out} == {archive.NO_ROOM}
    sizes = {f.path: (session / f.path).stat().st_size for f in needed.left_out}
    assert {f.path: f.size for f in needed.left_out} == sizes
    for room in range(len(least), len(everything), 40):
        found, _ = archive.read_index(archive.pack(session, room=room))
        out = {f.path for f in found.left_out if f.path.endswith("histograms.hlog")}
        assert out <= {"runs/20260101-000001-aaaa/histograms.hlog", "runs/20260101-000002-aaaa/histograms.hlog"}
        assert "runs/20260101-000001-aaaa/histograms.hlog" in out or not out
    # All curves are there without the histograms of single blocks.
    unpack.bring_back(tmp_path / "least", unpack.unpack(least))
    with SessionStore(tmp_path / "least").open("monday") as opened, SessionStore(session.parent).open("monday") as old:
        assert [opened.curve(r) for r in opened.runs()] == [old.curve(r) for r in old.runs()]
        assert opened.notices == []


def test_another_session_of_its_id_keeps_its_place(session: Path, tmp_path: Path) -> None:
    unpacked = unpack.unpack(archive.pack(session))
    assert unpack.bring_back(session.parent, unpacked).already
    before = content_of(session)
    path = session / "session.json"
    path.write_bytes(path.read_bytes().replace(b"monday", b"sunday"))
    back = unpack.bring_back(session.parent, unpacked)
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
    assert unpack.bring_back(session.parent, unpack.unpack(archive.pack(session, room=0))).already


def test_another_zlib_gives_the_same_histograms_in_other_bytes(
    session: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    packed = archive.pack(session)
    monkeypatch.setattr(packedlog, "_LEVEL", 1)
    unpacked = unpack.unpack(packed)
    monkeypatch.undo()
    assert len(unpacked.anew) == 4
    unpack.bring_back(tmp_path / "other", unpacked)
    with SessionStore(tmp_path / "other").open("monday") as opened, SessionStore(session.parent).open("monday") as old:
        assert [opened.curve(r) for r in opened.runs()] == [old.curve(r) for r in old.runs()]
    assert content_of(tmp_path / "other" / session.name) != content_of(session)


def test_what_is_no_file_of_a_session_stays_out(session: Path) -> None:
    (session / "passwd").symlink_to("/etc/passwd")
    os.mkfifo(session / "pipe")
    (session / "a name.txt").write_text("blanks")
    index, _ = archive.read_index(archive.pack(session))
    assert {f.path for f in index.left_out} == {"passwd", "pipe", "a name.txt"}
    assert not {"lock", "passwd", "pipe"} & {f.path for f in index.files}
    with pytest.raises(SessionError, match="there is no session"):
        archive.pack(session / "runs")


# -- crafted -----------------------------------------------------------------------------------------------------------


SESSION: dict[str, Any] = {
    "format_version": 1,
    "id": "20260101-000000-cccc",
    "name": "crafted",
    "host": "h",
    "created_at": "2026-01-01T00:00:00.000000Z",
    "updated_at": "2026-01-01T00:00:00.000000Z",
}


def crafted(files: Content | list[tuple[str, bytes]], /, **changed: Any) -> bytes:
    """An archive of any files, right in itself unless ``changed`` says otherwise."""
    listed = list(files.items()) if isinstance(files, dict) else files
    body = b"".join(content for _, content in listed)
    piece = bz2.compress(body)
    index = Index(
        1,
        str(SESSION["id"]),
        (Part("bz2", len(piece), len(body)),),
        tuple(File(p, len(c), archive._digest(c), 0, len(c), "plain") for p, c in listed),
        (),
    )
    plain = zlib.compress(json.dumps(to_plain(dataclasses.replace(index, **changed))).encode())
    return archive._MAGIC + struct.pack("<I", len(plain)) + plain + piece


def crafted_session(**more: bytes) -> Content:
    return {"session.json": json.dumps(SESSION).encode(), **more}


def test_a_crafted_one_that_is_right_comes_in(tmp_path: Path) -> None:
    assert unpack.bring_back(tmp_path, unpack.unpack(crafted(crafted_session()))).name == "crafted"


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
        "a\x00b",
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
        unpack.unpack(crafted([("session.json", json.dumps(SESSION).encode()), (path, b"evil")]))
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
def test_what_is_no_session_is_refused(files: list[tuple[str, bytes]], tmp_path: Path) -> None:
    with pytest.raises(SessionError, match="is damaged"):
        unpack.bring_back(tmp_path, unpack.unpack(crafted(files)))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("ident", ["../x", "", "a/b", ".", "..", ".new-x", "-x", "x.damaged-1"])
def test_its_id_is_a_plain_name(ident: str, tmp_path: Path) -> None:
    content = {"session.json": json.dumps(SESSION | {"id": ident}).encode()}
    with pytest.raises(SessionError, match="is damaged"):
        unpack.bring_back(tmp_path, unpack.unpack(crafted(content, session=ident)))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("method", ["xz", "bz2", "zlib"])
def test_a_bomb_is_not_unpacked(method: archive.Method) -> None:
    bomb = archive._PACK[method](bytes(40 << 20))
    for plain, size in ((1_000, 1_000), (archive.MOST_BYTES + 1, 2), (40 << 20, -1)):
        index = Index(
            1,
            str(SESSION["id"]),
            (Part(method, len(bomb), plain),),
            (File("session.json", size, "0" * 64, 0, plain, "plain"),),
            (),
        )
        packed = zlib.compress(json.dumps(to_plain(index)).encode())
        data = archive._MAGIC + struct.pack("<I", len(packed)) + packed + bomb
        with pytest.raises(SessionError, match="is damaged"):
            unpack.unpack(data)


def test_a_piece_that_asks_for_gigabytes_to_be_read_is_refused() -> None:
    filters = [{"id": lzma.FILTER_LZMA2, "preset": 0, "dict_size": 1 << 30}]
    greedy = lzma.compress(b"{}", check=lzma.CHECK_NONE, filters=filters)
    with pytest.raises(lzma.LZMAError, match=r"[Mm]emory"):
        unpack._plain("xz", greedy, 2)
    assert unpack._plain("xz", lzma.compress(b"{}", check=lzma.CHECK_NONE), 2) == b"{}"
    with pytest.raises(ValueError, match="cut off or longer"):
        unpack._plain("xz", lzma.compress(b"{}", check=lzma.CHECK_NONE) + b"x", 2)


def test_an_index_without_end_is_not_read() -> None:
    packed = zlib.compress(b" " * (archive.MOST_INDEX + 10))
    with pytest.raises(SessionError, match="too large"):
        archive.read_index(archive._MAGIC + struct.pack("<I", len(packed)) + packed)


def test_too_many_files_and_newer_forms_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SessionError, match="newer version"):
        archive.read_index(b"jitter-workshop session 2\nabc")
    with pytest.raises(SessionError, match="no session of this tool"):
        archive.read_index(b"PK\x03\x04")
    monkeypatch.setattr(archive, "MOST_FILES", 3)
    with pytest.raises(SessionError, match="more than a session may hold"):
        archive.read_index(crafted(crafted_session(**{f"proofs/{name}.json": b"" for name in "abc"})))


@pytest.mark.parametrize(
    "changed",
    [
        {"files": ()},
        {"parts": ()},
        {"format_version": 7},
        {"parts": (Part("bz2", 1, 1),)},
        {"parts": (Part("bz2", -1, 1), Part("bz2", 5, 1))},
        {"files": (File("session.json", 2, "0", 3, 2, "plain"),)},
        {"files": (File("session.json", 2, "0", -1, 2, "plain"),)},
        {"files": (File("session.json", 2, "0", 0, -2, "plain"),)},
    ],
)
def test_an_index_that_contradicts_itself_is_refused(changed: dict[str, Any]) -> None:
    with pytest.raises(SessionError, match="is damaged"):
        unpack.unpack(crafted(crafted_session(), **changed))


def packed_archive(files: list[tuple[str, int, bytes, archive.Form]]) -> bytes:
    """An archive of (path, stated size, what its part has of it, form) in two parts, the first of them session.json."""
    told = json.dumps(SESSION).encode()
    bodies = [told, b"".join(body for _, _, body, _ in files)]
    pieces = [lzma.compress(body, check=lzma.CHECK_NONE) for body in bodies]
    index = Index(
        1,
        str(SESSION["id"]),
        tuple(Part("xz", len(piece), len(body)) for piece, body in zip(pieces, bodies, strict=True)),
        (
            File("session.json", len(told), archive._digest(told), 0, len(told), "plain"),
            *(File(path, size, "0" * 64, 1, len(body), form) for path, size, body, form in files),
        ),
        (),
    )
    plain = zlib.compress(json.dumps(to_plain(index)).encode())
    return archive._MAGIC + struct.pack("<I", len(plain)) + plain + b"".join(pieces)


def refused_in_little_memory(data: bytes, limit: int = 24 << 20) -> str:
    tracemalloc.start()
    try:
        with pytest.raises(SessionError, match="is damaged") as caught:
            unpack.unpack(data)
        assert tracemalloc.get_traced_memory()[1] < limit
    finally:
        tracemalloc.stop()
    return caught.value.sentence()


RUN = "runs/20260101-000000-dddd"
HEAD = struct.pack(">IIIIQQd", 0x1C849303, 0, 0, 3, 1, 60_000_000_000, 1.0)


def form_of(lines: int, histograms: list[bytes]) -> bytes:
    return b"".join(packedlog.Log(b"Tag=a,0,1,0,\0\n" * lines, histograms).form())


def test_one_histogram_that_is_named_many_times_takes_no_memory() -> None:
    """1.5 kB that asked for gigabytes: the sums of a tag, over and over."""
    large = HEAD + b"\x02" * 400_000
    for lines, why in ((1_000, "sums up more"), (1, "longer than it says")):
        merged = b"Tag=a,0,1,0,\0\n" * lines
        files: list[tuple[str, int, bytes, archive.Form]] = [
            (f"{RUN}/histograms.hlog", 10_000, form_of(1, [large]), "hlog"),
            (f"{RUN}/merged.hlog", 0 if lines == 1 else 1_000, merged, "sums"),
        ]
        said = refused_in_little_memory(packed_archive(files), 120 << 20)
        assert why in said or "not what was packed" in said


def test_a_tag_is_summed_up_once() -> None:
    log = packedlog.Log(b"Tag=a,0,1,0,\0\n" * 9, [HEAD + b"\x02"] * 9)
    assert len(packedlog.from_sums(b"Tag=a,0,9,0,\0\n", log).plain) == 1
    with pytest.raises(ValueError, match="does not say what it sums up"):
        packedlog.from_sums(b"Tag=a,0,9,0,\0\n" * 2, log)
    with pytest.raises(ValueError, match="sums up more"):
        packedlog.from_sums(b"Tag=a,0,9,0,\0\n" * 10, log)


def test_a_log_of_more_histograms_than_any_run_is_not_built(monkeypatch: pytest.MonkeyPatch) -> None:
    empty = form_of(60_000, [])
    refused_in_little_memory(packed_archive([(f"{RUN}/histograms.hlog", 10, empty, "hlog")]))
    with pytest.raises(ValueError, match="more histograms than any run"):
        packedlog.split(form_of(packedlog.MOST_HISTOGRAMS + 1, []))
    with pytest.raises(ValueError, match="larger or smaller than any"):
        packedlog.split(form_of(2, [b"", b""]))
    many = form_of(9_000, [HEAD] * 9_000)
    said = refused_in_little_memory(packed_archive([(f"{RUN}/histograms.hlog", 10, many, "hlog")]))
    assert "longer than it says" in said
    monkeypatch.setattr(packedlog, "MOST_HISTOGRAMS", 1)
    log = packedlog.Log(b"Tag=a,0,1,0,\0\n" * 2, [HEAD] * 2)
    assert packedlog.packed(packedlog.unpacked(log, 10_000)) is None


def test_sums_of_more_counters_than_any_run_has_are_not_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packedlog, "_MOST_COUNTERS", 5)
    text = b"".join(b"Tag=%c,0,1,0,\0\n" % tag for tag in b"abc")
    assert packedlog.from_sums(b"", packedlog.Log(text[:28], [HEAD + b"\x02\x02"] * 2)).plain == []
    with pytest.raises(ValueError, match="more counters than any"):
        packedlog.from_sums(b"", packedlog.Log(text, [HEAD + b"\x02\x02"] * 3))


def test_a_small_page_brings_no_large_files(tmp_path: Path) -> None:
    zeros = bytes(2 << 20)
    with pytest.raises(SessionError, match="more than a session may hold"):
        unpack.unpack(crafted([("session.json", json.dumps(SESSION).encode()), (f"{RUN}/trace.bin", zeros)]))
    assert archive.most_unpacked(0) == 1 << 20
    assert archive.most_unpacked(1 << 40) == archive.MOST_BYTES


def test_an_index_is_no_longer_than_what_it_comes_with() -> None:
    left_out = tuple(LeftOut("x" * 60, 0, "y" * 60) for _ in range(20_000))
    with pytest.raises(SessionError, match="cut off or too large"):
        archive.read_index(crafted(crafted_session(), left_out=left_out))


def test_runs_that_are_listed_and_not_there_are_told(tmp_path: Path) -> None:
    listed = [f"20260101-00000{number}-eeee" for number in range(3)]
    told = json.dumps(SESSION | {"runs": listed}).encode()
    data = crafted([("session.json", told), (f"runs/{listed[1]}/run.json", b"{}")])
    back = unpack.bring_back(tmp_path, unpack.unpack(data))
    assert (back.runs, back.missing) == (1, (listed[0], listed[2]))


PACKED: dict[str, bytes] = {}


def packed_once(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    if "it" not in PACKED:
        folder = tmp_path_factory.mktemp("packed")
        with SessionStore(folder).create("monday", "lab03") as opened:
            opened.add_run(*make_run([[100] * 50, [200, 70_000]]))
        PACKED["it"] = archive.pack(opened.folder)
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
        found = unpack.unpack(changed)
    except SessionError as error:
        refusal = error.sentence()
    else:
        assert found.files == unpack.unpack(packed).files
        return
    assert refusal.isprintable()
    assert len(refusal) < 400


@given(st.binary(max_size=300))
def test_any_log_comes_back_or_is_left_as_it_is(log: bytes) -> None:
    form = packedlog.packed(log)
    assert form is None or packedlog.unpacked(packedlog.split(form), len(log)) == log


@given(st.binary(max_size=200))
def test_any_bytes_in_the_place_of_a_packed_log_are_refused_or_read(form: bytes) -> None:
    with contextlib.suppress(ValueError, struct.error):
        log = packedlog.split(form)
        packedlog.unpacked(log, 10_000)
        packedlog.from_sums(b"Tag=a,0,1,0,\0\n", log)


def test_a_log_with_a_bomb_in_it_is_left_as_it_is() -> None:
    stream = zlib.compress(bytes(packedlog.MOST_HISTOGRAM + 10), 6)
    import base64

    encoded = base64.b64encode(struct.pack(">II", 0x1C849314, len(stream)) + stream)
    assert packedlog.packed(b"Tag=a,0.0,1.0,0.0," + encoded + b"\n") is None


def test_a_full_disk_leaves_nothing(session: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    unpacked = unpack.unpack(archive.pack(session))
    calls: list[Path] = []

    def full(path: Path, content: bytes) -> None:
        calls.append(path)
        if len(calls) == 4:
            raise OSError(28, "No space left on device")
        path.write_bytes(content)

    monkeypatch.setattr("jitter_workshop.session.files.write_new", full)
    with pytest.raises(SessionError, match="no space left"):
        unpack.bring_back(tmp_path / "full", unpacked)
    assert not list((tmp_path / "full").iterdir())


def test_what_was_left_out_is_no_way_in(tmp_path: Path) -> None:
    """Names of files that are not in it are only shown, and never written."""
    unpacked = unpack.unpack(crafted(crafted_session(), left_out=(LeftOut("../../evil", 3, "x"),)))
    unpack.bring_back(tmp_path / "in", unpacked)
    assert {p.name for p in tmp_path.rglob("*")} == {"in", str(SESSION["id"]), "session.json"}
