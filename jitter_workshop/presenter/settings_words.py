"""Describe settings that are applied, given back or kept: for the screen, the line-by-line workshop and the
terminal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from jitter_workshop.model.change import ONCE, RestoreResult
from jitter_workshop.model.text import clean, tally

if TYPE_CHECKING:
    from jitter_workshop.flow.chapters.workshop import Workshop

_MOST_NAMED = 6

NO_RIGHTS = "You are not root, and sudo is not available: nothing can be written."

PLAN_OF_THESE_CPUS = "This is the plan with these CPUs. Enter agrees to it; p lets you pick others."
PLAN_IS_ANOTHER = "The plan has changed: this is the new one. Enter agrees to it."

GIVEN_BACK_MEANWHILE = "What was applied has been given back: this workshop stood still too long, or the agent ended."
GONE_ALREADY = "What was applied had been given back already."


def named(tunables: Iterable[str]) -> str:
    """Return ids in their order, each once; at most six by name."""
    words = list(dict.fromkeys(clean(name, 40) for name in tunables))
    more = len(words) - _MOST_NAMED
    return ", ".join(words[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


def counted(tunables: Sequence[str]) -> str:
    """Return ``2 tunables, 22 writes (governor, thp)``. The argument has the tunable of each write."""
    return f"{tally(tunables)} ({named(tunables)})"


def as_root(workshop: Workshop) -> str:
    """Describe how a key writes: ``as root``, and that sudo asks first where it does."""
    asks = workshop.agent_session.rights == "sudo"
    return "as root (sudo asks for your password first, where it wants one)" if asks else "as root"


def stands(written: Sequence[str]) -> str:
    """Return ``Applied now: 2 tunables, 22 writes (governor, thp)``, "" for no write. The argument has the tunable of
    each write."""
    return f"Applied now: {counted(written)}" if written else ""


def came_back(result: RestoreResult) -> str:
    """Return what was given back and what was left alone, in one paragraph."""
    if not result.restored and not result.left_alone and not result.needs_reboot:
        return "There was nothing to give back."
    said = [] if result.restored or result.left_alone else [GONE_ALREADY]
    if result.restored:
        said.append(f"Given back: {counted([one.tunable for one in result.restored])}.")
    said += [f"Left alone: {clean(one.path, 120)}: {clean(one.reason, 300)}." for one in result.left_alone]
    if result.needs_reboot:
        said.append("A part of it takes effect with the next boot.")
    return " ".join(said)


def farewell(workshop: Workshop) -> str:
    """Give back what is held. Return the lines for a plain terminal: what came back, and what is still applied."""
    held = workshop.agent_session.holding
    result = workshop.agent_session.close()
    standing = stands(workshop.written())
    lines = []
    if result.restored or result.left_alone:
        lines.append(came_back(result))
    elif held and standing:
        lines.append("It is not certain that all was given back.")
    elif held:
        # The agent gives a lease back by itself if this process stood still for too long.
        lines.append(GONE_ALREADY)
    lines += [f"{standing}. 'jitter-workshop restore' gives them back."] if standing else []
    return "".join(f"{line}\n" for line in lines)


def for_one_boot(words: Iterable[str]) -> bool:
    """Return True if a plan is for the next boot alone. No script can do that: the plan copies GRUB's menu as it is at
    that time."""
    return any(word.startswith(ONCE) for word in words)


def apply_command(words: Iterable[str]) -> str:
    """Return the command by which root applies a plan that is for the next boot alone, wholly or in part."""
    asked = list(words)
    if all(word.startswith(ONCE) for word in asked):
        asked = ["--next-boot", *(word.removeprefix(ONCE) for word in asked)]
    return f"sudo jitter-workshop apply {' '.join(asked)}"


def script_command(words: Iterable[str]) -> str:
    """Return the command that makes a script of a plan, for a user who has the rights."""
    return f"jitter-workshop plan --sh {' '.join(words)} > plan.sh"
