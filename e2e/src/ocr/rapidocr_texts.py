"""The texts that rapidocr-onnxruntime reads in the pictures of a folder, as JSON: python rapidocr_texts.py FOLDER"""

import json
import pathlib
import sys

from rapidocr_onnxruntime import RapidOCR

# All lines of a picture in one batch: they get one width.
engine = RapidOCR(rec_batch_num=1000, intra_op_num_threads=1)
texts = {}
for path in sorted(pathlib.Path(sys.argv[1]).glob("*.png")):
    found, _ = engine(path.read_bytes())
    texts[path.name] = [text for _, text, _ in found or []]
json.dump(texts, sys.stdout)
