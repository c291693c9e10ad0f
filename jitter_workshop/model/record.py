"""Provide dataclasses that are made faster than those of the standard library. So programs start fast.

For each class with ``@dataclass(frozen=True, slots=True)``, the standard library compiles six methods. That takes 0.5
to 1 ms for each class on a small machine. ``status`` loads a hundred classes, and must end within 0.15 s.

The function :func:`dataclass` of this module makes classes with the same properties (fields, defaults,
``__post_init__``, equality, hash, repr, ``dataclasses.fields`` and ``replace``). It compiles only ``__init__``, and
only for a class that has many instances. The standard library makes the classes that this module does not support
(inherited fields, other flags). Type checkers do not see this module's ``dataclass``. For them, the name means the
``dataclass`` of the standard library.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

FORMAT_VERSION = 1
"""The version of this program's JSON objects; each object begins with this number. Within one version, fields may be
added, but not renamed or removed."""

T = TypeVar("T")


def made_of(cls: type[T], source: object, **others: Any) -> T:
    """Return a record with the values of ``source`` in the fields of the same names. ``others``: values of fields that
    ``source`` does not have, or that differ from ``source``."""
    import dataclasses

    kind: Any = cls
    names = [field.name for field in dataclasses.fields(kind) if field.name not in others]
    return cls(**{name: getattr(source, name) for name in names if hasattr(source, name)}, **others)


def picked(one: object, *names: str) -> dict[str, Any]:
    """Return a dict with the attributes ``names`` of an object: name → value."""
    return {name: getattr(one, name) for name in names}


if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
    from dataclasses import field as field
else:

    class _Field:
        """Hold the default factory of a field. For each instance of the class, this factory makes a new default."""

        __slots__ = ("default_factory",)

        def __init__(self, default_factory: Any) -> None:
            self.default_factory = default_factory

    def field(**options: Any) -> Any:
        """Return a dataclass field with these options. If ``default_factory`` is the only option, the field is of this
        module's own type. If ``default`` is the only option, return the default itself. For other options, return a
        field of the standard library."""
        if options.keys() == {"default_factory"}:
            return _Field(options["default_factory"])
        if options.keys() == {"default"}:
            return options["default"]
        import dataclasses

        return dataclasses.field(**options)

    def dataclass(cls: type | None = None, /, **flags: bool) -> Any:
        """Make a dataclass as ``dataclasses.dataclass`` does. Plain classes with the flags ``slots=True`` or
        ``frozen=True, slots=True`` are made here, which is faster. The standard library makes all other classes."""
        if cls is None:
            return lambda given: dataclass(given, **flags)
        known = flags in ({"frozen": True, "slots": True}, {"slots": True})
        if known and _plain(cls):
            return _build(cls, frozen="frozen" in flags)
        import dataclasses

        for name, value in list(vars(cls).items()):
            if isinstance(value, _Field):
                setattr(cls, name, dataclasses.field(default_factory=value.default_factory))
        return dataclasses.dataclass(**flags)(cls)


_OWN = ("__init__", "__repr__", "__eq__", "__hash__", "__setattr__", "__delattr__", "__slots__")


def _plain(cls: type) -> bool:
    """Return True if :func:`_build` can build the class. The class may have only plain fields, and none of the methods
    that :func:`_build` adds. Each parent class must have empty ``__slots__`` and no fields. An example of such a parent
    is the abstract class Mapping."""
    body = vars(cls)
    if any(vars(base).get("__slots__") != () or "__dataclass_fields__" in vars(base) for base in cls.__mro__[1:-1]):
        return False
    if any(name in body for name in _OWN if name != "__hash__") or body.get("__hash__") is not None:
        return False
    for name, hint in body.get("__annotations__", {}).items():
        if not isinstance(hint, str) or hint.startswith(("ClassVar", "InitVar", "KW_ONLY")):
            return False
        if type(body.get(name)).__name__ == "Field" or isinstance(body.get(name), list | dict | set):
            return False
    return True


def _build(cls: type, frozen: bool) -> type:
    """Return a new class with the name of ``cls`` and a slot for each field. If ``frozen`` is True, its instances can
    be hashed, otherwise not. Raise TypeError if a field without a default follows a field with a default."""
    names = tuple(vars(cls).get("__annotations__", {}))
    body = dict(cls.__dict__)
    defaults = {name: body.pop(name) for name in names if name in body}
    required = [name for name in names if name not in defaults]
    if list(names[: len(required)]) != required:
        raise TypeError(f"{cls.__name__}: a field without a default follows one that has one")
    body.pop("__dict__", None)
    body.pop("__weakref__", None)
    body |= {
        "__slots__": names,
        "__match_args__": names,
        "__dataclass_fields__": _Fields(),
        "__record_defaults__": defaults,
        "__record_made__": [0],
        "__init__": _first_init,
        "__repr__": _repr,
        "__eq__": _eq,
        "__hash__": None,
    }
    if frozen:
        body |= {
            "__hash__": _hash,
            "__setattr__": _refuse_to_set,
            "__delattr__": _refuse_to_delete,
            "__getstate__": _getstate,
            "__setstate__": _setstate,
        }
    built = type(cls)(cls.__name__, cls.__bases__, body)
    built.__qualname__ = cls.__qualname__
    for value in body.values():
        _own_closure(value, cls, built)
    return built


def _own_closure(method: Any, old: type, new: type) -> None:
    """Make ``super()`` and ``__class__`` in a method refer to the new class instead of the old one."""
    for cell in getattr(method, "__closure__", None) or ():
        if cell.cell_contents is old:
            cell.cell_contents = new


class _Fields:
    """Make the attribute ``__dataclass_fields__`` of a class when it is first read. The standard library recognizes a
    dataclass by this attribute."""

    def __get__(self, _instance: object, cls: type) -> Any:
        import dataclasses

        defaults = vars(cls)["__record_defaults__"]
        fields: dict[str, Any] = {}
        for name, hint in cls.__annotations__.items():
            value = defaults.get(name, dataclasses.MISSING)
            made = type(value).__name__ == "_Field"
            # The standard library makes a class to get these, which takes ten times as long.
            one: Any = dataclasses.field(default_factory=value.default_factory) if made else dataclasses.field()
            one.default = dataclasses.MISSING if made else value
            one.name, one.type, one.kw_only, one._field_type = name, hint, False, dataclasses._FIELD  # type: ignore[attr-defined]
            fields[name] = one
        type.__setattr__(cls, "__dataclass_fields__", fields)
        return fields


_FEW = 20
"""The number of instances of a class that are made without a generated ``__init__``. Generating it takes as long as
making this many instances without it, and most classes never have so many."""


def _first_init(self: Any, *given: Any, **named: Any) -> None:
    """Initialize one of the first instances of a class, without a generated ``__init__``. After _FEW instances,
    generate the real ``__init__`` and call it. Also generate and call it if the arguments do not fit, because the real
    ``__init__`` raises the TypeError."""
    cls = type(self)
    names, defaults, made = cls.__slots__, vars(cls)["__record_defaults__"], vars(cls)["__record_made__"]
    made[0] += 1
    values = named | dict(zip(names, given, strict=False))
    fit = len(values) == len(given) + len(named) and all(name in values or name in defaults for name in names)
    if made[0] > _FEW or not fit or len(values.keys() & set(names)) < len(values):
        _generate_init(cls)
        cls.__init__(self, *given, **named)
        return
    for name in names:
        value = values[name] if name in values else defaults[name]
        object.__setattr__(self, name, value.default_factory() if type(value).__name__ == "_Field" else value)
    if hasattr(cls, "__post_init__"):
        self.__post_init__()


def _generate_init(cls: Any) -> None:
    """Generate ``__init__`` of a class and put it into the class."""
    names, defaults = cls.__slots__, vars(cls)["__record_defaults__"]
    scope: dict[str, Any] = {f"_d_{name}": value for name, value in defaults.items()}
    parameters, lines = [], []
    for name in names:
        scope[f"_s_{name}"] = vars(cls)[name].__set__
        value = name
        if type(defaults.get(name)).__name__ == "_Field":
            scope[f"_f_{name}"] = defaults[name].default_factory
            value = f"_f_{name}() if {name} is _d_{name} else {name}"
        parameters.append(f"{name}=_d_{name}" if name in defaults else name)
        lines.append(f"  _s_{name}(self, {value})")
    if hasattr(cls, "__post_init__"):
        lines.append("  self.__post_init__()")
    exec(f"def __init__(self, {', '.join(parameters)}):\n" + ("\n".join(lines) or "  pass"), scope)
    written = scope["__init__"]
    written.__qualname__ = f"{cls.__qualname__}.__init__"
    written.__annotations__ = {**cls.__annotations__, "return": "None"}
    cls.__init__ = written


def _values(self: Any) -> tuple[Any, ...]:
    return tuple(getattr(self, name) for name in self.__slots__)


def _repr(self: Any) -> str:
    inside = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.__slots__)
    return f"{type(self).__qualname__}({inside})"


def _eq(self: Any, other: Any) -> Any:
    return _values(self) == _values(other) if type(other) is type(self) else NotImplemented


def _hash(self: Any) -> int:
    return hash(_values(self))


def _refuse_to_set(self: Any, name: str, value: object) -> None:
    from dataclasses import FrozenInstanceError

    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_to_delete(self: Any, name: str) -> None:
    from dataclasses import FrozenInstanceError

    raise FrozenInstanceError(f"cannot delete field {name!r}")


def _getstate(self: Any) -> list[Any]:
    return list(_values(self))


def _setstate(self: Any, state: list[Any]) -> None:
    for name, value in zip(self.__slots__, state, strict=True):
        object.__setattr__(self, name, value)
