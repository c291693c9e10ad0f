"""Read a recording's description of itself: ``RECORDING.json`` at its top, written by ``record-host``.

The file is untrusted data like the rest of the tree: entries that do not fit are ignored. It can only take away (mark a
file as not permitted, or as read-only), never add.
"""

from __future__ import annotations

from jitter_workshop.model.record import dataclass

FILE_NAME = "RECORDING.json"
FORMAT_VERSION = 1
MAX_BYTES = 8 << 20


@dataclass(frozen=True, slots=True)
class Recording:
    """Hold a recording's description of itself.

    ``not_permitted``: files that existed and could not be read for lack of rights. ``read_only``: files that no user
    may write on that host; the modes of a copy do not keep this. ``recorded_at``: UTC, ISO 8601.
    """

    tool_version: str = ""
    recorded_at: str = ""
    kernel: str = ""
    cpus: int | None = None
    note: str = ""
    not_permitted: frozenset[str] = frozenset()
    read_only: frozenset[str] = frozenset()


def parse_recording(text: str | None) -> Recording | None:
    """Parse the file; return None where it is missing or does not describe a recording."""
    if not text:
        return None
    # Imported here: only a recorded tree needs it.
    import json

    try:
        plain = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(plain, dict) or not isinstance(plain.get("format_version"), int):
        return None
    cpus = plain.get("cpus")
    return Recording(
        tool_version=_text(plain.get("tool_version")),
        recorded_at=_text(plain.get("recorded_at")),
        kernel=_text(plain.get("kernel")),
        cpus=cpus if isinstance(cpus, int) and not isinstance(cpus, bool) and cpus >= 0 else None,
        note=_text(plain.get("note")),
        not_permitted=_paths(plain.get("not_permitted")),
        read_only=_paths(plain.get("read_only")),
    )


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _paths(value: object) -> frozenset[str]:
    return frozenset(v for v in value if isinstance(v, str)) if isinstance(value, list) else frozenset()
