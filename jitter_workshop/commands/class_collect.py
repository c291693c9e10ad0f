"""``class collect FOLDER``: the table of many machines, of what was gathered of each."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from jitter_workshop.commands.base import print_json
from jitter_workshop.errors import UsageError


def run(args: argparse.Namespace) -> int:
    """0 every machine answered and has nothing to improve, 1 otherwise."""
    from jitter_workshop.commands.class_board import show_boards
    from jitter_workshop.flow.classboard import board_json, csv_table, gathered, judged
    from jitter_workshop.report.fleet_text import fleet, fleet_text
    from jitter_workshop.report.terminal import output_style

    if len(args.words) != 1:
        raise UsageError("one folder is asked for", "'class collect FOLDER': what the playbook gather.yml wrote")
    machines = gathered(Path(args.words[0]))
    if not machines:
        raise UsageError("nothing was gathered there", "each machine has a folder with status.json and board.json")
    rows = fleet([(one.host, one.status, one.error) for one in machines])
    if args.csv:
        sys.stdout.write(csv_table(machines, judged()))
    elif args.json:
        print_json({**board_json(machines), "fleet": [row.plain() for row in rows]})
    else:
        sys.stdout.write(fleet_text(rows, output_style()) + "\n")
        show_boards(machines)
    return 0 if all(row.well for row in rows) else 1
