"""Versions that people make against a gate: which texts there are to choose from, and the bank.

The gate stays the only authority on what its experiment trains with: an override is a bank of its
own beside the run, marked as such, that a new experiment can start from.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.db import IntegrityError, transaction
from django.db.models import Max
from django.utils.translation import gettext as _

from intraskill_web.core import audit
from intraskill_web.ledger.models import Candidate
from intraskill_web.review.models import Override
from intraskill_web.skills.models import ChunkRevision, SkillVersion
from trainer.canonical import fingerprint
from trainer.errors import InputError
from trainer.files import write_json
from trainer.skills.bank import bank_document, load_bank, parse_bank
from trainer.skills.curriculum_build import HELD
from trainer.skills.types import Chunk

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractBaseUser

MOST = 200  # texts to choose from
VERSION = "override"


@dataclass(frozen=True, slots=True)
class Choice:
    """One text that an override may hold. ``key`` names it in the form."""

    key: str
    skill_id: str
    title: str
    content: str
    kept: bool  # in the version the override starts from
    effect: float | None = None  # as a gate measured it

    @property
    def content_sha256(self) -> str:
        """Identity of the text."""
        return fingerprint(self.content)


def choices(base: SkillVersion) -> list[Choice]:
    """The version's own texts in order, then others of the experiment: former texts, candidates."""
    entries = base.entries.select_related("revision").order_by("order")
    made = [
        Choice(f"r{e.revision.pk}", *_text(e.revision), kept=True, effect=e.effect) for e in entries
    ]
    seen = {(c.skill_id, c.content) for c in made}
    former = ChunkRevision.objects.filter(experiment=base.experiment).exclude(content="")
    proposed = Candidate.objects.filter(experiment=base.experiment).exclude(content="")
    others = [
        *(Choice(f"r{r.pk}", *_text(r), kept=False) for r in former[:MOST]),
        *(
            Choice(
                f"c{c.pk}", c.target_chunk_id or c.candidate_id, c.title, c.content, False, c.effect
            )
            for c in proposed.order_by("-round__number", "rank")[:MOST]
        ),
    ]
    for choice in others:
        if (choice.skill_id, choice.content) not in seen:
            seen.add((choice.skill_id, choice.content))
            made.append(choice)
    return made


def make_override(
    base: SkillVersion, keys: Sequence[str], reason: str, *, actor: AbstractBaseUser | None = None
) -> Override:
    """A new override of ``base`` with the chosen texts, in the order they are listed in.

    Raises InputError without a reason or a difference, when two texts are of one chunk, or when a
    text is not here.
    """
    if not reason.strip():
        raise InputError(_("a reason is needed"), field="reason")
    known = choices(base)
    chosen = [c for c in known if c.key in set(keys)]
    _refuse(known, chosen)
    own = _chunks_of(base)
    chunks = [own.get(c.content_sha256) or _chunk(c) for c in chosen]
    folder = base.experiment.folder
    try:
        with transaction.atomic():
            last = base.overrides.aggregate(last=Max("number"))["last"]
            number = int(last or 0) + 1
            marked = {"override_of": base.bank_sha256, "reason": reason.strip()}
            document = bank_document(chunks, bank_version=VERSION, metadata=marked)
            bank = parse_bank(document)
            path = f"overrides/{base.label}-o{number}/skillbank.json"
            made = Override.objects.create(
                experiment=base.experiment,
                base=base,
                number=number,
                chunks=[
                    {
                        "skill_id": c.skill_id,
                        "title": c.title,
                        "content": c.content,
                        "content_sha256": c.content_sha256,
                    }
                    for c in chosen
                ],
                bank_sha256=bank.bank_sha256,
                path=path,
                reason=reason.strip(),
                author_id=actor.pk if actor else None,
            )
            audit.record(
                "skill.override",
                actor=actor,
                experiment=base.experiment.name,
                subject=made.label,
                bank_sha256=bank.bank_sha256,
                reason=reason.strip()[:500],
            )
            write_json(folder / path, document)
    except IntegrityError as error:
        raise InputError(_("another override was made a moment ago"), field="number") from error
    return made


def _chunks_of(base: SkillVersion) -> dict[str, Chunk]:
    """The version's chunks as its bank holds them, by text; none where the bank is not here."""
    path = base.experiment.folder / base.path
    if not base.path or not path.is_file():
        return {}
    return {chunk.content_sha256: chunk for chunk in load_bank(path).chunks}


def _text(revision: ChunkRevision) -> tuple[str, str, str]:
    return revision.skill_id, revision.title, revision.content


def _chunk(choice: Choice) -> Chunk:
    """A text that no bank holds; without a positive effect it trains like one that is held."""
    effect = choice.effect or 0.0
    metadata = {"title": choice.title, "estimated_effect": effect}
    if effect <= 0:
        metadata["validation_result"] = HELD
    return Chunk(choice.skill_id, choice.content, VERSION, metadata)


def _refuse(known: Sequence[Choice], chosen: Sequence[Choice]) -> None:
    if any(not c.content for c in chosen):
        raise InputError(_("a chosen text is not in the imported folder"), field="chunks")
    ids = [c.skill_id for c in chosen]
    double = next((i for i in ids if ids.count(i) > 1), None)
    if double:
        raise InputError(
            _("two texts of one chunk are chosen: %(id)s") % {"id": double}, field="chunks"
        )
    if [c.key for c in known if c.kept] == [c.key for c in chosen]:
        raise InputError(_("nothing differs from the version itself"), field="chunks")
