"""What an experiment shows, as one document: every number with its n, its denominator, its file.

``read_run(folder)`` reads a run folder of ours or a published folder and returns an ``Analysis``
(``schema``). ``own`` and ``published`` know the two layouts; everything that is computed stands in
modules that know neither: ``contrasts`` paired differences between arms, ``gates`` coefficients and
their refits, ``optimiser`` the updates of a step apart, ``behaviour`` what an episode did,
``cohorts`` what many did, ``cases`` single tasks chosen by rule. Specification: gate-analysis.md
§§13-14.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trainer.analysis.material import Material
    from trainer.analysis.read import read_material, read_run
    from trainer.analysis.schema import SCHEMA, Analysis

__all__ = ["SCHEMA", "Analysis", "Material", "read_material", "read_run"]
_HOMES = {
    "Material": "material",
    "read_material": "read",
    "read_run": "read",
    "SCHEMA": "schema",
    "Analysis": "schema",
}


def __getattr__(name: str) -> Any:
    """Load on first use: who reads one episode (``behaviour``) does not wait for SciPy."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
