"""Show what is missing on a host for each thing that the tool can do, as lines."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jitter_workshop.model.text import PATH, SENTENCE, clean
from jitter_workshop.presenter.text.lines import Lines, labelled, wrap
from jitter_workshop.presenter.text.styled import Text

if TYPE_CHECKING:
    from jitter_workshop.flow.host_ops.doctor import DoctorState, HostCheck, Need

MARKS: dict[DoctorState, tuple[str, str]] = {
    "ok": ("✓ ok", "good"),
    "missing": ("▲ missing", "accent"),
    "not_here": ("· not here", "dim"),
}
"""State → its sign and word, and its style."""
CAN, CANNOT = "This host has all that a measurement needs.", "A measurement needs what is marked with *."
_COLUMN = 32
_MARK = 13


def doctor_lines(found: HostCheck, version: str, width: int) -> Lines:
    """Return the report of ``doctor``: what this program needs, and whether this host can be measured. If a need is
    missing, the report tells its purpose and what to do about it. ``version``: the version of this program."""
    made = wrap(f"Jitter Workshop {clean(version)}, Python {clean(found.python, PATH)}", width, style="dim")
    for need in found.needs:
        made += _need(need, width)
    said, style = (CAN, "good") if found.can_measure else (CANNOT, "accent")
    return [*made, Text(), *wrap(said, width, style=style)]


def _need(need: Need, width: int) -> Lines:
    mark, style = MARKS[need.state]
    star = "*" if need.measuring and need.state != "ok" else ""
    head = Text.assemble((f"  {mark}".ljust(_MARK), style), f"{need.id}{star}".ljust(_COLUMN - _MARK))
    said = clean(need.found, SENTENCE)
    if need.state != "ok":
        said += f" (to {clean(need.purpose, SENTENCE)})"
    body = labelled("", said, width, _COLUMN)
    made: Lines = [Text.assemble(head, body[0].plain[_COLUMN:]), *body[1:]]
    if need.mend and need.state != "ok":
        # A command stays in one line, so that it can be copied.
        made += labelled(
            "", f"do: {clean(need.mend, SENTENCE)}", max(width, len(need.mend) + _COLUMN + 4), _COLUMN, style
        )
    return made
