"""Show what is missing on this host for each thing that the tool can do, and the command that mends it.

Nothing is written, and no rights are needed. The settings of the host are not judged: 'status' does that.

  ok          it is there
  missing     it can be mended; the line "do:" says how
  not here    this host cannot have it; the text says why

The kernel's trace need not be mounted. If it is not mounted, a helper with root's rights mounts it while it records.
Only the helper sees this mount.

Exit codes: 0 everything is there that measuring needs, 1 something that measuring needs is missing.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from jitter_workshop import __version__
from jitter_workshop.commands.common.base import add_json, print_result, require_live_host

if TYPE_CHECKING:
    from jitter_workshop.flow.host_ops.doctor import HostCheck


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Print what is there and what is missing. Return 0 if this host can be measured, 1 if not."""
    require_live_host(args)
    from jitter_workshop.flow.host_ops.doctor import examine
    from jitter_workshop.host.root import HostRoot
    from jitter_workshop.presenter.host import doctor

    found = examine(HostRoot())
    print_result(args, _plain(found), lambda width: doctor.doctor_lines(found, __version__, width))
    return 0 if found.can_measure else 1


def _plain(found: HostCheck) -> dict[str, object]:
    count = {state: sum(need.state == state for need in found.needs) for state in ("ok", "missing", "not_here")}
    return {
        "version": __version__,
        "python": found.python,
        "can_measure": found.can_measure,
        "needs": list(found.needs),
        "summary": count,
    }
