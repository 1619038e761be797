"""The SDV side of tabular_generators.py: python _sdv_side.py GENERATOR FOLDER EPOCHS SEED RELEASE."""

from __future__ import annotations

import json
import sys
import time
import warnings
from pathlib import Path

import _common

_start = time.process_time()
import numpy as np  # noqa: E402
import pandas as pd  # noqa: E402
import torch  # noqa: E402
from sdv.metadata import Metadata  # noqa: E402
from sdv.single_table import CTGANSynthesizer, GaussianCopulaSynthesizer, TVAESynthesizer  # noqa: E402

IMPORT_SECONDS = time.process_time() - _start
PACKAGES = ("sdv", "ctgan", "torch", "numpy", "pandas")


def release(generator: str, folder: Path, epochs: int, seed: int, path: Path) -> dict:
    """Train a synthesiser on the training rows and write as many rows of its own."""
    np.random.seed(seed)  # noqa: NPY002 - the package draws from the global generators
    torch.manual_seed(seed)
    metadata = Metadata.load_from_dict(json.loads((folder / "meta.json").read_text(encoding="utf-8"))["sdv_metadata"])
    train = pd.read_csv(folder / "train.csv")
    makers = {
        "sdv copula": lambda: GaussianCopulaSynthesizer(metadata),
        "sdv ctgan": lambda: CTGANSynthesizer(metadata, epochs=epochs, enable_gpu=False),
        "sdv tvae": lambda: TVAESynthesizer(metadata, epochs=epochs, enable_gpu=False),
    }
    model = makers[generator]()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit({"t": train})
        model.sample(len(train))["t"].to_csv(path, index=False)
    return {"rows": len(train), "epochs": None if generator == "sdv copula" else epochs}


if __name__ == "__main__":
    generator, folder, epochs, seed, path = sys.argv[1:]
    _common.report_cost(
        lambda: release(generator, Path(folder), int(epochs), int(seed), Path(path)), PACKAGES, IMPORT_SECONDS
    )
