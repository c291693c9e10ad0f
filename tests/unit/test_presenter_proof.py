"""Proofs as text: 80 columns, words first, colour never alone, and nothing claimed beyond the rounds."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence

import pytest

from jitter_workshop.model.change import LeftAlone
from jitter_workshop.model.proof import Proof, ProofPlan
from jitter_workshop.presenter.proofs import proof as proof_view
from jitter_workshop.presenter.text.lines import written
from jitter_workshop.report import html
from jitter_workshop.report.proof_words import proof_headline
from tests import madereports
from tests.madeproofs import CHANGE, make_proof

HOSTILE = "thp=\x1b[31mred\u202e\n<b>"


def verdict(proof: Proof, width: int = 80, colour: bool = False) -> str:
    return written(proof_view.proof_verdict_lines(proof, width), colour)


def listed(proofs: Sequence[Proof], width: int = 80) -> str:
    return written(proof_view.proof_list_lines(proofs, width))


def cost(planned: ProofPlan, width: int = 80) -> str:
    return written(proof_view.proof_cost_lines(planned, width))


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
    text = verdict(make_proof(rounds=rounds), width)
    assert max(map(len, text.splitlines())) <= width


def test_the_words_come_first() -> None:
    first = verdict(make_proof(ratio=0.1)).splitlines()[0]
    assert first.startswith("Proven: stalls over 100 µs: ")
    assert "rarer" in first


@pytest.mark.parametrize(("disturbed", "said"), [(0, ""), (10, ""), (11, " (11 of 20 runs disturbed by other tasks)")])
def test_a_headline_says_where_most_runs_were_disturbed(disturbed: int, said: str) -> None:
    quiet = make_proof(ratio=0.1)
    proof = dataclasses.replace(quiet, disturbed=disturbed)
    assert proof_headline(proof) == proof_headline(quiet) + said
    for text in (verdict(proof, 400), listed([proof], 400)):
        assert ("disturbed by other tasks)." in text) == bool(said)
    page = html.html_page(dataclasses.replace(madereports.bare(), proofs=(proof,)), None)
    assert ("disturbed by other tasks" in page) == bool(said)
    assert ("disturbed by other tasks" in proof_view.earlier_proof_text(proof)) == bool(said)


def test_a_proof_without_an_effect_is_not_proven() -> None:
    text = verdict(make_proof(ratio=1.0))
    assert text.startswith("Not proven: ")
    assert "Rounds needed for a verdict, " in text


def test_a_change_for_the_worse_is_proven_too() -> None:
    text = verdict(make_proof(ratio=10.0), 80, True)
    assert "more often" in text
    assert "\x1b[1;31m" in text


def test_few_rounds_are_said_to_be_no_verdict() -> None:
    text = verdict(make_proof(rounds=3))
    assert "A verdict needs 10 rounds. This proof has 3, so it gives only figures." in text
    assert not re.search(r"\b(lower|higher)\b", text)


def test_each_line_has_its_figures_its_word_and_its_picture() -> None:
    proof = make_proof(ratio=0.1)
    assert proof.judgement is not None
    for width in (80, 120):
        line = next(line for line in verdict(proof, width).splitlines() if line.startswith("stalls over 100 µs"))
        assert {"lower", "●"} <= set(line.split()) | set(line)
        assert ("1/13 – 1/7" in line or " – " in line) == (width == 120)


def test_that_a_ratio_is_not_the_columns_quotient_is_said() -> None:
    told = " ".join(verdict(make_proof()).split())
    assert "The ratio is the typical one of a round. The columns put all runs together" in told
    assert told.index("typical one of a round") < told.index("EACH LINE IN WORDS")


def test_the_other_proven_lines_of_the_headlines_direction_are_named_below_it() -> None:
    proof = make_proof(ratio=0.1)
    said = proof.judgement
    assert said is not None
    also = proof_view.also_proven(said, 400)
    proven = [row for row in said.rows if row.verdict == said.headline.verdict]
    assert len(proven) > 1
    assert also.count("×") + also.count("%") + also.count("only without it") == len(proven) - 1
    assert also in verdict(proof, 400)
    assert f"\nAlso proven: {len(proven) - 1} more lines below.\n" in verdict(proof, 60)
    alone = dataclasses.replace(said, rows=tuple(r for r in said.rows if r.measure == said.headline.measure))
    assert not proof_view.also_proven(alone, 400)
    unsure = dataclasses.replace(said, headline=dataclasses.replace(said.headline, verdict="cannot_tell"))
    assert not proof_view.also_proven(unsure, 400)
    assert "from the pairs" not in verdict(make_proof(rounds=0))


def test_without_colour_there_are_no_escapes_and_with_it_the_words_stay() -> None:
    proof = make_proof()
    plain, coloured = (verdict(proof, 100, c) for c in (False, True))
    assert "\x1b" not in plain
    assert re.sub(r"\x1b\[[\d;]+m", "", coloured) == plain


def test_a_change_that_could_not_be_restored_is_told() -> None:
    left = LeftAlone("thp", "/sys/x", "madvise", "never", "somebody else changed it")
    text = verdict(make_proof(restored=False, left_alone=(left,), stopped="stopped by SIGINT"))
    assert "NOT EVERYTHING IS RESTORED" in text
    assert "somebody else changed it" in text
    assert "stopped by SIGINT." in text


def test_the_text_of_a_running_proof_says_nothing_of_settings_that_remain() -> None:
    text = verdict(make_proof(rounds=3, planned=10, ended_at="", restored=False, complete=False))
    assert "This proof is running." in text
    assert "NOT EVERYTHING" not in text


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
    text = verdict(dataclasses.replace(hostile, judgement=said, started_at=HOSTILE))
    text += cost(plan(subject=HOSTILE, notices=(HOSTILE,)))
    text += listed((make_proof(subject=HOSTILE),))
    assert "\x1b" not in text
    assert "\u202e" not in text


def test_the_cost_names_time_runs_and_every_write() -> None:
    text = cost(plan())
    flat = " ".join(text.split())
    assert "10 rounds, about 3 min 4 s" in flat
    assert "20 runs of ring, 5 s each" in flat
    assert proof_view.REACH in flat
    assert f"{CHANGE.path} always → madvise" in flat
    assert "restores the old values after" in flat
    assert max(map(len, text.splitlines())) <= 80


def test_no_proofs_are_said_to_be_none() -> None:
    assert listed(()) == "No proof is kept in this session.\n"
