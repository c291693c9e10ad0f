"""Define all locations of the workshop's own files (XDG base directories). No other module defines such a location.

Environment variables replace defaults. A variable with a relative path is ignored, as the XDG specification requires.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

APP = "jitter-workshop"

CLASS_FILE = "/etc/jitter-workshop/class.toml"
"""Root's class file; a host with this file is a class host."""
RUN_DIR = "/run/jitter-workshop"
"""Root's folder that all users can read: the sockets of both services, and the state of the turn."""
BOARD_DIR = "/var/lib/jitter-workshop-board"
"""The folder of a class's board; it belongs to the user jitterlab. Only the board reads the database in it. All users
may read the banner in it."""
INSTALL_DIR = "/opt/jitter-workshop"
"""The folder of the tool on a class host. It belongs to root, so that no user can change what root runs."""


def _place(variable: str, default: str) -> str:
    value = os.environ.get(variable, "")
    return value if value.startswith("/") else f"{os.path.expanduser('~')}/{default}"  # noqa: PTH111 - as a string


def _xdg(variable: str, default: str) -> Path:
    from pathlib import Path  # a short verb asks for a place as a string, and loads no pathlib

    return Path(_place(variable, default))


def state_dir() -> Path:
    """Return ``$XDG_STATE_HOME/jitter-workshop`` (default ``~/.local/state``)."""
    return _xdg("XDG_STATE_HOME", ".local/state") / APP


def sessions_dir() -> Path:
    """Return the folder that contains a folder for each session."""
    return state_dir() / "sessions"


def sessions_place() -> str:
    """Return the path of the folder that contains a folder for each session, as a string."""
    return f"{_place('XDG_STATE_HOME', '.local/state')}/{APP}/sessions"


def config_file() -> Path:
    """Return ``$XDG_CONFIG_HOME/jitter-workshop/config.toml``."""
    return _xdg("XDG_CONFIG_HOME", ".config") / APP / "config.toml"


def cache_dir() -> Path:
    """Return the cache folder. It holds unpacked recordings and saved machines. The benchmark also makes its record and
    journal files in this folder. These files are deleted as soon as they are open."""
    return _xdg("XDG_CACHE_HOME", ".cache") / APP


def assets() -> Path:
    """Return the folder of assets."""
    return packaged("assets")


def packaged(name: str) -> Path:
    """Return the folder ``assets`` or ``lessons``. It lies in the installed package or, if the package does not have
    it, in the checkout."""
    from importlib.util import find_spec  # importlib.resources gives the same folder, and takes 4 ms to load
    from pathlib import Path

    found = find_spec(f"jitter_workshop.{name}")
    places = list(found.submodule_search_locations or ()) if found is not None else []
    return Path(places[0]) if places else Path(__file__).resolve().parents[1] / name


def documents_dir() -> Path | None:
    """Return the user's documents folder, as xdg-user-dirs sets it; None if no folder is set.

    The setting is ``XDG_DOCUMENTS_DIR="$HOME/…"`` in ``$XDG_CONFIG_HOME/user-dirs.dirs``.
    """
    from pathlib import Path

    try:
        text = (_xdg("XDG_CONFIG_HOME", ".config") / "user-dirs.dirs").read_text("utf-8", "replace")
    except OSError:
        return None
    for line in text.splitlines():
        name, _, value = line.strip().partition("=")
        place = value.strip('"')
        if name == "XDG_DOCUMENTS_DIR" and place.startswith("$HOME/"):
            return Path.home() / place.removeprefix("$HOME/")
        if name == "XDG_DOCUMENTS_DIR" and place.startswith("/"):
            return Path(place)
    return None
