"""The README as a package index shows it: without pictures, whose files it does not have (a hook of hatchling)."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface


class IndexReadme(MetadataHookInterface):
    """Put the README into the metadata of wheel and sdist."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Add the ``readme``."""
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        shown = re.sub(r"^!\[.*\]\(docs/.*\)\n\n", "", text, flags=re.MULTILINE)
        metadata["readme"] = {"content-type": "text/markdown", "text": shown}
