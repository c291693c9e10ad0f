"""A made host that has an isolated set, and a process of the caller's own."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from jitter_workshop.host.root import HostRoot
from tests import hosttrees

MINE = 1000
"""The caller's user id."""


def tree(root: Path, pid: int, uids: str = "1000\t1000\t1000\t1000", partition: str = "isolated") -> HostRoot:
    """A made host that has an isolated set, and says of ``pid`` whose it is."""
    files = {
        "cgroup.controllers": "cpuset\n",
        "jitter-workshop/cpuset.cpus": "2-3\n",
        "jitter-workshop/cpuset.cpus.effective": "2-3\n",
        "jitter-workshop/cpuset.cpus.partition": f"{partition}\n",
        "jitter-workshop/cgroup.procs": "\n",
    }
    hosttrees.write(root, hosttrees.cgroup2("/", files))
    return HostRoot(
        hosttrees.write(
            root, {f"proc/{pid}/status": f"Name:\tx\nUid:\t{uids}\n", f"proc/{pid}/task/{pid}/stat": "1 (x) S\n"}
        )
    )


def sets_of_version_1(root: Path, pid: int, tids: Sequence[int]) -> HostRoot:
    """The same with sets of version 1, and these threads of ``pid``."""
    tree(root, pid)
    hot = "sys/fs/cgroup/cpuset/jitter-workshop-hot"
    return HostRoot(
        hosttrees.write(
            root,
            {
                "proc/self/mountinfo": "30 20 0:26 / /sys/fs/cgroup/cpuset rw - cgroup cpuset rw,cpuset\n",
                f"{hot}/cpuset.cpus": "3\n",
                f"{hot}/cpuset.effective_cpus": "3\n",
                f"{hot}/cpuset.sched_load_balance": "0\n",
                f"{hot}/tasks": "",
                f"{hot}/cgroup.procs": "",
                "sys/fs/cgroup/cpuset/jitter-workshop-rest/tasks": "",
                **{f"proc/{pid}/task/{tid}/stat": f"{tid} (x) S\n" for tid in tids},
            },
        )
    )
