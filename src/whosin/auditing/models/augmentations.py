"""Small changes to records that should leave their label as it is, for attacks that see labels only."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from whosin.errors import InputError, InputTypeError, check_number, check_whole

Augment = Callable[[Any, np.random.Generator], Any]

JITTER = 0.1


def feature_noise(tables: Sequence[Any], scale: float = JITTER) -> Augment:
    """Return a change that adds normal noise to every feature.

    Parameters
    ----------
    tables : sequence of records
        Records whose standard deviation is the unit of each feature.
    scale : float, default 0.1
        Standard deviation of the noise in these units.

    Examples
    --------
    >>> import numpy as np
    >>> from whosin.auditing.models import feature_noise
    >>> X = np.random.default_rng(0).normal(0, [1.0, 100.0], (1000, 2))
    >>> changed = feature_noise([X])(X, np.random.default_rng(0))
    >>> (changed - X).std(axis=0).round(1).tolist()  # a tenth of the spread of each column
    [0.1, 9.6]
    """
    scale = check_number("scale", scale, low=0.0)
    try:
        rows = np.concatenate([np.asarray(X, dtype=np.float64) for X in tables])
    except (TypeError, ValueError):
        raise InputTypeError("augment is needed: the default adds noise to a dense table of numbers") from None
    with np.errstate(over="ignore", invalid="ignore"):
        spread = scale * np.std(rows, axis=0) if len(rows) else np.array(np.nan)
    if not np.isfinite(spread).all():
        raise InputError("augment is needed: the default needs records whose spread is a finite number")

    def change(X: Any, rng: np.random.Generator) -> Any:
        values = np.asarray(X, dtype=np.float64)
        changed = values + spread * rng.standard_normal(values.shape)
        if hasattr(X, "iloc"):
            return type(X)(changed, columns=X.columns, index=X.index)
        return type(X)(changed, schema=X.columns) if hasattr(X, "columns") else changed

    return change


def image_shifts(
    pixels: int = 1, *, flip: bool = False, shape: tuple[int, ...] | None = None, channels_last: bool = False
) -> Augment:
    """Return a change that moves every image by up to so many pixels in both directions, its edges repeated.

    Parameters
    ----------
    pixels : int, default 1
        Largest shift.
    flip : bool, default False
        Whether half of the images are also mirrored left to right: right for photographs, wrong for digits.
    shape : tuple, optional
        Shape of one image, for records that are flat; height and width last.
    channels_last : bool, default False
        Whether the colours are the last axis of (N, height, width, colours).

    Examples
    --------
    >>> import numpy as np
    >>> from whosin.auditing.models import image_shifts
    >>> image = np.arange(9).reshape(1, 3, 3)
    >>> image_shifts(1)(image, np.random.default_rng(0))[0].tolist()  # one up, and the edge repeats
    [[3, 4, 5], [6, 7, 8], [6, 7, 8]]
    """
    most = check_whole("pixels", pixels, high=2**31)

    def change(X: Any, rng: np.random.Generator) -> Any:
        given = np.asarray(X)
        images = given if shape is None else _unfolded(given, shape)
        images = np.moveaxis(images, -1, 1) if channels_last else images
        if images.ndim < 3:
            raise InputError(f"image_shifts needs images, or flat ones with shape=, got records of shape {given.shape}")
        changed = _moved(images, most, flip, rng)
        return (np.moveaxis(changed, 1, -1) if channels_last else changed).reshape(given.shape)

    return change


def _unfolded(flat: NDArray[Any], shape: Any) -> NDArray[Any]:
    try:
        return flat.reshape(len(flat), *shape)
    except (TypeError, ValueError):
        raise InputError(f"shape must be that of one image, got {shape!r} for records of shape {flat.shape}") from None


def _moved(images: Any, most: int, flip: bool, rng: np.random.Generator) -> Any:
    height, width = images.shape[-2:]
    down, right = rng.integers(-most, most + 1, size=(2, len(images)))
    rows = np.clip(np.arange(height) + down[:, None], 0, height - 1)
    columns = np.clip(np.arange(width) + right[:, None], 0, width - 1)
    if flip:
        mirrored = rng.random(len(images)) < 0.5
        columns = np.where(mirrored[:, None], columns[:, ::-1], columns)
    flat = images.reshape(len(images), -1, height, width)
    places = np.arange(len(images))[:, None, None, None], np.arange(flat.shape[1])[None, :, None, None]
    return flat[(*places, rows[:, None, :, None], columns[:, None, None, :])].reshape(images.shape)
