"""What PaddleOCR and rapidocr-onnxruntime 1.4.4 do around their networks, by OpenCV and Clipper."""

import cv2
import numpy as np
import pyclipper


def mini_box(points):
    rect = cv2.minAreaRect(points)
    left_first = sorted(cv2.boxPoints(rect), key=lambda point: point[0])
    (a, b), (c, d) = left_first[:2], left_first[2:]
    left = (a, b) if b[1] > a[1] else (b, a)
    right = (c, d) if d[1] > c[1] else (d, c)
    return np.array([left[0], right[0], right[1], left[1]]), min(rect[1])


def box_score(prob, box):
    height, width = prob.shape
    x0, x1 = (int(np.clip(f(box[:, 0]), 0, width - 1)) for f in (lambda v: np.floor(v.min()), lambda v: np.ceil(v.max())))
    y0, y1 = (int(np.clip(f(box[:, 1]), 0, height - 1)) for f in (lambda v: np.floor(v.min()), lambda v: np.ceil(v.max())))
    mask = np.zeros((y1 - y0 + 1, x1 - x0 + 1), np.uint8)
    cv2.fillPoly(mask, [(box - np.array([x0, y0], box.dtype)).astype(np.int32)], 1)
    return cv2.mean(prob[y0 : y1 + 1, x0 : x1 + 1], mask)[0]


def unclip(box, ratio):
    x, y = box.astype(float).T
    area = abs(np.dot(x, np.roll(y, -1)) - np.dot(y, np.roll(x, -1))) / 2
    length = np.hypot(x - np.roll(x, -1), y - np.roll(y, -1)).sum()
    offset = pyclipper.PyclipperOffset()
    offset.AddPath(box, pyclipper.JT_ROUND, pyclipper.ET_CLOSEDPOLYGON)
    return np.array(offset.Execute(area * ratio / length)).reshape(-1, 1, 2)


def clockwise(box):
    by_x = box[np.argsort(box[:, 0])]
    left, right = by_x[:2], by_x[2:]
    (tl, bl), (tr, br) = left[np.argsort(left[:, 1])], right[np.argsort(right[:, 1])]
    return np.array([tl, tr, br, bl], "float32")


def reading_order(found):
    found = sorted(found, key=lambda one: (one[0][0][1], one[0][0][0]))
    for i in range(len(found) - 1):
        for j in range(i, -1, -1):
            a, b = found[j][0][0], found[j + 1][0][0]
            if abs(b[1] - a[1]) >= 10 or b[0] >= a[0]:
                break
            found[j], found[j + 1] = found[j + 1], found[j]
    return found


def probability_boxes(prob, size, threshold, boxThreshold, unclipRatio, dilate, maxBoxes):
    height, width = prob.shape
    mask = (prob > np.float32(threshold)).astype(np.uint8)
    if dilate:
        mask = cv2.dilate(mask, np.ones((2, 2), np.uint8))
    contours, _ = cv2.findContours(mask * 255, cv2.RETR_LIST, cv2.CHAIN_APPROX_SIMPLE)
    found = []
    for contour in contours[:maxBoxes]:
        box, side = mini_box(contour)
        if side < 3:
            continue
        score = box_score(prob, box)
        if boxThreshold > score:
            continue
        box, side = mini_box(unclip(box, unclipRatio))
        if side < 5:
            continue
        scale = np.array([width, height]), np.array([size[1], size[0]])
        box = np.clip(np.round(box / scale[0].astype("float32") * scale[1].astype("float32")), 0, scale[1])
        box = np.clip(clockwise(box.astype(np.int32)), 0, scale[1] - 1).astype("float32")
        if min(int(np.linalg.norm(box[0] - box[1])), int(np.linalg.norm(box[0] - box[3]))) > 3:
            found.append((box, score))
    found = reading_order(found)
    boxes = np.array([box for box, _ in found], "float32").reshape(-1, 4, 2)
    return boxes, np.array([score for _, score in found], "float32")


def crop_rotated(image, boxes, turned, height, minWidth, maxWidth, turnFrom, pad, datatype):
    crops = []
    for box, over in zip(boxes, turned):
        width = int(max(np.linalg.norm(box[0] - box[1]), np.linalg.norm(box[2] - box[3])))
        high = int(max(np.linalg.norm(box[0] - box[3]), np.linalg.norm(box[1] - box[2])))
        upright = np.float32([[0, 0], [width, 0], [width, high], [0, high]])
        matrix = cv2.getPerspectiveTransform(box, upright)
        crop = cv2.warpPerspective(image, matrix, (width, high), flags=cv2.INTER_CUBIC, borderMode=cv2.BORDER_REPLICATE)
        crop = crop.reshape(high, width, -1)
        if turnFrom is not None and high / width >= turnFrom:
            crop = np.rot90(crop)
        crops.append(crop[::-1, ::-1] if over else crop)
    ratios = [crop.shape[1] / crop.shape[0] for crop in crops]
    total = min(max(minWidth, int(height * max([0, *ratios]))), maxWidth)
    out = np.full((len(crops), height, total, image.shape[2]), pad, datatype)
    widths = np.zeros(len(crops), np.int64)
    for i, (crop, ratio) in enumerate(zip(crops, ratios)):
        widths[i] = max(min(int(np.ceil(height * ratio)), total), 1)
        small = cv2.resize(np.ascontiguousarray(crop), (int(widths[i]), height))
        out[i, :, : widths[i]] = small.reshape(height, widths[i], -1)
    return out, widths
