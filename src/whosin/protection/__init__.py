"""Protection: releases of an estimate with a membership guarantee."""

from whosin.protection.certificate import Certificate, Release
from whosin.protection.estimators import SumQuery
from whosin.protection.release import protect
from whosin.protection.together import JointCertificate

__all__ = ["Certificate", "JointCertificate", "Release", "SumQuery", "protect"]
