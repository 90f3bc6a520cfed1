"""Tensors over NumPy, on the wire and through DLPack, without any framework."""
import copy
import gc
import pickle
import unittest
import weakref

import numpy as np
import triton_python_backend_utils as pb_utils
from tutti_pb import dlpack
from tutti_pb.datatypes import STORAGE

NUMBERS = [name for name in STORAGE if name not in ("BYTES", "BF16")]


class TestTensor(unittest.TestCase):
    def test_keeps_the_array_that_it_is_made_of(self):
        array = np.arange(6, dtype=np.float32).reshape(2, 3)
        tensor = pb_utils.Tensor("x", array)
        self.assertIs(tensor.as_numpy(), array)
        self.assertEqual((tensor.name(), tensor.shape(), tensor.triton_dtype()), ("x", [2, 3], 11))
        self.assertTrue(tensor.is_cpu())
        self.assertEqual(bytes(tensor._payload()), array.tobytes())

    def test_makes_other_layouts_contiguous(self):
        array = np.arange(6, dtype=np.int64).reshape(2, 3)
        tensor = pb_utils.Tensor("x", array.T)
        self.assertEqual(bytes(tensor._payload()), array.T.copy().tobytes())
        self.assertTrue(tensor.as_numpy().flags.c_contiguous)

    def test_takes_scalars_and_empty_arrays(self):
        self.assertEqual(bytes(pb_utils.Tensor("x", np.array(5, np.int16))._payload()), b"\5\0")
        self.assertEqual(pb_utils.Tensor("x", np.array(5, np.int16)).shape(), [])
        for dtype in (np.float32, np.object_):
            self.assertEqual(bytes(pb_utils.Tensor("x", np.empty((2, 0), dtype))._payload()), b"")

    def test_refuses_what_is_no_tensor(self):
        failures = [
            ("", np.zeros(1), pb_utils.TritonModelException, "Tensor name cannot be an empty string."),
            ("x", np.array(["text"]), pb_utils.TritonModelException, "NumPy dtype is not supported."),
            ("x", np.zeros(1, ">f4"), pb_utils.TritonModelException, "NumPy dtype is not supported."),
            ("x", np.zeros(1, "M8[s]"), pb_utils.TritonModelException, "NumPy dtype is not supported."),
            ("x", np.zeros(1, np.complex64), pb_utils.TritonModelException, "NumPy dtype is not supported."),
            ("x", [1.0], TypeError, "'numpy_array' must be ndarray, got list"),
            (1, np.zeros(1), TypeError, "'name' must be str, got int"),
        ]
        for name, array, kind, text in failures:
            with self.subTest(text=text), self.assertRaisesRegex(kind, text.replace(".", r"\.")):
                pb_utils.Tensor(name, array)

    def test_views_the_bytes_that_came_in(self):
        for datatype in NUMBERS:
            with self.subTest(datatype=datatype):
                dtype = STORAGE[datatype]
                memory = bytearray(np.arange(6).astype(dtype).tobytes())
                tensor = pb_utils.Tensor._received("x", datatype, [2, 3], memory)
                array = tensor.as_numpy()
                self.assertEqual((array.dtype, array.shape), (dtype, (2, 3)))
                array[0, 0] = 1
                self.assertEqual(memory[0 : dtype.itemsize], array[0, 0].tobytes())
                self.assertEqual(bytes(tensor._payload()), bytes(memory))
                self.assertEqual(tensor.triton_dtype(), pb_utils.numpy_to_triton_type(dtype))

    def test_takes_no_elements_from_the_wire(self):
        for datatype in NUMBERS + ["BYTES"]:
            tensor = pb_utils.Tensor._received("x", datatype, [0, 3], b"")
            self.assertEqual(tensor.as_numpy().shape, (0, 3))

    def test_gives_bytes_objects_for_bytes(self):
        wire = b"\2\0\0\0hi\0\0\0\0\3\0\0\0\xff\0z"
        tensor = pb_utils.Tensor._received("x", "BYTES", [3, 1], wire)
        self.assertEqual(bytes(tensor._payload()), wire)
        array = tensor.as_numpy()
        self.assertEqual(array.tolist(), [[b"hi"], [b""], [b"\xff\0z"]])
        self.assertIs(tensor.as_numpy(), array)
        array[0, 0] = b"changed"
        self.assertEqual(bytes(tensor._payload())[:11], b"\7\0\0\0changed")

    def test_refuses_bytes_that_do_not_fit_their_shape(self):
        for wire, text in [(b"\2\0\0\0h", "is cut"), (b"\2\0\0", "is cut"), (b"\0\0\0\0", "has 1 elements")]:
            with self.assertRaisesRegex(pb_utils.TritonModelException, text):
                pb_utils.Tensor._received("x", "BYTES", [2], wire).as_numpy()

    def test_writes_objects_as_their_text(self):
        for array, wire in [
            (np.array([b"a\0", "ü", 7, None], np.object_), b"\2\0\0\0a\0\2\0\0\0\xc3\xbc\1\0\0\x007\4\0\0\0None"),
            (np.array([[b"a"], [b"bc"]]), b"\1\0\0\0a\2\0\0\0bc"),
            (np.array([[1, 2], [3, 4]], np.object_).T, b"\1\0\0\x001\1\0\0\x003\1\0\0\x002\1\0\0\x004"),
        ]:
            tensor = pb_utils.Tensor("x", array)
            self.assertEqual(bytes(tensor._payload()), wire)
            self.assertEqual(tensor.triton_dtype(), 13)

    def test_has_no_numpy_form_of_bfloat16(self):
        tensor = pb_utils.Tensor._received("x", "BF16", [2], b"\x80\x3f\0\0")
        with self.assertRaisesRegex(pb_utils.TritonModelException, "BF16 and cannot be converted to NumPy"):
            tensor.as_numpy()
        self.assertEqual(tensor.triton_dtype(), 14)
        twin = pb_utils.Tensor.from_dlpack("y", tensor)
        self.assertEqual((bytes(twin._payload()), twin.triton_dtype()), (b"\x80\x3f\0\0", 14))

    def test_can_be_copied_and_pickled(self):
        for tensor in (
            pb_utils.Tensor("x", np.arange(3.0)),
            pb_utils.Tensor("x", np.array([b"a", b"b"], np.object_)),
            pb_utils.Tensor._received("x", "BF16", [1], b"\1\2"),
        ):
            for twin in (copy.copy(tensor), copy.deepcopy(tensor), pickle.loads(pickle.dumps(tensor))):
                self.assertEqual(bytes(twin._payload()), bytes(tensor._payload()))
                self.assertEqual((twin.name(), twin.shape(), repr(twin)), ("x", tensor.shape(), repr(tensor)))
        deep = copy.deepcopy(pb_utils.Tensor("x", np.zeros(1)))
        deep.as_numpy()[0] = 1


class Memory(bytearray):
    """Memory that can be watched."""


class TestLifetime(unittest.TestCase):
    def setUp(self):
        self.memory = Memory(16)
        self.watch = weakref.ref(self.memory)

    def assert_freed(self):
        self.assertIsNone(self.watch(), "nothing holds the memory, without help of the garbage collector")

    def test_memory_ends_with_the_tensor(self):
        gc.disable()
        self.addCleanup(gc.enable)
        tensor = pb_utils.Tensor._received("x", "FP32", [4], self.memory)
        tensor.as_numpy()
        del self.memory, tensor
        self.assert_freed()

    def test_memory_lives_as_long_as_an_array_of_it(self):
        gc.disable()
        self.addCleanup(gc.enable)
        part = pb_utils.Tensor._received("x", "FP32", [4], self.memory).as_numpy()[1:]
        del self.memory
        self.assertIsNotNone(self.watch())
        part[0] = 1
        del part
        self.assert_freed()

    def test_memory_lives_as_long_as_an_unused_capsule(self):
        capsule = pb_utils.Tensor._received("x", "FP32", [4], self.memory).to_dlpack()
        del self.memory
        self.assertIsNotNone(self.watch())
        del capsule
        self.assert_freed()
        self.assertEqual(dlpack._given, {})

    @unittest.skipUnless(hasattr(np.ndarray, "__dlpack__"), "this NumPy has no DLPack")
    def test_an_exception_passes_an_unused_capsule(self):
        tensor = pb_utils.Tensor._received("x", "BF16", [8], self.memory)
        del self.memory
        with self.assertRaisesRegex(TypeError, "not subscriptable"):
            tensor.to_dlpack()[0]
        del tensor
        self.assert_freed()

    def test_memory_lives_as_long_as_what_consumed_its_capsule(self):
        capsule = pb_utils.Tensor._received("x", "FP32", [4], self.memory).to_dlpack()
        del self.memory
        consumer = pb_utils.Tensor.from_dlpack("y", capsule)
        del capsule
        self.assertIsNotNone(self.watch())
        array = consumer.as_numpy()
        del consumer
        self.assertEqual(array.tolist(), [0, 0, 0, 0])
        del array
        self.assert_freed()
        self.assertEqual(dlpack._given, {})


class TestDlpack(unittest.TestCase):
    def test_carries_every_number(self):
        for datatype in NUMBERS + ["BF16"]:
            size = STORAGE[datatype].itemsize * 6
            tensor = pb_utils.Tensor._received("x", datatype, [3, 2], bytearray(range(size)))
            twin = pb_utils.Tensor.from_dlpack("y", tensor.to_dlpack())
            self.assertEqual(bytes(twin._payload()), bytes(range(size)), datatype)
            self.assertEqual((twin.name(), twin.shape()), ("y", [3, 2]))
            self.assertEqual(twin.triton_dtype(), tensor.triton_dtype())

    def test_shares_memory(self):
        tensor = pb_utils.Tensor("x", np.zeros(3, np.int32))
        pb_utils.Tensor.from_dlpack("y", tensor).as_numpy()[1] = 5
        self.assertEqual(tensor.as_numpy().tolist(), [0, 5, 0])

    def test_gives_a_copy_of_what_may_not_be_written(self):
        tensor = pb_utils.Tensor._received("x", "UINT8", [2], b"ab")
        twin = pb_utils.Tensor.from_dlpack("y", tensor)
        twin.as_numpy()[0] = 0
        self.assertEqual(tensor.as_numpy().tobytes(), b"ab")

    def test_takes_no_elements_and_scalars(self):
        for shape in ([0], [2, 0, 3], []):
            tensor = pb_utils.Tensor("x", np.zeros(shape, np.float64))
            self.assertEqual(pb_utils.Tensor.from_dlpack("y", tensor).shape(), shape)

    @unittest.skipUnless(hasattr(np.ndarray, "__dlpack__"), "this NumPy has no DLPack")
    def test_exchanges_with_numpy(self):
        tensor = pb_utils.Tensor.from_dlpack("x", np.arange(4.0).reshape(2, 2))
        self.assertEqual(tensor.as_numpy().tolist(), [[0, 1], [2, 3]])
        self.assertEqual(np.from_dlpack(tensor).tolist(), [[0, 1], [2, 3]])
        # One row: its stride says nothing.
        self.assertEqual(pb_utils.Tensor.from_dlpack("x", np.zeros((3, 4))[:1]).shape(), [1, 4])

    def test_refuses_what_it_cannot_take(self):
        used = pb_utils.Tensor("x", np.zeros(1)).to_dlpack()
        pb_utils.Tensor.from_dlpack("y", used)
        for name, tensor, text in [
            ("", used, "name cannot be an empty string"),
            ("y", used, "was used before"),
            ("y", [1], "Provided tensor is not supported"),
        ]:
            with self.assertRaisesRegex(pb_utils.TritonModelException, text):
                pb_utils.Tensor.from_dlpack(name, tensor)
        with self.assertRaisesRegex(pb_utils.TritonModelException, "DLPack does not have support for string"):
            pb_utils.Tensor("x", np.array([b"a"], np.object_)).to_dlpack()

    @unittest.skipUnless(hasattr(np.ndarray, "__dlpack__"), "this NumPy has no DLPack")
    def test_refuses_other_layouts_and_types(self):
        for array, text in [
            (np.zeros((2, 3)).T, "not contiguous"),
            (np.zeros(4)[::2], "not contiguous"),
            (np.zeros(2, np.complex64), "type code 5, 64 bits"),
        ]:
            with self.assertRaisesRegex(pb_utils.TritonModelException, text):
                pb_utils.Tensor.from_dlpack("x", array)

    def test_is_exported_as_it_is(self):
        tensor = pb_utils.Tensor("x", np.zeros(1))
        self.assertEqual(tensor.__dlpack_device__(), (1, 0))
        for options in ({"copy": True}, {"dl_device": (2, 0)}):
            with self.assertRaises(BufferError):
                tensor.__dlpack__(**options)


class TestDatatypes(unittest.TestCase):
    def test_have_a_number_and_a_numpy_type(self):
        for number in range(1, 13):
            self.assertEqual(pb_utils.numpy_to_triton_type(pb_utils.triton_to_numpy_type(number)), number)
        self.assertEqual(pb_utils.triton_to_numpy_type(13), np.object_)
        self.assertIsNone(pb_utils.triton_to_numpy_type(14))
        for kind in (np.object_, np.bytes_, np.dtype("S5")):
            self.assertEqual(pb_utils.numpy_to_triton_type(kind), 13)
        for kind in (np.str_, np.complex64, None, "no type"):
            self.assertIsNone(pb_utils.numpy_to_triton_type(kind))

    def test_have_a_name_in_configurations(self):
        self.assertIs(pb_utils.triton_string_to_numpy("TYPE_FP32"), np.float32)
        self.assertIs(pb_utils.triton_string_to_numpy("TYPE_BOOL"), bool)
        self.assertIs(pb_utils.triton_string_to_numpy("TYPE_STRING"), np.object_)
        with self.assertRaises(KeyError):
            pb_utils.triton_string_to_numpy("TYPE_BF16")

    def test_bytes_go_there_and_back(self):
        elements = [b"", b"\0", "ü".encode(), bytes(300)]
        wire = pb_utils.serialize_byte_tensor(np.array(elements, np.object_))
        for form in (wire, bytearray(wire), np.frombuffer(wire, np.uint8)):
            self.assertEqual(pb_utils.deserialize_bytes_tensor(form).tolist(), elements)
        self.assertIsNone(pb_utils.serialize_byte_tensor(np.zeros(1)))


if __name__ == "__main__":
    unittest.main()
