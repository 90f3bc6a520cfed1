"""Copies the photographs that Python packages ship into one folder.

Needs scikit-image, scikit-learn and matplotlib; nothing is downloaded. Sources and licences are in
model_repository/README.md.
"""

import argparse
import shutil
from pathlib import Path

import matplotlib
import skimage
import sklearn

PHOTOS = {
    skimage: ["data/astronaut.png", "data/chelsea.png", "data/coffee.png", "data/rocket.jpg"],
    sklearn: ["datasets/images/china.jpg", "datasets/images/flower.jpg"],
    matplotlib: ["mpl-data/sample_data/grace_hopper.jpg"],
}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    for package, names in PHOTOS.items():
        for name in names:
            shutil.copy(Path(package.__file__).parent / name, folder)


if __name__ == "__main__":
    main()
