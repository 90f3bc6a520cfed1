"""What NVIDIA's own clients, unmodified, see of a server with TLS: mutual for gRPC, one-sided for HTTP."""

import numpy as np
import tritonclient.grpc as grpc_client
import tritonclient.http as http_client
from tritonclient.utils import InferenceServerException

from checks import check, read_flags, run

ROW = np.arange(16, dtype=np.float32).reshape(1, 16)


def adds_one(module, client):
    tensor = module.InferInput("X", ROW.shape, "FP32")
    tensor.set_data_from_numpy(ROW)
    answer = client.infer("add_one_batch", [tensor])
    np.testing.assert_array_equal(answer.as_numpy("Y"), ROW + 1)


def grpc_of(flags, **files):
    return grpc_client.InferenceServerClient(flags.grpc, ssl=True, **files)


@check
def grpc_with_a_client_certificate(flags):
    """gRPC with a client certificate answers"""
    files = {
        "root_certificates": flags.ca,
        "private_key": flags.key,
        "certificate_chain": flags.cert,
    }
    adds_one(grpc_client, grpc_of(flags, **files))


@check
def grpc_without_a_client_certificate(flags):
    """gRPC without a client certificate is refused"""
    try:
        grpc_of(flags, root_certificates=flags.ca).is_server_live(client_timeout=20)
    except InferenceServerException as error:
        assert "UNAVAILABLE" in str(error.status()), error
    else:
        raise AssertionError("it should have been refused")


@check
def http_over_tls(flags):
    """HTTP over TLS answers a client that trusts the authority"""
    client = http_client.InferenceServerClient(
        flags.http, ssl=True, ssl_options={"ca_certs": flags.ca}
    )
    adds_one(http_client, client)


@check
def http_with_another_authority(flags):
    """HTTP over TLS is refused by a client that trusts another authority"""
    client = http_client.InferenceServerClient(
        flags.http, ssl=True, ssl_options={"ca_certs": flags.cert}
    )
    try:
        client.is_server_live()
    except Exception as error:
        assert "certificate verify failed" in str(error), error
    else:
        raise AssertionError("it should have been refused")


run(read_flags("grpc", "http", "ca", "cert", "key"))
