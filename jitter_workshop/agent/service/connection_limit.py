"""Places for connections where a process is started for each, as by sudo: nobody there accepts them one by one.

A place is one byte of a file, locked by the process that serves (fcntl(2), "Advisory record locking"): the kernel lets
go of it with the process, and nothing is ever written.
"""

from __future__ import annotations

import fcntl
import os

from jitter_workshop.agent.service.listener import EACH
from jitter_workshop.agent.statedir import open_or_read
from jitter_workshop.errors import HostError
from jitter_workshop.tuning.reasons import reason

FILE = "places"


def take(folder: int, uid: int, each: int = EACH) -> None:
    """Take one of a user's places, until this process ends. ``folder``: a descriptor of one where nobody else may
    write. The file has mode 0600: a lock that anybody can open is a lock that anybody can take. Raises HostError where
    all are taken, or the file cannot be used."""
    try:
        file = open_or_read(FILE, folder, os.O_RDWR | os.O_CREAT)
        for number in range(each):
            try:
                fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, uid * each + number)
            except BlockingIOError:
                continue
            return  # open as long as this process: with the descriptor the lock would go, too
        os.close(file)
    except OSError as error:
        raise HostError(f"the places for connections cannot be used: {reason(error)}") from error
    raise HostError(f"you have {each} connections already", "close one, or try again later")
