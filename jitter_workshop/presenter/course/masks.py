"""Show a mask of CPUs that the learner writes, and say what is right or wrong with it."""

from __future__ import annotations

from jitter_workshop.course.masks import MaskJudgement
from jitter_workshop.model.course import Chapter, MaskTask
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.model.picture import MOST_CPUS, Mask
from jitter_workshop.model.text import capital, many
from jitter_workshop.model.walk import CpuView
from jitter_workshop.presenter.text.lines import Lines, labelled, small_title, wrap
from jitter_workshop.presenter.text.pictures import mask_bits
from jitter_workshop.presenter.text.prose import styled
from jitter_workshop.presenter.text.styled import Text

OFFER = "Enter first opens a mask to write. Your mask is checked, but not applied."
LINE_BY_LINE = "Type mask and a mask, such as: mask f0. Or type the CPUs in the mask, such as: mask 0-3,8-63."
_OWN = "This is the mask of this host."
_TYPING = "behind the typed digits; digits that are not typed are 0"
_CARET = "_"
"""The sign behind a mask that is being typed."""


def tasks(chapter: Chapter, view: CpuView) -> tuple[MaskTask, ...]:
    """Return the masks that the learner has to write. The first is the lesson's mask; the second has all CPUs of this
    host except the hot ones. The second mask needs a host with three properties: it has hot CPUs and other CPUs, all
    CPUs are online, and there are at most MOST_CPUS. Return () for a chapter without a mask."""
    if chapter.mask is None:
        return ()
    online = view.topology.online
    hot = view.hot & online
    whole = online == CpuSet.of(range(len(online))) and len(online) <= MOST_CPUS
    own = (MaskTask(Mask(len(online), hot), _OWN),) if whole and 0 < len(hot) < len(online) else ()
    return (chapter.mask, *own)


def task(one: MaskTask, number: int, count: int, width: int) -> Lines:
    """Return the lines that say which mask the learner has to write. ``number``: which of the ``count`` masks this is;
    the first mask has the number 1."""
    wanted = one.wanted
    of = f"   {number} of {count}" if count > 1 else ""
    whose = "this host's mask" if one.explanation == _OWN else "a mask"
    said = f"Take {wanted.out.named} out of {whose} of {many(wanted.cpus, 'CPU')}."
    return [small_title(f"WRITE A MASK{of}"), *wrap(Text(said, "bold text"), width)]


def editor(mask: Mask, at: int, width: int, typed: str = "") -> Lines:
    """Return the mask as bits with a cursor on CPU ``at``, and the text that the kernel would read. ``typed``: the
    digits that the learner has typed; "" to show the mask as the kernel prints it."""
    lines = mask_bits(mask, width, None if typed else at)
    where = _TYPING if typed else f"CPU {at}, digit {at // 4 + 1} from the right"
    rows = (
        ("cursor", Text(where, "text")),
        ("out", Text(str(mask.out) or "no CPU", "accent")),
        ("the mask", Text.assemble((typed or mask.text, "bold text"), (_CARET if typed else "", "accent"))),
    )
    told = (line for name, said in rows for line in labelled(name, said, width, 10))
    return [*lines, Text(), *told]


def not_typed(why: str, width: int) -> Lines:
    """Return a sentence that says why a typed character did not change the mask."""
    return wrap(Text(f"{capital(why)}.", "bad"), width, "! ")


def judged_mask_lines(one: MaskTask, seen: MaskJudgement, width: int) -> Lines:
    """Return lines that say whether a mask is right. For a wrong mask they name the wrong CPUs, and say what the
    mistake was, if that is known."""
    if seen.right:
        said = f"Right: this leaves out {one.wanted.out.named}, and no other."
        lines = wrap(Text(said, "bold good"), width, "✓ ")
        return [*lines, *(wrap(styled(one.explanation), width, "  ") if one.explanation else [])]
    told = []
    if seen.freed:
        kept = f", and {seen.kept} stay{'' if len(seen.kept) > 1 else 's'} in" if seen.kept else ""
        told.append(f"This frees {seen.freed.named}{kept}.")
    elif seen.kept:
        told.append(f"{seen.kept.named} {'are' if len(seen.kept) > 1 else 'is'} still in the mask.")
    if seen.beyond:
        told.append(f"Your mask names {seen.beyond.named}, but the last CPU is {one.wanted.cpus - 1}.")
    return [
        *wrap(Text(" ".join(told), "bold bad"), width, "✗ "),
        *(wrap(Text(why, "text"), width, "  ") if (why := _reason(seen)) else []),
    ]


def _reason(seen: MaskJudgement) -> str:
    """Return a sentence that says what the learner's mistake in a mask was; "" if the mistake is not known."""
    match seen.slip:
        case "unchanged":
            return "A bit of 1 lets the CPU work: set the bits of these CPUs to 0."
        case "empty":
            return "The kernel refuses a mask without a CPU, because the work could then run nowhere."
        case "inverted":
            return "Your mask names the CPUs to take out. A mask has to name the CPUs that may be used."
        case "from the left":
            return "You counted the digits from the left. Count from the right: the last digit stands for CPUs 0 to 3."
        case "shifted":
            side = "left" if seen.places > 0 else "right"
            digits, bits = divmod(abs(seen.places), 4)
            far = many(abs(seen.places), "bit") if bits else many(digits, "digit")
            return f"The zeros are {far} too far to the {side}."
    return ""


KEYS = "0–9 a–f type it · ← → ↑ ↓ move · Space sets 0 or 1 · Enter checks · Esc goes back"


def mask_keys_line(right: bool | None, last: bool) -> str:
    """Return the line that names the keys. ``right``: how the mask was judged, None before the judgement. ``last``: no
    further mask follows."""
    if right is None:
        return KEYS
    on = "Enter goes back to the plan" if last else "Enter the next mask · Esc goes back"
    return on if right else f"0–9 a–f Space change it · {on}"
