"""TorchScript files served as Python models. Each test traces or scripts its own small module."""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from typing import Any, Dict, List, Optional, Tuple

import numpy as np
import triton_python_backend_utils as pb_utils

from .fake_host import FakeHost

try:
    import torch
    from torch import nn
except ImportError:
    torch = None

if torch is not None:
    import tutti_torchscript
    from tutti_ts.failures import LoadFailure
    from tutti_ts.ragged import Made

    class Convolution(nn.Module):
        def __init__(self):
            super().__init__()
            torch.manual_seed(1)
            self.layers = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 3, 1))
            self.layers[1].running_mean.uniform_()

        def forward(self, x):
            return self.layers(x)

    class Identity(nn.Module):
        def forward(self, x):
            return x

    class Subtract(nn.Module):
        def forward(self, left, right):
            return left - right, left + right

    class Fork(nn.Module):
        """Gives what its input chooses."""

        def forward(self, x) -> Tuple[torch.Tensor, torch.Tensor]:
            if int(x.flatten()[0]) < 0:
                raise RuntimeError("negative")
            return x, x.sum()

    class Counter(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("count", torch.zeros(1))

        def forward(self, x):
            self.count.add_(1)
            return x + self.count

    class Setter(nn.Module):
        def __init__(self):
            super().__init__()
            self.count: int = 0

        def forward(self, x):
            self.count += 1
            return x + self.count

    class Random(nn.Module):
        def forward(self, x):
            return x + torch.rand(x.shape)

    class Dropped(nn.Module):
        def __init__(self):
            super().__init__()
            self.dropout = nn.Dropout(0.5)

        def forward(self, x):
            return self.dropout(x)

    class Upper(nn.Module):
        def forward(self, texts: List[str]) -> Tuple[List[str], torch.Tensor]:
            return [text.upper() for text in texts], torch.tensor([len(text) for text in texts])

    class FromDict(nn.Module):
        def forward(self, inputs: Dict[str, torch.Tensor]):
            return inputs["first"] * 10 + inputs["second"]

    class ToDict(nn.Module):
        def forward(self, x) -> Dict[str, torch.Tensor]:
            return {"x": x}

    class ToAny(nn.Module):
        def forward(self, x) -> Any:
            return {"x": x}

    class ToList(nn.Module):
        def forward(self, x) -> List[torch.Tensor]:
            return [x, x]

    class ToTupleOfLists(nn.Module):
        def forward(self, x) -> Tuple[torch.Tensor, List[torch.Tensor]]:
            return x, [x]

    class ToNumber(nn.Module):
        def forward(self, x) -> float:
            return 1.5

    class OptionalInput(nn.Module):
        def forward(self, x, y: Optional[torch.Tensor] = None):
            return x if y is None else x + y

    class Segments(nn.Module):
        """Twice `x`, which is flat, and what the batcher made of its shapes, as one row for each request."""

        def forward(self, x, made) -> Tuple[torch.Tensor, torch.Tensor]:
            assert x.dim() == 1
            return x * 2, made.unsqueeze(1)

    class Picky(nn.Module):
        def forward(self, x):
            assert x.size(0) == 17, "seventeen"
            return x


def port(name, datatype="FP32", dims=(-1,), **more):
    return {"name": name, "data_type": f"TYPE_{datatype}", "dims": list(dims), **more}


IN, OUT = port("INPUT__0"), port("OUTPUT__0")


@unittest.skipIf(torch is None, "this Python has no PyTorch")
class TorchScriptCase(unittest.TestCase):
    def setUp(self):
        self.host = FakeHost()
        pb_utils._bind(self.host)
        self.addCleanup(pb_utils._bind, None)
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)
        self.addCleanup(torch._C._set_graph_executor_optimize, True)
        self.addCleanup(torch.set_grad_enabled, True)

    def arguments(self, inputs=(IN,), outputs=(OUT,), kind="CPU", device="0", **config):
        full = {"name": "m", "max_batch_size": 0, "input": list(inputs), "output": list(outputs), **config}
        return {
            "model_config": json.dumps(full),
            "model_instance_kind": kind,
            "model_instance_name": "m_0_0",
            "model_instance_device_id": device,
            "model_repository": self.folder,
            "model_version": "1",
            "model_name": "m",
        }

    def save(self, module, filename="model.pt"):
        os.makedirs(os.path.join(self.folder, "1"), exist_ok=True)
        path = os.path.join(self.folder, "1", filename)
        (module if isinstance(module, torch.jit.ScriptModule) else torch.jit.script(module)).save(path)
        return path

    def load(self, module, *arguments, **config):
        if module is not None:
            self.save(module if isinstance(module, torch.jit.ScriptModule) else module.eval())
        model = tutti_torchscript.TritonPythonModel()
        model.initialize(self.arguments(*arguments, **config))
        return model

    def request(self, outputs=("OUTPUT__0",), **inputs):
        tensors = [pb_utils.Tensor(name, array) for name, array in inputs.items()]
        return pb_utils.InferenceRequest._received(
            self.host, "k", "m", "", 0, 0, 0, 0, "{}", tensors, outputs, False
        )

    def run_one(self, model, outputs=("OUTPUT__0",), **inputs):
        (response,) = model.execute([self.request(outputs, **inputs)])
        return self.values(response)

    def values(self, response):
        if response.has_error():
            self.fail(response.error().message())
        return {tensor.name(): tensor.as_numpy() for tensor in response.output_tensors()}

    def assert_error(self, response, text, code):
        self.assertTrue(response.has_error())
        self.assertIn(text, response.error().message())
        self.assertEqual(response.error().code(), code)

    def assert_refused(self, text, module, *arguments, **config):
        with self.assertRaises(LoadFailure) as raised:
            self.load(module, *arguments, **config)
        self.assertIn(text, str(raised.exception))

    def logged(self):
        return [event[1] for event in self.host.told if event[0] == "warning"]


class TestResults(TorchScriptCase):
    def test_are_those_of_the_plain_module(self):
        image = port("INPUT__0", dims=[1, 3, -1, -1])
        plain = Convolution().eval()
        for module in (torch.jit.script(plain), torch.jit.trace(plain, torch.rand(1, 3, 16, 16))):
            model = self.load(module, [image], [port("OUTPUT__0", dims=[1, 3, -1, -1])])
            self.assertFalse(hasattr(model._runner.module, "layers"), "it is frozen")
            for size in (5, 32, 100):
                array = np.random.default_rng(size).random((1, 3, size, size), np.float32)
                wanted = torch.jit.load(os.path.join(self.folder, "1", "model.pt"))(torch.from_numpy(array.copy()))
                got = self.run_one(model, INPUT__0=array)["OUTPUT__0"]
                np.testing.assert_allclose(got, wanted.detach().numpy(), rtol=1e-5, atol=1e-5)
        self.assertEqual(self.logged(), [])

    def test_are_exact_for_every_datatype(self):
        for datatype in ("BOOL", "UINT8", "INT8", "INT16", "INT32", "INT64", "FP16", "FP32", "FP64"):
            model = self.load(Identity(), [port("INPUT__0", datatype)], [port("OUTPUT__0", datatype)])
            dtype = pb_utils.triton_string_to_numpy(f"TYPE_{datatype}")
            for array in (np.array([0, 1, 1], dtype), np.empty(0, dtype)):
                got = self.run_one(model, INPUT__0=array)["OUTPUT__0"]
                self.assertEqual((got.dtype, got.tolist()), (np.dtype(dtype), array.tolist()))
        self.assertEqual(self.logged(), [])

    def test_come_from_read_only_and_unaligned_memory(self):
        model = self.load(Identity())
        memory = bytes(1) + np.arange(3, dtype=np.float32).tobytes()
        tensor = pb_utils.Tensor._received("INPUT__0", "FP32", [3], memoryview(memory)[1:])
        request = self.request()
        request._inputs = [tensor]
        (response,) = model.execute([request])
        self.assertEqual(self.values(response)["OUTPUT__0"].tolist(), [0, 1, 2])

    def test_are_only_those_that_were_requested(self):
        model = self.load(Subtract(), [IN, port("INPUT__1")], [OUT, port("OUTPUT__1")])
        one, two = np.array([3], np.float32), np.array([1], np.float32)
        self.assertEqual(self.run_one(model, ["OUTPUT__1"], INPUT__0=one, INPUT__1=two), {"OUTPUT__1": [4]})


class TestNames(TorchScriptCase):
    def subtract(self, inputs, outputs=("OUTPUT__0", "OUTPUT__1"), values=None):
        names = [each["name"] for each in inputs]
        model = self.load(Subtract(), inputs, [port(name) for name in outputs])
        values = values or dict(zip(names, (np.array([3], np.float32), np.array([1], np.float32))))
        return {name: array.tolist() for name, array in self.run_one(model, outputs, **values).items()}

    def test_of_inputs_are_arguments(self):
        self.assertEqual(self.subtract([port("right"), port("left")])["OUTPUT__0"], [-2])
        self.assertEqual(self.subtract([port("left"), port("right")])["OUTPUT__0"], [2])

    def test_of_inputs_end_with_an_index(self):
        self.assertEqual(self.subtract([port("input__1"), port("input__0")])["OUTPUT__0"], [-2])
        self.assertEqual(self.subtract([port("INPUT__0"), port("other__1")])["OUTPUT__0"], [2])
        self.assertEqual(self.logged(), [])

    def test_of_inputs_are_else_taken_in_order(self):
        for names in (("b", "a"), ("INPUT__0", "right"), ("left", "b"), ("x__0", "a__b__1"), ("x__0", "y__")):
            self.assertEqual(self.subtract([port(name) for name in names])["OUTPUT__0"], [2], names)
            self.assertIn("they are taken in the order of the configuration", self.logged()[-1])

    def test_of_outputs_end_with_an_index_or_are_taken_in_order(self):
        inputs = [port("left"), port("right")]
        self.assertEqual(self.subtract(inputs, ["sum__1", "difference__0"]), {"sum__1": [4], "difference__0": [2]})
        self.assertEqual(self.subtract(inputs, ["sum", "difference"]), {"sum": [2], "difference": [4]})
        self.assertEqual(self.subtract(inputs, ["sum__1"]), {"sum__1": [4]})

    def test_that_contradict_the_order_are_refused(self):
        inputs = [port("left"), port("right")]
        cases = [
            ([port("b"), port("left__0")], ("OUTPUT__0",), "input 'left__0' names position 0 and stands at 1"),
            ([port("right"), port("b")], ("OUTPUT__0",), "input 'right' names position 1 and stands at 0"),
            ([port("INPUT__1"), port("left")], ("OUTPUT__0",), "input 'INPUT__1' names position 1 and stands at 0"),
            (inputs, ("o__1", "rest"), "output 'o__1' names position 1 and stands at 0"),
            (inputs, ("rest", "o__0"), "output 'o__0' names position 0 and stands at 1"),
        ]
        for given, outputs, text in cases:
            with self.subTest(text=text):
                self.assert_refused(text, Subtract(), given, [port(name) for name in outputs])

    def test_are_keys_of_a_dictionary(self):
        model = self.load(FromDict(), [port("second"), port("first")])
        values = {"first": np.array([4], np.float32), "second": np.array([2], np.float32)}
        self.assertEqual(self.run_one(model, **values)["OUTPUT__0"].tolist(), [42])

    def test_of_sequence_controls_end_with_an_index(self):
        control = {"name": "START__1", "control": [{"kind": "CONTROL_SEQUENCE_START", "fp32_false_true": [0, 1]}]}
        model = self.load(Subtract(), [IN], [OUT], sequence_batching={"control_input": [control]})
        values = {"INPUT__0": np.array([3], np.float32), "START__1": np.array([1], np.float32)}
        self.assertEqual(self.run_one(model, **values)["OUTPUT__0"].tolist(), [2])
        control["name"] = "START"
        self.assert_refused(
            "input 'START' does not follow <name>__<index> naming convention.",
            Subtract(),
            [IN],
            sequence_batching={"control_input": [control]},
        )


    def test_of_sequence_states_are_numbered_with_the_others(self):
        state = {"input_name": "right", "output_name": "sum__1", "data_type": "TYPE_FP32", "dims": [-1]}
        model = self.load(Subtract(), [port("left")], [OUT], sequence_batching={"state": [state]})
        values = {"left": np.array([3, 4], np.float32), "right": np.array([1, 1], np.float32)}
        answer = self.run_one(model, ["OUTPUT__0", "sum__1"], **values)
        self.assertEqual({name: array.tolist() for name, array in answer.items()}, {"OUTPUT__0": [2, 3], "sum__1": [4, 5]})


class TestRefusedModels(TorchScriptCase):
    def test_of_configurations_that_do_not_fit(self):
        cases = [
            (Subtract, [IN], [OUT], "unable to load model 'm', configuration expects 1 inputs, model provides 2"),
            (Subtract, [IN, port("X__2")], [OUT], "input 'X__2' names argument 2, want each of 0 to 1 once"),
            (Subtract, [IN, port("X__0")], [OUT], "names argument 0, want each of 0 to 1 once"),
            (Identity, [], [OUT], "model configuration must contain at least one input, none were specified."),
            (Identity, [IN], [], "model configuration must contain at least one output, none were specified."),
            (Identity, [port("X__0", "UINT16")], [OUT], "unsupported datatype TYPE_UINT16 for input 'X__0' for model 'm'"),
            (Identity, [IN], [port("X__0", "BF16")], "unsupported datatype TYPE_BF16 for output 'X__0' for model 'm'"),
            (OptionalInput, [IN, port("X__1")], [OUT], "An input of type 'Optional[Tensor]' was detected in the model."),
            (ToDict, [IN], [OUT], "output must be of type Tensor, List[str] or Tuple containing one of these two types"),
            (ToNumber, [IN], [OUT], "or a Scalar, the model declares"),
            (ToList, [IN], [OUT], "or a Scalar, the model declares List[Tensor]"),
            (ToTupleOfLists, [IN], [OUT], "output at index 1 must be of type Tensor or List[str], the model declares"),
            (
                Upper,
                [port("X__0", "STRING", [2, 2])],
                [OUT],
                "Triton only supports 1 dimensional List of String as input for 'X__0' for model 'm'",
            ),
        ]
        for module, inputs, outputs, text in cases:
            with self.subTest(text=text):
                self.assert_refused(text, module(), inputs, outputs)

    def test_of_files_that_are_not_there_or_no_torchscript(self):
        self.assert_refused("unable to find '", None)
        self.assert_refused("1/model.pt' for model instance 'm_0_0'", None)
        path = self.save(Identity())
        torch.save(Identity().state_dict(), path)
        self.assert_refused("the file is not TorchScript: it must be written by torch.jit.save", None)
        with open(path, "wb") as file:
            file.write(b"nothing")
        self.assert_refused("failed to load model 'm': ", None)

    def test_of_devices_that_are_not_there(self):
        if torch.cuda.is_available():
            self.skipTest("there is a GPU")
        self.assert_refused(
            "failed to load model 'm': its instance group asks for GPU 1, and PyTorch", Identity(), kind="GPU", device="1"
        )

    def test_take_the_file_that_the_configuration_names(self):
        self.save(Identity(), "other.pt")
        model = self.load(None, default_model_filename="other.pt", kind="MODEL")
        self.assertEqual(self.run_one(model, INPUT__0=np.ones(1, np.float32))["OUTPUT__0"].tolist(), [1])


class TestFailures(TorchScriptCase):
    def fail_with(self, model, text, code, **inputs):
        (response,) = model.execute([self.request(**inputs)])
        self.assert_error(response, text, code)

    def test_of_the_model_are_told(self):
        model = self.load(Fork())
        self.fail_with(model, "PyTorch execute failure: ", pb_utils.TritonError.INTERNAL, INPUT__0=np.array([-1], np.float32))
        self.fail_with(model, "negative", pb_utils.TritonError.INTERNAL, INPUT__0=np.array([-1], np.float32))
        self.assertEqual(self.run_one(model, INPUT__0=np.array([1], np.float32))["OUTPUT__0"].tolist(), [1])

    def test_of_outputs_are_told(self):
        generic = "PyTorch execute failure: output must be of type Tensor, List[str] or Tuple containing one of these"
        cases = [
            (Fork, [port("X__2")], "The output X__2 in the model configuration refers to an output index which doesn't "
             "exist. This model has 2 outputs", "INVALID_ARG"),
            (Fork, [port("X__1")], "output 'X__1' is a scalar which is not supported.", "INVALID_ARG"),
            (Fork, [port("X__0", "INT32")], "configuration expects datatype TYPE_INT32 for output 'X__0', model provides "
             "TYPE_FP32", "INVALID_ARG"),
            (Fork, [port("X__0", "STRING")], "configuration expects datatype TYPE_STRING for output", "INVALID_ARG"),
            (ToAny, [OUT], generic, "INTERNAL"),
        ]
        for module, outputs, text, code in cases:
            with self.subTest(text=text):
                model = self.load(module(), [IN], outputs)
                self.fail_with(model, text, getattr(pb_utils.TritonError, code), INPUT__0=np.ones(2, np.float32))

    def test_of_inputs_fail_their_request_alone(self):
        model = self.load(Identity(), [IN], [OUT], max_batch_size=8)
        good = self.request(INPUT__0=np.ones((1, 2), np.float32))
        for bad, text in (
            (self.request(), "input 'INPUT__0' is missing"),
            (self.request(INPUT__0=np.ones((1, 2), np.int32)), "input 'INPUT__0': datatype INT32, want FP32"),
        ):
            responses = model.execute([good, bad, good])
            self.assert_error(responses[1], text, pb_utils.TritonError.INVALID_ARG)
            for response in (responses[0], responses[2]):
                self.assertEqual(self.values(response)["OUTPUT__0"].tolist(), [[1, 1]])


class TestBatches(TorchScriptCase):
    def test_of_equal_shapes_run_together_and_are_split(self):
        model = self.load(Subtract(), [IN, port("INPUT__1")], [OUT], max_batch_size=8)
        sizes = []
        run = model._runner.run
        model._runner.run = lambda inputs: sizes.append(inputs[0].shape[0]) or run(inputs)
        arrays = [np.full((batch, width), batch, np.float32) for batch, width in ((1, 2), (3, 2), (1, 5), (2, 2))]
        requests = [self.request(INPUT__0=array, INPUT__1=np.zeros_like(array)) for array in arrays]
        for response, array in zip(model.execute(requests), arrays):
            self.assertEqual(self.values(response)["OUTPUT__0"].tolist(), array.tolist())
        self.assertEqual(sorted(sizes), [1, 6])

    def test_of_no_elements_run(self):
        model = self.load(Identity(), [port("INPUT__0", dims=[2])], [OUT], max_batch_size=8)
        self.assertEqual(self.run_one(model, INPUT__0=np.empty((0, 2), np.float32))["OUTPUT__0"].shape, (0, 2))

    def test_fail_together(self):
        model = self.load(Fork(), max_batch_size=8)
        requests = [self.request(INPUT__0=np.array([[value]], np.float32)) for value in (-1, 1)]
        for response in model.execute(requests):
            self.assert_error(response, "negative", pb_utils.TritonError.INTERNAL)

    def test_must_come_out_as_they_went_in(self):
        model = self.load(torch.jit.trace(nn.Flatten(0), torch.rand(2, 3)), [port("INPUT__0", dims=[3])], max_batch_size=4)
        (response,) = model.execute([self.request(INPUT__0=np.ones((2, 3), np.float32))])
        text = "output 'OUTPUT__0': dimension 0 is 6, want 2, the batch of the inputs"
        self.assert_error(response, text, pb_utils.TritonError.INTERNAL)

    def test_are_not_made_for_a_model_that_does_not_batch(self):
        model = self.load(Identity())
        arrays = [np.ones(2, np.float32), np.zeros(2, np.float32)]
        responses = model.execute([self.request(INPUT__0=array) for array in arrays])
        self.assertEqual([self.values(r)["OUTPUT__0"].tolist() for r in responses], [[1, 1], [0, 0]])


def batch_input(kind="BATCH_ACCUMULATED_ELEMENT_COUNT", datatype="INT32"):
    return {"kind": kind, "data_type": f"TYPE_{datatype}", "source_input": ["x"], "target_name": ["made"]}


BOTH = ["double__0", "made__1"]


class TestRaggedBatches(TorchScriptCase):
    def model(self, *outputs, **config):
        scatter = {"kind": "BATCH_SCATTER_WITH_INPUT_SHAPE", "target_name": ["double__0"], "source_input": ["x"]}
        full = {"max_batch_size": 8, "batch_input": [batch_input()], "batch_output": [scatter], **config}
        ends = port("made__1", "INT32", [1])
        return self.load(
            Segments(), [port("x", allow_ragged_batch=True)], outputs or [port("double__0"), ends], **full
        )

    def test_join_requests_of_other_shapes(self):
        model = self.model()
        arrays = [np.arange(count, dtype=np.float32)[None] for count in (3, 1, 2)]
        responses = [self.values(r) for r in model.execute([self.request(BOTH, x=array) for array in arrays])]
        self.assertEqual([r["made__1"].tolist() for r in responses], [[[3]], [[4]], [[6]]])
        for response, array in zip(responses, arrays):
            np.testing.assert_array_equal(response["double__0"], array * 2)

    def test_run_a_single_request_the_same_way(self):
        got = self.run_one(self.model(), BOTH, x=np.ones((1, 5), np.float32))
        self.assertEqual((got["double__0"].shape, got["made__1"].tolist()), ((1, 5), [[5]]))

    def test_need_an_element_for_each_of_the_source(self):
        # A fixed dims of 4 is more than the model gives for three.
        model = self.model(port("double__0", dims=[4]))
        (response,) = model.execute([self.request(x=np.ones((1, 3), np.float32))])
        text = "output 'double__0': 3 elements, want at least 4 for the shapes of input 'x'"
        self.assert_error(response, text, pb_utils.TritonError.INTERNAL)

    def test_do_not_split_texts(self):
        with self.assertRaises(LoadFailure) as caught:
            self.model(port("double__0", "STRING", [1], reshape={"shape": []}))
        self.assertEqual(
            str(caught.exception),
            "unable to load model 'm', batch output 'double__0' is TYPE_STRING, want a datatype of a fixed size",
        )

    def test_make_every_kind_of_batch_input(self):
        shapes = [(1, 3, 2), (2, 1, 5), (1, 0, 4)]
        cases = {
            "BATCH_ELEMENT_COUNT": [6, 10, 0],
            "BATCH_ACCUMULATED_ELEMENT_COUNT": [6, 16, 16],
            "BATCH_ACCUMULATED_ELEMENT_COUNT_WITH_ZERO": [0, 6, 16, 16],
            "BATCH_MAX_ELEMENT_COUNT_AS_SHAPE": [0] * 10,
            "BATCH_ITEM_SHAPE": [[3, 2], [1, 5], [1, 5], [0, 4]],
            "BATCH_ITEM_SHAPE_FLATTEN": [3, 2, 1, 5, 1, 5, 0, 4],
        }
        for kind, values in cases.items():
            for datatype, expected in (("INT32", np.int32), ("FP32", np.float32)):
                made = Made(kind, datatype, "x").tensor(shapes)
                self.assertEqual((made.tolist(), made.dtype), (values, expected), kind)


class TestTexts(TorchScriptCase):
    def model(self, **config):
        outputs = [port("OUTPUT__0", "STRING"), port("OUTPUT__1", "INT64")]
        return self.load(Upper(), [port("INPUT__0", "STRING")], outputs, **config)

    def test_are_lists_of_str(self):
        array = np.array([b"ab", "ü".encode(), b"", b"a\0b"], np.object_)
        got = self.run_one(self.model(), ["OUTPUT__0", "OUTPUT__1"], INPUT__0=array)
        self.assertEqual(got["OUTPUT__0"].tolist(), [b"AB", "ü".encode(), b"", b"A\0B"])
        self.assertEqual(got["OUTPUT__1"].tolist()[2:], [0, 3])

    def test_are_joined_and_split(self):
        scalar = {"reshape": {"shape": []}}
        model = self.load(
            Upper(),
            [port("INPUT__0", "STRING", [1], **scalar)],
            [port("OUTPUT__0", "STRING", [1], **scalar)],
            max_batch_size=4,
        )
        batches = ([b"a"], [b"b", b"c"])
        responses = model.execute([self.request(INPUT__0=np.array(b, np.object_)) for b in batches])
        self.assertEqual([self.values(r)["OUTPUT__0"].tolist() for r in responses], [[b"A"], [b"B", b"C"]])

    def test_must_be_utf_8(self):
        (response,) = self.model().execute([self.request(INPUT__0=np.array([b"a", b"\xff"], np.object_))])
        self.assert_error(
            response, "input 'INPUT__0': element 1 is not UTF-8", pb_utils.TritonError.INVALID_ARG
        )


class TestPreparation(TorchScriptCase):
    def parameters(self, **parameters):
        return {key: {"string_value": value} for key, value in parameters.items()}

    def test_leaves_alone_what_it_would_change(self):
        ones = np.ones(1, np.float32)
        for module, said in (
            (Counter(), "changes its own tensors when it runs"),
            (Setter(), "keeps state between runs"),
        ):
            model = self.load(module)
            self.assertIn(said, self.logged()[-1])
            counts = [self.run_one(model, INPUT__0=ones)["OUTPUT__0"].tolist() for _ in range(2)]
            self.assertEqual(counts, [[2], [3]], "the first request is the first run")
        self.load(Random())
        self.assertIn("runs as it was saved; optimisation changes results by more than 1e-05", self.logged()[-1])

    def test_keeps_a_model_in_the_mode_that_it_was_saved_in(self):
        model = self.load(torch.jit.script(Dropped().train()))
        self.assertIn("was saved in training mode", self.logged()[-1])
        got = self.run_one(model, INPUT__0=np.ones(1000, np.float32))["OUTPUT__0"]
        self.assertEqual(sorted(set(got.tolist())), [0, 2])

    def test_needs_no_inputs_that_work(self):
        model = self.load(Picky())
        self.assertIn("did not run on made-up inputs and is neither optimised nor warmed up", self.logged()[-1])
        self.assertEqual(len(self.run_one(model, INPUT__0=np.ones(17, np.float32))["OUTPUT__0"]), 17)

    def test_goes_on_without_an_optimiser(self):
        def fail(_module):
            raise RuntimeError("no such pass")

        kept, torch.jit.optimize_for_inference = torch.jit.optimize_for_inference, fail
        try:
            model = self.load(Identity())
        finally:
            torch.jit.optimize_for_inference = kept
        self.assertIn("runs as it was saved; optimisation failed: no such pass", self.logged()[-1])
        self.assertEqual(self.run_one(model, INPUT__0=np.ones(1, np.float32))["OUTPUT__0"].tolist(), [1])

    def test_does_what_parameters_say(self):
        self.load(Convolution(), [port("I__0", dims=[1, 3, 8, 8])], [port("O__0", dims=[1, 3, 8, 8])])
        self.assertEqual(torch.get_num_threads(), 1)
        self.addCleanup(torch.set_num_threads, 1)
        model = self.load(
            None,
            [port("I__0", dims=[1, 3, 8, 8])],
            [port("O__0", dims=[1, 3, 8, 8])],
            parameters=self.parameters(
                DISABLE_OPTIMIZED_EXECUTION="true",
                INFERENCE_MODE="false",
                NUM_THREADS="2",
                INTRA_OP_THREAD_COUNT="2",
                ENABLE_JIT_PROFILING="1",
                ENABLE_JIT_EXECUTOR="True",
                ENABLE_TENSOR_FUSER="0",
                ENABLE_CACHE_CLEANING="true",
                EXECUTION_ENV_PATH="/some/where",
            ),
        )
        self.assertTrue(hasattr(model._runner.module, "layers"), "it is not frozen")
        self.assertFalse(torch._C._get_graph_executor_optimize())
        self.assertEqual(torch.get_num_threads(), 2)
        self.assertEqual(self.logged(), [])

    def test_runs_in_inference_mode_unless_told(self):
        for text, wanted in (("true", True), ("false", False)):
            model = self.load(Identity(), parameters=self.parameters(INFERENCE_MODE=text))
            (result,) = model._runner.run([torch.ones(1) + 1])
            made = model._runner.module
            model._runner.module = lambda x: x + 1
            (result,) = model._runner.run([torch.ones(1)])
            self.assertEqual(result.is_inference(), wanted)
            model._runner.module = made
        model = self.load(Identity())
        model._runner.module = lambda x: x + 1
        self.assertTrue(model._runner.run([torch.ones(1)])[0].is_inference())

    def test_says_what_has_no_effect(self):
        parameters = self.parameters(
            ENABLE_WEIGHT_SHARING="true", ENABLE_NVFUSER="true", MY_OWN="x", SHM_MAX_BYTE_SIZE="1048576"
        )
        self.load(Identity(), parameters=parameters)
        self.assertEqual(
            self.logged(),
            [
                "parameter 'ENABLE_NVFUSER' of model 'm' has no effect: PyTorch has dropped this fuser",
                "parameter 'ENABLE_WEIGHT_SHARING' of model 'm' has no effect: each instance is a process with weights of "
                "its own",
                "parameter 'MY_OWN' of model 'm' has no effect: it is not known",
            ],
        )

    def test_refuses_values_that_cannot_be(self):
        for parameters, text in (
            ({"INFERENCE_MODE": "maybe"}, "parameter 'INFERENCE_MODE' must be true or false, got 'maybe'"),
            ({"NUM_THREADS": "0"}, "parameter 'NUM_THREADS' must be a number of threads, 1 or more, got '0'"),
            ({"INTER_OP_THREAD_COUNT": "x"}, "parameter 'INTER_OP_THREAD_COUNT' must be a number of threads"),
            ({"NUM_THREADS": "2", "INTRA_OP_THREAD_COUNT": "3"}, "they are one setting"),
        ):
            self.assert_refused(text, Identity(), parameters=self.parameters(**parameters))

    def test_lets_go_of_the_weights(self):
        model = self.load(Identity())
        model.finalize()
        self.assertIsNone(model._runner.module)


_FORK = """
import os, sys, numpy
# NumPy's own BLAS may have started threads; it knows about forks.
before = len(os.listdir("/proc/self/task"))
import torch
asked = []
for name in ("init", "_lazy_init", "is_available", "device_count"):
    assert hasattr(torch.cuda, name)
    setattr(torch.cuda, name, lambda *arguments: asked.append(1))
import tutti_torchscript
assert not asked, "the import asks for CUDA, which must not begin before the fork"
assert len(os.listdir("/proc/self/task")) == before, "the import has started threads"
def work(threads):
    torch.set_num_threads(threads)
    return float(torch.nn.functional.conv2d(torch.ones(1, 8, 64, 64), torch.ones(8, 8, 3, 3)).sum())
children = []
for threads in (1, 2):
    pid = os.fork()
    if pid == 0:
        os._exit(0 if work(threads) == 64.0 * 9 * 62 * 62 else 1)
    children.append(pid)
for pid in children:
    assert os.waitpid(pid, 0)[1] == 0, "a child failed"
"""

_WITHOUT = """
import sys
sys.modules["torch"] = None
import tutti_torchscript
try:
    tutti_torchscript.TritonPythonModel().initialize({"model_config": "{}", "model_name": "m"})
except Exception as error:
    print(error)
"""


@unittest.skipIf(torch is None, "this Python has no PyTorch")
class TestProcess(unittest.TestCase):
    def run_script(self, script):
        folder = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
        done = subprocess.run(
            [sys.executable, "-B", "-c", script], cwd=folder, capture_output=True, text=True, timeout=120, check=False
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    @unittest.skipUnless(os.path.exists("/proc/self/task"), "this system does not tell its threads")
    def test_can_be_forked_after_the_import(self):
        self.run_script(_FORK)

    def test_says_what_to_install_where_torch_is_missing(self):
        said = self.run_script(_WITHOUT)
        self.assertRegex(said, r"^failed to load model 'm': PyTorch cannot be imported by /.*\(ModuleNotFoundError:")
        self.assertIn("Install it there (PyPI: torch; Debian: python3-torch)", said)


if __name__ == "__main__":
    unittest.main()
