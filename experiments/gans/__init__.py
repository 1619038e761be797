"""GANs with the layers that Xu et al. (2022) print, to study what they give away; they need PyTorch.

Small reference models for experiments, not for production.
"""

from experiments.gans.architectures import Architecture, architecture
from experiments.gans.models import JSGAN, WGANGP, PrivGAN
from experiments.gans.private import DPCGAN

__all__ = ["DPCGAN", "JSGAN", "WGANGP", "Architecture", "PrivGAN", "architecture"]
