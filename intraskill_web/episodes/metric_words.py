"""What each behaviour metric counts in one episode, in words (gate-analysis.md §14.1)."""

from __future__ import annotations

from django.utils.translation import gettext_lazy as _

from intraskill_web.core.labels import Words

METRIC_WORDS: Words = {
    "model_steps": _("turns of the policy"),
    "actions": _("turns with an action"),
    "valid_actions": _("actions that the shop accepted"),
    "tokens_per_turn": _("sampled tokens a turn"),
    "generated_tokens": _("sampled tokens"),
    "first_turn_tokens": _("sampled tokens of the first turn"),
    "searches": _("accepted searches"),
    "unique_queries": _("different queries"),
    "query_chars": _("characters of all queries"),
    "product_opens": _("products opened from a result list"),
    "unique_products": _("different products opened"),
    "product_revisits": _("products opened again"),
    "first_product_rank": _("rank of the first product opened"),
    "exposed_products": _("products ever listed"),
    "backtracks": _("steps back to the search or the list"),
    "pagination": _("result pages turned"),
    "option_selections": _("options selected"),
    "option_changes": _("options changed after a choice"),
    "invalid_actions": _("actions that the shop refused"),
    "protocol_errors": _("turns that were no call"),
    "reasoning_chars_per_turn": _("characters of reasoning a turn"),
}
