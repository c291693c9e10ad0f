"""Define the data on writes that a learner makes by hand. The screen shows these data. The plain walk (the workshop as
lines of text) shows them, too."""

from __future__ import annotations

from typing import Literal

from jitter_workshop.model.change import Change
from jitter_workshop.model.record import dataclass

HandState = Literal["done", "missing", "wrong", "gone", "hidden"]
"""The states of a write that a learner makes by hand.

- ``done``: the setting has the planned value.
- ``missing``: the setting has its old value, or a value that the kernel made of the old one.
- ``wrong``: the setting has any other value.
- ``gone``: the task has ended.
- ``hidden``: the setting cannot be read.
"""


@dataclass(frozen=True, slots=True)
class HandWrite:
    """Hold one write of a plan, with its state on the host.

    - ``found``: the value that was read from the host. None if the value cannot be read; ``reason`` then says why.
    - ``command``: the write as one line for root's shell.
    """

    change: Change
    state: HandState
    found: str | None
    reason: str = ""
    command: str = ""


@dataclass(frozen=True, slots=True)
class HandLine:
    """Hold one line for root's shell, and the writes that the line makes. A line either makes one write, or moves many
    tasks to the same set of CPUs."""

    command: str
    writes: tuple[HandWrite, ...]

    @property
    def state(self) -> HandState:
        """Return the most urgent state of the line's writes. From the most to the least urgent, the states are: wrong,
        hidden, missing, done, gone."""
        states = {one.state for one in self.writes}
        order: tuple[HandState, ...] = ("wrong", "hidden", "missing", "done", "gone")
        return next(state for state in order if state in states)


@dataclass(frozen=True, slots=True)
class ByHandView:
    """Hold the state of the writes that a learner makes by hand, at one moment.

    - ``writes``: the writes, in the order in which the learner has to make them.
    - ``lines``: the same writes, as lines for a shell.
    - ``back``: True if the learner restores the old values; the writes and lines then contain the old values.
    - ``journalled``: True if root's journal has the old values, so that the workshop can restore them.
    - ``why_not``: the reason why there is no journal, "" if there is a journal.
    - ``left_out``: writes that are not watched, each with its reason.
    - ``boot``: True if the writes are boot parameters, which take effect at the next boot.
    """

    writes: tuple[HandWrite, ...]
    back: bool = False
    journalled: bool = True
    why_not: str = ""
    left_out: tuple[str, ...] = ()
    lines: tuple[HandLine, ...] = ()
    boot: bool = False

    def count(self, *states: HandState) -> int:
        """Return the number of writes in these states."""
        return sum(1 for one in self.writes if one.state in states)

    def lines_in(self, *states: HandState) -> tuple[HandLine, ...]:
        """Return the lines whose state is one of ``states``."""
        return tuple(one for one in self.lines if one.state in states)

    @property
    def complete(self) -> bool:
        """Return True if nothing is left to do by hand."""
        return not self.count("missing", "wrong", "hidden")


CommandState = Literal["reads", "open", "done", "wrong", "already", ""]
"""The states of a by-hand command.

- ``reads``: the command only reads.
- ``done``: the host shows that the command was run.
- ``open``: the host does not show yet that the command was run.
- ``wrong``: since the step was opened, something was changed to another value than that of the command.
- ``already``: the host had the value of the command when the step was opened.
- "": no sign on the host can show that the command was run.
"""


@dataclass(frozen=True, slots=True)
class HandCommand:
    """Hold a command that the learner types at the step *explain*, and its state on this host.

    - ``command``: the command, with the numbers of this host's CPUs.
    - ``unchecked``: the lesson's reason why no host can show that the command was run; "" if there is none.
    - ``found``: a text on the value that was found, if the state is ``wrong``; else "".
    """

    command: str
    why: str
    state: CommandState = ""
    unchecked: str = ""
    found: str = ""
