"""Tensors between the library and PyTorch."""
import gc
import unittest
import weakref

import numpy as np
import triton_python_backend_utils as pb_utils
from tutti_pb import dlpack

try:
    import torch
except ImportError:
    torch = None


@unittest.skipIf(torch is None, "this Python has no PyTorch")
class TestTorchExchange(unittest.TestCase):
    def test_shares_memory_both_ways(self):
        ours = pb_utils.Tensor("x", np.zeros((2, 3), np.float32))
        for theirs in (torch.from_dlpack(ours), torch.utils.dlpack.from_dlpack(ours.to_dlpack())):
            theirs += 1
        self.assertEqual(ours.as_numpy().tolist(), [[2, 2, 2], [2, 2, 2]])
        theirs = torch.zeros(2, 2)
        for back in (theirs, torch.utils.dlpack.to_dlpack(theirs)):
            pb_utils.Tensor.from_dlpack("y", back).as_numpy()[0, 0] += 1
        self.assertEqual(theirs.tolist(), [[2, 0], [0, 0]])

    def test_carries_every_number_that_both_have(self):
        pairs = {
            "UINT8": torch.uint8,
            "INT8": torch.int8,
            "INT16": torch.int16,
            "INT32": torch.int32,
            "INT64": torch.int64,
            "FP16": torch.float16,
            "FP32": torch.float32,
            "FP64": torch.float64,
            "BF16": torch.bfloat16,
        }
        for datatype, dtype in pairs.items():
            theirs = torch.arange(6).reshape(3, 2).to(dtype)
            ours = pb_utils.Tensor.from_dlpack("x", theirs)
            self.assertEqual((ours._datatype, ours.shape()), (datatype, [3, 2]))
            again = torch.from_dlpack(pb_utils.Tensor._received("x", datatype, [3, 2], bytearray(ours._payload())))
            self.assertTrue(again.dtype == dtype and torch.equal(again, theirs), datatype)

    def test_refuses_memory_in_another_order(self):
        with self.assertRaisesRegex(pb_utils.TritonModelException, "not contiguous"):
            pb_utils.Tensor.from_dlpack("x", torch.zeros(2, 3).t())
        self.assertEqual(pb_utils.Tensor.from_dlpack("x", torch.zeros(3, 1).t()).shape(), [1, 3])

    def test_frees_what_neither_uses(self):
        gc.disable()
        self.addCleanup(gc.enable)
        theirs = torch.zeros(4)
        watched = weakref.ref(theirs)
        ours = pb_utils.Tensor.from_dlpack("x", theirs)
        back = torch.from_dlpack(ours)
        array = ours.as_numpy()
        theirs[0] = 3
        del theirs, ours
        self.assertEqual((float(back[0]), float(array[0])), (3, 3))
        del back, array
        self.assertIsNone(watched())
        self.assertEqual(dlpack._given, {})

    def test_does_not_leak(self):
        theirs = torch.zeros(1 << 20)
        for _ in range(200):
            held = torch.from_dlpack(pb_utils.Tensor.from_dlpack("x", theirs.clone()))
            del held
        self.assertEqual(dlpack._given, {})


if __name__ == "__main__":
    unittest.main()
