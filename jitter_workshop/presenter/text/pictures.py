"""Draw the pictures of a lesson's page, in any width."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial

from jitter_workshop.model.picture import Event, HostCpus, Knees, LessonPicture, Mask, RingPicture, Second, Turns
from jitter_workshop.model.record import dataclass
from jitter_workshop.model.text import ID, LABEL, WORD, clean
from jitter_workshop.model.walk import CpuView
from jitter_workshop.presenter.text.cpu_boxes import topology
from jitter_workshop.presenter.text.lines import Lines, in_ascii, in_cells, labelled, wrap
from jitter_workshop.presenter.text.pages import kept_together
from jitter_workshop.presenter.text.styled import Text, cell_len
from jitter_workshop.stats.scale import nice_ns

_DRAWN_FROM = 32
"""The least width at which a curve is drawn. If the width is smaller, the curve's steps are shown as a table. A
chapter's text is one or two columns wider than this."""
_ROOMY = 48
"""From this width on, a curve is drawn for one more decade after its last step."""
_AXIS = 8
_TURNS = {
    "sleeps": (" ", "", ""),
    "ready": ("·", "dim", "could run"),
    "runs": ("█", "cool", "runs"),
    "locks": ("▓", "accent", "runs with the lock"),
    "held": ("▒", "accent", "has the lock, cannot run"),
    "waits": ("░", "bad", "waits for the lock"),
}
"""The state of a thread → its character, its style, and its meaning; a sleep needs none."""
_MOST_CELLS = 5
"""The most cells of a unit of time."""
_MOST_DIGITS = 9
"""The most digits behind the point of a percentile."""


def picture_lines(
    picture: LessonPicture, width: int, *, ascii_only: bool = False, cpus: CpuView | None = None
) -> Lines:
    """Return a picture as lines of at most ``width`` cells; ``width`` is at least 34. ``ascii_only``: draw lines and
    boxes in ASCII. ``cpus``: the host's CPUs for the picture ``draw-topology``. Without ``cpus``, this picture is
    empty.
    """
    if isinstance(picture, Mask):
        lines = mask_bits(picture, width)
    elif isinstance(picture, Knees):
        lines = _knees(picture, width) if width >= _DRAWN_FROM else _steps(picture, width)
    elif isinstance(picture, Second):
        lines = _second(picture, width)
    elif isinstance(picture, Turns):
        lines = _turns(picture, width)
    elif isinstance(picture, HostCpus):
        lines = topology(cpus, width) if cpus is not None else []
    else:
        lines = _ring(picture, width)
    return in_ascii(lines) if ascii_only else lines


# -- a mask ------------------------------------------------------------------------------------------------------------


def digits_a_row(width: int) -> int:
    """Return how many digits of a mask one row of bits has: a power of two, at most 16."""
    return next((n for n in (16, 8, 4, 2) if 5 + 5 * n <= width), 1)


def mask_bits(mask: Mask, width: int, at: int | None = None) -> Lines:
    """Draw a mask as bits, the lowest CPU at the right. Four bits form a group. Above a group is the number of its
    highest CPU, and below the group its hexadecimal digit. Both begin at the bit of this CPU. ``at``: the CPU under the
    cursor."""
    digits = -(-mask.cpus // 4)
    a_row = digits_a_row(width)
    lines: Lines = []
    for last in range(digits - 1 - (digits - 1) % a_row, -1, -a_row):
        row = range(min(last + a_row, digits) - 1, last - 1, -1)
        above, bits, below = Text("CPU  ", "dim"), Text("bit  ", "dim"), Text("hex  ", "dim")
        for digit in row:
            cpus = list(range(4 * digit + 3, 4 * digit - 1, -1))
            out = [cpu for cpu in cpus if cpu in mask.out]
            highest = min(cpus[0], mask.cpus - 1)
            # The first group may have fewer than four CPUs. Where a long number begins further left, one blank is kept.
            begins = min(cpus[0] - highest, 4 - len(str(highest)))
            above.append(f"{'':{begins}}{highest:<{5 - begins}}", "bold accent" if out else "dim")
            for cpu in cpus:
                stands = cpu < mask.cpus and cpu not in mask.out
                style = "bold accent" if cpu in mask.out else "text"
                bits.append(
                    "1" if stands else "0" if cpu < mask.cpus else " ", f"{style} reverse" if cpu == at else style
                )
            bits.append(" ")
            value = sum(1 << (cpu % 4) for cpu in cpus if cpu < mask.cpus and cpu not in mask.out)
            below.append(f"{'':{cpus[0] - highest}}{value:<{5 - cpus[0] + highest}x}", "bold accent" if out else "text")
        lines += [above, bits, below]
    for line in lines:
        line.rstrip()
    return lines


# -- a curve with its causes -------------------------------------------------------------------------------------------


def _steps(knees: Knees, width: int) -> Lines:
    return [
        line
        for one in knees.steps
        for line in labelled(
            f"p{one.percentile:g}", f"{nice_ns(one.value_ns)}: {clean(one.words, LABEL)}", width, 10, "cool"
        )
    ]


def _knees(knees: Knees, width: int) -> Lines:
    """Draw a curve that rises in steps, on logarithmic axes. A factor of ten is two rows high. The words of a step are
    at the left of the step. No curve is there, because the curve only rises. If the words need several rows, they
    begin above the step's row and end in it.
    """
    steps = knees.steps
    wide = width - _AXIS - 1
    far = max(math.ceil(_rarity(steps[-1].percentile)) + (1 if width >= _ROOMY else 0), 2)
    low, high = math.floor(math.log10(steps[0].value_ns)), math.ceil(math.log10(steps[-1].value_ns))
    rows = 2 * (high - low) + 1

    def row_of(value_ns: int) -> int:
        return rows - 1 - round(2 * (math.log10(value_ns) - low))

    columns = [0, *(round(_rarity(one.percentile) / far * (wide - 1)) for one in steps[1:]), wide - 1]
    cells = [[" "] * wide for _ in range(rows)]
    words: dict[int, tuple[int, str]] = {}
    for n, one in enumerate(steps):
        row, start, end = row_of(one.value_ns), columns[n], columns[n + 1]
        for column in range(start, end + 1):
            cells[row][column] = "─"
        if n:
            below = row_of(steps[n - 1].value_ns)
            for between in range(row + 1, below):
                cells[between][start] = "│"
            if below != row:
                cells[below][start], cells[row][start] = "╯", "╭"
        # The words of the first step stand above its line, because that begins at the axis.
        last, room = (row, start - 1) if n else (row - 1, end - 1)
        above = row_of(steps[n + 1].value_ns) if n + 1 < len(steps) else -1
        told = _in_rows(clean(one.words, ID), room, last - above)
        for where, said in enumerate(told, last + 1 - len(told)):
            words[where] = (start - 1 - cell_len(said) if n else 0), said
    lines: Lines = []
    for row in range(rows):
        label = nice_ns(10 ** (high - row // 2)) if row % 2 == 0 else ""
        line = Text.assemble((f"{label:>{_AXIS - 1}} ", "dim"), ("│", "dim"))
        drawn_row = "".join(cells[row])
        at, text = words.get(row, (0, ""))
        line.append(drawn_row[:at], "accent").append(text, "text").append(drawn_row[at + len(text) :], "accent")
        line.rstrip()
        lines.append(line)
    return [*lines, _percentiles(far, wide)]


def _in_rows(words: str, room: int, rows: int) -> list[str]:
    """Break words into at most ``rows`` rows of ``room`` cells. If the words need more rows, return one row with the
    beginning of the words. Return [] if ``room`` or ``rows`` is 0.
    """
    if room < 1 or rows < 1:
        return []
    told = [line.plain for line in wrap(words, room)]
    whole = len(told) <= rows and " ".join(told) == words
    return told if whole else [in_cells(words, min(room, cell_len(words)))]


def _percentiles(far: int, wide: int) -> Text:
    """Return the axis of percentiles: 0 %, 90 %, 99 % and so on, as many as fit."""
    line = Text(" " * (_AXIS + 1), "dim")
    for nines in range(far):
        at = _AXIS + 1 + round(nines / far * (wide - 1))
        name = f"p{100 - 100 / 10**nines:g}"
        if line.cell_len <= at and at + len(name) <= _AXIS + 1 + wide:
            line.append(" " * (at - line.cell_len) + name + " ")
    line.rstrip()
    return line


def _rarity(percentile: float) -> float:
    """Return how rare the messages beyond a percentile are, as a power of ten. For p0 it is 0 (every message), for
    p99.9 it is 3 (one message in 1,000). ``percentile``: 0 to below 100.
    """
    return -math.log10(1 - percentile / 100)


# -- one second of a CPU -----------------------------------------------------------------------------------------------


def knee_of(event: Event) -> float:
    """Return the percentile above which messages are late because of an event. Messages come at an even pace, and all
    that are due while an event lasts are late. So the share of late messages is the share of time that the events take.
    """
    return 100 - 100 * min(event.count * event.length_ns / 1e9, 1.0)


def _knee_told(knee: float) -> str:
    """Return a percentile in words, such as ``p99.875``. A percentile below 100 never becomes ``p100``."""
    digits = next((n for n in range(4, _MOST_DIGITS) if round(knee, n) < 100), _MOST_DIGITS)
    return f"p{knee:.{digits}f}".rstrip("0").rstrip(".")


@dataclass(frozen=True, slots=True)
class Lane:
    """Hold one timeline of a second. ``drawn``: a function that returns the timeline's cells for a width. ``event``:
    how often and how long the events came; None if they were not counted."""

    name: str
    drawn: Callable[[int], str]
    event: Event | None
    style: str = "accent"


def _second(second: Second, width: int) -> Lines:
    """Draw a timeline of one second for each kind of event. Beside each timeline is the knee: the percentile above
    which these events make messages late.
    """
    return lanes([Lane(clean(one.words, WORD), partial(_lane, one), one) for one in second.events], width)


def lanes(found: Sequence[Lane], width: int, *, knees: bool = True) -> Lines:
    """Draw timelines of one second. ``knees``: with the knee that each kind of event makes."""
    names = [one.name for one in found]
    counted = [f"{one.event.count:,} × {nice_ns(one.event.length_ns)}" if one.event else "" for one in found]
    ends = [_knee_told(knee_of(one.event)) if one.event and knees else "" for one in found]
    name_width, counted_width = max(map(cell_len, [*names, "one second"])), max(map(cell_len, [*counted, "events"]))
    lane = width - name_width - counted_width - max(map(len, ends)) - 8
    if lane < 10:
        rows = zip(names, counted, ends, strict=True)
        told = ((name, f"{count}{': ' if end else ''}{end}") for name, count, end in rows if count)
        return [line for name, said in told for line in labelled(name, said, width, name_width + 2, "cool")]
    head = Text.assemble((in_cells("one second", name_width), "dim"), "  ", (in_cells("", lane + 2), "dim"))
    head.append(f"{in_cells('events', counted_width)}{'  knee' if knees else ''}", "dim")
    lines = [head]
    for one, name, count, end in zip(found, names, counted, ends, strict=True):
        line = Text.assemble((in_cells(name, name_width), "cool"), ("  ▏", "dim"), (one.drawn(lane), one.style))
        line.append("▏", "dim").append(f" {in_cells(count, counted_width)}  ", "text").append(end, "bold text")
        line.rstrip()
        lines.append(line)
    return kept_together(lines)


def _lane(event: Event, width: int) -> str:
    """Return the timeline of a second as cells: an event shorter than a cell is a stroke, a longer one a bar."""
    cells = [" "] * width
    long = round(event.length_ns / 1e9 * width)
    for n in range(min(event.count, width)):
        start = min(int((n + 0.5) / min(event.count, width) * width), width - 1)
        for at in range(start, min(start + max(long, 1), width)):
            cells[at] = "█" if long else "│"
    return "".join(cells)


# -- threads that share a lock -----------------------------------------------------------------------------------------


def _turns(turns: Turns, width: int) -> Lines:
    """Draw a line of time for each thread, and below them the meaning of the characters in use."""
    names = max(cell_len(clean(one.name, WORD)) for one in turns.threads)
    each = min((width - names - 3) // turns.threads[0].length, _MOST_CELLS)
    lines: Lines = []
    if each < 1:
        for one in turns.threads:
            told = ", ".join(f"{does} {units}" for does, units in one.parts)
            lines += labelled(clean(one.name, WORD), told, width, names + 2, "cool")
        return lines
    for one in turns.threads:
        line = Text.assemble((in_cells(clean(one.name, WORD), names), "cool"), ("  ▏", "dim"))
        for does, units in one.parts:
            sign, style, _ = _TURNS[does]
            line.append(sign * (units * each), style)
        line.rstrip()
        lines.append(line)
    used = {does for one in turns.threads for does, _ in one.parts}
    entries = [
        Text.assemble((sign * 2, style), (f" {means}", "dim"))
        for does, (sign, style, means) in _TURNS.items()
        if does in used and means
    ]
    # In a narrow column the meanings begin at its left.
    indent = " " * (names + 3) if names + 3 + max((one.cell_len for one in entries), default=0) <= width else ""
    key = Text()
    for entry in entries:
        if key and key.cell_len + 2 + entry.cell_len > width:
            lines.append(key)
            key = Text()
        key.append("  " if key else indent).append(entry)
    return kept_together([*lines, key])


# -- the ring ----------------------------------------------------------------------------------------------------------


def _ring(_: RingPicture, width: int) -> Lines:
    """Draw the ring with the producer at its left and the accumulator at its right. A slot is two cache lines long
    (``native/ring.c``), so that two slots never share a cache line."""
    slots = 6 if width >= 60 else 3
    filled = ["17", "18", "19"][: slots - 1]
    cells = [f" {one:<3}" for one in [*filled, *[""] * (slots - len(filled))]]
    top, middle, bottom = "┬".join(["────"] * slots), "│".join(cells), "┴".join(["────"] * slots)
    left, right = "producer ─▶ ", " ─▶ accumulator"
    if width < len(left) + len(middle) + 2 + len(right):
        left, right = "P ─▶ ", " ─▶ A"
    blank = " " * len(left)
    told = [
        Text(f"{blank}┌{top}┐", "dim"),
        Text.assemble((left, "cool"), ("│", "dim"), (middle, "text"), ("│", "dim"), (right, "accent")),
        Text(f"{blank}└{bottom}┘", "dim"),
        Text(in_cells(f"{blank}  ▲ a slot: two cache lines", width).rstrip(), "dim"),
    ]
    return [line for line in told if line.cell_len <= width]
