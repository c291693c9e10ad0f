"""A class host beside a workshop that is open: whose turn it is, and where the instructor is. Looked at now and then,
never while something is measured."""

from __future__ import annotations

import os
import pwd
from pathlib import Path

from jitter_workshop.agent.turnfile import now_s
from jitter_workshop.classroom import banner as banners
from jitter_workshop.errors import WorkshopError
from jitter_workshop.flow.classhost import ClassHost, class_host, in_words, place, read_turns
from jitter_workshop.flow.hands import Hands
from jitter_workshop.flow.posting import post
from jitter_workshop.model.board import Banner
from jitter_workshop.model.classfile import GROUP
from jitter_workshop.model.text import clean
from jitter_workshop.model.turn import TurnState
from jitter_workshop.paths import BOARD_DIR
from jitter_workshop.session.store import OpenSession

POST_EVERY_S = 5.0


class ClassView:
    """``turn``: whose turn it is, in words; ``banner``: where the instructor is, None for nowhere. ``lost``: why the turn
    that this workshop had is over, once; "" for nothing."""

    def __init__(self, host: ClassHost, hands: Hands, session: OpenSession) -> None:
        self.host = host
        self.turn = ""
        self.banner: Banner | None = None
        self.lost = ""
        self._hands = hands
        self._session = session
        self._had = False
        self._owners = _owners()
        self._posted = ""
        self._posted_s = 0.0

    def look(self) -> bool:
        """Look; whether anything that is shown has changed."""
        before = (self.turn, self.banner, self.lost)
        state = read_turns()
        mine = self._mine(state)
        if self._had and not mine:
            self.lost = "Your turn is over; what you applied in it has been given back."
        elif mine:
            self.lost = ""
        self._had = mine
        self.turn = in_words(state, os.geteuid(), now_s())
        self.banner = banners.read(Path(BOARD_DIR), self._owners)
        return (self.turn, self.banner, self.lost) != before

    @property
    def has_turn(self) -> bool:
        """Whether this workshop has the turn."""
        return self._hands.has_turn and self._mine(read_turns())

    @property
    def waits(self) -> bool:
        """Whether this user waits for it, here or elsewhere."""
        return bool(place(read_turns(), os.geteuid(), now_s()).before)

    def banner_words(self, title: str = "") -> str:
        """Where the instructor is, in words; ``title``: of the banner's chapter. "" for nowhere."""
        said = self.banner
        if said is None:
            return ""
        where = " · ".join(clean(word, 60) for word in (title or said.chapter, said.step, said.text) if word)
        return f"{clean(said.by, 30)}: {where}" if where else ""

    def to_post(self) -> bool:
        """Whether something was done since the last post, which is a while ago."""
        return self._session.session.updated_at != self._posted and now_s() - self._posted_s >= POST_EVERY_S

    def post(self) -> str:
        """Post this session to the board; why that was not possible, or ""."""
        self._posted, self._posted_s = self._session.session.updated_at, now_s()
        return post(self._session)

    def _mine(self, state: TurnState) -> bool:
        turn = state.turn
        return turn is not None and turn.uid == os.geteuid() and not turn.returning and self._hands.has_turn


def open_view(hands: Hands, session: OpenSession) -> ClassView | None:
    """The view of this class host, None where it is none, or its class file makes no sense: ``class check`` says so."""
    try:
        host = class_host()
    except WorkshopError:
        return None
    return ClassView(host, hands, session) if host is not None else None


def _owners() -> frozenset[int]:
    try:
        return frozenset({0, pwd.getpwnam(GROUP).pw_uid})
    except KeyError:
        return frozenset({0})
