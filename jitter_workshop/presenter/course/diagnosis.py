"""Word the step ``diagnose``: the question, the list of causes, and the judgement of an answer."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from jitter_workshop.flow.chapters.diagnosis import NOT_ASKED, STEP
from jitter_workshop.flow.chapters.levers import reach_of_course, why_irq_stays
from jitter_workshop.flow.chapters.path import step_after
from jitter_workshop.flow.chapters.suspects import (
    CALLS,
    LEAST_PIECE,
    is_call,
    is_near,
    is_right,
    is_unnamed,
    woken_by,
)
from jitter_workshop.flow.chapters.walk import ChapterWalk
from jitter_workshop.model.course import Chapter, Course, DiagnosisAsks, StepName
from jitter_workshop.model.diagnosis import Diagnosed, SeenCauses, Suspect
from jitter_workshop.model.evidence import ANOTHER_WORKSHOP, NOT_OURS, ExplainedStall
from jitter_workshop.model.irq_rows import RESCHEDULING
from jitter_workshop.model.spec import KINDS
from jitter_workshop.model.text import ID, LINE, REASON, WORD, clean, cleaned_sentence, many
from jitter_workshop.presenter.text.lines import Lines, column_sizes, small_title, table_lines, thin_bar, wrap
from jitter_workshop.presenter.text.styled import Text, cell_len
from jitter_workshop.report.cause_words import LISTED, cause_words
from jitter_workshop.report.diagnosis_words import (
    ACTS_SIGN,
    IN_A_GUEST,
    INTERRUPTS,
    LACKS_EVENT,
    LEAST_AROUND,
    NEAR,
    NO_EVENT,
    OF_THEMSELVES,
    OWN_SIGN,
    TASKS,
    UNDECIDED_TASKS,
    WITHOUT_EVENT,
    acts_on,
    around_told,
    came_most,
    can_end,
    longest_come_from,
    longest_come_from_it,
    longest_have_no_event,
    took,
    took_most,
    undecided_sentence,
    uneven_told,
)
from jitter_workshop.stats.scale import nice_ns

TITLES: dict[DiagnosisAsks, str] = {"most": "Who took it?", "ends": "What can the change end?"}
"""The title above the causes, for each question."""
READING = "Reading the evidence of the first run…"
NOT_RECORDED = "Nothing was measured here, so there is no run to explain. Read the worked example instead."
CHOOSE = "↑ ↓ or a number chooses a cause; then Enter names it. Enter alone, twice, skips the question."
UNCHOSEN = "No cause is chosen yet. ↑ ↓ or a number chooses one. Enter again skips the question."
SKIP = "skip it"
"""The words for the key Enter while no cause is chosen: once it skips the question, and before that."""
SKIPPED = "You skipped the question about the causes, which is noted. To answer it, go back with b."
_MOST_TIME, _MOST_OFTEN = "Which of them took most time in all?", "Which of them came most often?"
_LONGEST = "The longest stalls can have another cause."
ENDS = "Which of them can this chapter's change end?"
_NONE_ENDS = "This chapter's change acts on none of them, so the question is another one."
_TRACED = "The kernel's trace shows these causes in the stalls of your first run{}."
_ON_RECORD = "recorded, not measured here: these causes were seen in the stalls of the first run on another machine"
_EMULATED = (
    "recorded, not measured here: these counters grew during a first run on an emulated machine, where times mean "
    "nothing"
)
_EMULATED_HERE = "This machine is emulated, so no time is shown. These causes were seen in your first run{}."
_COUNTED = "These counters grew during your first run{}."
_NEEDS = (
    "This run has only counters, because a trace needs root's rights. Run the workshop as root to see the time of each "
    "cause."
)
NOT_HERE = "This is what was recorded on another machine."
BY_NAME = "cause, by name"
"""The head of a list before the answer, if no count orders it. The order of the times would show the solution."""
EACH = "each"
"""The head of the column with a cause's mean time in one of its stalls. Its product with the number of stalls is the
answer to the question which cause took most time."""
OWN_LOAD = "the chapter's noise"
ACTS = "the change acts on it"
LEAST_REST = 0.01
"""The least share of the stalled time without a row that is told below the list of causes."""
_ALONE = frozenset(name for kind in KINDS.values() if len(kind.threads) == 1 for name in kind.threads)
"""The names of the threads that are the only measured thread of their workload."""
_STARTS = "the stall begins"
"""The words for the start of a stall, if the first listed piece came later."""
_BAR, _LEAST_BAR, _LEAD = 12, 4, 6
_LABEL = 36
"""The cells of a cause's label from which on it is cut, so that the column of mean times stays."""
_WITH_BARS = 50
"""The least width of the list in which each row has a bar after the answer."""
_ANSWER_ROWS = ("    ✓ ", "    ✗ ")
"""The beginnings of the rows of a right answer and of the learner's wrong one, after the answer."""
_IN_BOTH = "a stall with two causes counts in both rows"
_SUMMED = "times: of {} threads together"
_BETWEEN_SIGNS = " · "
_ASKED = (
    (
        ("reschedule", RESCHEDULING, "RES"),
        "Another CPU asks this CPU to choose again which task runs. Mostly the other CPU has woken a task on this "
        "CPU. To stop such calls, keep the woken task off this CPU.",
    ),
    (
        (*CALLS, "call_function", "CAL"),
        "Another CPU asks this CPU to run a function, often to wake a task on this CPU. To stop such calls, keep the "
        "woken task or work item off this CPU.",
    ),
    (
        ("flush_tlb_func", "TLB"),
        "Another CPU changed memory mappings that both CPUs use, so it asks this CPU to flush its TLB. To stop these "
        "flushes, do not change memory mappings during the measurement.",
    ),
)
"""Interrupts that another CPU sends: their names in a trace and in counters, and a text on what stops them."""


_STOLEN = "The hypervisor ran something else. No setting of this kernel changes that."
_STAYS = (
    "This interrupt cannot be moved{}. Move your thread to another CPU, or let the device "
    "use fewer queues (a network card: ethtool -L)."
)


def diagnosis_question(seen: SeenCauses) -> str:
    """Return the question about the causes of a run's stalls. If there is no cause to choose from, return a sentence
    with the reason."""
    if not seen.quiet:
        return f"{_evidence(seen)} {_asked(seen)}"
    if not seen.stalls:
        return "No stall was seen in your first run, so there is no cause to name. Go on."
    return "Your first run had stalls, but nothing on this host shows their causes. Go on."


def _evidence(seen: SeenCauses) -> str:
    """Return a sentence that says where the causes were seen."""
    if seen.recorded:
        where = _EMULATED if seen.emulated else _ON_RECORD
        return cleaned_sentence(f"{where} ({clean(seen.recorded, LINE)})")
    where = _EMULATED_HERE if seen.emulated else _TRACED if seen.source == "trace" else _COUNTED
    return where.format(_which(seen))


def _asked(seen: SeenCauses) -> str:
    """Return the question alone. If the chapter's change acts on none of the causes, say first that another question is
    asked."""
    if seen.asks == "ends":
        return ENDS
    most = _MOST_OFTEN if seen.emulated else f"{_LONGEST} {_MOST_TIME}" if seen.longest is not None else _MOST_TIME
    return f"{_NONE_ENDS} {most}" if seen.wanted == "ends" else most


def skipped_sentence(walk: ChapterWalk, step: StepName) -> str:
    """Return a sentence for the step after ``diagnose`` if the learner skipped the question; else ""."""
    return SKIPPED if step == step_after(walk.chapter, STEP) and walk.diagnosis.skipped else ""


def _which(seen: SeenCauses) -> str:
    """Return words in brackets that say which run is meant, if the learner made it several times; else ""."""
    return f" (you made it {seen.made:,} times; this is the last time)" if seen.made > 1 else ""


def unnamed(seen: SeenCauses) -> str:
    """Return a sentence on the stalled time without an event, which is no choice. Return "" if there is no such
    time."""
    return NO_EVENT if seen.unnamed_ns else ""


def in_guest(seen: SeenCauses, answered: Diagnosed | None = None) -> str:
    """Return a sentence on what the time of interrupts contains beside their handlers. After the answer, it has the
    figures of the interrupt with most such time, if this is LEAST_AROUND of its time or more. Return "" without
    interrupts among the causes, without their times, and else for a run that was not made on a guest."""
    of_interrupts = [one for one in seen.suspects if one.kind in INTERRUPTS and seen.source == "trace"]
    most = max(of_interrupts, key=lambda one: one.around_ns, default=None)
    if answered is not None and most is not None and most.total_ns and most.around_ns >= LEAST_AROUND * most.total_ns:
        return around_told(most.label, most.around_ns, most.total_ns, seen.guest)
    return IN_A_GUEST if seen.guest and of_interrupts else ""


def uneven(seen: SeenCauses, answered: Diagnosed | None) -> str:
    """Return sentences on the largest cause on which the chapter's change acts, if a few of its stalls are far longer
    than the others. Return "" before the answer, without such a cause, and if its times are not known."""
    acting = [one for one in seen.suspects if one.acts and one.count and one.total_ns]
    most = max(acting, key=seen.weight, default=None)
    if answered is None or most is None or seen.source != "trace":
        return ""
    told = uneven_told(most.kind, most.label, most.typical_ns, (most.total_ns or 0) / (most.count or 1))
    return cleaned_sentence(told) if told else ""


def without_trace(seen: SeenCauses) -> str:
    """Return one sentence that says why this run has no trace, or what a trace needs. Return "" if the run has a trace
    or is recorded."""
    if seen.source != "counters":
        return ""
    if seen.why_no_trace == NOT_ASKED:
        return _NEEDS
    return cleaned_sentence(f"there are only counters, and no trace: {clean(seen.why_no_trace, REASON)}")


def cause(one: Suspect, told: bool) -> str:
    """Return a cause's label for the list. ``told``: True after the learner's answer. Then a cause that the chapter's
    own load made has OWN_SIGN, and one on which its change acts has ACTS_SIGN; before the answer, the signs would show
    the solution."""
    signs = ((OWN_SIGN, one.own_load), (ACTS_SIGN, one.acts))
    return " ".join([one.label, *(sign for sign, has in signs if told and has)])


def _signed(seen: SeenCauses) -> str:
    """Return the meaning of OWN_SIGN in the list of causes, "" if no cause has it."""
    own = [one for one in seen.suspects if one.own_load]
    among = " is among them" if any(one.kind == TASKS for one in own) else ""
    return f"{OWN_SIGN} {OWN_LOAD}{among}" if own else ""


def _legend(seen: SeenCauses, room: int) -> list[str]:
    """Return the meanings of the signs in the list of causes, why the numbers of stalls do not add up, and that the
    times are those of several threads: as one line, or as a line for each if one would be longer than ``room``. A
    part that does not apply is left out, and the threads also if the line of :func:`_ended` names them."""
    acted = f"{ACTS_SIGN} {ACTS}" if any(one.acts for one in seen.suspects) else ""
    signs = _BETWEEN_SIGNS.join(filter(None, (_signed(seen), acted)))
    several = seen.source == "trace" and sum(one.count or 0 for one in seen.suspects) > seen.stalls
    summed = _SUMMED.format(seen.threads) if seen.threads > 1 and not _ended(seen) else ""
    parts = [part for part in (signs, summed, _IN_BOTH if several else "") if part]
    whole = _BETWEEN_SIGNS.join(parts)
    return [whole] if len(whole) <= room else parts


def _ended(seen: SeenCauses) -> str:
    """Return a sentence on the time that the change can end. Return "" if the change acts on no cause, or without a
    trace, because counters do not show this time."""
    if seen.source != "trace" or not any(one.acts for one in seen.suspects):
        return ""
    return can_end(seen.ended_ns, seen.stalled_ns, seen.seconds, seen.threads)


def seen_often(seen: SeenCauses, one: Suspect) -> str:
    """Return, in words, the number of stalls with a cause and its mean time in one of them, or the number of its
    events. Return "" if the number is not known, and on an emulated machine, where it would show the right answer."""
    if one.count is None or seen.emulated:
        return ""
    if seen.source == "counters":
        return f"{one.count:,} times"
    mean = mean_told(one)
    return f"in {many(one.count, 'stall')}{f', {mean} {EACH}' if mean else ''}"


def head_of_list(seen: SeenCauses) -> str:
    """Return the head of the list of causes before the answer: it names an order that the numbers do not show."""
    return "cause" if seen.source == "trace" else BY_NAME


def _table(
    seen: SeenCauses, listed: Sequence[Suspect], unlisted: Sequence[tuple[int, str]], told: bool, room: int
) -> list[list[str]]:
    """Return the rows of the list of causes, the heads of the columns first.

    ``listed``: the causes in their order. ``unlisted``: times that are no choice, with their reasons. ``told``: True
    after the answer. ``room``: the width for all columns; the column of the mean times gives way to a bar.
    """
    trace = seen.source == "trace"
    cells = [["cause" if told else head_of_list(seen), "stalls" if trace else "times", EACH, "time"]]
    for one in listed:
        count = f"{one.count:,}" if one.count is not None else ""
        cells.append([cause(one, told), count, mean_told(one), _time(one)])
    cells += [[reason, "", "", nice_ns(ns)] for ns, reason in unlisted]
    times = told and not seen.emulated
    shown = (True, told or not seen.emulated, trace, times)

    def rows_of(shown: Sequence[bool]) -> tuple[list[list[str]], int]:
        rows = [[text for text, has in zip(row, shown, strict=True) if has] for row in cells]
        label, *others = column_sizes(rows)
        return rows, min(label, _LABEL) + sum(others) + 2 * len(others)

    whole, wide = rows_of(shown)
    return rows_of((*shown[:2], False, times))[0] if times and trace and wide + 1 + _LEAST_BAR > room else whole


def suspect_lines(seen: SeenCauses, cursor: int, answered: Diagnosed | None, width: int) -> Lines:
    """Return the list of causes from which the learner chooses. Each row has the number of the cause's stalls or
    events, and with a trace the mean time of the cause in one of these stalls. After the answer, each row has the
    cause's time, and the largest cause comes first; rows without a number follow for the times that are no choice.
    Before the answer, the order is that of ``seen``, because the order of the times would show the solution. Tasks that
    a recording does not name are always last. On an emulated machine the rows have no time, and show the number only
    after the answer. ``cursor``: the index of the row under the cursor, -1 for none."""
    told = answered is not None
    listed = sorted(seen.suspects, key=partial(_place, seen)) if told else seen.suspects
    times = told and not seen.emulated
    unlisted = _not_listed(seen) if times else []
    rows = _table(seen, listed, unlisted, told, width - _LEAD)
    # A long label gives way to the bars.
    beside = _LEAST_BAR + 1 if times and width >= _WITH_BARS else 0
    title, *drawn = table_lines(rows, width - _LEAD - beside, right=range(1, len(rows[0])))
    most = max([*map(seen.weight, seen.suspects), *(ns for ns, _ in unlisted)], default=0)
    lines: Lines = []
    for index, (one, line) in enumerate(zip(listed, drawn, strict=False)):
        sign = _row_sign(seen, one, answered)
        here = index == cursor and answered is None
        style = "bold accent" if here else "good" if sign == "✓" else "text"
        line.stylize(style)
        number = " " if told else index + 1
        row = Text.assemble((f"{'▸' if here else ' '} {number} {sign} ", style), line)
        room = min(width - row.cell_len - 1, _BAR)
        if answered is not None and seen.weight(one) and room >= _LEAST_BAR:
            # The labels tell the kinds of causes, so the bars need no colours of their own.
            row.append(f" {thin_bar(seen.weight(one), most, room)}", style if sign == "✓" else "faint")
        lines.append(row)
    for (ns, _), line in zip(unlisted, drawn[len(listed) :], strict=True):
        line.stylize("dim")
        row = Text.assemble(" " * _LEAD, line)
        if (room := min(width - row.cell_len - 1, _BAR)) >= _LEAST_BAR:
            row.append(f" {thin_bar(ns, most, room)}", "faint")
        lines.append(row)
    if seen.others and not (times and seen.others_ns):
        lines.append(Text(f"{'':{_LEAD}}and {many(seen.others, 'smaller cause')}", "dim"))
    # The meanings of the signs stand above the list: below it, a low screen would show the signs alone.
    signs: Lines = []
    for signed in filter(None, (*_legend(seen, width - _LEAD), _ended(seen)) if told else ()):
        signs += wrap(signed, width, " " * _LEAD, style="dim")
    lines = [*signs, Text.assemble(" " * _LEAD, title), *lines]
    if why := several_right(seen, answered):
        lines += wrap(Text(why, "good"), width, "✓ ")
    return lines


def mean_told(one: Suspect) -> str:
    """Return the mean time of a cause in one of its stalls, in words; "" if its time or their number is not known."""
    return nice_ns(round(one.total_ns / one.count)) if one.total_ns is not None and one.count else ""


def _not_listed(seen: SeenCauses) -> list[tuple[int, str]]:
    """Return the stalled times in ns that are no cause to choose, each with its reason: that of the smaller causes, and
    of a traced run also the times that the trace does not explain. The latter are left out below LEAST_REST of all.
    With these times, the rows add up to the time of which shares are told. The longest comes first."""
    smaller = [(seen.others_ns, many(seen.others, "smaller cause"))] if seen.others_ns else []
    if seen.source != "trace" or seen.emulated:
        return smaller
    listed = sum(map(seen.weight, seen.suspects)) + seen.others_ns
    # Without the time of the smaller causes, the rest is theirs, too.
    rest = seen.stalled_ns - listed - seen.unnamed_ns - seen.unknown_ns
    own = 0 if seen.others and not seen.others_ns else rest
    parts = ((seen.unnamed_ns, WITHOUT_EVENT), (seen.unknown_ns, LACKS_EVENT), (own, OF_THEMSELVES))
    large = [(ns, reason) for ns, reason in parts if ns >= LEAST_REST * seen.stalled_ns > 0]
    return sorted([*large, *smaller], reverse=True)


def _place(seen: SeenCauses, one: Suspect) -> tuple[bool, int, int]:
    """Return the key by which the causes are sorted after the answer."""
    return is_unnamed(seen, one), -seen.weight(one), -(one.count or 0)


def several_right(seen: SeenCauses, answered: Diagnosed | None) -> str:
    """Return a sentence that says why several causes are right answers. Return "" if fewer than two causes are marked
    with ✓, or if the question is what the chapter's change can end: ACTS_SIGN then says why."""
    right = [one for one in seen.suspects if _row_sign(seen, one, answered) == "✓"]
    if len(right) < 2 or answered is None or answered.most is None or seen.asks == "ends":
        return ""
    if not all(is_near(seen, one, answered.most) for one in right):
        why = "it is the largest cause, its time is near that of the largest, or it is the same event"
        return f"Each cause with a ✓ counts as right: {why}. A call and the task that it wakes are the same event."
    did = (
        ("this cause came at least {} as often as the most frequent cause")
        if seen.emulated
        else "this cause took at least {} of the time of the largest cause"
    )
    return f"Each cause with a ✓ is a right answer: {did.format(f'{100 * NEAR:.0f} %')}."


def rows_of_answer(lines: Sequence[str]) -> tuple[int, int] | None:
    """Return the first and the last line with a right answer or with the learner's, among the lines of a page after the
    answer; None if there is none."""
    signed = [at for at, line in enumerate(lines) if line.startswith(_ANSWER_ROWS)]
    return (signed[0], signed[-1]) if signed else None


def _row_sign(seen: SeenCauses, one: Suspect, answered: Diagnosed | None) -> str:
    """Return ✓ for a cause that is a right answer, ✗ for a wrong answer that was given, and a blank for all others."""
    if answered is None:
        return " "
    if (answered.most is not None or seen.asks == "ends") and is_right(seen, one, answered.most):
        return "✓"
    return "✗" if answered.chosen == one and answered.right is False else " "


def _time(one: Suspect) -> str:
    return nice_ns(one.total_ns) if one.total_ns is not None else "–"


def largest_cause_sentences(found: Diagnosed, seen: SeenCauses, chapter: Chapter, course: Course) -> tuple[str, str]:
    """Return two sentences on the causes of a run. The first names the largest cause with its time. The second says
    whether the chapter's change acts on this cause. If the largest cause is not known, the sentences say so. If the
    question is what the chapter's change can end, both sentences are about the learner's answer."""
    most, chosen = found.most, found.chosen
    if seen.asks == "ends":
        share = (chosen.total_ns or 0) / seen.stalled_ns if seen.stalled_ns else 0.0
        time = took(chosen.label, chosen.total_ns, min(share, 1.0))
        acts = _with_woken(chosen, seen, chapter, course) or means(chosen, chapter, course, named=bool(time))
        return time, UNDECIDED_TASKS if found.right is None else acts
    if most is None:
        unknown = (seen.unknown_ns, seen.stalled_ns)
        said = undecided_sentence(seen.source, chosen.label, chosen.total_ns, found.right, *unknown)
        return said, (
            "If you run the workshop as root, a run also records a trace. The trace shows the time of each cause."
        )
    other = "" if chosen == most else chosen.label
    meaning = _with_woken(most, seen, chapter, course) or means(most, chapter, course)
    if seen.emulated:
        return came_most(most.label, other), meaning
    largest = most.total_ns or 0
    of_these = seen.unnamed_ns > largest
    said = took_most(most.label, largest, found.share, other, chosen.total_ns, seen.threads, of_these=of_these)
    return " ".join(filter(None, (said, _of_longest(most, seen)))), meaning


def _of_longest(most: Suspect, seen: SeenCauses) -> str:
    """Return a sentence on the longest stalls: the largest cause in all stalls need not be theirs. Return "" if they
    are not known, or if the run has no other stalls."""
    longest = seen.longest
    if longest is None or longest.number >= seen.stalls:
        return ""
    cause, times = longest.cause, (longest.cause.total_ns or 0, longest.total_ns)
    if (cause.kind, cause.name) == (most.kind, most.name):
        return longest_come_from_it(longest.number, *times)
    if cause.kind == "no_event":
        return longest_have_no_event(longest.number, *times)
    return longest_come_from(longest.number, cause.label, *times)


def _with_woken(most: Suspect, seen: SeenCauses, chapter: Chapter, course: Course) -> str:
    """Return sentences on the task that was woken by interrupts from another CPU. ``most``: the cause with the largest
    part. Return "" if ``most`` is not such an interrupt, or if the task is not known."""
    woken = woken_by(most, seen)
    if woken is most:
        return ""
    numbers = f"the call was seen in {most.count or 0:,} stalls, and {woken.label} in {woken.count or 0:,}"
    lead = (
        "The trace shows that this call mostly wakes a task on this CPU"
        if any(one.woken and is_call(one) for one in seen.suspects)
        else "Such a call often wakes a task on this CPU"
    )
    return f"{lead}: {numbers}. {means(woken, chapter, course)}"


def means(most: Suspect, chapter: Chapter, course: Course, *, named: bool = False) -> str:
    """Return a sentence that says whether a change of this or another chapter acts on the cause ``most``. ``named``:
    True if the sentence before names this cause and no other."""
    how, title = reach_of_course(most, chapter, course)
    title, label = clean(title, ID), "" if named else most.label
    if how == "this":
        return acts_on(label, True)
    if how == "explained":
        but = "" if chapter.changes == "nothing" else " The change that it makes does not act on it."
        return f"This chapter explains what helps against {label or 'this cause'}.{but}"
    if most.kind == "task" and most.name.endswith((NOT_OURS, ANOTHER_WORKSHOP)):
        return "Another workshop probably measured on this CPU. Measure again when its run has ended."
    if how == "another":
        if chapter.changes == "nothing":
            return f"The chapter '{title}' treats {label.partition(' (')[0] or 'it'}."
        return f"{acts_on(label, False)} The chapter '{title}' treats it."
    if how == "bound" and most.name.startswith("kworker/") and (other := _on_work_items(chapter, course)):
        return f"This worker is bound to its CPU. The chapter '{other}' shows how to find its work."
    if how == "bound":
        return "This thread is bound to its CPU, so no setting moves it. Find out why the thread has work."
    if how == "below":
        return _STOLEN
    if most.kind == "irq":
        why = why_irq_stays(most)
        return _STAYS.format(f": {why}" if why else "")
    if most.kind == "vector" and (asked := next((said for names, said in _ASKED if most.name in names), "")):
        return asked
    return f"No chapter of this course has a setting against {label or 'this cause'}."


def _on_work_items(chapter: Chapter, course: Course) -> str:
    """Return the title of the chapter on work items; "" if there is none, or if it is ``chapter`` itself."""
    found = next((one for one in course.chapters if "workqueue-mask" in one.tunables), chapter)
    return "" if found.id == chapter.id else clean(found.title, ID)


def judged_opening(found: Diagnosed, seen: SeenCauses) -> str:
    """Return the sentence before a judged answer. An answer that is right although its cause took less time than the
    largest gets a sentence with the reason."""
    same = seen.asks == "most" and found.right and found.most is not None
    if same and found.most is not None and not is_near(seen, found.chosen, found.most):
        return "✓ Counts as right: it is not the largest cause, but the same event. "
    return {True: "✓ Right. ", False: "✗ Not this one. ", None: ""}[found.right]


def judged_diagnosis(found: Diagnosed, seen: SeenCauses, chapter: Chapter, course: Course) -> str:
    """Return sentences that judge the learner's answer. They say whether the answer is right, what the largest cause
    is, and which change acts on this cause. If the question is what the change can end, they are about the answer. If
    the evidence is recorded, the last sentence says so."""
    first, second = largest_cause_sentences(found, seen, chapter, course)
    said = (cleaned_sentence(first) if first else "", second, NOT_HERE if seen.recorded else "")
    return f"{judged_opening(found, seen)}{' '.join(filter(None, said))}"


def diagnosis_page(seen: SeenCauses, cursor: int, answered: Diagnosed | None, width: int) -> Lines:
    """Return the page of the step ``diagnose``. It has the question, the list of causes, and one stall of the run.
    After the answer, the page has the notes on the run instead of the question."""
    marks = ("RECORDED" if seen.recorded else "", "EMULATED" if seen.emulated else "")
    marked = "   " + ", ".join(filter(None, marks)) if any(marks) else ""
    found: Lines = [small_title(f"{TITLES[seen.asks].upper()}{marked}")]
    if answered is None or seen.quiet:
        found += wrap(diagnosis_question(seen), width)
    if needs := without_trace(seen):
        found += wrap(needs, width, style="dim")
    found += [Text()] if len(found) > 1 else []
    found += [*suspect_lines(seen, cursor, answered, width), Text()] if not seen.quiet else []
    # After the answer a row of the list has the time without an event.
    told_before = unnamed(seen) if answered is None else ""
    below = (
        [*filter(None, (told_before, uneven(seen, answered), in_guest(seen, answered)))]
        if not seen.quiet or told_before
        else []
    )
    found += [line for told in below for line in wrap(told, width, style="dim")]
    found += [Text()] if below else []
    for note in (notes := seen.notes if answered is not None else ()):
        found += wrap(clean(note, REASON), width, style="dim")
    found += [Text()] if notes else []
    if seen.stall is not None and not seen.quiet:
        found += one_stall(seen.stall, width)
    return found


def one_stall(stall: ExplainedStall, width: int) -> Lines:
    """Return one stall of the run, piece by piece: when each piece began and what it was. No lengths are shown: the
    learner computes them from the beginnings. The first line is the start of the stall."""
    begun = [(piece.offset_ns, cause_words(piece.kind, piece.name, LISTED)) for piece in stall.timeline]
    if begun and begun[0][0]:
        begun.insert(0, (0, _STARTS))
    # The threads of the ring have names of their own.
    who = "the measured thread" if stall.thread in _ALONE else clean(stall.thread, WORD)
    begun.append((stall.duration_ns, f"{who} goes on"))
    wide = max(cell_len(nice_ns(at)) for at, _ in begun)
    rows = [[f"at {nice_ns(at):>{wide}}", what] for at, what in begun]
    told = f"Pieces shorter than {100 * LEAST_PIECE:.0f} % of this stall are left out."
    shown = table_lines(rows, width, head=False)
    return [small_title("ONE OF THESE STALLS, FROM THE TRACE"), *shown, *wrap(told, width, style="faint")]
