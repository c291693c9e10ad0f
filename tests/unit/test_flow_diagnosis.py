"""The step ``diagnose`` of a chapter: which runs are traced, what is asked, and what is kept."""

from __future__ import annotations

import dataclasses
import re

import pytest

from jitter_workshop.errors import UsageError
from jitter_workshop.flow.chapters.comparison import ONE_TRACED
from jitter_workshop.flow.chapters.diagnosis import NOT_ASKED
from jitter_workshop.flow.chapters.suspects import judge_diagnosis, suspect
from jitter_workshop.flow.chapters.walk import ChapterWalk
from jitter_workshop.flow.measuring.request import MeasureRequest
from jitter_workshop.flow.reporting.anonymizer import anonymize_report
from jitter_workshop.flow.reporting.build import build_report
from jitter_workshop.flow.reporting.subject import subject_of
from jitter_workshop.model.codec import from_plain, to_plain
from jitter_workshop.model.course import Shows
from jitter_workshop.model.diagnosis import EvidenceSource, SeenCauses
from jitter_workshop.model.evidence import EvidenceReport
from jitter_workshop.model.run import Counters, Run, Stall, ThreadRecord
from jitter_workshop.model.session import ChapterProgress, Diagnosis
from jitter_workshop.plain.views import to_be_measured
from jitter_workshop.presenter.course import diagnosis as words
from jitter_workshop.presenter.runs.run import about_to_measure
from jitter_workshop.report import markdown
from tests import madeup
from tests.fakes import FakeWorkshop, open_workshop, walk_with
from tests.madetrace import OTHER, TIDS, switch, tick, trace_of

HOSTILE = "evil[red]\x1b[2J\nx"


class Rights:
    """The part of ``AgentConnection`` that says which rights there are."""

    def __init__(self, rights: str) -> None:
        self.rights = rights


@pytest.fixture
def workshop() -> FakeWorkshop:
    return open_workshop()


def measured(
    workshop: FakeWorkshop, slot: str = "measure", number: int = 1, *, traced: bool = True, gap: bool = False
) -> Run:
    """A run of ``spin`` in a slot of the chapter baseline: another task took 20 µs of it, a tick 400 ns. ``gap``: and
    15 µs had no event."""
    run, blocks = madeup.make_run(
        run_id=f"20270102-00000{number}-bbbb", label="baseline", name="spin_gap", workload="spin"
    )
    threads = (ThreadRecord("sampler", {"1": 10}, 3, 41, 2, 0, 0, waited_ns=10**12, tid=7, cpus=(1,)),)
    run = dataclasses.replace(run, threads=threads)
    events = [
        switch(10_000, TIDS["sampler"], OTHER, stays=True, names=("", HOSTILE)),
        switch(30_000, OTHER, TIDS["sampler"], names=(HOSTILE, "")),
        *tick(60_000, 400),
    ]
    stalls = [Stall(0, "sampler", 1, 9_000, 31_000, 1), Stall(0, "sampler", 1, 59_900, 60_500, 1)]
    if gap:
        stalls.append(Stall(0, "sampler", 1, 70_000, 85_000, 1))
    workshop.context.handle.add_run(run, blocks, trace=trace_of(events, tuple(stalls)) if traced else None)
    workshop.context.remember(run)
    workshop.walk("baseline").record(slot, run)
    return run


def read(walk: ChapterWalk) -> SeenCauses:
    seen = walk.diagnosis.read()
    assert seen is not None
    return seen


@pytest.mark.parametrize(("rights", "traced"), [("root", True), ("sudo", False), ("none", False)])
def test_the_first_run_is_traced_where_no_password_is_asked(workshop: FakeWorkshop, rights: str, traced: bool) -> None:
    workshop.context.agent_connection = Rights(rights)  # type: ignore[assignment]
    assert workshop.walk("baseline").measuring.request("measure").evidence is traced
    without = walk_with(workshop.walk("baseline"), steps=("measure", "again"))
    assert not without.measuring.request("measure").evidence


@pytest.mark.parametrize("rights", ["root", "none"])
@pytest.mark.parametrize("traced", [True, False])
def test_the_second_run_is_made_as_the_first_one_was(workshop: FakeWorkshop, rights: str, traced: bool) -> None:
    measured(workshop, traced=traced)
    workshop.context.agent_connection = Rights(rights)  # type: ignore[assignment]
    assert workshop.walk("baseline").measuring.request("again").evidence is traced


def test_a_figure_of_the_trace_is_known_of_both_runs_once_they_are_read(workshop: FakeWorkshop) -> None:
    measured(workshop)
    second = measured(workshop, "again", 2)
    walk = workshop.walk("baseline")
    asking_nothing = ("look", "predict", "measure", "again", "compare")
    unasked = walk_with(walk, steps=asking_nothing)
    unasked.runs.read_figures()
    assert unasked.runs.seen(second).report is None  # no step and no figure of this chapter needs a trace
    counting = walk_with(unasked, shows=Shows("task-runs", 3.0))
    counting.runs.read_figures()
    assert all(one is not None and one.report is not None for one in map(counting.runs.known, ("measure", "again")))
    shown = counting.comparison.view()
    assert shown is not None
    assert "ther tasks run" in shown.headline


def test_a_chapter_about_causes_reads_each_run_as_it_is_made(workshop: FakeWorkshop) -> None:
    first = measured(workshop)
    walk = workshop.walk("baseline")
    assert walk.runs.to_read() == (first,)
    walk.runs.read_figures()
    assert walk.runs.seen(first).report is not None, "the page of the measurement names the tasks of the trace"
    assert not walk.runs.unread
    second = measured(workshop, "again", 2)
    assert walk.runs.to_read() == (second,)


def test_a_chapter_that_changes_something_compares_the_causes_of_both_runs(workshop: FakeWorkshop) -> None:
    measured(workshop)
    measured(workshop, "again", 2)
    walk = workshop.walk("baseline")
    changing = walk_with(walk, changes="placement")
    compared = changing.comparison.view()
    assert compared is not None
    assert compared.effects is not None
    assert compared.effects.causes == (), "the traces were not read yet"
    assert changing.runs.unread
    changing.runs.read_figures()
    assert not changing.runs.unread
    compared = changing.comparison.view()
    assert compared is not None
    assert compared.effects is not None
    assert compared.effects.causes


def test_a_proof_is_made_without_a_trace(workshop: FakeWorkshop) -> None:
    from jitter_workshop.flow.proving.chapter_proof import prover

    walk = workshop.walk("pinning")
    workshop.context.agent_connection = Rights("root")  # type: ignore[assignment]
    assert walk.measuring.request("again").evidence
    assert not prover(workshop, walk)._request.like.evidence  # type: ignore[union-attr]


def test_the_causes_come_from_the_trace(workshop: FakeWorkshop) -> None:
    measured(workshop)
    walk = workshop.walk("baseline")
    assert walk.diagnosis.ready is None
    seen = read(walk)
    assert walk.diagnosis.ready is seen
    assert seen.source == "trace"
    assert {one.kind for one in seen.suspects} == {"task", "timer"}
    assert "\x1b" not in "".join(one.label for one in seen.suspects)
    assert seen.stall is not None


def test_an_answer_is_judged_kept_and_shown_again(workshop: FakeWorkshop) -> None:
    measured(workshop)
    walk = workshop.walk("baseline")
    seen = read(walk)
    task, timer = sorted(seen.suspects, key=lambda one: one.kind)
    assert walk.diagnosis.answered() is None
    found = walk.diagnosis.answer(timer.id)
    assert (found.right, found.most) == (False, task)
    assert walk.progress.diagnosis == Diagnosis(seen.run, "timer:", False)
    again = open_workshop().walk("baseline")
    read(again)
    assert again.diagnosis.answered() == found
    with pytest.raises(UsageError, match="answered already"):
        walk.diagnosis.answer(task.id)


@pytest.mark.parametrize("traced", [True, False])
def test_the_report_has_the_named_cause_and_the_evidence(workshop: FakeWorkshop, traced: bool) -> None:
    run = measured(workshop, traced=traced)
    walk = workshop.walk("baseline")
    seen = read(walk)
    assert walk.diagnosis.known() is None
    assert build_report(subject_of(workshop)).chapters[0].diagnosis is None
    named = next(one for one in seen.suspects if one.kind != "task")
    found = walk.diagnosis.answer(named.id)
    told = build_report(subject_of(workshop)).chapters[0].diagnosis
    assert told is not None
    assert (told.run, told.source, told.right) == (run.id, seen.source, found.right)
    assert (told.chosen.kind, told.chosen.ns) == (named.kind, named.total_ns or 0)
    assert (told.most.kind if told.most else None) == ("task" if traced else "tasks")
    assert (told.stalled_ns, told.unknown_ns) == (seen.stalled_ns, seen.unknown_ns)
    text = markdown.markdown_text(build_report(subject_of(workshop)), {})
    assert words.largest_cause_sentences(found, seen, walk.chapter, workshop.course)[0].replace(
        "*", ""
    ) in text.replace("\\", "")
    # The name of the task is private, as in the causes of the run.
    assert "evil" not in markdown.markdown_text(anonymize_report(build_report(subject_of(workshop))), {})


def test_the_report_keeps_an_answer_whose_evidence_is_gone(workshop: FakeWorkshop) -> None:
    run = measured(workshop)
    walk = workshop.walk("baseline")
    read(walk)
    progress = dataclasses.replace(walk.progress, diagnosis=Diagnosis(run.id, "task:gone", False))
    workshop.context.save_progress("baseline", progress)
    told = build_report(subject_of(workshop)).chapters[0].diagnosis
    assert told is not None
    assert (told.chosen.name, told.right, told.most, told.source) == ("gone", False, None, "")
    assert "no longer available" in markdown.markdown_text(build_report(subject_of(workshop)), {})


def test_a_skipped_question_is_noted_in_the_session_and_in_the_report(workshop: FakeWorkshop) -> None:
    measured(workshop)
    walk = workshop.walk("baseline")
    walk.go("diagnose")
    assert not walk.diagnosis.skipped, "the question is only shown"
    assert walk.diagnosis.still_asks("measure")
    assert not walk.diagnosis.still_asks("again")
    read(walk)
    walk.go("again")
    assert walk.diagnosis.skipped
    assert not walk.diagnosis.still_asks("measure")
    assert workshop.walk("baseline").diagnosis.skipped, "the session keeps it"
    document = build_report(subject_of(workshop))
    (told,) = document.chapters
    assert (told.diagnosis, told.skipped) == (None, True)
    assert not told.emulated
    assert "the question was skipped" in markdown.markdown_text(document, {})
    walk.go("diagnose")
    walk.diagnosis.answer(read(walk).suspects[0].id)
    walk.go("again")
    assert not walk.diagnosis.skipped
    (told,) = build_report(subject_of(workshop)).chapters
    assert told.diagnosis is not None
    assert not told.skipped


def test_a_new_first_run_and_a_run_without_causes_have_no_skipped_question(workshop: FakeWorkshop) -> None:
    measured(workshop)
    walk = workshop.walk("baseline")
    walk.go("again")
    assert walk.diagnosis.skipped
    measured(workshop, number=2)
    assert not walk.diagnosis.skipped
    run, blocks = madeup.make_run(run_id="20270102-000009-bbbb", label="baseline", name="spin_gap", workload="spin")
    workshop.context.handle.add_run(run, blocks)
    workshop.context.remember(run)
    walk.record("measure", run)
    walk.go("diagnose")
    assert read(walk).quiet
    walk.go("again")
    assert not walk.diagnosis.skipped, "nothing was asked"


def quiet(workshop: FakeWorkshop, *, traced: bool) -> Run:
    """Record a first run without causes, and return it."""
    run, blocks = madeup.make_run(run_id="20270102-000009-bbbb", label="baseline", name="spin_gap", workload="spin")
    workshop.context.handle.add_run(run, blocks, trace=trace_of([], ()) if traced else None)
    workshop.context.remember(run)
    workshop.walk("baseline").record("measure", run)
    return run


@pytest.mark.parametrize("traced", [True, False])
def test_an_unread_run_without_causes_has_no_skipped_question(workshop: FakeWorkshop, traced: bool) -> None:
    quiet(workshop, traced=traced)
    walk = workshop.walk("baseline")
    walk.go("diagnose")
    walk.go("again")
    assert walk.diagnosis.skipped is traced, "the trace is not read yet"
    assert read(walk).quiet
    assert not walk.diagnosis.skipped
    assert next(one.state for one in walk.steps() if one.name == "diagnose") == "done"
    anew = workshop.walk("baseline")
    assert anew.diagnosis.ready is None
    assert not anew.diagnosis.skipped, "the stored report counts"
    (told,) = build_report(subject_of(workshop)).chapters
    assert not told.skipped


def test_a_new_first_run_asks_anew_and_restart_forgets(workshop: FakeWorkshop) -> None:
    measured(workshop)
    walk = workshop.walk("baseline")
    walk.diagnosis.answer(read(walk).suspects[0].id)
    measured(workshop, number=2)
    assert walk.diagnosis.ready is None
    read(walk)
    assert walk.diagnosis.answered() is None
    walk.restart()
    assert walk.progress.diagnosis is None
    assert not walk.diagnosis.open


def test_a_cause_that_was_not_seen_is_refused(workshop: FakeWorkshop) -> None:
    with pytest.raises(UsageError, match="not one of the causes"):
        workshop.walk("baseline").diagnosis.answer("task:x")
    measured(workshop)
    with pytest.raises(UsageError, match="not one of the causes"):
        workshop.walk("baseline").diagnosis.answer("task:x")


def test_without_a_trace_the_question_uses_counters_and_names_the_needs_of_a_trace(workshop: FakeWorkshop) -> None:
    measured(workshop, traced=False)
    walk = workshop.walk("baseline")
    seen = read(walk)
    assert (seen.source, seen.why_no_trace) == ("counters", NOT_ASKED)
    assert "as root" in words.without_trace(seen)
    assert walk.diagnosis.answer("tasks:").right


def test_a_refused_trace_says_why(workshop: FakeWorkshop) -> None:
    run = measured(workshop, traced=False)
    run = dataclasses.replace(run, counters=Counters("tracefs is not mounted", 1, (), 2))
    workshop.context.remember(run)
    assert "tracefs is not mounted." in words.without_trace(read(workshop.walk("baseline")))


def test_a_damaged_trace_counts_as_missing(workshop: FakeWorkshop) -> None:
    run = measured(workshop)
    for path in workshop.context.handle.blocks_file(run.id).parent.iterdir():
        if "trace" in path.name:
            path.write_bytes(b"nonsense")
    seen = read(workshop.walk("baseline"))
    assert seen.source == "counters"
    assert "not a trace" in words.without_trace(seen)


def test_without_recorded_runs_a_recording_asks_nothing(
    workshop: FakeWorkshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    measured(workshop)
    walk = workshop.walk("baseline")
    monkeypatch.setattr(type(walk.host), "rehearsed", property(lambda _: True))
    monkeypatch.setattr(type(walk.host), "recorded", property(lambda _: None))
    assert not walk.diagnosis.open
    assert walk.diagnosis.read() is None


def test_progress_of_before_has_no_answer() -> None:
    old = to_plain(ChapterProgress(step="plan"))
    del old["diagnosis"]
    assert from_plain(ChapterProgress, old).diagnosis is None
    kept = ChapterProgress(diagnosis=Diagnosis("r", "task:x", None))
    assert from_plain(ChapterProgress, to_plain(kept)) == kept


# -- words -------------------------------------------------------------------------------------------------------------


def test_a_judgement_has_at_most_two_sentences_after_its_sign_and_names_the_times(workshop: FakeWorkshop) -> None:
    measured(workshop)
    walk = workshop.walk("baseline")
    seen = read(walk)
    for one in seen.suspects:
        found = dataclasses.replace(walk.diagnosis.answer(one.id))
        said = words.judged_diagnosis(found, seen, walk.chapter, workshop.course)
        assert said.removeprefix(words.judged_opening(found, seen)).count(". ") <= 1
        assert "took the most" in said
        assert said.startswith("✓" if found.right else "✗")
        workshop.context.save_progress("baseline", dataclasses.replace(walk.progress, diagnosis=None))


def test_times_that_are_summed_over_threads_say_so(workshop: FakeWorkshop) -> None:
    measured(workshop)
    walk = workshop.walk("baseline")
    seen = read(walk)
    run = walk.runs.run_in("measure")
    assert run is not None
    assert seen.threads == max(len(run.threads), 1)
    found = walk.diagnosis.answer(seen.suspects[0].id)
    for threads, summed in ((1, ""), (2, " summed over 2 threads")):
        of = dataclasses.replace(seen, threads=threads)
        first, _ = words.largest_cause_sentences(found, of, walk.chapter, workshop.course)
        assert re.search(rf"took the most time: \S+ \S+{summed}, \d+ % of the time of all stalls", first)
        listed = " ".join(line.plain for line in words.suspect_lines(of, 0, found, 78))
        assert ("times: of 2 threads together" in listed) == (threads == 2)
        # The report has the screen's sentence.
        document = build_report(subject_of(workshop))
        (told,) = (one for one in document.chapters if one.id == "baseline")
        assert told.diagnosis is not None
        assert told.diagnosis.threads == seen.threads
        told = dataclasses.replace(told, diagnosis=dataclasses.replace(told.diagnosis, threads=threads))
        text = markdown.markdown_text(dataclasses.replace(document, chapters=(told,)), {})
        assert re.search(rf"took the most time: \S+ \S+{summed}, \d+ % of the time of all stalls", text)


@pytest.mark.parametrize("width", [40, 60, 78, 120])
def test_the_list_fits_and_hides_the_sums_of_time_until_the_answer(workshop: FakeWorkshop, width: int) -> None:
    measured(workshop)
    walk = workshop.walk("baseline")
    seen = read(walk)
    before = words.suspect_lines(seen, 0, None, width)
    assert all(line.cell_len <= width for line in (*before, *words.diagnosis_page(seen, 0, None, width)))
    assert not any("time" in line.plain.split() or "━" in line.plain for line in before)
    found = walk.diagnosis.answer(seen.suspects[0].id)
    after = words.suspect_lines(seen, 0, found, width)
    assert any("µs" in line.plain for line in after)
    assert all(line.cell_len <= width for line in after)
    assert not any("▸" in line.plain for line in after)


@pytest.mark.parametrize(
    ("second_ns", "source", "says"),
    [(2_070, "trace", "90 % of the time"), (1_900, "trace", ""), (9, "emulated", "as often")],
)
def test_two_right_answers_are_explained_beside_their_marks(second_ns: int, source: EvidenceSource, says: str) -> None:
    pair = (suspect("task", "python", 50, 2_230), suspect("task", "make", 48, second_ns))
    seen = SeenCauses("r", source, pair, 9, 9_000, 0)
    found = judge_diagnosis(seen, pair[0].id)
    assert found is not None
    shown = " ".join(line.plain for line in words.suspect_lines(seen, -1, found, 100))
    assert says in shown
    assert ("is a right answer" in shown) is bool(says)
    assert words.several_right(seen, None) == ""


def test_a_run_that_was_made_again_is_the_last_one(workshop: FakeWorkshop) -> None:
    for made, said in ((1, ""), (2, " (you made it 2 times; this is the last time)"), (3, "3 times")):
        measured(workshop, number=made)
        seen = read(workshop.walk("baseline"))
        assert seen.made == made
        asked = words.diagnosis_question(seen)
        assert f"first run{said if made < 3 else ''}" in asked
        assert said in asked
        counted = dataclasses.replace(seen, source="counters")
        assert said in words.diagnosis_question(counted)


def test_a_quiet_run_is_called_quiet() -> None:
    quiet = SeenCauses("r", "trace", (), 0, 0, 0)
    assert "no cause to name" in words.diagnosis_question(quiet)
    assert "nothing on this host shows" in words.diagnosis_question(SeenCauses("r", "counters", (), 3, 10, 10))


@pytest.mark.parametrize(("first", "second"), [(True, True), (True, False), (False, True), (False, False)])
def test_a_comparison_says_if_only_one_run_was_traced(workshop: FakeWorkshop, first: bool, second: bool) -> None:
    measured(workshop, traced=first)
    measured(workshop, "again", 2, traced=second)
    compared = workshop.walk("baseline").comparison.view()
    assert compared is not None
    assert (ONE_TRACED in compared.headline) is (first != second)


@pytest.mark.parametrize("evidence", [True, False])
def test_a_run_that_will_be_traced_says_so_first(evidence: bool) -> None:
    request = MeasureRequest(label="after", evidence=evidence)
    shown = " ".join(line.plain for line in about_to_measure(request, False, 200))
    assert ("the kernel is traced" in shown) is evidence
    assert ("The kernel is traced" in to_be_measured(request, ())) is evidence


@pytest.mark.parametrize("changes", ["nothing", "placement"])
def test_the_time_without_an_event_is_told_beside_the_question(workshop: FakeWorkshop, changes: str) -> None:
    run = measured(workshop, gap=True)
    report = workshop.context.runs.causes(run)
    assert isinstance(report, EvidenceReport)
    without = sum(one.total_ns for one in report.causes if (one.kind, one.name) == ("no_event", ""))
    walk = walk_with(workshop.walk("baseline"), changes=changes)
    seen = read(walk)
    assert {one.kind for one in seen.suspects} == {"task", "timer"}
    assert seen.unnamed_ns == without > 0
    assert words.unnamed(seen)
    found = walk.diagnosis.answer("task:" + next(one.name for one in seen.suspects if one.kind == "task"))
    assert found.right


@pytest.mark.parametrize(("host", "guest"), [({"hypervisor": "KVM"}, True), ({"hypervisor": None}, False), ({}, False)])
def test_the_causes_of_a_run_on_a_guest_are_marked(
    workshop: FakeWorkshop, host: dict[str, object], guest: bool
) -> None:
    run = dataclasses.replace(measured(workshop), host=host)
    assert run.in_guest is guest
    emulated = dataclasses.replace(run, host={**host, "emulated": True})
    assert not emulated.in_guest
    walk = workshop.walk("baseline")
    report = workshop.context.runs.causes(run)
    assert isinstance(report, EvidenceReport)
    assert walk.diagnosis._of_trace(report, run).guest is guest
