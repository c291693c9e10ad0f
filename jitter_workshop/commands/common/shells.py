"""Write completion scripts for bash, zsh and fish from a list of all verbs (``surface``).

A completion script is text that a shell loads. The script never starts this program. It contains the ids of the version
that wrote it, and offers them. Each text is quoted for its shell.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from jitter_workshop.commands.common.base import PROGRAM
from jitter_workshop.commands.common.surface import Option, Value, Verb, taking_values

_NAME = PROGRAM.replace("-", "_")
_PLAIN = re.compile(r"[A-Za-z0-9@.:_+/-]+")
"""Words that no shell changes. Only these are offered."""


def _words(words: Iterable[str]) -> str:
    return " ".join(word for word in words if _PLAIN.fullmatch(word))


def _quoted(text: str) -> str:
    """Quote a text for a POSIX shell, in single quotes."""
    return "'" + text.replace("'", "'\\''") + "'"


# -- bash --------------------------------------------------------------------------------------------------------------

_BASH = r"""# bash completion for @PROGRAM@; made by '@PROGRAM@ completions bash'

# _@NAME@_value VERB OPTION: if this option takes a value, set kind and offered, and return 0.
_@NAME@_value() {
    kind= offered=
    case $1:$2 in
@VALUES@
    *) return 1 ;;
    esac
}

# _@NAME@_word VERB N: set kind and offered for the word N (from 0) that is no option.
_@NAME@_word() {
    kind=text offered=
    case $1:$2 in
@WORDS@
    esac
}

# _@NAME@_options VERB: set offered to the options of a verb.
_@NAME@_options() {
    case $1 in
@OPTIONS@
    *) offered= ;;
    esac
}

_@NAME@() {
    local cur=${COMP_WORDS[COMP_CWORD]} verb= pending= kind= offered= word i count=0
    for ((i = 1; i < COMP_CWORD; i++)); do
        word=${COMP_WORDS[i]}
        if [[ -n $pending ]]; then
            # Bash makes three words of --option=value.
            [[ $word == "=" ]] || pending=
        elif [[ $word == -- ]]; then
            case $verb in
            @COMMANDS@)
                if declare -F _command_offset >/dev/null; then
                    _command_offset $((i + 1))
                else
                    compopt -o bashdefault -o default
                fi
                ;;
            esac
            return
        elif [[ $word == -* ]]; then
            if _@NAME@_value "$verb" "$word"; then pending=$word; fi
        elif [[ -z $verb ]]; then
            verb=$word
        else
            count=$((count + 1))
        fi
    done
    if [[ -n $pending ]]; then
        _@NAME@_value "$verb" "$pending"
        [[ $cur != "=" ]] || cur=
    elif [[ $cur == -* ]]; then
        kind=words
        _@NAME@_options "$verb"
    elif [[ -z $verb ]]; then
        kind=words offered="@VERBS@"
    else
        _@NAME@_word "$verb" "$count"
    fi
    case $kind in
    words) mapfile -t COMPREPLY < <(compgen -W "$offered" -- "$cur") ;;
    file)
        compopt -o filenames
        mapfile -t COMPREPLY < <(compgen -f -- "$cur")
        ;;
    folder)
        compopt -o filenames
        mapfile -t COMPREPLY < <(compgen -d -- "$cur")
        ;;
    *) COMPREPLY=() ;;
    esac
}

complete -F _@NAME@ @PROGRAM@
"""


def bash(verbs: Sequence[Verb]) -> str:
    """Return the completion script for bash (4 or newer)."""
    values, words, options = [], [], []
    for verb in verbs:
        for option, value in taking_values(verb):
            flags = "|".join(f"{verb.name}:{flag}" for flag in option.flags)
            values.append(f"    {flags}) {_set(value)} ;;")
        for number, (value, _) in enumerate(verb.words):
            place = "*" if value.many else str(number)
            words.append(f"    {verb.name}:{place}) {_set(value)} ;;")
        flags = " ".join(flag for option in verb.options for flag in option.flags)
        options.append(f'    {_quoted(verb.name)}) offered="{flags}" ;;')
    return _filled(
        _BASH,
        VALUES="\n".join(values),
        WORDS="\n".join(words),
        OPTIONS="\n".join(options),
        COMMANDS=" | ".join(verb.name for verb in verbs if verb.command),
        VERBS=_words(verb.name for verb in verbs if verb.name),
    )


def _set(value: Value) -> str:
    return f'kind={value.kind} offered="{_words(value.words)}"' if value.words else f"kind={value.kind}"


def _filled(form: str, **parts: str) -> str:
    for name, text in {"PROGRAM": PROGRAM, "NAME": _NAME, **parts}.items():
        form = form.replace(f"@{name}@", text)
    return form


# -- zsh ---------------------------------------------------------------------------------------------------------------

_ZSH = r"""#compdef @PROGRAM@
# zsh completion for @PROGRAM@; made by '@PROGRAM@ completions zsh'

_@NAME@() {
    local context state state_descr line ret=1
    typeset -A opt_args
    local -a verbs=(
@VERBS@
    )
    _arguments -C \
@OPTIONS@
        '1:verb:->verb' \
        '*::word:->rest' && ret=0
    case $state in
    verb) _describe -t verbs verb verbs && ret=0 ;;
    rest)
        # After -- a command follows.
        local at=${words[(i)--]}
        if (( at < CURRENT )); then
            case $words[1] in
            @COMMANDS@)
                words=("${(@)words[at + 1, -1]}")
                (( CURRENT -= at ))
                _normal && ret=0
                ;;
            esac
            return ret
        fi
        case $words[1] in
@ARGUMENTS@
        esac
        ;;
    esac
    return ret
}

if [[ $zsh_eval_context[-1] == loadautofunc ]]; then
    _@NAME@ "$@"
else
    compdef _@NAME@ @PROGRAM@
fi
"""


def zsh(verbs: Sequence[Verb]) -> str:
    """Return the completion script for zsh. Save it as ``_jitter-workshop`` in a folder of ``fpath``, or ``source`` it
    after ``compinit``."""
    own, *others = verbs
    listed = [f"        {_quoted(f'{verb.name}:{verb.line}')}" for verb in others]
    arguments = []
    for verb in others:
        lines = [_zsh_option(option) for option in verb.options] + list(map(_quoted, _zsh_words(verb)))
        joined = " \\\n                ".join(lines)
        arguments.append(
            f"        {verb.name})\n            _arguments \\\n                {joined} && ret=0\n            ;;"
        )
    return _filled(
        _ZSH,
        VERBS="\n".join(listed),
        OPTIONS="\n".join(f"        {_zsh_option(option)} \\" for option in own.options),
        COMMANDS=" | ".join(verb.name for verb in verbs if verb.command),
        ARGUMENTS="\n".join(arguments),
    )


def _zsh_option(option: Option) -> str:
    """Return one option as quoted arguments for zsh's function ``_arguments``. If the user has typed one flag of an
    option, zsh does not offer the option's other flags.
    """
    more = f"[{_zsh_text(option.help)}]"
    if option.value is not None:
        more += f":{_zsh_text(option.value.name)}:{_zsh_values(option.value)}"
    if len(option.flags) == 1:
        return _quoted(f"{option.flags[0]}{more}")
    exclusive, each = " ".join(option.flags), ",".join(option.flags)
    return f"{_quoted(f'({exclusive})')}{{{each}}}{_quoted(more)}"


def _zsh_words(verb: Verb) -> list[str]:
    return [
        f"{'*' if value.many else number}:{_zsh_text(value.name)}:{_zsh_values(value)}"
        for number, (value, _) in enumerate(verb.words, 1)
    ]


def _zsh_values(value: Value) -> str:
    if value.kind == "words":
        return f"({_words(value.words)})"
    return {"file": "_files", "folder": "_files -/", "text": " "}[value.kind]


def _zsh_text(text: str) -> str:
    """Escape the characters of a text that have a special meaning for zsh's ``_arguments``."""
    return re.sub(r"([\\:\[\]])", r"\\\1", text)


# -- fish --------------------------------------------------------------------------------------------------------------

_FISH = r"""# fish completion for @PROGRAM@; made by '@PROGRAM@ completions fish'

complete -c @PROGRAM@ -f
"""


def fish(verbs: Sequence[Verb]) -> str:
    """Return the completion script for fish (3 or newer)."""
    start = f"complete -c {PROGRAM}"
    lines = [_filled(_FISH, VERBS="")]
    for verb in verbs:
        when = f"-n '__fish_seen_subcommand_from {verb.name}'" if verb.name else "-n __fish_use_subcommand"
        if verb.name:
            lines.append(f"{start} -n __fish_use_subcommand -a {verb.name} -d {_fish(verb.line)}\n")
        for option in verb.options:
            flags = " ".join(f"-l {one[2:]}" if one.startswith("--") else f"-s {one[1:]}" for one in option.flags)
            lines.append(f"{start} {when} {flags} -d {_fish(option.help)}{_fish_value(option.value)}\n")
        for value, said in verb.words:
            if value.kind == "words":
                lines.append(f"{start} {when} -a {_fish(_words(value.words))} -d {_fish(said.partition(':')[0])}\n")
            elif value.kind == "file":
                lines.append(f"{start} {when} -F\n")
            elif value.kind == "folder":
                lines.append(f"{start} {when} -a '(__fish_complete_directories)'\n")
        if verb.command:
            lines.append(
                f"{start} -n '__fish_seen_subcommand_from {verb.name}; and contains -- -- (commandline -opc)' -F\n"
            )
    return "".join(lines)


def _fish(text: str) -> str:
    """Quote a text for fish, in single quotes. Only the backslash and the single quote need an escape."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _fish_value(value: Value | None) -> str:
    if value is None:
        return ""
    if value.kind == "words":
        return f" -x -a {_fish(_words(value.words))}"
    return {"file": " -r -F", "folder": " -x -a '(__fish_complete_directories)'", "text": " -x"}[value.kind]


SHELLS = {"bash": bash, "zsh": zsh, "fish": fish}
"""Shell → the function that writes its completions."""
