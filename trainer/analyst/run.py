"""One round's analysis: waiting groups in, cards, candidate pool, ledger and summary out.

Cards are made once for every input and kept; the compilation is repeated only when its inputs
changed. The summary is written last: where it lies, the analysis is whole. When an analyst fails as
a whole, the pool holds the active chunks only and the summary says so, so that the gate can still
judge them; the ledger of earlier rounds is carried on in every case. Specification:
gate-analysis.md §§1, 9, 11.5, 12.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

from trainer.analyst.cards import card_identity
from trainer.analyst.compiler.assemble import assemble
from trainer.analyst.compiler.compile import Compiled, compile_cards
from trainer.analyst.compiler.contract import Contract
from trainer.analyst.compiler.restructure import restructurings
from trainer.analyst.compiler.style import Style
from trainer.analyst.desk import Desk, OpenPolicy, open_desk
from trainer.analyst.firewall import gold_facts
from trainer.analyst.maker import AnalysisEnded, CardMaker
from trainer.analyst.probe import Prober, screen
from trainer.analyst.publish import Outcome, finished, publish
from trainer.analyst.triage_queue import Case
from trainer.analyst.workers import Workers
from trainer.canonical import fingerprint
from trainer.config import AnalystConfig
from trainer.errors import IncompleteError
from trainer.progress import Progress

Card = Mapping[str, Any]


def run_analysis(config: AnalystConfig, open_policy: OpenPolicy | None = None) -> dict[str, Any]:
    """Make what cards are missing, errors included, compile, and write the round's three files.

    Raises InputError when round, bank or ledger cannot be used, StopRequested on request, and
    IncompleteError when the analyst failed and ``on_failure`` is ``stop``.
    """
    desk = open_desk(config, open_policy)
    cases = desk.cases()
    progress = Progress(desk.folder / "progress.json", unit="card", total=len(cases))
    ended: AnalysisEnded | None = None
    cards: list[Card] = []
    if desk.maker is not None:
        ended = make_cards(desk.maker, cases, progress, desk.concurrency)
        marks = {case.source: desk.maker.fingerprint(case) for case in cases}
        cards = list(desk.maker.store.rows(marks))
    summary = _conclude(desk, cases, cards, ended)
    progress.update(len(cases), f"{summary['candidates']} candidates")
    return summary


def make_cards(
    maker: CardMaker, cases: Sequence[Case], progress: Progress, concurrency: int
) -> AnalysisEnded | None:
    """Make the missing cards; returns what ended the work early, if anything did."""
    missing = [case for case in cases if not maker.is_done(case, retry_errors=True)]
    done = len(cases) - len(missing)
    with Workers(maker.make, concurrency) as workers:
        workers.submit(missing)
        try:
            while workers.poll(1.0):
                progress.update(done + workers.done)
        except AnalysisEnded as error:
            return error
    return None


def _conclude(
    desk: Desk, cases: Sequence[Case], cards: Sequence[Card], ended: AnalysisEnded | None
) -> dict[str, Any]:
    """Compile and publish, or publish that nothing came out."""
    key = _compilation_key(desk, cards)
    if ended is None and (summary := finished(desk.folder, key)) is not None:
        return summary
    eligible = [card for card in cards if card["eligible_for_consolidation"]]
    if ended is None or eligible:
        try:
            return publish(desk, cases, cards, _compiled(desk, cases, eligible, key, ended))
        except AnalysisEnded as error:
            ended = error
    if desk.config.analyst.on_failure == "stop":
        raise IncompleteError(f"the analyst failed: {ended}")
    return publish(desk, cases, cards, Outcome("failed", key, error=ended))


def _compiled(
    desk: Desk, cases: Sequence[Case], eligible: Sequence[Card], key: str, ended: Exception | None
) -> Outcome:
    compiled = compile_cards(desk.compiler, eligible, _contract(desk, cases, eligible))
    task_of = {card["card_id"]: card["task_id"] for card in eligible}
    if desk.config.analyst.low_support == "leave_out":
        compiled = _supported(compiled, task_of, desk.config.analyst.minimum_tasks)
    if desk.prober is not None:
        compiled = _screened(desk.prober, desk.style, compiled, task_of)
    candidates = assemble(
        compiled.items,
        style=desk.style,
        active=desk.bank.chunks,
        task_of=task_of,
        minimum_tasks=desk.config.analyst.minimum_tasks,
        proposal_checkpoint=desk.config.proposal_checkpoint,
        provenance=desk.config.analyst.kind,
    )
    status: Literal["partial", "complete"] = "partial" if ended else "complete"
    made = restructurings(compiled.restructured, candidates)
    return Outcome(status, key, candidates, compiled, ended, made)


def _supported(compiled: Compiled, task_of: Mapping[str, int], least: int) -> Compiled:
    """The compilation without candidates that rest on too few different tasks."""
    kept, left, notes = [], [], []
    for item in compiled.items:
        tasks = {task_of[card] for card in item["evidence_card_ids"]}
        if len(tasks) >= least:
            kept.append(item)
        else:
            left += item["evidence_card_ids"]
            notes.append(f"{item['title']}: rests on {len(tasks)} tasks, {least} are asked for")
    return replace(
        compiled,
        items=kept,
        evidence_only=_uncited(kept, [*compiled.evidence_only, *left]),
        notes=[*compiled.notes, *notes],
    )


def _uncited(items: Sequence[Mapping[str, Any]], cards: Sequence[str]) -> list[str]:
    """The cards that no item cites; the parts of a SPLIT share theirs."""
    cited = {card for item in items for card in item["evidence_card_ids"]}
    return sorted(set(cards) - cited)


def _screened(
    prober: Prober, style: Style, compiled: Compiled, task_of: Mapping[str, int]
) -> Compiled:
    """The compilation without what the probe refused; the cards of that become evidence only."""
    contents = [style.render(item) for item in compiled.items]
    screened = screen(prober, compiled.items, contents, task_of)
    return replace(
        compiled,
        items=screened.items,
        evidence_only=_uncited(screened.items, [*compiled.evidence_only, *screened.rejected_cards]),
        notes=[*compiled.notes, *screened.notes],
    )


def _contract(desk: Desk, cases: Sequence[Case], eligible: Sequence[Card]) -> Contract:
    catalogue = desk.world.catalogue if desk.world else None
    traces = {case.source: case.trace for case in cases}
    return Contract(
        max_candidates=desk.config.analyst.max_candidates,
        active_ids=[chunk.skill_id for chunk in desk.bank.chunks],
        facts={
            card["card_id"]: gold_facts(traces[card["source_trajectory_id"]], catalogue)
            for card in eligible
        },
        firewall=desk.firewall,
        history=desk.past(),
        style=desk.style,
        restructure=desk.config.analyst.restructure,
    )


def _compilation_key(desk: Desk, cards: Sequence[Card]) -> str:
    settings = desk.config.analyst
    return fingerprint(
        {
            "cards": [card_identity(card) for card in cards],
            "current_skillbank_sha256": desk.bank.bank_sha256,
            "compiler": desk.compiler.identity(),
            "style": desk.style.identity(),
            "firewall": desk.firewall.identity(),
            "max_candidates": settings.max_candidates,
            "minimum_tasks": settings.minimum_tasks,
            "low_support": settings.low_support,
            "restructure": settings.restructure,
            "near_duplicate": settings.near_duplicate,
            "retry_undecided": settings.retry_undecided,
            "proposal_checkpoint": desk.config.proposal_checkpoint,
            "probe": desk.prober.identity() if desk.prober else None,
            "history": desk.history,
        }
    )
