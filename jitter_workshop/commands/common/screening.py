"""Run ``prove --screen``: show the cost, ask, make the screening, and print the ranked settings."""

from __future__ import annotations

import argparse
import contextlib
import shlex
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from jitter_workshop.bench.cancel import CancelToken, stopped_by_signals
from jitter_workshop.commands.common.base import Interrupted, advise_waiting, print_notice, print_result
from jitter_workshop.commands.common.experiments import (
    MOST_LINES,
    NO_UPPER_BOUND,
    OWN_BENCHMARK,
    RUNNING_ONCE,
    RunsLine,
    ask_before_runs,
    earlier,
    exit_code,
    kept_in,
    print_experiment,
)
from jitter_workshop.commands.common.shared import (
    say_if_any,
    say_notices,
)
from jitter_workshop.errors import BusyError, WorkshopError
from jitter_workshop.model.record import picked
from jitter_workshop.model.run import RunObserver
from jitter_workshop.model.screening import Screening, ScreeningPlan
from jitter_workshop.model.text import SENTENCE, clean, quoted_command
from jitter_workshop.session.opened import OpenSession
from jitter_workshop.stats.scale import nice_duration

if TYPE_CHECKING:
    from jitter_workshop.flow.proving.proof_plan import ProveRequest
    from jitter_workshop.flow.proving.screening_run import Screener, ScreeningPart, ScreeningStep


def screened(args: argparse.Namespace, request: ProveRequest) -> int:
    """Make a screening, and print it. Return 1 if a setting could not be restored, or if the user's command failed in a
    later run; else 0."""
    from jitter_workshop.flow.proving.screening_plan import ScreenRequest
    from jitter_workshop.flow.proving.screening_run import Screener
    from jitter_workshop.flow.turns.classhost import turn_for
    from jitter_workshop.presenter.proofs.screening import STOPPED_EARLY, screening_cost_lines

    asked = ScreenRequest(request, proofs=args.rounds, resume=args.resume, asked=_line(args))
    token = CancelToken()
    with contextlib.ExitStack() as guarded:
        guarded.callback(token.close)
        with kept_in(args) as (session, agent_connection):
            received = guarded.enter_context(stopped_by_signals(token))
            with contextlib.ExitStack() as turn:
                try:
                    doing = "screening settings"
                    turn.enter_context(turn_for(agent_connection, args.wait_s, token, say_if_any, doing=doing))
                    screener = Screener(asked, session, agent_connection)
                    plan = screener.plan(lambda: print_notice(RUNNING_ONCE))
                    say_notices(session.notices)
                    ask_before_runs(args, partial(screening_cost_lines, plan), "Screen them?")
                    made = _made(screener, plan, token)
                except BusyError as error:
                    advise_waiting(error)
                    raise
                except WorkshopError:
                    if not received:
                        raise
                    print_notice(STOPPED_EARLY)
                    raise Interrupted(received[0]) from None
                where = session.session.name, "prove --screen"
        print_experiment(
            args, made, partial(_print, args, made), where, agent_connection.trouble, screener.not_kept, received
        )
    return exit_code(made, received)


def old(args: argparse.Namespace) -> int:
    """Print a short form of each earlier screening. With ``--show``, print one screening in full."""
    from jitter_workshop.flow.proving.screening_run import update_screenings
    from jitter_workshop.presenter.proofs.screening import screening_list_lines

    found = earlier(args, "screenings", update_screenings, OpenSession.find_screening, OpenSession.screenings)
    if args.show is not None:
        _print(args, found[0])
    else:
        print_result(
            args, {"screenings": [screening_fields(one) for one in found]}, partial(screening_list_lines, found)
        )
    return 0


def _line(args: argparse.Namespace) -> tuple[str, ...]:
    """Return the command line that continues this screening, as words without the program's name. Each word is quoted
    for a shell."""
    said = ["prove", "--screen", "--resume", *args.words]
    for option, name in (
        ("--rounds", "rounds"),
        ("--preset", "preset"),
        ("--duration", "duration_s"),
        ("--workload", "workload"),
        ("--cpus", "cpus"),
        ("--metric", "metric"),
        ("--match", "match"),
        ("--hlog", "hlog"),
        ("--pyperf", "pyperf"),
        ("--unit", "unit"),
        ("--timeout", "timeout_s"),
        ("--session", "session"),
    ):
        value = getattr(args, name)
        if value is not None:
            said += [option, f"{value:g}" if isinstance(value, float) else str(value)]
    command = tuple(getattr(args, "command", ()))
    line = (*said, *(("--", *command) if command else ()))
    return tuple(shlex.quote(word) for word in line)


def _made(screener: Screener, plan: ScreeningPlan, token: CancelToken) -> Screening:
    progress = ScreeningLine(plan)
    try:
        return screener.screen(plan, progress, token, queued=say_if_any)
    finally:
        progress.close()


class ScreeningLine(RunsLine):
    """Write a line of progress on stderr and replace it as the screening goes on. If stderr is not a terminal, write a
    few separate lines."""

    def __init__(self, plan: ScreeningPlan) -> None:
        super().__init__()
        self._settings = len(plan.settings)

    def tried(self, done: int, of: int) -> None:
        self.write(f"  trying the settings: {done} of {of}")

    def run_begins(self, step: ScreeningStep) -> RunObserver:
        part = "choosing" if step.part == "pairs" else "proving"
        return self.begins(f"{part} · pair {step.pair + 1} of {step.pairs} · {len(step.on)} on", step.left_s)

    def pair_done(self, part: ScreeningPart, done: int, of: int, left_s: float) -> None:
        every = -(-of // MOST_LINES)
        if not self.shown and (done % every == 0 or done == of):
            what = "choosing" if part == "pairs" else "proving"
            left = f"; about {nice_duration(left_s)} left" if left_s >= 1 else ""
            with contextlib.suppress(OSError):
                print_notice(f"{what}: pair {done} of {of} is done{left}")

    def chosen(self, settings: Sequence[str]) -> None:
        if len(settings) < self._settings:
            self.close()
            with contextlib.suppress(OSError):
                print_notice(f"These settings will be proven: {clean(', '.join(settings), SENTENCE)}.")


def _print(args: argparse.Namespace, made: Screening) -> None:
    from jitter_workshop.presenter.proofs.screening import screening_lines

    print_result(args, screening_fields(made), partial(screening_lines, made))


def screening_fields(made: Screening) -> dict[str, Any]:
    """Return a screening as the JSON fields of ``prove --screen --json``. ``notes`` has a reason for each field that is
    null. ``remarks`` has the notes that the screening itself made.
    """
    from jitter_workshop.model.codec import to_plain
    from jitter_workshop.report.screening_words import NOT_ENDED, screening_sentence
    from jitter_workshop.stats.screening import one_by_one, screening_result

    found = screening_result(made)
    plain = to_plain(made)
    notes: dict[str, str] = {}
    ranked = []
    for row in found.ranked if found is not None else ():
        one = to_plain(row)
        ranked.append({"tunable": one.pop("setting"), **one, "p_adjusted": row.p_adjusted if row.chosen else None})
    if found is None:
        notes["measure"] = "not all pairs of the first part were measured, so the settings are not ranked"
    if any(row["high"] is None for row in ranked):
        notes["ranked.high"] = NO_UPPER_BOUND
    if any(row["ratio"] is None for row in ranked):
        notes["ranked.ratio"] = "null: there is nothing to compare"
    if any(row["p_adjusted"] is None for row in ranked):
        notes["ranked.p_adjusted"] = "null: the setting was not chosen for the proofs, so there is no result for it"
    if not made.ended_at:
        notes["ended_at"] = NOT_ENDED
    if made.duration_s is None:
        notes["duration_s"] = "each run lasted as long as its preset or its command"
    if not made.preset:
        notes["preset"] = "the runs were of a command, or the user gave the duration of each run"
    if not made.command:
        notes |= dict.fromkeys(("command", "metric", "unit"), OWN_BENCHMARK)
    return {
        "id": made.id,
        **picked(made, "runs", "budget_runs"),
        "one_by_one_runs": one_by_one(len(made.settings)),
        "measure": found.measure if found is not None else None,
        "ranked": ranked,
        "text": screening_sentence(made, found),
        "settings": list(made.settings),
        "chosen": [made.settings[n] for n in made.chosen],
        "left_out": plain["left_out"],
        **picked(made, "restored", "complete", "stopped", "seed", "workload"),
        "preset": made.preset or None,
        "duration_s": made.duration_s,
        "hot_cpus": list(made.hot_cpus),
        **picked(made, "planned_pairs", "planned_proofs", "started_at"),
        "ended_at": made.ended_at or None,
        "sittings": list(made.sittings),
        "pairs": [_runs(one) for one in plain["pairs"]],
        "proofs": [_runs(one) for one in plain["proofs"]],
        "changes": plain["changes"],
        "left_alone": plain["left_alone"],
        "disturbed": made.disturbed,
        "command": quoted_command(made.command, SENTENCE) if made.command else None,
        "metric": made.metric or None,
        "unit": made.unit if made.command else None,
        "options": [clean(word, SENTENCE) for word in made.options],
        "remarks": list(made.notes),
        "notes": notes,
    }


def _runs(pair: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the two runs of a pair as JSON fields.

    - ``on``: the indexes of the settings that were switched on in this run.
    - ``run``: the run's id; None if a user's command was run instead of this tool's benchmark.
    - ``figure``: the value that the user's command gave; None for this tool's benchmark.
    """
    return [
        {
            "on": run["on"],
            "run": run["side"]["run"] or None,
            "figure": run["side"]["figure"]["value"] if run["side"]["figure"] else None,
        }
        for run in (pair["first"], pair["second"])
    ]
