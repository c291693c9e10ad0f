"""Frozen dataclasses to plain JSON values and back, by their type hints (standard library only).

Reading is tolerant of added fields (they are ignored: DESIGN §9 allows additions) and strict about types, so that a
damaged file is found here and not three screens later.
"""

from __future__ import annotations

import dataclasses
import types
import typing
from functools import cache
from typing import Any, Literal, TypeVar

T = TypeVar("T")


class CodecError(ValueError):
    """A value does not fit its type; the message names the field."""


def to_plain(value: Any) -> Any:
    """Dataclasses, tuples and dicts as JSON-ready dicts and lists."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: to_plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, tuple | list):
        return [to_plain(v) for v in value]
    if isinstance(value, dict):
        return {str(k): to_plain(v) for k, v in value.items()}
    return value


@cache
def _hints(cls: type) -> dict[str, Any]:
    return typing.get_type_hints(cls)


def from_plain(cls: type[T], value: Any, where: str = "") -> T:
    """Build ``cls`` from what ``json.loads`` gave. Raises CodecError naming the field that does not fit."""
    return typing.cast(T, _build(cls, value, where or cls.__name__))


def _build(hint: Any, value: Any, where: str) -> Any:
    origin = typing.get_origin(hint)
    args = typing.get_args(hint)
    if hint is Any:
        return value
    if dataclasses.is_dataclass(hint) and isinstance(hint, type):
        return _dataclass(hint, value, where)
    if origin in (typing.Union, types.UnionType):
        return _union(args, value, where)
    if origin is Literal:
        if value not in args:
            raise CodecError(f"{where}: {value!r} is none of {', '.join(map(str, args))}")
        return value
    if origin is tuple:
        if not isinstance(value, list):
            raise CodecError(f"{where}: expected a list")
        if len(args) == 2 and args[1] is Ellipsis:
            return tuple(_build(args[0], v, f"{where}[{i}]") for i, v in enumerate(value))
        if len(args) != len(value):
            raise CodecError(f"{where}: expected {len(args)} items")
        return tuple(_build(a, v, f"{where}[{i}]") for i, (a, v) in enumerate(zip(args, value, strict=True)))
    if origin is dict:
        if not isinstance(value, dict):
            raise CodecError(f"{where}: expected an object")
        return {k: _build(args[1], v, f"{where}.{k}") for k, v in value.items()}
    return _scalar(hint, value, where)


def _dataclass(cls: type, value: Any, where: str) -> Any:
    if not isinstance(value, dict):
        raise CodecError(f"{where}: expected an object")
    hints = _hints(cls)
    given: dict[str, Any] = {}
    for f in dataclasses.fields(cls):
        if f.name in value:
            given[f.name] = _build(hints[f.name], value[f.name], f"{where}.{f.name}")
        elif f.default is dataclasses.MISSING and f.default_factory is dataclasses.MISSING:
            raise CodecError(f"{where}.{f.name}: missing")
    try:
        return cls(**given)
    except (TypeError, ValueError) as error:
        raise CodecError(f"{where}: {error}") from error


def _union(args: tuple[Any, ...], value: Any, where: str) -> Any:
    if value is None and type(None) in args:
        return None
    problems: list[str] = []
    for arg in args:
        if arg is type(None):
            continue
        try:
            return _build(arg, value, where)
        except CodecError as error:
            problems.append(str(error))
    raise CodecError(problems[0] if problems else f"{where}: unexpected {value!r}")


def _scalar(hint: Any, value: Any, where: str) -> Any:
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if hint is int and isinstance(value, bool):
        raise CodecError(f"{where}: expected a whole number")
    if isinstance(value, hint):
        return value
    raise CodecError(f"{where}: expected {getattr(hint, '__name__', hint)}, got {type(value).__name__}")
