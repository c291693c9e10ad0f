"""Proofs as text: 80 columns, words first, colour never alone, and nothing claimed beyond the rounds."""

from __future__ import annotations

import dataclasses
import re

import pytest

from jitter_workshop.model.change import LeftAlone
from jitter_workshop.model.proof import ProofPlan
from jitter_workshop.presenter import proof_words
from jitter_workshop.report import html
from jitter_workshop.report.text import proof as proof_text
from jitter_workshop.report.text.terminal import Style
from tests import madereports
from tests.madeproofs import CHANGE, make_proof

PLAIN = Style(80)
HOSTILE = "thp=\x1b[31mred\u202e\n<b>"


def plan(**changed: object) -> ProofPlan:
    fields: dict[str, object] = {
        "subject": "thp",
        "rounds": 10,
        "workload": "ring",
        "preset": "quick",
        "hot_cpus": (2, 3),
        "changes": (CHANGE,),
        "run_s": 5.0,
        "total_s": 184.0,
    }
    return ProofPlan(**{**fields, **changed})  # type: ignore[arg-type]


@pytest.mark.parametrize("width", [60, 79, 80, 98, 99, 160])
@pytest.mark.parametrize("rounds", [0, 1, 3, 10, 40])
def test_it_fits_its_width(width: int, rounds: int) -> None:
    text = proof_text.render(make_proof(rounds=rounds), Style(width))
    assert max(map(len, text.splitlines())) <= width


def test_the_words_come_first() -> None:
    first = proof_text.render(make_proof(ratio=0.1), PLAIN).splitlines()[0]
    assert first.startswith("Proven: stalls over 100 µs: ")
    assert "rarer" in first


@pytest.mark.parametrize(("disturbed", "said"), [(0, ""), (10, ""), (11, " (11 of 20 runs disturbed by others)")])
def test_a_headline_says_where_most_runs_were_disturbed(disturbed: int, said: str) -> None:
    quiet = make_proof(ratio=0.1)
    proof = dataclasses.replace(quiet, disturbed=disturbed)
    assert proof_text.headline(proof) == proof_text.headline(quiet) + said
    for text in (proof_text.render(proof, Style(400)), proof_text.listed([proof], Style(400))):
        assert ("disturbed by others)." in text) == bool(said)
    page = html.render(dataclasses.replace(madereports.bare(), proofs=(proof,)), None)
    assert ("disturbed by others" in page) == bool(said)
    assert ("disturbed by others" in proof_words.remembered(proof)) == bool(said)


def test_what_nothing_changed_is_not_proven() -> None:
    text = proof_text.render(make_proof(ratio=1.0), PLAIN)
    assert text.startswith("Not proven: ")
    assert "LINES WITHOUT A VERDICT" in text


def test_a_change_for_the_worse_is_proven_too() -> None:
    text = proof_text.render(make_proof(ratio=10.0), Style(80, colour=True))
    assert "more often" in text
    assert "\x1b[33m" in text


def test_few_rounds_are_said_to_be_no_verdict() -> None:
    text = proof_text.render(make_proof(rounds=3), PLAIN)
    assert "3 rounds give figures; a verdict needs 10" in text
    assert not re.search(r"\b(lower|higher)\b", text)


def test_each_line_has_its_figures_its_word_and_its_picture() -> None:
    proof = make_proof(ratio=0.1)
    assert proof.judgement is not None
    narrow = proof_text.render(proof, PLAIN)
    wide = proof_text.render(proof, Style(120))
    assert narrow.count("stalls over 100 µs") == wide.count("stalls over 100 µs") + 1
    line = next(line for line in wide.splitlines() if line.startswith("stalls over 100 µs"))
    assert line.endswith("lower")
    assert "●" in line
    assert "┤" in line


def test_that_a_ratio_is_not_the_columns_quotient_is_said() -> None:
    assert "of the pairs, not of the two columns" in " ".join(proof_text.render(make_proof(), PLAIN).split())
    assert "of the pairs" not in proof_text.render(make_proof(rounds=0), PLAIN)


def test_without_colour_there_are_no_escapes_and_with_it_the_words_stay() -> None:
    proof = make_proof()
    plain, coloured = (proof_text.render(proof, Style(100, colour=c)) for c in (False, True))
    assert "\x1b" not in plain
    assert re.sub(r"\x1b\[\d+m", "", coloured) == plain


def test_what_could_not_be_given_back_is_said() -> None:
    left = LeftAlone("thp", "/sys/x", "madvise", "never", "somebody else changed it")
    text = proof_text.render(make_proof(restored=False, left_alone=(left,), stopped="stopped by SIGINT"), PLAIN)
    assert "NOT GIVEN BACK" in text
    assert "somebody else changed it" in text
    assert "Ended early: stopped by SIGINT." in text


def test_one_under_way_claims_nothing_of_the_host() -> None:
    text = proof_text.render(make_proof(rounds=3, planned=10, ended_at="", restored=False, complete=False), PLAIN)
    assert "It is under way." in text
    assert "NOT GIVEN BACK" not in text


def test_hostile_names_stay_on_their_line() -> None:
    said = make_proof().judgement
    assert said is not None
    row = dataclasses.replace(said.rows[0], measure=f"stalls_per_second_over_{HOSTILE}_ns", words=HOSTILE)
    row = dataclasses.replace(row, verdict="cannot_tell", rounds_needed=None)
    head, drift = (dataclasses.replace(one, measure=HOSTILE) for one in (said.headline, said.drift))
    said = dataclasses.replace(
        said,
        rows=(row, *said.rows),
        headline=dataclasses.replace(head, text=HOSTILE),
        drift=dataclasses.replace(drift, words=HOSTILE),
        worst=HOSTILE,
    )
    hostile = make_proof(subject=HOSTILE, notes=(HOSTILE,), stopped=HOSTILE, workload=HOSTILE, preset=HOSTILE)
    text = proof_text.render(dataclasses.replace(hostile, judgement=said, started_at=HOSTILE), PLAIN)
    text += proof_text.cost(plan(subject=HOSTILE, notices=(HOSTILE,)), PLAIN)
    text += proof_text.listed((make_proof(subject=HOSTILE),), PLAIN)
    assert "\x1b" not in text
    assert "\u202e" not in text


def test_the_cost_names_time_runs_and_every_write() -> None:
    text = proof_text.cost(plan(), PLAIN)
    flat = " ".join(text.split())
    assert "10 rounds, about 3 min 4 s" in flat
    assert "20 runs of ring (quick preset, 5 s each)" in flat
    assert f"{CHANGE.path} always → madvise" in flat
    assert "made and given back" in flat
    assert max(map(len, text.splitlines())) <= 80


def test_no_proofs_are_said_to_be_none() -> None:
    assert proof_text.listed((), PLAIN) == "No proof is kept in this session.\n"
