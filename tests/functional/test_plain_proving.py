"""Proving a chapter's change line by line."""

from __future__ import annotations

import signal
import threading

import pytest

from jitter_workshop.flow.chapters import comparison
from jitter_workshop.flow.chapters.workshop import Workshop
from jitter_workshop.flow.measuring import comparing
from jitter_workshop.presenter.proofs.proof import OFFER, STOPPED_EARLY
from tests import fakeprover
from tests.fakes import open_workshop
from tests.talking import talk

TO_COMPARE = "|" * 8


def said(workshop: Workshop, answers: str, chapter: str = "pinning", width: int = 80) -> str:
    return " ".join(talk(workshop, f"{TO_COMPARE}{answers}", chapter, width).split())


def test_cost_rounds_verdict_and_later_the_proof(monkeypatch: pytest.MonkeyPatch) -> None:
    made = fakeprover.use(monkeypatch)
    workshop = open_workshop()
    text = said(workshop, "p||p||q")
    for part in (
        OFFER,
        "p prove it · ",
        "Prove placement: 10 rounds, about",
        "sched_setaffinity(producer) any (0-3) → CPU 1",
        "Enter begins 10 rounds · 20, 40 or another number",
        "Not judged yet:",
        "stalls over 100 µs: ",
        "Proven: stalls over 100 µs:",
        "p the proof · ",
        "again = make another proof · Enter goes back",
    ):
        assert " ".join(part.split()) in text, part
    assert text.count("Proven: stalls over 100 µs:") == 2
    assert fakeprover.asked(made).chapter == "pinning"
    assert "Proven: stalls over 100 µs" in said(open_workshop(), "q")


def test_a_proof_counts_beside_two_runs_between_which_other_settings_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A proof makes runs of its own."""
    fakeprover.use(monkeypatch)
    for module in (comparing, comparison):
        monkeypatch.setattr(module, "other_changed_settings", lambda *_: "Between the runs thp changed.")
    workshop = open_workshop()
    text = said(workshop, "p||q")
    assert "Between the runs thp changed." in text
    assert OFFER in text
    assert said(workshop, "q").count("Proven: stalls over 100 µs:") == 1


def test_another_number_of_rounds_and_nonsense(monkeypatch: pytest.MonkeyPatch) -> None:
    made = fakeprover.use(monkeypatch)
    workshop = open_workshop()
    text = said(workshop, "p|many|0|99999999|12|yes|p|again|no|q")
    assert "'many' is not a number of rounds from 1 to 1,000." in text
    assert "'0' is not a number" in text
    assert "'99999999' is not a number" in text
    assert "12 rounds are 24 runs of ring, 5 s each: about 3 min 20 s." in text
    assert "round 12 of 12" in text
    assert "Nothing is measured." in text
    assert [proof.planned for proof in workshop.context.handle.proofs()] == [12]
    assert len(made.made) == 3


@pytest.mark.parametrize("word", ["no", "N"])
def test_no_measures_nothing(monkeypatch: pytest.MonkeyPatch, word: str) -> None:
    fakeprover.use(monkeypatch)
    workshop = open_workshop()
    assert "Nothing is measured." in said(workshop, f"p|{word}|q")
    assert not workshop.context.handle.proofs()


def test_ctrl_c_keeps_the_rounds_that_are_finished(monkeypatch: pytest.MonkeyPatch) -> None:
    made = fakeprover.use(monkeypatch, gate=threading.Event(), hold=5)

    def press() -> None:
        made.reached_gate.wait(20)
        signal.raise_signal(signal.SIGINT)

    pressed = threading.Thread(target=press)
    pressed.start()
    workshop = open_workshop()
    text = said(workshop, "p||q")
    pressed.join()
    assert "Not proven" in text
    assert "stopped by SIGINT" in text
    assert [len(proof.rounds) for proof in workshop.context.handle.proofs()] == [2]


def test_ctrl_c_before_a_round(monkeypatch: pytest.MonkeyPatch) -> None:
    made = fakeprover.use(monkeypatch, gate=threading.Event(), hold=0)
    pressed = threading.Thread(target=lambda: (made.reached_gate.wait(20), signal.raise_signal(signal.SIGINT)))
    pressed.start()
    workshop = open_workshop()
    assert STOPPED_EARLY in said(workshop, "p||q")
    pressed.join()
    assert not workshop.context.handle.proofs()


def test_an_impossible_proof_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    fakeprover.use(monkeypatch, fail=fakeprover.REFUSED)
    assert f"! {fakeprover.REFUSED.sentence()}." in said(open_workshop(), "p|q")


def test_p_leads_to_the_path_where_nothing_is_proven(monkeypatch: pytest.MonkeyPatch) -> None:
    fakeprover.use(monkeypatch)
    assert "prove it" not in said(open_workshop(), "p|q", "baseline")
    text = said(open_workshop(), "?|path|q")
    assert "p at 'compare': prove the change" in text
    assert "see the newest proof" in text
    assert "PATH FOR THIS HOST" in text
    assert "PATH FOR THIS HOST" in said(open_workshop(), "home|home|q")


def test_narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    fakeprover.use(monkeypatch)
    text = talk(open_workshop(), f"{TO_COMPARE}p||q", "pinning", 60)
    assert max(map(len, text.splitlines())) <= 80
    assert "Proven" in text
