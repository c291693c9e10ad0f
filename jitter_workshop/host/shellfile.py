"""Parse settings files that a shell reads: ``NAME="value"`` lines (os-release(5), /etc/default, /etc/sysconfig).

Nothing is expanded: the value keeps text that only a shell could expand (``$NAME``, backquotes).
"""

from __future__ import annotations

_NAME = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_")


def parse_assignments(text: str) -> dict[str, str]:
    """Return the assignments in a settings file: name → value.

    If a name occurs twice, the last value counts. ``NAME+=value`` appends to the value so far, as in GRUB's settings.
    Quotes are removed, and lines of any other form are left out. Never raise an error.
    """
    values: dict[str, str] = {}
    for line in text.split("\n"):
        name, equals, rest = line.strip().removeprefix("export ").partition("=")
        adds = name.endswith("+")
        name = name.removesuffix("+")
        if not equals or not name or name[0].isdigit() or not _NAME.issuperset(name):
            continue
        value = unquote(rest)
        values[name] = values.get(name, "") + value if adds else value
    return values


def unquote(text: str) -> str:
    """Return the first shell word of a text, without its quotes. A comment after the word is dropped. If a quote is not
    closed, the quoted text ends at the end of the text."""
    out: list[str] = []
    quote = ""
    position = 0
    while position < len(text):
        char = text[position]
        if char == "\\" and quote != "'" and position + 1 < len(text):
            following = text[position + 1]
            # Inside double quotes a backslash is special only before four characters (POSIX shell).
            out.append(following if not quote or following in '$`"\\' else char + following)
            position += 2
            continue
        if quote:
            if char == quote:
                quote = ""
            else:
                out.append(char)
        elif char in "'\"":
            quote = char
        elif char in " \t;":
            break
        else:
            out.append(char)
        position += 1
    return "".join(out)
