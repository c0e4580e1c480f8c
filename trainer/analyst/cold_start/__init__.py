"""The first skill from nothing: what successes and failures of a bare policy have to teach.

Traces become evidence cards (two channels), cards become clusters (batch by batch), clusters become
at most sixteen draft chunks, and a first gate decides which of them are used. Specification:
gate-analysis.md §§10, 12.1.
"""
