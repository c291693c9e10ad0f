"""Tell whether the kernel's trace of this machine can be recorded by a test."""

from __future__ import annotations

import os

from jitter_workshop.agent.tracing import instances
from jitter_workshop.errors import HostError
from jitter_workshop.host.root import HostRoot
from jitter_workshop.tuning.writer import HostWriter


def why_not() -> str:
    """Return why no trace can be recorded here, or ""."""
    if os.geteuid() != 0:
        return "only root may record the kernel's trace"
    if instances.own_numbers(HostWriter()):
        return "a container with process numbers of its own"
    try:
        instances.trace_folder(HostRoot())
    except HostError as error:
        return error.sentence()
    return ""
