"""Imports a model's file and calls its class."""

from __future__ import annotations

import importlib.util
import os
import sys
import types


def import_model(path, version):
    """Imports `path` as module `<version>.<stem>`, so that relative imports find its neighbours. Returns TritonPythonModel."""
    directory = os.path.dirname(path)
    for entry in (directory, os.path.dirname(directory)):
        if entry not in sys.path:
            sys.path.append(entry)
    package = types.ModuleType(version)
    package.__path__ = [directory]
    sys.modules[version] = package
    stem = os.path.splitext(os.path.basename(path))[0]
    name = "%s.%s" % (version, stem)
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module.TritonPythonModel
