"""Static files are published when they changed, and only then."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from intraskill_web.core.published_files import publish_static_files


def published(root: Path, name: str) -> str:
    hashed = json.loads((root / "staticfiles.json").read_text())["paths"][name]
    return str((root / hashed).read_text())


def stopped(*_arguments: object) -> None:
    raise KeyboardInterrupt


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
    before = (source / "page.css").stat()
    (source / "page.css").write_text("b { color: tan }")
    with pytest.MonkeyPatch.context() as patch:  # stopped before the end
        patch.setattr("intraskill_web.core.published_files.write_text", stopped)
        with pytest.raises(KeyboardInterrupt):
            publish_static_files()
    (source / "page.css").write_text("b { color: blue }")  # as a change of checkouts does
    os.utime(source / "page.css", ns=(before.st_atime_ns, before.st_mtime_ns))
    assert publish_static_files()
    assert published(root, "page.css") == "b { color: blue }"
    (root / "staticfiles.json").unlink()
    assert publish_static_files() and not publish_static_files()
