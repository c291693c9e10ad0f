"""Print completions of the command line for a shell: bash, zsh or fish.

To install the completions for your user, type one of these commands. Repeat it after an update of this program:

  jitter-workshop completions bash > ~/.local/share/bash-completion/completions/jitter-workshop
  jitter-workshop completions zsh > DIR/_jitter-workshop                 (DIR: a folder of $fpath)
  jitter-workshop completions fish > ~/.config/fish/completions/jitter-workshop.fish

Or for one shell alone: source <(jitter-workshop completions bash). The completions have the same verbs and options as
the help, and the ids of this version's checks, chapters, scenarios and machines. To complete a word, a shell does not
start this program.
"""

from __future__ import annotations

import argparse
import sys

SHELLS = ("bash", "zsh", "fish")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=SHELLS, metavar="SHELL", help=", ".join(SHELLS))


def run(args: argparse.Namespace) -> int:
    """Print the script for the shell. Return 0."""
    from jitter_workshop.commands.common import shells, surface

    sys.stdout.write(shells.SHELLS[args.shell](surface.verbs()))
    return 0
