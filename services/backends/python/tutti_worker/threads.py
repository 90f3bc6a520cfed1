"""Instances of a model that share this process: each is a thread."""

from __future__ import annotations

import os
import queue
import sys
import threading
import traceback

from .connection import ServerGone
from .heap import keep_one

_FAILED = 1


def run_threads(connections, run_task):
    """
    Calls `run_task(first frame, connection)` for each connection, in a thread of its own, once there is a first frame. Returns the
    greatest exit status when all that have begun have ended: a connection that the server does not use keeps no process.
    """
    keep_one()
    for stream in (sys.stdout, sys.stderr):
        # Else `print` writes a line in pieces, and those of several instances mix.
        stream.reconfigure(line_buffering=True, write_through=False)
    events = queue.SimpleQueue()
    for connection in connections:
        threading.Thread(target=_run, args=(connection, run_task, events), name="tutti-instance", daemon=True).start()
    running, worst = 0, 0
    while True:
        change, status = events.get()
        running += change
        worst = max(worst, status)
        if running == 0:
            return worst


def _run(connection, run_task, events):
    try:
        frame = connection.read()
    except (ServerGone, OSError):
        # Without the server nothing here may go on.
        os._exit(_FAILED)
    events.put((1, 0))
    try:
        status = run_task(frame, connection)
    except BaseException:
        # Its server's side waits for an answer that will not come: only the end of the process tells it.
        traceback.print_exc()
        os._exit(_FAILED)
    events.put((-1, status))
