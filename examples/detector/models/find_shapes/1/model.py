"""A picture -> what shapes are in it, and where: calls a detector, crops what it found, and calls a classifier for the crops."""

import json

import numpy as np
import triton_python_backend_utils as pb_utils

LABELS = np.array([b"circle", b"cross", b"ring", b"square", b"star", b"triangle"], np.object_)
CELL = 8  # pixels that one value of the detector stands for, in each direction
PART = 0.8  # of a shape's radius is what the detector marks
SIDE = 64  # pixels of the classifier's pictures
REACH = 32 / 25  # of a crop, by the shape's radius: as in the pictures that the classifier has learnt from
MOST = 32  # crops in a call: the classifier's max_batch_size


class TritonPythonModel:
    def initialize(self, args):
        parameters = json.loads(args["model_config"])["parameters"]
        self.detector, self.classifier = (parameters[name]["string_value"] for name in ("detector", "classifier"))

    def execute(self, requests):
        return [self.answer(request) for request in requests]

    def answer(self, request):
        picture = pb_utils.get_input_tensor_by_name(request, "picture").as_numpy()
        try:
            (marks,) = self.call(self.detector, "picture", picture[None], "objectness")
            circles = [to_circle(cells) for cells in regions(marks[0] > 0.5)]
            crops = [crop(picture, *circle) for circle in circles]
            names = [name for i in range(0, len(crops), MOST) for name in self.classify(np.stack(crops[i : i + MOST]))]
        except pb_utils.TritonModelException as error:
            return pb_utils.InferenceResponse(error=pb_utils.TritonError(str(error)))
        boxes = np.array([to_box(*circle, picture.shape) for circle in circles], np.int32).reshape(-1, 4)
        return pb_utils.InferenceResponse(
            [pb_utils.Tensor("labels", np.array(names, np.object_)), pb_utils.Tensor("boxes", boxes)]
        )

    def classify(self, crops):
        """UINT8 [N,64,64,3] -> N labels"""
        return LABELS[self.call(self.classifier, "picture", crops, "probabilities").argmax(1)]

    def call(self, model, name, array, output):
        request = pb_utils.InferenceRequest(
            model_name=model, inputs=[pb_utils.Tensor(name, array)], requested_output_names=[output]
        )
        response = request.exec()
        if response.has_error():
            raise pb_utils.TritonModelException(response.error().message())
        return pb_utils.get_output_tensor_by_name(response, output).as_numpy()


def regions(marked):
    """BOOL [H,W] -> the cells of each region, row by row: pairs of row and column"""
    left = set(zip(*(axis.tolist() for axis in np.nonzero(marked))))
    found = []
    while left:
        todo = [min(left)]
        left.remove(todo[0])
        for row, column in todo:  # grows meanwhile
            near = {(row + 1, column), (row - 1, column), (row, column + 1), (row, column - 1)} & left
            todo += near
            left -= near
        found.append(todo)
    return [cells for cells in found if len(cells) > 2]  # less is noise


def to_circle(cells):
    """-> row and column of the middle, and the radius, in pixels"""
    row, column = (np.mean(cells, 0) + 0.5) * CELL
    return row, column, np.sqrt(len(cells) / np.pi) * CELL / PART


def to_box(row, column, radius, shape):
    """-> left, top, right, bottom, in pixels"""
    edges = np.rint([column - radius, row - radius, column + radius, row + radius])
    return np.clip(edges, 0, [shape[1], shape[0]] * 2)


def crop(picture, row, column, radius):
    """-> UINT8 [64,64,3]: the square around a circle, interpolated; what lies outside of the picture is as its edge"""
    places = ((np.arange(SIDE) + 0.5) * 2 / SIDE - 1) * radius * REACH
    rows, row_parts = split(row + places - 0.5, picture.shape[0])
    columns, column_parts = split(column + places - 0.5, picture.shape[1])
    lines = mix(picture[rows].astype(np.float32), picture[rows + 1], row_parts[:, None, None])
    return np.rint(mix(lines[:, columns], lines[:, columns + 1], column_parts[:, None])).astype(np.uint8)


def split(places, extent):
    """-> the index before each place, and how far it is from there to the next one"""
    places = np.clip(places, 0, extent - 1)
    before = np.minimum(places.astype(int), extent - 2)
    return before, (places - before).astype(np.float32)


def mix(one, other, part):
    return one + (other - one) * part
