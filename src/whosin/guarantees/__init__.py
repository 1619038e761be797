"""Guarantees: promises about any attacker, as frozen dataclasses, one file a family."""

from whosin.guarantees.base import Guarantee
from whosin.guarantees.dp import ApproxDP, GaussianDP, PureDP
from whosin.guarantees.identifiability import DifferentialIdentifiability
from whosin.guarantees.membership import MembershipPrivacy
from whosin.guarantees.mip import MIP
from whosin.guarantees.practical import PMP
from whosin.guarantees.profile import PrivacyProfile, TradeOff
from whosin.guarantees.renyi import RenyiDP, ZeroConcentratedDP
from whosin.guarantees.sgd import DPSGD

__all__ = [
    "DPSGD",
    "MIP",
    "PMP",
    "ApproxDP",
    "DifferentialIdentifiability",
    "GaussianDP",
    "Guarantee",
    "MembershipPrivacy",
    "PrivacyProfile",
    "PureDP",
    "RenyiDP",
    "TradeOff",
    "ZeroConcentratedDP",
]
