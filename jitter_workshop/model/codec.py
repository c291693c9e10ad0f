"""Convert frozen dataclasses to plain JSON values and back, by their type hints (standard library only).

Unknown fields are ignored, because later versions may add fields. Types are checked strictly. So a damaged file causes
an error in this module, and not later on a screen.
"""

from __future__ import annotations

import dataclasses
import itertools
import types
import typing
from collections.abc import Callable, Iterable
from functools import cache
from typing import Any, Literal, TypeVar

T = TypeVar("T")
N = TypeVar("N", int, float)


class CodecError(ValueError):
    """Report a value that does not fit its type; the message names the field."""


def parse_object(text: str | bytes) -> dict[str, Any]:
    """Return the JSON object in a text from an untrusted source. Raise ValueError if the text holds no JSON object."""
    import json

    try:
        value = json.loads(text)
    except RecursionError as error:
        raise ValueError("the JSON is nested too deeply") from error
    if not isinstance(value, dict):
        raise ValueError("the text holds no JSON object")
    return value


def to_plain(value: Any) -> Any:
    """Return a dataclass, tuple or dict as plain dicts and lists for ``json.dumps``. All values inside it are
    converted, too."""
    kind: Any = type(value)
    if kind in _ATOMS:
        return value
    if (names := field_names(kind)) is not None:
        return {name: to_plain(getattr(value, field)) for name, field in names.items()}
    if isinstance(value, tuple | list):
        return [to_plain(v) for v in value]
    if isinstance(value, dict):
        return {str(k): to_plain(v) for k, v in value.items()}
    return value


_ATOMS = frozenset({str, int, float, bool, type(None)})


_ALSO = {"stolen_ns_per_second": ("stall_ns_per_second", "interference_ns_per_second")}
"""Fields that JSON has under other names, too: field → the other names, all with the same value. The first one is the
right name. ``interference_ns_per_second`` stays for readers of older files: in osnoise, interference excludes the time
of the hypervisor and of the firmware, but this sum contains both."""


@cache
def field_names(kind: Any) -> dict[str, str] | None:
    """Return a dict for a dataclass: name in JSON → name of the field. Return None for any other type."""
    if not dataclasses.is_dataclass(kind):
        return None
    return {name: f.name for f in dataclasses.fields(kind) for name in (f.name, *_ALSO.get(f.name, ()))}


def from_plain(cls: type[T], value: Any, where: str = "") -> T:
    """Return an instance of ``cls`` from a value of ``json.loads``. Raise CodecError, with the name of the field, if a
    field does not fit its type. ``where``: the path to the value, for the message."""
    hint: Any = cls
    try:
        return typing.cast(T, _reader(hint)(value))
    except _Unfit as unfit:
        raise CodecError(f"{where or cls.__name__}{unfit.where}: {unfit.says}") from unfit.__cause__


Reader = Callable[[Any], Any]
"""A function that converts a value of ``json.loads`` to a field's type, or raises :class:`_Unfit`."""


class _Unfit(Exception):
    """Report a value that does not fit its type. ``where``: the path to the value. Each function that passes this error
    on adds its own field at the beginning of the path."""

    def __init__(self, says: str, where: str = "") -> None:
        super().__init__(says)
        self.says = says
        self.where = where

    def rises_from(self, step: str) -> None:
        self.where = step + self.where


# A session of 500 runs has millions of values: the reader of a type is built once, not for each value.
@cache
def _reader(hint: Any) -> Reader:
    origin = typing.get_origin(hint)
    args = typing.get_args(hint)
    if hint is Any:
        return lambda value: value
    if dataclasses.is_dataclass(hint) and isinstance(hint, type):
        return _dataclass(hint)
    if origin in (typing.Union, types.UnionType):
        return _union(args)
    if origin is Literal:
        return _choice(args)
    if origin is tuple and len(args) == 2 and args[1] is Ellipsis:
        return _list(itertools.repeat(_reader(args[0])))
    if origin is tuple:
        return _list(tuple(map(_reader, args)), len(args))
    if origin is dict:
        return _mapping(_reader(args[1]))
    return _scalar(hint)


def _list(readers: Iterable[Reader], length: int | None = None) -> Reader:
    """Return a reader of a list. ``readers``: a reader for each item, in order. ``length``: the number of items that
    the list must have; None allows any number."""

    def read(value: Any) -> Any:
        if not isinstance(value, list):
            raise _Unfit("expected a list")
        if length not in (None, len(value)):
            raise _Unfit(f"expected {length} items")
        found: list[Any] = []
        try:
            for one, item in zip(readers, value, strict=False):
                found.append(one(item))
        except _Unfit as unfit:
            unfit.rises_from(f"[{len(found)}]")
            raise
        return tuple(found)

    return read


def _mapping(one: Reader) -> Reader:
    def read(value: Any) -> Any:
        if not isinstance(value, dict):
            raise _Unfit("expected an object")
        found: dict[str, Any] = {}
        for key, item in value.items():
            try:
                found[key] = one(item)
            except _Unfit as unfit:
                unfit.rises_from(f".{key}")
                raise
        return found

    return read


def _dataclass(cls: type) -> Reader:
    readers: dict[str, Reader] = {}
    required: set[str] = set()

    def read(value: Any) -> Any:
        if not isinstance(value, dict):
            raise _Unfit("expected an object")
        if not readers:
            # The reader is built at the first value, because a class may refer to itself.
            hints, every = typing.get_type_hints(cls), dataclasses.fields(cls)
            none = dataclasses.MISSING
            required.update(f.name for f in every if f.default is none and f.default_factory is none)
            readers.update({f.name: _reader(hints[f.name]) for f in every})
        given: dict[str, Any] = {}
        for name, one in readers.items():
            if name in value:
                try:
                    given[name] = one(value[name])
                except _Unfit as unfit:
                    unfit.rises_from(f".{name}")
                    raise
            elif name in required:
                raise _Unfit("missing", f".{name}")
        try:
            return cls(**given)
        except (TypeError, ValueError) as error:
            raise _Unfit(str(error)) from error

    return read


def _union(args: tuple[Any, ...]) -> Reader:
    optional = type(None) in args
    readers = tuple(_reader(arg) for arg in args if arg is not type(None))

    def read(value: Any) -> Any:
        if value is None and optional:
            return None
        first: _Unfit | None = None
        for one in readers:
            try:
                return one(value)
            except _Unfit as unfit:
                first = first or unfit
        raise first or _Unfit(f"unexpected {value!r}")

    return read


def _choice(args: tuple[Any, ...]) -> Reader:
    def read(value: Any) -> Any:
        if value not in args:
            raise _Unfit(f"{value!r} is not one of {', '.join(map(str, args))}")
        return value

    return read


LARGEST = 10**30
"""The bound of every number, as an absolute value. All counts and measurements are far below it, and sums of such
numbers stay finite."""


def _float(value: Any) -> float:
    if type(value) is not float and type(value) is not int:
        raise _Unfit(f"expected float, got {type(value).__name__}")
    return float(_within(value))


def _int(value: Any) -> int:
    if type(value) is bool:
        raise _Unfit("expected a whole number")
    if type(value) is not int:
        raise _Unfit(f"expected int, got {type(value).__name__}")
    return _within(value)


def _within(value: N) -> N:
    """Return the value. Raise :class:`_Unfit` if it is not between -LARGEST and LARGEST. The check is needed because
    Python's JSON accepts NaN, Infinity and integers of any length."""
    if not -LARGEST < value < LARGEST:
        raise _Unfit("the number is too large, or not a number")
    return value


def _scalar(hint: Any) -> Reader:
    if hint is float:
        return _float
    if hint is int:
        return _int

    def read(value: Any) -> Any:
        if isinstance(value, hint):
            return value
        raise _Unfit(f"expected {getattr(hint, '__name__', hint)}, got {type(value).__name__}")

    return read
