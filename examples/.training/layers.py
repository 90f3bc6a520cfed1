"""Small convolutional networks in NumPy: forward, backward, Adam, and what they are in ONNX."""

import numpy as np
from onnx import TensorProto, helper, numpy_helper


class Conv:
    """3 x 3 with padding 1 (or 1 x 1 without), over [N,C,H,W]"""

    def __init__(self, random, inputs, outputs, stride=1, size=3):
        self.stride, self.size, self.pad = stride, size, size // 2
        self.weight = random.normal(0, np.sqrt(2 / (inputs * size * size)), (outputs, inputs, size, size)).astype(np.float32)
        self.bias = np.zeros(outputs, np.float32)

    def forward(self, x):
        self.shape = x.shape
        padded = np.pad(x, ((0, 0), (0, 0), (self.pad, self.pad), (self.pad, self.pad)))
        windows = np.lib.stride_tricks.sliding_window_view(padded, (self.size, self.size), (2, 3))
        windows = windows[:, :, :: self.stride, :: self.stride]
        n, c, h, w = windows.shape[:4]
        self.columns = windows.transpose(0, 2, 3, 1, 4, 5).reshape(n * h * w, -1)
        out = self.columns @ self.weight.reshape(len(self.bias), -1).T + self.bias
        return out.reshape(n, h, w, -1).transpose(0, 3, 1, 2)

    def backward(self, gradient):
        n, c, h, w = gradient.shape
        rows = gradient.transpose(0, 2, 3, 1).reshape(-1, c)
        self.gradients = [(rows.T @ self.columns).reshape(self.weight.shape), rows.sum(0)]
        columns = (rows @ self.weight.reshape(c, -1)).reshape(n, h, w, self.shape[1], self.size, self.size)
        padded = np.zeros((n, self.shape[1], self.shape[2] + 2 * self.pad, self.shape[3] + 2 * self.pad), np.float32)
        for i in range(self.size):
            for j in range(self.size):
                place = padded[:, :, i : i + h * self.stride : self.stride, j : j + w * self.stride : self.stride]
                place += columns[:, :, :, :, i, j].transpose(0, 3, 1, 2)
        return padded[:, :, self.pad : self.pad + self.shape[2], self.pad : self.pad + self.shape[3]]

    def nodes(self, name, source):
        attributes = {"strides": [self.stride] * 2, "pads": [self.pad] * 4, "kernel_shape": [self.size] * 2}
        return [helper.make_node("Conv", [source, f"{name}.weight", f"{name}.bias"], [name], **attributes)]


class Dense:
    """[N,...] -> [N,outputs]"""

    def __init__(self, random, inputs, outputs):
        self.weight = random.normal(0, np.sqrt(1 / inputs), (outputs, inputs)).astype(np.float32)
        self.bias = np.zeros(outputs, np.float32)

    def forward(self, x):
        self.shape, self.rows = x.shape, x.reshape(len(x), -1)
        return self.rows @ self.weight.T + self.bias

    def backward(self, gradient):
        self.gradients = [gradient.T @ self.rows, gradient.sum(0)]
        return (gradient @ self.weight).reshape(self.shape)

    def nodes(self, name, source):
        flat = helper.make_node("Flatten", [source], [f"{name}.flat"])
        return [flat, helper.make_node("Gemm", [f"{name}.flat", f"{name}.weight", f"{name}.bias"], [name], transB=1)]


class Relu:
    def forward(self, x):
        self.positive = x > 0
        return x * self.positive

    def backward(self, gradient):
        return gradient * self.positive

    def nodes(self, name, source):
        return [helper.make_node("Relu", [source], [name])]


class Network:
    """Takes pictures, UINT8 [N,H,W,3]."""

    def __init__(self, *layers):
        self.layers = layers
        self.weighted = [layer for layer in layers if hasattr(layer, "weight")]
        self.moments = [[np.zeros_like(p) for _ in range(2)] for p in self.parameters()]
        self.steps = 0

    def parameters(self):
        return [p for layer in self.weighted for p in (layer.weight, layer.bias)]

    def forward(self, pictures):
        x = pictures.transpose(0, 3, 1, 2).astype(np.float32) / 127.5 - 1
        for layer in self.layers:
            x = layer.forward(x)
        return x

    def learn(self, gradient, rate):
        """One step of Adam, from the gradient of the loss by the output"""
        for layer in reversed(self.layers):
            gradient = layer.backward(gradient)
        self.steps += 1
        gradients = [g for layer in self.weighted for g in layer.gradients]
        for parameter, g, (mean, square) in zip(self.parameters(), gradients, self.moments):
            mean += 0.1 * (g - mean)
            square += 0.001 * (g * g - square)
            unbiased = mean / (1 - 0.9**self.steps), square / (1 - 0.999**self.steps)
            parameter -= rate * unbiased[0] / (np.sqrt(unbiased[1]) + 1e-8)

    def save(self, path, source, result, last, result_shape, picture):
        """Writes ONNX. `last` is the operator behind the network, `picture` the shape of one, a text for a free axis."""
        node = helper.make_node
        nodes = [
            node("Cast", [source], ["floats"], to=TensorProto.FLOAT),
            node("Mul", ["floats", "scale"], ["scaled"]),
            node("Sub", ["scaled", "one"], ["centred"]),
            node("Transpose", ["centred"], ["x"], perm=[0, 3, 1, 2]),
        ]
        constants = {"scale": np.float32(1 / 127.5), "one": np.float32(1)}
        name = "x"
        for i, layer in enumerate(self.layers):
            nodes += layer.nodes(f"layer{i}", name)
            name = f"layer{i}"
            if hasattr(layer, "weight"):
                constants |= {f"{name}.weight": layer.weight, f"{name}.bias": layer.bias}
        nodes.append(node(last, [name], [result]))
        graph = helper.make_graph(
            nodes,
            "network",
            [helper.make_tensor_value_info(source, TensorProto.UINT8, ["batch", *picture])],
            [helper.make_tensor_value_info(result, TensorProto.FLOAT, ["batch", *result_shape])],
            [numpy_helper.from_array(np.asarray(array), name) for name, array in constants.items()],
        )
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(model.SerializeToString())
