"""Static files under hashed names, so that browsers may keep them for ever."""

from __future__ import annotations

from whitenoise.storage import CompressedManifestStaticFilesStorage


class HashedStaticFiles(CompressedManifestStaticFilesStorage):  # type: ignore[misc]
    """Hashed names once ``collectstatic`` has run; plain names before, as in tests."""

    manifest_strict = False

    def stored_name(self, name: str) -> str:
        """The published name of ``name``."""
        if not self.hashed_files:
            return name
        return str(super().stored_name(name))
