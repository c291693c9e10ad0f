"""Place the threads of a chapter's second run on CPUs, and plan the placement."""

from __future__ import annotations

import contextlib
import dataclasses

from jitter_workshop.errors import HostError, UsageError
from jitter_workshop.flow.chapters.chapter_host import ChapterHost
from jitter_workshop.flow.chapters.measuring import ChapterMeasuring
from jitter_workshop.flow.chapters.session_context import SessionContext
from jitter_workshop.flow.measuring.placement_plan import bound, plan_on
from jitter_workshop.model.course import Chapter
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.model.session import ChapterProgress
from jitter_workshop.model.walk import CpuView, PlanView


class ChapterCpus:
    """Hold the CPUs that the threads of one chapter's run after the change get: those that the learner chose, or
    automatic ones."""

    def __init__(
        self, chapter: Chapter, context: SessionContext, host: ChapterHost, measuring: ChapterMeasuring
    ) -> None:
        self._chapter, self._context, self._host, self._measuring = chapter, context, host, measuring

    @property
    def _progress(self) -> ChapterProgress:
        return self._context.progress(self._chapter.id)

    def view(self) -> CpuView:
        """Return the CPUs of the shown host, and the CPU that each thread would get now. The threads are those of the
        run after the change. The shown host can be live or recorded."""
        self._host.keep_up()
        _, topology, _ = self._host.machine()
        placed: tuple[tuple[str, int], ...] = ()
        with contextlib.suppress(HostError, UsageError):
            placed = bound(self._plan_of(self._progress.chosen_cpus))
        return CpuView(topology, self._host.hot(), placed)

    def choose(self, producer: int | None, accumulator: int | None, journaller: int | None) -> None:
        """Set the learner's own placement for the run ``again``. If all three arguments are None, the placement is
        automatic. Raise HostError if the placement is impossible, UsageError if this chapter does not change the
        placement."""
        given = {"producer": producer, "accumulator": accumulator, "journaller": journaller}
        chosen = {name: cpu for name, cpu in given.items() if cpu is not None}
        if chosen and self._chapter.changes != "placement":
            raise UsageError("this chapter does not change the placement")
        if len(set(chosen.values())) < len(chosen):
            raise HostError(
                "two threads cannot have the same CPU", "the threads wait for each other: give each its own CPU"
            )
        try:
            self._plan_of(chosen)
        except UsageError as error:
            raise HostError(error.message, error.advice) from error
        self._context.save_progress(self._chapter.id, dataclasses.replace(self._progress, chosen_cpus=chosen))

    def plan(self) -> PlanView:
        """Return the chapter's plan: a CPU for each thread of the run after the change. Raise HostError if no plan is
        possible on this host."""
        if self._chapter.changes != "placement" or self._chapter.measurement("again") is None:
            return PlanView((), 0, "This chapter changes nothing.")
        plan = self._plan_of(self._progress.chosen_cpus)
        if self._host.rehearsed:
            plan = dataclasses.replace(plan, text=f"This is a recorded host, so no thread is bound. {plan.text}")
        return plan

    def _plan_of(self, chosen: dict[str, int]) -> PlanView:
        """Return the plan of the run after the change. ``chosen``: thread → CPU, as the learner chose."""
        request = self._measuring.planned("again", chosen, rehearsed=self._host.rehearsed)
        root, topology, host = self._host.machine()
        return plan_on(root, topology, request, CpuSet(host.isolated))
