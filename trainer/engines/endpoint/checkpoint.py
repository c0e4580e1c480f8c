"""Which weights stand behind a server: the export they were loaded from, by hash.

A name is only a label. An export that the slime engine wrote carries the hash of its weights in
``export.json``; where there is none, the settings must name the checkpoint.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from trainer.engines.endpoint.settings import EndpointSettings
from trainer.errors import InputError
from trainer.files import read_json

EXPORT = "export.json"


def checkpoint_identity(folder: Path, settings: EndpointSettings) -> Mapping[str, Any]:
    """``checkpoint_id`` and, where known, the hash of the weights. Raises InputError."""
    marker = folder / EXPORT
    if marker.is_file():
        weights = read_json(marker)["weights_sha256"]
        return {
            "checkpoint_id": settings.checkpoint_id or f"export-{weights[:12]}",
            "weights_sha256": weights,
        }
    if settings.checkpoint_id is None:
        raise InputError(
            "neither an export nor a name says which weights are served",
            file=marker,
            field="policy.endpoint.checkpoint_id",
            remedy="point policy.checkpoint at the export that is served, or name the checkpoint",
        )
    return {"checkpoint_id": settings.checkpoint_id}
