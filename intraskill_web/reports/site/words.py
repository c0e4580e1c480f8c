"""The words of a report: metrics, conditions, contrasts, outcomes, phases, cases, funnel."""

from __future__ import annotations

from django.utils.translation import gettext_lazy as _

from intraskill_web.core.labels import TRIAGE, TRIGGERS, Words

METRICS: Words = {
    "reward": _("Strict reward"),
    "reward_sem": _("SEM of the reward"),
    "success": _("Success"),
    "r_success": _("Success"),
    "r_strict": _("Strict reward"),
    "r_loose": _("Loose reward"),
    "r_type": _("Product type"),
    "r_att": _("Attributes"),
    "r_option": _("Options"),
    "r_price": _("Price"),
    "coverage": _("Coverage"),
    "steps": _("Steps"),
    "steps_mean": _("Steps an episode"),
    "model_steps": _("Model steps"),
    "protocol_errors": _("Protocol errors"),
    "protocol_error_rate": _("Protocol error rate"),
    "policy_failures": _("Truncated turns"),
    "policy_failure_rate": _("Truncated turn rate"),
    "invalid_actions": _("Invalid actions"),
    "invalid_action_rate": _("Invalid action rate"),
    "total_actions": _("Executed actions"),
    "prompt_tokens": _("Prompt tokens"),
    "completion_tokens": _("Generated tokens"),
    "total_tokens": _("All tokens"),
    "reasoning_tokens": _("Reasoning tokens"),
    "tokens_per_step": _("Generated tokens a step"),
    "duration_ms": _("Duration (ms)"),
    "actions": _("Actions"),
    "valid_actions": _("Valid actions"),
    "tokens_per_turn": _("Tokens a turn"),
    "generated_tokens": _("Tokens an episode"),
    "first_turn_tokens": _("Tokens of the first turn"),
    "searches": _("Searches"),
    "unique_queries": _("Distinct queries"),
    "query_chars": _("Characters of queries"),
    "product_opens": _("Products opened"),
    "unique_products": _("Distinct products"),
    "product_revisits": _("Products opened again"),
    "first_product_rank": _("Rank of the first product opened"),
    "exposed_products": _("Products listed"),
    "backtracks": _("Steps back"),
    "pagination": _("Pages turned"),
    "option_selections": _("Options selected"),
    "option_changes": _("Options changed"),
    "reasoning_chars_per_turn": _("Reasoning characters a turn"),
    "train/loss": _("Loss"),
    "train/pg_loss": _("Policy loss"),
    "train/grad_norm": _("Gradient norm"),
    "train/ppo_kl": _("Sampled KL"),
    "train/entropy_loss": _("Entropy"),
    "train/pg_clipfrac": _("Clip fraction"),
    "train/train_rollout_logprob_abs_diff": _("Log-probability gap, training to rollout"),
    "rollout/shopsim/reward_mean": _("Reward of training episodes"),
    "rollout/shopsim/success_rate": _("Success of training episodes"),
    "rollout/shopsim/skill_free_group_rate": _("Share of skill-free groups"),
    "rollout/shopsim/all_wrong_group_rate": _("Share of groups that failed throughout"),
    "rollout/shopsim/zero_std_group_drop_rate": _("Groups dropped for equal rewards"),
    "rollout/shopsim/scored_rate": _("Share of scored episodes"),
}
CONDITIONS: Words = {
    "base_free": _("Start, bare"),
    "base_s0": _("Start + S0"),
    "final_free": _("Final, bare"),
    "final_st": _("Final + skill"),
}
CONTRASTS: Words = {
    "training_free": _("Training alone: final bare − start bare"),
    "initial_skill": _("Text at the start: start + S0 − start bare"),
    "final_skill": _("Text at the end: final + skill − final bare"),
    "final_pair_vs_base": _("Both: final + skill − start bare"),
    "training_with_skill": _("Training, with text on both sides: final + skill − start + S0"),
}
TRANSITIONS: Words = {
    "failure_to_success": _("Fail → success"),
    "success_to_failure": _("Success → fail"),
    "both_success": _("Both succeed"),
    "both_failure": _("Both fail"),
}
OUTCOMES: Words = {
    "all": _("all scored"),
    "success": _("success"),
    "failure": _("failure"),
    "technical": _("technical"),
}
CASES: Words = {
    "largest_step_reduction_both_success": _("Largest reduction of steps, both successful"),
    "failure_to_success_largest_token_reduction": _(
        "Failure to success with the largest reduction of tokens"
    ),
    "success_to_failure_longest_final": _("Success to failure with the longest final path"),
}
ACTIONS: Words = {
    "search": _("search"),
    "open_product": _("open product"),
    "purchase": _("buy"),
    "backtrack": _("back"),
    "paginate": _("turn page"),
    "select_option": _("select option"),
    "invalid_action": _("invalid"),
    "repair": _("repair"),
    "no_action": _("no action"),
    "other": _("other"),
}
FUNNEL: Words = {
    "generated_groups": _("Groups generated"),
    "generated_episodes": _("Episodes generated"),
    "trainer_episodes": _("Episodes trained on"),
    "all_wrong_groups": _("Groups that failed throughout"),
    "analysed_cards": _("Failures analysed"),
    **{f"triggered_{key}": word for key, word in TRIGGERS.items()},
    "eligible_cards": _("Eligible cards"),
    "evidence_only_cards": _("Evidence only"),
    "candidates": _("Candidates"),
    "candidates_add": _("Additions"),
    "candidates_rewrite": _("Rewrites"),
    "ledger_rows": _("Ledger rows"),
    **TRIAGE,
}
PARTS: Words = {
    "all": _("all updates"),
    "1": _("first of a step"),
    "2": _("second of a step"),
}
