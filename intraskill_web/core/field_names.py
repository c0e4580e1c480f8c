"""What the administration calls the columns of our tables, once for all models.

A field whose model gives it no name of its own gets the one that stands here, in the reader's
language. This happens when Django starts, so that names are no matter of migrations.
"""

from __future__ import annotations

from django.apps import apps
from django.utils.translation import gettext_lazy as _

from intraskill_web.core.labels import Words

FIELDS: Words = {
    "at": _("time"),
    "actor": _("actor"),
    "action": _("action"),
    "experiment": _("experiment"),
    "subject": _("subject"),
    "detail": _("details"),
    "round": _("round"),
    "number": _("number"),
    "state": _("state"),
    "kind": _("kind"),
    "position": _("position"),
    "done": _("done"),
    "total": _("total"),
    "unit": _("unit"),
    "message": _("message"),
    "outcome": _("outcome"),
    "stage": _("stage"),
    "host": _("host"),
    "pid": _("process"),
    "signal": _("signal"),
    "exit_code": _("exit code"),
    "started_at": _("started"),
    "ended_at": _("ended"),
    "heartbeat_at": _("last heartbeat"),
    "created_at": _("created"),
    "updated_at": _("changed"),
    "stop_reason": _("reason to stop"),
    "error": _("error"),
    "log_path": _("log"),
    "environment": _("environment"),
    "config": _("configuration"),
    "config_sha256": _("hash of the configuration"),
    "engine": _("engine"),
    "name": _("name"),
    "seed": _("seed"),
    "rounds_planned": _("rounds planned"),
    "owner": _("owner"),
    "path": _("path"),
    "sha256": "SHA-256",
    "size": _("size"),
    "step": _("step"),
    "split": _("split"),
    "arm": _("arm"),
    "n": "n",
    "success": _("success"),
    "reward": _("reward"),
    "profile": _("profile"),
    "status": _("status"),
    "observations": _("pairs used"),
    "requested": _("pairs planned"),
    "delta_mean": _("difference"),
    "bare_mean": _("bare mean"),
    "masked_mean": _("masked mean"),
    "gate": _("gate"),
    "intervention_id": _("intervention"),
    "logical_chunk_id": _("chunk"),
    "operation": _("operation"),
    "title": _("title"),
    "coefficient": _("coefficient"),
    "se": _("standard error"),
    "low": _("from"),
    "high": _("to"),
    "rank": _("rank"),
    "with_n": _("tasks with"),
    "without_n": _("tasks without"),
    "order": _("order"),
    "summary": _("summary"),
    "candidate_id": _("candidate"),
    "target_chunk_id": _("target"),
    "content": _("text"),
    "effect": _("effect"),
    "source_card_ids": _("source cards"),
    "skill_id": _("chunk"),
    "content_sha256": _("hash of the text"),
    "version": _("version"),
    "label": _("label"),
    "bank_sha256": _("hash of the bank"),
    "from_round": _("selected in round"),
    "revision": _("text revision"),
    "rho": _("rho"),
    "state_id": _("curriculum"),
    "q": "q",
    "rho_min": _("smallest rho"),
    "rho_max": _("largest rho"),
    "episode_id": _("episode"),
    "purpose": _("purpose"),
    "task_id": _("task"),
    "lines": _("lines"),
    "bad_lines": _("unreadable lines"),
    "value": _("value"),
    "update": _("update"),
    "author": _("author"),
    "base": _("made from"),
    "chunks": _("chunks"),
    "pool_sha256": _("hash of the pool"),
    "assignment_sha256": _("hash of the assignments"),
    "attempt": _("attempt"),
}


def name_fields() -> None:
    """Give the fields of all our models their names."""
    for model in apps.get_models():
        if model.__module__.startswith("intraskill_web."):
            for field in model._meta.fields:
                if field.name in FIELDS and getattr(field, "_verbose_name", None) is None:
                    field.verbose_name = FIELDS[field.name]  # type: ignore[assignment]
