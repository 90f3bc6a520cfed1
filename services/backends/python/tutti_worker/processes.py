"""How the processes hang together, so that none is left behind."""

from __future__ import annotations

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36


def _prctl(option, value):
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def inherit_orphans():
    """Makes processes that descendants of this one leave behind its children, not init's."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def tie_to_parent(parent):
    """Ends this process when its parent ends."""
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        # It ended before that.
        os._exit(1)


def keep_to(cpus):
    """Binds this process to CPUs, as its host policy says; an empty list leaves it where it is."""
    if not cpus:
        return
    try:
        os.sched_setaffinity(0, cpus)
    except (AttributeError, OSError) as error:
        raise RuntimeError("unable to set the CPUs of its host policy, %s: %s" % (cpus, error)) from None


def prefer_out_of_memory():
    """The kernel shall take a model before it takes the server."""
    try:
        with open("/proc/self/oom_score_adj", "r+") as file:
            score = int(file.read())
            file.seek(0)
            file.write(str(min(1000, score + 500)))
    except (OSError, ValueError):
        # Not on Linux, or not allowed; then all are equal.
        pass


def children_of_this():
    """The ids of this process's children; none where the system does not tell."""
    try:
        with open("/proc/self/task/%d/children" % os.getpid()) as file:
            return [int(number) for number in file.read().split()]
    except OSError:
        return []
