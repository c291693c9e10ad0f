"""List the chapters for this host, check a course, begin a new chapter, or try if a chapter shows its effect here.

  lessons list                  the chapters in the order for this host, and your progress
  lessons check [--course DIR]  every mistake in a course, each with file and line; exit 1 if there is one
  lessons new ID --course DIR   write a new chapter to DIR; it works without changes, and its comments say how to
                                continue
  lessons try ID [--rounds N]   measure, apply, measure again, restore, and compare the figure that the chapter's change
                                should alter; exit 0 only if the figure changed enough in nine tenths of the rounds
  lessons try ID --half before --session S
  lessons try ID --half after --session S
                                the same in two halves, for a change that takes effect at a boot: run 'before' now,
                                and run 'after' when the host has been rebooted with the new settings

Without --course, list, check and try use the built-in course. 'check' reads the files. It also makes sure that a
learner can earn every mark. A chapter may name two recordings of a host: 'recording' from before the change, and
'recording_after' from after it. The check of each tunable must fail on the first recording and pass on the second.

Only 'try' measures this host and changes it. It asks no question. It prints each write before the write is made, and
restores the old values after each round. Its runs are stored only if --session names a session. docs/writing-lessons.md
explains how to write lessons.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from jitter_workshop.commands.common.base import (
    PROGRAM,
    Interrupted,
    add_json,
    print_json,
    print_notice,
    require_live_host,
    show_lines,
)
from jitter_workshop.errors import UsageError
from jitter_workshop.model.course import Chapter
from jitter_workshop.model.record import picked
from jitter_workshop.model.text import LINE, PARAGRAPH, PATH, SENTENCE, clean
from jitter_workshop.model.walk import CHANCE_WORDS, PathEntry, PlanView

NO_COURSE = "the new chapter needs a course"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = ("list", "check", "new", "try")
    parser.add_argument("action", nargs="?", default=actions[0], choices=actions, help="the action (default: list)")
    parser.add_argument("id", nargs="?", metavar="ID", help="with new or try: the id of the chapter")
    parser.add_argument(
        "--course", metavar="DIR", type=Path, help="use the course in the folder DIR instead of the built-in course"
    )
    parser.add_argument("--rounds", type=int, metavar="N", help="with try: make N rounds (default: 1)")
    parser.add_argument(
        "--duration",
        type=float,
        metavar="S",
        help="with try: measure each run for S seconds (default: the chapter's time)",
    )
    parser.add_argument(
        "--half",
        choices=("before", "after"),
        help="with try: make only the runs before the reboot, or only the runs after the reboot",
    )
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Run the action. Return 1 if ``check`` found a mistake, or if ``try`` did not show the chapter's effect; else
    return 0."""
    for option in ("rounds", "duration", "half"):
        if getattr(args, option) is not None and args.action != "try":
            raise UsageError(f"--{option} is for 'lessons try'", "leave it out")
    if args.action == "try":
        return _try(args)
    if args.action == "new":
        return _new(args)
    if args.id is not None:
        raise UsageError(f"'lessons {args.action}' takes no name", "see 'jitter-workshop lessons --help'")
    return _check(args) if args.action == "check" else _list(args)


def _list(args: argparse.Namespace) -> int:
    from jitter_workshop.flow.chapters.tour import take_tour

    taken = take_tour(args.session, args.course, args.root)
    path = taken.path
    if args.json:
        chapters = {chapter.id: chapter for chapter in taken.course.chapters}
        print_json({"chapters": [_as_json(entry, chapters[entry.chapter_id]) for entry in path]})
        return 0
    wide = max((len(entry.chapter_id) for entry in path), default=0)
    for entry in path:
        state = "done" if entry.done or (entry.curve and entry.setting is not False) else "open"
        note = f"   not on this host: {clean(entry.reason, PARAGRAPH)}" if entry.reason else ""
        note = f": {clean(entry.held, PARAGRAPH)}" if entry.held else note
        chance = CHANCE_WORDS[entry.chance]
        line = f"{entry.chapter_id:<{wide}}  {state}  {entry.minutes:>3} min  {clean(entry.title)}   {chance}{note}"
        sys.stdout.write(f"{line}\n")
    return 0


def _as_json(entry: PathEntry, chapter: Chapter) -> dict[str, object]:
    """Return one chapter of the learner's path as JSON fields.

    - ``here``: "recorded" if the chapter cannot be done on this host, else "yes". ``reason`` says why it cannot be
      done.
    - ``chance``: what the chapter can show here (``model.walk.Chance``).
    - ``setting``: null if the chapter changes no setting.
    - ``notes``: the reason if ``setting`` is null, and the reason if ``chance`` is "held" or "later".
    - ``seconds``: the time of each step (``course.pace``).
    """
    from jitter_workshop.course.pace import step_paces

    notes = {"setting": "this chapter changes nothing"} if entry.setting is None else {}
    notes |= {"chance": entry.held} if entry.held else {}
    return {
        "id": entry.chapter_id,
        **picked(entry, "title", "minutes"),
        "here": "yes" if entry.here else "recorded",
        **picked(entry, "setting", "curve", "summary", "reason", "done", "chance"),
        "seconds": {one.step: round(one.seconds) for one in step_paces(chapter)},
        "notes": notes,
    }


def _check(args: argparse.Namespace) -> int:
    from jitter_workshop.flow.chapters.lessoncheck import check_course

    checked = check_course(args.course)
    if args.json:
        print_json(checked)
        return 1 if checked.problems else 0
    for problem in checked.problems:
        sys.stdout.write(f"{clean(problem.file, PATH)}:{problem.line}: {clean(problem.message, SENTENCE)}\n")
    if not checked.problems:
        sys.stdout.write(f"{checked.chapters} {'chapter' if checked.chapters == 1 else 'chapters'}, no mistakes\n")
    for folder in checked.unlisted:
        sys.stdout.write(f"not checked, because course.toml does not list it: {clean(folder, LINE)}\n")
    return 1 if checked.problems else 0


def _new(args: argparse.Namespace) -> int:
    from jitter_workshop.flow.chapters.newlesson import new_lesson

    if args.id is None:
        raise UsageError("the new chapter needs an id", f"use '{PROGRAM} lessons new ID --course DIR'")
    if args.course is None:
        raise UsageError(NO_COURSE, "name the folder of the course with --course DIR; a missing folder is made")
    made = new_lesson(args.id, args.course)
    if args.json:
        print_json(made)
        return 0
    place = clean(args.course / made.folder, PATH)
    sys.stdout.write(f"made {place}, with {' and '.join(made.files)}\n")
    if made.new_course:
        sys.stdout.write(f"made {clean(args.course / 'course.toml', PATH)}, which lists the chapter\n")
    elif made.listed:
        sys.stdout.write("course.toml now lists the new chapter last\n")
    else:
        sys.stdout.write(f'course.toml was not changed: add "{made.folder}" to its chapters\n')
    sys.stdout.write(f"Go on with: {PROGRAM} lessons check --course {clean(args.course, PATH)}\n")
    return 0


def _try(args: argparse.Namespace) -> int:
    from jitter_workshop.bench.cancel import CancelToken, stopped_by_signals
    from jitter_workshop.bench.runner import Cancelled
    from jitter_workshop.commands.measure import ProgressLine
    from jitter_workshop.flow.chapters.trying import Trial, TrialRound, try_chapter
    from jitter_workshop.flow.measuring.measure import MeasurementStopped
    from jitter_workshop.presenter.course import trial as trial_view
    from jitter_workshop.presenter.host import plan as plan_view
    from jitter_workshop.stats.figures import Figure, figure_with_id

    if args.id is None:
        raise UsageError("no chapter is named", f"use '{PROGRAM} lessons try ID'; 'lessons list' shows the ids")
    require_live_host(args)
    line = ProgressLine()

    def round_done(shown: Figure, number: int, one: TrialRound) -> None:
        line.close()
        if not args.json:
            sys.stdout.write(f"round {number}: {trial_view.of_round(shown, one)}\n")
            sys.stdout.flush()

    def plan(shown: PlanView) -> None:
        line.close()
        show_lines(lambda width: plan_view.every(shown.changes, width), sys.stderr)

    token = CancelToken()
    try:
        with stopped_by_signals(token) as received:
            rounds = 1 if args.rounds is None else args.rounds
            trial = Trial(plan, round_done, line, print_notice, args.duration)
            tried = try_chapter(args.id, rounds, trial, token, args.course, args.session, args.half)
    except (Cancelled, MeasurementStopped):
        if not received:
            raise
        raise Interrupted(received[0]) from None
    finally:
        line.close()
        token.close()
    if args.json:
        print_json(tried)
    else:
        sys.stdout.write(f"{trial_view.of_trial(figure_with_id(tried.figure), tried)}\n")
    return 0 if tried.shown else 1
