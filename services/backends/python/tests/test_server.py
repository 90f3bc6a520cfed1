"""Tests of what the library asks of the server: log, metrics, model control; and configurations."""
import contextlib
import gc
import io
import json
import unittest

import numpy as np
import triton_python_backend_utils as pb_utils

from .fake_host import FakeHost
from .test_request import BoundCase, bls


class TestUnbound(unittest.TestCase):
    def test_says_that_it_needs_a_server(self):
        for attempt in (
            lambda: bls().exec(),
            lambda: pb_utils.load_model("m"),
            lambda: pb_utils.unload_model("m"),
            lambda: pb_utils.is_model_ready("m"),
            lambda: pb_utils.get_model_dir(),
            lambda: pb_utils.MetricFamily("n", "d", pb_utils.MetricFamily.COUNTER),
        ):
            with self.assertRaisesRegex(pb_utils.TritonModelException, "needs a server: triton_python_backend_utils"):
                attempt()

    def test_logs_to_stderr(self):
        with contextlib.redirect_stderr(io.StringIO()) as written:
            pb_utils.Logger.log_warn("careful")
        self.assertRegex(written.getvalue(), r"^WARNING .*test_server\.py:\d+] careful\n$")

    def test_exports_what_models_use(self):
        for name in ("SharedMemory", "bind", "annotations", "tutti_pb"):
            self.assertNotIn(name, pb_utils.__all__)
        for name in ("Tensor", "InferenceRequest", "Logger", "TRITONSERVER_RESPONSE_COMPLETE_FINAL", "get_model_dir"):
            self.assertIn(name, pb_utils.__all__)


class TestLogger(BoundCase):
    def test_says_where_it_was_called(self):
        logger = pb_utils.Logger
        for write, level in (
            (logger.log, "info"),
            (logger.log_info, "info"),
            (logger.log_warn, "warning"),
            (logger.log_error, "error"),
            (logger.log_verbose, "verbose"),
            (logger().log_error, "error"),
            (lambda text: logger.log(text, logger.WARNING), "warning"),
            (lambda text: logger.log(message=text, level=logger.VERBOSE), "verbose"),
        ):
            write("text")
            told, message, filename, line = self.host.told.pop()
            self.assertEqual((told, message), (level, "text"))
            self.assertEqual(filename, __file__)
            self.assertGreater(line, 0)
        with self.assertRaisesRegex(TypeError, "'message' must be str, got int"):
            logger.log_info(1)


class TestMetrics(BoundCase):
    def family(self, kind=pb_utils.MetricFamily.COUNTER):
        return pb_utils.MetricFamily(name="n", description="d", kind=kind)

    def test_are_made_changed_read_and_removed(self):
        family = self.family(pb_utils.MetricFamily.GAUGE)
        metric = family.Metric(labels={"model": "m"})
        metric.increment(-1)
        metric.set(np.float32(2.5))
        self.assertEqual(metric.value(), 4.0)
        self.assertEqual(
            self.host.told,
            [
                ("family", "n", "d", "GAUGE"),
                ("metric", 1, {"model": "m"}, []),
                ("update", 2, "increment", -1.0),
                ("update", 2, "set", 2.5),
                ("value", 2),
            ],
        )
        self.host.told.clear()
        del metric
        self.assertEqual(self.host.told, [("remove metric", 2)])
        del family
        self.assertEqual(self.host.told[1:], [("remove family", 1)])

    def test_of_a_histogram_have_buckets(self):
        metric = self.family(pb_utils.MetricFamily.HISTOGRAM).Metric(buckets=[1, 2.5])
        metric.observe(3)
        self.assertEqual(self.host.told[1:], [("metric", 1, {}, [1.0, 2.5]), ("update", 2, "observe", 3.0)])

    def test_do_what_their_kind_does(self):
        counter = self.family().Metric()
        gauge = self.family(pb_utils.MetricFamily.GAUGE).Metric()
        histogram = self.family(pb_utils.MetricFamily.HISTOGRAM).Metric(buckets=[1])
        self.host.told.clear()
        for attempt, text in (
            (
                lambda: counter.increment(-1),
                "Failed to increment metric value: TRITONSERVER_METRIC_KIND_COUNTER can only be incremented monotonically "
                "by non-negative values.",
            ),
            (lambda: counter.set(1), "Failed to set metric value: TRITONSERVER_METRIC_KIND_COUNTER does not support Set"),
            (
                lambda: gauge.observe(1),
                "Failed to observe metric value: TRITONSERVER_METRIC_KIND_GAUGE does not support Observe",
            ),
            (
                lambda: histogram.increment(1),
                "Failed to increment metric value: TRITONSERVER_METRIC_KIND_HISTOGRAM does not support Increment",
            ),
            (
                lambda: histogram.value(),
                "Failed to get metric value: TRITONSERVER_METRIC_KIND_HISTOGRAM does not support Value",
            ),
        ):
            with self.assertRaises(pb_utils.TritonModelException) as raised:
                attempt()
            self.assertEqual(str(raised.exception), text)
        with self.assertRaisesRegex(TypeError, "'value' must be Real, got NoneType"):
            counter.increment(None)
        self.assertEqual(self.host.told, [])

    def test_keep_their_family(self):
        metric = self.family(pb_utils.MetricKind.GAUGE).Metric()
        gc.collect()
        metric.set(1)
        self.host.told.clear()
        del metric
        self.assertEqual(self.host.told, [("remove metric", 2), ("remove family", 1)])

    def test_outlive_a_server_that_has_gone(self):
        family = self.family()
        self.host.failure = "gone"
        del family
        self.assertIsNone(self.host.failure, "it was asked, and its failure harmed nothing")

    def test_refuse_what_cannot_be(self):
        histogram = self.family(pb_utils.MetricFamily.HISTOGRAM)
        for attempt, text in (
            (lambda: self.family().Metric(labels=[]), "Failed to create metric. Labels must be a dictionary."),
            (lambda: histogram.Metric(buckets=(1,)), "Failed to create metric. Buckets must be a list."),
            (lambda: histogram.Metric(), "Failed to create metric. Missing required buckets."),
            (lambda: self.family().Metric(buckets=[1]), "Failed to create metric. Unexpected buckets found."),
        ):
            with self.assertRaises(pb_utils.TritonModelException) as raised:
                attempt()
            self.assertEqual(str(raised.exception), text)
        with self.assertRaisesRegex(TypeError, "'kind' must be MetricKind, got str"):
            pb_utils.MetricFamily("n", "d", "counter")

    def test_take_buckets_and_labels_as_triton_does(self):
        histogram = self.family(pb_utils.MetricFamily.HISTOGRAM)
        histogram.Metric(labels={}, buckets=[])
        histogram.Metric(labels={5: "a"}, buckets=[1])
        self.assertIn(("metric", 1, {"5": "a"}, [1.0]), self.host.told)
        for family, arguments, text in (
            (histogram, {}, "Failed to create metric. Missing required buckets."),
            (histogram, {"buckets": (1, 2)}, "Failed to create metric. Buckets must be a list."),
            (self.family(), {"buckets": []}, "Failed to create metric. Unexpected buckets found."),
            (self.family(), {"labels": 5}, "Failed to create metric. Labels must be a dictionary."),
            (
                self.family(),
                {"labels": {"a": 5}},
                "Error when creating Metric: attempt to access JSON non-string as string",
            ),
        ):
            with self.subTest(text=text):
                with self.assertRaises(pb_utils.TritonModelException) as raised:
                    family.Metric(**arguments)
                self.assertEqual(str(raised.exception), text)

    def test_say_what_the_server_refused(self):
        family = self.family()
        metric = family.Metric()
        gauge = self.family(pb_utils.MetricFamily.GAUGE).Metric()
        histogram = self.family(pb_utils.MetricFamily.HISTOGRAM).Metric(buckets=[1])
        for attempt, text in (
            (lambda: metric.increment(1), "Failed to increment metric value: no"),
            (lambda: gauge.set(1), "Failed to set metric value: no"),
            (lambda: histogram.observe(1), "Failed to observe metric value: no"),
            (lambda: metric.value(), "Failed to get metric value: no"),
            (lambda: family.Metric(), "Error when creating Metric: no"),
            (lambda: self.family(), "Error when creating MetricFamily: no"),
            (lambda: pb_utils.load_model("m"), "Failed to load model: no"),
            (lambda: pb_utils.unload_model("m"), "Failed to unload model: no"),
            (lambda: pb_utils.is_model_ready("m"), "Failed to check model readiness: no"),
        ):
            self.host.failure = "no"
            with self.assertRaises(pb_utils.TritonModelException) as raised:
                attempt()
            self.assertEqual(str(raised.exception), text)


class TestControl(BoundCase):
    def test_loads_unloads_and_asks(self):
        pb_utils.load_model("m")
        pb_utils.load_model(model_name="m", config="{}", files={"file:1/model.onnx": b"\0"})
        pb_utils.unload_model("m")
        pb_utils.unload_model("m", unload_dependents=True)
        self.assertIs(pb_utils.is_model_ready("up"), True)
        self.assertIs(pb_utils.is_model_ready("down", "2"), False)
        self.assertEqual(
            self.host.told,
            [
                ("load", "m", "", {}),
                ("load", "m", "{}", {"file:1/model.onnx": b"\0"}),
                ("unload", "m", False),
                ("unload", "m", True),
                ("ready", "up", ""),
                ("ready", "down", "2"),
            ],
        )
        self.assertEqual(pb_utils.get_model_dir(), FakeHost.model_dir)

    def test_refuses_files_that_are_none(self):
        text = "failed to load model 'm', files should be a dictionary of file paths and file contents"
        with self.assertRaisesRegex(pb_utils.TritonModelException, text):
            pb_utils.load_model("m", "{}", [])
        with self.assertRaisesRegex(TypeError, r"'files\['file:1/x'\]' must be bytes, got str"):
            pb_utils.load_model("m", "{}", {"file:1/x": "text"})
        self.assertEqual(self.host.told, [])


def configuration(**fields):
    return pb_utils.ModelConfig(json.dumps({"name": "m", "max_batch_size": 0, "input": [], "output": [], **fields}))


class TestModelConfig(unittest.TestCase):
    def assert_refused(self, text, change):
        with self.assertRaises(ValueError) as raised:
            change()
        self.assertEqual(str(raised.exception), text)

    def test_is_completed(self):
        config = pb_utils.ModelConfig('{"name": "m"}')
        config.set_max_batch_size(8)
        config.set_dynamic_batching()
        config.set_dynamic_batching()
        config.add_input({"name": "I", "data_type": "TYPE_FP32", "dims": [4], "optional": True})
        config.add_output({"name": "O", "data_type": "TYPE_STRING", "dims": [-1]})
        config.set_model_transaction_policy({"decoupled": True})
        config.set_model_transaction_policy({})
        self.assertEqual(
            config.as_dict(),
            {
                "name": "m",
                "max_batch_size": 8,
                "dynamic_batching": {},
                "input": [{"name": "I", "data_type": "TYPE_FP32", "dims": [4], "optional": True}],
                "output": [{"name": "O", "data_type": "TYPE_STRING", "dims": [-1]}],
                "model_transaction_policy": {"decoupled": True},
            },
        )

    def test_completes_what_is_there_in_part(self):
        config = configuration(input=[{"name": "I", "data_type": "TYPE_INVALID", "dims": []}])
        config.add_input({"name": "I", "data_type": "TYPE_FP32", "dims": [4], "optional": True})
        self.assertEqual(
            config.as_dict()["input"], [{"name": "I", "data_type": "TYPE_FP32", "dims": [4], "optional": True}]
        )
        config.add_input({"name": "I", "data_type": "TYPE_FP32", "dims": [4]})
        self.assertEqual(len(config.as_dict()["input"]), 1)

    def test_keeps_its_own_copy_of_what_is_added(self):
        config = configuration()
        port = {"name": "I", "data_type": "TYPE_FP32", "dims": [4]}
        config.add_input(port)
        port["dims"].append(5)
        self.assertEqual(config.as_dict()["input"][0]["dims"], [4])

    def test_refuses_what_contradicts_it(self):
        port = {"name": "P", "data_type": "TYPE_FP32", "dims": [4]}
        config = configuration(
            max_batch_size=4,
            sequence_batching={},
            model_transaction_policy={"decoupled": False},
            input=[{**port, "optional": False}],
            output=[port],
        )
        where = "in auto-complete-config function for model 'm'"
        for text, change in (
            (
                "configuration specified max_batch_size 4, but in auto-complete-config function for model 'm' "
                "specified max_batch_size 2",
                lambda: config.set_max_batch_size(2),
            ),
            (
                "Configuration specified scheduling_choice as 'sequence_batching', but auto-complete-config function "
                "for model 'm' tries to set scheduling_choice as 'dynamic_batching'",
                config.set_dynamic_batching,
            ),
            (
                "trying to change decoupled property in auto-complete-config for model 'm', which is already set to "
                "'False'.",
                lambda: config.set_model_transaction_policy({"decoupled": True}),
            ),
            (
                f"model transaction property {where} contains property other than 'decoupled'.",
                lambda: config.set_model_transaction_policy({"other": 1}),
            ),
            (
                "unable to load model 'm', configuration expects datatype TYPE_FP32 for input 'P', model provides "
                "TYPE_INT8",
                lambda: config.add_input({**port, "data_type": "TYPE_INT8"}),
            ),
            (
                "model 'm', tensor 'P': the model expects dims [5] but the model configuration specifies dims [4]",
                lambda: config.add_output({**port, "dims": [5]}),
            ),
            (
                "model 'm', tensor 'P': the model expects optional True but the model configuration specifies optional "
                "False",
                lambda: config.add_input({**port, "optional": True}),
            ),
            (f"input {where} is missing 'name' property.", lambda: config.add_input({"dims": [1]})),
            (f"output 'X' {where} is missing 'data_type' property.", lambda: config.add_output({"name": "X", "dims": [1]})),
            (f"input 'X' {where} is missing 'dims' property.", lambda: config.add_input({"name": "X", "data_type": "T"})),
            (
                f"input 'P' {where} contains property other than 'name', 'data_type', 'dims' and 'optional'.",
                lambda: config.add_input({**port, "reshape": 1}),
            ),
            (
                f"output 'P' {where} contains property other than 'name', 'data_type' and 'dims'.",
                lambda: config.add_output({**port, "optional": True}),
            ),
        ):
            with self.subTest(text=text):
                self.assert_refused(text, change)

    def test_is_asked_by_name(self):
        config = {"input": [{"name": "I"}], "output": [{"name": "O"}]}
        self.assertEqual(pb_utils.get_input_config_by_name(config, "I"), {"name": "I"})
        self.assertEqual(pb_utils.get_output_config_by_name(config, "O"), {"name": "O"})
        self.assertIsNone(pb_utils.get_output_config_by_name(config, "I"))
        self.assertIsNone(pb_utils.get_input_config_by_name({}, "I"))
        for policy, wanted in (({"decoupled": True}, True), ({"decoupled": False}, False), ({}, False)):
            config = {"model_transaction_policy": policy}
            self.assertIs(pb_utils.using_decoupled_model_transaction_policy(config), wanted)
        self.assertIs(pb_utils.using_decoupled_model_transaction_policy({}), False)


if __name__ == "__main__":
    unittest.main()
