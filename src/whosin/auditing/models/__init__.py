"""Auditing classifiers: what their predictions tell about who was in the training data."""

from whosin.auditing.models.attacks import lira, lira_offline, rmia
from whosin.auditing.models.augmentations import feature_noise, image_shifts
from whosin.auditing.models.classifier import audit_classifier
from whosin.auditing.models.references import ReferenceModels, audit_with_references
from whosin.auditing.models.white_box import layer_output
from whosin.training.adapters import Adapter, SklearnAdapter
from whosin.training.dpsgd import DPSGDAdapter, PrivateTraining, train_dpsgd
from whosin.training.torch_adapter import TorchAdapter
from whosin.training.torch_model import TorchModel

__all__ = [
    "Adapter",
    "DPSGDAdapter",
    "PrivateTraining",
    "ReferenceModels",
    "SklearnAdapter",
    "TorchAdapter",
    "TorchModel",
    "audit_classifier",
    "audit_with_references",
    "feature_noise",
    "image_shifts",
    "layer_output",
    "lira",
    "lira_offline",
    "rmia",
    "train_dpsgd",
]
