"""Which layout a folder has, and the document it gives."""

from __future__ import annotations

from pathlib import Path

from trainer.analysis.material import Material
from trainer.analysis.reader import Reader
from trainer.analysis.schema import Analysis
from trainer.errors import InputError


def read_run(folder: Path, name: str | None = None) -> Analysis:
    """The document alone; see ``read_material``."""
    return read_material(folder, name).analysis


def read_material(folder: Path, name: str | None = None) -> Material:
    """The analysis of a run folder of ours or of a published folder, with the rows behind it.

    Raises InputError for a folder of neither layout and for damaged files.
    """
    reader = Reader(folder)
    label = name or folder.name
    if (folder / "experiment.json").is_file():
        from trainer.analysis.own import analyse

        return analyse(reader, label)
    if (folder / "artifacts").is_dir():
        from trainer.analysis.published import analyse as analyse_published

        return analyse_published(reader, label)
    raise InputError(
        "is neither a run folder nor a published run",
        file=folder,
        remedy="expected experiment.json or artifacts/",
    )
