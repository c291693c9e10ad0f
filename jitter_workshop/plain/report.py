"""Make a report line by line: show its content and the names in it, then write it to a new file."""

from __future__ import annotations

from jitter_workshop.errors import WorkshopError
from jitter_workshop.flow.attribution import Stopped
from jitter_workshop.flow.chapters.workshop import Workshop
from jitter_workshop.flow.reporting.draft import FORMATS, RAW, Draft, Format, opened_with, report_folders
from jitter_workshop.flow.reporting.files import write_files
from jitter_workshop.model.text import PATH, REASON, SENTENCE, WORD, clean
from jitter_workshop.plain.run import stopped_by_ctrl_c
from jitter_workshop.plain.talk import Talk
from jitter_workshop.presenter import report_preview as preview


def tell_report(workshop: Workshop, talk: Talk) -> None:
    """Show the report, and write it if the learner agrees. Raise WorkshopError if there is nothing to report."""
    try:
        with stopped_by_ctrl_c() as progress:
            draft = Draft.of(workshop, progress)
    except Stopped:
        talk.tell("Stopped: r begins anew.")
        return
    chosen, private = FORMATS[RAW], False
    _tell(draft, chosen, private, talk)
    while True:
        names = "n with names" if private else "n hide names"
        others = ", ".join(name for name in FORMATS if name != chosen.name)
        answer = talk.ask(f"Enter write {chosen.name} · or as {others} · {names} · b back")
        if answer == "b":
            return
        if answer == "n":
            private = not private
            _tell(draft, chosen, private, talk)
        elif answer in ("", *FORMATS):
            chosen = FORMATS[answer] if answer else chosen
            if _write(draft, chosen, private, talk):
                return
        else:
            talk.tell(f"Unknown command '{clean(answer, WORD)}'.")


def _tell(draft: Draft, chosen: Format, private: bool, talk: Talk) -> None:
    """Print a preview in the report's order. The last section tells which private names other people would see in the
    report."""
    document = draft.shown(private)
    talk.say("", "THE REPORT:", *preview.preview_opening(document, talk.width))
    for overlay in document.overlays[:1]:
        talk.say(*preview.chart_title(document.overlays, 0, talk.width))
        talk.chart(preview.first_curves(overlay))
        talk.say("")
    talk.say(*preview.preview_sections(document, talk.width))
    talk.say(*preview.private_data_lines(document, chosen.name == RAW, talk.width))


def _write(draft: Draft, chosen: Format, private: bool, talk: Talk) -> bool:
    """Write the report to the first folder that accepts it. Ask the learner before each further folder is tried. Return
    True if the report was written."""
    for number, folder in enumerate(report_folders()):
        path = draft.path(chosen, private, folder)
        files = draft.files(chosen, private, path.name)
        try:
            made = write_files(files, folder)
        except WorkshopError as error:
            talk.tell(f"! {error.message}.", "", "  ")
            following = report_folders()[number + 1 :]
            if not following or talk.ask(
                f"Enter tries {clean(following[0], REASON)} · with any other answer no report is written"
            ):
                return False
        else:
            talk.say("", f"Written: {clean(made[0], SENTENCE)}")
            talk.tell(f"({preview.size_of_files(files)})")
            # Each command stands on its own line and is not wrapped, so that it can be copied.
            here, there = opened_with(made[0], draft.host)
            talk.say(f"open it:   {clean(here, PATH)}", f"fetch it:  {clean(there, PATH)}")
            return True
    return False
