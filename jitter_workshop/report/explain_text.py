"""``status --explain ID``: one check: why it matters, what stands, the risk, the undo, how to look by hand."""

from __future__ import annotations

from collections.abc import Sequence

from jitter_workshop.model.assessment import Assessment
from jitter_workshop.model.text import clean
from jitter_workshop.report.status_text import MARKS
from jitter_workshop.report.terminal import Style, wrap
from jitter_workshop.tuning.base import Setting, Settings, Tunable, Unavailable
from jitter_workshop.tuning.context import Host

_LABEL = 14
_FILES = 24
"""Files that are listed; the pattern says the rest."""

_RISKS = {"low": "low", "medium": "medium", "high": "high: know what you do"}
_WHEN = {
    "runtime": "at once, until it is given back or the host reboots",
    "run": "for as long as a run lasts",
    "boot": "from the next boot on, until it is given back",
    "host": "only by the owner of the hypervisor",
    "report": "it is reported, this tool does not change it",
}


def render(tunable: Tunable, check: Assessment, host: Host, style: Style) -> str:
    """The page, ending with a line break. ``check``: what ``tunable`` says of ``host``."""
    mark, word, colour = MARKS[check.state]
    lines = [
        style.paint(f"{tunable.title} ({tunable.id})", "strong"),
        style.paint(f"{mark} {word}", colour) + (" · a recorded host" if host.root.recorded else ""),
        "",
    ]
    facts = [("why", tunable.why), ("what stands", _stands(check))]
    if check.wanted is not None:
        facts.append(("wanted", clean(check.wanted, 300)))
    facts += [("it says", clean(check.reason, 600)), ("to do", clean(check.fix, 600))]
    if tunable.values:
        facts.append(("values", tunable.values + (f" (default: {tunable.default})" if tunable.default else "")))
    facts += [("in effect", _WHEN[tunable.when])]
    if tunable.changes_host:
        facts += [("risk", _RISKS[tunable.risk]), ("danger", tunable.danger), ("undo", _undo(tunable))]
    if tunable.culprits:
        facts.append(("rewritten by", ", ".join(tunable.culprits)))
    facts.append(("document", tunable.document))
    for name, text in facts:
        lines += _fact(name, text, style)
    lines += _files(tunable, check, host, style)
    return "\n".join(lines) + "\n"


def _stands(check: Assessment) -> str:
    return clean(check.value, 300) if check.value is not None else "not known"


def _undo(tunable: Tunable) -> str:
    if tunable.when == "boot":
        return f"jitter-workshop restore {tunable.id} takes out what was added; the boot after that is as before"
    return f"jitter-workshop restore {tunable.id} writes back what stood there, unless somebody changed it since"


def _fact(name: str, text: str, style: Style) -> list[str]:
    if not text:
        return []
    body = wrap(text, style.width - _LABEL)
    first = style.paint(name.ljust(_LABEL), "dim") + body[0]
    return [first, *(" " * _LABEL + line for line in body[1:])]


def _files(tunable: Tunable, check: Assessment, host: Host, style: Style) -> list[str]:
    """The exact files with what they say, and the command that shows the same."""
    lines: list[str] = []
    settings = _settings(tunable, host)
    if settings:
        lines += ["", style.paint("files", "dim")]
        wide = max(len(clean(s.path, 200)) for s in settings[:_FILES])
        for setting in settings[:_FILES]:
            path = clean(setting.path, 200)
            now = clean(setting.current, 60) if setting.current is not None else clean(setting.reason, 60)
            lines.append(f"  {path.ljust(min(wide, style.width // 2))}  {now or '(empty)'}"[: style.width])
        if len(settings) > _FILES:
            lines.append(f"  … {len(settings) - _FILES} more")
    elif tunable.owns:
        lines += ["", style.paint("files", "dim"), *(f"  {pattern}" for pattern in tunable.owns)]
    paths = [s.path for s in settings[:4]] or list(check.paths[:4])
    files = [clean(p, 200) for p in paths if p.startswith("/")]
    if files:
        top = "" if not host.root.recorded else clean(str(host.root.root), 200).rstrip("/")
        lines += ["", style.paint("by hand", "dim"), *(f"  {_look(host, path)} {top}{path}" for path in files)]
    return lines


def _look(host: Host, path: str) -> str:
    return "ls" if host.root.is_dir(path) else "cat"


def _settings(tunable: Tunable, host: Host) -> Sequence[Setting]:
    if not isinstance(tunable, Settings):
        return ()
    try:
        return tunable.settings(host, None)
    except Unavailable:
        return ()
