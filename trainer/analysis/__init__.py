"""What an experiment shows, as one document: every number with its n, its denominator, its file.

``read_run(folder)`` reads a run folder of ours or a published folder and returns an ``Analysis``
(``schema``). ``own`` and ``published`` know the two layouts; everything that is computed stands in
modules that know neither: ``contrasts`` paired differences between arms, ``gates`` coefficients and
their refits, ``optimiser`` the updates of a step apart, ``behaviour`` what an episode did,
``cohorts`` what many did, ``cases`` single tasks chosen by rule. Specification: gate-analysis.md
§§13-14.
"""

from trainer.analysis.material import Material
from trainer.analysis.read import read_material, read_run
from trainer.analysis.schema import SCHEMA, Analysis

__all__ = ["SCHEMA", "Analysis", "Material", "read_material", "read_run"]
