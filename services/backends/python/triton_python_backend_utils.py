"""
The module that Triton's Python models import, for the models that Tutti runs. Needs Python 3.9 and NumPy.

In a plain interpreter, say in a unit test of a model, everything works that needs no server: tensors, requests, responses,
errors, configurations, the log (to stderr). The rest raises TritonModelException.
"""
from tutti_pb.datatypes import (
    TRITON_STRING_TO_NUMPY,
    deserialize_bytes_tensor,
    numpy_to_triton_type,
    serialize_byte_tensor,
    triton_string_to_numpy,
    triton_to_numpy_type,
)
from tutti_pb.errors import TritonError, TritonModelException
from tutti_pb.host import bind as _bind
from tutti_pb.host import get_model_dir, is_model_ready, load_model, unload_model
from tutti_pb.logger import Logger
from tutti_pb.metrics import Metric, MetricFamily, MetricKind
from tutti_pb.model_config import (
    ModelConfig,
    get_input_config_by_name,
    get_output_config_by_name,
    using_decoupled_model_transaction_policy,
)
from tutti_pb.request import (
    TRITONSERVER_MEMORY_CPU,
    TRITONSERVER_MEMORY_GPU,
    TRITONSERVER_REQUEST_FLAG_SEQUENCE_END,
    TRITONSERVER_REQUEST_FLAG_SEQUENCE_START,
    TRITONSERVER_REQUEST_RELEASE_ALL,
    TRITONSERVER_REQUEST_RELEASE_RESCHEDULE,
    InferenceRequest,
    InferenceTrace,
    MemoryType,
    PreferredMemory,
)
from tutti_pb.response import (
    TRITONSERVER_RESPONSE_COMPLETE_FINAL,
    InferenceResponse,
    InferenceResponseSender,
    ResponseIterator,
)
from tutti_pb.tensor import Tensor


def get_input_tensor_by_name(inference_request, name):
    """An input of a request, or None: optional inputs may be absent."""
    return _tensor_by_name(inference_request.inputs(), name)


def get_output_tensor_by_name(inference_response, name):
    """An output of a response, or None."""
    return _tensor_by_name(inference_response.output_tensors(), name)


def _tensor_by_name(tensors, name):
    for tensor in tensors:
        if tensor.name() == name:
            return tensor
    return None


__all__ = [name for name in dir() if not name.startswith("_")]
