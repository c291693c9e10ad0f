"""Parse GRUB's menu as grub-mkconfig writes it: find the default entry and its text.

Sources: GNU GRUB manual, "Shell-like scripting" and "Simple configuration handling". No code is run, and nothing is
guessed: an unknown construct raises :class:`NotUnderstood` with the reason.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

from jitter_workshop.host.root import printable
from jitter_workshop.model.record import dataclass

MAX_BYTES = 1 << 20
_BLANK = " \t\r"
_OPENING = ("if", "while", "until", "for")
_CLOSING = ("fi", "done")
_BETWEEN = ("then", "else", "elif", "do")
_WITH_BLOCK = ("menuentry", "submenu", "function")
_LINUX = ("linux", "linux16", "linuxefi")
_FUNCTIONS = ("load_video", "gfxmode", "recordfail", "savedefault")
"""Functions that the distributions' menus define and their entries call."""

_IN_ENTRY = (
    *("[", "test", "true", "insmod", "set", "unset", "export", "echo", *_FUNCTIONS, *_LINUX),
    *("search", "search_fs_uuid", "search_label", "cryptomount", "initrd", "initrd16", "initrdefi", "devicetree"),
)
"""Commands allowed in an entry that starts Linux, as grub-mkconfig and the distributions' additions write such entries.
None of them makes an entry the permanent default or starts anything else."""

_ID_OPTIONS = ("--id", "$menuentry_id_option", "${menuentry_id_option}")
_CUSTOM = ("$prefix/custom.cfg", "${prefix}/custom.cfg", "${config_directory}/custom.cfg")


class NotUnderstood(Exception):
    """Signal a menu that this tool leaves alone; the message is the reason."""


@dataclass(frozen=True, slots=True)
class Command:
    """Hold one command.

    It has its words as written, their start and end, and the contents of its braces (the commands, with start and end).
    ``conditional``: GRUB may skip it when it reads the menu.
    """

    words: tuple[str, ...]
    start: int
    end: int
    conditional: bool
    block: tuple[Command, ...] | None = None
    inside: tuple[int, int] = (0, 0)


@dataclass(frozen=True, slots=True)
class MenuEntry:
    """Hold an entry that starts a Linux kernel.

    ``body``: the text between its braces, without ``savedefault``; a parameter is added at ``at``. ``arguments``: the
    words after ``linux`` as written: the kernel, then its parameters.
    """

    title: str
    body: str
    at: int
    arguments: tuple[str, ...]

    @property
    def summary(self) -> str:
        """Return a line such as ``'Debian GNU/Linux': /boot/vmlinuz-6.1.0-1-amd64 root=… ro quiet``."""
        return f"'{self.title}': {' '.join(self.arguments)}"


def default_entry(text: str, saved: str) -> MenuEntry:
    """Return the entry that GRUB boots by default.

    ``saved``: ``saved_entry`` of GRUB's environment. Raise NotUnderstood.
    """
    commands = parse(text)
    _no_others(commands)
    return entry_of(text, _find(commands, _default(commands, saved)))


def takes_next_entry(commands: Sequence[Command]) -> bool:
    """Return True if the menu boots ``next_entry`` of the environment block once, and clears it before that.

    00_header of grub-mkconfig does so since GRUB 2.00; GRUB_DEFAULT=saved is not needed for it.
    """
    words = [command.words for command in commands]
    steps = [("set", 'default="${next_entry}"'), ("set", "next_entry="), ("save_env", "next_entry")]
    starts = [n for n in range(len(words)) if words[n : n + 3] == steps]
    return bool(starts) and ("load_env",) in words[: starts[0]]


def reads_custom(commands: Sequence[Command]) -> bool:
    """Return True if the menu reads ``custom.cfg`` beside it (41_custom of grub-mkconfig)."""
    return any(c.words[0] == "source" and c.words[1:2] and c.words[1] in _CUSTOM for c in commands)


def parse(text: str) -> tuple[Command, ...]:
    """Return the commands of a menu or of a part of one, including those inside an ``if``. Raise NotUnderstood."""
    tokens = list(_tokens(text))
    commands, position = _block(tokens, 0, nested=False, conditional=False)
    assert position == len(tokens)
    return commands


def entry_of(text: str, command: Command) -> MenuEntry:
    """Return a ``menuentry`` of a parsed text. Raise NotUnderstood if it does more than start one Linux kernel."""
    block, (start, end) = command.block or (), command.inside
    title = literal(command.words[1]) or ""
    for other in (c.words[0] for c in block if c.words[0] not in _IN_ENTRY):
        raise NotUnderstood(
            f"the default entry '{printable(title, 60)}' does more than start Linux: {printable(other, 60)}"
        )
    kernels = [c for c in block if c.words[0] in _LINUX]
    if len(kernels) != 1 or kernels[0].conditional or len(kernels[0].words) < 2:
        raise NotUnderstood(f"the default entry '{printable(title, 60)}' does not start one Linux kernel")
    kernel = kernels[0]
    if "--" in kernel.words:
        raise NotUnderstood("the default entry's kernel line has parameters for init after a --")
    body, at, last = "", 0, start
    for cut in [c for c in block if c.words[0] == "savedefault"]:
        # A user who picks our entry by hand must not make it the default.
        if cut.conditional or not _alone(text, cut):
            raise NotUnderstood(f"the default entry '{printable(title, 60)}' makes itself the default in its own way")
        body += text[last : cut.start]
        last = cut.end
        at -= cut.end - cut.start if cut.end <= kernel.start else 0
    body += text[last:end]
    return MenuEntry(printable(title, 120), body, kernel.end - start + at, kernel.words[1:])


def _alone(text: str, command: Command) -> bool:
    """Return True if a command of one word stands on a line of its own, so that the rest can be read without it."""
    before = text[: command.start].rpartition("\n")[2]
    after = text[command.end :].partition("\n")[0]
    return len(command.words) == 1 and not before.strip(_BLANK) and not after.strip(_BLANK)


def literal(word: str) -> str | None:
    """Return the literal meaning of a word; None where it contains an expansion."""
    out: list[str] = []
    quote = ""
    position = 0
    while position < len(word):
        char = word[position]
        following = word[position + 1 : position + 2]
        if char == "\\" and quote != "'" and following:
            out.append(following if not quote or following in '$"\\' else char + following)
            position += 2
            continue
        if quote:
            if char == "$" and quote == '"':
                return None
            if char == quote:
                quote = ""
            else:
                out.append(char)
        elif char in "'\"":
            quote = char
        elif char == "$":
            return None
        else:
            out.append(char)
        position += 1
    return "".join(out)


# -- the default entry ------------------------------------------------------------------------------------------------


def _no_others(commands: Sequence[Command]) -> None:
    """Raise NotUnderstood where entries come from another file, or only some users may boot or change them."""
    for command in commands:
        first = command.words[0]
        if first == "blscfg":
            raise NotUnderstood("GRUB takes its entries from boot loader entries (blscfg)")
        if first in ("source", ".", "configfile") and command.words[1:] and command.words[1] not in _CUSTOM:
            raise NotUnderstood(f"GRUB's menu reads another file, {printable(command.words[1], 60)}")
        assigned = " ".join(command.words[:2])
        if "superusers=" in assigned or first.startswith("password"):
            raise NotUnderstood("GRUB's menu is protected by a password")
        if "check_signatures=" in assigned:
            raise NotUnderstood("GRUB wants signed files (check_signatures)")


def _default(commands: Sequence[Command], saved: str) -> str:
    """Return the default that the menu sets when none was chosen for this boot."""
    found: list[str] = []
    for command in commands:
        if command.words[0].startswith("default="):
            raise NotUnderstood("GRUB's menu corrects its default later on")
        for word in command.words[1:] if command.words[0] == "set" else ():
            if word.startswith("default=") and word != 'default="${next_entry}"':
                found.append(word.removeprefix("default="))
    if len(found) != 1:
        raise NotUnderstood("GRUB's menu sets its default in more than one way" if found else "no default is set")
    if found[0] in ('"${saved_entry}"', "${saved_entry}", '"$saved_entry"', "$saved_entry"):
        return saved or "0"
    value = literal(found[0])
    if value is None:
        raise NotUnderstood(f"GRUB's default is computed: {printable(found[0], 60)}")
    return value or "0"


def _find(commands: Sequence[Command], default: str) -> Command:
    """Return the entry that ``1>2``, an id or a title names. ``>`` leads into a submenu, ``>>`` is a literal ``>``."""
    parts = [part.replace("\0", ">") for part in default.replace(">>", "\0").split(">")]
    for position, part in enumerate(parts):
        found = _one([c for c in commands if c.words[0] in ("menuentry", "submenu")], part)
        last = position + 1 == len(parts)
        if (found.words[0] == "menuentry") != last:
            break
        if last:
            return found
        commands = found.block or ()
        _no_others(commands)
    raise NotUnderstood(f"GRUB's default '{printable(default, 60)}' is no entry but a submenu, or lies in none")


def _one(entries: Sequence[Command], name: str) -> Command:
    """Return the entry of a menu with this number, id or title."""
    number = int(name) if name.isascii() and name.isdigit() and len(name) <= 6 else None
    if number is None and name[:1].isdigit():
        raise NotUnderstood(f"GRUB's default '{printable(name, 60)}' begins with a digit")
    for position, entry in enumerate(entries):
        titles = _names(entry)
        if entry.conditional:
            raise NotUnderstood("an entry before GRUB's default is there only under a condition")
        if position == number or (number is None and name in titles):
            return entry
    raise NotUnderstood(f"GRUB's default '{printable(name, 60)}' is not in its menu")


def _names(entry: Command) -> tuple[str, ...]:
    """Return an entry's title and id."""
    words = entry.words
    title = literal(words[1]) if len(words) > 1 else None
    if title is None or words[1][0] in "-$":
        raise NotUnderstood("an entry of GRUB's menu has no plain title")
    found = [title]
    for option, value in itertools.pairwise(words):
        if option in _ID_OPTIONS:
            ident = literal(value)
            if ident is None:
                raise NotUnderstood("an entry of GRUB's menu has no plain id")
            found.append(ident)
    return tuple(found)


# -- tokens and blocks ------------------------------------------------------------------------------------------------

Token = tuple[str, str, int, int]
"""Kind (``word``, ``end`` of a command, ``{``, ``}``, ``other``), text, start and end."""


def _block(
    tokens: Sequence[Token], position: int, *, nested: bool, conditional: bool
) -> tuple[tuple[Command, ...], int]:
    """Return the commands up to the end of a block, and the position of the token after it."""
    commands: list[Command] = []
    words: list[Token] = []
    depth = 0

    def finish() -> None:
        if words:
            spoken = tuple(word[1] for word in words)
            commands.append(Command(spoken, words[0][2], words[-1][3], conditional or depth > 0))
            words.clear()

    while position < len(tokens):
        kind, text, _, ends = token = tokens[position]
        position += 1
        if kind == "word" and not words and text in (*_OPENING, *_CLOSING, *_BETWEEN):
            depth += (text in _OPENING) - (text in _CLOSING)
        elif kind == "word":
            words.append(token)
        elif kind == "end":
            finish()
        elif kind == "{" and words and words[0][1] in _WITH_BLOCK:
            inner, position = _block(tokens, position, nested=True, conditional=conditional or depth > 0)
            closing = tokens[position - 1]
            spoken = tuple(word[1] for word in words)
            commands.append(
                Command(spoken, words[0][2], closing[3], conditional or depth > 0, inner, (ends, closing[2]))
            )
            words.clear()
        elif kind == "}" and nested and not words and depth == 0:
            return tuple(commands), position
        else:
            raise NotUnderstood(f"GRUB's menu has a '{printable(text, 5)}' that is not expected")
    finish()
    if nested or depth:
        raise NotUnderstood("GRUB's menu ends within a block")
    return tuple(commands), position


def _tokens(text: str) -> Iterator[Token]:
    position, size = 0, len(text)
    while position < size:
        char = text[position]
        if char in _BLANK:
            position += 1
        elif char in "\n;":
            yield "end", char, position, position + 1
            position += 1
        elif char == "#":
            position = _until(text, "\n", position)
        elif char in "{}":
            yield char, char, position, position + 1
            position += 1
        elif char in "|&<>":
            yield "other", char, position, position + 1
            position += 1
        else:
            ends = _word(text, position)
            yield "word", text[position:ends], position, ends
            position = ends


def _word(text: str, position: int) -> int:
    """Return the end of the word that begins here. Raise NotUnderstood for an open quote and a continued line."""
    while position < len(text):
        char = text[position]
        if char in _BLANK or char in "\n;{}|&<>":
            break
        if char == "\\":
            if text[position + 1 : position + 2] in ("", "\n"):
                raise NotUnderstood("GRUB's menu has a line that continues in the next one")
            position += 2
        elif char == "'":
            position = _closed(text, char, position + 1)
        elif char == '"':
            position += 1
            while text[position : position + 1] not in ('"', ""):
                position += 2 if text[position] == "\\" else 1
            position = _closed(text, char, min(position, len(text)))
        elif text.startswith("${", position):
            position = _closed(text, "}", position)
        else:
            position += 1
    return position


def _closed(text: str, quote: str, position: int) -> int:
    """Return the position after the next ``quote``."""
    found = text.find(quote, position)
    if found < 0:
        raise NotUnderstood("GRUB's menu has a quote that is not closed")
    return found + 1


def _until(text: str, what: str, position: int) -> int:
    found = text.find(what, position)
    return len(text) if found < 0 else found
