"""Static files are published when they changed, and only then."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from intraskill_web.core.published_files import STAMP, publish_static_files


def published(root: Path, name: str) -> str:
    hashed = json.loads((root / "staticfiles.json").read_text())["paths"][name]
    return str((root / hashed).read_text())


def test_static_files_are_published_again_only_after_a_change(
    tmp_path: Path, settings: Any
) -> None:
    source, root = tmp_path / "source", tmp_path / "root"
    source.mkdir()
    (source / "page.css").write_text("b { color: red }")
    settings.STATIC_ROOT, settings.STATICFILES_DIRS = root, [source]
    settings.STATICFILES_FINDERS = ["django.contrib.staticfiles.finders.FileSystemFinder"]
    assert publish_static_files()
    assert published(root, "page.css") == "b { color: red }"
    assert not publish_static_files()
    (source / "page.css").write_text("b { color: blue }")
    assert publish_static_files()
    assert published(root, "page.css") == "b { color: blue }"
    (root / STAMP).unlink()  # as after a stop before the end
    assert publish_static_files()
    (root / "staticfiles.json").unlink()
    assert publish_static_files() and not publish_static_files()
