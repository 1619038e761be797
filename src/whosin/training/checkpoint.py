"""The state of one training in a file of its own: what an interrupted training goes on from."""

from __future__ import annotations

import hashlib
import io
import pickle
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from whosin.errors import InputError
from whosin.parallel.storage import whole_file
from whosin.training.torch_model import need_torch

_DIGEST = hashlib.sha256().digest_size


def read_state(path: Path) -> dict[str, Any] | None:
    """Return the state that a file keeps, None where there is no file, ValueError where it is damaged.

    A hash stands before the state: torch reads weights with wrong bits without complaint.
    """
    try:
        content = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None
    if hashlib.sha256(content[_DIGEST:]).digest() != content[:_DIGEST] or content[_DIGEST:][:2] != b"PK":
        raise ValueError("it is damaged, or something else")
    state: dict[str, Any] = need_torch().load(io.BytesIO(content[_DIGEST:]), weights_only=True, map_location="cpu")
    return state


def write_state(path: Path, state: dict[str, Any], name: str = "journal") -> None:
    """Keep a state, whole or not at all; ``name`` is what the argument is called in errors."""
    buffer = io.BytesIO()
    need_torch().save(state, buffer)
    content = buffer.getvalue()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with whole_file(path, mode=0o600) as draft:
            draft.write_bytes(hashlib.sha256(content).digest() + content)
    except OSError as error:
        raise InputError(f"{name} must be a path that can be written, got {str(path)!r}: {error}") from error


@dataclass(frozen=True)
class Checkpoint:
    """A file beside the journal, for the training with this key, which names data, settings and seed."""

    journal: Path
    key: str

    @property
    def path(self) -> Path:
        """Where the state is kept."""
        return self.journal.with_name(f"{self.journal.name}.{self.key[:24]}.pt")

    def read(self, module: Any, optimizer: Any) -> int:
        """Take up the state that an earlier run left; return how much was done, 0 if nothing whole is left."""
        try:
            state = read_state(self.path)
        except (OSError, ValueError, pickle.UnpicklingError):
            return 0  # an optimiser of one's own may keep what torch does not read without running it
        except Exception as error:
            raise self._refused(error) from error
        try:
            if state is None or state["key"] != self.key:
                return 0
            module.load_state_dict(state["module"])
            optimizer.load_state_dict(state["optimizer"])
            return int(state["done"])
        except Exception as error:
            raise self._refused(error) from error

    def write(self, module: Any, optimizer: Any, done: int) -> None:
        """Keep the state; a crash at any moment leaves the old file or the new one."""
        state = {"key": self.key, "done": done, "module": module.state_dict(), "optimizer": optimizer.state_dict()}
        write_state(self.path, state)

    def remove(self) -> None:
        """Remove the file of a finished training."""
        self.path.unlink(missing_ok=True)

    def _refused(self, error: Exception) -> InputError:
        return InputError(f"journal must have beside it what an earlier training left, got {str(self.path)!r}: {error}")
