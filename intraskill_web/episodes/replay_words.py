"""What a replay changed, in words: which chunks, which checkpoint."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from intraskill_web.episodes.models import Episode, Replay
from intraskill_web.episodes.reading import chunk_titles
from intraskill_web.skills.models import Curriculum

START = "start/checkpoint"
TRAINED = re.compile(r"round-(\d{3,})/train/checkpoint")


def bank_of(episode: Episode) -> dict[str, str]:
    """Title by id of every chunk of the round's bank, in its order. Two queries."""
    curriculum = Curriculum.objects.filter(round=episode.round_id).first()
    return chunk_titles(curriculum.version_id) if curriculum else {}


@dataclass(frozen=True, slots=True)
class Change:
    """A chunk that was added (+) or left out (−)."""

    sign: str
    skill_id: str
    title: str


@dataclass(frozen=True, slots=True)
class Changes:
    """What a replay changed of the treatment: a word where one says it, else chunk by chunk."""

    word: str
    chunks: list[Change]

    def __str__(self) -> str:
        return self.word or ", ".join(f"{c.sign} {c.title}" for c in self.chunks)


def changes(episode: Episode, row: Replay, bank: Mapping[str, str]) -> Changes:
    """The treatment of ``row`` beside that of the original."""
    before, now = set(episode.skill_ids), set(row.skill_ids)
    if before == now:
        return Changes(_("the same chunks"), [])
    if not now:
        return Changes(_("no chunk"), [])
    if len(now) > 1 and now == set(bank):
        text = ngettext("all %(n)s chunk", "all %(n)s chunks", len(now)) % {"n": len(now)}
        return Changes(text, [])
    order = [*bank, *sorted((before | now) - set(bank))]
    added = [Change("+", i, bank.get(i, i)) for i in order if i in now - before]
    dropped = [Change("−", i, bank.get(i, i)) for i in order if i in before - now]
    return Changes("", added + dropped)


def checkpoint_word(checkpoint: str) -> str:
    """A checkpoint of the run, or a served model, in words."""
    if checkpoint.startswith(Replay.SERVED):
        return _("served model %(name)s") % {"name": checkpoint.removeprefix(Replay.SERVED)}
    if checkpoint == START:
        return _("start, before training")
    found = TRAINED.fullmatch(checkpoint)
    return _("round %(n)d, after training") % {"n": int(found[1])} if found else checkpoint


def own_checkpoint(episode: Episode) -> str:
    """Where the weights lie that played the episode; in training, those that its round made."""
    if episode.purpose == "baseline" or episode.round is None:
        return START
    return f"round-{episode.round.number:03d}/train/checkpoint"


def original_word(episode: Episode) -> str:
    """Which weights played the original, in words."""
    if episode.round is not None and episode.step is not None:
        return _("round %(n)d, step %(step)d") % {"n": episode.round.number, "step": episode.step}
    return checkpoint_word(own_checkpoint(episode))
