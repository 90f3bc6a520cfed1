"""Forks instances from a process that has imported what all of them need."""

from __future__ import annotations

import fcntl
import json
import os
import select
import shutil
import signal
import sys
import tempfile
import time
import traceback

from .instance import run_instance
from .processes import children_of_this, inherit_orphans, tie_to_parent

_PREFIX = "tutti-python-"
# A folder is made a moment before it is locked; one that is older and not locked has lost its owner.
_YOUNG_SECONDS = 60


class Directories:
    """The private working folders of the instances, below one that is locked as long as this process lives."""

    def __init__(self):
        self._root = None
        self._lock = None

    def make(self, name):
        if self._root is None:
            remove_stale(tempfile.gettempdir())
            self._root = tempfile.mkdtemp(prefix=_PREFIX)
            self._lock = os.open(self._root, os.O_RDONLY | os.O_CLOEXEC)
            fcntl.flock(self._lock, fcntl.LOCK_EX)
        path = os.path.join(self._root, name)
        os.mkdir(path, 0o700)
        return path

    def forget(self):
        """In an instance: it shall not hold the lock."""
        os.close(self._lock)

    def remove(self, path):
        shutil.rmtree(path, ignore_errors=True)

    def remove_all(self):
        if self._root is not None:
            shutil.rmtree(self._root, ignore_errors=True)


def remove_stale(parent):
    """Removes folders whose owner was killed before it could. The lock tells, whatever process ids mean in this container."""
    for entry in os.scandir(parent):
        if not entry.name.startswith(_PREFIX) or not entry.is_dir(follow_symlinks=False):
            continue
        try:
            about = entry.stat(follow_symlinks=False)
            if about.st_uid != os.getuid() or time.time() - about.st_mtime < _YOUNG_SECONDS:
                continue
            fd = os.open(entry.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError:
            # Somebody else removes it.
            continue
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(entry.path, ignore_errors=True)
        except OSError:
            # Its owner lives.
            pass
        finally:
            os.close(fd)


class Zygote:
    """Takes orders as JSON lines from the server, and reports in the same way."""

    # Instances are known by numbers of the server's; process ids stay here, where they cannot be taken for another's.

    def __init__(self, control):
        self._control = control
        self._pid = os.getpid()
        self._instances = {}
        self._directories = Directories()
        self._pending = b""

    def serve(self):
        """Until the server closes the control socket, by whatever end it comes to."""
        wake_read, wake_write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC) if hasattr(os, "pipe2") else os.pipe()
        os.set_blocking(wake_write, False)
        os.set_blocking(wake_read, False)
        signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        self._report({"event": "ready", "python": sys.version.split()[0], "pid": self._pid})
        while True:
            readable, _, _ = select.select([self._control, wake_read], [], [])
            if wake_read in readable:
                try:
                    os.read(wake_read, 4096)
                except BlockingIOError:
                    pass
            self._reap()
            if self._control in readable and not self._take_orders():
                break
        for id in list(self._instances):
            self._kill(id)
        while self._instances:
            self._reap(block=True)
        self._directories.remove_all()

    def _report(self, event):
        try:
            self._control.sendall((json.dumps(event) + "\n").encode())
        except OSError:
            # The server has gone; the next read says so.
            pass

    def _take_orders(self):
        try:
            got = self._control.recv(65536)
        except OSError:
            return False
        if got == b"":
            return False
        *lines, self._pending = (self._pending + got).split(b"\n")
        for line in lines:
            order = json.loads(line)
            if order["order"] == "fork":
                self._fork(order)
            elif order["order"] == "kill":
                self._kill(order["id"])
        return True

    def _fork(self, order):
        id = order["id"]
        directory = None
        try:
            directory = self._directories.make("%d" % id)
            sys.stdout.flush()
            pid = os.fork()
        except OSError as error:
            if directory is not None:
                self._directories.remove(directory)
            self._report({"event": "failed", "id": id, "problem": str(error)})
            return
        if pid == 0:
            self._become_instance(order, directory)
        # Both sides do it, so that it is done before either goes on.
        try:
            os.setpgid(pid, pid)
        except OSError:
            pass
        self._instances[id] = (pid, directory)
        self._report({"event": "forked", "id": id, "pid": pid})

    def _become_instance(self, order, directory):
        """In the child: leaves everything of the zygote behind."""
        status = 1
        try:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            os.setpgid(0, 0)
            self._control.close()
            self._directories.forget()
            tie_to_parent(self._pid)
            inherit_orphans()
            os.chdir(directory)
            run_instance(order["address"], order["token"], order["instances"])
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)

    def _kill(self, id):
        instance = self._instances.get(id)
        if instance is None:
            return
        for kill in (os.killpg, os.kill):
            try:
                kill(instance[0], signal.SIGKILL)
            except OSError:
                # Not its own group yet, or gone already; it is still to be reaped.
                pass

    def _reap(self, block=False):
        ended = {}
        while True:
            flags = os.WEXITED | os.WNOWAIT | (0 if block else os.WNOHANG)
            try:
                about = os.waitid(os.P_ALL, 0, flags)
            except ChildProcessError:
                break
            if about is None:
                break
            block = False
            # As long as it is not reaped its number is not used again, so this kills only what it has left in its group.
            try:
                os.killpg(about.si_pid, signal.SIGKILL)
            except OSError:
                pass
            _, status = os.waitpid(about.si_pid, 0)
            ended[about.si_pid] = os.waitstatus_to_exitcode(status)
        for id, (pid, directory) in list(self._instances.items()):
            if pid in ended:
                del self._instances[id]
                self._kill_orphans()
                self._directories.remove(directory)
                self._report({"event": "ended", "id": id, "status": ended[pid]})

    def _kill_orphans(self):
        """
        Kills what an ended instance has left outside of its group. Instances inherit the orphans of their children, so a
        child of this process that is no instance has lost its instance.
        """
        known = {pid for pid, _ in self._instances.values()}
        for _ in range(100):
            strangers = [pid for pid in children_of_this() if pid not in known]
            if not strangers:
                return
            for pid in strangers:
                try:
                    os.kill(pid, signal.SIGKILL)
                    os.waitpid(pid, 0)
                except OSError:
                    pass
