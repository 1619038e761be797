"""Settings for every test: how hard hypothesis searches, and a plotting backend without a screen."""

import os

import matplotlib
from hypothesis import settings

matplotlib.use("Agg")

# HYPOTHESIS_PROFILE=thorough searches twenty times as long; in CI the same examples are drawn every time.
settings.register_profile("quick", deadline=None, max_examples=50)
settings.register_profile("steady", deadline=None, max_examples=50, derandomize=True)
settings.register_profile("thorough", deadline=None, max_examples=1000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE") or ("steady" if os.environ.get("CI") else "quick"))
