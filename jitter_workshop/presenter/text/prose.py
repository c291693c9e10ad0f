"""Style lesson text: turn a small, safe subset of Markdown into styled lines of a given width.

The subset has headings, paragraphs, lists, quotes, tables (shown unchanged), fenced code, ``code``, **strong** and
*emphasis*. Only the text of a link is shown. A paragraph with sources is dim, because no learner has to read it.
Control characters never reach the terminal.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from jitter_workshop.model.picture import is_picture, parse_picture
from jitter_workshop.model.text import clean, split_code
from jitter_workshop.model.walk import CpuView
from jitter_workshop.presenter.text.lines import wrap
from jitter_workshop.presenter.text.pages import SOURCE, kept_together
from jitter_workshop.presenter.text.styled import Text, cell_len

_INLINE = re.compile(
    r"`(?P<code>[^`]+)`|\*\*(?P<strong>[^*]+)\*\*|(?<![\w*])\*(?P<em>[^*\s][^*]*)\*(?![\w*])"
    r"|\[(?P<link>[^\]]+)\]\([^)]*\)"
)
_BULLET = re.compile(r"^(?P<lead>\s*)(?P<mark>[-*+]|\d{1,2}[.)])\s+(?P<rest>.*)$")
_GAP = re.compile(r"\S {2,}(?=\S)")
_LIMIT = 2_000
_CODE_LIMIT = 400
"""The largest length of a line of code, without its indentation."""


def styled(text: str, base: str = "") -> Text:
    """Return inline Markdown (a text without line breaks) as a styled ``Text``. ``base``: the style of plain words."""
    source = clean(text, _LIMIT)
    made = Text(style=base or "text")
    at = 0
    for match in _INLINE.finditer(source):
        made.append(source[at : match.start()])
        at = match.end()
        if match["code"] is not None:
            made.append(match["code"], "code")
        else:
            within = match["strong"] or match["em"] or match["link"]
            style = "bold" if match["strong"] else "italic" if match["em"] else "underline"
            inner = styled(within, base)
            inner.stylize(style)
            made.append(inner)
    made.append(source[at:])
    return made


def in_one_style(text: str, style: str) -> Text:
    """Return inline Markdown (a text without line breaks) in a single style. An answer to choose has only one, so that
    no answer differs from the others by a colour."""
    return Text(styled(text).plain, style)


def prose(source: str, width: int, *, ascii_only: bool = False, cpus: CpuView | None = None) -> list[Text]:
    """Return Markdown as lines of at most ``width`` cells. ``ascii_only``: draw pictures in ASCII. ``cpus``: the host
    whose CPUs a page may draw."""
    lines: list[Text] = []
    kind_of_picture, figures = "", list[str]()
    paragraph: list[str] = []
    prefix = ("", "")
    drawn = -1  # the number of lines up to the end of the newest row of code or of a table

    announced = -1  # the first line of the newest paragraph, if it ends with a colon

    def flush(gap: bool = False) -> None:
        nonlocal prefix, announced
        if paragraph:
            said = styled(" ".join(paragraph))
            if said.plain.startswith(SOURCE) and not prefix[0]:
                said = Text(said.plain, "dim")
            announced = len(lines) if said.plain.endswith(":") else -1
            lines.extend(wrap(said, width, *prefix))
            paragraph.clear()
        prefix = ("", "")
        if gap and lines and lines[-1].plain:
            lines.append(Text())

    for raw, kind in split_code(source.splitlines()):
        if kind == "fence":
            flush()
            if kind_of_picture:
                picture = kept_together(_picture(kind_of_picture, figures, width, ascii_only, cpus))
                if announced >= 0:
                    # The sentence that announces a picture is on its page.
                    picture = kept_together([*lines[announced:], *picture])
                    del lines[announced:]
                lines.extend(picture)
                kind_of_picture, announced = "", -1
            elif is_picture(word := raw.strip("`~ ")):
                kind_of_picture, figures = word, []
            continue
        if kind_of_picture:
            figures.append(raw)
            continue
        if kind == "code" or raw.lstrip().startswith("|"):
            flush()
            row = kept_together(_as_it_is(clean_code(raw), width, "code" if kind == "code" else "text"))
            row[0].joined = len(lines) == drawn
            lines.extend(row)
            drawn = len(lines)
            continue
        bullet = _BULLET.match(raw)
        if not raw.strip():
            flush(gap=True)
        elif raw.startswith("#"):
            flush(gap=True)
            lines.extend(wrap(styled(raw.lstrip("#").strip(), "bold accent"), width))
        elif bullet:
            flush()
            mark = "•" if bullet["mark"] in "-*+" else bullet["mark"]
            first = f"{' ' * min(cell_len(bullet['lead']), 6)} {mark} "
            prefix = (first, " " * cell_len(first))
            paragraph.append(bullet["rest"])
        elif raw.startswith(">"):
            if prefix[0] != "│ ":
                flush()
            prefix = ("│ ", "│ ")
            paragraph.append(raw.lstrip("> "))
        else:
            paragraph.append(raw.strip())
    flush()
    while lines and not lines[-1].plain:
        lines.pop()
    return lines


def widest_row(source: str) -> int:
    """Return the number of cells that the widest row of code in a Markdown text needs, with its indentation on the
    page; 0 for a text without code. Pictures do not count: they are drawn in any width."""
    widest, picture = 0, False
    for raw, kind in split_code(source.splitlines()):
        if kind == "fence":
            picture = not picture and is_picture(raw.strip("`~ "))
        elif kind == "code" and not picture:
            widest = max(widest, cell_len(clean_code(raw)) + 2)
    return widest


def _picture(kind: str, figures: list[str], width: int, ascii_only: bool, cpus: CpuView | None) -> list[Text]:
    """Return a picture as lines. If the picture's source text is not valid, return this text itself; ``lessons check``
    names the fault.
    """
    try:
        from jitter_workshop.presenter.text.pictures import picture_lines  # only a page with a picture needs it

        return picture_lines(parse_picture(kind, figures), width, ascii_only=ascii_only, cpus=cpus)
    except ValueError:
        return [Text("  " + clean_code(line), style="code") for line in figures]


def _as_it_is(line: str, width: int, style: str) -> list[Text]:
    """Return a line of code or of a table as one or more lines. The rest of a line that is too long begins below the
    start of the line's last column. If the line has no columns, the rest has a small indent. The same holds if the
    last column begins too far right.
    """
    if cell_len(line) + 2 <= width:
        return [Text("  " + line, style=style)]
    body = line.lstrip()
    lead = "  " + " " * (len(line) - len(body))
    last = max((gap.end() for gap in _GAP.finditer(body)), default=0)
    first, rest = lead + body[:last], body[last:]
    if not last or cell_len(first) > width // 2:
        first, rest, last = lead, body, 2
    return wrap(Text(rest, style), width, first, " " * (len(lead) + last))


def clean_code(raw: str) -> str:
    """Return a line of code with its indentation. Every character that could control a terminal becomes a blank."""
    body = raw.expandtabs(4)
    indent = len(body) - len(body.lstrip(" "))
    return " " * min(indent, 40) + "".join(c if c.isprintable() else " " for c in body.strip())[:_CODE_LIMIT]


def command_lines(command: str, width: int, lead: str = "$ ") -> Iterator[Text]:
    """Yield a command as lines that can be pasted into a shell. Each line but the last ends with a backslash. A word
    that is longer than a line continues without an indent, so that no blank gets into the word. ``lead``: the beginning
    of the first line, at most four characters."""
    room = max(width - 6, 10)
    line = ""
    for word in clean_code(command).split(" "):
        if line and len(line) + 1 + len(word) > room:
            yield Text.assemble((lead, "dim"), (f"{line} \\", "code"))
            line, lead = word, "    "
        else:
            line = f"{line} {word}" if line else word
        while len(line) > room:
            yield Text.assemble((lead, "dim"), (f"{line[:room]}\\", "code"))
            line, lead = line[room:], ""
    yield Text.assemble((lead, "dim"), (line, "code"))
