"""Evidence cards: one failed trace, what went wrong first, and whether a repair was seen to work.

A card has a privileged part, which may name anything, and a deployable part, which may not. A
proposal that is not grounded, was not seen to succeed, aims at no active chunk or leaks is turned
into ``NO_PROPOSAL``; every reason is kept, the last one under the published key. Schema
``shopsimrl-evidence-card-v3``; specification: gate-analysis.md §11.3.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from trainer.analyst.firewall import Firewall, GoldFacts
from trainer.canonical import fingerprint, utc_now
from trainer.rollout.traces import without_times

SCHEMA = "shopsimrl-evidence-card-v3"
ANALYST_ERROR = "ANALYST_ERROR"
Status = Literal["PROPOSE_ADD", "PROPOSE_REWRITE", "NO_PROPOSAL"]
STATUSES: tuple[Status, ...] = ("PROPOSE_ADD", "PROPOSE_REWRITE", "NO_PROPOSAL")
Stage = Literal["online", "cold_start"]
Row = dict[str, Any]

PRIVILEGED_IDS = ("gold_asin", "chosen_asin")
PRIVILEGED_TEXTS = (
    "failure_surface",
    "earliest_divergence",
    "oracle_comparison",
    "replay_evidence",
    "minimal_repair",
    "repair_validation_result",
)
DEPLOYABLE_TEXTS = (
    "failure_mechanism",
    "applicable_when",
    "observable_trigger",
    "corrective_procedure",
    "verification_step",
    "proposed_content",
)


@dataclass(frozen=True, slots=True)
class Submission:
    """What an analyst handed in, before anybody checked it."""

    status: Status
    privileged: Mapping[str, Any]
    deployable: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Investigation:
    """How an analyst came to its submission. A terminal trial is one that ended in a score."""

    actions: Sequence[str] = ()
    valid_actions: int = 0
    trials: Sequence[Row] = ()
    transcript: Sequence[Row] = ()
    accounting: Mapping[str, Any] = field(default_factory=dict)

    @property
    def successes(self) -> int:
        """Terminal trials that met every wish."""
        return sum(trial["reward_detail"].get("r_success") == 1 for trial in self.trials)


@dataclass(frozen=True, slots=True)
class CardContext:
    """What cards of one analysis share: stage, active chunks, firewall, who analyses."""

    stage: Stage
    active_ids: Sequence[str]
    firewall: Firewall
    provenance: str


def submission_errors(arguments: Mapping[str, Any]) -> list[str]:
    """Every way in which the arguments of ``submit_failure_card`` break the contract."""
    errors = []
    status = arguments.get("status")
    if status not in STATUSES:
        errors.append(f"status must be one of {', '.join(STATUSES)}, not {status!r}")
    privileged = arguments.get("privileged_audit")
    deployable = arguments.get("deployable_abstraction")
    if not isinstance(privileged, Mapping):
        errors.append("privileged_audit must be an object")
    else:
        errors += _blank(privileged, "privileged_audit", PRIVILEGED_TEXTS)
    if not isinstance(deployable, Mapping):
        errors.append("deployable_abstraction must be an object")
    elif status == "NO_PROPOSAL":
        errors += _blank(deployable, "deployable_abstraction", DEPLOYABLE_TEXTS[:1])
    else:
        errors += _blank(deployable, "deployable_abstraction", DEPLOYABLE_TEXTS)
    return errors


def _blank(value: Mapping[str, Any], where: str, names: Sequence[str]) -> list[str]:
    return [
        f"{where}.{name} must be a non-empty text"
        for name in names
        if not isinstance(value.get(name), str) or not value[name].strip()
    ]


def card_row(
    trace: Mapping[str, Any],
    submission: Submission,
    work: Investigation,
    context: CardContext,
    *,
    facts: GoldFacts,
    input_fingerprint: str,
    trigger: str,
) -> Row:
    """The line of ``failure_cards.jsonl``."""
    reasons, findings = _forced(submission, work, context, facts)
    status = "NO_PROPOSAL" if reasons else submission.status
    source = trace["episode_id"]
    return {
        "schema_version": SCHEMA,
        "card_id": f"failure-{source}-01",
        "source_trajectory_id": source,
        "channel": "failure",
        "stage": context.stage,
        "status": status,
        "privileged_audit": dict(submission.privileged),
        "deployable_abstraction": _deployable(status, submission.deployable, leaks=bool(findings)),
        "audit_action_summary": list(work.actions),
        "audit_transcript": list(work.transcript),
        "terminal_trials": list(work.trials),
        "successful_counterfactual_trials": work.successes,
        "grounded_live_actions": work.valid_actions,
        "firewall_findings": list(dict.fromkeys(finding["rule"] for finding in findings)),
        "firewall_evidence": findings,
        "submitted_status": submission.status,
        "forced_no_proposal_reason": reasons[-1] if reasons else None,
        "forced_no_proposal_reasons": reasons,
        "eligible_for_consolidation": status != "NO_PROPOSAL",
        "task_id": trace["job"]["task_id"],
        "trigger": trigger,
        "provenance": context.provenance,
        "accounting": dict(work.accounting),
        "created_at": utc_now(),
        "input_fingerprint": input_fingerprint,
    }


def _forced(
    submission: Submission, work: Investigation, context: CardContext, facts: GoldFacts
) -> tuple[list[str], list[Row]]:
    """Reasons in the published order, and all findings of the firewall."""
    texts = {k: v for k, v in submission.deployable.items() if k != "target_chunk_id"}
    findings = [finding.to_record() for finding in context.firewall.card(texts, facts)]
    if submission.status == "NO_PROPOSAL":
        return [], findings
    reasons = []
    if not work.valid_actions:
        reasons.append("proposal_without_grounded_live_action")
    if not work.successes:
        reasons.append("proposal_without_successful_counterfactual")
    if submission.status == "PROPOSE_REWRITE":
        if context.stage == "cold_start":
            reasons.append("cold_start_has_no_rewrite_target")
        elif submission.deployable.get("target_chunk_id") not in context.active_ids:
            reasons.append("invalid_rewrite_target")
    if findings:
        reasons.append("gold_firewall_violation")
    return reasons, findings


def _deployable(status: Status, written: Mapping[str, Any], *, leaks: bool) -> Row:
    """The part that may travel on. Without a proposal that is the mechanism alone; a part in which
    the firewall found something does not travel at all."""
    if status == "NO_PROPOSAL":
        return {"failure_mechanism": "" if leaks else written.get("failure_mechanism", "")}
    target = written.get("target_chunk_id") if status == "PROPOSE_REWRITE" else None
    return {**{name: written[name] for name in DEPLOYABLE_TEXTS}, "target_chunk_id": target}


def error_row(
    trace: Mapping[str, Any], error: BaseException, *, input_fingerprint: str, provenance: str
) -> Row:
    """The line of a trace that could not be analysed."""
    return {
        "source_trajectory_id": trace["episode_id"],
        "eligible_for_consolidation": False,
        "status": ANALYST_ERROR,
        "error": {"type": type(error).__name__, "message": str(error)},
        "provenance": provenance,
        "created_at": utc_now(),
        "input_fingerprint": input_fingerprint,
    }


def card_identity(card: Mapping[str, Any]) -> Row:
    """A card without times, expense and transcript: what a compilation depends on."""
    left_out = ("created_at", "accounting", "audit_transcript")
    return {key: value for key, value in card.items() if key not in left_out}


def input_fingerprint(
    trace: Mapping[str, Any], *, bank_sha256: str, analyst: Mapping[str, Any], turns: int, wall: str
) -> str:
    """What a card was made from; a card of another input is made anew.

    ``analyst`` covers model, sampling, prompts and tools; times of the trace do not count.
    """
    return fingerprint(
        {
            "schema": SCHEMA,
            "trace": without_times(trace),
            "current_skillbank_sha256": bank_sha256,
            "analyst": analyst,
            "turns": turns,
            "firewall": wall,
        }
    )
