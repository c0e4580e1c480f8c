"""What people may do with configurations: add a revision, start an experiment from a launch."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.db import IntegrityError, transaction
from django.utils.translation import gettext as _

from intraskill_web.configs.kinds import PARTS, Problem, check
from intraskill_web.configs.models import ConfigRevision
from intraskill_web.configs.uses import next_number
from intraskill_web.core import audit
from intraskill_web.experiments.making import create_experiment
from intraskill_web.experiments.models import Experiment
from trainer.canonical import fingerprint
from trainer.config_files import parse_config
from trainer.errors import InputError
from trainer.experiment_config import ExperimentConfig

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractBaseUser

ANY_NAME = "experiment"


def problems_of(kind: str, document: Mapping[str, Any]) -> tuple[dict[str, Any], list[Problem]]:
    """The checked document, or all problems; a launch is also checked as the whole it becomes."""
    checked, problems = check(kind, document)
    if kind != "launch" or problems:
        return checked, problems
    problems = [
        Problem(part, _("there is no revision %(n)d") % {"n": checked[part]})
        for part in PARTS
        if not ConfigRevision.objects.filter(kind=part, number=checked[part]).exists()
    ]
    if problems:
        return {}, problems
    try:
        config = compose(checked, ANY_NAME)
    except InputError as error:
        return {}, [Problem(str(error.field or ""), error.reason)]
    problems = [
        Problem(f"start.{key}", _("there is no file %(path)s") % {"path": path})
        for key, path in config.start
        if not Path(path).exists()
    ]
    return ({}, problems) if problems else (checked, [])


def add_revision(
    kind: str,
    document: Mapping[str, Any],
    text: str,
    *,
    reason: str,
    based_on: ConfigRevision | None = None,
    actor: AbstractBaseUser | None = None,
) -> ConfigRevision:
    """The next revision of a kind. Raises InputError for a bad document, or without a change."""
    checked, problems = problems_of(kind, document)
    if problems:
        raise InputError(problems[0].message, field=problems[0].path or kind)
    if not reason.strip():
        raise InputError(_("a reason is needed"), field="reason")
    digest = fingerprint(checked)
    if based_on is not None and based_on.sha256 == digest:
        raise InputError(
            _("nothing differs from %(revision)s") % {"revision": based_on}, field="values"
        )
    try:
        with transaction.atomic():
            revision = ConfigRevision.objects.create(
                kind=kind,
                number=next_number(kind),
                document=checked,
                text=text,
                sha256=digest,
                reason=reason.strip(),
                based_on=based_on,
                author_id=actor.pk if actor else None,
            )
            audit.record(
                "config.revise", actor=actor, subject=f"{kind} r{revision.number}", sha256=digest
            )
    except IntegrityError as error:
        raise InputError(_("another revision was added a moment ago"), field="number") from error
    return revision


def compose(launch: Mapping[str, Any], name: str) -> ExperimentConfig:
    """The configuration of an experiment. Relative paths start at the repository.

    Raises InputError for an unknown revision or when the parts contradict each other.
    """
    parts = {}
    for kind in PARTS:
        revision = ConfigRevision.objects.filter(kind=kind, number=launch[kind]).first()
        if revision is None:
            raise InputError("no such revision", field=kind, value=launch[kind])
        parts[kind] = revision.document
    value = {**launch, **parts, "name": name}
    return parse_config(value, ExperimentConfig, file=Path(settings.BASE_DIR) / "launch")


def launch(
    revision: ConfigRevision, name: str, *, actor: AbstractBaseUser | None = None
) -> Experiment:
    """A new experiment from a launch revision; its rounds are started on its own page."""
    config = compose(revision.document, name)
    chosen = {
        kind: ConfigRevision.objects.get(kind=kind, number=revision.document[kind])
        for kind in PARTS
    }
    return create_experiment(config, actor=actor, revisions={"launch": revision, **chosen})
