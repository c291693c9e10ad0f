"""Say what each action does that both surfaces have. The screen shows these texts beside its keys. The line-by-line
workshop shows them beside its commands."""

from __future__ import annotations

WORDS = "The words of this page, each in a sentence"
STATUS = "What this host's settings do to latency"
REPORT = "Preview a report, then write it to a file"
SUMMARY_TITLE = "The course from first to last"
SUMMARY = f"{SUMMARY_TITLE}, step by step"
EXPLAIN = "Show where the time of your own program went"
PRACTICE = "A machine with a real kernel to practise on, where you are root"
LOAD = "Look at the load of this host, for a second or two"
RESTORE_ALL = "Restore everything that this tool has changed on this host"
APPLY_AGAIN = "Apply the changes of this session again, in one plan"
LEAVE = "Leave; what was measured is kept"
GO_TO_INSTRUCTOR = "Go to the chapter and step where the instructor is"

BACK = "Go to the previous step"
HINT = "One more hint"
TABLE = "The same numbers as a table"
CURVES_OF_2015 = "the curves published in 2015"
IMPORTED_CURVES = "the imported curves of other tools"
CAUSES = "Show what took the time, by the kernel's trace; may need one more run"
NOISE = "Measure beside a noise, or without one"
PROVE = "At 'compare': prove the change, or see the newest proof"
MORE_COMMANDS = "At 'explain': show the next commands to run by hand"
BY_HAND = "At 'apply': type the writes into a root shell yourself, while the workshop watches"
NEXT_BOOT = "Plan boot parameters for the next boot only"
RESTORE = "Restore what this chapter has changed on this host; in a hunt, what keeps noises away"
PROGRAMS = "Choose one of the three programs"
COMMAND = "Type the command of your own program"

HUNT = "Begin a hunt: find and name a hidden noise"
NAME = "Name the hidden noise"
GIVE_UP = "Give up, and see which noise it was"
ENOUGH = "End the noise that you named, without a further cure"
CURE = "Measure once more, with your cure applied"


def beside_a_word(meaning: str) -> str:
    """Return an action's meaning as it is shown beside a command: with a small first letter."""
    return f"{meaning[:1].lower()}{meaning[1:]}"
