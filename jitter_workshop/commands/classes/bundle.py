"""Write one archive that makes a class host without the internet: ``class bundle -o FILE``."""

from __future__ import annotations

import argparse

from jitter_workshop.errors import UsageError


def run(args: argparse.Namespace) -> int:
    """Return 0 if the archive is written."""
    from jitter_workshop.flow.classes import classadmin

    if args.output is None:
        raise UsageError("the archive needs a name", "-o FILE.tar.gz")
    classadmin.bundle(args.output, args.file)
    print(args.output)
    return 0
