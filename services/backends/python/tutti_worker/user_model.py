"""Imports a model's file and calls its class."""

from __future__ import annotations

import importlib.util
import os
import sys
import threading
import types

# Instances that share a process share the module, too.
_importing = threading.Lock()
_modules = {}


def import_model(path, package):
    """
    Imports `path` as module `<package>.<stem>`, so that relative imports find its neighbours; as `<stem>` if the package is empty,
    as that of a backend, whose folder belongs to no model. It is imported once. Returns TritonPythonModel.
    """
    with _importing:
        if path not in _modules:
            _modules[path] = _import_file(path, package)
    return _modules[path].TritonPythonModel


def _import_file(path, package):
    directory = os.path.dirname(path)
    name = os.path.splitext(os.path.basename(path))[0]
    entries = [directory]
    if package:
        entries.append(os.path.dirname(directory))
        module = types.ModuleType(package)
        module.__path__ = [directory]
        sys.modules[package] = module
        name = "%s.%s" % (package, name)
    sys.path.extend(entry for entry in entries if entry not in sys.path)
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module
