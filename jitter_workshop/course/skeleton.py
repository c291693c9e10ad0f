"""Hold the files of a new chapter: a small one that works as it stands, with comments for its author."""

from __future__ import annotations

LESSON_TOML = """\
# A chapter of the workshop. Text after # is a comment. docs/writing-lessons.md explains each field;
# 'jitter-workshop lessons check --course DIR' names every mistake with its file and line.

format_version = 1
id = "@ID@"  # the word after --chapter; sessions keep their progress under it, so never change it
title = "@TITLE@"
summary = "Say in one sentence what the learner will know in the end."
minutes = 5
hot_cpus = 2  # how many CPUs it needs; on a host with fewer, nothing is measured
changes = "placement"  # nothing, placement (of the measured threads), or tunables (see the end of this file)
steps = ["look", "predict", "measure", "plan", "apply", "again", "compare", "explain"]  # leave out what you do not need
look = ["cpus", "load", "tick"]  # facts that are read from the host in the step 'look'

hints = [
    "A first hint: ask what the learner has seen.",
    "A second hint, which says more.",
]

learnt = [
    "What to remember, a sentence each.",
]

# The measurements: at most one run for 'measure' and one for 'again'.

[[measurement]]
slot = "measure"
label = "free"
workload = "ring"  # ring, spin, wakeup or ack
placement = "none"  # none: the scheduler is free; auto: a CPU for each thread
preset = "quick"  # quick, standard, long

[[measurement]]
slot = "again"
label = "placed"
workload = "ring"
placement = "auto"
preset = "quick"

# The prediction: a mark on the curve (answers with growing up_to_ns, the last one without), or a choice.

[prediction]
kind = "mark"
question = "Where will p99.9 be when each thread has a CPU of its own?"
slot = "again"
percentile = "99.9"

[[prediction.answer]]
id = "short"
text = "up to 20 µs"
up_to_ns = 20_000
explanation = "Say what keeps it so low. This text is shown after the measurement."

[[prediction.answer]]
id = "long"
text = "over 20 µs"
explanation = "Say what is left that can take so long."

# Commands that show the same by hand. They are shown to the learner and never run.

[[by_hand]]
command = "taskset -cp {accumulator_tid}"
why = "The CPUs on which the accumulator of the last run may run."

# The conditions of each mark. An improvement is never required: a quiet host may not show one.

[[check]]
mark = "setting"
slot = "again"
placement = "auto"

[[check]]
mark = "curve"
slot = "measure"

[[check]]
mark = "curve"
slot = "again"

# A chapter that changes settings of the host has these lines instead of the lines above with the same names,
#
#   changes = "tunables"
#   tunables = ["thp"]             # ids as 'jitter-workshop status' shows them; ID=VALUE for a value of your own
#   recording = "lab-stock"        # the recorded host to teach on where this host lacks the tunable
#   recording_after = "lab-tuned"  # the same host after the change
#
# and for its setting this check, which must fail on the first recording and pass on the second:
#
#   [[check]]
#   mark = "setting"
#   tunable = "thp"
#
# A page can have extra text for one state of the host (available: it can be better; good; not_here):
#
#   [[page_when]]
#   step = "look"
#   when = "not_here"
#   text = "This host lacks it. The rest is a recording."
"""

LESSON_MD = """\
# @TITLE@

## look

One page a step, each below its heading of two number signs. Keep it short:
one idea a page, 60 to 140 words, in lines of at most 76 characters.

Say what to look for in the facts that this host shows beside the page.

## predict

Say what the learner knows by now, and ask what the result will be.

## measure

Say what is measured, and how.

## plan

Every change that would be made is shown here. Say what it means.

## apply

Say what the change does, how long it holds, and what it may cost.

## again

The same run once more, after the change.

## compare

Say where on the curve to look, and what either outcome means. A noisy host
may show no difference; then that is the result.

## explain

Say what was cured and what was not, and which noise is left.

Source: name the kernel document, the manual page or the measurement on
which each claim rests.
"""

COURSE_TOML = """\
# A course: its chapters in teaching order, each a folder beside this file.
# Start it with: jitter-workshop --course DIR

format_version = 1
id = "@ID@"  # small letters, digits and hyphens
title = "@TITLE@"
chapters = [
    "@FOLDER@",
]
"""


def lesson_files(ident: str) -> dict[str, str]:
    """Return file name → text of a new chapter whose id is ``ident``."""
    return {
        "lesson.toml": _filled(LESSON_TOML, ID=ident, TITLE=title_of(ident)),
        "lesson.md": _filled(LESSON_MD, TITLE=title_of(ident)),
    }


def course_file(ident: str, folder: str) -> str:
    """Return the text of a course.toml with one chapter."""
    return _filled(COURSE_TOML, ID=ident, TITLE=title_of(ident), FOLDER=folder)


def title_of(ident: str) -> str:
    """Return ``Huge pages`` for ``huge-pages``."""
    words = ident.replace("-", " ").strip()
    return words[:1].upper() + words[1:]


def _filled(text: str, **words: str) -> str:
    for name, word in words.items():
        text = text.replace(f"@{name}@", word)
    return text
