"""The JSON Schemas of ``report --format json``, of ``explain --json`` for a program, of ``watch`` and of ``fleet
compare --json``, made from the model's types, and a small validator of what they use.

``python -m tests.reportschema`` writes ``assets/*.schema.json`` anew; a test says when that is due.
"""

from __future__ import annotations

import dataclasses
import json
import types
import typing
from pathlib import Path
from typing import Any, Literal

from jitter_workshop.model.codec import field_names
from jitter_workshop.model.fleet import FleetComparison
from jitter_workshop.model.program import ProgramReport
from jitter_workshop.model.report import ReportDocument
from jitter_workshop.model.watch import WatchReport, WatchVerdict

ASSET = Path(__file__).parents[1] / "assets" / "report.schema.json"
PROGRAM = ASSET.with_name("program.schema.json")
WATCH = ASSET.with_name("watch.schema.json")
VERDICT = ASSET.with_name("verdict.schema.json")
FLEET = ASSET.with_name("fleet.schema.json")
DIALECT = "https://json-schema.org/draft/2020-12/schema"


def schema(
    top: type = ReportDocument,
    title: str = "jitter-workshop report --format json",
    said: str = "docs/report.md says what each field is. Times are integers in ns unless named otherwise.",
) -> dict[str, Any]:
    """Every field is required, and others may be added (docs/report.md)."""
    known: dict[str, type] = {}
    defs: dict[str, Any] = {}
    whole = _of(top, known, defs)
    return {
        "$schema": DIALECT,
        "title": title,
        "description": said,
        **whole,
        "$defs": dict(sorted(defs.items())),
    }


def text() -> str:
    return json.dumps(schema(), indent=1, ensure_ascii=False) + "\n"


def program_text() -> str:
    title = "jitter-workshop explain --json, for a program"
    said = "The descriptions say what each field is. Times are integers in ns."
    return json.dumps(schema(ProgramReport, title, said), indent=1, ensure_ascii=False) + "\n"


def watch_text() -> str:
    said = "The descriptions say what each field is. Times are integers in ns unless named otherwise."
    return json.dumps(schema(WatchReport, "jitter-workshop watch --json", said), indent=1, ensure_ascii=False) + "\n"


def verdict_text() -> str:
    title, said = "the verdict file of jitter-workshop watch --accept", "The descriptions say what each field is."
    return json.dumps(schema(WatchVerdict, title, said), indent=1, ensure_ascii=False) + "\n"


def fleet_text() -> str:
    said = "The descriptions say what each field is. Names and values of hosts are cleaned, but come from outside."
    found = schema(FleetComparison, "jitter-workshop fleet compare --json", said)
    return json.dumps(found, indent=1, ensure_ascii=False) + "\n"


def _of(hint: Any, known: dict[str, type], defs: dict[str, Any]) -> dict[str, Any]:
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if dataclasses.is_dataclass(hint):
        return {"$ref": f"#/$defs/{_define(typing.cast(type, hint), known, defs)}"}
    if origin in (typing.Union, types.UnionType):
        options = [_of(one, known, defs) for one in args]
        simple = [one["type"] for one in options if one.keys() == {"type"}]
        return {"type": simple} if len(simple) == len(options) else {"anyOf": options}
    if origin is Literal:
        return {"enum": list(args)}
    if origin is tuple and args[1:] == (Ellipsis,):
        return {"type": "array", "items": _of(args[0], known, defs)}
    if origin is tuple:
        items = [_of(one, known, defs) for one in args]
        return {"type": "array", "prefixItems": items, "minItems": len(items), "maxItems": len(items)}
    if origin is dict:
        return {"type": "object", "additionalProperties": _of(args[1], known, defs)}
    if hint is Any:
        return {}
    plain = {str: "string", int: "integer", float: "number", bool: "boolean", type(None): "null"}
    return {"type": plain[hint]}


def _define(cls: type, known: dict[str, type], defs: dict[str, Any]) -> str:
    name = cls.__name__
    if known.get(name, cls) is not cls:
        name = cls.__module__.rpartition(".")[2].capitalize() + name
    if name in known:
        return name
    known[name] = cls
    hints = typing.get_type_hints(cls)
    fields = field_names(cls) or {}
    about = " ".join((cls.__doc__ or "").split())
    defs[name] = {
        "type": "object",
        "description": about,
        "properties": {name: _of(hints[field], known, defs) for name, field in fields.items()},
        "required": list(fields),
    }
    return name


def problems(value: Any, asked: dict[str, Any], whole: dict[str, Any], where: str = "$") -> list[str]:
    """Return what of a value does not fit a schema, each with its place; [] where it fits. Knows the words that
    :func:`schema` uses, and refuses others."""
    strange = asked.keys() - _WORDS
    if strange:
        raise NotImplementedError(f"{where}: this validator does not know {', '.join(sorted(strange))}")
    found: list[str] = []
    if "$ref" in asked:
        name = asked["$ref"].removeprefix("#/$defs/")
        return problems(value, whole["$defs"][name], whole, where)
    if "anyOf" in asked:
        tried = [problems(value, one, whole, where) for one in asked["anyOf"]]
        return [] if any(not one for one in tried) else min(tried, key=len)
    if "enum" in asked and value not in asked["enum"]:
        found.append(f"{where}: {value!r} is none of {asked['enum']}")
    wanted = asked.get("type", [])
    wanted = [wanted] if isinstance(wanted, str) else wanted
    if wanted and not any(_is(value, one) for one in wanted):
        return [*found, f"{where}: {type(value).__name__} is no {' or '.join(wanted)}"]
    if isinstance(value, dict):
        found += [f"{where}.{name}: missing" for name in asked.get("required", []) if name not in value]
        known = asked.get("properties", {})
        rest = asked.get("additionalProperties", {})
        for name, one in value.items():
            found += problems(one, known.get(name, rest), whole, f"{where}.{name}")
    if isinstance(value, list):
        heads = asked.get("prefixItems", [])
        if not asked.get("minItems", 0) <= len(value) <= asked.get("maxItems", len(value)):
            found.append(f"{where}: {len(value)} items")
        for number, one in enumerate(value):
            part = heads[number] if number < len(heads) else asked.get("items", {})
            found += problems(one, part, whole, f"{where}[{number}]")
    return found


_WORDS = {
    "$defs", "$ref", "$schema", "additionalProperties", "anyOf", "description", "enum", "items", "maxItems", "minItems",
    "prefixItems", "properties", "required", "title", "type",
}  # fmt: skip


def _is(value: Any, kind: str) -> bool:
    if kind == "number":
        return isinstance(value, int | float) and not isinstance(value, bool)
    if kind == "integer":
        return isinstance(value, int) and not isinstance(value, bool)
    return isinstance(value, {"string": str, "boolean": bool, "null": type(None), "object": dict, "array": list}[kind])


if __name__ == "__main__":
    ASSET.write_text(text(), encoding="utf-8")
    PROGRAM.write_text(program_text(), encoding="utf-8")
    WATCH.write_text(watch_text(), encoding="utf-8")
    VERDICT.write_text(verdict_text(), encoding="utf-8")
    FLEET.write_text(fleet_text(), encoding="utf-8")
