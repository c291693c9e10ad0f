"""Show the command palette: the user finds a command by typing, and Enter runs it."""

from __future__ import annotations

from collections.abc import Collection

from textual.command import Command, CommandInput, CommandList, CommandPalette


class CommandFinder(CommandPalette):
    """Find a command by typing.

    Until the user types or moves the cursor, no command is under the cursor, so the first Enter runs nothing.
    ``last``: titles of commands that stand below all others until the user types, because they change the host.
    """

    def __init__(self, last: Collection[str]) -> None:
        super().__init__(id="--command-palette")
        self._last = frozenset(last)

    def _refresh_command_list(self, command_list: CommandList, commands: list[Command], clear_current: bool) -> None:
        if self.query_one(CommandInput).value.strip():
            super()._refresh_command_list(command_list, commands, clear_current)
            return
        # The base class sorts by score, and keeps the order of equal scores.
        ordered = sorted(commands, key=lambda one: one.hit.text in self._last)
        super()._refresh_command_list(command_list, ordered, clear_current)
        command_list.highlighted = None
