"""Compare many hosts: which of them differ from the rest, and in what. Nothing is measured.

  fleet compare FILE… | FOLDER…   compare the hosts whose answers are in these files

An answer is the output of 'status --json', 'measure --json' or 'watch --json', a stored run.json, or a verdict file of
'watch --accept'. In a FOLDER, each inner folder has the answers of one host and its name; the file names do not matter,
but they end in .json. A file elsewhere names its host itself. 'assets/fleet/README.md' and 'ansible/gather.yml' gather
such folders.

Settings: a setting of more than half of the hosts is the commonest one, and the other hosts are named. Figures: each
host's runs are compared with those of all other hosts. A host needs two runs or more, and there must be five such
hosts. --fdr bounds the share of false claims among all claims on figures. Without --metric, the figures are p50, p99,
p99.9, stalls over 100 µs and the time in stalls, and the stalls of watches.

Only runs that were measured in the same way are compared. Recorded, emulated and practice machines are never compared
with real hosts. A file that cannot be compared is named with the reason.

Exit codes: 0 all hosts are alike, 1 some differ, 2 not compared.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from jitter_workshop.commands.common.base import Parser, add_json, offer, print_notice, print_result
from jitter_workshop.errors import UsageError
from jitter_workshop.model.fleet import FDR
from jitter_workshop.model.text import ID, MOST_LONG_NAMES, clean, many

_ACTIONS = ("compare",)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    assert isinstance(parser, Parser)
    parser.intermixed = True
    do = parser.add_argument("do", nargs="?", metavar="DO", help="the action: compare")
    offer(do, _ACTIONS)
    parser.add_argument(
        "paths", nargs="*", type=Path, metavar="FILE", help="a file with an answer, or a folder of them"
    )
    parser.add_argument(
        "--metric", action="append", default=[], metavar="M", help="a figure to compare, such as p99.9; may be repeated"
    )
    parser.add_argument(
        "--fdr", type=_share, default=FDR, metavar="Q", help=f"the bound of the false discovery rate (default: {FDR:g})"
    )
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Print which hosts differ. Return 0 if all are alike, 1 if some differ."""
    if args.do not in _ACTIONS:
        words = f"there is no 'fleet {clean(args.do, ID)}'" if args.do is not None else "'fleet' alone does nothing"
        raise UsageError(words, "use 'fleet compare FOLDER'")
    if not args.paths:
        raise UsageError("'fleet compare' needs files or folders", "see 'jitter-workshop fleet --help'")
    from jitter_workshop.flow.fleet import compare_fleet
    from jitter_workshop.presenter.runs.fleet import fleet_lines

    found = compare_fleet(args.paths, args.metric, args.fdr)
    for one in found.left_out[:MOST_LONG_NAMES]:
        print_notice(f"Left out: {one.file}: {one.reason}.")
    if len(found.left_out) > MOST_LONG_NAMES:
        print_notice(f"Left out: {many(len(found.left_out) - MOST_LONG_NAMES, 'more file')}; --json names all.")
    print_result(args, found, lambda width: fleet_lines(found, width))
    return 0 if found.alike else 1


def _share(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"not a number: {text!r}") from None
    if not 0 < value < 1:
        raise argparse.ArgumentTypeError(f"not between 0 and 1: {text!r}")
    return value
