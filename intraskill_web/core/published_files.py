"""Publishing static files when they changed, and only then: compressing them costs two seconds."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

from django.conf import settings
from django.contrib.staticfiles.finders import get_finders
from django.core.management import call_command

from trainer.canonical import fingerprint
from trainer.errors import InputError
from trainer.files import write_text

MADE_BY = ("django", "whitenoise", "brotli")  # other versions compress or name files differently
STAMP = ".published"  # beside the manifest; it says of which files the manifest speaks


def publish_static_files() -> bool:
    """Run ``collectstatic`` unless its result is there already; says whether it ran.

    Files are known by path, size and time of change. Safe to interrupt: the stamp goes first and
    comes last. Raises InputError where the folder cannot be written.
    """
    root = Path(settings.STATIC_ROOT)
    stamp, now = root / STAMP, fingerprint([*_versions(), *_sources()])
    if (root / "staticfiles.json").exists() and stamp.exists() and stamp.read_text() == now:
        return False
    try:
        stamp.unlink(missing_ok=True)
        call_command("collectstatic", interactive=False, verbosity=0)
        write_text(stamp, now)
    except OSError as error:
        raise InputError(
            f"the pages' static files cannot be published: {error.strerror}",
            file=error.filename or root,
            remedy=f"Make {root} writable for this user, with room for 20 MiB",
        ) from error
    return True


def _versions() -> list[str]:
    found = []
    for name in MADE_BY:
        try:
            found.append(f"{name} {version(name)}")
        except ModuleNotFoundError:  # not every way to compress is installed everywhere
            continue
    return found


def _sources() -> Iterator[tuple[str, int, int]]:
    for finder in get_finders():
        for path, storage in finder.list(["CVS", ".*", "*~"]):
            place = Path(storage.path(path)).stat()
            yield (
                f"{getattr(storage, 'prefix', None) or ''}/{path}",
                place.st_size,
                place.st_mtime_ns,
            )
