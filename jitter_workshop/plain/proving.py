"""Prove a chapter's change line by line: show the cost, one line per round, and the verdict. Ctrl-C stops the proof and
keeps the finished rounds."""

from __future__ import annotations

from functools import partial

from jitter_workshop.bench.runner import Cancelled
from jitter_workshop.flow.chapters.walk import ChapterWalk
from jitter_workshop.flow.chapters.workshop import Workshop
from jitter_workshop.flow.proving import chapter_proof as chapter
from jitter_workshop.flow.proving.chapter_proof import why_no_proof as why_no_proof
from jitter_workshop.flow.proving.proof_run import ProofStep, Prover
from jitter_workshop.model.proof import MOST_ROUNDS, Proof, ProofPlan
from jitter_workshop.model.run import RunObserver, SilentObserver
from jitter_workshop.model.text import WORD, clean
from jitter_workshop.model.verdict import Round
from jitter_workshop.model.walk import CompareView
from jitter_workshop.plain.run import queued, stopping
from jitter_workshop.plain.talk import Talk
from jitter_workshop.presenter.course import action_meanings as meanings
from jitter_workshop.presenter.course.action_meanings import beside_a_word
from jitter_workshop.presenter.proofs import proof as words
from jitter_workshop.presenter.text.styled import Text
from jitter_workshop.stats.scale import ratio_text
from jitter_workshop.stats.verdicts import SoFar, ratios_so_far

HELP = (("p", beside_a_word(meanings.PROVE)),)


def offers_proof(workshop: Workshop, walk: ChapterWalk) -> bool:
    """Return True if the command ``p`` starts or shows a proof at the step ``compare``."""
    if walk.host.rehearsed:
        return False
    return not why_no_proof(workshop, walk) or chapter.newest(workshop, walk) is not None


def proof_menu(workshop: Workshop, walk: ChapterWalk) -> str:
    """Return the menu's entry for the proof, with a separator at the end; "" if no proof is offered."""
    if not offers_proof(workshop, walk):
        return ""
    return "p prove it · " if chapter.newest(workshop, walk) is None else "p the proof · "


def verdict_above_comparison(workshop: Workshop, walk: ChapterWalk) -> str | Text:
    """Return the verdict of the newest proof, to be shown above a comparison. Return "" if there is no proof, or if it
    has too few rounds for a verdict."""
    proof = chapter.newest(workshop, walk)
    return words.earlier_proof_line(proof) if proof is not None and words.leads(proof) else ""


def newest_proof_is_undecided(workshop: Workshop, walk: ChapterWalk) -> bool:
    """Return True if the newest proof of this chapter's change cannot tell."""
    return words.proof_is_undecided(chapter.newest(workshop, walk))


def tell_newest(workshop: Workshop, walk: ChapterWalk, view: CompareView, talk: Talk) -> None:
    """Print the result of the newest proof below a comparison. Without a proof, print that the change can be proven, if
    this is possible. Print nothing if the verdict is already above the comparison."""
    proof = chapter.newest(workshop, walk)
    # A proof makes runs of its own, so settings that changed between these two runs do not touch it.
    provable = view.relation in ("changed", "strayed")
    if proof is not None and words.leads(proof) and provable and view.effects is not None:
        return
    if proof is not None:
        talk.tell(words.earlier_proof_text(proof))
    elif provable and not why_no_proof(workshop, walk):
        talk.tell(words.OFFER)
    else:
        return
    talk.say("")


def prove(workshop: Workshop, walk: ChapterWalk, talk: Talk) -> None:
    """Show the newest proof, or make a proof if the learner agrees to its cost. Raise Leave if the learner types ``q``.
    Raise WorkshopError if the proof fails."""
    before = chapter.newest(workshop, walk)
    if before is not None:
        talk.say("", *words.proof_verdict_lines(before, talk.width), "")
        if why_no_proof(workshop, walk) or talk.ask("again = make another proof · Enter goes back") != "again":
            return
    rounds = words.asked_for(before) or words.round_choices(before)[0]
    prover = chapter.prover(workshop, walk, rounds)
    plan = prover.plan()
    talk.say("", *words.proof_cost_lines(plan, talk.width), "")
    while (answer := talk.ask(_question(plan, before))) != "":
        if answer.lower() in ("no", "n"):
            talk.tell("Nothing is measured.")
            return
        if answer.lower() in ("yes", "y"):
            break
        if not (answer.isascii() and answer.isdigit() and 1 <= int(answer[:5]) <= MOST_ROUNDS):
            talk.tell(f"'{clean(answer, WORD)}' is not a number of rounds from 1 to {MOST_ROUNDS:,}.")
            continue
        shown = plan.changes
        prover = chapter.prover(workshop, walk, int(answer))
        plan = prover.plan()
        if plan.changes != shown:
            talk.tell("The plan has changed:")
            talk.say("", *words.proof_cost_lines(plan, talk.width), "")
        else:
            talk.tell(words.work(plan, plan.rounds))
    _make(workshop, walk, talk, prover, plan)


def _question(plan: ProofPlan, before: Proof | None) -> str:
    others = ", ".join(str(n) for n in words.round_choices(before) if n != plan.rounds)
    return f"Enter begins {plan.rounds} rounds · {others} or another number = that many · no = nothing"


def _make(workshop: Workshop, walk: ChapterWalk, talk: Talk, prover: Prover, plan: ProofPlan) -> None:
    """Make the proof, and print its rounds and its verdict. Ctrl-C, HUP and TERM stop the proof. When the settings are
    restored, HUP and TERM have their usual effect on this process."""
    talk.tell(f"Proving. Ctrl-C stops the proof and keeps the finished rounds. {words.NOT_JUDGED.capitalize()}:")
    signs = f"{words.WITHOUT} is a run without the change, {words.WITH} is a run with it. The ratio is with ÷ without."
    talk.tell(signs, "  ")
    observer = _Lines(talk, plan.workload)
    with stopping() as token:
        try:
            proof = prover.prove(plan, observer, token, partial(queued, talk))
        except Cancelled:
            talk.tell(words.STOPPED_EARLY)
            return
        finally:
            chapter.record_after_proof(workshop, walk)
    talk.say("", *words.proof_verdict_lines(proof, talk.width), "")


class _Lines:
    """Print one line after each round of a proof. A single run prints nothing."""

    def __init__(self, talk: Talk, workload: str) -> None:
        self._talk = talk
        self._workload = workload

    def side_begins(self, step: ProofStep) -> RunObserver:
        return SilentObserver()

    def round_done(self, rounds: tuple[Round, ...], planned: int, left_s: float) -> None:
        number = f"{len(rounds):>{len(str(planned))}}"
        first, then = words.round_signs(rounds[-1].order)
        figure = _figure(ratios_so_far(rounds, self._workload))
        self._talk.row(f"  round {number} of {planned}  {first} {then}  {figure}  {words.left(left_s)}")

    def restoring(self) -> None:
        return None


def _figure(seen: SoFar | None) -> str:
    """Return the name of a measure, and its ratio in the newest round, such as ``stalls over 100 µs 1/13``."""
    if seen is None:
        return "no measure in common"
    ratio = seen.ratios[-1]
    if ratio is None:
        return f"{seen.name}: none with or without the change"
    told = "none without" if ratio == float("inf") else "none with it" if ratio == 0 else ratio_text(ratio)
    return f"{seen.name}: {told}"
