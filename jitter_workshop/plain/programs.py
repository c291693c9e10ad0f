"""Explain a program line by line. The user chooses a process from a list, and sees where its time went."""

from __future__ import annotations

from jitter_workshop.flow.chapters.workshop import Workshop
from jitter_workshop.flow.programs.observing import explain_running
from jitter_workshop.flow.programs.targets import list_processes
from jitter_workshop.host.root import HostRoot, is_count
from jitter_workshop.model.program import OBSERVED_S
from jitter_workshop.model.text import WORD, clean
from jitter_workshop.plain.talk import Talk
from jitter_workshop.presenter.runs import program as words

_MOST_LISTED = 20


def tell_program(workshop: Workshop, talk: Talk, pid: str = "") -> None:
    """Explain the process with the id ``pid``. If ``pid`` is "", the user first chooses a process from a list. Raise
    WorkshopError if the process cannot be observed."""
    if workshop.context.recorded:
        talk.tell(words.NO_PROGRAM_HERE)
        return
    start_ticks: int | None = None
    if not pid:
        found = list_processes(HostRoot())[:_MOST_LISTED]
        talk.tell(words.CHOOSE if found else words.NOTHING_TO_LIST)
        talk.say("", *words.process_rows(found, talk.width, numbered=True), "")
        answer = talk.ask(f"1-{len(found)} explain · pid NUMBER another process · Enter back")
        if not answer:
            return
        pid = answer.removeprefix("pid").strip()
        if pid == answer and is_count(answer) and 0 < int(answer) <= len(found):
            chosen = found[int(answer) - 1]
            pid, start_ticks = str(chosen.pid), chosen.start_ticks
    if not is_count(pid) or len(pid) > 10:
        talk.tell(f"'{clean(pid, WORD)}' is not the number of a process.")
        return
    talk.tell(f"Observing for {OBSERVED_S} s…")
    agent = workshop.context.agent_connection.beside()
    report = explain_running(int(pid), None, None, float(OBSERVED_S), start_ticks=start_ticks, agent=agent)
    talk.say("", *words.program_report_lines(report, talk.width))
