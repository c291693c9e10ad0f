"""Plan a screening: its settings, the writes of each setting, the measurement and the duration.

A setting of a screening is one or more tunables that are switched on and off together. Two tunables that write the same
file form one setting, because the file can have only one value. A tunable that takes CPUs offline is left out: the
other settings would then act on fewer CPUs.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

from jitter_workshop.errors import HostError, UsageError
from jitter_workshop.flow.host_ops.agent_connection import AgentConnection, standing_entries
from jitter_workshop.flow.host_ops.host_status import HostPlan, draw_up
from jitter_workshop.flow.measuring.host_warnings import refuse_if_emulated, warnings
from jitter_workshop.flow.measuring.request import check_request
from jitter_workshop.flow.proving import proof_plan
from jitter_workshop.flow.proving.command_meter import CommandMeter
from jitter_workshop.flow.proving.meters import Meter, RunMeter, run_seconds
from jitter_workshop.flow.proving.proof_plan import (
    CHANGE_S,
    ProveRequest,
    applied_already,
    command_measured,
    measured_on,
    must_be_quick,
    name_other_settings,
)
from jitter_workshop.flow.proving.sides import TunableSides
from jitter_workshop.host.root import HostRoot
from jitter_workshop.host.summary import summarise_host
from jitter_workshop.model.change import Change, Plan, Skipped, Wanted
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.model.proof import COMMAND, MOST_ROUNDS, PLACEMENT
from jitter_workshop.model.screening import ScreeningPlan
from jitter_workshop.model.spec import PRESETS
from jitter_workshop.model.text import LINE, SENTENCE, clean, cleaned_sentence, many
from jitter_workshop.model.verdict import ENOUGH_ROUNDS
from jitter_workshop.stats.screening import most_chosen, one_by_one, pairs_needed, proofs_needed
from jitter_workshop.tuning.base import Unavailable
from jitter_workshop.tuning.planning import digest
from jitter_workshop.tuning.setting_types.kinds import kind_of
from jitter_workshop.tuning.tunables.registry import find_tunable, parse_wanted

_OFFLINE = "this setting takes CPUs offline, so the other settings would act on fewer CPUs; prove this setting alone"
_UNUSABLE = "while CPUs are isolated, the command could not use them; name these CPUs with --cpus"


@dataclass(frozen=True)
class ScreenRequest:
    """Hold a user's options for a screening.

    - ``prove``: the options that a screening shares with a proof. If ``prove.words`` is empty, the screening takes all
      settings that can be improved without a reboot. ``prove.rounds`` has no effect.
    - ``proofs``: the number of pairs that prove the settings which the screening chooses; None for the usual number.
    - ``resume``: True continues the newest screening that was stopped.
    - ``asked``: the command that resumes this screening.
    """

    prove: ProveRequest
    proofs: int | None = None
    resume: bool = False
    asked: tuple[str, ...] = ()


@dataclass(frozen=True)
class DrawnScreening:
    """Hold the plan of a screening, and what is needed to carry it out. ``meter``: makes the runs.
    ``agent_connection``: applies and restores the settings."""

    plan: ScreeningPlan
    meter: Meter
    agent_connection: AgentConnection
    root: HostRoot

    def sides(self, on: Sequence[int]) -> TunableSides:
        """Return an object that applies and restores the settings ``on`` together. ``on``: indexes of settings in the
        plan."""
        words = tuple(word for n in on for word in self.plan.settings[n].split())
        ids = {word.partition("=")[0] for word in words}
        changes = tuple(change for change in self.plan.changes if change.tunable in ids)
        return TunableSides(self.agent_connection, words, CpuSet.of(self.plan.hot_cpus), changes, self.root)

    def ids(self, on: Sequence[int]) -> frozenset[str]:
        """Return the ids of the tunables in the settings ``on``. ``on``: indexes of settings in the plan."""
        return frozenset(word.partition("=")[0] for n in on for word in self.plan.settings[n].split())


def draw_up_screening(request: ScreenRequest, agent_connection: AgentConnection) -> DrawnScreening:
    """Return the plan of a screening on this host, without writing anything. Raise UsageError if the request is
    invalid. Raise HostError if the settings cannot be screened on this host. Each error contains advice for the
    user."""
    asked = request.prove
    if request.proofs is not None and not 1 <= request.proofs <= MOST_ROUNDS:
        raise UsageError(f"the proofs must have 1 to {MOST_ROUNDS:,} pairs, not {request.proofs:,}")
    if PLACEMENT in asked.words:
        raise UsageError("placement is not a setting of the host, so it is not screened", "prove it by itself")
    wanted = parse_wanted(asked.words)
    for one in wanted:
        must_be_quick(one)
    root = HostRoot(proof_plan.HERE)
    refuse_if_emulated(root)
    drawn = draw_up(proof_plan.HERE, wanted, asked.cpus)
    hot, topology = drawn.hot.cpus, drawn.host.topology
    _must_not_stand(root, drawn.wanted)
    alone, left_out = _alone(asked, drawn, agent_connection)
    settings = _settings(alone)
    if len(settings) < 2:
        raise _nothing_to_screen(settings, left_out, named=bool(wanted))
    words = tuple(word for setting in settings for word in setting.split())
    changes = _all_changes(settings, alone, words, hot, agent_connection)
    ids = frozenset(word.partition("=")[0] for word in words)
    notices = [f"Hot {hot.named}: {drawn.hot.why}."]
    notices += [cleaned_sentence(drawn.hot.note)] if drawn.hot.note else []
    notices += [
        f"{' and '.join(setting.split())} write the same file, so they are switched on and off together."
        for setting in settings
        if " " in setting
    ]
    partly = [one for plan in alone.values() for one in plan.skipped if one.partly]
    notices += [f"Not part of the change: {one.tunable}: {one.reason}." for one in partly]
    notices += [agent_connection.notice] if agent_connection.notice else []
    notices += [*warnings(summarise_host(root, topology)), *name_other_settings(root, ids)]
    meter: Meter
    if asked.command is not None:
        meter, why = command_measured(asked, asked.command, root, topology, hot)
        run_s = 0.0
    else:
        measured, why = measured_on(asked, root, topology, hot, ids)
        check_request(measured)
        meter, run_s = RunMeter(measured), run_seconds(measured)[0]
    notices += [why] if why else []
    pairs, proofs = pairs_needed(len(settings)), request.proofs or proofs_needed(len(settings))
    if proofs < ENOUGH_ROUNDS:
        gives = "gives" if proofs == 1 else "give"
        few = f"{many(proofs, 'pair')} {gives} figures but no verdict"
        notices.append(f"A verdict needs {ENOUGH_ROUNDS} pairs in the proofs: {few}.")
    plan = ScreeningPlan(
        settings=settings,
        pairs=pairs,
        most=most_chosen(len(settings)),
        proofs=proofs,
        workload=COMMAND if asked.command is not None else measured.workload,
        preset="" if asked.duration_s is not None or asked.command is not None else PRESETS[asked.preset].name,
        hot_cpus=hot.cpus,
        changes=changes,
        run_s=run_s,
        total_s=0.0,
        left_out=tuple(left_out),
        notices=tuple(notices),
        command=asked.command.words if asked.command is not None else (),
        metric=asked.command.metric.measure if asked.command is not None else "",
    )
    return estimate_screening_time(DrawnScreening(plan, meter, agent_connection, root))


def estimate_screening_time(drawn: DrawnScreening) -> DrawnScreening:
    """Return the plan with its duration. Call this function again after the trial of a command, which shows how long a
    run takes."""
    plan = drawn.plan
    runs = plan.budget_runs - plan.done
    each_s = drawn.meter.seconds + CHANGE_S
    run_s = drawn.meter.seconds if isinstance(drawn.meter, CommandMeter) else plan.run_s
    total_s = runs * each_s + len(plan.settings) * CHANGE_S
    return dataclasses.replace(drawn, plan=dataclasses.replace(plan, run_s=run_s, total_s=total_s))


def other_writes(one: Sequence[Change], other: Sequence[Change]) -> str:
    """Return the path of the first write that differs between two plans. Return "" if all writes of the two plans are
    equal. Writes to tasks are ignored, because tasks start and end all the time."""
    both = [
        {digest(change): change.path for change in plan if not kind_of(change.kind).of_task} for plan in (one, other)
    ]
    odd = both[0].keys() ^ both[1].keys()
    return next((clean(path, LINE) for plan in both for key, path in plan.items() if key in odd), "")


def _must_not_stand(root: HostRoot, wanted: Sequence[Wanted]) -> None:
    names = sorted({entry.tunable for entry in standing_entries(root)} & {one.id for one in wanted})
    if names:
        raise applied_already(names)


def _alone(
    asked: ProveRequest, drawn: HostPlan, agent_connection: AgentConnection
) -> tuple[dict[str, Plan], list[Skipped]]:
    """Return a separate plan for each tunable, and the tunables that cannot be screened. Raise HostError if the user
    named a tunable that cannot be screened."""
    plans: dict[str, Plan] = {}
    left_out: list[Skipped] = []
    for one in drawn.wanted:
        why = _why_not(asked, drawn, one)
        plan = agent_connection.plan((str(one),), drawn.hot.cpus) if not why else None
        if plan is not None and not plan.changes:
            why = next((skipped.reason for skipped in plan.skipped), "nothing to do")
        if why and asked.words:
            raise HostError(f"{one} cannot be screened here: {clean(why, SENTENCE)}", "leave this setting out")
        if plan is None or why:
            left_out.append(Skipped(str(one), why))
        else:
            plans[str(one)] = plan
    return plans, left_out


def _why_not(asked: ProveRequest, drawn: HostPlan, one: Wanted) -> str:
    if one.id == "isolation" and asked.command is not None and asked.cpus is None:
        return _UNUSABLE
    with contextlib.suppress(Unavailable, UsageError):
        if find_tunable(one.id).takes_offline(drawn.host, one.value):
            return _OFFLINE
    return ""


def _settings(alone: dict[str, Plan]) -> tuple[str, ...]:
    """Return the settings of the screening. Tunables that write the same file are joined in one setting, as words
    separated by blanks."""
    groups: list[tuple[list[str], set[str]]] = []
    for word, plan in alone.items():
        words, paths = [word], {change.path for change in plan.changes}
        for group in [group for group in groups if group[1] & paths]:
            groups.remove(group)
            words, paths = group[0] + words, group[1] | paths
        groups.append((words, paths))
    order = list(alone)
    return tuple(" ".join(words) for words, _ in sorted(groups, key=lambda group: order.index(group[0][0])))


def _all_changes(
    settings: Sequence[str],
    alone: dict[str, Plan],
    words: tuple[str, ...],
    hot: CpuSet,
    agent_connection: AgentConnection,
) -> tuple[Change, ...]:
    """Return the writes of all settings, in the order in which they are made. Raise HostError if the writes of one
    setting are different when other settings are also applied. The effects of such settings cannot be added up."""
    full = agent_connection.plan(words, hot)
    single = [
        change
        for setting in settings
        for change in (alone[setting] if setting in alone else agent_connection.plan(setting.split(), hot)).changes
    ]
    if odd := other_writes(full.changes, single):
        raise HostError(
            f"these settings cannot be screened: together they need other writes than alone ({odd})",
            "name fewer settings",
        )
    return full.changes


def _nothing_to_screen(settings: Sequence[str], left_out: Sequence[Skipped], *, named: bool) -> HostError:
    out = f"; left out: {', '.join(one.tunable for one in left_out)}" if left_out else ""
    if not settings:
        return HostError(
            f"there is no setting that this host's plan would change at run time{out}",
            "name settings with other values: 'jitter-workshop prove --screen ID=VALUE …'",
        )
    what = "only one setting was named" if named else "this host's plan would change only one setting at run time"
    return HostError(f"{what}{out}", f"prove it: 'jitter-workshop prove {settings[0]}'")


def cheaper(plan: ScreeningPlan) -> str:
    """Return a sentence that compares two numbers of runs: of the screening, and of separate proofs of all settings."""
    single = one_by_one(len(plan.settings))
    share = f", {plan.budget_runs / single:.0%} of them".replace("%", " %") if plan.budget_runs < single else ""
    return f"Proofs of all settings would take {many(single, 'run')}; this screening takes {plan.budget_runs}{share}."
