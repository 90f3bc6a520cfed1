"""The life of a process: connect, load the model, execute until the server says it is enough."""

from __future__ import annotations

import atexit
import faulthandler
import json
import os
import socket
import sys
import traceback

from .completion import complete_config
from .connection import Connection
from .frames import Op
from .heap import keep_freed
from .processes import keep_to, prefer_out_of_memory
from .threads import run_threads
from .tracebacks import describe_exception, describe_load_failure


def connect(address, token, channel):
    """`address` is a path; one that begins with NUL is in the abstract namespace."""
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    sock.connect(address)
    sock.sendall(("%s %s\n" % (token, channel)).encode())
    return sock


def reseed():
    """Forked instances would draw the same numbers from NumPy's and torch's global generators."""
    import numpy as np

    if "numpy.random" in sys.modules:
        np.random.seed()
    if "torch" in sys.modules:
        sys.modules["torch"].seed()


def run_instance(address, token, instances):
    """Everything that a forked process does for so many instances; never returns."""
    for name, fd in (("stdout", 1), ("stderr", 2)):
        with connect(address, token, name) as output:
            os.dup2(output.fileno(), fd)
    # The stacks of all instances would not fit into an error.
    faulthandler.enable(sys.__stderr__, all_threads=instances == 1)
    prefer_out_of_memory()
    reseed()
    connections = [Connection(connect(address, token, "frames")) for _ in range(instances)]
    for connection in connections:
        os.register_at_fork(after_in_child=connection.forget)
    status = 1
    try:
        # Alone, an instance has the main thread: the only one that Python lets handle signals.
        status = run_threads(connections, run_task) if instances > 1 else run_task(connections[0].read(), connections[0])
        atexit._run_exitfuncs()
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def run_task(frame, connection):
    """Does what the first frame of a connection says. Returns the exit status."""
    settings = json.loads(frame.meta)
    return _TASKS[settings["task"]](connection, settings)


def open_arena(settings):
    """The shared memory, or None with the reason if there should be some."""
    given = settings.get("arena")
    if given is None:
        return None, settings.get("problem")
    from .arena import Arena

    try:
        return Arena(given["path"], given["bytes"]), None
    except (OSError, ValueError, OverflowError) as error:
        return None, "%s: %s" % (type(error).__name__, error)


def serve_model(connection, settings):
    """Loads a model and executes its requests."""
    import triton_python_backend_utils as library

    from .executor import Executor
    from .host import Host
    from .readiness import answer_readiness
    from .server import Server
    from .user_model import import_model

    give_back = keep_freed()
    arena, problem = open_arena(settings)
    server = Server(connection, arena, settings["limit"])
    host = Host(server, settings["model_dir"], library, settings["instance"])
    library._bind(host)
    try:
        keep_to(settings.get("cpus"))
        model = import_model(settings["file"], settings["package"])()
        if not callable(getattr(model, "execute", None)):
            raise AttributeError("'TritonPythonModel' has no function 'execute'")
        if hasattr(model, "initialize"):
            connection.send(Op.INITIALIZING, 0)
            model.initialize(settings["args"])
    except BaseException as error:
        text = describe_load_failure(error)
        connection.send(Op.FAILED, 0, json.dumps({"message": text}).encode())
        return 1
    reports_readiness = callable(getattr(model, "is_ready", None))
    if reports_readiness:
        answer_readiness(server, model)
    ready = {"arena": arena is not None, "problem": problem, "reports_readiness": reports_readiness}
    connection.send(Op.READY, 0, json.dumps(ready).encode())
    host.is_executing = True
    executor = Executor(server, host, library, model, settings, give_back)
    while True:
        frame = server.link.next_work()
        if frame.op == Op.EXECUTE:
            executor.run(frame)
        elif frame.op == Op.FINALIZE:
            host.is_executing = False
            return finalize(connection, model)


def finalize(connection, model):
    try:
        if hasattr(model, "finalize"):
            model.finalize()
        answer = {}
    except BaseException as error:
        answer = {"error": describe_exception(error)}
    connection.send(Op.FINALIZED, 0, json.dumps(answer).encode())
    return 0


_TASKS = {"serve": serve_model, "complete": complete_config}
