"""Record this host into DIR. Verbs that only read can use the recording elsewhere, with --root DIR.

DIR must be new or empty. Only the files that this program reads are recorded. Left out are: process arguments, MAC and
IP addresses, serial numbers, boot parameters without effect on latency, and the names of user tasks (except known
services). The host's name is left out unless --with-hostname is given. No rights are needed. Without root's rights some
files cannot be read; the recording lists them.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from jitter_workshop.commands.common.base import PROGRAM, add_json, print_result
from jitter_workshop.model.text import MOST_LONG_NAMES, PATH, SENTENCE, clean

if TYPE_CHECKING:
    from jitter_workshop.host.recording.recorder import RecordingReport


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("dir", metavar="DIR", type=Path, help="the folder to write: it must be new or empty")
    parser.add_argument("--with-hostname", action="store_true", help="also record the name of the host")
    parser.add_argument(
        "--note", metavar="TEXT", default="", help="a description of this machine, kept with the recording"
    )
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Record the host and return 0. Files that could not be read are listed; they do not make the exit code 1."""
    from jitter_workshop.flow.host_ops.record_host import record

    report = record(args.root, args.dir, with_hostname=args.with_hostname, note=clean(args.note, SENTENCE))
    print_result(args, report, "\n".join(_lines(report)) + "\n")
    return 0


def _lines(report: RecordingReport) -> list[str]:
    folder = clean(report.folder, PATH)
    lines = [f"Recorded {report.files} files ({_size(report.bytes)}) in {folder}"]
    for paths, what in (
        (report.not_permitted, "not permitted without root"),
        (report.left_out, "left out on purpose"),
        (report.too_large, "larger than the limit for such a file"),
        (report.changed, "changed while they were recorded"),
    ):
        if paths:
            shown = ", ".join(clean(path) for path in paths[:MOST_LONG_NAMES])
            more = ", …" if len(paths) > MOST_LONG_NAMES else ""
            lines.append(f"  {len(paths)} {what}: {shown}{more}")
    lines.append(
        "Read the recording before you share it: it contains the names of network cards, services and cgroups."
    )
    lines.append(f"To show the checks of this recording: {PROGRAM} status --root {folder}")
    return lines


def _size(count: int) -> str:
    return f"{count / 1024:.0f} KiB" if count < 1 << 20 else f"{count / (1 << 20):.1f} MiB"
