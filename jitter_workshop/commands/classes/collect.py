"""Show the results gathered from many machines: ``class collect FOLDER`` as tables, with ``--chapter`` as curves."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from jitter_workshop.commands.common.base import print_json
from jitter_workshop.errors import UsageError


def run(args: argparse.Namespace) -> int:
    """Return 0 if every machine answered and has nothing to improve, 1 otherwise.

    With ``--chapter`` return 0 if every board is there, because the curves do not show what could be improved.
    """
    from jitter_workshop.commands.classes.board import known_place, one_form, show_boards, show_class_curves
    from jitter_workshop.flow.classes.classboard import board_json, csv_table, gathered, judged, together
    from jitter_workshop.report.text.fleet import fleet, fleet_text
    from jitter_workshop.report.text.terminal import output_style

    if len(args.words) != 1 or not args.words[0]:
        raise UsageError("give one folder", "'class collect FOLDER' reads what the playbook gather.yml wrote")
    one_form(args)
    known_place(args.chapter, args.step)
    machines = gathered(Path(args.words[0]))
    if not machines:
        raise UsageError("nothing was gathered there", "each machine has a folder with status.json and board.json")
    answered = [one for one in machines if one.board is not None]
    if args.chapter is not None:
        show_boards([one for one in machines if one.board is None])
        show_class_curves(together(answered), args.chapter, args.step or "")
        return 0 if len(answered) == len(machines) else 1
    rows = fleet([(one.host, one.status, one.error) for one in machines])
    if args.csv:
        sys.stdout.write(csv_table(machines, judged()))
    elif args.json:
        print_json({**board_json(machines), "fleet": [row.plain() for row in rows]})
    else:
        sys.stdout.write(fleet_text(rows, output_style()))
        if answered:
            # The table above lists the silent machines, and why.
            sys.stdout.write("\n")
            show_boards(answered)
    return 0 if all(row.well for row in rows) else 1
