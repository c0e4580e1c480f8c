"""Static files that come with installed packages: plotly.min.js straight from plotly's wheel.

So the browser's library always has the version of the installed Python package, and nothing is
vendored or fetched from elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from django.contrib.staticfiles.finders import BaseFinder
from django.core.files.storage import FileSystemStorage, Storage

NAME = "plotly/plotly.min.js"


def plotly_folder() -> Path | None:
    """The wheel's folder that holds ``plotly.min.js``; None when plotly is not installed."""
    spec = find_spec("plotly")
    if spec is None or spec.origin is None:
        return None
    folder = Path(spec.origin).parent / "package_data"
    return folder if (folder / "plotly.min.js").is_file() else None


class PlotlyFinder(BaseFinder):
    """Finds exactly one file, ``plotly/plotly.min.js``."""

    def check(self, **_kwargs: Any) -> list[Any]:
        """Nothing to configure."""
        return []

    def find(self, path: str, find_all: bool = False, **kwargs: Any) -> Any:
        """The file's place on disk, or nothing."""
        folder = plotly_folder()
        if path != NAME or folder is None:
            return []
        found = str(folder / "plotly.min.js")
        return [found] if find_all or kwargs.get("all") else found

    def list(self, ignore_patterns: Any) -> Iterator[tuple[str, Storage]]:
        """The one file, for ``collectstatic``."""
        folder = plotly_folder()
        if folder is not None:
            storage = FileSystemStorage(location=str(folder))
            storage.prefix = "plotly"  # type: ignore[attr-defined]
            yield "plotly.min.js", storage
