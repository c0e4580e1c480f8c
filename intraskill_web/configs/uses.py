"""Which revisions an experiment began with.

An experiment that was started from a file or a command is recorded too: each part of its frozen
configuration is the newest revision with the same values, which is added where there is none.
"""

from __future__ import annotations

from collections.abc import Mapping

from django.db import transaction
from django.db.models import Max

from intraskill_web.configs.kinds import PARTS, check, write_text
from intraskill_web.configs.models import AS_BEGUN, ConfigRevision, ConfigUse
from intraskill_web.experiments.models import Experiment
from trainer.canonical import fingerprint


def record_uses(
    experiment: Experiment, chosen: Mapping[str, ConfigRevision] | None = None
) -> list[ConfigUse]:
    """Note the revisions of a new experiment: ``chosen`` by kind, the other parts by content."""
    made = []
    with transaction.atomic():
        for kind in ("launch", *PARTS):
            revision = (chosen or {}).get(kind) or _same(experiment, kind)
            if revision is not None:
                use, _new = ConfigUse.objects.get_or_create(
                    revision=revision, experiment=experiment
                )
                made.append(use)
    return made


def next_number(kind: str) -> int:
    """The number that the next revision of a kind gets."""
    last = ConfigRevision.objects.filter(kind=kind).aggregate(last=Max("number"))["last"]
    return int(last or 0) + 1


def _same(experiment: Experiment, kind: str) -> ConfigRevision | None:
    """By content; a launch has no counterpart in a frozen configuration."""
    part = experiment.config.get(kind)
    if kind == "launch" or not isinstance(part, dict):
        return None
    document, problems = check(kind, part)
    if problems:  # of a release whose settings were others
        return None
    digest = fingerprint(document)
    rows = ConfigRevision.objects.filter(kind=kind)
    return rows.filter(sha256=digest).order_by("-number").first() or ConfigRevision.objects.create(
        kind=kind,
        number=next_number(kind),
        document=document,
        text=write_text(document),
        sha256=digest,
        reason=AS_BEGUN.format(experiment.name),
        author_id=experiment.owner_id,
    )
