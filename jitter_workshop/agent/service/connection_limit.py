"""Limit the connections of a user when each has a process of its own, as by sudo: no listener counts them there.

A place is one byte of a file, locked by the process that serves (fcntl(2), "Advisory record locking"). The kernel
releases the lock when the process ends, and nothing is ever written.
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
    """Take one of a user's places until this process ends. Raises HostError if all are taken, or the file cannot be
    used.

    ``folder``: a descriptor of a folder that only root may write to. The file has mode 0600: a user who can open a lock
    can take it.
    """
    try:
        file = open_or_read(FILE, folder, os.O_RDWR | os.O_CREAT)
        for number in range(each):
            try:
                fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, uid * each + number)
            except BlockingIOError:
                continue
            return  # stays open: closing the descriptor would release the lock
        os.close(file)
    except OSError as error:
        raise HostError(f"the places for connections cannot be used: {reason(error)}") from error
    raise HostError(f"you have {each} connections already", "close one, or try again later")
