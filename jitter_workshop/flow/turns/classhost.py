"""Read the turn and queue of a class host, and hold the turn during measurements."""

from __future__ import annotations

import contextlib
import datetime
import fcntl
import os
import pwd
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from jitter_workshop import paths
from jitter_workshop.agent.turns import state_file
from jitter_workshop.agent.turns.state_file import now_s as now_s
from jitter_workshop.bench.cancel import CancelToken, stop_this_process
from jitter_workshop.errors import BusyError, HostError, MeasureError, UsageError, WaitStopped, WorkshopError
from jitter_workshop.host.classfile import MAX_BYTES, ClassFile, parse_class
from jitter_workshop.host.root import HostRoot, line_value
from jitter_workshop.host.tasks.listing import read_task
from jitter_workshop.model.descriptor import closed_after
from jitter_workshop.model.record import dataclass
from jitter_workshop.model.text import ID, LABEL, REASON, SENTENCE, USER, called, capital, clean, many
from jitter_workshop.model.turn import TurnState

if TYPE_CHECKING:
    from jitter_workshop.model.run import Run

NEEDS_TURN = "you need the turn on this machine"
HoldsTurn = Callable[[], object]
"""The type of a check that raises TurnOver once the turn is over."""

DAY_S = 86_400.0
SOON_S = 60.0
"""Seconds that a free turn may take to begin: the settings of the turn before are restored first."""

_DEEPEST = 64
_STATUS_BYTES = 16_384


@dataclass(frozen=True, slots=True)
class ClassHost:
    """Hold the data of this host's class (the people who share the host). ``described``: the contents of the class
    file. ``user``: the user name of this process. ``instructor``: True if the user is root or an instructor of the
    class."""

    described: ClassFile
    user: str
    instructor: bool


@dataclass(frozen=True, slots=True)
class QueuePlace:
    """Hold a user's position in the queue.

    - ``before``: how many turns come before this user's turn. It is 0 if this user has the turn, None if this user does
      not wait.
    - ``at_most_s``: the longest time in seconds until the user's turn begins. None if an instructor has the turn, or if
      no turn can begin.
    """

    before: int | None
    at_most_s: float | None


@dataclass(frozen=True, slots=True)
class QueueRow:
    """Hold one waiting user, as a row of the displayed queue.

    - ``own``: True for the current user; ``who`` is then "you".
    - ``at_most``: the longest time until the user's turn begins, in words; "" if unknown.
    """

    number: int
    who: str
    own: bool
    at_most: str

    @property
    def line(self) -> str:
        return f"{self.number}. {self.who}  {self.at_most}".rstrip()


class TurnHolder(Protocol):
    """Take, hold and end the turn (see ``flow.host_ops.agent_connection``)."""

    @property
    def has_turn(self) -> bool: ...
    def take_turn(self, people: Sequence[str], wait_s: float, stop: int) -> None: ...
    def turn_lost(self) -> str: ...
    def say_doing(self, doing: str) -> None: ...
    def give_turn(self) -> None: ...


class TurnOver(MeasureError):
    """Report that the user's turn ended during a measurement or a change. ``why``: the reason, in the agent's words.
    ``run``: the part of a run that was finished, or None.
    """

    title = "The turn is over"

    def __init__(self, why: str, run: Run | None = None) -> None:
        kept = f"kept: {many(len(run.blocks), 'finished block')}; " if run is not None else ""
        trouble = read_turns().trouble
        back = (
            f"the machine is not restored completely: {called(trouble, REASON)}"
            if trouble
            else "the machine is restored"
        )
        super().__init__(why, kept + back)
        self.why = why
        self.run = run


def as_sentence(why: str) -> str:
    """Return the reason why a turn ended, with a capital first letter. If the reason begins with a user's name, the
    first letter is not changed."""
    return capital(why) if why.partition(" ")[0] in ("your", "the", "an", "somebody") else why


def class_host(where: str = "") -> ClassHost | None:
    """Return the class of this host; None if there is no class file. ``where``: the path of another class file. Raise
    HostError if the file cannot be read, UsageError if it is not valid."""
    where = where or paths.CLASS_FILE
    try:
        with Path(where).open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise HostError(f"{where} cannot be read: {error.strerror}", "ask the instructor") from error
    try:
        described = parse_class(data, where)
    except UsageError as error:
        if os.geteuid() != 0:
            error.advice = "tell the instructor, who can correct the file as root"
        raise
    try:
        user = pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        user = str(os.geteuid())
    return ClassHost(described, user, described.instructs(user))


def class_chapters() -> tuple[str, ...]:
    """Return the chapter ids of this host's class, in the order of the class. Return () in three cases: the class takes
    the whole course, the class file is faulty, or this host has no class."""
    try:
        host = class_host()
    except WorkshopError:  # 'class check' reports the error in the file
        return ()
    return host.described.chapters if host is not None else ()


def read_turns(folder: str = "") -> TurnState:
    """Return the turn and the queue that root's agent last published. If nothing was published, return a state without
    a turn."""
    return state_file.published(folder)


def queue_place(state: TurnState, uid: int, at_s: float) -> QueuePlace:
    """Return the position of user ``uid`` in the queue. ``at_s``: the present time in seconds since boot."""
    turn = state.turn
    if turn is not None and turn.uid == uid:
        return QueuePlace(0, 0.0)
    number = next((i for i, one in enumerate(state.queue) if one.uid == uid), None)
    if number is None:
        return QueuePlace(None, None)
    ahead = state.queue[:number]
    before = number + (turn is not None)
    held = turn is not None and turn.ends_s is None
    if held or state.frozen_by or state.trouble or any(one.limit_s is None for one in ahead):
        return QueuePlace(before, None)
    left = max(turn.ends_s - at_s, 0.0) if turn is not None and turn.ends_s is not None else 0.0
    return QueuePlace(before, left + sum(one.limit_s or 0.0 for one in ahead))


def describe_turn(state: TurnState, uid: int, at_s: float) -> str:
    """Return sentences about the current turn, a user's position, and obstacles to new turns. ``uid``: the user."""
    said = [f"{holder_words(state, uid, at_s)}."]
    waits = place_words(state, uid, at_s)
    said += [f"{waits}."] if waits else []
    return " ".join([*said, *barrier_words(state)])


def holder_words(state: TurnState, uid: int, at_s: float) -> str:
    """Return a sentence on the current turn, without a full stop. It says who has the turn, for what use, and how long
    the turn lasts."""
    turn = state.turn
    if turn is None:
        return "No one has the turn"
    if turn.uid == uid and turn.returning:
        return "Your turn is over, and the machine is being restored"
    if turn.uid == uid:
        return f"You have the turn{f', {rounded_duration(turn.ends_s - at_s)} left' if turn.ends_s is not None else ''}"
    who = called(" and ".join(turn.people), LABEL)
    doing = f" ({called(turn.doing, LABEL)})" if turn.doing else ""
    left = "" if turn.ends_s is None else f", at most {rounded_duration(turn.ends_s - at_s)} more"
    return f"{who} has the turn{doing}{', and the machine is being restored' if turn.returning else left}"


def place_words(state: TurnState, uid: int, at_s: float) -> str:
    """Return a waiting user's position in words, without a full stop; "" for a user who does not wait."""
    here = queue_place(state, uid, at_s)
    if not here.before:
        return "Your turn is about to begin" if any(one.uid == uid for one in state.queue) else ""
    soon = f", at most {rounded_duration(here.at_most_s)}" if here.at_most_s is not None else ""
    return f"{many(here.before, 'turn')} before yours{soon}"


def queue_rows(state: TurnState, uid: int, at_s: float) -> tuple[QueueRow, ...]:
    """Return the displayed rows of the queue, in the order of the queue. The row of user ``uid`` shows "you"."""
    rows = []
    for number, one in enumerate(state.queue, start=1):
        here, own = queue_place(state, one.uid, at_s), one.uid == uid
        at_most = f"at most {rounded_duration(here.at_most_s)}" if here.at_most_s is not None else ""
        rows.append(QueueRow(number, "you" if own else called(" and ".join(one.people), ID), own, at_most))
    return tuple(rows)


def barrier_words(state: TurnState) -> list[str]:
    """Return the reasons why no turn can begin, in sentences."""
    said = []
    if state.trouble:
        said.append(
            f"The machine was not restored completely: {called(state.trouble, REASON)}. An instructor has to check it."
        )
    if state.frozen_by:
        said.append(f"{called(state.frozen_by, ID)} does not let new turns begin.")
    return said


def turn_json(state: TurnState, at_s: float) -> dict[str, Any]:
    """Return the JSON of ``class turn``, with times of day in UTC and users by their names."""
    turn, notes = state.turn, {}
    ends = None
    if turn is None:
        notes = dict.fromkeys(("ends_at", "holder", "doing"), "no one has the turn")
    elif turn.ends_s is None:
        notes["ends_at"] = "an instructor has the turn, and an instructor's turn has no end time"
    else:
        moment = datetime.datetime.now(datetime.UTC) + datetime.timedelta(seconds=turn.ends_s - at_s)
        ends = moment.strftime("%Y-%m-%dT%H:%M:%SZ")
    return {
        "holder": clean(turn.people[0], USER) if turn is not None and turn.people else None,
        "people": [clean(name, USER) for name in turn.people] if turn is not None else [],
        "doing": clean(turn.doing, LABEL) if turn is not None else None,
        "ends_at": ends,
        "frozen": bool(state.frozen_by),
        "trouble": clean(state.trouble, SENTENCE) or None,
        "queue": [
            {"user": clean(one.people[0], USER) if one.people else str(one.uid), "wait_s": max(at_s - one.since_s, 0.0)}
            for one in state.queue
        ],
        "notes": notes,
    }


def rounded_duration(seconds: float) -> str:
    """Return a duration as text, such as ``40 s`` or ``3 min``. Durations are rounded up, because no user must wait
    longer than the text says.
    """
    seconds = max(seconds, 0.0)
    return f"{int(-(-seconds // 1))} s" if seconds < 90 else f"{int(-(-seconds // 60))} min"


def need_turn(agent_connection: TurnHolder) -> bool:
    """Check that this process may measure. Return True if the user has the turn. The turn may have been taken through
    ``agent_connection``, or by a parent process. Return False if this is no class host. Raise TurnOver if the turn has
    ended, HostError if the user has no turn."""
    if class_host() is None:
        return False
    if why := agent_connection.turn_lost():
        raise TurnOver(why)
    if not agent_connection.has_turn and not turn_above(read_turns(), HostRoot()):
        raise HostError(NEEDS_TURN, "'jitter-workshop class turn' shows who has the turn")
    return True


def turn_above(state: TurnState, root: HostRoot, pid: int | None = None) -> bool:
    """Return True if an ancestor of a process has taken the turn for this user. ``pid``: the id of the process; None:
    this process."""
    turn = state.turn
    if turn is None or turn.uid != os.geteuid() or turn.returning:
        return False
    at = os.getpid() if pid is None else pid
    for _ in range(_DEEPEST):
        at = _parent(root, at)
        if at <= 1:
            return False
        if at == turn.client.pid:
            task = read_task(root, at)
            return task is not None and task.start_ticks == turn.client.start
    return False


@contextlib.contextmanager
def only_one() -> Iterator[None]:
    """Hold a lock that allows this user only one measurement at a time. Several processes of a user can share one turn,
    so the turn alone does not prevent two measurements at the same time. Raise BusyError if another measurement runs.
    Raise HostError if the lock cannot be made."""
    folder = paths.state_dir()
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = os.open(folder / "measuring.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise HostError(f"{folder} cannot be written: {error.strerror}") from error
    with closed_after(lock):
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise BusyError("another measurement of yours is running in this turn", "wait for its end") from None
        yield


def _parent(root: HostRoot, pid: int) -> int:
    """Return the id of a process's parent; 0 if the id cannot be read."""
    value = line_value(root.text(f"/proc/{pid}/status", _STATUS_BYTES), "PPid")
    return int(value) if value.isdigit() else 0


def left_s(state: TurnState, uid: int, at_s: float) -> float | None:
    """Return the remaining seconds of a user's turn. Return None if the turn has no end, or if the user has no turn.
    ``uid``: the user."""
    turn = state.turn
    return None if turn is None or turn.uid != uid or turn.ends_s is None else max(turn.ends_s - at_s, 0.0)


@contextlib.contextmanager
def turn_for(
    agent_connection: TurnHolder,
    wait_s: float,
    cancel: CancelToken,
    queued: Callable[[str], None] = lambda sentence: None,
    people: Sequence[str] = (),
    doing: str = "",
    keep: bool = False,
) -> Iterator[HoldsTurn | None]:
    """Hold the turn of this class host inside the context. Yield a function that checks if the turn has ended
    (:func:`need_turn`). Yield None if this is no class host. If ``agent_connection`` or a parent process already has
    the turn, this function uses that turn. In this case, the turn does not end with the context.

    - ``queued``: receives sentences about the user's place in the queue, and "" when the turn begins.
    - ``keep``: True to wait for up to a day, and to let the turn continue after the context. A chapter needs the turn
      for several measurements.

    Raise BusyError after ``wait_s`` seconds, WaitStopped if ``cancel`` is set, and HostError on any other failure.
    Raise TurnOver if an error inside the context was caused by the end of the turn.
    """
    if class_host() is None:
        yield None
        return
    held = agent_connection.has_turn
    if not held and turn_above(read_turns(), HostRoot()):
        with only_one():
            yield partial(need_turn, agent_connection)
        return
    if not held:
        take_turn(agent_connection, DAY_S if keep else wait_s, cancel, queued, people)
    try:
        if doing:
            agent_connection.say_doing(doing)
        yield partial(need_turn, agent_connection)
    except WorkshopError as error:
        if isinstance(error, TurnOver) or not (why := agent_connection.turn_lost()):
            raise
        raise TurnOver(why, getattr(error, "run", None)) from error
    finally:
        if not held and not keep:
            agent_connection.give_turn()


def take_turn(
    agent_connection: TurnHolder,
    wait_s: float,
    cancel: CancelToken,
    queued: Callable[[str], None] = lambda sentence: None,
    people: Sequence[str] = (),
) -> None:
    """Wait for the turn and take it. The turn lasts until ``agent_connection.give_turn`` is called. Raise the errors of
    :func:`turn_for`.
    """
    uid, state = os.geteuid(), read_turns()
    taken = state.turn is not None or bool(state.queue or state.frozen_by or state.trouble)
    if taken and wait_s <= 0:
        raise _busy(state, uid, waited=False)
    if taken:
        queued(describe_turn(state, uid, now_s()))
    while True:
        try:
            agent_connection.take_turn(people, min(wait_s, DAY_S) if taken else SOON_S, cancel.fileno())
            break
        except WaitStopped:
            if not cancel.take_suspend() or cancel.reason is not None:
                raise
            stop_this_process()  # a stopped program leaves the queue, and joins at its end when it continues
        except BusyError as late:
            raise _busy(read_turns(), uid, waited=True) from late
    if taken:
        queued("")


def _busy(state: TurnState, uid: int, *, waited: bool) -> BusyError:
    """Return the error for a turn that did not begin, with advice. If no turn can begin at all, the advice is to ask an
    instructor."""
    wait = f"{'wait longer' if waited else 'queue'} with '--wait SECONDS'"
    barred = bool(state.frozen_by or state.trouble)
    first = "ask an instructor to allow new turns" if barred else "see 'jitter-workshop class turn'"
    return BusyError(describe_turn(state, uid, now_s()).rstrip("."), f"{first}, or {wait}")
