"""Run a small server that CPython's garbage collector delays, and print how long its requests took.

The server stores chains of linked objects, as an index or a cache does. Each request replaces old chains by new ones. A
chain is a cycle, so only the collector can free it. While the collector searches all objects, no thread of the process
runs Python code (see the module gc). No part of this program sleeps, so all pauses are those of the collector.

A request makes 1,000 objects. The collector searches the young objects after every 700 new objects. It searches all
objects after about 70,000 new objects. But these must be at least a quarter of the objects that survived the last such
search. So more than one request in 100 meets a full search, and p99 shows it.
"""

from __future__ import annotations

import gc
import socket
import threading
import time

from jitter_workshop.samples.common import report, seconds_asked

STORED, RENEWED, CHAIN = 2_500, 50, 20
"""Three numbers: the chains in the store, the chains that a request replaces, and the objects in one chain."""


class Node:
    """Hold one object of a chain, with the next object. After the last object of a chain comes the first one."""

    __slots__ = ("following", "value")

    def __init__(self, value: int) -> None:
        self.value = value
        self.following: Node = self


def chain(value: int) -> Node:
    """Return the first object of a new chain of CHAIN objects. Each object links to the next object, and the last
    object links to the first."""
    first = last = Node(value)
    for number in range(1, CHAIN):
        last.following = Node(value + number)
        last = last.following
    last.following = first
    return first


def answer_requests(connection: socket.socket, store: list[Node]) -> None:
    """Answer requests until the client leaves. For each request replace old chains of objects by new ones, and send the
    sum of the new chains' values."""
    number = 0
    while connection.recv(8):
        total = 0
        for _ in range(RENEWED):
            number += 1
            node = store[number % len(store)] = chain(number)
            for _ in range(CHAIN):
                total += node.value
                node = node.following
        connection.send(total.to_bytes(8, "little"))


def main() -> None:
    """Send requests for some seconds, one after the other, and print their latency."""
    until = seconds_asked()
    store = [chain(number) for number in range(STORED)]
    pauses: list[int] = []
    began = 0

    def collected(phase: str, info: dict[str, int]) -> None:
        nonlocal began
        if phase == "start":
            began = time.perf_counter_ns()
        elif info["generation"] == 2:
            pauses.append(time.perf_counter_ns() - began)

    gc.callbacks.append(collected)
    ours, theirs = socket.socketpair()
    server = threading.Thread(target=answer_requests, args=(theirs, store), name="server")
    server.start()
    took: list[int] = []
    ends = time.monotonic() + until
    while time.monotonic() < ends:
        sent = time.perf_counter_ns()
        ours.send(b"a chain!")
        ours.recv(8)
        took.append(time.perf_counter_ns() - sent)
    ours.close()
    server.join()
    longest = max(pauses, default=0) / 1e6
    report("requests", took, f"{len(pauses)} full collections, the longest {longest:.1f} ms")


if __name__ == "__main__":
    main()
