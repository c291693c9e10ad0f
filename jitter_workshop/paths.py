"""Every location that the workshop reads or writes for itself, once (XDG base directories).

Environment variables win over defaults; a relative path in one of them is ignored, as the XDG specification asks.
"""

from __future__ import annotations

import os
from pathlib import Path

APP = "jitter-workshop"

CLASS_FILE = "/etc/jitter-workshop/class.toml"
"""Root's; a host that has it is a class host."""
RUN_DIR = "/run/jitter-workshop"
"""Root's, read by all: the sockets of both services, and whose turn it is."""
BOARD_DIR = "/var/lib/jitter-workshop-board"
"""The board's own, of the user jitterlab: its database, which nobody else reads, and the banner, which all do."""
INSTALL_DIR = "/opt/jitter-workshop"
"""Where a class host has the tool, root's own: who may change it could change what root runs."""


def _xdg(variable: str, default: str) -> Path:
    value = os.environ.get(variable, "")
    return Path(value) if value.startswith("/") else Path.home() / default


def state_dir() -> Path:
    """``$XDG_STATE_HOME/jitter-workshop`` (default ``~/.local/state``)."""
    return _xdg("XDG_STATE_HOME", ".local/state") / APP


def sessions_dir() -> Path:
    """Where sessions live, one folder each."""
    return state_dir() / "sessions"


def config_file() -> Path:
    """``$XDG_CONFIG_HOME/jitter-workshop/config.toml``."""
    return _xdg("XDG_CONFIG_HOME", ".config") / APP / "config.toml"


def cache_dir() -> Path:
    """Where the benchmark's unlinked record and journal files are made, and packed recordings are unpacked."""
    return _xdg("XDG_CACHE_HOME", ".cache") / APP


def documents_dir() -> Path | None:
    """The user's documents, by xdg-user-dirs (``$XDG_CONFIG_HOME/user-dirs.dirs``: ``XDG_DOCUMENTS_DIR="$HOME/…"``);
    None where nothing says where they are."""
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
