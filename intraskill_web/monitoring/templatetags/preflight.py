"""Words of the preflight in templates."""

from __future__ import annotations

from django import template

from intraskill_web.monitoring.preflight.red import worded_refusal

register = template.Library()
register.filter("worded_refusal", worded_refusal)
