"""Describe scenarios. A scenario is a fault in a practice machine, which the learner has to mend. Its requirements show
if the fault is mended.

A scenario is data (``lessons/scenarios/*.toml``, see docs/writing-lessons.md). It may contain placeholders ``{name}``,
with several possible values for each name. :func:`with_drawn_values` replaces each placeholder by one of these values.
"""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Mapping
from typing import Literal

from jitter_workshop.model.record import dataclass

FIGURES = {
    "ticks": "a second",
    "interrupts": "a second",
    "softirqs": "a second",
    "busy": "%",
}
"""Figures of one CPU, counted by its kernel, and their units. ``interrupts`` are those of devices. ``busy`` is the
share of the time in which the CPU did not idle."""

RequirementKind = Literal["figure", "file", "task", "command"]


@dataclass(frozen=True, slots=True)
class Requirement:
    """Hold one condition that must be true once the fault is mended.

    - ``says``: the condition as a sentence, without a full stop.
    - ``kind``: how the condition is checked.

    The values of ``kind``:

    - ``figure``: the figure ``name`` of the CPU ``cpu`` must be at least ``at_least`` and at most ``at_most``.
    - ``file``: the text of the file ``name`` must be one of the texts in ``wanted``, which ``|`` separates.
    - ``task``: a task called ``name`` must run. No thread of that name may be allowed on a CPU of the list ``off``.
    - ``command``: the shell command ``name`` must exit with 0.
    """

    says: str
    kind: RequirementKind
    name: str
    cpu: str = ""
    wanted: str = ""
    off: str = ""
    at_least: float | None = None
    at_most: float | None = None


@dataclass(frozen=True, slots=True)
class Scenario:
    """Hold a scenario.

    - ``plant``: a shell program that makes the fault.
    - ``solution``: a shell program that mends the fault.
    - ``values``: name → the possible values, of which one is drawn. Both shell programs have the drawn value in a shell
      variable, whose name is in capitals.
    - ``seconds``: how long figures are counted, in s.
    - ``append``: boot parameters of the machine.
    """

    id: str
    title: str
    shape: str
    minutes: int
    task: str
    hints: tuple[str, ...]
    learnt: str
    values: dict[str, tuple[str, ...]]
    plant: str
    solution: str
    requirements: tuple[Requirement, ...]
    seconds: float = 5.0
    append: str = ""


def with_drawn_values(scenario: Scenario, seed: int) -> tuple[Scenario, dict[str, str]]:
    """Return the scenario with a value in place of each placeholder, and the drawn values: name → value. The same
    ``seed`` always draws the same values."""
    source = random.Random(f"{scenario.id}/{seed}")
    values = {name: source.choice(several) for name, several in sorted(scenario.values.items())}

    def fill(text: str) -> str:
        return fill_in_values(text, values)

    whole = dataclasses.replace(
        scenario,
        task=fill(scenario.task),
        learnt=fill(scenario.learnt),
        append=fill(scenario.append),
        hints=tuple(fill(hint) for hint in scenario.hints),
        requirements=tuple(
            dataclasses.replace(
                one,
                says=fill(one.says),
                # Programs have the values as variables: their braces are the shell's.
                name=one.name if one.kind == "command" else fill(one.name),
                cpu=fill(one.cpu),
                wanted=fill(one.wanted),
                off=fill(one.off),
            )
            for one in scenario.requirements
        ),
    )
    return whole, values


def fill_in_values(text: str, values: Mapping[str, str]) -> str:
    """Replace each ``{name}`` in the text by the value of this name. Other braces are not changed."""
    for name, value in values.items():
        text = text.replace(f"{{{name}}}", value)
    return text


@dataclass(frozen=True, slots=True)
class Outcome:
    """Hold the outcome of one requirement. ``met``: True if the requirement holds. ``found``: the value that was read
    or counted."""

    says: str
    met: bool
    found: str
