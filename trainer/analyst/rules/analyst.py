"""The rule-based analyst: one failed trace in, one card's submission and its evidence out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from trainer.analyst.cards import Investigation, Submission
from trainer.analyst.redaction import redact
from trainer.analyst.rules.diagnosis import Diagnosis, Examiner
from trainer.analyst.rules.goal import goal_of
from trainer.analyst.rules.mechanisms import Mechanism, mechanisms_of, wording_sha256
from trainer.analyst.rules.reading import HIDDEN_LABEL, Advice, Reader, shown_in
from trainer.analyst.rules.trials import TrialSession
from trainer.analyst.rules.violations import turns_of, violations_of
from trainer.errors import InputError
from trainer.shop.session import ShopSession
from trainer.shop.world import World
from trainer.skills.types import Chunk

VERSION = "rule-based-v1"
UNEXPLAINED = "no repair that was tried led to a purchase that meets every wish"


class RuleBasedAnalyst:
    """Analyses traces of one world against one bank. Deterministic; holds one session at a time."""

    provenance = "rule_based"

    def __init__(self, world: World, chunks: Sequence[Chunk], *, most_trials: int) -> None:
        """``most_trials`` bounds the sessions that one card may open.

        Raises InputError for a world whose pages are not made of single words: the sentences of
        this analyst would mean nothing there.
        """
        if world.language is None:
            raise InputError(
                "the rule-based analyst writes for worlds of single words",
                field="analyst.kind",
                value="rule_based",
                remedy="Choose kind: endpoint for this profile",
            )
        self._world = world
        self._most_trials = most_trials
        axes = {axis for p in world.catalogue.products.values() for axis in p.options}
        self.mechanisms = {m.name: m for m in mechanisms_of(axes)}
        self._reader = Reader(chunks, self.mechanisms.values())

    def identity(self) -> dict[str, Any]:
        """What decides the outcome, besides trace and bank."""
        wording = wording_sha256(self.mechanisms.values())
        return {
            "provider": VERSION,
            "most_trials": self._most_trials,
            "wording_sha256": wording,
        }

    def analyse(self, trace: Mapping[str, Any]) -> tuple[Submission, Investigation]:
        """Find the earliest causal divergence and what to say about it."""
        goal = goal_of(self._world.task(trace["job"]["task_id"]), self._world.catalogue)
        turns = turns_of(trace)
        bought = trace["final"]["termination_reason"] == "purchase"
        examiner = Examiner(
            goal=goal,
            turns=turns,
            open_session=lambda limit: self._open(trace, limit),
            limit=self._world.profile.max_actions,
            most_trials=self._most_trials,
        )
        diagnosis = examiner.diagnose(violations_of(turns, goal, bought=bought))
        return self._submission(trace, diagnosis), _investigation(diagnosis)

    def _open(self, trace: Mapping[str, Any], limit: int) -> TrialSession:
        return ShopSession(self._world, trace["job"]["task_id"], max_actions=limit)

    def _submission(self, trace: Mapping[str, Any], diagnosis: Diagnosis) -> Submission:
        mechanism, advice = self._choose(trace, diagnosis)
        privileged = _audit(trace, diagnosis, advice)
        if mechanism is None:
            return Submission("NO_PROPOSAL", privileged, {"failure_mechanism": UNEXPLAINED})
        if advice.operation is None:
            return Submission("NO_PROPOSAL", privileged, {"failure_mechanism": mechanism.failure})
        sentence = mechanism.sentences(HIDDEN_LABEL)[0]
        deployable = {
            "failure_mechanism": mechanism.failure,
            "applicable_when": mechanism.applies,
            "observable_trigger": mechanism.trigger,
            "corrective_procedure": sentence,
            "verification_step": mechanism.verify,
            "target_chunk_id": advice.target,
            "proposed_content": sentence,
        }
        return Submission(advice.operation, privileged, deployable)

    def _choose(
        self, trace: Mapping[str, Any], diagnosis: Diagnosis
    ) -> tuple[Mechanism | None, Advice]:
        """The earliest needed mechanism that a text could mend; else the earliest one."""
        options = []
        for violation in diagnosis.repair:
            mechanism = self.mechanisms[violation.mechanism]
            options.append((mechanism, self._reader.advise(mechanism, shown_in(trace))))
        for mechanism, advice in options:
            if advice.operation is not None:
                return mechanism, advice
        return options[0] if options else (None, Advice(None, None, UNEXPLAINED))


def _investigation(diagnosis: Diagnosis) -> Investigation:
    actions = [redact(action) for trial in diagnosis.trials for action in trial.actions]
    return Investigation(
        actions=actions,
        valid_actions=sum(trial.valid for trial in diagnosis.trials),
        trials=[trial.to_record() for trial in diagnosis.trials],
        accounting={"calls": 0, "trials": len(diagnosis.trials), "live_actions": len(actions)},
    )


def _audit(trace: Mapping[str, Any], diagnosis: Diagnosis, advice: Advice) -> dict[str, Any]:
    final = trace["final"]
    parts = {name: value for name, value in final["reward_detail"].items() if name[:2] == "r_"}
    violations = [f"turn {v.turn + 1}: {v.mechanism}" for v in diagnosis.violations]
    repair = [f"turn {v.turn + 1}: {v.mechanism}" for v in diagnosis.repair]
    goal, purchase = final["goal"], final["purchase"]
    wins = [trial for trial in diagnosis.trials if trial.success]
    return {
        "gold_asin": goal["asin"],
        "chosen_asin": purchase.get("asin"),
        "failure_surface": f"ended by {final['termination_reason']}; parts of the reward: {parts}",
        "earliest_divergence": repair[0] if repair else "none found",
        "oracle_comparison": (
            f"wanted {goal['attributes']} with {goal['goal_options']} up to {goal['price_upper']}; "
            f"bought {purchase.get('name')} with {purchase.get('options')} "
            f"for {purchase.get('price')}"
        ),
        "replay_evidence": f"neglected in order: {violations}",
        "minimal_repair": f"{repair or 'none'}; {advice.reason}",
        "repair_validation_result": (
            f"{len(wins)} of {len(diagnosis.trials)} trials met every wish; "
            f"winning: {[list(trial.repaired) for trial in wins]}"
        ),
    }
