"""Find recorded hosts by their names, in a course's own folder and among the project's recordings."""

from __future__ import annotations

from pathlib import Path

from jitter_workshop import paths
from jitter_workshop.errors import LessonError, WorkshopError
from jitter_workshop.host.cpu.topology import read_topology
from jitter_workshop.host.root import HostRoot
from jitter_workshop.model.course import Chapter
from jitter_workshop.model.text import ID, SENTENCE, clean
from jitter_workshop.paths import assets

FOLDER = "recordings"
SUFFIX = ".tar.xz"


def recorded_host(name: str, course_dir: str = "") -> HostRoot:
    """Return the recorded host with this name, from the course's folder or else from the project. A recording is a
    folder that ``record-host`` wrote, or such a folder in one packed file. Raise LessonError if the recording does not
    exist or cannot be read."""
    shown = clean(name, ID)
    own = Path(course_dir) if course_dir else None
    for place in filter(None, (own, assets())):
        folder = place / FOLDER / name
        archive = place / FOLDER / f"{name}{SUFFIX}"
        if place is own and not _inside(place, folder, archive):
            raise LessonError(f"the recording '{shown}' lies outside the course's folder")
        if folder.is_dir():
            return HostRoot(folder)
        if archive.is_file():
            from jitter_workshop.host.recording.packed import unpacked  # loads hashlib and tarfile

            try:
                return HostRoot(unpacked(archive, paths.cache_dir() / FOLDER))
            except WorkshopError as error:
                raise LessonError(error.message, error.advice) from error
    raise LessonError(
        f"there is no recording '{shown}'", f"the course needs {FOLDER}/{shown} or {FOLDER}/{shown}{SUFFIX}"
    )


class Recordings:
    """Check whether the recordings of one course can be read. Each recording is checked only once. The project's own
    recordings are not unpacked, because this takes a second and they are known to be good. If the course has a
    recording of the same name, the course's recording is used, and is checked."""

    def __init__(self, course_dir: str) -> None:
        self._course_dir = course_dir
        self._said: dict[str, str] = {}

    def unreadable(self, chapter: Chapter) -> str:
        """Return the reason why a chapter's recordings cannot be shown. Return "" if they can be shown, or if the
        chapter has no recordings."""
        for name in filter(None, (chapter.recording, chapter.recording_after)):
            if name not in self._said:
                self._said[name] = self._wrong(name)
            if self._said[name]:
                return self._said[name]
        return ""

    def _wrong(self, name: str) -> str:
        own = Path(self._course_dir) / FOLDER if self._course_dir else None
        replaced = own is not None and any((own / f"{name}{end}").exists() for end in ("", SUFFIX))
        if not replaced and (assets() / FOLDER / f"{name}{SUFFIX}").is_file():
            return ""
        try:
            if read_topology(recorded_host(name, self._course_dir)).online:
                return ""
        except WorkshopError as error:
            return clean(f"the recording {name} cannot be shown: {error.message}", SENTENCE)
        return f"the recording {clean(name, ID)} cannot be shown: it has no CPU data that this tool can read"


def _inside(place: Path, *found: Path) -> bool:
    """Return True if all paths stay inside ``place`` after following their links. Links in a course are not trusted,
    because anyone may write a course."""
    try:
        top = place.resolve()
        return all(path.resolve().is_relative_to(top) for path in found)
    except (OSError, RuntimeError):
        return False
