"""The state of one training in a file of its own: what an interrupted training goes on from."""

from __future__ import annotations

import hashlib
import io
import os
import pickle
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from whosin.errors import InputError
from whosin.training.torch_model import need_torch

__all__ = ["Checkpoint"]

_DIGEST = hashlib.sha256().digest_size


@dataclass(frozen=True)
class Checkpoint:
    """A file of the training with this key, which names data, settings and seed.

    It holds the state after a hash of it: torch reads weights with wrong bits without complaint.
    """

    folder: Path
    key: str

    @property
    def path(self) -> Path:
        """Where the state is kept."""
        return self.folder / f"training-{self.key[:24]}.pt"

    def read(self, module: Any, optimizer: Any) -> int:
        """Take up the state that an earlier run left; return how much was done, 0 if nothing whole is left."""
        torch = need_torch()
        try:
            content = self.path.read_bytes()
        except OSError:
            return 0
        if hashlib.sha256(content[_DIGEST:]).digest() != content[:_DIGEST] or content[_DIGEST:][:2] != b"PK":
            return 0
        try:
            state = torch.load(io.BytesIO(content[_DIGEST:]), weights_only=True, map_location="cpu")
            if state["key"] != self.key:
                return 0
            module.load_state_dict(state["module"])
            optimizer.load_state_dict(state["optimizer"])
            return int(state["done"])
        except pickle.UnpicklingError:  # an optimiser of one's own may keep what torch does not read without running it
            return 0
        except Exception as error:
            raise InputError(
                f"checkpoint must be what an earlier training left, got {str(self.path)!r} of something else: {error}"
            ) from error

    def write(self, module: Any, optimizer: Any, done: int) -> None:
        """Keep the state; a crash at any moment leaves the old file or the new one."""
        torch = need_torch()
        state = {"key": self.key, "done": done, "module": module.state_dict(), "optimizer": optimizer.state_dict()}
        buffer = io.BytesIO()
        torch.save(state, buffer)
        content = buffer.getvalue()
        draft = self.path.with_name(f"{self.path.name}.{os.getpid()}.part")
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            try:
                with open(draft, "wb") as file:
                    file.write(hashlib.sha256(content).digest() + content)
                    file.flush()
                    os.fsync(file.fileno())
                os.replace(draft, self.path)
            finally:
                draft.unlink(missing_ok=True)
        except OSError as error:
            raise InputError(
                f"checkpoint must be a folder that can be written, got {str(self.folder)!r}: {error}"
            ) from error

    def remove(self) -> None:
        """Remove the file of a finished training."""
        self.path.unlink(missing_ok=True)
