"""Say why a key of a chapter does nothing at the present step, in one short line."""

from __future__ import annotations

FIRST_STEP = "This is the chapter's first step."
NO_TABLE = "This step compares no runs, so there is no table."
NO_PAGES = "Nothing is hidden here: Tab has nothing to switch to."
NO_COPY = "There is no command to copy at this step."
NO_MASK = "The key a opens a mask, at 'apply' in a chapter about masks."
NO_SKIP = "n skips the rest of a page. It skips no question, no run and no change."
NO_BOOT = f"{NO_SKIP} In a plan of boot parameters, n chooses between one boot and every boot."
NO_FOLD = "f shows more commands at the step 'explain', as long as there are more."
NO_GROUP = "+ shows each write of a group of equal writes, at the step 'apply'."
NO_CPUS = "p picks CPUs where a chapter binds threads, and proves a change at 'compare'."
NO_NOISE = "This step starts no noise."
NO_CURVES = "← and → have no curve to highlight here."
NO_NUMBER = "Nothing has this number here."
NO_KEY = "This key does nothing here; ? lists the keys."
NO_COMMAND = "This chapter is not about a program of yours."


def why_no_causes(rehearsed: bool, step: str, *, answered: bool = False) -> str:
    """Return the reason why the key v shows nothing. ``rehearsed``: the chapter is taught on a recording. ``answered``:
    the learner has answered the question of the step ``diagnose``."""
    if rehearsed:
        return "Nothing was measured here, so v has no run to explain."
    if step == "diagnose" and not answered:
        return "Answer first, because v shows the answer. From the step 'again' on, v shows what took the time."
    return "From the step 'again' on, v shows what took the time."
