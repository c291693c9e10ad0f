"""Run work on a thread that does not hold up the end of the workshop."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable
from typing import TypeVar

_T = TypeVar("_T")


async def aside(work: Callable[[], _T]) -> _T:
    """Return the result of ``work``, or raise its error. After cancellation, or when the program ends, the thread goes
    on alone. A thread of an executor would keep the process until it is done."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[_T] = loop.create_future()

    def returned(result: _T) -> None:
        if not future.done():
            future.set_result(result)

    def raised(error: Exception) -> None:
        if not future.done():
            future.set_exception(error)

    def run() -> None:
        # The loop may have ended meanwhile; then the result is dropped.
        with contextlib.suppress(RuntimeError):
            try:
                result = work()
            except Exception as error:
                loop.call_soon_threadsafe(raised, error)
            else:
                loop.call_soon_threadsafe(returned, result)

    threading.Thread(target=run, name="aside", daemon=True).start()
    return await future
