"""The journal's form: what was written is read, what is torn is tolerated, what is damaged is told."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jitter_workshop.host.root import HostRoot
from jitter_workshop.tuning import journal
from tests import hosttrees

ID = "000001-20260101T000000Z"
TEXT = st.text(max_size=30)


def header(**more: Any) -> dict[str, Any]:
    return {
        "record": "header",
        "format": 1,
        "id": ID,
        "boot_id": hosttrees.BOOT_ID,
        "uid": 1000,
        "time": "2026-01-01T00:00:00Z",
        "hot_cpus": [2, 3],
        "wanted": ["thp=never", "stat-interval"],
    } | more


def intent(n: int = 1, **more: Any) -> dict[str, Any]:
    return {
        "record": "intent",
        "n": n,
        "tunable": "stat-interval",
        "path": "/proc/sys/vm/stat_interval",
        "kind": "number",
        "before": "1",
        "after": "10",
        "when": "runtime",
        "lease": False,
        "then": "",
        "boot_id": hosttrees.BOOT_ID,
    } | more


def written(n: int = 1) -> dict[str, Any]:
    return {"record": "written", "n": n, "read_back": "10"}


def parsed(*records: dict[str, Any], tail: bytes = b"") -> journal.Journal:
    return journal.parse_journal(ID, b"".join(map(journal.encode_record, records)) + tail)


@given(
    st.dictionaries(
        TEXT.filter(lambda k: k != "crc32"), st.one_of(TEXT, st.integers(), st.none(), st.lists(TEXT)), min_size=1
    )
)
def test_a_written_record_is_read_back(record: dict[str, Any]) -> None:
    line = journal.encode_record(record)
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    assert journal.decode_record(line) == record
    assert json.loads(line) | {"crc32": None} == record | {"crc32": None}


@given(st.integers(0, 400), st.integers(1, 255))
def test_any_flipped_byte_is_found(place: int, change: int) -> None:
    line = bytearray(journal.encode_record(intent()))
    place %= len(line) - 1
    line[place] ^= change
    if b"\n" in line[:-1]:
        return
    with pytest.raises(ValueError, match="checksum"):
        journal.decode_record(bytes(line))


@given(st.binary(max_size=300))
def test_no_bytes_raise(data: bytes) -> None:
    read = journal.parse_journal(ID, data)
    assert read.whole <= len(data)
    assert not read.entries


@given(st.integers(0, 2000))
def test_a_journal_cut_anywhere_tells_only_whole_lines(length: int) -> None:
    lines = [journal.encode_record(record) for record in (header(), intent(1), written(1), intent(2), written(2))]
    data = b"".join(lines)[:length]
    read = journal.parse_journal(ID, data)
    assert not read.problems
    assert read.whole == sum(len(line) for line in lines if data.startswith(b"".join(lines[: lines.index(line) + 1])))
    assert all(entry.state in ("intent", "written") for entry in read.entries.values())


def test_states_follow_the_records() -> None:
    read = parsed(header(), intent(1), written(1), intent(2), {"record": "refused", "n": 2, "reason": "x"}, intent(3))
    assert [e.state for e in read.entries.values()] == ["written", "refused", "intent"]
    assert [e.n for e in read.active] == [1, 3]
    assert read.hot_cpus == (2, 3)
    assert read.uid == 1000


def test_a_program_that_must_follow_a_write_is_due_until_it_has_run() -> None:
    due = intent(1, then="update-grub")
    assert parsed(header(), due).due == ["update-grub"]
    done = {"record": "then", "name": "update-grub"}
    assert parsed(header(), due, written(1), done).due == []
    assert parsed(header(), due, written(1), done, {"record": "undone", "n": 1, "how": "restored"}).due == [
        "update-grub"
    ]
    assert parsed(header(), due, {"record": "refused", "n": 1, "reason": "x"}).due == []


@pytest.mark.parametrize(
    ("record", "words"),
    [
        ({"record": "written", "n": 7}, "never as planned"),
        ({"record": "party"}, "kind of record"),
        ({"n": 1}, "record"),
        (intent(n="1"), "n is not a number"),
        (intent(path=None), "path is not text"),
        (header(format=2), "newer version"),
        ({"record": "intent"}, "missing"),
    ],
)
def test_a_record_that_makes_no_sense_is_told_with_its_line(record: dict[str, Any], words: str) -> None:
    read = parsed(header(), record, intent(5))
    assert len(read.problems) == 1
    assert read.problems[0].startswith("line 2 is damaged")
    assert words in read.problems[0]
    assert list(read.entries) == [5]


def test_an_intent_twice_is_damage() -> None:
    assert "recorded twice" in parsed(header(), intent(1), intent(1)).problems[0]


def test_a_damaged_middle_does_not_hide_the_rest() -> None:
    data = journal.encode_record(header()) + b'{"record":"intent"}\n' + journal.encode_record(intent(2))
    read = journal.parse_journal(ID, data)
    (problem,) = read.problems
    assert problem.split(": ") == ["line 2 is damaged", "the record's checksum is wrong"]
    assert list(read.entries) == [2]


def test_ids_are_numbers_and_stamps() -> None:
    names = [f"{ID}.jsonl", "x.jsonl", "000002-a.jsonl", "done", "000003-../../x.jsonl", "000004.jsonl"]
    assert journal.journal_ids(names) == (ID, "000002-a")


# On a host -----------------------------------------------------------------------------------------------------------


def host(tmp_path: Path, **files: bytes) -> HostRoot:
    hosttrees.write(tmp_path, hosttrees.kernel("made"))
    folder = tmp_path / journal.JOURNAL_DIR.lstrip("/")
    folder.mkdir(parents=True)
    for name, data in files.items():
        (folder / f"{name.replace('_', '-')}.jsonl").write_bytes(data)
    return HostRoot(tmp_path)


def lines(*records: dict[str, Any]) -> bytes:
    return b"".join(map(journal.encode_record, records))


def test_no_journal_is_nothing_applied(tmp_path: Path) -> None:
    root = HostRoot(tmp_path)
    assert journal.active(root) == ()
    assert journal.applied_tunables(root) == ()


def test_active_entries_are_those_written_in_this_boot(tmp_path: Path) -> None:
    other_boot = intent(2, boot_id="another")
    outlives = intent(3, boot_id="another", kind="grub")
    root = host(tmp_path, **{"000001_a": lines(header(), intent(1), written(1), other_boot, written(2), intent(9))})
    assert [e.n for e in journal.active(root)] == [1]
    (tmp_path / journal.JOURNAL_DIR.lstrip("/") / "000001-a.jsonl").write_bytes(lines(header(), outlives, written(3)))
    assert [e.n for e in journal.active(root)] == [3]


def test_the_stack_is_in_order_and_says_each_tunable_once(tmp_path: Path) -> None:
    thp = intent(1, tunable="thp", path="/sys/kernel/mm/transparent_hugepage/enabled", kind="choice")
    root = host(
        tmp_path,
        **{
            "000001_a": lines(header(), thp, written(1), intent(2), written(2)),
            "000002_a": lines(header(wanted=["thp=madvise"]), thp, written(1)),
        },
    )
    assert journal.applied_tunables(root) == ({"id": "stat-interval", "value": ""}, {"id": "thp", "value": "madvise"})
    assert journal.profile(journal.applied_tunables(root)) == "stat-interval\nthp=madvise\n"


def test_a_stack_that_is_asked_for_again_is_read_anew_if_a_journal_or_the_boot_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    thp = intent(2, tunable="thp", path="/sys/kernel/mm/transparent_hugepage/enabled", kind="choice")
    root = host(tmp_path, **{"000001_a": lines(header(), intent(1), written(1))})
    file = tmp_path / journal.JOURNAL_DIR.lstrip("/") / "000001-a.jsonl"
    first = journal.applied_tunables(root)
    first[0]["value"] = "changed by a caller"
    with monkeypatch.context() as patched:
        active = journal.active(root)
        patched.setattr(journal, "parse_journal", lambda *_: pytest.fail("parsed twice"))
        assert journal.applied_tunables(root) == ({"id": "stat-interval", "value": ""},)
        assert journal.active(root) == active
    file.write_bytes(lines(header(), intent(1), written(1), thp, written(2)))
    assert {one["id"] for one in journal.applied_tunables(root)} == {"stat-interval", "thp"}
    assert [one.tunable for one in journal.active(root)] == ["stat-interval", "thp"]
    hosttrees.write(tmp_path, {"proc/sys/kernel/random/boot_id": "another\n"})
    assert journal.applied_tunables(root) == journal.active(root) == ()


def test_each_tunable_is_told_with_its_last_apply_and_whether_that_program_runs(tmp_path: Path) -> None:
    thp = intent(1, tunable="thp", path="/sys/kernel/mm/transparent_hugepage/enabled", kind="choice")
    root = host(
        tmp_path,
        **{
            "000001_a": lines(header(pid=77), thp, written(1), intent(2), written(2)),
            "000002_a": lines(header(pid=78, wanted=["thp=madvise"]), thp, written(1)),
        },
    )
    boot = journal.current_boot(root)
    for pid, command in ((77, b"python\0-m\0jitter_workshop\0"), (78, b"sleep\0")):
        hosttrees.write(tmp_path, {f"proc/{pid}/cmdline": command.decode()})
    found = journal.applied_by(root, journal.read_journals(root))
    assert boot is not None
    assert {ident: (one.journal, one.pid, one.running) for ident, one in found.items()} == {
        "stat-interval": ("000001-a", 77, True),
        "thp": ("000002-a", 78, False),
    }


def test_a_journal_that_cannot_be_read_is_a_problem_not_an_error(tmp_path: Path) -> None:
    root = host(tmp_path, **{"000001_a": b""})
    (tmp_path / journal.JOURNAL_DIR.lstrip("/") / "000002-b.jsonl").mkdir()
    assert [one.problems for one in journal.read_journals(root)] == [[], ["the file cannot be read"]]


@pytest.mark.parametrize("tail", [b"", b'{"record":"int'])
def test_a_journal_of_too_many_writes_is_not_cut_where_reading_stopped(
    tail: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal, "MAX_ENTRIES", 3)
    data = b"".join(map(journal.encode_record, [header(), *(intent(n) for n in range(1, 9))])) + tail
    found = journal.parse_journal(ID, data)
    assert found.whole == len(data)
    assert len(found.entries) == 4
    assert any(problem.startswith("the journal has more than 3 writes") for problem in found.problems)
