"""Parse GRUB's menu as grub-mkconfig writes it, and read and change GRUB's environment block.

To boot once with more parameters, this tool needs a copy of the default menu entry. No tool of GRUB finds or copies the
default entry, so this module finds and copies the entry. This module runs no code of the menu. It raises
:class:`NotUnderstood` for any construct in the menu that it does not know.

The environment block is a file of 1,024 bytes that keeps variables from one boot to the next. GRUB writes directly to
the disk blocks of this file. So this tool must overwrite the file in place, with the same size. (grub-editenv truncates
the file first.)

Sources: GNU GRUB manual, "Shell-like scripting", "Simple configuration handling" and "Environment block".
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence

from jitter_workshop.host.root import printable
from jitter_workshop.model.record import dataclass
from jitter_workshop.model.text import LABEL, LINE

_OPENING = ("if", "while", "until", "for")
_CLOSING = ("fi", "done")
_BETWEEN = ("then", "else", "elif", "do")
_WITH_BLOCK = ("menuentry", "submenu", "function")
_LINUX = ("linux", "linux16", "linuxefi")
_FUNCTIONS = ("load_video", "gfxmode", "recordfail", "savedefault")
"""Functions that the menus of distributions define, and that the entries of these menus call."""

_IN_ENTRY = (
    *("[", "test", "true", "insmod", "set", "unset", "export", "echo", *_FUNCTIONS, *_LINUX),
    *("search", "search_fs_uuid", "search_label", "cryptomount", "initrd", "initrd16", "initrdefi", "devicetree"),
)
"""Commands that may be in a menu entry that starts Linux. grub-mkconfig and the additions of distributions write such
entries.

None of these commands starts another system. ``savedefault`` makes an entry the default, so our copy of an entry leaves
it out.
"""

_ID_OPTIONS = ("--id", "$menuentry_id_option", "${menuentry_id_option}")
_CUSTOM = ("$prefix/custom.cfg", "${prefix}/custom.cfg", "${config_directory}/custom.cfg")

_TOKEN = r"""(?xs)
        (?P<blank> [ \t\r]+ | \#[^\n]* )
      | (?P<end> [\n;] )
      | (?P<brace> [{}] )
      | (?P<word> (?: [^ \t\r\n;{}|&<>'"\\$] | \\[^\n] | '[^']*' | "(?:[^"\\]|\\.)*" | \$\{[^}]*\} | \$(?!\{) )+ )
      | (?P<other> . )"""
"""Expression for the tokens of a menu. It is compiled at its first use, because ``status`` seldom needs it."""
_QUOTED = r"""(?s)'([^']*)'|"((?:[^"\\]|\\.)*)"|\\(.)|([^'"\\]+|\\)"""
"""Expression for the parts of a word of a menu: in single quotes, in double quotes, escaped, plain."""
_SAVEDEFAULT = r"(?m)^([ \t\r]*)savedefault(?=[ \t\r]*$)"

ENVIRONMENT_SIZE = 1024
_SECTOR = 512
"""Size of a disk's sector in bytes. A disk writes a sector whole or not at all. Many disks have larger sectors, and no
disk has smaller ones."""
_HEADER = b"# GRUB Environment Block\n"


class NotUnderstood(Exception):
    """Signal that this tool does not understand GRUB's menu, and therefore does not change it. The message is the
    reason."""


@dataclass(frozen=True, slots=True)
class GrubCommand:
    """Hold one command of a menu.

    - ``words``: the command's words as written, with quotes.
    - ``end``: the position after the command in the menu's text.
    - ``conditional``: True if GRUB may skip the command.
    - ``block``: the commands between the command's braces.
    - ``inside``: the start and end position of the text between these braces.
    """

    words: tuple[str, ...]
    end: int
    conditional: bool
    block: tuple[GrubCommand, ...] = ()
    inside: tuple[int, int] = (0, 0)


@dataclass(frozen=True, slots=True)
class MenuEntry:
    """Hold a menu entry that starts a Linux kernel.

    - ``body``: the text between the entry's braces, without ``savedefault``.
    - ``at``: the position in ``body`` where an additional kernel parameter is inserted.
    - ``arguments``: the words of the command ``linux``: the kernel's file, then its parameters.
    """

    title: str
    body: str
    at: int
    arguments: tuple[str, ...]

    @property
    def summary(self) -> str:
        """Return the entry in one line, such as ``'Debian GNU/Linux': /boot/vmlinuz-6.1.0-1-amd64 root=… ro quiet``."""
        return f"'{self.title}': {' '.join(self.arguments)}"


def default_entry(text: str, saved: str) -> MenuEntry:
    """Return the entry that GRUB boots by default. ``text``: the whole menu. ``saved``: the variable ``saved_entry`` of
    GRUB's environment block, "" for none. Raise NotUnderstood if the menu has an unknown construct."""
    commands = parse_menu(text)
    return entry_of(text, _find(commands, _default(commands, saved)))


def takes_next_entry(commands: Sequence[GrubCommand]) -> bool:
    """Return True if the menu can boot the entry that its variable ``next_entry`` names once. Such a menu clears the
    variable before the boot. Menus of grub-mkconfig (00_header) have this code since GRUB 2.00, even without
    GRUB_DEFAULT=saved."""
    words = [command.words for command in commands]
    steps = [("set", 'default="${next_entry}"'), ("set", "next_entry="), ("save_env", "next_entry")]
    starts = [n for n in range(len(words)) if words[n : n + 3] == steps]
    return bool(starts) and ("load_env",) in words[: starts[0]]


def reads_custom(commands: Sequence[GrubCommand]) -> bool:
    """Return True if the menu reads the file ``custom.cfg`` in its own folder (grub-mkconfig's 41_custom)."""
    return any(c.words[0] == "source" and c.words[1:2] and c.words[1] in _CUSTOM for c in commands)


def entry_of(text: str, command: GrubCommand) -> MenuEntry:
    """Return the entry that the command ``menuentry`` in the menu ``text`` defines. Raise NotUnderstood if the entry
    does more than start one kernel."""
    title = literal(command.words[1]) or ""
    named = f"the default entry '{printable(title, LABEL)}'"
    for other in (c.words[0] for c in command.block if c.words[0] not in _IN_ENTRY):
        raise NotUnderstood(f"{named} does more than start Linux: it runs '{printable(other, LABEL)}'")
    kernels = [c for c in command.block if c.words[0] in _LINUX]
    if len(kernels) != 1 or kernels[0].conditional or len(kernels[0].words) < 2:
        raise NotUnderstood(f"{named} does not start exactly one Linux kernel")
    words, end = kernels[0].words, kernels[0].end
    if "--" in words:
        raise NotUnderstood("the default entry's kernel line has parameters for init, after '--'")
    # A user who picks our entry by hand must not make it the default.
    start, stop = command.inside
    before, cut = re.subn(_SAVEDEFAULT, r"\1", text[start:end])
    after, cut_after = re.subn(_SAVEDEFAULT, r"\1", text[end:stop])
    saving = [c.conditional for c in command.block if c.words[0] == "savedefault"]
    if any(saving) or len(saving) != cut + cut_after:
        raise NotUnderstood(f"{named} makes itself the default in an unknown way")
    return MenuEntry(printable(title, LINE), before + after, len(before), words[1:])


def literal(word: str) -> str | None:
    """Return the text of a word of the menu without its quotes; None if the word contains a variable."""
    found = []
    for single, double, escaped, plain in re.findall(_QUOTED, word):
        if "$" in plain or "$" in re.sub(r"\\.", "", double, flags=re.DOTALL):
            return None
        found.append(single or re.sub(r'\\([$"\\])', r"\1", double) or escaped or plain)
    return "".join(found)


# -- the default entry ------------------------------------------------------------------------------------------------


def _no_others(commands: Sequence[GrubCommand]) -> None:
    """Raise NotUnderstood if the menu reads another file, is protected by a password, or checks signatures."""
    for command in commands:
        first = command.words[0]
        if first == "blscfg":
            raise NotUnderstood("GRUB reads its entries from separate files (blscfg)")
        if first in ("source", ".", "configfile") and command.words[1:] and command.words[1] not in _CUSTOM:
            raise NotUnderstood(f"GRUB's menu reads another file: {printable(command.words[1], LABEL)}")
        assigned = " ".join(command.words[:2])
        if "superusers=" in assigned or first.startswith("password"):
            raise NotUnderstood("GRUB's menu is protected by a password")
        if "check_signatures=" in assigned:
            raise NotUnderstood("GRUB accepts only signed files (check_signatures)")


def _default(commands: Sequence[GrubCommand], saved: str) -> str:
    """Return the number, id or title of the entry that the menu boots by default. ``saved``: the variable
    ``saved_entry`` of the environment block, "" for none. Raise NotUnderstood if the menu sets no default, sets several
    defaults, or computes its default."""
    if any(command.words[0].startswith("default=") for command in commands):
        raise NotUnderstood("GRUB's menu changes its default in a later line")
    settings = [word for command in commands if command.words[0] == "set" for word in command.words[1:]]
    found = [word[8:] for word in settings if word.startswith("default=") and word != 'default="${next_entry}"']
    if len(found) != 1:
        raise NotUnderstood("GRUB's menu sets more than one default" if found else "GRUB's menu sets no default")
    if found[0].strip('"') in ("${saved_entry}", "$saved_entry"):
        return saved or "0"
    value = literal(found[0])
    if value is None:
        raise NotUnderstood(f"GRUB's default is computed: {printable(found[0], LABEL)}")
    return value or "0"


def _find(commands: Sequence[GrubCommand], default: str) -> GrubCommand:
    """Return the command that defines the default entry. ``default``: the entry's number, id or title. A path such as
    ``1>2`` means entry 2 of submenu 1; in a title, ``>>`` stands for one ``>``. Raise NotUnderstood if there is no such
    entry."""
    *menus, last = (part.replace("\0", ">") for part in default.replace(">>", "\0").split(">"))
    for name, kind in [*((menu, "submenu") for menu in menus), (last, "menuentry")]:
        _no_others(commands)
        found = _one([c for c in commands if c.words[0] in ("menuentry", "submenu")], name)
        if found.words[0] != kind:
            raise NotUnderstood(
                f"GRUB's default '{printable(default, LABEL)}' is not an entry, or its submenu is missing"
            )
        commands = found.block
    return found


def _one(entries: Sequence[GrubCommand], name: str) -> GrubCommand:
    """Return the entry whose number, id or title is ``name``. Raise NotUnderstood if there is none."""
    number = int(name) if name.isascii() and name.isdigit() and len(name) <= 6 else None
    if number is None and name[:1].isdigit():
        raise NotUnderstood(f"GRUB's default '{printable(name, LABEL)}' begins with a digit, but is not a number")
    for position, entry in enumerate(entries):
        names = _names(entry)
        if entry.conditional:
            raise NotUnderstood("an entry that may be GRUB's default is shown only under a condition")
        if position == number or (number is None and name in names):
            return entry
    raise NotUnderstood(f"GRUB's default '{printable(name, LABEL)}' is not in its menu")


def _names(entry: GrubCommand) -> tuple[str, ...]:
    """Return the title of a menu entry, followed by its id if it has one."""
    title = literal(entry.words[1]) if len(entry.words) > 1 else None
    if title is None or entry.words[1][0] in "-$":
        raise NotUnderstood("an entry of GRUB's menu has no fixed title")
    idents = [literal(value) for option, value in itertools.pairwise(entry.words) if option in _ID_OPTIONS]
    if None in idents:
        raise NotUnderstood("an entry of GRUB's menu has no fixed id")
    return title, *(ident for ident in idents if ident is not None)


# -- commands ---------------------------------------------------------------------------------------------------------


def parse_menu(text: str) -> tuple[GrubCommand, ...]:
    """Return the commands of a menu or of a part of a menu. The result also contains the commands inside an ``if``.
    Raise NotUnderstood if there is an unknown construct."""
    return _block(re.finditer(_TOKEN, text), nested=False, conditional=False)[0]


def _block(tokens: Iterator[re.Match[str]], *, nested: bool, conditional: bool) -> tuple[tuple[GrubCommand, ...], int]:
    """Return the commands of a block, and the position of the block's closing brace. Raise NotUnderstood if the block
    has an unknown construct.

    - ``tokens``: the tokens after the opening brace.
    - ``nested``: False for the whole menu, which has no closing brace.
    - ``conditional``: True if GRUB may skip the block.
    """
    found: list[GrubCommand] = []
    words: list[str] = []
    end = depth = 0
    for token in tokens:
        kind, word = token.lastgroup, token[0]
        if kind == "word" and not words and word in (*_OPENING, *_CLOSING, *_BETWEEN):
            depth += (word in _OPENING) - (word in _CLOSING)
        elif kind == "word":
            words.append(word)
            end = token.end()
        elif word == "{" and words and words[0] in _WITH_BLOCK:
            block, closing = _block(tokens, nested=True, conditional=conditional or depth > 0)
            inside = (token.end(), closing)
            found.append(GrubCommand(tuple(words), closing + 1, conditional or depth > 0, block, inside))
            words.clear()
        elif word == "}" and nested and not words and depth == 0:
            return tuple(found), token.start()
        elif kind == "end" and words:
            found.append(GrubCommand(tuple(words), end, conditional or depth > 0))
            words.clear()
        elif kind in ("brace", "other"):
            raise NotUnderstood(f"GRUB's menu has {_UNEXPECTED.get(word) or f'an unexpected {word!r}'}")
    if nested or depth:
        raise NotUnderstood("GRUB's menu ends within a block")
    if words:
        found.append(GrubCommand(tuple(words), end, conditional))
    return tuple(found), len(found)


_UNEXPECTED = {"\\": "a line that continues in the next one"} | dict.fromkeys("'\"$", "a quote that is not closed")


# -- the environment block --------------------------------------------------------------------------------------------


def environment_variables(block: bytes) -> dict[str, str]:
    """Return the variables of GRUB's environment block, name → value. Raise ValueError with the reason if ``block`` is
    not as ``grub-editenv`` writes it."""
    found = {}
    for line in _lines(block):
        name, equals, value = line.partition(b"=")
        if equals and not line.startswith(b"#"):
            found[name.decode("utf-8", "replace")] = value.decode("utf-8", "replace")
    return found


def with_variable(block: bytes, name: str, value: str) -> bytes:
    """Return the environment block with the variable ``name`` set to ``value``. An empty ``value`` removes the
    variable.

    Raise ValueError if ``environment_variables`` cannot read the block, if ``value`` needs escapes, or if the block is
    full.
    """
    key = f"{name}=".encode()
    if "\n" in value or "\\" in value:
        raise ValueError("the value has a character that GRUB would have to escape")
    lines = [line for line in _lines(block) if not line.startswith(key)]
    if value:
        lines.append(key + value.encode())
    data = b"".join(line + b"\n" for line in lines)
    if len(data) > ENVIRONMENT_SIZE:
        raise ValueError("GRUB's environment block is full")
    return data.ljust(ENVIRONMENT_SIZE, b"#")


def torn_by_a_cut(old: bytes, new: bytes) -> bool:
    """Return True if a power cut could leave a mixture of ``old`` and ``new``. This is possible if ``old`` and ``new``
    differ in both disk sectors of the block."""
    starts = range(0, ENVIRONMENT_SIZE, _SECTOR)
    return sum(old[at : at + _SECTOR] != new[at : at + _SECTOR] for at in starts) > 1


def _lines(block: bytes) -> list[bytes]:
    if len(block) != ENVIRONMENT_SIZE or not block.startswith(_HEADER):
        raise ValueError("the file is not an environment block of 1,024 bytes")
    if b"\\" in block or b"\0" in block:
        raise ValueError("the environment block has an escaped value")
    text = block.rstrip(b"#")
    if not text.endswith(b"\n"):
        raise ValueError("the environment block's last line does not end with a newline")
    return text.split(b"\n")[:-1]
