"""Run the actions of ``practice`` for scenarios: list them, play one, and answer the commands of its shell."""

from __future__ import annotations

import argparse
import dataclasses
import random
from typing import Any

from jitter_workshop.commands.common import guest
from jitter_workshop.commands.common.base import PROGRAM, print_notice, print_result
from jitter_workshop.course.scenarios import load_scenarios, read_scenarios
from jitter_workshop.errors import UsageError
from jitter_workshop.flow.scenarios import playing
from jitter_workshop.flow.scenarios.checking import INSIDE, check_requirements
from jitter_workshop.host.root import HostRoot
from jitter_workshop.model.record import FORMAT_VERSION
from jitter_workshop.model.scenario import Scenario, with_drawn_values
from jitter_workshop.model.text import ID, SENTENCE, clean
from jitter_workshop.practice import relay, running
from jitter_workshop.practice.qemu import PowerLost
from jitter_workshop.practice.shape import SHAPES
from jitter_workshop.presenter.course import scenario as words

SHELL = f"""\
command -v bash >/dev/null && exec bash --rcfile {INSIDE}/rc -i
ENV={INSIDE}/rc exec sh -i"""
SEEDS = 10_000


def run(args: argparse.Namespace) -> int:
    """Run one action of ``practice``: ``scenarios``, ``scenario``, or a command of the shell inside the machine."""
    if args.action == "scenarios":
        return _list(args)
    if args.action == "scenario":
        return _play(args)
    return _inside(args)


def _list(args: argparse.Namespace) -> int:
    """List all scenarios, and print each mistake in the folder ``--folder``. Return 1 if there is a mistake."""
    found, problems = read_scenarios(args.folder)
    for one in problems.found:
        print_notice(clean(one.sentence(), SENTENCE))
    solved = [one for shape in SHAPES for one in playing.solved_in(running.kept_folder(shape))]
    done = {one.scenario for one in solved}
    payload: dict[str, Any] = {
        "format_version": FORMAT_VERSION,
        "scenarios": [
            {"id": s.id, "title": s.title, "shape": s.shape, "minutes": s.minutes, "solved": s.id in done}
            for s in found.values()
        ],
        "mistakes": [one.sentence() for one in problems.found],
    }
    print_result(args, payload, "\n".join(words.list_lines(found.values(), solved)) + "\n")
    return 1 if problems.found else 0


def _play(args: argparse.Namespace) -> int:
    seed = random.SystemRandom().randrange(1, SEEDS) if args.seed is None else args.seed
    scenario, values = with_drawn_values(_chosen(args), seed)
    shape = SHAPES[scenario.shape]
    if scenario.append:
        shape = dataclasses.replace(shape, append=f"{shape.append} {scenario.append}".strip())
    if args.shape and args.shape != scenario.shape:
        raise UsageError(f"the scenario {scenario.id} needs the shape {scenario.shape}", "leave out --shape")
    terminal = relay.on_terminal()
    if not terminal and not args.unattended:
        raise UsageError("a scenario needs a terminal", "without one: --try")
    kept = running.kept_folder(scenario.shape)
    print_notice(f"Scenario {scenario.id}, seed {seed} (--seed {seed} gives the same random values again).")
    with guest.opened(shape, kept, terminal and not args.unattended) as (machine, wake):
        played = playing.Playing(machine, scenario, values, seed, kept)
        played.begin()
        if args.unattended:
            return _try(args, played)
        while True:
            try:
                guest.relayed((machine, wake), ["sh", "-c", SHELL], guest.terminal_words())
                break
            except relay.ResetAsked:
                guest.reset_machine(machine)
                played.begin()
            except PowerLost:
                if not played.boot_anew(print_notice):
                    print_notice("The machine has ended; nothing of it is left.")
                    break
        done = any(one.scenario == scenario.id and one.seed == seed for one in playing.solved_in(kept))
        print_notice(f"{scenario.id}: {'solved' if done else 'not solved yet'}.")
        return 0 if done else 1


def _try(args: argparse.Namespace, played: playing.Playing) -> int:
    """Check the machine, run the scenario's own solution, and check again. Return 0 if the first check finds a fault
    and the second check finds none; else 1.
    """
    before = played.check()
    played.solve(print_notice)
    after = played.check()
    proven = not all(one.met for one in before) and all(one.met for one in after)
    payload = {
        "format_version": FORMAT_VERSION,
        "scenario": played.scenario.id,
        "seed": played.seed,
        "proven": proven,
        "before": [dataclasses.asdict(one) for one in before],
        "after": [dataclasses.asdict(one) for one in after],
    }
    lines = ["Before:", *words.requirement_lines(before), "After its solution:", *words.requirement_lines(after)]
    lines += ["The check fails before the solution and passes after it." if proven else "This scenario is not proven."]
    print_result(args, payload, "\n".join(lines) + "\n")
    return 0 if proven else 1


def _chosen(args: argparse.Namespace) -> Scenario:
    found = load_scenarios(args.folder)
    if args.scenario in found:
        return found[args.scenario]
    if not args.scenario:
        raise UsageError("'practice scenario' needs the id of a scenario", f"{PROGRAM} practice scenarios lists them")
    raise UsageError(f"there is no scenario '{clean(args.scenario, ID)}'", f"{PROGRAM} practice scenarios lists them")


def _inside(args: argparse.Namespace) -> int:
    """Answer a command that the learner typed in the shell of a scenario's machine."""
    here = playing.PlantedScenario.open()
    if args.action == "task":
        print_result(
            args,
            {"id": here.scenario.id, "task": here.scenario.task},
            "\n".join(words.task_lines(here.scenario)) + "\n",
        )
        return 0
    if args.action == "hint":
        hint = here.next_hint()
        print_result(
            args,
            {"number": here.hints, "hint": hint},
            "\n".join(words.hint_lines(here.scenario, here.hints, hint)) + "\n",
        )
        return 0
    outcomes = check_requirements(HostRoot(), here.scenario, here.values)
    met = all(one.met for one in outcomes)
    if met and not args.json:
        here.note_solved(playing.inside_kept())
    payload = {
        "format_version": FORMAT_VERSION,
        "met": met,
        "outcomes": [dataclasses.asdict(one) for one in outcomes],
    }
    print_result(args, payload, "\n".join(words.outcome_lines(here.scenario, outcomes)) + "\n")
    return 0 if met else 1
