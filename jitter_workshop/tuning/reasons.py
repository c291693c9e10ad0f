"""Explain in one sentence why a write was refused, from the kernel's error number."""

from __future__ import annotations

import errno
import os

_WORDS = {
    errno.EACCES: "not permitted",
    errno.EPERM: "not permitted, even to root (by a lockdown, a container, or because it is fixed at boot)",
    errno.EBUSY: "the kernel is using it",
    errno.EINVAL: "the kernel does not accept this value here",
    errno.EIO: "the kernel refuses: the device or interrupt cannot be moved or set (it may be managed by the kernel)",
    errno.EROFS: "its filesystem is mounted read-only",
    errno.ENODEV: "the device does not offer it",
    errno.ENXIO: "the device does not offer it",
    errno.ENOENT: "it is no longer there",
    errno.ESRCH: "no longer exists",
    errno.EOPNOTSUPP: "this kernel or device does not support it",
    errno.ERANGE: "the value is out of range",
    errno.ENOSPC: "no space is left",
    errno.EAGAIN: "the kernel could not do it just now; try again",
    errno.ETIMEDOUT: "the kernel did not answer in time",
    errno.EFBIG: "the kernel does not accept this value here",
    errno.EDOM: "the value is out of range",
    errno.ELOOP: "its path contains a symbolic link",
    errno.ENOTEMPTY: "the folder or group is not empty",
}


def reason(error: OSError) -> str:
    """Return ``error`` in words, or the kernel's name for it if there are no words for it here."""
    number = error.errno
    if number is None:
        return str(error)[:300] or "it failed"
    if error.strerror and error.strerror != os.strerror(number):
        return error.strerror[:300]  # the setting's kind has a more exact text
    name = errno.errorcode.get(number, str(number))
    words = _WORDS.get(number)
    return f"{words} ({name})" if words else f"the kernel says {name}"
