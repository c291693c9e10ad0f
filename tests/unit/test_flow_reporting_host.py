"""Test the fate of each write in a report, from the session's history and the host's journal."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from jitter_workshop.flow.reporting import host as reporting_host
from jitter_workshop.model.status import HostEvent
from jitter_workshop.tuning.journal import Entry

BOOT = "boot-1"


def event(did: str, path: str = "/a", at: int = 0, **more: Any) -> HostEvent:
    fields: dict[str, Any] = {
        "at": f"2026-01-01T00:00:{at:02d}Z",
        "did": did,
        "tunable": "thp",
        "path": path,
        "before": "1",
        "after": "2",
        "boot_id": BOOT,
    }
    return HostEvent(**{**fields, **more})


def entry(path: str = "/a") -> Entry:
    return Entry("000001-x", 1, "thp", path, "value", "1", "2", "runtime", False, "", BOOT, "written", "2")


def fates(*events: HostEvent, stands: tuple[Entry, ...] | None = (), boot: str = BOOT) -> list[str]:
    _, rows = reporting_host._reconciled(events, stands, boot, "not known: elsewhere")
    return [row.fate for row in rows]


def test_a_restore_is_told_with_its_time() -> None:
    _, rows = reporting_host._reconciled([event("applied"), event("restored", at=7, after="1")], (), BOOT, "")
    assert [(row.fate, row.fate_at, row.text) for row in rows] == [("restored", "2026-01-01T00:00:07Z", "restored: 1")]


def test_the_last_write_is_restored_first() -> None:
    first, second = event("applied", after="2"), event("applied", at=1, after="3")
    _, rows = reporting_host._reconciled([first, second, event("restored", at=2)], (entry(),), BOOT, "")
    assert [(row.after, row.fate) for row in rows] == [("2", "standing"), ("3", "restored")]


def test_a_write_in_the_journal_stands_and_any_other_is_gone_unseen() -> None:
    assert fates(event("applied"), stands=(entry(),)) == ["standing"]
    assert fates(event("applied", kept=True), stands=(entry(),)) == ["kept"]
    assert fates(event("applied"), event("kept"), stands=(entry(),)) == ["kept"]
    _, (row,) = reporting_host._reconciled([event("applied")], (), BOOT, "")
    assert row.fate == "gone"
    assert "before it noted the restore" in row.text


def test_a_reboot_takes_the_writes_that_are_not_in_the_journal_of_this_boot() -> None:
    assert fates(event("applied", kept=True), boot="boot-2") == ["rebooted"]
    assert fates(event("applied", kept=True, boot_id=None), boot="boot-2") == ["gone"]
    # A boot parameter stands beyond the boot in which it was written.
    assert fates(event("applied", kept=True), stands=(entry(),), boot="boot-2") == ["kept"]


def test_of_another_host_nothing_is_claimed() -> None:
    assert fates(event("applied"), event("applied", "/b"), event("restored", "/b"), stands=None) == [
        "unknown",
        "restored",
    ]


def test_a_refused_write_and_one_that_was_left_alone_have_a_reason() -> None:
    _, rows = reporting_host._reconciled(
        [
            event("refused", "/r", reason="EIO", after=None),
            event("applied"),
            event("left_alone", reason="changed by x"),
        ],
        (),
        BOOT,
        "",
    )
    assert [(row.fate, row.text) for row in rows] == [("refused", "EIO"), ("left_alone", "changed by x")]
    # Somebody may give it back later all the same.
    assert fates(event("applied"), event("left_alone"), event("restored", at=9)) == ["restored"]


def test_a_restore_without_an_apply_makes_no_row() -> None:
    assert fates(event("restored"), event("left_alone"), event("kept")) == []


def test_a_proof_is_folded_except_for_its_remaining_changes() -> None:
    before = event("applied", chapter="memory")
    taken = event("restored", at=1, proof="p")  # a proof gives back what its chapter had set
    rounds = [event(did, at=at, proof="p") for at in range(2, 8, 2) for did in ("applied", "restored")]
    left = event("applied", "/b", at=9, proof="p")
    shown, rows = reporting_host._reconciled([before, taken, *rounds, left], (entry("/b"),), BOOT, "")
    assert shown == (before, taken, left)
    assert [(row.path, row.fate) for row in rows] == [("/a", "restored"), ("/b", "standing")]


PATHS = st.sampled_from(["/a", "/b"])
EVENTS = st.lists(
    st.builds(
        event,
        st.sampled_from(["applied", "applied", "restored", "left_alone", "kept", "refused"]),
        PATHS,
        kept=st.booleans(),
        proof=st.sampled_from(["", "", "p"]),
        boot_id=st.sampled_from([BOOT, "boot-0", None]),
    ),
    max_size=30,
)


@given(EVENTS, st.lists(PATHS, max_size=2, unique=True), st.booleans())
def test_each_write_and_refusal_has_one_row_and_no_write_is_given_back_twice(
    events: list[HostEvent], stands: list[str], known: bool
) -> None:
    entries = tuple(entry(path) for path in stands) if known else None
    shown, rows = reporting_host._reconciled(events, entries, BOOT, "?")
    assert [row.at for row in rows] == [e.at for e in shown if e.did in ("applied", "refused")]
    back = sum(row.fate == "restored" for row in rows)
    assert back <= sum(e.did == "restored" for e in events)
    for row in rows:
        assert row.text
        assert (row.fate in ("standing", "kept")) <= (known and row.path in stands)
        assert (row.fate == "unknown") <= (not known)
    assert [e for e in shown if not e.proof] == [e for e in events if not e.proof]
