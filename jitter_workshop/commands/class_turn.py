"""``class turn``: whose turn it is; taking it, giving it back, and what instructors do about it."""

from __future__ import annotations

import argparse
import os
import pwd
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

from jitter_workshop.commands.base import Interrupted, print_json, say
from jitter_workshop.errors import HostError, UsageError, WorkshopError
from jitter_workshop.model.text import clean

if TYPE_CHECKING:
    from jitter_workshop.flow.hands import Hands

_ACTIONS = ("take", "give", "end", "freeze", "thaw")


def run(args: argparse.Namespace) -> int:
    """0; of ``take -- CMD`` what CMD ended with where that is 0 or 1."""
    from jitter_workshop.flow.classhost import class_host
    from jitter_workshop.flow.hands import Hands

    action, *rest = args.words or [""]
    if action and action not in _ACTIONS:
        raise UsageError(f"there is no 'class turn {action}'", f"one of {', '.join(_ACTIONS)}")
    if args.wait is not None and args.wait < 0:
        raise UsageError("--wait is a number of seconds, 0 or more")
    if len(rest) > (1 if action == "end" else 0):
        raise UsageError(f"'class turn {action}' takes {'one name' if action == 'end' else 'no more words'}")
    if class_host() is None:
        raise HostError(
            "this is no class host: nobody waits for a turn", "'sudo jitter-workshop class init' makes it one"
        )
    if not action:
        return _show(args)
    hands = Hands()
    try:
        if action == "take":
            return _take(args, hands)
        user = pwd.getpwuid(os.geteuid()).pw_name if action == "give" else (rest[0] if rest else None)
        hands.instruct("end" if action == "give" else action, user)
    finally:
        hands.close()
    return 0


def _show(args: argparse.Namespace) -> int:
    from jitter_workshop.flow.classhost import in_words, now_s, read_turns, turn_json

    state = read_turns()
    if args.json:
        print_json(turn_json(state, now_s()))
    else:
        print(in_words(state, os.geteuid(), now_s()))
        for number, one in enumerate(state.queue, start=1):
            people = clean(" and ".join(one.people), 200)
            print(f"  {number}. {people}, waiting for {(now_s() - one.since_s) / 60:.0f} min")
    return 0


def _take(args: argparse.Namespace, hands: Hands) -> int:
    from jitter_workshop.commands.shared import stopped_by_signals
    from jitter_workshop.flow.classhost import DAY_S, TurnOver, in_words, now_s, read_turns, take_turn
    from jitter_workshop.flow.measure import CancelToken

    token = CancelToken()
    try:
        with stopped_by_signals(token) as received:
            wait_s = DAY_S if args.wait is None else args.wait
            try:
                take_turn(hands, wait_s, token, lambda words: say(words) if words else None, args.people)
            except WorkshopError:
                if received:
                    raise Interrupted(received[0]) from None
                raise
            print(in_words(read_turns(), os.geteuid(), now_s()), flush=True)
            if args.command:
                return _run(args.command)
            say("Ctrl-C gives it back")
            while not token.wait(1.0):
                if why := hands.turn_lost():
                    raise TurnOver(why)
        if received and received[0] != signal.SIGINT:
            raise Interrupted(received[0])
        return 0
    finally:
        token.close()


def _run(command: list[str]) -> int:
    try:
        done = subprocess.run(command, check=False)
    except OSError as error:
        raise UsageError(f"{command[0]} cannot be started: {error.strerror}") from error
    if done.returncode not in (0, 1):
        sys.stdout.flush()
        raise HostError(f"{command[0]} ended with {done.returncode}")
    return done.returncode
