"""The cold start: traces in, evidence cards, clusters, draft, draft bank and its pool out.

Every card is made once for its input; the summary is written last. What the draft is worth only
the first gate knows: ``python -m trainer gate run`` on the pool, with the draft's budget.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from trainer.analyst.card_store import CardStore
from trainer.analyst.cards import ANALYST_ERROR, CardContext
from trainer.analyst.cold_start.clusters import cluster_channel
from trainer.analyst.cold_start.draft import draft_bank, draft_document, draft_errors, draft_pool
from trainer.analyst.cold_start.settings import ColdStartConfig
from trainer.analyst.cold_start.success import SuccessMaker, lessons_of
from trainer.analyst.cold_start.team import Team, open_team
from trainer.analyst.cold_start.traces import Channels, read_channels
from trainer.analyst.compiler.compile import CompilationFailed
from trainer.analyst.desk import style_of
from trainer.analyst.firewall import Firewall, GoldFacts, gold_facts
from trainer.analyst.maker import AnalysisEnded, CardMaker
from trainer.analyst.triage_queue import Case
from trainer.analyst.workers import Workers
from trainer.canonical import utc_now
from trainer.errors import IncompleteError
from trainer.files import write_json, write_jsonl
from trainer.progress import Progress
from trainer.shop.world import World, load_world

Row = dict[str, Any]
SUMMARY_SCHEMA = "shopsimrl-trace2skill-cold-start-v3"


def run_cold_start(config: ColdStartConfig) -> Row:
    """Raises InputError for traces that cannot be used, StopRequested, and IncompleteError when
    the analyst failed as a whole: there is no first skill without one."""
    world = load_world(
        config.world.profile, catalogue=config.world.catalogue, splits=config.world.splits
    )
    firewall = Firewall(config.analyst.firewall, world.catalogue)
    store = CardStore(config.output_dir / "failure_cards.jsonl")
    channels = read_channels(config.run_dir, config.traces)
    work = ColdStart(config, world, firewall, store, channels, open_team(config, world, store))
    try:
        return work.run()
    except AnalysisEnded as error:
        raise IncompleteError(f"the cold start could not be finished: {error}") from error


@dataclass(frozen=True, slots=True)
class ColdStart:
    """One cold start with everything it works with."""

    config: ColdStartConfig
    world: World
    firewall: Firewall
    store: CardStore
    channels: Channels
    team: Team

    def run(self) -> Row:
        """Cards, clusters, draft; raises AnalysisEnded when one of them cannot be made."""
        rows = self._cards()
        lessons = lessons_of(rows["success"])
        evidence: dict[str, list[Row]] = {
            "success": [card for card in lessons if card["eligible"]],
            "failure": [row for row in rows["failure"] if row["eligible_for_consolidation"]],
        }
        clusters = [
            cluster
            for channel, cards in evidence.items()
            for cluster in cluster_channel(self.team.clusterer, channel, cards)
        ]
        if not clusters:
            raise CompilationFailed("no card proposes anything")
        result = self._draft(clusters, self._facts(evidence, clusters))
        cards = [*lessons, *(row for row in rows["failure"] if "card_id" in row)]
        return self._publish(rows, cards, clusters, result)

    def _cards(self) -> dict[str, list[Row]]:
        """Make the missing cards of both channels, those that gave an error included."""
        failures = CardMaker(
            analyst=self.team.failures,
            context=CardContext("cold_start", (), self.firewall, self.team.failures.provenance),
            store=self.store,
            bank_sha256="",
            turns=self.config.analyst.limits.turns,
            catalogue=self.world.catalogue,
            resume=self.config.analyst.resume,
        )
        successes = SuccessMaker(
            self.team.successes,
            CardStore(self.config.output_dir / "success_cards.jsonl"),
            self.firewall,
            self.world.catalogue,
            resume=self.config.analyst.resume,
        )
        path = self.config.output_dir / "progress.json"
        progress = Progress(path, unit="trace", total=len(self.channels.all))
        return {
            "failure": self._make(failures, self.channels.failures, progress),
            "success": self._make(successes, self.channels.successes, progress),
        }

    def _make(
        self, maker: CardMaker | SuccessMaker, cases: Sequence[Case], progress: Progress
    ) -> list[Row]:
        missing = [case for case in cases if not maker.is_done(case, retry_errors=True)]
        settings = self.config.analyst
        before = progress.done + len(cases) - len(missing)
        threads = settings.limits.concurrency if settings.kind == "endpoint" else 1
        with Workers(maker.make, threads) as workers:
            workers.submit(missing)
            while workers.poll(1.0):
                progress.update(before + workers.done)
        progress.update(before + len(missing))
        return maker.store.rows({case.source: maker.fingerprint(case) for case in cases})

    def _facts(
        self, evidence: Mapping[str, Sequence[Row]], clusters: Sequence[Row]
    ) -> dict[str, list[GoldFacts]]:
        """The facts of all traces behind each cluster."""
        cases = self.channels.all
        of_source = {c.source: gold_facts(c.trace, self.world.catalogue) for c in cases}
        behind = {
            card["card_id"]: of_source[card["source_trajectory_id"]]
            for cards in evidence.values()
            for card in cards
        }
        return {
            cluster["cluster_id"]: [behind[card] for card in cluster["evidence_card_ids"]]
            for cluster in clusters
        }

    def _draft(self, clusters: Sequence[Row], facts: Mapping[str, list[GoldFacts]]) -> Row:
        known = {cluster["cluster_id"]: cluster for cluster in clusters}

        def check(result: Mapping[str, Any]) -> list[str]:
            return draft_errors(
                result,
                known,
                firewall=self.firewall,
                facts=facts,
                style=style_of(self.world),
                most=self.config.max_chunks,
            )

        result = self.team.draft(clusters, self.config.max_chunks, check)
        errors = check(result)
        if errors:
            raise CompilationFailed(f"the draft breaks its contract: {'; '.join(errors)}")
        return result

    def _publish(
        self,
        rows: Mapping[str, Sequence[Row]],
        cards: Sequence[Row],
        clusters: Sequence[Row],
        result: Row,
    ) -> Row:
        folder = self.config.output_dir
        write_jsonl(folder / "evidence_cards.jsonl", cards)
        write_json(folder / "evidence_clusters.json", list(clusters))
        budget = self.config.active_skill_budget
        draft = draft_document(result, style_of(self.world), budget=budget)
        write_json(folder / "initial_skill_draft.json", draft)
        write_json(folder / "initial_skillbank.json", draft_bank(draft))
        pool = draft_pool(draft, checkpoint=self.config.proposal_checkpoint)
        write_json(folder / "candidate_pool.json", pool)
        write_jsonl(folder / "proposal_ledger.jsonl", [])
        statuses = Counter(row["status"] for channel in rows.values() for row in channel)
        summary = {
            "schema_version": SUMMARY_SCHEMA,
            "created_at": utc_now(),
            "input": {
                "failure": len(self.channels.failures),
                "success": len(self.channels.successes),
                "total": len(self.channels.all),
            },
            "unique_analyzed": sum(statuses.values()) - statuses[ANALYST_ERROR],
            "evidence_cards": len(cards),
            "clusters": len(clusters),
            "chunks": len(draft["chunks"]),
            "missing": list(self.channels.missing),
            "error_count": statuses[ANALYST_ERROR],
            "cards_path": "evidence_cards.jsonl",
            "draft_sha256": draft["draft_sha256"],
            "analyst": self.config.analyst.kind,
        }
        write_json(folder / "analysis_summary.json", summary)
        return summary
