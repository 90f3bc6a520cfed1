"""Classifies every picture of a folder, some at a time, into a CSV file; run again, it goes on where it was interrupted."""

import argparse
import asyncio
import csv
import os
import random
import sys
from pathlib import Path

import numpy as np
import tritonclient.grpc.aio as triton
from PIL import Image
from tritonclient.utils import InferenceServerException

COLUMNS = ["picture", "label", "probability"]
# In these states the server may answer later, and the same request may be sent again: classifying changes nothing.
RETRYABLE = {"StatusCode.UNAVAILABLE", "StatusCode.RESOURCE_EXHAUSTED", "StatusCode.DEADLINE_EXCEEDED"}


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="PNG and JPEG files")
    parser.add_argument("csv", type=Path, help="is written when all are classified; until then CSV.part is")
    parser.add_argument("--url", default="localhost:8001", help="gRPC of the server (default: %(default)s)")
    parser.add_argument("--in-flight", type=int, default=8, help="requests at a time (default: %(default)s)")
    parser.add_argument("--attempts", type=int, default=8, help="of a request (default: %(default)s)")
    parser.add_argument("--timeout", type=float, default=30, help="of an attempt, in seconds (default: %(default)s)")
    return parser.parse_args()


def read_done(part):
    """-> the rows that an interrupted run has written. A row that it wrote half is cut off."""
    if not part.exists():
        part.write_text("", "utf8")
    whole = part.read_bytes()
    os.truncate(part, whole.rfind(b"\n") + 1)
    with part.open(encoding="utf8", newline="") as file:
        return {row[0]: row for row in csv.reader(file)}


def read_picture(path):
    """-> UINT8 [1,64,64,3]"""
    with Image.open(path) as image:
        return np.asarray(image.convert("RGB").resize((64, 64)))[None]


async def classify(client, path, o):
    """-> label and probability. Throws InferenceServerException when the server refuses, or has not answered after all attempts."""
    pixels = await asyncio.to_thread(read_picture, path)
    tensor = triton.InferInput("picture", pixels.shape, "UINT8").set_data_from_numpy(pixels)
    best = triton.InferRequestedOutput("probabilities", class_count=1)
    for attempt in range(1, o.attempts + 1):
        try:
            answer = await client.infer("shape_classifier", [tensor], outputs=[best], client_timeout=o.timeout)
            probability, _, label = answer.as_numpy("probabilities")[0][0].decode().split(":")
            return label, f"{float(probability):.3f}"
        except InferenceServerException as error:
            if error.status() not in RETRYABLE or attempt == o.attempts:
                raise
            # Longer each time, and not all at once.
            await asyncio.sleep(min(30, 0.25 * 2**attempt) * random.uniform(0.5, 1))


async def work(client, paths, file, failures, o):
    """Takes one path after another, as the others do, until there is none."""
    for path in paths:
        try:
            row = [path.name, *await classify(client, path, o)]
        except InferenceServerException as error:
            if error.status() in RETRYABLE:
                raise  # the server is away for long: the others would fail as well
            failures.append(f"{path}: {error}")
        except OSError as error:  # no picture
            failures.append(f"{path}: {error}")
        else:
            csv.writer(file, lineterminator="\n").writerow(row)
            file.flush()


async def main(o):
    part = Path(f"{o.csv}.part")
    done = read_done(part)
    found = sorted(path for path in o.folder.iterdir() if path.suffix.lower() in {".png", ".jpg", ".jpeg"})
    paths = iter([path for path in found if path.name not in done])
    failures = []
    async with triton.InferenceServerClient(o.url) as client:
        with part.open("a", encoding="utf8", newline="") as file:
            async with asyncio.TaskGroup() as group:
                for _ in range(o.in_flight):
                    group.create_task(work(client, paths, file, failures, o))
    if failures:
        sys.exit("\n".join([*failures, f"{len(failures)} of {len(found)} pictures are not classified; {part} has the others"]))
    rows = sorted(read_done(part).values())
    ordered = Path(f"{o.csv}.new")
    with ordered.open("w", encoding="utf8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([COLUMNS, *rows])
    ordered.replace(o.csv)
    part.unlink()
    print(f"{len(done)} pictures were classified before, {len(found) - len(done)} now")


if __name__ == "__main__":
    options = parse_arguments()
    try:
        asyncio.run(main(options))
    except* InferenceServerException as group:
        sys.exit(f"{group.exceptions[0]}\nrun again to go on")
