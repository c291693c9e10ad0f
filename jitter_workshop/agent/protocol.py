"""Define the messages between the agent and its caller: one JSON object a line, at most MAX_LINE bytes.

The caller asks ``{"id": 1, "verb": "apply", …}``; the agent answers ``{"id": 1, "ok": {…}}`` or ``{"id": 1, "error":
{"message": …, "advice": …}}``. A ``heartbeat`` is not answered. Verbs and their fields:

``hello``      ``{}`` → protocol, pid, uid, tree (the folder of the code that runs), notice (a sentence, or "")
``plan``       ``wanted`` (list of ``ID`` or ``ID=VALUE``), ``cpus`` (a CPU list) → the plan as root sees it
``apply``      the same with ``shown`` (digests of the changes that were shown) and ``lease`` (seconds without a
               heartbeat after which all is restored; null: all stays) → an ApplyResult
``announce``   as ``apply``, always with ``lease``, for changes that a user makes by hand: their old values go to a
               journal, and nothing is written → an ApplyResult without ``applied``
``adopt``      ``journal`` (of an ``announce`` of this connection): the changes that have the announced values on the
               host are recorded as made, and nothing is written; ``end``: the rest is no longer announced;
               ``wrong``: values other than the announced ones were typed: these are restored, too → an ApplyResult
``restore``    ``tunables`` (ids; none = all), ``forget`` (give up overwritten changes, too) → a RestoreResult
``keep``       the changes of this lease stay until ``restore``; with ``journals`` only those in the named journals (an
               ApplyResult has the id), and all others stay leased
``place``      ``pid``: a process of the caller's own, onto the CPUs that this tool isolates → ``cpus``
``place_threads``  ``pid``, ``tids``: threads of the caller's own process, onto these CPUs, while its other threads stay
               outside (not on a class host with cgroup version 2) → ``cpus``
``realtime``   ``pid``, ``tids``, ``priority`` (SCHED_FIFO up to 49, 0 = none): threads of the caller's own → {}
``evidence``   ``do``: ``begin`` (``pid``, ``tids``: threads of the caller's own process; ``cpus``: a list; ``clock``:
               x86-tsc or mono; ``stacks``; ``buffer_kb`` for each CPU, null for the usual) → a TraceInfo;
               or with ``pids`` in the place of ``pid`` and ``tids``: the caller's own processes, whose threads and
               children are followed, with their system calls and page faults, and ``drain`` → kept_bytes, ended
               (the recording stopped: no room for more); with ``overwrite`` the newest events overwrite the oldest;
               ``start`` → {}; ``read`` (``since``: ticks, null for all) → pieces, lost, lost_elsewhere (CPU → number of
               events), whole_from (ticks; events before it may be overwritten); ``piece`` (``number``)
               → data (base64; all pieces together: see ``capture.Capture.read``); ``end`` → {}
``turn``       on a class host: ``do`` = ``take`` (``client``: a process of the caller's own, which gets the hot CPUs
               with its children; ``people``: user names of their team) → a TurnGranted, once the turn has come;
               ``give`` → {}, once the machine is restored; ``doing`` (``doing``: what the holder does, in their own
               words) → {}; ``need`` → {}, or a refusal if the caller does not have the turn; for instructors ``end``
               (``user``: the user whose turn or place in the queue ends, null: the holder of the turn; a student may
               name themselves), ``freeze``, ``thaw`` → {}
``heartbeat``  the caller is alive
``bye``        the end; a lease is restored first → a RestoreResult

On a class host all verbs except ``hello``, ``plan``, ``turn`` and ``bye`` need the turn. A student names the class's
hot CPUs, tunables that the class file lets them apply, and always a lease. Only an instructor may ``keep`` and
``announce``; a student's ``restore`` covers only their own changes. A caller that waits for the turn or has it counts
as gone after 20 s of silence. At the end of a turn everything is restored; later requests that need the turn are
refused with the reason. Root on a pipe needs no turn.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from jitter_workshop.errors import HostError, UsageError, WorkshopError
from jitter_workshop.model.codec import parse_object, to_plain
from jitter_workshop.model.text import clean

Verb = Callable[[dict[str, Any]], Any]
"""The function that answers a request. It returns a dataclass or a dict; None if the answer comes later or never. It
raises WorkshopError to refuse the request."""

PROTOCOL = 1
MAX_LINE = 1 << 20
MAX_WORDS = 200
MAX_WORD = 400
MAX_SHOWN = 100_000
LEASE_LIMITS_S = (1.0, 300.0)


class Gone(Exception):
    """Report that the caller is gone."""


def parse_request(line: bytes) -> dict[str, Any]:
    """Return the request in a line. Raise UsageError if the line is not a request."""
    try:
        request = parse_object(line.decode("utf-8"))
    except ValueError as error:
        raise UsageError("the agent expects one JSON object a line, and this line is not one") from error
    if not isinstance(request.get("verb"), str):
        raise UsageError("the request has no verb")
    return request


def words(request: dict[str, Any], name: str, limit: int = MAX_WORDS) -> tuple[str, ...]:
    """Return the field ``name`` of a request, a list of at most ``limit`` short texts. Raise UsageError if the field is
    invalid."""
    value = request.get(name, [])
    if not isinstance(value, list) or len(value) > limit:
        raise UsageError(f"'{name}' must be a list of at most {limit} words")
    if not all(isinstance(word, str) and len(word) <= MAX_WORD for word in value):
        raise UsageError(f"'{name}' has an entry that is not a short word")
    return tuple(value)


def text(request: dict[str, Any], name: str, limit: int = 4096) -> str:
    """Return the field ``name`` of a request, a text. Raise UsageError if the field is invalid."""
    value = request.get(name)
    if not isinstance(value, str) or len(value) > limit:
        raise UsageError(f"'{name}' must be a text of at most {limit} characters")
    return value


def number(request: dict[str, Any], name: str, high: int = 1 << 22) -> int:
    """Return the field ``name`` of a request, a whole number from 0 to ``high``. Raise UsageError if the field is
    invalid."""
    value = request.get(name)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= high:
        raise UsageError(f"'{name}' must be a whole number from 0 to {high}")
    return value


def numbers(request: dict[str, Any], name: str, limit: int) -> tuple[int, ...]:
    """Return the field ``name`` of a request, a list of at most ``limit`` whole numbers. Raise UsageError if the field
    is invalid."""
    value = request.get(name)
    if not isinstance(value, list) or len(value) > limit:
        raise UsageError(f"'{name}' must be a list of at most {limit} numbers")
    return tuple(number({name: one}, name) for one in value)


def lease(request: dict[str, Any]) -> float | None:
    """Return the field ``lease`` of a request in seconds, None for no lease. Raise UsageError if the field is
    invalid."""
    value = request.get("lease")
    if value is None:
        return None
    low, high = LEASE_LIMITS_S
    if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
        raise UsageError(f"'lease' must be a number of seconds from {low:g} to {high:g}, or null")
    return float(value)


def answered(
    line: bytes, verbs: Mapping[str, Verb], service: str, refused: Callable[[WorkshopError], None] = lambda error: None
) -> bytes | None:
    """Return the line that answers one request, made by the function for the request's verb.

    Return None if that function returns None: the answer then comes later, or never. ``refused`` is called with each
    refusal. A fault of this program is answered, too, as an error. The service has to go on, because a lease may still
    have to be restored.
    """
    request_id: Any = None
    try:
        request = parse_request(line)
        request_id, verb = request.get("id"), request["verb"]
        if verb not in verbs:
            raise UsageError(f"there is no request '{clean(verb, 40)}'")
        told = verbs[verb](request)
        return None if told is None else answer(request_id, told)
    except Gone:
        raise
    except WorkshopError as error:
        refused(error)
        return failure(request_id, error)
    except Exception as error:
        words = f"a mistake in the {service}: {type(error).__name__}: {clean(error, 200)}"
        return failure(request_id, HostError(words, "please report this fault"))


def answer(request_id: Any, value: Any) -> bytes:
    """Return the line of an answer. ``value``: a dataclass or a dict."""
    return _line({"id": _plain_id(request_id), "ok": to_plain(value)})


def failure(request_id: Any, error: WorkshopError) -> bytes:
    """Return the line of a refusal."""
    body = {"message": error.message, "advice": error.advice, "kind": type(error).__name__}
    return _line({"id": _plain_id(request_id), "error": body})


def _plain_id(request_id: Any) -> int | None:
    return (
        request_id
        if isinstance(request_id, int) and not isinstance(request_id, bool) and abs(request_id) < 1 << 53
        else None
    )


def _line(value: dict[str, Any]) -> bytes:
    return json.dumps(value, ensure_ascii=True, separators=(",", ":")).encode() + b"\n"
