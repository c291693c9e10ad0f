"""Compare a chapter's run before the change with its run after the change."""

from __future__ import annotations

import dataclasses

from jitter_workshop.flow.chapters.cause_times import times_of_causes
from jitter_workshop.flow.chapters.chapter_host import ChapterHost
from jitter_workshop.flow.chapters.equal_runs import beside_equal_runs, factors_of_equal_runs
from jitter_workshop.flow.chapters.judging import judge_pair
from jitter_workshop.flow.chapters.noise import ChapterNoise
from jitter_workshop.flow.chapters.runs import ChapterRuns
from jitter_workshop.flow.chapters.session_context import SessionContext
from jitter_workshop.flow.measuring.comparing import (
    chapter_relation,
    compare_runs,
    other_changed_settings,
    strayed_settings,
)
from jitter_workshop.model.course import Chapter
from jitter_workshop.model.effect import CauseTime, Effects
from jitter_workshop.model.judgement import PairJudgement
from jitter_workshop.model.run import Run
from jitter_workshop.model.walk import CompareView
from jitter_workshop.stats.effect import effects_of_change
from jitter_workshop.stats.figures import FROM_DUE_TIME, KnownRun, figure_with_id, moved, titled

ONE_TRACED = "Only one of these runs was traced, and tracing makes a run slower."


class ChapterComparison:
    """Compare the two runs of one chapter: the learner's own runs, or the recorded ones."""

    def __init__(
        self, chapter: Chapter, context: SessionContext, host: ChapterHost, runs: ChapterRuns, noise: ChapterNoise
    ) -> None:
        self._chapter, self._context, self._host = chapter, context, host
        self._runs, self._noise = runs, noise

    def view(self) -> CompareView | None:
        """Return the comparison of the runs in ``measure`` and ``again``; None until both runs exist."""
        first, second = self._runs.run_in("measure"), self._runs.run_in("again")
        if first is None or second is None:
            return None
        before, after, asked = self._runs.seen(first), self._runs.seen(second), self._chapter.judged_percentile
        causes = times_of_causes(before, after, self._chapter)
        view = compare_runs(first, second, from_due_time=self._runs.from_due_time, asked=asked, causes=causes)
        # If all settings were good already, nothing had to be applied.
        good = bool(self._chapter.tunables) and self._host.state == "good" and not self._host.applied
        strayed = () if good else strayed_settings(self._chapter, first, second)
        other = other_changed_settings(self._chapter, first, second)
        # The result then says it in its first line.
        told_first = view.comparison.comparable and chapter_relation(self._chapter, first, second) == "strayed"
        if other and not good and not told_first:
            strayed = (*strayed, other)
        if self._context.handle.has_trace(first.id) != self._context.handle.has_trace(second.id):
            strayed = (*strayed, ONE_TRACED)
        both_ways = tuple(filter(None, (self._noise.both_ways(),)))
        # A comparison from the due time tells the chapter's figure itself.
        effect = () if view.comparison.clock == FROM_DUE_TIME else self._effect(first, second)
        headline = " ".join([*strayed, *effect, view.headline, *both_ways])
        if not view.comparison.comparable:
            return dataclasses.replace(view, headline=headline, notes=(*strayed, *both_ways))
        shows, found = self._runs.shows, self._effects(before, after, causes)
        if view.relation == "changed":
            every, both = self._context.runs.every(), (before, after)
            found = beside_equal_runs(found, factors_of_equal_runs(both, every, self._runs.seen, self._chapter))
        told = {one.name for one in (found.shown, found.missed, found.lead, found.but) if one is not None}
        if shows is None or titled(figure_with_id(shows.figure), first).title not in told:
            strayed = (*strayed, *effect)
        if told_first:
            found = dataclasses.replace(found, strayed=other)
            view = dataclasses.replace(view, relation="strayed", reason=None)
        judged = judge_pair(found, (before, after), view.relation)
        return dataclasses.replace(view, headline=headline, effects=found, notes=strayed, judgement=judged)

    def _effect(self, first: Run, second: Run) -> tuple[str, ...]:
        """Return a sentence on how the chapter's figure changed between two runs.

        The chapter's lesson names this figure. Return () if a run does not have the figure. If an emulated machine
        cannot show the change, return a sentence with the reason.
        """
        if self._runs.shows is None:
            return (self._runs.unshown,) if self._runs.unshown else ()
        one, before, after = figure_with_id(self._runs.shows.figure), self._runs.seen(first), self._runs.seen(second)
        return () if None in (one.of(before), one.of(after)) else (moved(one, before, after),)

    def of_recordings(self) -> PairJudgement | None:
        """Return the judgement of the two recorded runs. Return None if a run is missing, or if the chapter is not
        taught on a recording."""
        both = self._runs.before_and_after() if self._host.rehearsed else None
        if both is None:
            return None
        found = self._effects(*both, times_of_causes(*both, self._chapter))
        return judge_pair(found, both, "alike" if self._runs.repeats else "changed")

    def _effects(self, before: KnownRun, after: KnownRun, causes: tuple[CauseTime, ...]) -> Effects:
        found = effects_of_change(before, after, self._runs.shows, self._chapter.judged_percentile)
        return dataclasses.replace(found, causes=causes)
