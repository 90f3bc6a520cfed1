"""
`python __main__.py FD ENVIRONMENT MODULE...`: a zygote that takes orders on the inherited socket FD, with the modules imported.
ENVIRONMENT is the folder of a virtual or packed environment, or empty.
"""

from __future__ import annotations

import importlib
import json
import os
import socket
import sys


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    home = os.path.dirname(here)
    # A script's folder comes first in the path; ours are to be imported as a package, and by programs that models start.
    if sys.path[0] == here:
        sys.path[0] = home
    else:
        sys.path.insert(0, home)
    from tutti_worker.huge_pages import ask_for_huge_pages

    ask_for_huge_pages()
    inherited = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = home if not inherited else home + os.pathsep + inherited
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    _, fd, environment, *modules = sys.argv
    # As in Triton: code of models that reads its command line finds an empty one.
    sys.argv[:] = [""]
    control = socket.socket(fileno=int(fd))
    control.set_inheritable(False)
    enter_environment(environment)
    problem = find_problem(modules)
    if problem is not None:
        control.sendall((json.dumps({"event": "unusable", "problem": problem}) + "\n").encode())
        return 1
    from tutti_worker.processes import inherit_orphans
    from tutti_worker.zygote import Zygote

    inherit_orphans()
    Zygote(control).serve()
    return 0


def enter_environment(directory):
    """Programs that models start shall be the environment's too."""
    if not directory:
        return
    is_conda = os.path.isdir(os.path.join(directory, "conda-meta"))
    os.environ["CONDA_PREFIX" if is_conda else "VIRTUAL_ENV"] = directory
    os.environ["PATH"] = os.path.join(directory, "bin") + os.pathsep + os.environ.get("PATH", os.defpath)


def find_problem(modules):
    """Imports what instances need. Returns why that cannot be, or None."""
    found = sys.version.split()[0]
    if sys.version_info < (3, 9):
        return "Python %s is too old, want 3.9 or newer" % found
    for module in modules:
        try:
            importlib.import_module(module)
        except BaseException as error:
            return "Python %s cannot import %s: %s: %s" % (found, module, type(error).__name__, error)
    return None


# Processes that a model spawns run this file too, under another name.
if __name__ == "__main__":
    sys.exit(main())
