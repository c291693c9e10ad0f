"""Teach a chapter on a recording, line by line: each page says so, and settings replace curves."""

from __future__ import annotations

from jitter_workshop.flow.chapters.walk import ChapterSession
from jitter_workshop.flow.chapters.workshop import Workshop
from jitter_workshop.model.text import clean
from jitter_workshop.plain.talk import Talk
from jitter_workshop.presenter.chapter import answers_explained, settings_compared


def tell_where(workshop: Workshop, walk: ChapterSession, talk: Talk) -> None:
    """Tell that the following page is a recording, and why. Tell nothing where the page is about this host."""
    reason = clean(walk.host.reason, 300)
    if not reason:
        return
    if not walk.host.rehearsed:
        talk.tell(f"NOT ON THIS HOST: {reason}.")
    else:
        where = ", because --root names one"
        if walk.host.recording:
            reason = "the given recording does not have all that this chapter needs" if workshop.recorded else reason
            where = f" ({clean(walk.host.recording, 40)}): {reason}"
        talk.tell(f"ON A RECORDING{where}. Nothing is measured or written.")
    talk.say("")


def tell_comparison(walk: ChapterSession, talk: Talk) -> None:
    """Tell the recordings' settings before and after, in place of two curves, and the explanation of each answer."""
    chapter = walk.chapter
    changes = walk.host.compared()
    if changes:
        talk.tell(f"The settings on the recordings {chapter.recording} and, afterwards, {chapter.recording_after}:")
        talk.say("", *settings_compared(changes, talk.width), "")
    curves, source = walk.recorded_curves("compare")
    if curves:
        talk.chart(curves)
        talk.table(curves)
        these = "This curve was" if len(curves) == 1 else "These curves were"
        talk.tell(f"Nothing was measured here. {these} {clean(source, 200)}.")
    else:
        talk.tell("Nothing was measured, so there are no curves to compare.")
    talk.say("")
    task = chapter.prediction
    if task is not None and task.slot is not None:
        talk.say(*answers_explained(task, walk.progress.prediction, talk.width), "")
