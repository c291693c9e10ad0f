"""A conversation with the workshop line by line."""

from __future__ import annotations

from collections.abc import Iterator

from jitter_workshop.flow.chapters.workshop import Workshop
from jitter_workshop.plain.walkthrough import PlainWalk


class Talk:
    """``answers``, parted by ``|``, are typed one after another, then the input ends."""

    def __init__(self, workshop: Workshop, answers: str, width: int = 80) -> None:
        self.said: list[str] = []
        self._answers: Iterator[str] = iter([*answers.split("|")])
        self.walk = PlainWalk(workshop, self._read, self.said.append, width)

    def _read(self, prompt: str) -> str:
        self.said.append(prompt + "\n")
        try:
            return next(self._answers)
        except StopIteration:
            raise EOFError from None

    @property
    def text(self) -> str:
        return "".join(self.said)


def talk(workshop: Workshop, answers: str, chapter: str | None = None, width: int = 80) -> str:
    """All that is said in a conversation with these answers."""
    conversation = Talk(workshop, answers, width)
    assert conversation.walk.run(chapter) == 0
    return conversation.text
