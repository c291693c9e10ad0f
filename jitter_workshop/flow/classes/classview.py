"""Show the turn and the instructor's banner of a class host in an open workshop. Both come from two small files, which
are read from time to time."""

from __future__ import annotations

import os
import pwd
from pathlib import Path

from jitter_workshop import paths
from jitter_workshop.errors import WorkshopError
from jitter_workshop.flow.host_ops.agent_connection import AgentConnection
from jitter_workshop.flow.turns.classhost import (
    ClassHost,
    QueueRow,
    as_sentence,
    barrier_words,
    class_host,
    holder_words,
    left_s,
    now_s,
    place_words,
    queue_place,
    queue_rows,
    read_turns,
    rounded_duration,
)
from jitter_workshop.host.classfile import GROUP
from jitter_workshop.model.board import Banner
from jitter_workshop.model.text import LABEL, REASON, SHORT, called, clean
from jitter_workshop.model.turn import TurnState

MOST_ROWS = 12


class ClassView:
    """Hold the state of a class for the screen.

    - ``people``: the other members of this workshop's team.
    - ``lost``: the reason why this workshop's last turn ended. It is "" until a turn has ended. It becomes "" again
      when this user waits for the turn, or when any user's new turn begins.
    """

    def __init__(self, host: ClassHost, agent_connection: AgentConnection) -> None:
        self.host = host
        self.people: tuple[str, ...] = ()
        self.banner: Banner | None = None
        self.lost = ""
        self._agent_connection = agent_connection
        self._lost_beside: int | None = None
        """The number of the turn that was running when ``lost`` was set; None while ``lost`` is ""."""
        self._state = TurnState("")
        self._at_s = 0.0
        self._owners = _owners()

    def look(self) -> bool:
        """Read the turn and the banner again. Return True if something on the screen has changed."""
        from jitter_workshop.classroom.store import read_banner

        before = (self.brief, self.banner, self.lost)
        self._state, self._at_s = read_turns(), now_s()
        self.banner = read_banner(Path(paths.BOARD_DIR), self._owners)
        turn = self._state.turn
        if self.has_turn or self.waits or (turn is not None and turn.number != self._lost_beside):
            self.lost = ""
        return (self.brief, self.banner, self.lost) != before

    # -- the turn, as it was read last -----------------------------------------------------------------------------

    @property
    def has_turn(self) -> bool:
        """Return True if this workshop has the turn."""
        return self._agent_connection.took_turn and self._of_user and not self._returning

    @property
    def ended(self) -> bool:
        """Return True if this workshop's turn is over although the workshop did not end it. :meth:`find_end` finds the
        reason."""
        return self._agent_connection.took_turn and not self.has_turn

    @property
    def waits(self) -> bool:
        """Return True if this user waits for the turn, in this or another terminal."""
        return any(one.uid == os.geteuid() for one in self._state.queue)

    @property
    def left_s(self) -> float | None:
        """Return the seconds that this workshop's turn still lasts. Return None for an instructor's turn, or without a
        turn."""
        return left_s(self._state, os.geteuid(), self._at_s) if self.has_turn else None

    @property
    def standing(self) -> tuple[object, ...]:
        """Return a value that changes if the turn or the queue changes. The value has no times, so it does not change
        as time passes."""
        state, turn = self._state, self._state.turn
        here = queue_place(state, os.geteuid(), self._at_s).before
        holder = (turn.number, turn.uid, turn.doing, turn.returning) if turn is not None else None
        return (holder, self.has_turn, here, state.frozen_by, state.trouble)

    @property
    def brief(self) -> str:
        """Return the state of the turn in one line: the user's place in the queue, then the holder of the turn."""
        state, uid = self._state, os.geteuid()
        if self.has_turn:
            left = self.left_s
            return f"Your turn: {rounded_duration(left)} left" if left is not None else "Your turn has no time limit"
        holder = holder_words(state, uid, self._at_s)
        if self._of_user and not self._returning:
            holder += ", in another terminal"
        first = [place_words(state, uid, self._at_s)] if self.waits else []
        said = [*first, *(one.rstrip(".") for one in barrier_words(state)), holder]
        if state.queue and not self.waits:
            said.append(f"{len(state.queue)} wait" if len(state.queue) > 1 else "1 waits")
        return " · ".join(said)

    @property
    def holder(self) -> str:
        """Return sentences on the present turn: its holder, its purpose and its length. A further sentence gives the
        reason if no turn can begin."""
        said = [f"{holder_words(self._state, os.geteuid(), self._at_s)}.", *barrier_words(self._state)]
        return " ".join(said)

    def queue(self) -> tuple[QueueRow, ...]:
        """Return the queue's rows that fit on a page, always with this user's row."""
        rows = queue_rows(self._state, os.geteuid(), self._at_s)
        return tuple(row for row in rows if row.number <= MOST_ROWS or row.own)

    def unseen(self) -> str:
        """Return the number of waiting users that :meth:`queue` leaves out, in words; "" if it leaves out none."""
        more = len(self._state.queue) - len(self.queue())
        return f"{more} more wait{'s' if more == 1 else ''}" if more else ""

    def find_end(self) -> None:
        """Find the reason why this workshop's turn is over, and wait until its settings are restored. This can take
        seconds. Do not call this while another thread uses the connection to the agent."""
        why = self._agent_connection.turn_lost()
        if why:
            state = read_turns()
            self._lost_beside, trouble = state.turn.number if state.turn is not None else None, state.trouble
            back = f"its changes are not restored: {called(trouble, REASON)}" if trouble else "its changes are restored"
            self.lost = f"{as_sentence(why)}; {back}."

    @property
    def _of_user(self) -> bool:
        turn = self._state.turn
        return turn is not None and turn.uid == os.geteuid()

    @property
    def _returning(self) -> bool:
        return self._state.turn is not None and self._state.turn.returning

    # -- the instructor --------------------------------------------------------------------------------------------

    def banner_words(self, title: str = "") -> str:
        """Return the instructor's chapter, step and message in one line; "" without a banner. ``title``: the title of
        this chapter."""
        said = self.banner
        if said is None:
            return ""
        where = " · ".join(clean(word, LABEL) for word in (title or said.chapter, said.step, said.text) if word)
        return f"{called(said.by, SHORT)}: {where}" if where else ""


def open_view(agent_connection: AgentConnection) -> ClassView | None:
    """Return the view of this class host. Return None if this is no class host, or if its class file is invalid."""
    try:
        host = class_host()
    except WorkshopError:
        return None
    return ClassView(host, agent_connection) if host is not None else None


def _owners() -> frozenset[int]:
    try:
        return frozenset({0, pwd.getpwnam(GROUP).pw_uid})
    except KeyError:
        return frozenset({0})
