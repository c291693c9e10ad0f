"""Prove a chapter's change at the step where its two runs are compared. Each run of the proof has the same workload,
duty, noise and CPUs as the chapter's second run."""

from __future__ import annotations

import dataclasses

from jitter_workshop.errors import HostError
from jitter_workshop.flow.chapters.own_program import MATCH, UNIT, sample_of
from jitter_workshop.flow.chapters.session_context import key_of
from jitter_workshop.flow.chapters.walk import ChapterWalk
from jitter_workshop.flow.chapters.workshop import Workshop
from jitter_workshop.flow.measuring.placement_plan import WAIT_S
from jitter_workshop.flow.programs import metrics
from jitter_workshop.flow.proving.command_meter import CommandRequest
from jitter_workshop.flow.proving.proof_run import Prover, ProveRequest
from jitter_workshop.model.host import NO_VERDICT
from jitter_workshop.model.proof import PLACEMENT, ROUNDS, Proof
from jitter_workshop.tuning.base import Tunable
from jitter_workshop.tuning.tunables import registry

MOST_CHANGES = 9
"""Greatest number of changes to choose from, because each has a key."""


def why_no_proof(workshop: Workshop, walk: ChapterWalk) -> str:
    """Return the reason why a chapter's change cannot be proven now. The text has no full stop at its end. Return "" if
    the change can be proven."""
    chapter = walk.chapter
    first, again = chapter.measurement("measure"), chapter.measurement("again")
    if chapter.program:
        # A chapter on a program changes nothing itself: the learner chooses the change.
        return walk.program.why_not or ("" if walk.program.work.observed else "observe your program first")
    if walk.host.rehearsed:
        return "nothing can be measured on a recording, so nothing can be proven"
    if workshop.context.host.emulated:
        return NO_VERDICT
    if chapter.changes == "nothing" or first is None or again is None:
        return "this chapter changes nothing that a proof could apply and restore"
    if workshop.hunts.hiding:
        return "a hidden noise is running and would affect all runs: name the noise or give up first"
    if chapter.reboot:
        return "boot parameters take effect at a boot, but a proof applies and restores a change within seconds"
    if chapter.changes == "placement" and first.placement == again.placement:
        return "both runs of this chapter have the same placement: they differ in the measurement, not by a change"
    return ""


def prover(workshop: Workshop, walk: ChapterWalk, rounds: int = ROUNDS) -> Prover:
    """Return a prover for a chapter's change. Its runs use the workload, duty, noise and CPUs of the chapter's second
    run. Raise HostError if the change cannot be proven."""
    reason = why_no_proof(workshop, walk)
    if reason:
        raise HostError(reason)
    if walk.chapter.program:
        return Prover(_of_program(workshop, walk, rounds), workshop.context.handle, workshop.context.agent_connection)
    request = ProveRequest(
        words=_words(workshop, walk) if walk.chapter.changes == "tunables" else (PLACEMENT,),
        rounds=rounds,
        chapter=_key(workshop, walk),
        wait_s=WAIT_S,
        like=dataclasses.replace(walk.measuring.request("again"), evidence=False, arrival=None),
        arrives=walk.measuring.arrives(),
        shows=walk.runs.shows.figure if walk.runs.shows is not None else "",
    )
    return Prover(request, workshop.context.handle, workshop.context.agent_connection)


def _of_program(workshop: Workshop, walk: ChapterWalk, rounds: int) -> ProveRequest:
    """Return the request for a proof with the learner's program. A sample program of the course prints a p99, and the
    proof compares this p99. For any other program, the proof compares the wall time."""
    work = walk.program.work
    metric = (
        metrics.metric_of_options(None)
        if sample_of(work.words) is None
        else metrics.metric_of_options(None, MATCH, unit=UNIT)
    )
    command = CommandRequest(work.words, metric)
    return ProveRequest((work.change,), rounds, chapter=_key(workshop, walk), wait_s=WAIT_S, command=command)


def provable_changes(workshop: Workshop) -> tuple[str, ...]:
    """Return at most MOST_CHANGES changes that can be proven with the user's program. The first change is the placement
    of threads on CPUs. The other changes are settings that this host can improve without a reboot. Raise HostError if
    the host shows no CPU."""
    found = [PLACEMENT]
    for finding in workshop.findings().improvable:
        tunable = registry.find_tunable(finding.check.id)
        if tunable.when == "runtime" and type(tunable).writes is not Tunable.writes:
            found.append(tunable.id)
    return tuple(found[:MOST_CHANGES])


def newest(workshop: Workshop, walk: ChapterWalk) -> Proof | None:
    """Return the chapter's newest proof in this session; None if there is none."""
    ours = _key(workshop, walk)
    found = [proof for proof in workshop.context.handle.proofs() if proof.chapter == ours]
    if walk.chapter.program:
        work = walk.program.work
        found = [proof for proof in found if (proof.command, proof.subject) == (work.words, work.change)]
    return found[-1] if found else None


def record_after_proof(workshop: Workshop, walk: ChapterWalk) -> None:
    """Update the session's record of applied settings after a proof. The proof has restored the chapter's settings. The
    session's record still lists these settings, so that the learner can apply them again."""
    if walk.chapter.program:
        walk.program.proven()
    if walk.chapter.changes == "tunables":
        workshop.context.note_stack()


def _words(workshop: Workshop, walk: ChapterWalk) -> tuple[str, ...]:
    """Return those of the chapter's tunables that the chapter's plan changes, or that this tool has already applied.
    Raise HostError if there is no such tunable.
    """
    ids = {change.tunable for change in walk.plan().changes} | {one["id"] for one in workshop.context.standing()}
    words = tuple(word for word in walk.chapter.tunables if word.partition("=")[0] in ids)
    if not words:
        raise HostError(
            "all settings of this chapter already have the wanted values, so a proof would have nothing to change",
            "prove another value: 'jitter-workshop prove TUNABLE=VALUE'",
        )
    return words


def _key(workshop: Workshop, walk: ChapterWalk) -> str:
    """Return the key under which the session stores the chapter's proofs. It differs from the key of a chapter with the
    same id in another course."""
    return key_of(workshop.course.id, walk.chapter.id)
