"""Plan a proof: the exact writes, the measurement with its CPUs, and the duration."""

from __future__ import annotations

import dataclasses
import datetime
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from jitter_workshop.bench.placement import Wish, choose_cpus
from jitter_workshop.errors import HostError, UsageError
from jitter_workshop.flow.host_ops.agent_connection import AgentConnection, standing_entries
from jitter_workshop.flow.host_ops.host_status import draw_up
from jitter_workshop.flow.host_ops.hotcpus import HotCpus, choose_hot, cpus_of_option
from jitter_workshop.flow.measuring.arrival import arrival_in_proof
from jitter_workshop.flow.measuring.host_warnings import refuse_if_emulated, warnings
from jitter_workshop.flow.measuring.isolated_set import own_cpus, room, with_allowed
from jitter_workshop.flow.measuring.placement_plan import plan_on
from jitter_workshop.flow.measuring.request import MeasureRequest, arrival_words, check_request
from jitter_workshop.flow.proving.command_meter import CommandMeter, CommandRequest
from jitter_workshop.flow.proving.meters import Meter, RunMeter, run_seconds
from jitter_workshop.flow.proving.sides import Sides, TunableSides
from jitter_workshop.host.cpu.topology import read_isolation, read_topology
from jitter_workshop.host.root import HostRoot
from jitter_workshop.host.summary import summarise_host
from jitter_workshop.model.change import Change, Plan, Wanted
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.model.host import Topology
from jitter_workshop.model.proof import COMMAND, MOST_ROUNDS, PLACEMENT, SETTLE_S, Proof, ProofPlan
from jitter_workshop.model.record import made_of
from jitter_workshop.model.run import Run
from jitter_workshop.model.spec import KINDS, PRESETS, TWO_THREADS, Placement, WorkloadName
from jitter_workshop.model.text import LABEL, SENTENCE, clean, cleaned_sentence
from jitter_workshop.model.verdict import ENOUGH_ROUNDS
from jitter_workshop.tuning.journal import Entry, applied_tunables
from jitter_workshop.tuning.tunables.registry import find_tunable, parse_wanted

NEEDS_BOOT = "takes effect with a boot"
CHANGE_S = 0.5
"""Seconds to apply and restore a change; the first measured time replaces this estimate."""

HERE = Path("/")
_ELSEWHERE = "choose another change, or other CPUs with the verb 'prove'"


@dataclass(frozen=True)
class ProveRequest:
    """Hold a user's options for a proof.

    - ``words``: the settings to prove, as ``ID`` or ``ID=VALUE``. () or ``placement`` compares threads on fixed CPUs
      with threads that the scheduler may move.
    - ``workload``: None means the ring if a run may use two CPUs, else ``spin``.
    - ``duration_s``: the seconds of each run; None for the seconds of the preset.
    - ``seed``: the random seed for the order of the runs; None draws a seed.
    - ``cpus``: a list of hot CPUs.
    - ``like``: a chapter's request. The proof takes workload, placement, noise, duty, pacing, priority and chosen CPUs
      from this request.
    - ``arrives``: True if the interrupt of the chapter's noise must arrive on the measured CPU in each run without the
      change (``flow.measuring.arrival``).
    - ``shows``: the id of the chapter's figure (``stats.figures``); "" for none. If this figure measures a cause of
      jitter, a note gives its values.
    - ``wait_s``: how many seconds to wait for the host's turn.
    - ``command``: the user's command, which is run instead of the benchmark. The command uses ``cpus`` in all runs of
      the proof. Options of the benchmark, such as ``workload`` and ``duration_s``, then have no effect.
    """

    words: tuple[str, ...] = ()
    rounds: int = 10
    preset: str = "quick"
    workload: WorkloadName | None = None
    duration_s: float | None = None
    settle_s: float = SETTLE_S
    seed: int | None = None
    cpus: str | None = None
    chapter: str = ""
    wait_s: float = 0.0
    like: MeasureRequest | None = None
    arrives: bool = False
    shows: str = ""
    command: CommandRequest | None = None

    @property
    def asked(self) -> WorkloadName:
        """Return the workload of the request. If the request names none, return the workload of the chapter's request
        ``like``. Without ``like``, return ``ring``."""
        return self.workload or (self.like.workload if self.like is not None else "ring")


@dataclass(frozen=True)
class DrawnProof:
    """Hold the plan of a proof, and what is needed to carry it out. ``sides``: applies and restores the change.
    ``meter``: makes the runs."""

    plan: ProofPlan
    sides: Sides
    meter: Meter


def draw_up_proof(request: ProveRequest, agent_connection: AgentConnection) -> DrawnProof:
    """Return the plan of a proof on this host, without writing anything. If the change consists of settings, the agent
    makes the plan, because only root can read all settings.

    Raise UsageError if the request is invalid. Raise HostError if the change cannot be proven on this host. Each error
    contains advice for the user.
    """
    if not 1 <= request.rounds <= MOST_ROUNDS:
        raise UsageError(f"a proof must have 1 to {MOST_ROUNDS:,} rounds, not {request.rounds:,}")
    words = tuple(word for word in request.words if word.strip() != PLACEMENT)
    if words and len(words) < len(request.words):
        raise UsageError("a proof is about either placement or settings", "leave out placement or the settings")
    asked = request.asked
    check_request(dataclasses.replace(_base(request, asked), wait_s=request.wait_s))
    root = HostRoot(HERE)
    refuse_if_emulated(root)
    topology = read_topology(root)
    if words:
        return _settings(request, parse_wanted(words), agent_connection, root)
    if request.command is not None:
        return _command_placement(request, request.command, root, topology)
    return _placement(request, root, topology, agent_connection.rights == "root")


def _base(request: ProveRequest, workload: WorkloadName) -> MeasureRequest:
    """Return the request for a proof's runs, based on the chapter's request ``request.like``. Preset and durations come
    from ``request``. If the workload differs from the chapter's, only placement, noise and priority are taken from
    ``like``."""
    like = request.like or MeasureRequest()
    if workload != like.workload:
        like = MeasureRequest(placement=like.placement, noise=like.noise, sched_priority=like.sched_priority)
    return dataclasses.replace(
        like,
        workload=workload,
        label="",
        preset=request.preset,
        duration_s=request.duration_s,
        messages=None,
        settle_s=request.settle_s,
        wait_s=0.0,
        evidence=False,
        hunted=False,
    )


def _planned(
    request: ProveRequest,
    sides: Sides,
    measured: MeasureRequest | CommandMeter,
    subject: str,
    hot: CpuSet,
    changes: Sequence[Change],
    notices: Sequence[str],
    change_s: float,
) -> DrawnProof:
    """Return the plan of a proof, with the objects that carry it out. ``measured``: the request for runs with the
    change, or the meter of a command. For a command, the plan has no duration before :func:`tried` adds it."""
    said = list(notices)
    if isinstance(measured, MeasureRequest) and measured.noise is not None:
        said.append(f"The noise '{measured.noise}' runs during each run, as in the chapter's own runs.")
    if isinstance(measured, MeasureRequest) and measured.arrival is not None:
        said.append(f"In each run without the change, {arrival_words(measured)}")
    if request.rounds < ENOUGH_ROUNDS:
        gives = "round gives" if request.rounds == 1 else "rounds give"
        said.append(f"A verdict needs {ENOUGH_ROUNDS} rounds: {request.rounds} {gives} figures but no verdict.")
    plan = ProofPlan(
        subject=subject,
        rounds=request.rounds,
        workload=COMMAND,
        preset="",
        hot_cpus=hot.cpus,
        changes=tuple(changes),
        run_s=0.0,
        total_s=request.rounds * change_s,
        notices=tuple(said),
    )
    if isinstance(measured, CommandMeter):
        command = request.command
        assert command is not None
        plan = dataclasses.replace(plan, command=command.words, metric=command.metric.measure)
        return DrawnProof(plan, sides, measured)
    check_request(measured)
    run_s, whole_s = run_seconds(measured)
    plan = dataclasses.replace(
        plan,
        workload=measured.workload,
        preset="" if request.duration_s is not None else PRESETS[request.preset].name,
        run_s=run_s,
        total_s=request.rounds * (2 * whole_s + change_s),
    )
    return DrawnProof(plan, sides, _meter(measured, subject))


def _meter(measured: MeasureRequest, subject: str) -> RunMeter:
    """Return the meter for a proof's runs. In runs with the change, the noise's interrupt is not sent to the measured
    CPU."""
    if subject == PLACEMENT:
        return RunMeter.of_placement(measured)
    return RunMeter(dataclasses.replace(measured, arrival=None), measured)


def tried(drawn: DrawnProof, seconds: float) -> DrawnProof:
    """Return the plan with the duration of its proof. ``seconds``: the time that a trial run of the command took."""
    plan = drawn.plan
    total_s = plan.total_s + 2 * plan.rounds * seconds
    return dataclasses.replace(drawn, plan=dataclasses.replace(plan, run_s=seconds, total_s=total_s))


def estimate_proof_time(drawn: DrawnProof, proofs: Sequence[Proof], runs: Sequence[Run]) -> DrawnProof:
    """Return the plan with a better estimate of its duration. The estimate comes from the newest complete proof with
    runs of the same workload and length. Its duration has everything that a round takes beside the blocks: starting,
    calibrating, settling, and making the change. Without such a proof, the pauses of earlier ``runs`` are used. Return
    the plan of a command unchanged: its duration comes from a trial."""
    plan, meter = drawn.plan, drawn.meter
    if not isinstance(meter, RunMeter):
        return drawn
    change_s = CHANGE_S if plan.subject != PLACEMENT else 0.0
    found = (_round_s(proof) for proof in reversed(proofs) if _runs_alike(proof, plan))
    round_s = next(filter(None, found), None) or 2 * meter.expected_s(runs) + change_s
    return dataclasses.replace(drawn, plan=dataclasses.replace(plan, total_s=plan.rounds * round_s))


def _runs_alike(proof: Proof, plan: ProofPlan) -> bool:
    """Return True if a complete proof had runs of the same workload and length as those of a plan."""
    if not proof.complete or not proof.rounds or proof.workload != plan.workload:
        return False
    return proof.preset == plan.preset and (bool(plan.preset) or proof.duration_s == plan.run_s)


def _round_s(proof: Proof) -> float | None:
    """Return the mean time of a proof's round in seconds; None if the proof does not tell it."""
    try:
        began, ended = map(datetime.datetime.fromisoformat, (proof.started_at, proof.ended_at))
        return max((ended - began).total_seconds(), 0.0) / len(proof.rounds)
    except (ValueError, TypeError):
        return None


# -- placement ---------------------------------------------------------------------------------------------------------


def _placement(request: ProveRequest, root: HostRoot, topology: Topology, may_place: bool) -> DrawnProof:
    space = room(root, topology, may_place=may_place)
    if len(topology.allowed | space.isolated) < 2:
        raise HostError(
            f"this process may use only one CPU ({topology.allowed}), so a placement would change nothing",
            "prove a setting instead: 'jitter-workshop status' shows settings that could help",
        )
    asked = request.asked
    if request.workload is None and asked in TWO_THREADS and space.cpus_for("none") < 2:
        asked = "spin"
    base = dataclasses.replace(_base(request, asked), placement="auto")
    if request.cpus is not None:
        base = _on(base, cpus_of_option(request.cpus).cpus)
    isolated = read_isolation(root).isolated
    view = plan_on(root, topology, base, isolated)
    hot = CpuSet.of(int(change.after) for change in view.changes)
    if base.workload == "ring" and all("journaller" not in change.path for change in view.changes):
        base = dataclasses.replace(base, no_journaller=True)  # all runs must have the same threads
    notices = [view.text, *warnings(summarise_host(root, topology)), *name_other_settings(root, frozenset())]
    return _planned(request, Sides(), base, PLACEMENT, hot, view.changes, notices, 0.0)


def _command_placement(
    request: ProveRequest, command: CommandRequest, root: HostRoot, topology: Topology
) -> DrawnProof:
    chosen = choose_hot(root, request.cpus, topology)
    hot = chosen.cpus
    free = topology.allowed | own_cpus(root)
    if hot - free:
        advice = _ELSEWHERE if request.chapter else "choose other CPUs with --cpus"
        raise HostError(f"this process may not use CPU {hot - free}", advice)
    if hot == free:
        raise HostError(
            f"the command may use only the hot CPUs {hot}, so binding it to these CPUs changes nothing",
            _ELSEWHERE if request.chapter else "choose fewer CPUs with --cpus",
        )
    why = "The scheduler keeps the command on these CPUs, so work on other CPUs does not hold the command up."
    change = Change(
        1, PLACEMENT, "sched_setaffinity(command)", f"any ({topology.allowed})", str(hot), "run", "low", why
    )
    notices = [
        *_on_hot(request, chosen),
        *warnings(summarise_host(root, topology)),
        *name_other_settings(root, frozenset()),
    ]
    meter = CommandMeter(command, {"without": None, "with": hot}, root)
    return _planned(request, Sides(), meter, PLACEMENT, hot, (change,), notices, 0.0)


def _on_hot(request: ProveRequest, hot: HotCpus) -> list[str]:
    """Return notices about the hot CPUs of a proof. For a chapter, notices that name a command-line option are left
    out."""
    parts = [part for part in hot.note.split("; ") if part and not (request.chapter and part.startswith("--"))]
    note = "; ".join(parts)
    return [f"Hot {hot.cpus.named}: {hot.why}.", *([cleaned_sentence(note)] if note else [])]


def _on(base: MeasureRequest, cpus: tuple[int, ...]) -> MeasureRequest:
    """Return the request with one CPU of ``cpus`` for each thread. The first thread gets the first CPU, and so on.
    Raise UsageError if the number of CPUs is wrong."""
    most = len(KINDS[base.workload].threads)
    fewest = min(most, 2)
    if not fewest <= len(cpus) <= most:
        how_many = f"{fewest} or {most} CPUs" if fewest < most else "one CPU" if most == 1 else f"{most} CPUs"
        raise UsageError(
            f"{base.workload} needs {how_many} for its threads, not {len(cpus)}", "choose them with --cpus"
        )
    if most == 1:
        return base.on(Placement("chosen", sampler=cpus[0]))
    producer, accumulator, journaller = (*cpus, None)[:3]
    return _of_both(base, Placement("chosen", producer, accumulator, journaller))


def _of_both(base: MeasureRequest, placement: Placement) -> MeasureRequest:
    """Return the request in which each thread gets its CPU from ``placement``. If ``placement`` has no CPU for the
    ring's journaller, the request has no journaller."""
    no_journaller = base.workload == "ring" and placement.journaller is None
    return dataclasses.replace(base.on(placement), no_journaller=no_journaller)


# -- settings ----------------------------------------------------------------------------------------------------------


def _settings(
    request: ProveRequest, wanted: tuple[Wanted, ...], agent_connection: AgentConnection, root: HostRoot
) -> DrawnProof:
    for one in wanted:
        must_be_quick(one)
    words, ids = tuple(str(one) for one in wanted), frozenset(one.id for one in wanted)
    if request.command is not None and request.cpus is None and "isolation" in ids:
        raise HostError(
            "with the isolation the command could not use the isolated CPUs",
            _ELSEWHERE
            if request.chapter
            else "name these CPUs with --cpus: all runs then bind the command to these CPUs",
        )
    ours = _ours(standing_entries(root), ids, agent_connection)
    _must_be_asked_for(ours, wanted, root)
    drawn = draw_up(HERE, wanted, request.cpus)
    hot, topology = drawn.hot.cpus, drawn.host.topology
    fresh = tuple(one for one in wanted if one.id not in {entry.tunable for entry in ours})
    changes = tuple(_change_of(entry) for entry in ours)
    notices = _on_hot(request, drawn.hot)
    if fresh:
        plan = drawn.plan if not ours else draw_up(HERE, fresh, request.cpus).plan
        _must_change(plan)
        plan = agent_connection.plan(tuple(map(str, fresh)), hot)
        _must_change(plan)
        changes += plan.changes
        notices += [f"Not part of the change: {one.tunable}: {one.reason}." for one in plan.skipped if one.partly]
        notices += [agent_connection.notice] if agent_connection.notice else []
    if ours:
        names = ", ".join(dict.fromkeys(entry.tunable for entry in ours))
        notices.append(f"The applied settings of {names} are restored first, and are not applied again at the end.")
    notices += [*warnings(summarise_host(root, topology)), *name_other_settings(root, ids)]
    measured: MeasureRequest | CommandMeter
    if request.command is not None:
        measured, why = command_measured(request, request.command, root, topology, hot)
    else:
        measured, why = measured_on(request, root, topology, hot, ids)
    notices += [why] if why else []
    if request.arrives and isinstance(measured, MeasureRequest):
        write = arrival_in_proof(root, topology, measured, read_isolation(root).isolated, changes)
        measured = dataclasses.replace(measured, arrival=write)
    sides = TunableSides(agent_connection, words, hot, changes, root)
    numbered = [dataclasses.replace(change, n=n) for n, change in enumerate(changes, start=1)]
    return _planned(request, sides, measured, " ".join(words), hot, numbered, notices, CHANGE_S)


def must_be_quick(one: Wanted) -> None:
    """Raise HostError if a setting needs a boot or cannot be changed by this tool. A proof must apply and restore its
    settings within seconds."""
    tunable = find_tunable(one.id)
    if tunable.when == "boot" or one.once:
        raise HostError(
            f"{one.id} {NEEDS_BOOT}, but a proof applies and restores a change within seconds",
            "measure before and after the boot, and compare the two runs with 'jitter-workshop compare'",
        )
    if not tunable.changes_host:
        raise HostError(
            f"this tool reports {one.id} and does not change it", "'jitter-workshop status' shows what can be changed"
        )


def _must_change(plan: Plan) -> None:
    """Raise HostError if a tunable of the plan would change nothing. Such a tunable cannot be proven."""
    left_out = [one for one in plan.skipped if not one.partly]
    if not left_out:
        return
    first = left_out[0]
    good = first.reason.startswith("nothing to do")
    why = "a proof would have nothing to change" if good else "this tunable cannot be proven here"
    advice = "'jitter-workshop status' shows what can be changed"
    if good and find_tunable(first.tunable).values:
        advice = f"prove another value: {first.tunable}=VALUE"
    raise HostError(
        f"{first.tunable}: {clean(first.reason, SENTENCE)}; {why}",
        advice + (", or leave it out" if plan.changes else ""),
    )


def _ours(entries: Sequence[Entry], ids: frozenset[str], agent_connection: AgentConnection) -> tuple[Entry, ...]:
    """Return the journal's entries for the tunables ``ids``. Raise HostError if one of these tunables was not applied
    through ``agent_connection``. The proof could not restore this tunable, so it could not make the runs without the
    change."""
    found = tuple(entry for entry in entries if entry.tunable in ids)
    strange = sorted({entry.tunable for entry in found} - agent_connection.leased)
    if strange:
        raise applied_already(strange)
    return found


def applied_already(names: Sequence[str]) -> HostError:
    """Return the error for tunables that are applied before a proof or screening begins."""
    stand, them = ("is", "it") if len(names) == 1 else ("are", "them")
    return HostError(
        f"{', '.join(names)} {stand} applied already, so all runs would have {them}",
        f"restore {them} first: 'jitter-workshop restore {' '.join(names)}'",
    )


def _must_be_asked_for(ours: Sequence[Entry], wanted: Sequence[Wanted], root: HostRoot) -> None:
    """Raise HostError if this tool has already applied a wanted tunable with another value. The plan for the wanted
    value can be made only after a restore."""
    values = {one["id"]: one.get("value", "") for one in applied_tunables(root)}
    for one in wanted:
        tunable = find_tunable(one.id)
        default = tunable.default if tunable.values else None
        if one.id in {entry.tunable for entry in ours} and values.get(one.id, "") != (one.value or default or ""):
            raise HostError(
                f"{one.id} has the value {clean(values.get(one.id, ''), LABEL)} already",
                f"restore {one.id} first",
            )


def _change_of(entry: Entry) -> Change:
    """Return a change that repeats the write of a journal entry."""
    tunable = find_tunable(entry.tunable)
    return made_of(Change, entry, when=tunable.when, risk=tunable.risk, why=tunable.why)


def command_measured(
    request: ProveRequest, command: CommandRequest, root: HostRoot, topology: Topology, hot: CpuSet
) -> tuple[CommandMeter, str]:
    """Return the meter of a command, and a sentence about the command's CPUs. Raise HostError if this process may not
    use all of these CPUs."""
    if request.cpus is None:
        how = f"prove the change '{PLACEMENT}'" if request.chapter else "name CPUs with --cpus"
        why = f"The scheduler may move the command in all runs. To bind the command, {how}."
        return CommandMeter(command, {"without": None, "with": None}, root), why
    if hot - (topology.allowed | own_cpus(root)):
        raise HostError(f"this process may not use all of CPU {hot}", "choose other CPUs with --cpus")
    why = f"In all runs the command is bound to {hot.named}."
    return CommandMeter(command, {"without": hot, "with": hot}, root), why


def measured_on(
    request: ProveRequest, root: HostRoot, topology: Topology, hot: CpuSet, ids: frozenset[str]
) -> tuple[MeasureRequest, str]:
    """Return the request for a proof's runs. The second value is a sentence about the workload, or "". All runs use the
    same CPUs. Raise HostError if the workload needs more CPUs. Raise UsageError if parts of the request contradict each
    other."""
    asked = request.asked
    why = ""
    free = request.like is not None and request.like.placement == "none"
    walled = "isolation" in ids and len(hot) < 2 and free
    if asked in TWO_THREADS and len(hot) < 2 and (request.workload is None or walled):
        if request.workload is not None:
            raise HostError(
                f"{asked} needs two CPUs, but while CPU {hot} is isolated, a run may use only that CPU here",
                "use '--workload spin', or choose more hot CPUs with --cpus",
            )
        if request.like is None or walled:
            why = f"Only CPU {hot} is hot, and the {asked} needs two CPUs: the loop 'spin' is measured instead."
            asked = "spin"
    if "isolation" in ids and len(hot) < 2 and asked == "ring":
        why = (
            "With the change only the accumulator is on the isolated CPU. The percentiles show this thread alone, but "
            "the stalls include those of the producer."
        )
    base = _base(request, asked)
    if base.placement == "none":
        return base, "The scheduler may move the threads in all runs, as in the chapter."
    if any(cpu is not None for cpu in (base.cpu, base.producer_cpu, base.accumulator_cpu, base.journaller_cpu)):
        return base, why
    return _pinned(base, root, topology, hot), why


def _pinned(base: MeasureRequest, root: HostRoot, topology: Topology, hot: CpuSet) -> MeasureRequest:
    """Return the request with a fixed hot CPU for each thread. An applied setting could otherwise change the CPUs
    between two runs."""
    usable = with_allowed(topology, own_cpus(root))
    isolated = read_isolation(root).isolated | own_cpus(root)
    pair = base.workload in TWO_THREADS
    if pair and len(hot & usable.allowed) < 2:
        wish = Wish(workload=base.workload, accumulator=hot.cpus[0], no_journaller=True)
    else:
        wish = Wish(workload=base.workload, within=hot)
    return _of_both(base, choose_cpus(usable, wish, isolated))


# -- what both have ----------------------------------------------------------------------------------------------------


def name_other_settings(root: HostRoot, ids: frozenset[str]) -> tuple[str, ...]:
    """Return a sentence that names the applied settings that are not part of the change. Return () if there are no such
    settings. These settings stay applied in all runs. ``ids``: the tunables of the change."""
    others = [one["id"] for one in applied_tunables(root, in_effect=True) if one["id"] not in ids]
    return (f"These settings stay applied in all runs: {', '.join(others)}.",) if others else ()
