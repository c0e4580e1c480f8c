"""From many cards to at most a handful of candidates (gate-analysis.md §12)."""
