"""A report as plain data: what is in it of a session with chapters, without, of another host, of a recorded one."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from jitter_workshop.errors import LessonError
from jitter_workshop.flow.chapters.noise import ChapterNoise
from jitter_workshop.flow.reporting import build as reporting
from jitter_workshop.flow.reporting import files
from jitter_workshop.flow.reporting import runs as reporting_runs
from jitter_workshop.flow.reporting.anonymizer import anonymize_report
from jitter_workshop.flow.reporting.build import build_report
from jitter_workshop.flow.reporting.draft import FORMATS
from jitter_workshop.flow.reporting.prepare import prepare_report
from jitter_workshop.flow.reporting.runs import told_apart
from jitter_workshop.flow.reporting.subject import NothingToReport, subject_of
from jitter_workshop.host.root import HostRoot
from jitter_workshop.model.curve import ImportedRun, PercentileCurve
from jitter_workshop.model.proof import ProofRound
from jitter_workshop.model.report import ReportDocument
from jitter_workshop.model.run import UNSTEADY
from jitter_workshop.model.session import ALONE, ChapterProgress, Guess, HuntOutcome
from jitter_workshop.presenter.report_preview import WHEN_LONG, format_choices, preview_sections
from jitter_workshop.report import html, markdown
from jitter_workshop.report.sections import sections
from jitter_workshop.session import history
from jitter_workshop.session.store import OpenSession, SessionStore
from jitter_workshop.stats.curve import curve_value_at
from jitter_workshop.stats.scale import nice_ns
from tests import fakes, madereports
from tests.madematrix import by_nearness, machine, made

MakeRun = Callable[..., tuple[Any, Any]]
SLOW, FAST = [100] * 1000 + [3_000_000] * 100, [100] * 1000 + [4_000] * 100
GUESS = Guess(percentile="99.9", value_ns=2_500_000)


@pytest.fixture
def session(make_run: MakeRun, tmp_path: Path) -> OpenSession:
    """On another host: two chapters with their runs, one begun without, one of another course, and three runs more."""
    opened = SessionStore(tmp_path / "sessions").create("monday", "lab03")
    host = {"name": "lab03", "boot_id": "boot-of-lab03"}
    for number in range(7):
        values = FAST if number % 2 else SLOW
        ident = f"2026010{number + 1}-000000-aaaa"
        label = ("baseline", "pinned")[number % 2]
        applied = ({"id": "thp", "value": "never"},) if number == 3 else ()
        started = f"2026-01-0{number + 1}T00:00:00.000Z"
        # Blocks of 10 ms: each run sent all messages that it planned.
        chosen: dict[str, Any] = {"run_id": ident, "label": label, "applied": applied, "started_at": started}
        opened.add_run(*make_run([values], block_s=0.01, host=host, **chosen))
    ids = opened.session.runs
    chapters = {
        "baseline": ChapterProgress("explain", GUESS, runs={"measure": ids[0]}, marks={"curve": True}, done=True),
        "pinning": ChapterProgress("compare", runs={"measure": ids[2], "again": ids[3]}, marks={"setting": True}),
        "hunt": ChapterProgress("look", hunts=(HuntOutcome("greedy", True),)),
        "theirs/first": ChapterProgress("look", hints=1),
    }
    opened.save(dataclasses.replace(opened.session, chapters=chapters))
    return opened


def test_chapters_are_told_as_the_session_keeps_them(session: OpenSession) -> None:
    document = build_report(subject_of(session))
    assert [chapter.id for chapter in document.chapters] == ["baseline", "pinning", "hunt"]
    first, second, third = document.chapters
    assert first.guess == "2.5 ms at p99.9"
    assert first.outcome is not None
    assert first.outcome.near is True
    assert (first.done, first.curve, first.comparison) == (True, True, None)
    assert first.learnt
    assert second.comparison is not None
    assert second.comparison.rows
    assert second.setting is True
    assert "cannot prove" in second.comparison_text or "prove" in second.comparison_text
    assert third.learnt[0].startswith("1 of 1 hidden noise found")
    assert "theirs/first" in document.notes["chapters"]
    roles = {run.id: run.role for run in document.runs}
    assert list(roles.values())[:4] == ["Why so slow? · measure", "", "Pinning · measure", "Pinning · again"]


@pytest.mark.parametrize("had_to_apply", [True, False])
def test_another_setting_that_changed_between_the_runs_is_told_in_any_case(
    session: OpenSession, make_run: MakeRun, had_to_apply: bool
) -> None:
    """Also if the chapter's own settings were good, so that nothing was applied in the second run."""
    kept, thp = session.session.chapters, ({"id": "thp", "value": "never"},)
    host = {"name": "lab03", "boot_id": "boot-of-lab03"}
    for number, applied in ((8, thp if not had_to_apply else ()), (9, thp if had_to_apply else ())):
        session.add_run(*make_run([FAST], run_id=f"2026010{number}-000000-aaaa", host=host, applied=applied))
    before, after = session.session.runs[-2:]
    pinning = dataclasses.replace(kept["pinning"], runs={"measure": before, "again": after})
    session.save(dataclasses.replace(session.session, chapters={**kept, "pinning": pinning}))
    told = next(one for one in build_report(subject_of(session)).chapters if one.id == "pinning").comparison_text
    first, then = ("not applied", "never") if had_to_apply else ("never", "not applied")
    assert f"this tool's own settings changed: thp ({first}, then {then})." in told


def test_the_open_points_are_of_the_course_that_was_begun(session: OpenSession) -> None:
    document = build_report(subject_of(session))
    points = {point.id: point.text for point in document.still_open if point.kind == "chapter"}
    assert "baseline" not in points
    assert points["pinning"] == "at its step 'compare'"
    assert points["governor"] == "not begun"
    session.save(dataclasses.replace(session.session, chapters={}))
    assert [point for point in build_report(subject_of(session)).still_open if point.kind == "chapter"] == []


def test_two_curves_of_one_chapter_have_the_labels_of_their_runs(session: OpenSession, make_run: MakeRun) -> None:
    kept = session.session.chapters
    for number, label in enumerate(("free", "pinned"), 8):
        session.add_run(*make_run([FAST], run_id=f"2026010{number}-000000-aaaa", label=label))
    before, after = session.session.runs[-2:]
    pinning = dataclasses.replace(kept["pinning"], runs={"measure": before, "again": after})
    session.save(dataclasses.replace(session.session, chapters={"pinning": pinning}))
    chart = build_report(subject_of(session)).overlays[0]
    assert (chart.title, [curve.label for curve in chart.curves]) == (
        "From first to last",
        ["Pinning: free", "Pinning: pinned"],
    )


def test_a_chart_has_curves_that_belong_together_and_no_two_of_one_name(session: OpenSession) -> None:
    document = build_report(subject_of(session))
    titles = [chart.title for chart in document.overlays]
    assert titles[:3] == ["From first to last", "Why so slow?", "Pinning"]
    assert "Messages through the ring" in titles
    assert "Next to a laptop of 2015" in titles
    for chart in document.overlays:
        labels = [curve.label for curve in chart.curves]
        assert len(set(labels)) == len(labels)
    published = next(chart for chart in document.overlays if "2015" in chart.title)
    assert [curve.origin for curve in published.curves].count("published") == 3
    # Only what is drawn has its curve with it: a session may have hundreds of runs.
    assert {run.id for run in document.runs if run.curve is None} < {run.id for run in document.runs}


@pytest.mark.parametrize(
    ("of_second", "filled"),
    [
        ({"sched": "fifo"}, True),
        ({"sched": "fifo", "applied": ({"id": "thp", "value": "never"},)}, False),
        ({"sched": "fifo", "notes": {UNSTEADY: "settings changed"}}, False),
    ],
    ids=["changed", "strayed", "unsteady"],
)
def test_only_the_chapters_change_makes_one_curve_better_than_the_other(
    make_run: MakeRun, session: OpenSession, of_second: dict[str, Any], filled: bool
) -> None:
    first, second = "20260201-000000-aaaa", "20260202-000000-aaaa"
    host = {"name": "lab03", "boot_id": "boot-of-lab03"}
    session.add_run(*make_run([SLOW], run_id=first, host=host))
    session.add_run(*make_run([FAST], run_id=second, host=host, **of_second))
    pinning = ChapterProgress("compare", runs={"measure": first, "again": second}, marks={"setting": True})
    session.save(dataclasses.replace(session.session, chapters={"pinning": pinning}))
    document = build_report(subject_of(session))
    chart = next(chart for chart in document.overlays if chart.title == "Pinning")
    assert chart.between == ((0, 1) if filled else None)
    assert "its run after the change" in chart.text


def test_the_runs_with_company_and_those_without_it_are_both_reported(
    session: OpenSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ChapterNoise, "both_ways", lambda _: "Both ways.")
    ids, kept = session.session.runs, session.session.chapters
    pinning = dataclasses.replace(kept["pinning"], other_runs={"measure": ids[4], "again": ids[5]}, noise=ALONE)
    session.save(dataclasses.replace(session.session, chapters={**kept, "pinning": pinning}))
    document = build_report(subject_of(session))
    chapter = next(one for one in document.chapters if one.id == "pinning")
    assert chapter.other_runs == {"measure": ids[4], "again": ids[5]}
    assert chapter.comparison_text.endswith("Both ways.")
    titles = [chart.title for chart in document.overlays]
    assert [title for title in titles if title.startswith("Pinning, ")] == ["Pinning, without a noise"] * 2
    free = next(chart for chart in document.overlays if chart.title == "Messages through the ring")
    assert len(free.curves) < 5


def test_of_another_host_nothing_is_said_of_now(session: OpenSession) -> None:
    document = build_report(subject_of(session))
    assert (document.host_name, document.recorded) == ("lab03", "")
    assert document.after is None
    assert "session was made on lab03, and" in document.notes["after"]
    assert not [point for point in document.still_open if point.kind in ("check", "standing", "reboot")]
    assert not any("on this host" in sentence for sentence in document.summary)
    kept = madereports.made_snapshot(after=True)
    history.keep_last(session.folder, kept)
    document = build_report(subject_of(session))
    assert document.after == kept
    assert "the last kept status" in document.notes["after"]


def test_this_host_is_read_only_in_a_boot_that_the_session_knows(make_run: MakeRun, tmp_path: Path) -> None:
    from jitter_workshop.flow.chapters.session_context import look_at

    _, here = look_at(HostRoot())
    for boot, known in ((here.boot_id, True), ("another", False)):
        with SessionStore(tmp_path / f"of-{known}").create("here", here.name) as opened:
            opened.add_run(*make_run(host={"name": here.name, "boot_id": boot}))
            document = build_report(subject_of(opened))
            assert (document.after is not None) is known
            assert ("after" in document.notes) is not known
            prepare_report(subject_of(opened))
            assert (history.last(opened.folder)[0] is not None) is known


def test_building_writes_nothing_and_a_session_that_is_only_read_stays_as_it_is(
    make_run: MakeRun, tmp_path: Path
) -> None:
    from jitter_workshop.flow.chapters.session_context import look_at

    _, here = look_at(HostRoot())
    store = SessionStore(tmp_path)

    def kept(opened: OpenSession) -> dict[str, bytes]:
        return {str(path): path.read_bytes() for path in opened.folder.rglob("*") if path.is_file()}

    with store.create("here", here.name) as opened:
        opened.add_run(*make_run(host={"name": here.name, "boot_id": here.boot_id}))
        opened.add_proof(madereports.made_proof(restored=False, ended_at="2026-01-01T01:05:00.000000Z"))
        before = kept(opened)
        subject = subject_of(opened)
        document = build_report(subject)
        assert kept(opened) == before
        assert dataclasses.replace(build_report(subject), made_at=document.made_at) == document
        # The end of the proof is told all the same.
        assert document.proofs[0].restored
        with store.open("here") as second:
            assert second.read_only
            assert build_report(subject_of(second)).proofs == document.proofs
            prepare_report(subject_of(second))
            assert kept(opened) == before
        prepare_report(subject_of(opened))
        assert opened.proofs()[0].restored
        assert kept(opened) != before


def test_without_a_chapter_it_is_a_good_report_too(make_run: MakeRun, tmp_path: Path) -> None:
    with SessionStore(tmp_path).create("only measured", "lab03") as opened:
        opened.add_run(*make_run([SLOW], disturbed=(), complete=False, notes={"complete": "2 of 20 blocks, stopped"}))
        document = build_report(subject_of(opened))
    assert document.chapters == ()
    assert [chart.title for chart in document.overlays] == ["Messages through the ring", "Next to a laptop of 2015"]
    assert document.runs[0].notes == ("2 of 20 blocks, stopped",)
    assert document.summary == ("1 run of ring on 2026-01-01; 1 stopped early.",)
    assert document.commands[-1].command == f"jitter-workshop report --session {document.session_id}"
    assert "no task is named" in document.notes["culprits"]


def test_a_run_whose_late_messages_come_in_bursts_has_a_heat_map(make_run: MakeRun, tmp_path: Path) -> None:
    with SessionStore(tmp_path).create("bursts", "lab03") as opened:
        loud = [[100] * 200 + ([3_000_000] * 20 if n % 4 == 0 else [300]) for n in range(16)]
        opened.add_run(*make_run(loud, run_id="20260101-000000-aaaa", label="loud one"))
        opened.add_run(*make_run([[100] * 200 + [300]] * 16, run_id="20260101-000001-bbbb", label="even"))
        opened.add_run(*make_run(loud, run_id="20260101-000002-cccc", label="no blocks"))
        opened.blocks_file("20260101-000002-cccc").unlink()
        document = build_report(subject_of(opened))
        private = anonymize_report(document)
        text = markdown.files(document, opened, opened.runs(), "x.md")
    (one,) = document.heats
    assert (one.run, len(one.counts), one.block_s) == ("20260101-000000-aaaa", 16, 0.25)
    assert one.text == (
        "In 4 of 16 blocks, the longest time is at least ten times as long as in the median block. "
        "These blocks begin at 0 s, 1.2 s, 2.4 s, 3.6 s."
    )
    page = html.html_page(document, None)
    drawn = f'id="chart-{len(document.overlays) + 1}"'
    assert drawn in page
    assert "When the long values came: loud one" in page
    assert f"x-chart-{len(document.overlays) + 1}.svg" in text
    assert "When the long values came: loud one" in text["x.md"].decode()
    assert private.heats == document.heats
    assert "loud one" not in html.html_page(private, None)


def test_the_run_with_the_longest_value_has_a_heat_map_without_bursts(make_run: MakeRun, tmp_path: Path) -> None:
    once = [[100] * 200 + ([3_000_000] if n == 5 else [300]) for n in range(16)]
    with SessionStore(tmp_path).create("even", "lab03") as opened:
        opened.add_run(*make_run([[100] * 200 + [300]] * 16, run_id="20260101-000000-aaaa", label="even"))
        opened.add_run(*make_run(once, run_id="20260101-000001-bbbb", label="worst one"))
        opened.add_run(*make_run([[100, 9_000_000]] * 3, run_id="20260101-000002-cccc", label="no blocks"))
        opened.blocks_file("20260101-000002-cccc").unlink()
        document = build_report(subject_of(opened))
        short = build_report(subject_of(opened, runs=["20260101-000000-aaaa"]))
        without = build_report(subject_of(opened, runs=["20260101-000002-cccc"]))
        written = markdown.files(document, opened, opened.runs(), "x.md")
    (one,) = document.heats
    assert (one.run, one.bursts, one.worst) == ("20260101-000001-bbbb", False, True)
    told = (
        "Of the runs that can have a heat map, this one has the longest value: 3 ms. Its long values do not come in "
        "bursts: 1 of its 16 blocks has a longest time of ten times the median block's or more."
    )
    assert one.text == told
    number = len(document.overlays) + 1
    page, text = html.html_page(document, None), written["x.md"].decode()
    assert "<summary>When the long values came: worst one</summary>" in page
    assert f'id="chart-{number}"' in page
    assert told in page.replace("&#x27;", "'")
    assert f"x-chart-{number}.svg" not in written
    assert "from   1 ms │     ░\n" in text
    lines = [line.plain for line in preview_sections(document, 80)]
    at = lines.index("WHEN THE LONG VALUES CAME")
    assert lines[at + 1] == "worst one"
    assert any("░" in line for line in lines[at:])
    assert "none of its 16 blocks has" in short.heats[0].text
    assert without.heats == ()
    assert without.notes["heats"] in html.html_page(without, None)
    assert without.notes["heats"] in markdown.markdown_text(without, {})
    assert "No run here has a heat map." in " ".join(line.plain for line in preview_sections(without, 80))


@pytest.mark.parametrize("width", [40, 100])
def test_the_formats_stand_in_one_column(width: int) -> None:
    formats = tuple(FORMATS.values())
    head, *lines, last = [line.plain for line in format_choices(formats, formats[0], width)]
    assert (head, last) == ("WRITTEN AS", "")
    column = 2 + max(len(one.name) for one in formats) + 2
    assert all(line[column - 2 : column] == "  " and line[column] != " " for line in lines)
    assert lines[0].startswith(f"▸ {formats[0].name} ")


def test_only_the_heat_map_of_the_worst_run_is_drawn_in_the_preview(make_run: MakeRun, tmp_path: Path) -> None:
    with SessionStore(tmp_path).create("bursts", "lab03") as opened:
        for ident, longest in (("20260101-000000-aaaa", 9_000_000), ("20260101-000001-bbbb", 3_000_000)):
            loud = [[100] * 200 + ([longest] * 20 if n % 4 == 0 else [300]) for n in range(16)]
            opened.add_run(*make_run(loud, run_id=ident, label=ident[-4:]))
        opened.add_run(*make_run([[100, 200]] * 3, run_id="20260101-000002-cccc", label="three"))
        document = build_report(subject_of(opened))
        few = build_report(subject_of(opened, runs=["20260101-000002-cccc"]))
    assert [(one.bursts, one.worst) for one in document.heats] == [(True, True), (True, False)]
    lines = [line.plain for line in preview_sections(document, 80)]
    assert "In the file: When the long values came: bbbb" in lines
    assert lines[lines.index(WHEN_LONG) + 1] == "aaaa"
    assert "<summary>When the long values came" not in html.html_page(document, None)
    assert few.heats[0].text.endswith("It has 3 blocks, too few to tell whether long values come in bursts.")


def test_the_newest_whole_matrix_is_in_the_report(make_run: MakeRun, tmp_path: Path) -> None:
    cpus = machine(2, 1, 1, 2, 2)
    whole = dataclasses.replace(made(cpus, by_nearness(cpus)), label="our lab03", host={"name": "lab03"})
    later = "2026-11-29T12:00:00.000000Z"
    cut = dataclasses.replace(whole, id="20261129-120000-0001", started_at=later, complete=False)
    with SessionStore(tmp_path).create("lines", "lab03") as opened:
        assert "lines" not in {one.id for one in sections(build_one(opened, make_run))}
        opened.add_matrix(whole)
        opened.add_matrix(cut)
        document = build_report(subject_of(opened))
        private = anonymize_report(document)
        written = markdown.files(document, opened, opened.runs(), "x.md")
        assert build_report(subject_of(opened, runs=opened.session.runs)).matrix is None
    assert document.matrix == dataclasses.replace(whole, host={})
    number = len(document.overlays) + len(document.heats) + 1
    page, text = html.html_page(document, None), written["x.md"].decode()
    assert f'id="chart-{number}"' in page
    assert f"](x-chart-{number}.svg)" in text
    assert written[f"x-chart-{number}.svg"].startswith(b"<svg")
    lines = [line.plain for line in preview_sections(document, 80)]
    for form in (page, text, "\n".join(lines)):
        assert "our lab03" in form
        for cluster in whole.clusters:
            assert cluster.name in form
            assert nice_ns(cluster.median_ns) in form
    assert max(map(len, lines)) <= 80
    assert private.matrix is not None
    assert private.matrix.one_way_ns == whole.one_way_ns
    assert private.matrix.topology == ""
    assert "our lab03" not in html.html_page(private, None)


def build_one(opened: OpenSession, make_run: MakeRun) -> ReportDocument:
    opened.add_run(*make_run([FAST]))
    return build_report(subject_of(opened))


def test_imports_are_shown_and_never_counted(session: OpenSession) -> None:
    what = ("x", "theirs", "by cyclictest 2.40", "cyclictest", "2.40", "wake-up latency", "us", True)
    theirs = ImportedRun(1, *what, 20, 1_000, 9_000, ((1_000, 1_999, 19), (9_000, 9_999, 1)))
    session.add_import(theirs)
    document = build_report(subject_of(session))
    chart = next(one for one in document.overlays if one.title == "Next to other tools")
    assert chart.curves[-1].origin == "by cyclictest 2.40"
    (told,) = document.imports
    what, *figures = told.split(", ")
    assert what == "theirs (by cyclictest 2.40): wake-up latency"
    assert figures == ["p50 2 µs", "p99.9 –", "max 9 µs", "20 samples"]
    assert len(document.runs) == 7


def test_picked_runs_stand_alone(session: OpenSession) -> None:
    picked = session.session.runs[1:4]
    document = build_report(subject_of(session, runs=picked))
    assert tuple(run.id for run in document.runs) == picked
    assert (document.chapters, document.proofs, document.imports, document.changes) == ((), (), (), ())
    assert [len(chart.curves) for chart in document.overlays] == [3]
    assert not [point for point in document.still_open if point.kind == "chapter"]


def test_a_proof_gives_its_verdict_the_first_line(session: OpenSession) -> None:
    proof = madereports.made_proof()
    session.add_proof(proof)
    document = build_report(subject_of(session))
    assert proof.judgement is not None
    assert document.summary[0] == f"Proven of {proof.subject}: {proof.judgement.headline.text.removesuffix('.')}."
    assert document.proofs == (proof,)
    assert not any("This report has" in sentence for sentence in document.summary)
    (line,) = (one.command for one in document.commands if " prove " in one.command)
    assert line.startswith(f"jitter-workshop prove {proof.subject} --rounds {proof.planned}")


def proven(session: OpenSession, make_run: MakeRun, rounds: int, ident: str = "20260101-010000-beef") -> None:
    """A proof of runs that the session has: 100 messages of 5 µs without, of 2 µs with."""
    made = []
    for number in range(rounds):
        names = [f"{ident[:8]}-{number:02d}0000-00{side}a" for side in range(2)]
        pair = [make_run([[ns] * 100], run_id=n, proof=ident) for n, ns in zip(names, (5_000, 2_000), strict=True)]
        for run, blocks in pair:
            session.add_run(run, blocks)
        made.append(ProofRound(("AB", "BA")[number % 2], pair[0][0].id, pair[1][0].id))  # type: ignore[arg-type]
    session.add_proof(dataclasses.replace(madereports.made_proof(ident, rounds=rounds), rounds=tuple(made)))


def test_a_proof_has_a_chart_of_all_its_runs_by_side(make_run: MakeRun, tmp_path: Path) -> None:
    with SessionStore(tmp_path).create("proven", "lab03") as opened:
        proven(opened, make_run, 3)
        (chart,) = build_report(subject_of(opened)).overlays
    assert chart.title == "Proof of irq-affinity, 2026-01-01 01:00 UTC"
    without, with_it = chart.curves
    assert (without.label, with_it.label) == ("without · 3 runs", "with · 3 runs")
    assert (without.count, with_it.count) == (300, 300)
    assert curve_value_at(without, 50) == pytest.approx(5_000, rel=0.001)
    assert curve_value_at(with_it, 50) == pytest.approx(2_000, rel=0.001)


def test_of_many_proofs_the_newest_have_charts(
    make_run: MakeRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reporting_runs, "MOST_HISTOGRAMS", 5)
    with SessionStore(tmp_path).create("proven", "lab03") as opened:
        proven(opened, make_run, 2)
        proven(opened, make_run, 1, "20260102-010000-beef")
        proven(opened, make_run, 1, "20260103-010000-beef")
        titles = [chart.curves[0].count for chart in build_report(subject_of(opened)).overlays]
    assert titles == [100, 100]


def test_a_proof_whose_runs_are_damaged_has_no_chart(make_run: MakeRun, tmp_path: Path) -> None:
    with SessionStore(tmp_path).create("proven", "lab03") as opened:
        proven(opened, make_run, 1)
        for name in ("merged.hlog", "histograms.hlog"):
            (opened.folder / "runs" / opened.session.runs[0] / name).write_text("torn")
        document = build_report(subject_of(opened))
    assert document.overlays == ()
    assert len(document.proofs) == 1


def test_no_runs_no_report(tmp_path: Path) -> None:
    with SessionStore(tmp_path).create("empty", "lab03") as opened:
        with pytest.raises(NothingToReport, match="session empty has no runs"):
            build_report(subject_of(opened))
        with pytest.raises(LessonError):
            build_report(subject_of(opened, course_dir=tmp_path / "nowhere"))


def test_a_rehearsal_on_a_recorded_host_is_marked_everywhere(host_tree: Callable[[str], Path], tmp_path: Path) -> None:
    tree = host_tree("guest")
    workshop = fakes.open_workshop(tree)
    try:
        with pytest.raises(NothingToReport):
            build_report(subject_of(workshop))
        workshop.walk(workshop.course.chapters[0].id).next()
        document = build_report(subject_of(workshop))
    finally:
        workshop.close()
    assert document.recorded
    text = markdown.markdown_text(document, {})
    top, _, _ = text.partition("\n## ")
    assert top.lower().count("nothing was measured") == 1
    assert text.count("This report is about a recorded host") == 1
    assert document.hosts[0].recorded
    assert document.chapters[0].rehearsed
    assert document.after is not None
    assert document.after.applied == ()
    assert not [point for point in document.still_open if point.kind == "standing"]


def test_progress_may_end_it(session: OpenSession, monkeypatch: pytest.MonkeyPatch) -> None:
    class Enough(Exception):
        pass

    def told(what: str, done: int, total: int) -> None:
        raise Enough

    monkeypatch.setattr(reporting, "causes_of_runs", lambda subject: subject.progress("explaining", 0, 1))
    with pytest.raises(Enough):
        build_report(subject_of(session, progress=told))


def test_curves_of_one_name_are_numbered() -> None:
    curves = [PercentileCurve(label, (), 1) for label in ("a", "b", "a", "a")]
    assert [curve.label for curve in told_apart(curves)] == ["a", "b", "a (2)", "a (3)"]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("Monday", "jitter-workshop-monday-2026-01-02.html"),
        ("Söhne & Co: ../../etc", "jitter-workshop-sohne-co-etc-2026-01-02.html"),
        ("lab03 2026-01-02", "jitter-workshop-lab03-2026-01-02.html"),
        ("\u202e\x1b[31m", "jitter-workshop-31m-2026-01-02.html"),
        ("日本", "jitter-workshop-20260101-000000-aaaa-2026-01-02.html"),
        ("x" * 100, f"jitter-workshop-{'x' * 40}-2026-01-02.html"),
    ],
)
def test_the_name_of_a_report_has_letters_digits_and_dashes(name: str, expected: str) -> None:
    made: ReportDocument = dataclasses.replace(
        madereports.bare(), session_name=name, session_id="20260101-000000-aaaa", made_at="2026-01-02T10:00:00Z"
    )
    assert files.default_name(made, ".html") == expected


def test_a_free_name_is_the_next_number(tmp_path: Path) -> None:
    path = tmp_path / "report.pyperf.json"
    for number in ("", "-2", "-3"):
        found = files.free(path)
        assert found.name == f"report{number}.pyperf.json"
        found.write_text("")
    (tmp_path / "link.md").symlink_to("nowhere")
    assert files.free(tmp_path / "link.md").name == "link-2.md"


def test_all_files_of_a_report_or_none(tmp_path: Path) -> None:
    (tmp_path / "b.svg").write_text("there")
    with pytest.raises(files.NotWritten, match=r"b\.svg exists already"):
        files.write_files({"a.md": b"1", "b.svg": b"2"}, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["b.svg"]
    made = files.write_files({"a.md": b"1", "b.svg": b"2"}, tmp_path, force=True)
    assert [path.read_bytes() for path in made] == [b"1", b"2"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.md", "b.svg"]


def test_a_file_that_appears_during_the_writing_is_not_overwritten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill = files._fill

    def slow(path: Path, content: bytes) -> None:
        fill(path, content)
        (tmp_path / "b.svg").write_text("somebody's")

    monkeypatch.setattr(files, "_fill", slow)
    with pytest.raises(files.NotWritten, match="exists already"):
        files.write_files({"a.md": b"1", "b.svg": b"2"}, tmp_path)
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"b.svg": "somebody's"}


def test_a_file_system_without_hard_links_will_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_links(*_: object, **__: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(files.os, "link", no_links)
    files.write_files({"a.md": b"1"}, tmp_path)
    assert (tmp_path / "a.md").read_bytes() == b"1"
    assert [path.name for path in tmp_path.iterdir()] == ["a.md"]
