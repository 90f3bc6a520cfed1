"""Both published systems where they are served already: a face restored, a picture's words read, the same over all four clients and
the same as where they were served before.
"""

from tritonclient.utils import InferenceServerException

from checks import CHECKS, check, read_flags, run
from seed_systems import Env, read_words, restore
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
    read_words(env)


if __name__ == "__main__":
    flags = read_flags("grpc", "http", "samples", "results", optional=("systems", "ca"))
    wanted = {"face": [face], "ocr": [words]}.get(flags.systems, [face, words])
    # TLS is the ingress controller's; every other server is reached once it is Ready.
    CHECKS[:] = [*([reached] if flags.ca else []), *wanted]
    run(Env(flags))
