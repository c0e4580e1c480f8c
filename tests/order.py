"""In which order files of tests begin: with several workers, the longest must not begin last.

Files stay whole, because their fixtures are made once a file, and tests keep their order in them.
"""

from __future__ import annotations

import pytest

LONGEST = ("chaos", "e2e", "slow")  # markers; those of "slow" wait for what chaos makes


def longest_first(items: list[pytest.Item]) -> None:
    """Sort by file: by the longest marker in it, then by how many tests it has."""
    ranks: dict[str, int] = {}
    sizes: dict[str, int] = {}
    for item in items:
        file = _file(item)
        ranks[file] = min(ranks.get(file, len(LONGEST)), _rank(item))
        sizes[file] = sizes.get(file, 0) + 1
    items.sort(key=lambda item: (ranks[_file(item)], -sizes[_file(item)], _file(item)))


def _file(item: pytest.Item) -> str:
    return item.nodeid.partition("::")[0]


def _rank(item: pytest.Item) -> int:
    marked = (n for n, name in enumerate(LONGEST) if item.get_closest_marker(name))
    return next(marked, len(LONGEST))
