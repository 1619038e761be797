"""A file that keeps the sums of finished tasks, so that a long run can be interrupted and resumed."""

from __future__ import annotations

import io
import os
import zipfile
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from whosin.errors import InputError

__all__ = ["Journal"]

Array = NDArray[np.float64]


class Journal:
    """A file with the sum of the first tasks and the sums of later ones that ended early, always complete on disk."""

    def __init__(self, path: Path, key: str) -> None:
        self.path = path
        self.key = key

    def start(self, shape: tuple[int, int], n_tasks: int) -> tuple[int, Array, dict[int, Array]] | None:
        """Read what an earlier run left, or None if there is no file yet."""
        if not self.path.parent.is_dir():
            raise InputError(f"journal takes a path in a directory that exists, got {str(self.path)!r}")
        if not self.path.exists():
            return None
        damaged = f"journal {str(self.path)!r} is damaged or no journal of subset_laws; remove it or name another file"
        try:
            with np.load(io.BytesIO(self.path.read_bytes()), allow_pickle=False) as content:
                key = str(content["key"])
                summed, sums = int(content["summed"]), content["sums"]
                indices, waiting = content["indices"].tolist(), content["waiting"]
        except (OSError, ValueError, KeyError, EOFError, TypeError, AttributeError, zipfile.BadZipFile) as error:
            raise InputError(damaged) from error
        if key != self.key:
            raise InputError(
                f"journal {str(self.path)!r} belongs to a run with other logits, k, method or memory; name another file"
            )
        expected = (len(indices), *shape)
        if sums.shape != shape or waiting.shape != expected or not 0 <= summed <= n_tasks:
            raise InputError(damaged)
        return summed, sums, dict(zip(indices, waiting, strict=True))

    def write(self, summed: int, sums: Array, waiting: dict[int, Array]) -> None:
        """Replace the file; a crash at any moment leaves the old one or the new one."""
        draft = self.path.with_name(self.path.name + ".part")
        try:
            with open(draft, "wb") as file:
                np.savez(
                    file,
                    key=np.array(self.key),
                    summed=np.array(summed),
                    sums=sums,
                    indices=np.array(list(waiting), dtype=np.int64),
                    waiting=np.array(list(waiting.values())).reshape(len(waiting), *sums.shape),
                )
                file.flush()
                os.fsync(file.fileno())
            os.replace(draft, self.path)
        except OSError as error:
            raise InputError(f"journal takes a file that can be written, got {str(self.path)!r}: {error}") from error
