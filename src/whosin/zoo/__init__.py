"""Small reference generative models, for experiments, examples and tests; not for production.

The networks need PyTorch (``pip install 'whosin[torch]'``) and are loaded on first use; :class:`GaussianCopula` does
not.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from whosin.errors import MissingExtraError

if TYPE_CHECKING:
    from whosin.zoo.architectures import Architecture, architecture
    from whosin.zoo.copula import GaussianCopula
    from whosin.zoo.gans import JSGAN, WGANGP
    from whosin.zoo.pairs import PrivGAN
    from whosin.zoo.private import DPCGAN

_HOMES = {
    "Architecture": "architectures",
    "DPCGAN": "private",
    "GaussianCopula": "copula",
    "JSGAN": "gans",
    "PrivGAN": "pairs",
    "WGANGP": "gans",
    "architecture": "architectures",
}

__all__ = ["DPCGAN", "JSGAN", "WGANGP", "Architecture", "GaussianCopula", "PrivGAN", "architecture"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'whosin.zoo' has no attribute {name!r}")
    try:
        value = getattr(import_module(f"whosin.zoo.{_HOMES[name]}"), name)
    except ModuleNotFoundError as missing:
        if missing.name != "torch":
            raise
        raise MissingExtraError(f"{name} needs PyTorch: pip install 'whosin[torch]'") from missing
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
