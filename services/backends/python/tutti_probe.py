"""
`python tutti_probe.py MODULE...`: prints what this interpreter is, and what comes of importing each module, as a line of JSON.
Runs on any Python, so that one that is too old can say so.
"""
import importlib
import json
import sys


def about(name):
    try:
        return {"version": str(getattr(importlib.import_module(name), "__version__", ""))}
    # A build that lacks a library of the system raises OSError, and modules may even exit.
    except BaseException as error:
        return {"problem": "%s: %s" % (type(error).__name__, error)}


report = {
    "version": ".".join(str(part) for part in sys.version_info[:3]),
    "executable": sys.executable,
    "modules": dict((name, about(name)) for name in sys.argv[1:]),
}
# On a line of its own: modules may print while they are imported.
print("\n" + json.dumps(report))
