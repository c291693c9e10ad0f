"""A screening as text: its cost, its ranked settings, and what is told if it is not finished; and in a report."""

from __future__ import annotations

import dataclasses
from functools import cache

from jitter_workshop.model.change import LeftAlone, Skipped
from jitter_workshop.model.record import made_of
from jitter_workshop.model.report import ReportedScreening
from jitter_workshop.model.screening import Screening, ScreeningPlan
from jitter_workshop.presenter.proofs.screening import (
    screening_cost_lines,
    screening_lines,
    screening_list_lines,
    screening_restored,
)
from jitter_workshop.presenter.text.lines import written
from jitter_workshop.report import html, markdown
from jitter_workshop.report.screening_words import screening_sentence
from jitter_workshop.stats.screening import screening_result
from tests import madereports
from tests.madescreenings import SimulatedHost, blank, screened


@cache
def made() -> Screening:
    return screened(SimulatedHost(4, {3: 0.3, 8: 3.0}), 12, 4)


def reported(screening: Screening) -> ReportedScreening:
    """Return a screening as it stands in a report."""
    found = screening_result(screening)
    assert found is not None
    return made_of(
        ReportedScreening,
        screening,
        measure=found.measure,
        text=screening_sentence(screening, found),
        ranked=found.ranked,
        chosen=tuple(screening.settings[n] for n in screening.chosen),
    )


def text_of(screening: Screening, width: int = 100) -> str:
    return written(screening_lines(screening, width))


def test_the_settings_that_matter_come_first_with_their_intervals_on_one_axis() -> None:
    told = text_of(made())
    lines = told.splitlines()
    head = next(n for n, line in enumerate(lines) if "ratio" in line and "1" in line)
    assert {lines[head + 1].split()[0], lines[head + 2].split()[0]} == {"setting-3", "setting-8"}
    assert {lines[head + 1].split()[-1], lines[head + 2].split()[-1]} == {"lower", "higher"}
    assert all("●" in line for line in lines[head + 1 : head + 3])
    assert lines[head + 3].startswith("┄")
    assert len([line for line in lines[head + 4 :] if line.startswith("setting-")]) == 10
    assert "main effect" in told


def test_no_line_is_wider_than_the_terminal() -> None:
    for width in (60, 80, 100, 160):
        assert max(map(len, text_of(made(), width).splitlines())) <= width


def test_a_part_of_a_screening_says_that_nothing_is_known() -> None:
    whole = made()
    part = dataclasses.replace(
        whole, pairs=whole.pairs[:5], proofs=(), chosen=(), measure="", stopped="stopped by SIGINT"
    )
    told = text_of(part)
    assert "5 of 20 pairs are measured" in told
    assert "--resume" in told
    assert "stopped by SIGINT" in told
    assert "●" not in told.partition("THIS SCREENING")[0]


def test_a_setting_that_is_not_restored_is_loud() -> None:
    left = (LeftAlone("thp", "/sys/thp", "a", "b", "somebody else changed it"),)
    told = text_of(dataclasses.replace(made(), restored=False, left_alone=left))
    assert "NOT EVERYTHING IS RESTORED" in told
    assert "/sys/thp: somebody else changed it" in told


def test_the_cost_names_runs_time_and_the_price_of_one_at_a_time() -> None:
    plan = ScreeningPlan(
        settings=tuple(f"setting-{n}" for n in range(19)),
        pairs=20,
        most=4,
        proofs=32,
        workload="ring",
        preset="quick",
        hot_cpus=(1,),
        changes=(),
        run_s=5.0,
        total_s=780.0,
        left_out=(Skipped("smt", "it takes CPUs offline"),),
        done=8,
    )
    told = " ".join(written(screening_cost_lines(plan, 100)).split())
    assert "First 40 runs choose 4 settings" in told
    assert "Together 104 runs of ring, 5 s each: about 13 min" in told
    assert "would take 380 runs; this screening takes 104, 27 %" in told
    assert "Done already: 8 runs. Left: 96 runs." in told
    assert "smt: it takes CPUs offline" in told


def test_a_list_has_the_result_of_each() -> None:
    told = " ".join(written(screening_list_lines((made(), blank(9, 1)), 100)).split())
    assert "move stalls over" in told
    assert "Nothing can be told yet" in told
    assert written(screening_list_lines((), 80)).startswith("No screening")


def test_a_setting_that_another_program_changed_is_named_on_the_screen_and_in_the_report() -> None:
    left = LeftAlone("thp", "/sys/thp", "always", "never", "another value was set")
    screening = dataclasses.replace(made(), command=(), left_alone=(left,))
    one = reported(screening)
    page = html.html_page(dataclasses.replace(madereports.bare(), screenings=(one,)), None)
    for text in (page, text_of(screening, 120)):
        assert "changed since" in text
        assert "/sys/thp" in text
    lost = dataclasses.replace(screening, restored=False, ended_at="2026-01-01T00:00:00Z")
    assert screening_restored(lost).startswith("NOT EVERYTHING IS RESTORED (thp)")


def test_a_report_has_its_result_its_table_and_no_claim_of_a_proof() -> None:
    screening = dataclasses.replace(made(), command=(), notes=("a note <b>",))
    one = reported(screening)
    document = dataclasses.replace(madereports.bare(), screenings=(one,))
    page = html.html_page(document, None)
    assert "Which of 12 settings matter" in page
    assert "setting-3" in page
    assert "a note &lt;b&gt;" in page
    assert "Nothing was proven" not in page
    text = markdown.markdown_text(document, {})
    assert "Which of 12 settings matter" in text
    assert "├" in text
