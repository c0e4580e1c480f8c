"""Reproduce: versions, hashes, commands, downloads and how this export proves itself."""

from __future__ import annotations

from django.utils.translation import gettext as _

from intraskill_web.core import formats
from intraskill_web.core.tables import Column, Table
from intraskill_web.reports.site.blocks import (
    Block,
    Chapter,
    Code,
    Links,
    Section,
    TableCard,
    Text,
)
from intraskill_web.reports.site.inputs import Inputs


def reproduce(inputs: Inputs) -> Chapter:
    """The last chapter before the library."""
    found = inputs.analysis
    return Chapter(
        key="reproduce",
        title=_("Reproduce"),
        lead=_("Where every number comes from, and how to check it."),
        sections=[
            Section("check", _("Check this export"), _check(inputs)),
            Section("run", _("Run it again"), _again(inputs)),
            Section("downloads", _("Downloads"), _downloads(inputs)),
            Section("versions", _("Versions"), [_versions(inputs)] if inputs.versions else []),
            Section("sources", _("Files this was computed from"),
                    [_sources(inputs)] if found.sources else []),
        ],
    )  # fmt: skip


def _check(inputs: Inputs) -> list[Block]:
    text = _(
        "build-manifest.json lists the SHA-256 of every file. The check opens the export again, "
        "compares hashes, follows every link and anchor, looks at both languages, and computes the "
        "differences and gates again from the numbers in data."
    )
    return [Text([text]), Code(_("Check"), "python manage.py check_report DIR --json")]


def _again(inputs: Inputs) -> list[Block]:
    name = inputs.experiment.name
    if inputs.analysis.kind == "published":
        lines = [
            f"python manage.py import_run FOLDER --name {name} --json",
            f"python manage.py export_report {name} --out DIR --json",
        ]
    else:
        lines = [
            f"python manage.py verify {name} --json",
            f"python manage.py export_report {name} --out DIR --json",
        ]
    text = _(
        "The same seed and settings give the same tasks, masks and sampling noise. The same input "
        "gives this export byte for byte."
    )
    return [Text([text]), Code(_("Commands"), "\n".join(lines))]


def _downloads(inputs: Inputs) -> list[Block]:
    items = [(name, name.removeprefix("data/"), formats.size(size))
             for name, size in inputs.downloads]  # fmt: skip
    return [Links(_("Data"), items)] if items else []


def _versions(inputs: Inputs) -> TableCard:
    columns = [Column("name", _("Name"), "mono"), Column("value", _("Value"), "mono")]
    rows = [{"name": name, "value": value} for name, value in inputs.versions.items()]
    return TableCard(_("What made this export"), Table("versions", columns, rows))


def _sources(inputs: Inputs) -> TableCard:
    columns = [Column("file", _("File"), "mono"), Column("sha256", "SHA-256", "mono")]
    rows = [{"file": name, "sha256": value} for name, value in inputs.analysis.sources.items()]
    note = _("Hashes of texts are taken with LF line ends.")
    return TableCard(_("Sources"), Table("sources", columns, rows), note=note)
