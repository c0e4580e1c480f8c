"""``manage.py round_status NAME``: where a round stands."""

from __future__ import annotations

from intraskill_web.experiments.round_command import RoundCommand


class Command(RoundCommand):
    help = __doc__ or ""
