"""Request the runs that a chapter's steps measure, and warn the learner before a run."""

from __future__ import annotations

import contextlib
import dataclasses

from jitter_workshop.course.checks import NOT_SET
from jitter_workshop.errors import HostError, UsageError, WorkshopError
from jitter_workshop.flow.chapters.chapter_host import ChapterHost
from jitter_workshop.flow.chapters.diagnosis import NOT_MOUNTED, ChapterDiagnosis
from jitter_workshop.flow.chapters.runs import TRACED, ChapterRuns
from jitter_workshop.flow.chapters.session_context import SessionContext
from jitter_workshop.flow.host_ops.company import barred_company
from jitter_workshop.flow.measuring.arrival import arrival
from jitter_workshop.flow.measuring.placement_plan import (
    PlannedCpus,
    noise_refused,
    placed_on,
    placed_threads,
    request_of,
)
from jitter_workshop.flow.measuring.request import MeasureRequest, arrival_words
from jitter_workshop.model.change import IRQ_HERE, Change
from jitter_workshop.model.course import SLOTS, Chapter, StepName
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.model.text import cleaned_sentence

WITH_SETTINGS = (
    "This chapter's settings are applied now, so a first run measures the host with these settings. Use restore (u) "
    "first."
)

WITHOUT_SETTINGS = (
    "This chapter's settings are not applied now, so a run measures the host without them. The step 'apply' applies "
    "them."
)


class ChapterMeasuring:
    """Say what one chapter measures in a step, and on which CPUs. The runs themselves are made by
    ``flow.chapters.workshop.Workshop.measure``."""

    def __init__(
        self,
        chapter: Chapter,
        context: SessionContext,
        host: ChapterHost,
        runs: ChapterRuns,
        diagnosis: ChapterDiagnosis,
    ) -> None:
        self._chapter, self._context, self._host = chapter, context, host
        self._runs, self._diagnosis = runs, diagnosis

    def request(self, slot: StepName) -> MeasureRequest:
        """Return the request for the run of a slot (``measure`` or ``again``) on this host.

        The ring needs two CPUs; with one CPU, the clock loop ``spin`` is measured instead. A restored setting may need
        some seconds until it takes effect (``Shows.settle_s``). If the run of ``measure`` begins earlier, it does not
        record until these seconds have passed.

        Raise UsageError if the chapter does not measure this slot, HostError if this host cannot do the chapter.
        """
        asked = self.planned(slot, self._runs.progress.chosen_cpus)
        if slot == "measure" and self._chapter.shows is not None and self._chapter.shows.settle_s:
            since = self._context.agent_connection.change_log.since_restored(self._host.ids)
            asked = dataclasses.replace(asked, settle_s=max(self._chapter.shows.settle_s - since, 0.0))
        return self._context.of_class(dataclasses.replace(asked, arrival=self._arrival(asked)))

    def placed(self, request: MeasureRequest) -> tuple[tuple[str, int], ...]:
        """Return (thread, CPU) for each thread that a request's run would bind now. Return () for a run whose threads
        the scheduler moves, and for a run that cannot be placed."""
        planned = self.planned_cpus(request)
        return tuple(placed_threads(planned.placement, request.workload)) if planned is not None else ()

    def planned_cpus(self, request: MeasureRequest) -> PlannedCpus | None:
        """Return the CPUs that a request's run would use now; None for a run that cannot be placed."""
        context = self._context
        try:
            return placed_on(context.root, context.topology, request, CpuSet(context.host.isolated))
        except (HostError, UsageError):
            return None

    def _arrival(self, request: MeasureRequest) -> Change | None:
        """Return the write that has the interrupt of the chapter's load arrive on the measured CPU. Return None if the
        chapter's settings are applied, which send it away."""
        company, context = self._chapter.company, self._context
        of_lesson = company is not None and request.noise == company.noise
        if not of_lesson or self._host.applied or not self.arrives():
            return None
        return arrival(context.root, context.topology, request, CpuSet(context.host.isolated))

    def arrives(self) -> bool:
        """Return True if the interrupt of the chapter's load may be sent to the measured CPU before runs without the
        chapter's change. Return False on a class host, without a way to root's rights, if the learner has sent an
        interrupt there already, and if the kernel refused such a write before."""
        company, context = self._chapter.company, self._context
        if not self._chapter.tunables or context.class_view is not None or context.agent_connection.rights == "none":
            return False
        if company is None or company.noise in context.fixed_noises:
            return False
        return all(one["id"] != IRQ_HERE for one in context.standing())

    def first_write(self) -> str:
        """Return a sentence in Markdown on the write with which the chapter's first run will begin. Return "" if it
        begins with none, if it is made already, or if this host cannot make it."""
        if not self.unmeasured("measure"):
            return ""
        with contextlib.suppress(WorkshopError):
            write = arrival_words(self.request("measure"), lasting=False)
            return f"**The first run begins with a write:** {write}" if write else ""
        return ""

    def may_begin(self, request: MeasureRequest) -> bool:
        """Return True if a request's run may begin: it begins with no write, or with the write that was shown
        (``Workshop.measure`` refuses any other). Return False otherwise; the caller then shows the write, so that the
        next call returns True."""
        may = request.arrival is None or request.arrival == self._context.shown_write
        self.note_shown(request)
        return may

    def note_shown(self, request: MeasureRequest) -> None:
        """Remember that the learner was shown the write with which a request's run begins."""
        self._context.shown_write = request.arrival

    def control_request(self, slot: str | None) -> MeasureRequest | None:
        """Return the request for the control run (``Company.control``), which follows the run of ``slot``. Return None
        if no such run follows. Raise the errors of :meth:`request`."""
        company = self._chapter.company
        if slot != SLOTS[1] or company is None or not company.control or self._runs.progress.noise is not None:
            return None
        return dataclasses.replace(self.request(SLOTS[0]), label=company.control, noise=None, arrival=None)

    def traced_request(self) -> MeasureRequest | None:
        """Return the request that repeats the chapter's last measurement with a trace. Return None if nothing was
        measured yet. Raise the errors of :meth:`request`."""
        measured = [slot for slot in SLOTS if self._runs.run_in(slot) is not None]
        if not measured:
            return None
        request = self.request(measured[-1])
        return dataclasses.replace(request, label=f"{request.label}{TRACED}", evidence=True)

    def planned(self, slot: StepName, chosen: dict[str, int], *, rehearsed: bool = False) -> MeasureRequest:
        """Return the request for the run of a slot. ``chosen``: thread → CPU, as the learner chose. ``rehearsed``: the
        run is only planned, on a recording."""
        measurement = self._chapter.measurement(slot)
        if measurement is None:
            raise UsageError(f"this chapter measures nothing in the step '{slot}'")
        reason = self._host.reason
        if reason and not rehearsed:
            raise HostError(f"{self._chapter.title} cannot be measured here", reason)
        cpus = len(self._host.machine()[1].allowed) if rehearsed else self._context.room.cpus_for(measurement.placement)
        wanted = chosen if slot == "again" and measurement.placement != "none" else {}
        traced = self._chapter.hunt or (not rehearsed and self._diagnosis.traces(slot))
        request = request_of(measurement, self._runs.progress.noise, wanted, cpus, self._runs.run_in("measure"), traced)
        return request if self._stands(slot) else dataclasses.replace(request, label=f"{request.label}{NOT_SET}")

    def _stands(self, step: StepName) -> bool:
        """Return True if the settings that a step's measurement needs are in effect."""
        if step != "again" or self._chapter.changes != "tunables":
            return True
        return (self._host.applied and not self._host.awaits_reboot) or self._host.state == "good"

    def measures(self, step: StepName) -> bool:
        """Return True if a step has a measurement that can be made here."""
        return step in SLOTS and self._chapter.measurement(step) is not None and not self._host.rehearsed

    def can_repeat(self, step: StepName) -> bool:
        """Return True if a step has a run, and this run can be made again now. The first run cannot if this chapter's
        settings are applied: it would have them."""
        if not self.measures(step) or self._runs.run_in(step) is None:
            return False
        return step != "measure" or self._chapter.changes != "tunables" or not self._host.applied

    def unmeasured(self, step: StepName) -> bool:
        """Return True if a step has a measurement that can be made here, but no run yet."""
        return self.measures(step) and self._runs.run_in(step) is None

    def workload(self, slot: str | None) -> str:
        """Return the workload of a slot's run. If the slot has no run, return the workload of the run that would be
        made. Return "" if the slot has no measurement.
        """
        measurement = self._chapter.measurement(slot) if slot is not None else None
        if measurement is None:
            return ""
        if (run := self._runs.run_in(slot)) is not None:
            return run.workload
        asked = self.asked(slot)
        return measurement.workload if asked is None else asked.workload

    def asked(self, slot: str | None) -> MeasureRequest | None:
        """Return the request for the run that would be made in a slot. Return None if the slot has no measurement, or
        if this host cannot make it."""
        measurement = self._chapter.measurement(slot) if slot is not None else None
        with contextlib.suppress(WorkshopError):
            return self.planned(measurement.slot, {}) if measurement is not None else None
        return None

    def warning(self, step: StepName) -> str:
        """Return a warning for the learner before a step is measured, or ""."""
        settled = self._host.rehearsed or self._runs.run_in("again") is not None or self._stands(step)
        besides = "" if settled else WITHOUT_SETTINGS
        besides = WITH_SETTINGS if self.too_early(step) else besides
        load = self._without_load(step) or (self.barred_load() if self.unmeasured(step) else "")
        untraced = self._without_trace(step)
        return " ".join(filter(None, (self._other_workload(step), load, untraced, besides)))

    def too_early(self, step: StepName) -> bool:
        """Return True if this chapter's settings are applied before its first run is made. The first run must be made
        without these settings.
        """
        return (
            step == "measure" and self.unmeasured(step) and self._chapter.changes == "tunables" and self._host.applied
        )

    def _without_trace(self, step: StepName) -> str:
        """Return a warning if a step's run will have no trace, else "". The warning names the command that mounts the
        kernel's trace."""
        if not self.unmeasured(step) or not (self._chapter.hunt or self._diagnosis.traces(step)):
            return ""
        command = self._context.mount_command
        return f"{NOT_MOUNTED} As root, '{command}' mounts it." if command else ""

    def _without_load(self, step: StepName) -> str:
        """Return the reason why the chapter's noise cannot run during a step's measurement, and what to do. Return ""
        if the noise can run, or if the step has no measurement to make."""
        context = self._context
        if not self.unmeasured(step) or self._host.reason:
            return ""
        request = self.planned(step, self._runs.progress.chosen_cpus)
        reason = noise_refused(context.root, context.topology, request, CpuSet(context.host.isolated))
        if not reason:
            return ""
        restored = "Restore the isolation first (restore, on the home page)" if context.room.isolated else ""
        alone = "measure this host as it is, without the noise (w)" if self._chapter.accompanied else ""
        told = " or ".join(filter(None, (restored, alone)))
        return f"{reason}. {cleaned_sentence(told)}".rstrip()

    def barred_load(self) -> str:
        """Return a warning if only root can use the chapter's second load, and the first load does not bring an
        interrupt that can be moved. Return "" otherwise, without the load, and on a class host."""
        if self._context.class_view is not None or self._host.reason or self._runs.progress.noise is not None:
            return ""
        return cleaned_sentence(barred_company(self._chapter, self._context.root))

    def _other_workload(self, step: StepName) -> str:
        """Return the reason why another workload than the lesson's is measured, or ""."""
        asked = self._chapter.measurement(step)
        if asked is None or not self.unmeasured(step) or self._host.reason:
            return ""
        taken, room = self.planned(step, {}).workload, self._context.room
        if taken == asked.workload:
            return ""
        if room.cpus_for(asked.placement) >= 2:
            return (
                f"The first run measured '{taken}', so this run also measures '{taken}' instead of '{asked.workload}'."
            )
        said = f"The workload '{asked.workload}' needs two CPUs, so the loop '{taken}' is measured instead."
        alone = f"While CPU {room.isolated} is isolated, this run has only one CPU. To measure the {asked.workload},"
        return f"{said} {alone} restore the isolation first." if room.walled else said
