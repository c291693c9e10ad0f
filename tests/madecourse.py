"""A small course for tests: one chapter that sets host-wide tunables, one without measurements, one for a guest's lack
of a governor."""

from __future__ import annotations

from pathlib import Path

COURSE = """
format_version = 1
id = "small"
title = "A small course"
chapters = ["01-pages", "02-reading", "03-clock"]
"""

_COMMON = """
format_version = 1
id = "{id}"
title = "{title}"
summary = "A chapter for tests."
minutes = {minutes}
hot_cpus = 1
hints = ["The only hint of {id}."]
learnt = ["Take this along from {id}."]
"""

_MEASURED = """
changes = "tunables"
tunables = [{tunables}]
recording = "lab-stock"
recording_after = "lab-tuned"
steps = ["look", "predict", "measure", "apply", "again", "compare", "explain"]
look = ["system", "cpus"]

[[measurement]]
slot = "measure"
label = "before {id}"
workload = "ring"
placement = "auto"
preset = "quick"

[[measurement]]
slot = "again"
label = "after {id}"
workload = "ring"
placement = "auto"
preset = "quick"

[shows]
figure = "interference"
uncounted = "No counter holds the time that others took."
at_least = 1.5

[[by_hand]]
command = "grep -H . /proc/sys/vm/stat_interval # {{cpus}}"
why = "How often each CPU is asked for its counters."
reads = true

[[check]]
mark = "setting"
tunable = "{check}"

[[check]]
mark = "curve"
slot = "again"

[[page_when]]
step = "look"
when = "available"
text = "Here something can be better."

[[page_when]]
step = "look"
when = "good"
text = "Here all is good already."

[[page_when]]
step = "look"
when = "not_here"
text = "Here is nothing to set."
"""

_CHOICE = """
[prediction]
kind = "choice"
question = "Who wakes a CPU once a second?"

[[prediction.answer]]
id = "vmstat"
text = "The counters of the memory management"
right = true
explanation = "vmstat_update folds them, on each CPU."

[[prediction.answer]]
id = "nobody"
text = "Nobody"
explanation = "Look at stat_interval."
"""

_MARK = """
[prediction]
kind = "mark"
question = "Where will p99.9 be with a steady clock?"
slot = "again"
percentile = "99.9"

[[prediction.answer]]
id = "short"
text = "up to 1 ms"
up_to_ns = 1_000_000
explanation = "That is the height of interrupts."

[[prediction.answer]]
id = "long"
text = "longer"
explanation = "That is the height of slices."
"""

_ALONE = """
changes = "nothing"
steps = ["look", "measure", "again", "compare"]
look = ["system"]

[[measurement]]
slot = "measure"
label = "first alone"
workload = "spin"
placement = "auto"
preset = "quick"

[[measurement]]
slot = "again"
label = "second alone"
workload = "spin"
placement = "auto"
preset = "quick"
"""

_READING = """
changes = "nothing"
steps = ["look", "predict", "explain"]
look = ["system"]

[[by_hand]]
command = "vmstat 1 5"
why = "Who can run, a line a second; on CPU {producer_cpu} among others."
reads = true
"""


def write(folder: Path, tunables: tuple[str, ...] = ("thp", "stat-interval")) -> Path:
    """The course below ``folder``, which is made."""
    measured = ["look", "predict", "measure", "apply", "again", "compare", "explain"]
    words = ", ".join(f'"{word}"' for word in tunables)
    check = tunables[0].partition("=")[0]
    lessons = {
        "01-pages": ("pages", "Pages", _MEASURED.format(id="pages", tunables=words, check=check) + _CHOICE, measured),
        "02-reading": ("reading", "Reading only", _READING + _CHOICE, ["look", "predict", "explain"]),
        "03-clock": (
            "clock",
            "The clock",
            _MEASURED.format(id="clock", tunables='"governor", "min-frequency"', check="governor") + _MARK,
            measured,
        ),
    }
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "course.toml").write_text(COURSE)
    for name, (ident, title, text, steps) in lessons.items():
        (folder / name).mkdir(exist_ok=True)
        (folder / name / "lesson.toml").write_text(
            _COMMON.format(id=ident, title=title, minutes=1 if steps != measured else 2) + text
        )
        pages = "".join(f"## {step}\n\nThe page of {ident} for {step}.\n\n" for step in steps)
        (folder / name / "lesson.md").write_text(f"# {title}\n\n{pages}")
    return folder


def add_alone(folder: Path) -> None:
    """Add a chapter to the course that measures twice and changes nothing."""
    head = (folder / "course.toml").read_text()
    (folder / "course.toml").write_text(head.replace('"03-clock"]', '"03-clock", "04-alone"]'))
    (folder / "04-alone").mkdir()
    (folder / "04-alone/lesson.toml").write_text(_COMMON.format(id="alone", title="Alone", minutes=1) + _ALONE)
    pages = "".join(
        f"## {step}\n\nThe page of alone for {step}.\n\n" for step in ("look", "measure", "again", "compare")
    )
    (folder / "04-alone/lesson.md").write_text(f"# Alone\n\n{pages}")
