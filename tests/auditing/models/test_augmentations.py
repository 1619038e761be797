"""Small changes to records: noise for tables, shifts and mirrors for images."""

import numpy as np
import pytest

from whosin.auditing.models import audit_classifier, feature_noise, image_shifts
from whosin.errors import InputError, InputTypeError

IMAGES = np.arange(3 * 2 * 4 * 5, dtype=float).reshape(3, 2, 4, 5)


def shifted(image, down, right):
    rows = np.clip(np.arange(image.shape[-2]) + down, 0, image.shape[-2] - 1)
    columns = np.clip(np.arange(image.shape[-1]) + right, 0, image.shape[-1] - 1)
    return image[..., rows, :][..., columns]


@pytest.mark.parametrize("flip", [False, True])
def test_every_image_is_one_of_the_shifts(flip):
    rng = np.random.default_rng(0)
    seen = set()
    for _ in range(200):
        changed = image_shifts(1, flip=flip)(IMAGES, rng)
        for place in range(3):
            ways = {
                (down, right, mirror): shifted(IMAGES[place], down, right)[..., :: -1 if mirror else 1]
                for down in (-1, 0, 1)
                for right in (-1, 0, 1)
                for mirror in ({False, True} if flip else {False})
            }
            found = [way for way, image in ways.items() if np.array_equal(image, changed[place])]
            assert len(found) == 1
            seen.add(found[0])
    assert len(seen) == (18 if flip else 9)


def test_layouts_agree():
    def change(images, **options):
        return image_shifts(2, **options)(images, np.random.default_rng(0))

    expected = change(IMAGES)
    last = change(np.moveaxis(IMAGES, 1, -1), channels_last=True)
    assert np.array_equal(np.moveaxis(last, -1, 1), expected)
    assert np.array_equal(change(IMAGES.reshape(3, -1), shape=(2, 4, 5)).reshape(IMAGES.shape), expected)
    assert np.array_equal(change(IMAGES[:, 0]), expected[:, 0])
    assert np.array_equal(image_shifts(0)(IMAGES, np.random.default_rng(0)), IMAGES)


def test_what_is_refused():
    with pytest.raises(InputError, match="flat ones with shape="):
        image_shifts()(np.zeros((3, 4)), np.random.default_rng(0))
    with pytest.raises(InputError, match="pixels"):
        image_shifts(-1)
    with pytest.raises(InputError, match="scale"):
        feature_noise([np.zeros((3, 2))], scale=-1.0)
    with pytest.raises(InputTypeError, match="augment is needed"):
        feature_noise([np.array([["a"]])])


def test_noise_in_the_units_of_each_feature():
    rng = np.random.default_rng(0)
    table = rng.normal(size=(4000, 3)) * [1.0, 100.0, 0.0]
    change = feature_noise([table], scale=0.5)(table, rng) - table
    assert change.std(axis=0) == pytest.approx([0.5, 50.0, 0.0], rel=0.05)


def test_labels_alone_of_images_and_of_tables():
    """A model that knows its members by heart, up to a shift by one pixel: only the default for images sees it."""
    rng = np.random.default_rng(0)
    images, labels = np.zeros((400, 7, 7)), rng.integers(2, size=400)
    images[np.arange(400), rng.integers(2, 5, 400), rng.integers(2, 5, 400)] = 1.0 + np.arange(400)
    right = rng.random(400) < 0.5

    class Heart:
        def predict_proba(self, X):
            number = np.round(np.asarray(X).reshape(len(X), -1).max(axis=1)).astype(int) - 1
            known = (number >= 0) & (number < 400)
            number = np.where(known, number, 0)
            says = np.where((number < 200) | right[number], labels[number], 1 - labels[number])
            return np.eye(2)[says]

    sides = (images[:200], labels[:200]), (images[200:], labels[200:])
    found = audit_classifier(Heart(), *sides, query="label_only", rng=0)
    assert found.advantage.lower > 0.3
    same = audit_classifier(Heart(), *sides, query="label_only", augment=image_shifts(1), rng=0)
    assert same.advantage == found.advantage
