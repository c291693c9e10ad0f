"""Put a practice machine's scenario into words: its task, its checks and its hints. Also list all scenarios."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence

from jitter_workshop.flow.scenarios.playing import Solved
from jitter_workshop.model.scenario import Outcome, Scenario
from jitter_workshop.model.text import many

KEYS = "check: is it done?   hint: the next hint   task: this text   boot-with PARAMETERS: boot anew   exit: leave"
NOTHING_LEFT = "That was the last hint."


def task_lines(scenario: Scenario, width: int = 76) -> list[str]:
    """Return the page that a learner reads first."""
    lines = [scenario.title, "", *textwrap.wrap(scenario.task, width), "", "What must be true:"]
    lines += [f"  · {one.says}" for one in scenario.requirements]
    return [*lines, "", KEYS]


def requirement_lines(outcomes: Iterable[Outcome]) -> list[str]:
    """Return a line for each outcome: whether it is met, the requirement, and the value that was found."""
    return [f"  {'✓' if one.met else '✗'} {one.says}: {one.found}" for one in outcomes]


def outcome_lines(scenario: Scenario, outcomes: Sequence[Outcome], width: int = 76) -> list[str]:
    """Return a line for each requirement and, once all are met, what can be learnt from the scenario."""
    lines = requirement_lines(outcomes)
    left = sum(not one.met for one in outcomes)
    if left:
        return [*lines, "", f"{many(left, 'requirement')} not met yet."]
    return [*lines, "", "Solved.", *textwrap.wrap(scenario.learnt, width)]


def hint_lines(scenario: Scenario, number: int, hint: str, width: int = 76) -> list[str]:
    """Return a hint. ``number``: its number, from 1."""
    lines = textwrap.wrap(f"Hint {number} of {len(scenario.hints)}: {hint}", width)
    return [*lines, NOTHING_LEFT] if number == len(scenario.hints) else lines


def list_lines(scenarios: Iterable[Scenario], solved: Sequence[Solved]) -> list[str]:
    """Return a row for each scenario, and the number of solved scenarios. A row has ✓ if the scenario is solved. It
    also has the id, the practice machine (such as ``laptop``), the minutes and the title."""
    done = {one.scenario for one in solved}
    every = list(scenarios)
    wide = max((len(one.id) for one in every), default=0)
    return [
        *(f"{'✓' if s.id in done else '·'} {s.id:<{wide}} {s.shape:<7} {s.minutes:>2} min  {s.title}" for s in every),
        "",
        f"{len(done & {s.id for s in every})} of {many(len(every), 'scenario')} solved.",
    ]
