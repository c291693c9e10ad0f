"""Print the man page of all verbs, made of the same parsers as the help.

To read it: jitter-workshop man | man -l -
To keep it, for 'man jitter-workshop':

  jitter-workshop man > ~/.local/share/man/man1/jitter-workshop.1
"""

from __future__ import annotations

import argparse
import sys


def add_arguments(parser: argparse.ArgumentParser) -> None:
    pass


def run(args: argparse.Namespace) -> int:
    """Print the man page as roff. Return 0."""
    del args
    from jitter_workshop import __version__
    from jitter_workshop.commands.common import manpage, surface

    sys.stdout.write(manpage.man_page(surface.verbs(), __version__))
    return 0
