"""The next block waits until the screen's own threads sleep."""

from __future__ import annotations

import threading

from jitter_workshop.tui.background import wait_until_others_sleep


def test_where_nothing_else_runs_the_wait_ends() -> None:
    assert wait_until_others_sleep()


def test_a_thread_that_works_on_is_waited_for_but_not_for_ever() -> None:
    over = threading.Event()

    def work() -> None:
        while not over.is_set():
            sum(range(1000))

    worker = threading.Thread(target=work)
    worker.start()
    try:
        assert not wait_until_others_sleep()
    finally:
        over.set()
        worker.join()
    assert wait_until_others_sleep()


def test_a_run_that_is_to_stop_is_not_held_up() -> None:
    assert not wait_until_others_sleep(lambda: True)
