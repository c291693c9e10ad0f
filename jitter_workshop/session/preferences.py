"""Read and write the user's preferences: ``$XDG_CONFIG_HOME/jitter-workshop/config.toml``.

The file is small and may be written by hand::

    theme = "dark"         # dark | light | high-contrast
    preset = "quick"       # quick (5 s a run) | standard (40 s a run)
    show_published = true  # draw a curve published in 2015 at home and in the first chapter

Unknown keys are ignored when the file is read, and removed when the file is written. An invalid value is replaced by
the default, and the home screen shows a notice.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from jitter_workshop import paths
from jitter_workshop.errors import WorkshopError
from jitter_workshop.model.record import dataclass
from jitter_workshop.session.files import replace

CHOICES: dict[str, tuple[Any, ...]] = {
    "theme": ("dark", "light", "high-contrast"),
    "preset": ("quick", "standard"),
    "show_published": (True, False),
}
"""Every preference with its values; the first is the default."""

_MAX_BYTES = 64 * 1024
"""The largest file that is read, in bytes."""


class PreferencesError(WorkshopError):
    """Report that the preferences could not be saved."""

    title = "Preferences"


@dataclass(frozen=True, slots=True)
class Preferences:
    """Hold the user's preferences."""

    theme: str = "dark"
    preset: str = "quick"
    show_published: bool = True


def load(file: Path | None = None) -> tuple[Preferences, str]:
    """Return the preferences, and a sentence on values in the file that are not valid, or "". Defaults replace these
    values. No error is raised."""
    file = file or paths.config_file()
    try:
        with file.open("rb") as stream:
            raw = stream.read(_MAX_BYTES + 1)
        if len(raw) > _MAX_BYTES:
            return Preferences(), f"Preferences: {file.name} is too large, so the defaults are used."
        import tomllib  # most users have no such file

        values = tomllib.loads(raw.decode())
    except FileNotFoundError:
        return Preferences(), ""
    except OSError as error:
        return Preferences(), f"Preferences: {file.name} cannot be read ({error.strerror}); the defaults are used."
    except (ValueError, RecursionError) as error:
        return Preferences(), f"Preferences: {file.name} is not TOML ({error}); the defaults are used."
    given = {key: values[key] for key in CHOICES if key in values}
    # The type counts: to Python 1 is True.
    good = {key: value for key, value in given.items() if (type(value), value) in [(type(c), c) for c in CHOICES[key]]}
    bad = [key for key in given if key not in good]
    notice = f"Preferences: {', '.join(bad)} in {file.name} is not valid; the default is used." if bad else ""
    return Preferences(**good), notice


def save(preferences: Preferences, file: Path | None = None) -> None:
    """Write the preferences atomically: the file always has either its old or its new content. Raise
    PreferencesError if that fails."""
    file = file or paths.config_file()
    text = (
        "# Preferences of jitter-workshop; the screen's own page (key e) writes this file.\n"
        f'theme = "{preferences.theme}"\n'
        f'preset = "{preferences.preset}"\n'
        f"show_published = {str(preferences.show_published).lower()}\n"
    )
    try:
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        replace(file, text.encode(), 0o600)
    except OSError as error:
        raise PreferencesError(
            f"the preferences could not be written: {error.strerror}",
            "the preferences are valid until you leave the workshop",
        ) from error
