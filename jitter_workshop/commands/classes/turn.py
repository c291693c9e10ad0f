"""Run ``class turn``: show, take and give back the turn; for instructors also end, freeze and thaw."""

from __future__ import annotations

import argparse
import contextlib
import os
import pwd
import signal
import subprocess
import sys
from pathlib import Path
from types import FrameType

from jitter_workshop.bench.cancel import CancelToken, stopped_by_signals
from jitter_workshop.commands.class_ import TURN_ACTIONS
from jitter_workshop.commands.common.base import Interrupted, print_notice, print_result
from jitter_workshop.commands.common.shared import say_if_any
from jitter_workshop.errors import HostError, UsageError, WorkshopError
from jitter_workshop.flow.host_ops.agent_connection import AgentConnection
from jitter_workshop.flow.turns.classhost import (
    DAY_S,
    TurnOver,
    class_host,
    describe_turn,
    now_s,
    queue_place,
    queue_rows,
    read_turns,
    take_turn,
    turn_json,
)
from jitter_workshop.model.text import ID, clean


def run(args: argparse.Namespace) -> int:
    """Run the action of ``class turn``, and return the exit code.

    For ``take -- CMD``, return the exit code of CMD if it is 0 or 1. Raise HostError if CMD's exit code is above 1. For
    all other actions, return 0.
    """
    action, *rest = args.words or [""]
    if action and action not in TURN_ACTIONS:
        raise UsageError(f"there is no 'class turn {action}'", f"one of {', '.join(TURN_ACTIONS)}")
    if args.wait is not None and args.wait < 0:
        raise UsageError("--wait must be a number of seconds, 0 or more")
    if len(rest) > (1 if action == "end" else 0):
        raise UsageError(f"'class turn {action}' takes {'one name' if action == 'end' else 'no more words'}")
    if class_host() is None:
        raise HostError(
            "this is not a class host, so it has no turns", "'sudo jitter-workshop class init' makes it a class host"
        )
    if not action:
        return _show(args)
    with contextlib.closing(AgentConnection()) as agent_connection:
        if action == "take":
            return _take(args, agent_connection)
        if action == "give":
            # Another process of this user's has the turn or the place in the queue.
            if queue_place(read_turns(), os.geteuid(), now_s()).before is None:
                ask = "'jitter-workshop class turn take' asks for the turn"
                raise HostError("you do not have the turn, and you do not wait for it", ask)
            agent_connection.instruct("end", pwd.getpwuid(os.geteuid()).pw_name)
        else:
            agent_connection.instruct(action, rest[0] if rest else None)
    return _show(args)


def _show(args: argparse.Namespace) -> int:
    state, uid, now = read_turns(), os.geteuid(), now_s()
    lines = [describe_turn(state, uid, now), *(f"  {row.line}" for row in queue_rows(state, uid, now))]
    print_result(args, turn_json(state, now), "".join(f"{line}\n" for line in lines))
    return 0


def _take(args: argparse.Namespace, agent_connection: AgentConnection) -> int:
    with contextlib.closing(CancelToken()) as token:
        with stopped_by_signals(token) as received:
            wait_s = DAY_S if args.wait is None else args.wait
            try:
                take_turn(agent_connection, wait_s, token, say_if_any, args.people)
            except WorkshopError:
                if received:
                    raise Interrupted(received[0]) from None
                raise
            print(describe_turn(read_turns(), os.geteuid(), now_s()), flush=True)
            if args.command:
                agent_connection.say_doing(f"running {clean(Path(args.command[0]).name, ID)}")
                return run_command(args.command, agent_connection, received)
            print_notice("Ctrl-C ends your turn")
            while not token.wait(1.0):
                if why := agent_connection.turn_lost():
                    raise TurnOver(why)
        if received and received[0] != signal.SIGINT:
            raise Interrupted(received[0])
        return 0


def run_command(command: list[str], agent_connection: AgentConnection, received: list[int]) -> int:
    """Run a command while this user has the turn, and return its exit code, 0 or 1.

    Pass the signals HUP and TERM on to the command, each of them once; the terminal sends Ctrl-C to it. If the turn
    ends first, kill the command. ``received``: a list to which the number of each signal is added. Signals that are in
    this list already, Ctrl-C included, came while the command was started: pass them on, too.

    Raise UsageError if the command cannot be started, and TurnOver if the turn ended. Raise Interrupted after a signal.
    Raise HostError if the command's exit code is above 1.
    """
    try:
        child = subprocess.Popen(command)
    except OSError as error:
        raise UsageError(f"{clean(command[0])} cannot be started: {error.strerror}") from error

    passed_on = set[int]()

    def pass_on(signum: int, _frame: FrameType | None) -> None:
        received.append(signum)
        passed_on.add(signum)
        child.send_signal(signum)

    before = {signum: signal.signal(signum, pass_on) for signum in (signal.SIGHUP, signal.SIGTERM)}
    try:
        for signum in tuple(received):
            if signum not in passed_on:  # it came before its handler was installed
                child.send_signal(signum)
        while True:
            with contextlib.suppress(subprocess.TimeoutExpired):
                # Check from here only if root could not put the command into the turn's control group.
                code = child.wait(1.0 if agent_connection.alone_with_turn else None)
                break
            if why := agent_connection.turn_lost():
                child.kill()
                child.wait()
                raise TurnOver(why)
    finally:
        for signum, handler in before.items():
            signal.signal(signum, handler)
    if received:
        raise Interrupted(received[0])
    if code not in (0, 1):
        sys.stdout.flush()
        if why := agent_connection.turn_lost():
            raise TurnOver(why)
        raise HostError(f"{clean(command[0])} ended with {f'signal {-code}' if code < 0 else code}")
    return code
