"""The published profile, exact to its hashes: pair, fit, keep what is positive.

``judge``   from observations to verdicts and documents
``run``     the stage: ``python -m trainer gate run`` with ``profile: published``

Slots, masks, pairing, the fit and the selection rule are the package's own modules, because other
gates use them too. Specification: gate-analysis.md §§1-8.
"""
