"""Prove that a change helps, or that it does not: paired runs in random order, restored at the end.

'prove placement' compares placed threads with threads left to the scheduler; 'prove TUNABLE…' (ID or ID=VALUE)
compares this host with a setting and without it. The cost and every write are shown first. Each round has one fresh run
without the change and one with it; a verdict needs at least ten rounds. Ctrl-C stops, restores, and judges the finished
rounds.

  prove placement                 needs no rights; about 3 minutes
  prove irq-affinity --rounds 20  as root, or by sudo
  prove thp=never governor        several settings as one change
  prove --list                    the proofs of this session; 'prove --show @1' prints the newest again

A command after -- is run instead of our benchmark. It runs twice in each round, without the change and with it. Before
all rounds it runs once, to see how long it takes. 'prove placement' binds the command to the hot CPUs. 'prove TUNABLE'
binds the command to CPUs only if --cpus is given. The command is then bound in all runs, without the change and with
it. The command's input is empty and its output is not shown. At the end of a run all processes that it started are
ended, also those that left its process group. A process that another service started for it cannot be found.

  prove thp=never -- ./server-test 1000                           its wall time; --metric user: its CPU time
  prove placement --metric held-up -- ./server-test 1000          how long its threads waited for a CPU (root)
  prove thp --match 'p99=([0-9.]+)' --unit us -- ./test           the last figure in its output that matches
  prove thp --hlog out.hlog --metric p99.9 -- ./test              from a histogram that it writes (.hlog, .hgrm)
  prove thp --pyperf out.json -- ./test                           the mean in pyperf's JSON that it writes

--screen asks which of many settings matter: those that are named, or all that 'status' would improve at run time. The
runs come in pairs. In the first run of a pair, half of the settings are on. In the second run, only the other half is
on. So every pair gives information about each setting. The few settings with the largest effects are then proven. This
takes far fewer runs than a proof of each setting. Finished pairs are stored. With --resume, the screening continues
after the last finished pair. --rounds sets the number of rounds for the proof of each of these few settings.

  prove --screen                  all settings of this host's plan, by our own benchmark
  prove --screen thp governor epp -- ./server-test 1000           some of them, by the wall time of a command

Exit codes: 0 for any verdict; 1 something could not be restored, or a command failed in a later round; 2 nothing was
proven.
"""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from jitter_workshop.bench.cancel import CancelToken, stopped_by_signals
from jitter_workshop.commands.common.base import (
    Interrupted,
    Parser,
    add_json,
    advise_waiting,
    print_notice,
    print_result,
    require_live_host,
)
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
    need_answer,
    print_experiment,
)
from jitter_workshop.commands.common.shared import (
    add_wait,
    finite_number,
    say_if_any,
    say_notices,
)
from jitter_workshop.errors import BusyError, UsageError, WorkshopError
from jitter_workshop.model.proof import PLACEMENT, ROUNDS, Proof, ProofPlan
from jitter_workshop.model.record import made_of, picked
from jitter_workshop.model.run import RunObserver
from jitter_workshop.model.spec import KINDS
from jitter_workshop.model.text import ID, SENTENCE, clean, quoted_command
from jitter_workshop.model.verdict import Round
from jitter_workshop.session.opened import OpenSession
from jitter_workshop.stats.scale import nice_duration

if TYPE_CHECKING:
    from jitter_workshop.flow.host_ops.agent_connection import AgentConnection
    from jitter_workshop.flow.proving.command_meter import CommandRequest
    from jitter_workshop.flow.proving.proof_run import ProofStep, Prover

MOST_DOTS = 24


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "words", metavar="TUNABLE|placement", nargs="*", help="the change to prove: ID, ID=VALUE or placement"
    )
    parser.add_argument(
        "--rounds",
        type=int,
        metavar="N",
        help="make N rounds, 1 to 1000 (default: 10, the minimum for a verdict; with --screen: 32)",
    )
    parser.add_argument("--screen", action="store_true", help="test many settings together, and find those that matter")
    parser.add_argument("--resume", action="store_true", help="with --screen: continue the screening that was stopped")
    parser.add_argument(
        "--preset", choices=("quick", "standard"), help="the time of each run: quick (default) is 5 s, standard is 40 s"
    )
    parser.add_argument(
        "--duration",
        dest="duration_s",
        type=finite_number,
        metavar="S",
        help="measure each run for S seconds, instead of --preset",
    )
    parser.add_argument(
        "--workload",
        choices=tuple(KINDS),
        help="the workload (default: ring, or spin if there is only one hot CPU)",
    )
    parser.add_argument("--cpus", metavar="LIST", help="the hot CPUs, such as 2-3")
    parser.add_argument(
        "--seed", type=int, metavar="N", help="the seed of the random order of the runs (default: a random seed)"
    )
    add_wait(parser)
    parser.add_argument("--yes", action="store_true", help="start without asking")
    parser.add_argument("--list", action="store_true", help="list the proofs of this session")
    parser.add_argument(
        "--show", metavar="ID", help="show one proof: ID is the proof's id or change, or @1 for the newest proof"
    )
    own = parser.add_argument_group("with a command after --")
    own.add_argument(
        "--metric",
        metavar="M",
        help="what to compare: wall (default), user, held-up (ready, but not running), a percentile or a "
        "benchmark's name",
    )
    own.add_argument(
        "--match",
        metavar="REGEX",
        help="compare the number that the group (…) in REGEX matches in the command's output",
    )
    own.add_argument(
        "--hlog",
        metavar="FILE",
        help="compare a percentile of the .hlog or .hgrm file that the command writes (default: p99)",
    )
    own.add_argument("--pyperf", metavar="FILE", help="compare the mean in the pyperf file that the command writes")
    own.add_argument(
        "--unit", metavar="U", help="the unit of the figure: ns, us, ms or s; with --match also any other word"
    )
    own.add_argument(
        "--timeout", dest="timeout_s", type=finite_number, metavar="S", help="end a run after S seconds (default: 600)"
    )
    if isinstance(parser, Parser):
        parser.takes_command = True
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Make a proof, or print earlier proofs. Return 1 if something could not be restored, or if a command failed after
    the first round. Else return 0, for any verdict."""
    if args.resume and not args.screen:
        raise UsageError("--resume is for a screening", "use it with --screen")
    if args.list or args.show is not None:
        if args.screen:
            from jitter_workshop.commands.common.screening import old

            return old(args)
        return _old(args)
    require_live_host(args)
    if not args.words and not args.screen:
        raise UsageError("no change was given", "give 'placement', or a tunable from 'jitter-workshop status'")
    from jitter_workshop.flow.proving.proof_run import Prover, ProveRequest
    from jitter_workshop.presenter.proofs.proof import proof_cost_lines
    from jitter_workshop.tuning.tunables.registry import parse_wanted

    # The options have the names of the request's fields.
    request = made_of(
        ProveRequest,
        args,
        words=tuple(args.words),
        rounds=ROUNDS if args.rounds is None else args.rounds,
        preset=args.preset or "quick",
        command=_command(args),
    )
    parse_wanted([word for word in args.words if word != PLACEMENT], (PLACEMENT,))
    need_answer(args)
    if args.screen:
        from jitter_workshop.commands.common.screening import screened

        return screened(args, request)
    token = CancelToken()
    with contextlib.ExitStack() as guarded:
        guarded.callback(token.close)
        with kept_in(args) as (session, agent_connection), contextlib.ExitStack() as turn:
            _take_turn(turn, agent_connection, args, token)
            prover = Prover(request, session, agent_connection)
            if request.command is not None:
                print_notice(RUNNING_ONCE)
            try:
                plan = prover.plan()
            except BusyError as error:
                advise_waiting(error)
                raise
            say_notices(session.notices)
            ask_before_runs(args, partial(proof_cost_lines, plan), "Prove it?")
            # Catch signals until all is printed: a second one right after the first must not lose the output.
            received = guarded.enter_context(stopped_by_signals(token))
            proof = _proven(prover, plan, token, received)
            where = session.session.name, "prove"
        print_experiment(
            args, proof, partial(_print, args, proof), where, agent_connection.trouble, prover.not_kept, received
        )
    return exit_code(proof, received)


def _command(args: argparse.Namespace) -> CommandRequest | None:
    """Return the user's command with its metric. Return None if the workshop's own benchmark is used. Raise UsageError
    for options that contradict each other."""
    from jitter_workshop.flow.programs.metrics import metric_of_options
    from jitter_workshop.flow.proving.command_meter import TIMEOUT_S, CommandRequest

    words = tuple(getattr(args, "command", ()))
    if not words:
        for option in ("metric", "match", "hlog", "pyperf", "unit", "timeout_s"):
            if getattr(args, option) is not None:
                raise UsageError(
                    f"--{option.removesuffix('_s')} is for a command", "put the command at the end, after --"
                )
        return None
    for option in ("preset", "duration_s", "workload"):
        if getattr(args, option) is not None:
            raise UsageError(
                f"--{option.removesuffix('_s')} is for our own benchmark, not for a command",
                "leave out this option or the command",
            )
    metric = metric_of_options(args.metric, args.match, args.hlog, args.pyperf, args.unit)
    return CommandRequest(words, metric, TIMEOUT_S if args.timeout_s is None else args.timeout_s)


def _take_turn(
    turn: contextlib.ExitStack, agent_connection: AgentConnection, args: argparse.Namespace, token: CancelToken
) -> None:
    """Wait for the turn on a class host, and keep the turn until the stack ``turn`` is closed. Raise Interrupted after
    a signal. Raise the errors of ``turn_for``."""
    from jitter_workshop.flow.turns.classhost import turn_for

    with stopped_by_signals(token) as received:
        try:
            doing = f"proving {clean(' '.join(args.words), ID)}"
            turn.enter_context(turn_for(agent_connection, args.wait_s, token, say_if_any, doing=doing))
        except WorkshopError:
            if not received:
                raise
    if received:
        raise Interrupted(received[0])


def _proven(prover: Prover, plan: ProofPlan, token: CancelToken, received: Sequence[int]) -> Proof:
    """Make the proof of a plan and return it. ``received``: the signals that came. Raise Interrupted if a signal came
    in the first round."""
    from jitter_workshop.bench.runner import Cancelled
    from jitter_workshop.presenter.proofs.proof import STOPPED_EARLY

    progress = ProofLine(plan.rounds)
    try:
        return prover.prove(plan, progress, token, queued=say_if_any)
    except Cancelled:
        if not received:
            raise
        progress.close()
        print_notice(STOPPED_EARLY)
        raise Interrupted(received[0]) from None
    except BusyError as error:
        advise_waiting(error)
        raise
    finally:
        progress.close()


class ProofLine(RunsLine):
    """Write a line of progress on stderr and replace it as the proof goes on. If stderr is not a terminal, write a few
    separate lines."""

    def __init__(self, rounds: int) -> None:
        super().__init__()
        self._rounds = rounds
        self._done = 0

    def side_begins(self, step: ProofStep) -> RunObserver:
        return self.begins(f"round {step.round + 1} of {self._rounds} · {step.side:<7}", step.left_s)

    def round_done(self, rounds: tuple[Round, ...], planned: int, left_s: float) -> None:
        self._done = len(rounds)
        every = -(-planned // MOST_LINES)
        if not self.shown and (self._done % every == 0 or self._done == planned):
            left = f"; about {nice_duration(left_s)} left" if self._done < planned else ""
            # The reader of stderr may have left; that is no reason to stop.
            with contextlib.suppress(OSError):
                print_notice(f"round {self._done} of {planned} is done{left}")

    def more(self) -> str:
        dots = "●" * self._done + "○" + "·" * (self._rounds - self._done - 1) if self._rounds <= MOST_DOTS else ""
        return f"  {dots}"


def _old(args: argparse.Namespace) -> int:
    """Print earlier proofs: each in short, or one in full with ``--show``."""
    from jitter_workshop.flow.proving.proof_recovery import update_proofs
    from jitter_workshop.presenter.proofs.proof import proof_list_lines

    found = earlier(args, "proofs", update_proofs, OpenSession.find_proof, OpenSession.proofs)
    if args.show is not None:
        _print(args, found[0])
    else:
        print_result(args, {"proofs": [proof_fields(proof) for proof in found]}, partial(proof_list_lines, found))
    return 0


def _print(args: argparse.Namespace, proof: Proof) -> None:
    from jitter_workshop.presenter.proofs.proof import proof_verdict_lines

    print_result(args, proof_fields(proof), partial(proof_verdict_lines, proof))


def proof_fields(proof: Proof) -> dict[str, Any]:
    """Return a proof as the JSON fields of ``prove --json``. ``notes`` has a reason for each field that is null. The
    proof's own notes are in ``remarks``."""
    from jitter_workshop.model.codec import to_plain

    said = proof.judgement
    notes: dict[str, str] = {}
    if said is not None:
        words = f"too few rounds, or some rounds have no value: {said.drift.words}"
        ratios = ("later_ratio", "second_ratio")
        notes |= {f"drift.{name}": words for name in ratios if getattr(said.drift, name) is None}
    else:
        notes |= dict.fromkeys(("headline", "drift", "worst"), "no round was finished")
    rows = [{_KEYS.get(key, key): value for key, value in to_plain(row).items()} for row in said.rows] if said else []
    if any(row["high"] is None for row in rows):
        notes["rows.high"] = NO_UPPER_BOUND
    if any(row["ratio"] is None for row in rows):
        notes["rows.ratio"] = "null: the runs without the change had none, or there is nothing to compare"
    if any(row["rounds_needed"] is None for row in rows):
        notes["rows.rounds_needed"] = (
            "null: either the row needs no more rounds, or no reasonable number of rounds would decide it; see the "
            "row's words"
        )
    plain = to_plain(proof)
    return {
        "id": proof.id,
        "tunable": proof.subject,
        **picked(proof, "chapter", "workload"),
        "preset": proof.preset or None,
        **picked(proof, "seed", "planned", "complete", "stopped", "started_at"),
        "ended_at": proof.ended_at or None,
        "changes": plain["changes"],
        "rounds": [{_KEYS.get(key, key): value for key, value in one.items()} for one in plain["rounds"]],
        "rows": rows,
        "headline": to_plain(said.headline) if said else None,
        "drift": to_plain(said.drift) if said else None,
        "worst": said.worst if said else None,
        "restored": proof.restored,
        "left_alone": plain["left_alone"],
        **picked(proof, "disturbed", "duration_s"),
        "command": quoted_command(proof.command, SENTENCE) if proof.command else None,
        "metric": proof.metric or None,
        "unit": proof.unit if proof.command else None,
        "options": [clean(word, SENTENCE) for word in proof.options],
        "remarks": list(proof.notes),
        "notes": notes
        | ({} if proof.preset else {"preset": "each run lasted for the duration that was asked for"})
        | (
            {}
            if proof.duration_s is not None
            else {"duration_s": "the preset gives the duration, if the preset is known"}
        )
        | _of_command(proof)
        | ({} if proof.ended_at else {"ended_at": "this proof is still running"}),
    }


def _of_command(proof: Proof) -> dict[str, str]:
    if proof.command:
        return {
            "preset": "a command has no preset: each run lasts until the command ends",
            "duration_s": "a command has no fixed time: each run lasts until the command ends",
            "rounds.without": "empty, like rounds.with, because runs of a command are not kept; see rounds.figures",
        }
    return dict.fromkeys(("command", "metric", "unit", "rounds.figures"), OWN_BENCHMARK)


_KEYS = {"with_it": "with"}
"""Name of a field in a type → its name in JSON. The types cannot have a field ``with``, because that is a keyword of
Python."""
