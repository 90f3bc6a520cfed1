"""Runs the published OCR system's client as it is, against another address than the one that it names."""

import argparse
import contextlib
import io
import os
import runpy
import shutil
import tempfile

import tritonclient.grpc as grpc_client

from checks import check, run


def read(flags):
    """What the client prints for the picture, in a folder of its own."""
    Client = grpc_client.InferenceServerClient
    home, printed = os.getcwd(), io.StringIO()
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(flags.picture, os.path.join(folder, "img1.jpg"))
        grpc_client.InferenceServerClient = lambda url, **options: Client(flags.grpc, **options)
        os.chdir(folder)
        try:
            with contextlib.redirect_stdout(printed):
                runpy.run_path(flags.client, run_name="__main__")
        finally:
            os.chdir(home)
            grpc_client.InferenceServerClient = Client
    return printed.getvalue()


@check
def loaded(flags):
    """all its models are loaded"""
    index = grpc_client.InferenceServerClient(flags.grpc).get_model_repository_index().models
    assert len(index) == 6 and all(model.state == "READY" for model in index), index


@check
def words(flags):
    """the published client prints the words of a picture, whatever their order"""
    printed = read(flags)
    found = printed.strip().strip("[]").replace("'", " ").split()
    with open(flags.words) as file:
        assert sorted(found) == sorted(file.read().split()), printed


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--grpc", required=True)
    parser.add_argument("--http", required=True)
    parser.add_argument("--client", required=True, help="the published client.py")
    parser.add_argument("--picture", required=True)
    parser.add_argument("--words", required=True, help="a file of the words of the picture")
    run(parser.parse_args())
