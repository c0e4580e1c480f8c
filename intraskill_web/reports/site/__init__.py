"""The chapters of a report as plain values: sections of blocks, rendered by one template.

A chapter is a function from ``Inputs`` to a ``Chapter``; texts come out in the active language.
Nothing here reads a run folder but through ``trainer.analysis``, and nothing writes.
"""
