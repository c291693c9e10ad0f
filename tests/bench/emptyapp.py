"""Show the least that an app of Textual can: one line. The start of the screen is compared with it."""

from __future__ import annotations

import sys

from textual.app import App, ComposeResult
from textual.widgets import Static


class EmptyApp(App[None]):
    """Show the words that the command line gives."""

    def compose(self) -> ComposeResult:
        yield Static(sys.argv[1])


if __name__ == "__main__":
    EmptyApp().run()
