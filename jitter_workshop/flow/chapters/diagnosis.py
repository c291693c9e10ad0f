"""Ask the learner about the causes of the lost time, and store the answer. The question comes between a chapter's
first run and its change."""

from __future__ import annotations

import dataclasses
import itertools

from jitter_workshop.errors import SessionError, UsageError
from jitter_workshop.flow.attribution import ExplainProgress, unheard
from jitter_workshop.flow.chapters.asked_causes import asked_causes
from jitter_workshop.flow.chapters.chapter_host import ChapterHost
from jitter_workshop.flow.chapters.session_context import SessionContext
from jitter_workshop.flow.chapters.suspects import MOST, judge_diagnosis, of_counters, of_trace, suspect
from jitter_workshop.model.course import Chapter, DiagnosisAsks, StepName
from jitter_workshop.model.diagnosis import Diagnosed, SeenCauses
from jitter_workshop.model.evidence import EvidenceReport
from jitter_workshop.model.host import EMULATED
from jitter_workshop.model.run import Run
from jitter_workshop.model.session import Diagnosis
from jitter_workshop.stats.figures import shows_on

STEP: StepName = "diagnose"
NOT_MOUNTED = "The kernel's trace is not mounted, so no run can show which task or interrupt took the time."
NOT_ASKED = "this run was made without root's rights, and only root can record a trace"


class ChapterDiagnosis:
    """Hold one chapter's diagnosis: the causes that its first run shows, and the learner's answer. If the chapter is
    taught on a recording that lists causes, the causes of the recording are used.
    """

    def __init__(self, chapter: Chapter, context: SessionContext, host: ChapterHost) -> None:
        self._chapter = chapter
        self._context = context
        self._host = host
        self._seen: SeenCauses | None = None

    @property
    def _figure(self) -> str:
        shows = shows_on(self._chapter.shows, bool(self._context.host.emulated))
        return shows.figure if shows is not None else ""

    def traces(self, slot: str) -> bool:
        """Return True if the run of this slot should be traced.

        Return False if the chapter has no diagnosis. The first run is traced if root's rights are available without a
        password. The second run is traced if the first run was traced. A trace makes a run slower, so runs are
        comparable only if both or neither has a trace.
        """
        if STEP not in self._chapter.steps:
            return False
        first = self._run()
        if slot == "measure" or first is None:
            return self._context.agent_connection.rights == "root"
        return self._context.handle.has_trace(first.id)

    @property
    def open(self) -> bool:
        """Return True if the chapter has a run whose causes can be asked about."""
        return (self._recorded() if self._host.rehearsed else self._run()) is not None

    @property
    def ready(self) -> SeenCauses | None:
        """Return the causes that were seen in the first run; None if :meth:`read` was not called yet."""
        if self._host.rehearsed:
            return self._recorded()
        run = self._run()
        return self._seen if run is not None and self._seen is not None and self._seen.run == run.id else None

    @property
    def asks(self) -> bool:
        """Return True if the learner can answer now. This is the case if the run was read, shows causes, and has no
        answer yet."""
        seen = self.ready if self.open else None
        return seen is not None and not seen.quiet and self.answered() is None

    def read(self, progress: ExplainProgress = unheard) -> SeenCauses | None:
        """Read the evidence of the first run, and return its causes; None without a run. A long trace takes some
        seconds. A damaged trace counts as missing. Raise the errors of ``progress``."""
        run = None if self._host.rehearsed else self._run()
        if run is not None and self.ready is None:
            self._seen = dataclasses.replace(_marked(self._read(run, progress), run), made=self._made(run))
        return self.ready

    def known(self) -> tuple[Diagnosis, SeenCauses | None, Diagnosed | None] | None:
        """Return the learner's answer about the first run, the causes in this run, and the judgement. Return None if
        the learner has not answered about this run. The causes and the judgement are None if no report on the run's
        trace is stored. No report is computed here."""
        kept, run, recorded = self._context.progress(self._chapter.id).diagnosis, self._run(), self._recorded()
        if kept is not None and recorded is not None and kept.run == recorded.run:
            return kept, recorded, judge_diagnosis(recorded, kept.choice)
        if kept is None or run is None or kept.run != run.id:
            return None
        seen = self._known_causes(run)
        return kept, seen, None if seen is None else judge_diagnosis(seen, kept.choice)

    def _known_causes(self, run: Run) -> SeenCauses | None:
        """Return the causes in a run; None if the run has a trace, and no report on it is stored. No report is computed
        here."""
        if not self._context.handle.has_trace(run.id):
            return _marked(self._of_counters(run), run)
        report = self._context.runs.known_causes(run)
        return None if report is None else _marked(self._of_trace(report, run), run)

    def _read(self, run: Run, progress: ExplainProgress) -> SeenCauses:
        context = self._context
        why = run.counters.why_no_trace if run.counters is not None else run.notes.get("evidence", NOT_ASKED)
        if context.handle.has_trace(run.id):
            try:
                report = context.runs.causes(run, progress)
            except SessionError as error:
                why = error.sentence()
            else:
                if isinstance(report, EvidenceReport):
                    return self._of_trace(report, run)
        return self._of_counters(run, why)

    def _of_trace(self, report: EvidenceReport, run: Run) -> SeenCauses:
        irqs = self._chapter.interrupts_of_load(run.noise)
        listed, every = (
            self._asked(of_trace(report, run.noise, self._figure, most=most, irqs=irqs)) for most in (MOST, None)
        )
        unlisted = every.ended_ns - listed.ended_ns
        threads = max(len(run.threads), 1)
        return dataclasses.replace(listed, threads=threads, unlisted_ended_ns=unlisted, guest=run.in_guest)

    def _of_counters(self, run: Run, why: str = "") -> SeenCauses:
        return self._asked(of_counters(run, why, self._figure, self._chapter.interrupts_of_load(run.noise)))

    def _asked(self, seen: SeenCauses) -> SeenCauses:
        return asked_causes(seen, self._chapter)

    def answer(self, ident: str) -> Diagnosed:
        """Judge an answer, and store it in the chapter's progress. Raise UsageError for a cause that is not in the
        list, or for a second answer. The learner sees the evidence after the first answer, so a second answer would
        mean nothing.
        """
        seen = self.read()
        found = judge_diagnosis(seen, ident) if seen is not None else None
        if found is None or seen is None:
            raise UsageError("this answer is not one of the causes that the run shows")
        if self.answered() is not None:
            raise UsageError("this question is answered already", "measure again to get a question about the new run")
        progress = self._context.progress(self._chapter.id)
        kept = Diagnosis(seen.run, ident, found.right)
        self._context.save_progress(self._chapter.id, dataclasses.replace(progress, diagnosis=kept))
        return found

    def answered(self) -> Diagnosed | None:
        """Return the judgement on the learner's answer about the first run. Return None if there is no answer, or if
        the evidence of the run was not read yet."""
        kept, seen = self._context.progress(self._chapter.id).diagnosis, self.ready
        return (
            judge_diagnosis(seen, kept.choice)
            if kept is not None and seen is not None and kept.run == seen.run
            else None
        )

    def still_asks(self, slot: str) -> bool:
        """Return True if the question about the run of this slot is still to come: it is neither answered nor
        skipped."""
        asked = self._asked_about() if slot == "measure" else None
        return asked is not None and not self._answers(asked) and not self.skipped

    @property
    def skipped(self) -> bool:
        """Return True if the learner went on without an answer about the first run, and has not answered since."""
        noted = self._context.progress(self._chapter.id).skipped
        return noted is not None and not self._answers(noted) and noted == self._asked_about()

    def skip(self) -> None:
        """Note that the learner goes on without an answer. Do nothing if there is no question, or if it is answered."""
        progress, asked = self._context.progress(self._chapter.id), self._asked_about()
        if asked is not None and not self._answers(asked):
            self._context.save_progress(self._chapter.id, dataclasses.replace(progress, skipped=asked))

    @property
    def question(self) -> DiagnosisAsks:
        """Return what is asked about the first run. If its causes were not read yet, return what the chapter asks."""
        seen = self.ready
        return self._chapter.asks if seen is None else seen.asks

    def _answers(self, run_id: str) -> bool:
        """Return True if the learner's answer is about this run."""
        kept = self._context.progress(self._chapter.id).diagnosis
        return kept is not None and kept.run == run_id

    def _asked_about(self) -> str | None:
        """Return the id of the run that the question is about. Return None if there is no question: the chapter does
        not ask, no run was made, or the run shows no cause. A traced run that was not read yet counts as a question."""
        if STEP not in self._chapter.steps or not self.open:
            return None
        run, seen = self._run(), self.ready
        if seen is None and run is not None:
            seen = self._known_causes(run)
        if seen is not None:
            return None if seen.quiet else seen.run
        return None if run is None else run.id

    def named(self) -> tuple[str, ...]:
        """Return the labels of the causes that the judgement on the learner's answer names; () without an answer. If
        the evidence of the first run was not read yet, return the label of the answer alone."""
        found, kept, run = self.answered(), self._context.progress(self._chapter.id).diagnosis, self._run()
        if found is not None:
            return tuple(one.label for one in (found.chosen, found.most) if one is not None)
        if kept is None or run is None or kept.run != run.id:
            return ()
        kind, _, name = kept.choice.partition(":")
        return (suspect(kind, name, 0, 0).label,)

    def _recorded(self) -> SeenCauses | None:
        """Return the causes of the recorded first run; None if none were recorded."""
        entry = self._host.recorded
        seen = None if entry is None else entry.runs["measure"].seen
        return None if seen is None else self._asked(seen)

    def _made(self, run: Run) -> int:
        """Return how many times the learner made this run in succession: with its label and its workload, the last time
        included."""
        before = itertools.dropwhile(lambda one: one.id != run.id, reversed(self._context.runs.every()))
        same = itertools.takewhile(lambda one: (one.label, one.workload) == (run.label, run.workload), before)
        return max(sum(one.complete for one in same), 1)

    def _run(self) -> Run | None:
        ident = self._context.progress(self._chapter.id).runs.get("measure")
        return self._context.runs.run(ident) if ident else None


def _marked(seen: SeenCauses, run: Run) -> SeenCauses:
    """Return the causes of a run, without times if the run was made on an emulated machine. Times mean nothing there,
    so causes are compared by their numbers of events."""
    if run.mark != EMULATED:
        return seen
    suspects = tuple(dataclasses.replace(one, total_ns=None) for one in seen.suspects)
    marked = dataclasses.replace(seen, source="emulated", suspects=suspects, stall=None)
    return dataclasses.replace(marked, stalls=0, stalled_ns=0, unknown_ns=0, unnamed_ns=0)
