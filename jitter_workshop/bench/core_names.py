"""Compare the names that a native core offers with the names that its header declares."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
_STRUCT = re.compile(r"typedef struct \{(?P<body>.*?)\n\} (?P<name>jw_\w+);", re.DOTALL)
_FUNCTION = re.compile(r"\b(jw_\w+)\(")
_CONSTANT = re.compile(r"\b(JW_\w+) = ")
_FIELD = re.compile(r"\*?(\w+)(?:\[\w*\])*$")


def missing(ffi: Any, lib: Any, header: str) -> list[str]:
    """Return the functions, constants and fields that a header declares and a native core does not have.

    A field is named ``struct.field``. ``ffi``, ``lib``: cffi's objects of the loaded core. ``header``: the text of
    ``native/api.h``.
    """
    text = _COMMENT.sub("", header)
    offered = set(dir(lib))
    names = [name for name in (*_FUNCTION.findall(text), *_CONSTANT.findall(text)) if name not in offered]
    for struct in _STRUCT.finditer(text):
        name = struct["name"]
        try:
            known = set(_fields(ffi.typeof(name)))
        except ffi.error:
            names.append(name)
            continue
        names += [f"{name}.{field}" for field in _declared(struct["body"]) if field not in known]
    return names


def _declared(body: str) -> Iterable[str]:
    """Return the names of the fields in a struct's body. The fields of a union without a name count as its own."""
    for statement in body.split(";"):
        for part in statement.split(","):
            if (found := _FIELD.search(part.strip())) is not None:
                yield found[1]


def _fields(kind: Any) -> Iterable[str]:
    for name, field in kind.fields or ():
        if name:
            yield name
        else:
            yield from _fields(field.type)
