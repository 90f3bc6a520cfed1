"""Every name that models can use in Triton 2.51, as `dir` tells there in a running model, is here, and a test uses it."""
from __future__ import annotations

import pathlib
import re
import unittest

import triton_python_backend_utils as pb_utils

MODULE = """
    InferenceRequest InferenceResponse Logger MetricFamily ModelConfig PreferredMemory TRITONSERVER_MEMORY_CPU
    TRITONSERVER_MEMORY_GPU TRITONSERVER_REQUEST_FLAG_SEQUENCE_END TRITONSERVER_REQUEST_FLAG_SEQUENCE_START
    TRITONSERVER_REQUEST_RELEASE_ALL TRITONSERVER_REQUEST_RELEASE_RESCHEDULE TRITONSERVER_RESPONSE_COMPLETE_FINAL
    TRITON_STRING_TO_NUMPY Tensor TritonError TritonModelException deserialize_bytes_tensor get_input_config_by_name
    get_input_tensor_by_name get_model_dir get_output_config_by_name get_output_tensor_by_name is_model_ready load_model
    numpy_to_triton_type serialize_byte_tensor triton_string_to_numpy triton_to_numpy_type unload_model
    using_decoupled_model_transaction_policy
"""
# Classes that only the server makes are found through what gives them.
CLASSES = {
    pb_utils.InferenceRequest: """
        async_exec correlation_id exec flags get_response_sender inputs is_cancelled parameters request_id
        requested_output_names set_flags set_release_flags timeout trace""",
    pb_utils.InferenceResponse: "error has_error output_tensors",
    pb_utils.InferenceResponseSender: "is_cancelled send",
    pb_utils.InferenceTrace: "get_context",
    pb_utils.Logger: "ERROR INFO LogLevel VERBOSE WARNING log log_error log_info log_verbose log_warn",
    pb_utils.MetricFamily: "COUNTER GAUGE HISTOGRAM Metric",
    pb_utils.Metric: "increment observe set value",
    pb_utils.ModelConfig: """
        add_input add_output as_dict set_dynamic_batching set_max_batch_size set_model_transaction_policy""",
    pb_utils.ResponseIterator: "__iter__ __next__",
    pb_utils.Tensor: """
        as_numpy from_dlpack is_cpu name shape to_dlpack triton_dtype __dlpack__ __dlpack_device__""",
    pb_utils.TritonError: """
        ALREADY_EXISTS CANCELLED INTERNAL INVALID_ARG NOT_FOUND UNAVAILABLE UNKNOWN UNSUPPORTED code message""",
}
# Python calls these itself.
IMPLICIT = {"__iter__", "__next__"}


def sources():
    """Every test of the library and of the engine, this one apart."""
    here = pathlib.Path(__file__)
    python = [path for path in here.parent.glob("*.py") if path != here]
    engine = here.parents[2].joinpath("src", "python").glob("*.test.ts")
    return "\n".join(path.read_text(encoding="utf8") for path in (*python, *engine))


class TestMembers(unittest.TestCase):
    def test_are_all_there(self):
        for name in MODULE.split():
            self.assertTrue(hasattr(pb_utils, name), name)
            self.assertIn(name, pb_utils.__all__)
        for owner, names in CLASSES.items():
            for name in names.split():
                self.assertTrue(hasattr(owner, name), f"{owner.__name__}.{name}")

    def test_are_all_tested(self):
        text = sources()
        for name in MODULE.split():
            with self.subTest(member=name):
                self.assertTrue(re.search(rf"\bpb_utils\.{name}\b", text), "no test uses it")
        for owner, names in CLASSES.items():
            for name in set(names.split()) - IMPLICIT:
                with self.subTest(member=f"{owner.__name__}.{name}"):
                    self.assertTrue(re.search(rf"\.{name}\b", text), "no test uses it")


if __name__ == "__main__":
    unittest.main()
