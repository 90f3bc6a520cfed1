"""Both published systems where they are served already: a face restored, a picture's words read, the same over all four clients and
the same as where they were served before.
"""

import argparse

import numpy as np
from tritonclient.utils import InferenceServerException

from checks import CHECKS, check, run
from seed_systems import Env, read, restore
from waiting import until

CHECKS.clear()


def is_ready(client):
    try:
        return client.is_server_ready()
    except InferenceServerException:
        return False


@check
def reached(env):
    """every client gets through"""
    # An ingress controller hears of a router only after its Ensembles are Ready, and of the Services of gRPC and REST one by one.
    for name, (_, client) in env.clients.items():
        until(f"{name} gets through", lambda client=client: is_ready(client))


@check
def face(env):
    """the face system restores a picture"""
    restore(env, "v2.1")


@check
def words(env):
    """the OCR system reads the words of a picture file"""
    found = read(env, np.fromfile(env.sample("words.jpg"), np.uint8))
    with open(env.sample("words.txt")) as file:
        assert found.astype(str).tolist() == file.read().split(), found
    env.same_everywhere("words", found.astype("S"))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--grpc", required=True)
    parser.add_argument("--http", required=True)
    parser.add_argument("--samples", required=True, help="the folder of the pictures")
    parser.add_argument("--results", required=True, help="a folder for results, the same for every way to serve")
    parser.add_argument("--systems", choices=("face", "ocr", "both"), default="both")
    parser.add_argument("--ca", help="the authority of a server with TLS, PEM")
    flags = parser.parse_args()
    wanted = {"face": [face], "ocr": [words], "both": [face, words]}
    # TLS is the ingress controller's; elsewhere who is Ready is reached at once.
    CHECKS[:] = [*([reached] if flags.ca else []), *wanted[flags.systems]]
    run(Env(flags))
