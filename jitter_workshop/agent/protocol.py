"""Define the messages between the agent and its caller: one JSON object a line, at most MAX_LINE bytes.

The caller asks ``{"id": 1, "verb": "apply", …}``. The agent answers ``{"id": 1, "ok": {…}}`` or ``{"id": 1, "error":
{"message": …, "advice": …}}``. The list shows each verb, its fields, an arrow and the answer. ``{}`` is an answer
without fields.

``hello`` → ``protocol``, ``pid``, ``uid``, ``tree``, ``notice``. Begin the conversation.
    - ``tree``: the folder of the code that runs.
    - ``notice``: a sentence to show, or "".
``plan`` ``wanted``, ``cpus`` → a Plan. Make the plan with root's rights to read.
    - ``wanted``: a list of ``ID`` or ``ID=VALUE``.
    - ``cpus``: the hot CPUs as a list.
``apply`` ``wanted``, ``cpus``, ``shown``, ``lease`` → an ApplyResult. Make the changes that were shown.
    - ``shown``: the digests of these changes.
    - ``lease``: seconds without a heartbeat after which the changes are restored. With null, the changes stay.
``announce``, with the fields of ``apply`` → an ApplyResult without ``applied``. Record in a journal the old values of
changes that a user will make by hand. Nothing is written to the host. ``lease`` must not be null.
``adopt`` ``journal``, ``end``, ``wrong`` → an ApplyResult. Record each announced change whose new value the host has
now. Nothing is written to the host.
    - ``journal``: the id of a journal that this connection announced.
    - ``end``: true if the user will make no more of the announced changes.
    - ``wrong``: true to record a change even if the user typed another value than the announced value. A restore then
      writes the old value.
``restore`` ``tunables``, ``forget`` → a RestoreResult.
    - ``tunables``: ids; an empty list means all.
    - ``forget``: true to make later restores ignore settings that another program or user has changed.
``keep`` ``journals`` → ``kept``. Exclude changes from this lease, so that they stay until ``restore``.
    - ``journals``: the ids of the journals of these changes, from ApplyResult; an empty list means all.
``place`` ``pid`` → ``cpus``. Move a process of the caller's own to the CPUs that this tool isolates.
``place_threads`` ``pid``, ``tids`` → ``cpus``. Move only the threads ``tids`` of the process to the CPUs that this tool
isolates. A host with cgroup version 2 refuses this verb.
``realtime`` ``pid``, ``tids``, ``priority`` → ``{}``. Give threads of the process a real-time priority.
    - ``priority``: a priority of SCHED_FIFO, at most 49; 0 for none.
``evidence`` ``do``. Record the kernel's trace. ``do`` is one of these:
    - ``begin`` ``pid``, ``tids``, ``cpus``, ``clock``, ``stacks``, ``buffer_kb``, ``overwrite`` → a TraceInfo. Prepare
      to record threads of a process of the caller's own. One of ``tids`` may be a child of this process instead, which
      then also belongs to the caller. ``cpus``: a list of CPUs. ``clock``: x86-tsc or mono.
      ``buffer_kb``: the size of each CPU's buffer in KiB; null means the usual size. ``overwrite``: true if the newest
      events overwrite the oldest.
    - ``begin`` with ``pids`` in place of ``pid`` and ``tids``: prepare to follow the caller's own processes, with their
      threads, children, system calls and page faults.
    - ``start`` → ``{}``. Start the recording.
    - ``drain`` → ``kept_bytes``, ``ended``. Make room while processes are followed. ``ended``: true if the recording
      stopped because there was no more room.
    - ``read`` ``since`` → ``pieces``, ``lost``, ``lost_elsewhere``, ``whole_from``. Stop the recording. ``since``:
      ticks, null for all. ``lost``: for each of ``cpus``, the number of lost events of the kinds that are traced only
      there. ``lost_elsewhere``: for each CPU, the number of lost events of the kinds that are traced on all CPUs.
      ``whole_from``: ticks; older events may be overwritten.
    - ``piece`` ``number`` → ``data``: one piece of the trace in base64. ``capture.Capture.read`` describes the joined
      pieces.
    - ``end`` → ``{}``. Remove the recording.
``turn`` ``do``. Take part in the turns of a class host. ``do`` is one of these:
    - ``take`` ``client``, ``people`` → a TurnGranted, when the turn begins. ``client``: a process of the caller's own;
      this process and its children get the hot CPUs. ``people``: the user names of the team.
    - ``give`` → ``{}``. End the caller's own turn. The answer comes when the agent has restored the host.
    - ``doing`` ``doing`` → ``{}``. Publish the holder's description of the present work.
    - ``need`` → ``{}``, or a refusal if the caller does not have the turn.
    - ``end`` ``user`` → ``{}``. End this user's turn or wait; null means the holder of the turn. A student may name
      only themselves.
    - ``freeze`` and ``thaw`` → ``{}``. Only for instructors.
``heartbeat``. Show that the caller is alive. There is no answer.
``bye`` → a RestoreResult. Restore the changes of a lease, and end the connection.

On a class host all verbs except ``hello``, ``plan``, ``turn`` and ``bye`` need the turn. A student may name only the
class's hot CPUs and the tunables that the class file allows. A student's ``lease`` must not be null. Only an instructor
may send ``keep`` or ``announce``. A student's ``restore`` covers only the student's own changes. A caller that has the
turn or waits for it must send messages. After 20 s without one, the agent closes the connection. At the end of a turn
everything is restored. Later requests that need the turn are refused with the reason. Root on a pipe needs no turn.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from jitter_workshop.errors import HostError, UsageError, WorkshopError
from jitter_workshop.model.codec import parse_object, to_plain
from jitter_workshop.model.text import ID, REASON, clean

RequestHandler = Callable[[dict[str, Any]], Any]
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
        raise UsageError("this line is not a JSON object: each request must be one JSON object on one line") from error
    if not isinstance(request.get("verb"), str):
        raise UsageError("the request has no verb")
    return request


def words_field(request: dict[str, Any], name: str, limit: int = MAX_WORDS) -> tuple[str, ...]:
    """Return the field ``name`` of a request, a list of at most ``limit`` short texts. Raise UsageError if the field is
    invalid."""
    value = request.get(name, [])
    if not isinstance(value, list) or len(value) > limit:
        raise UsageError(f"'{name}' must be a list of at most {limit} words")
    if not all(isinstance(word, str) and len(word) <= MAX_WORD for word in value):
        raise UsageError(f"each entry of '{name}' must be a text of at most {MAX_WORD} characters")
    return tuple(value)


def text(request: dict[str, Any], name: str, limit: int = 4096) -> str:
    """Return the field ``name`` of a request, a text. Raise UsageError if the field is invalid."""
    value = request.get(name)
    if not isinstance(value, str) or len(value) > limit:
        raise UsageError(f"'{name}' must be a text of at most {limit} characters")
    return value


def number_field(request: dict[str, Any], name: str, high: int = 1 << 22) -> int:
    """Return the field ``name`` of a request, a whole number from 0 to ``high``. Raise UsageError if the field is
    invalid."""
    value = request.get(name)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= high:
        raise UsageError(f"'{name}' must be a whole number from 0 to {high}")
    return value


def numbers_field(request: dict[str, Any], name: str, limit: int) -> tuple[int, ...]:
    """Return the field ``name`` of a request, a list of at most ``limit`` whole numbers. Raise UsageError if the field
    is invalid."""
    value = request.get(name)
    if not isinstance(value, list) or len(value) > limit:
        raise UsageError(f"'{name}' must be a list of at most {limit} numbers")
    return tuple(number_field({name: one}, name) for one in value)


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


def answer_request(
    line: bytes,
    verbs: Mapping[str, RequestHandler],
    service: str,
    refused: Callable[[WorkshopError], None] = lambda error: None,
) -> bytes | None:
    """Run the function for the request in ``line``, and return the line with the answer.

    Return None if the function returns None, because its answer comes later or never. For every exception, return an
    error answer, so that the service continues. ``refused`` is called only for a WorkshopError.
    """
    request_id: Any = None
    try:
        request = parse_request(line)
        request_id, verb = request.get("id"), request["verb"]
        if verb not in verbs:
            raise UsageError(f"there is no request '{clean(verb, ID)}'")
        told = verbs[verb](request)
        return None if told is None else encode_answer(request_id, told)
    except Gone:
        raise
    except WorkshopError as error:
        refused(error)
        return failure(request_id, error)
    except Exception as error:
        words = f"a mistake in the {service}: {type(error).__name__}: {clean(error, REASON)}"
        return failure(request_id, HostError(words, "please report this fault"))


def encode_answer(request_id: Any, value: Any) -> bytes:
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
