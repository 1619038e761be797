"""Images for the experiments: MNIST, CIFAR-10 and HAM10000 from files that the user has, digits from scikit-learn.

``root`` holds ``mnist/mnist.npz`` (X, y), ``cifar10/cifar10_jpeg.zip`` (train|test/<class>/<number>.jpg),
``ham10000/ham10000_28x28_rgb.npz`` (X, dx, lesion_id) and, for 64x64, ``ham10000/images_200x150.zip`` (<image>.jpg)
beside ``HAM10000_metadata.csv``. Nothing is downloaded.
"""

from __future__ import annotations

import csv
import io
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

__all__ = ["FILES", "Images", "MissingData", "Split", "load", "random_split", "with_white_box", "zeros_and_sixes"]

Pixels = NDArray[np.float32]

FILES = {
    "mnist": "mnist/mnist.npz",
    "cifar10": "cifar10/cifar10_jpeg.zip",
    "skin": "ham10000/ham10000_28x28_rgb.npz",
    "skin64": "ham10000/images_200x150.zip",
}
MALIGNANT = ("akiec", "bcc", "mel")
"""Diagnoses of HAM10000 that count as cancer or its precursor."""


class MissingData(Exception):
    """The images are not where they were looked for."""


@dataclass(frozen=True, eq=False)
class Images:
    """Images of shape (n, channels, height, width) in [-1, 1], with whole numbers as labels."""

    pixels: Pixels
    labels: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.pixels)

    def take(self, rows: Any) -> Images:
        """Return some of them."""
        return Images(self.pixels[rows], self.labels[rows])

    @property
    def flat(self) -> Pixels:
        """The images as rows of a table."""
        return self.pixels.reshape(len(self), -1)


@dataclass(frozen=True, eq=False)
class Split:
    """Members and non-members, drawn at random from one set of images."""

    train: Images
    holdout: Images


def load(name: str, root: Path | None) -> Images:
    """Return all images of a set; of HAM10000 one for each lesion, so that records are independent."""
    if name == "digits":
        return _digits()
    path = None if root is None else root / FILES[name]
    if path is None or not path.is_file():
        raise MissingData(
            f"{name} takes the file {FILES[name]} under --data PATH or WHOSIN_DATA "
            f"({'none was given' if root is None else f'it is not under {root}'}); --dataset digits needs no file"
        )
    return {"mnist": _mnist, "cifar10": _cifar10, "skin": _skin, "skin64": _skin64}[name](path)


def random_split(images: Images, members: int, non_members: int, rng: np.random.Generator) -> Split:
    """Return that many random members and, of the rest, at most that many non-members."""
    order = rng.permutation(len(images))
    return Split(images.take(order[:members]), images.take(order[members : members + non_members]))


def zeros_and_sixes(images: Images, zeros: int, sixes: int, rng: np.random.Generator) -> Images:
    """Return the imbalanced set of appendix G: random zeros labelled 0, random sixes labelled 1."""
    rows = [rng.permutation(np.flatnonzero(images.labels == digit)) for digit in (0, 6)]
    chosen = np.concatenate([rows[0][:zeros], rows[1][:sixes]])
    return Images(images.pixels[chosen], (images.labels[chosen] == 6).astype(np.int64))


def with_white_box(pixels: Pixels) -> Pixels:
    """Return the images with a white box in the centre, a third of their height and width."""
    marked = pixels.copy()
    height, width = pixels.shape[-2:]
    rows, columns = (slice(side // 3, side - side // 3) for side in (height, width))
    marked[..., rows, columns] = 1.0
    return marked


def _scaled(values: NDArray[Any], highest: float) -> Pixels:
    return (values.astype(np.float32) * np.float32(2.0 / highest) - np.float32(1.0)).astype(np.float32)


def _digits() -> Images:
    from sklearn.datasets import load_digits

    found = load_digits()
    return Images(_scaled(found.images, 16.0)[:, None], found.target.astype(np.int64))


def _mnist(path: Path) -> Images:
    with np.load(path) as file:
        return Images(_scaled(file["X"], 255.0)[:, None], file["y"].astype(np.int64))


def _skin(path: Path) -> Images:
    with np.load(path) as file:
        _, first = np.unique(file["lesion_id"], return_index=True)
        pixels = np.moveaxis(file["X"][first], -1, 1)
        return Images(_scaled(pixels, 255.0), np.isin(file["dx"][first], MALIGNANT).astype(np.int64))


def _skin64(path: Path) -> Images:
    """The first image of each lesion in the order of their names, as whole images at 64x64."""
    with open(path.with_name("HAM10000_metadata.csv"), encoding="utf-8") as file:
        rows = sorted(csv.DictReader(file), key=lambda row: row["image_id"])
    first = {row["lesion_id"]: row for row in reversed(rows)}
    chosen = [first[lesion] for lesion in sorted(first)]
    with zipfile.ZipFile(path) as archive:
        pages = (Image.open(io.BytesIO(archive.read(f"{row['image_id']}.jpg"))) for row in chosen)
        small = (page.convert("RGB").resize((64, 64), Image.Resampling.BILINEAR) for page in pages)
        pixels = np.stack([np.asarray(page) for page in small])
    labels = np.array([row["dx"] in MALIGNANT for row in chosen], dtype=np.int64)
    return Images(_scaled(np.moveaxis(pixels, -1, 1), 255.0), labels)


def _cifar10(path: Path) -> Images:
    with zipfile.ZipFile(path) as archive:
        names = sorted(name for name in archive.namelist() if name.endswith(".jpg"))
        classes = sorted({name.split("/")[-2] for name in names})
        pixels = np.stack([np.asarray(Image.open(io.BytesIO(archive.read(name))).convert("RGB")) for name in names])
    labels = np.array([classes.index(name.split("/")[-2]) for name in names], dtype=np.int64)
    return Images(_scaled(np.moveaxis(pixels, -1, 1), 255.0), labels)
