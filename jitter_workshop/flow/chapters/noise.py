"""Switch the noise on or off that a learner may have during a chapter's runs."""

from __future__ import annotations

import dataclasses

from jitter_workshop.flow.chapters.runs import ChapterRuns
from jitter_workshop.flow.chapters.session_context import SessionContext
from jitter_workshop.flow.measuring.request import MeasureRequest
from jitter_workshop.model.course import Chapter, Company, StepName
from jitter_workshop.model.noise import NOISE_KINDS, noise
from jitter_workshop.model.session import ALONE
from jitter_workshop.model.text import WORD, clean
from jitter_workshop.stats.figures import figure_with_id
from jitter_workshop.stats.scale import nice_ns

QUIET_NS = 10_000
"""If the first run's p99.99 is below this, the run shows hardly any jitter, and the workshop offers a noise."""


class ChapterNoise:
    """Hold the noise that the learner can switch on and off in one chapter. This is the lesson's own noise. In a
    chapter without a noise of its own, it is a noise that the workshop offers on a quiet host.
    """

    def __init__(self, chapter: Chapter, context: SessionContext, runs: ChapterRuns) -> None:
        self._chapter, self._context, self._runs = chapter, context, runs

    def company(self, request: MeasureRequest) -> str:
        """Return the lesson's words on the noise during a run. Return "" if the run has no such noise, or the lesson
        has no words."""
        company = self._chapter.company
        if company is None or request.noise != company.noise:
            return ""
        return (
            f"{company.shown} (interrupt {_named(company)})" if company.shown and company.interrupts else company.shown
        )

    def on_page(self, step: StepName) -> str:
        """Return a paragraph in Markdown for the lesson's page of a step; "" for none. At the step ``predict`` of a
        chapter on interrupts it names the interrupt of the load on this host."""
        company = self._chapter.company
        alone = self._runs.progress.noise == ALONE
        if step != "predict" or company is None or not company.interrupts or alone or not self._chapter.accompanied:
            return ""
        stays = ", and **it cannot be moved**" if company.movable is None else ""
        return f"**On this host** the noise's interrupt is {_named(company)}{stays}. Lists of causes mark it with `*`."

    def offer(self) -> str:
        """Return a question that offers to switch a noise on or off, or "". If the chapter has its own noise, the
        question offers to measure without this noise. Otherwise it offers a noise if the first run of the ring is quiet
        (p99.99 < 10 µs).
        """
        if (company := self._chapter.company) is not None and self._chapter.accompanied:
            others = self._runs.progress.other_runs
            kept = bool(others) and (len(others) > 1 or self._runs.control is None)
            if self._runs.progress.noise == ALONE:
                asked = "Go back to the runs with the noise?" if kept else "Measure this host while the noise runs?"
                return f"The chapter's noise ({company.noise}) is off. {asked}"
            asked = "Go back to the runs without the noise?" if kept else "Measure without it?"
            if others and not kept:
                asked = "Go on without it? The control run is then the first run."
            what = noise(company.noise).what
            return f"The chapter's noise: {what[:1].lower()}{what[1:]} {asked}"
        if self._runs.progress.noise or any(m.noise for m in self._chapter.measurements):
            return ""
        run = self._runs.run_in("measure")
        if run is None or run.workload != "ring":
            return ""  # the p99.99 of a clock loop's hundreds of millions of readings is always short
        value = run.percentile("99.99")
        if value is None or value >= QUIET_NS:
            return ""
        return (
            f"This host is quiet already: p99.99 is {nice_ns(value)}. Start some noise for this chapter? A "
            "thread on each CPU is busy for 3 ms, then sleeps for about 30 ms. All these threads stop with the run."
        )

    def switch(self) -> None:
        """Switch the noise of :meth:`offer` on if it is off, and off if it is on. The runs with this noise and
        those without it are stored separately, and so are their marks. The next step is ``compare`` if both runs of the
        chosen kind exist, else ``measure``."""
        other, progress = ALONE if self._chapter.accompanied else NOISE_KINDS[0], self._runs.progress
        kind = other if progress.noise is None else None
        runs = {slot: ident for slot, ident in progress.other_runs.items() if self._context.runs.run(ident) is not None}
        progress = dataclasses.replace(progress, noise=kind, runs=runs, other_runs=progress.runs)
        whole = "compare" in self._chapter.steps and all(one.slot in runs for one in self._chapter.measurements)
        step: StepName = "compare" if whole else "measure"
        progress = dataclasses.replace(progress, marks=self._runs.marks(progress) if runs else {}, step=step)
        self._context.save_progress(self._chapter.id, progress)

    @property
    def can_switch(self) -> bool:
        """Return True if the learner can switch a noise on or off in this chapter."""
        return bool(self.offer() or self._runs.progress.other_runs or self._runs.progress.noise)

    @property
    def on(self) -> bool:
        """Return True if the runs that the chapter shows now were made with the noise.

        This is the noise that the learner can switch on and off (:meth:`switch`).
        """
        return self._runs.progress.noise != (ALONE if self._chapter.accompanied else None)

    def both_ways(self) -> str:
        """Return a sentence that compares the change's effect with a noise and without it. It gives the chapter's
        figure before and after the change for both cases. Return "" if one of the four runs is missing, or does not
        have the figure."""
        pairs = [self._runs.pair(self._runs.progress.other_runs), self._runs.pair(self._runs.progress.runs)]
        if self._runs.shows is None or None in pairs:
            return ""
        one = figure_with_id(self._runs.shows.figure)
        values = [[one.of(self._runs.seen(run)) for run in pair] for pair in pairs if pair is not None]
        if None in (*values[0], *values[1]):
            return ""
        bare, beside = (one.change(*pair) for pair in (values if self.on else reversed(values)))
        kind = clean(self._other_noise, WORD)
        return f"{one.headline}: {beside} with the noise ({kind}), {bare} without the noise."

    @property
    def _other_noise(self) -> str:
        """Return the kind of noise that the learner can switch on or off."""
        company = self._chapter.company
        return company.noise if company is not None and self._chapter.accompanied else NOISE_KINDS[0]


def _named(company: Company) -> str:
    """Return a load's first interrupt in words, such as ``number 34, virtio4-input``."""
    name = clean(company.interrupts[0], WORD)
    return name if company.movable is None else f"number {company.movable}, {name}"
