"""A folder that keeps what each trained model said, one file a model, so that an interrupted run loses no model."""

from __future__ import annotations

import io
import os
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from whosin.errors import InputError

__all__ = ["Store", "fingerprint"]

Array = NDArray[np.float64]

VERSION = 1
"""Raised when what is stored changes its meaning."""


@dataclass(frozen=True)
class Store:
    """Files ``<key>-<number>.npz`` in a folder; only scores are kept, no record and no model."""

    folder: Path
    key: str

    def path(self, number: int) -> Path:
        """Return the file of a model."""
        return self.folder / f"{self.key[:16]}-{number:05d}.npz"

    def read(self, number: int, size: int) -> Array | None:
        """Return what an earlier run left, or None if there is nothing, or nothing whole."""
        try:
            with np.load(io.BytesIO(self.path(number).read_bytes()), allow_pickle=False) as content:
                key, scores = str(content["key"]), content["scores"]
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
            return None
        return scores if key == self.key and scores.shape == (size,) and scores.dtype == np.float64 else None

    def write(self, number: int, scores: Array) -> None:
        """Keep the scores of a model; a crash at any moment leaves a whole file or none."""
        path = self.path(number)
        draft = path.with_name(f"{path.name}.{os.getpid()}.part")
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with open(draft, "wb") as file:
                np.savez(file, key=np.array(self.key), scores=scores)
                file.flush()
                os.fsync(file.fileno())
            os.replace(draft, path)
        except OSError as error:
            raise InputError(f"cache takes a folder that can be written, got {str(self.folder)!r}: {error}") from error


def fingerprint(*parts: Any) -> str:
    """Return a hash of data, estimator and settings, the same in every process, with the versions that trained."""
    import joblib
    import sklearn

    try:
        return str(joblib.hash((VERSION, np.__version__, sklearn.__version__, parts), hash_name="sha1"))
    except Exception as error:
        raise InputError(f"cache takes data and an estimator that can be pickled, got: {error}") from error
