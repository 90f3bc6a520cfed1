"""Writes model_repository/.variants/fixtures/, or checks it: `make_fixtures.py --check`.

The check runs every model and ensemble of `basic` with onnxruntime and compares the numbers.
"""

import argparse
import shutil
from pathlib import Path

import fixtures_basic as basic
import fixtures_broken as broken
from check_fixtures import check
from fixture_configs import ensemble_text, model_text

FIXTURES = Path(__file__).resolve().parent.parent / ".variants" / "fixtures"


def write_version(folder, graph):
    """`graph` is a ModelProto, the bytes of a file, or None for no file."""
    folder.mkdir(parents=True)
    if graph is None:
        (folder / ".gitkeep").touch()
    else:
        content = graph if isinstance(graph, bytes) else graph.SerializeToString(deterministic=True)
        (folder / "model.onnx").write_bytes(content)


def write_model(repository, name, item):
    folder = repository / name
    folder.mkdir(parents=True)
    if item.has_config:
        (folder / "config.pbtxt").write_text(model_text(name, item))
    for version, graph in item.graphs.items():
        write_version(folder / str(version), graph)


def write_ensemble(repository, name, item):
    write_version(repository / name / "1", None)
    (repository / name / "config.pbtxt").write_text(ensemble_text(name, item))


def write_repository(repository, source):
    shutil.rmtree(repository, ignore_errors=True)
    for name, item in source.MODELS.items():
        write_model(repository, name, item)
    for name, item in source.ENSEMBLES.items():
        write_ensemble(repository, name, item)


def edit(repository, name, written, instead):
    path = repository / name / "config.pbtxt"
    text = path.read_text()
    assert text.count(written) >= 1, f"{name}: nothing to edit"
    path.write_text(text.replace(written, instead, 1))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    if parser.parse_args().check:
        check(FIXTURES)
        return
    write_repository(FIXTURES / "basic", basic)
    (FIXTURES / "basic" / "labels" / "labels.txt").write_text(basic.LABELS)
    write_repository(FIXTURES / "broken", broken)
    for name, change in broken.EDITS.items():
        edit(FIXTURES / "broken", name, *change)


if __name__ == "__main__":
    main()
