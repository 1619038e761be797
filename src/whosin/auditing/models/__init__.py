"""Auditing classifiers: what their predictions tell about who was in the training data."""

from whosin.auditing.models.adapters import Adapter, SklearnAdapter
from whosin.auditing.models.attacks import lira, lira_kde, lira_offline, lira_rank, rmia
from whosin.auditing.models.augmentations import feature_noise, image_shifts
from whosin.auditing.models.canaries import audit_training, mislabelled
from whosin.auditing.models.classifier import audit_classifier
from whosin.auditing.models.dpsgd import DPSGDAdapter, PrivateTraining, train_dpsgd
from whosin.auditing.models.references import ReferenceModels, audit_with_references
from whosin.auditing.models.torch_adapter import TorchAdapter
from whosin.auditing.models.torch_model import TorchModel
from whosin.auditing.models.white_box import layer_output

__all__ = [
    "Adapter",
    "DPSGDAdapter",
    "PrivateTraining",
    "ReferenceModels",
    "SklearnAdapter",
    "TorchAdapter",
    "TorchModel",
    "audit_classifier",
    "audit_training",
    "audit_with_references",
    "feature_noise",
    "image_shifts",
    "layer_output",
    "lira",
    "lira_kde",
    "lira_offline",
    "lira_rank",
    "mislabelled",
    "rmia",
    "train_dpsgd",
]
