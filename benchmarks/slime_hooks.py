"""What the hooks cost beside shop and engine: mask, filter, advantages, metrics, traces of a group.

    python -m benchmarks.slime_hooks [--json] [--repeats N]

One group of 8 siblings with 30 turns each: real pages of the built-in standard shop, prompts that
grow to 24,000 tokens. Sampling, tokenising and the shop are left out: they are paid with any hook.
Figures are processor time of this process, system calls included, so that a busy machine does not
change them; ``group_wall_ms`` is the same by the clock. The sum of the parts is held against 5 ms a
group; beside it stand the rows of both layouts (what the trainer is handed) and the publication of
a finished step, which runs while slime trains.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from pathlib import Path
from types import SimpleNamespace
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
if not __package__:  # started as a file
    sys.path.insert(0, str(ROOT))

from trainer.engines.slime.groups import (  # noqa: E402
    CurriculumFiles,
    FinishedRollouts,
    GroupTable,
    OpenGroup,
    finish_group,
)
from trainer.engines.slime.play import EpisodeRollout  # noqa: E402
from trainer.engines.slime.population import FailureWatch, group_of  # noqa: E402
from trainer.engines.slime.publication import write_trace, write_triage  # noqa: E402
from trainer.engines.slime.requests import episode_request  # noqa: E402
from trainer.engines.slime.rollout_metrics import engine_metrics, step_result  # noqa: E402
from trainer.engines.slime.samples import (  # noqa: E402
    Turn,
    finish_samples,
    leaves,
    rollout_key,
    rows_of,
    sample_of_row,
)
from trainer.engines.slime.training_traces import with_tokens  # noqa: E402
from trainer.grpo.filter import is_tied  # noqa: E402
from trainer.grpo.metrics import step_metrics  # noqa: E402
from trainer.grpo.normalise import RewardRow, normalise  # noqa: E402
from trainer.grpo.publish import RoundFolder  # noqa: E402
from trainer.rollout.conversation import FunctionConversation  # noqa: E402
from trainer.rollout.episode import Episode  # noqa: E402
from trainer.rollout.policy import ModelTurn, ToolCall  # noqa: E402
from trainer.rollout.types import EpisodeResult  # noqa: E402
from trainer.shop.world import World, load_world  # noqa: E402
from trainer.sinks.base import MetricPoint  # noqa: E402
from trainer.skills.bank import bank_document, parse_bank  # noqa: E402
from trainer.skills.curriculum import write_curriculum  # noqa: E402
from trainer.skills.curriculum_build import build_curriculum  # noqa: E402
from trainer.skills.types import Chunk  # noqa: E402

SIBLINGS, TURNS, CHUNKS = 8, 30, 10
BUDGET_MS = 5.0
FIRST_PROMPT, PER_TURN, SAMPLED = 2000, 640, 110  # tokens; the last prompt has 23,500


@dataclass
class Sample:
    """The fields of slime's ``Sample`` that the hooks touch."""

    group_index: int | None = None
    index: int | None = None
    rollout_id: int | None = None
    prompt: Any = ""
    label: str | None = None
    tokens: list[int] = field(default_factory=list)
    response: str = ""
    response_length: int = 0
    reward: Any = None
    loss_mask: list[int] | None = None
    rollout_log_probs: list[float] | None = None
    weight_versions: list[str] = field(default_factory=list)
    remove_sample: bool = False
    metadata: dict[str, Any] = field(default_factory=dict)
    session_id: str | None = None
    prefix_cache_info: Any = field(default_factory=lambda: SimpleNamespace(add=lambda meta: None))

    class Status(Enum):
        """Where a row stands."""

        COMPLETED = "completed"
        TRUNCATED = "truncated"

    status: Status = Status.COMPLETED


class Group:
    """One group, played once; every part of the hooks can then be timed over it."""

    def __init__(self, world: World, folder: Path) -> None:
        self.folder = folder
        self.written = 0
        self.curriculum_path = folder / "curriculum.json"
        write_curriculum(self.curriculum_path, _curriculum())
        self.table = GroupTable(CurriculumFiles())
        self.task = world.split("train")[0]
        self.entry = self.join()
        self.turns = [_turns(place) for place in range(SIBLINGS)]
        self.results = [self._result(world, place) for place in range(SIBLINGS)]
        self.rows = [self.make_rows(place, contiguous=True) for place in range(SIBLINGS)]
        self.finished = self.finish()

    def join(self) -> OpenGroup:
        """The treatment of a group, for each sibling anew."""
        self.table.clear()
        for _ in range(SIBLINGS):
            entry = self.table.join(self.curriculum_path, 7, task_id=self.task, size=SIBLINGS)
        return entry

    def _result(self, world: World, place: int) -> EpisodeResult:
        sample = Sample(group_index=7, index=7 * SIBLINGS + place)
        request = episode_request(
            SimpleNamespace(rollout_seed=42),
            self.entry,
            sample,
            self.entry.treatment,
            retry=False,
            step=1,
        )
        episode = Episode(world, FunctionConversation(), request, provenance={}, max_turns=TURNS)
        episode.begin()
        _walk(episode, world, place)
        result = replace(episode.result(None))
        reward = {**dict.fromkeys(result.reward, 0.0), "reward": place / 10, "r_strict": place / 10}
        result = replace(result, reward={**reward, "r_success": 0.0}, scored=True)
        return with_tokens(result, self.turns[place], [], exact=False)

    def make_rows(self, place: int, *, contiguous: bool) -> list[Sample]:
        """What the trainer is handed of one episode."""
        base = Sample(group_index=7, index=7 * SIBLINGS + place)
        rows = rows_of(self.turns[place], contiguous=contiguous, max_tokens=24576)
        samples = [sample_of_row(row, base, "") for row in rows]
        result = self.results[place]
        finish_samples(
            samples,
            base,
            reward=result.reward,
            truncated=False,
            metadata={
                "shopsim_scored": True,
                "shopsim_reward": dict(result.reward),
                "shopsim_assignment": result.request.skills["assignment"],
            },
        )
        return samples

    def finish(self) -> FinishedRollouts:
        """Report all siblings and label the group."""
        entry = self.join()
        for place, result in enumerate(self.results):
            rollout = EpisodeRollout(result, self.rows[place])
            entry.report(7 * SIBLINGS + place, rollout)

        async def no_retry() -> EpisodeRollout:
            raise AssertionError("the group is not retried here")

        return asyncio.run(
            finish_group(entry, no_retry, retry_enabled=False, stopping=lambda: False)
        )

    # --- the parts

    def mask(self) -> None:
        """Treatment and requests of all siblings."""
        entry = self.join()
        for place in range(SIBLINGS):
            sample = Sample(group_index=7, index=7 * SIBLINGS + place)
            episode_request(
                SimpleNamespace(rollout_seed=42),
                entry,
                sample,
                entry.treatment,
                retry=False,
                step=1,
            )

    def filter(self) -> None:
        """Judge the group from its rows."""
        group = group_of(self.rows)
        FailureWatch(limit=8, window=64, max_share=1.0).note(group)
        is_tied(group)

    def normalise(self) -> None:
        """Advantages of the group's rows."""
        rows = [
            RewardRow(7, rollout_key(sample), sample.reward["reward"])
            for sample in leaves(self.rows)
        ]
        normalise(rows, std_normalisation=True)

    def metrics(self) -> None:
        """The metrics of a step of this one group."""
        result = step_result([self.finished], {7}, std_normalisation=True)
        step_metrics(result.groups, self.finished.curriculum, drops={}, waves=1)
        engine_metrics([self.finished], 0, {}, leaves(self.rows))

    def traces(self) -> None:
        """Every sibling's trace and the triage record on disk, in a folder of the group's own."""
        self.written += 1
        folder = self.folder / f"group-{self.written:09d}"
        for place, result in enumerate(self.results):
            write_trace(folder / f"rollout-{place}.json", result.trace)
        write_triage(folder, self.finished)

    # --- beside the budget

    def episode_rows(self) -> None:
        """Rows of all siblings, one contiguous row each."""
        for place in range(SIBLINGS):
            self.make_rows(place, contiguous=True)

    def turn_rows(self) -> None:
        """Rows of all siblings, one row a turn."""
        for place in range(SIBLINGS):
            self.make_rows(place, contiguous=False)

    def publication(self) -> None:
        """The group's share of a finished step's files."""
        result = step_result([self.finished], {7}, std_normalisation=True)
        point = MetricPoint(1, {}, {})
        RoundFolder(self.folder / "round").publish(1, result, updates=[], metrics=point)


def _curriculum() -> Any:
    chunks = [
        Chunk(f"chunk-{number:02d}", f"### buy - {number}\n\n" + "看清规格。" * 60, "1",
              {"estimated_effect": 0.01 * (number + 1)})
        for number in range(CHUNKS)
    ]  # fmt: skip
    return build_curriculum(
        parse_bank(bank_document(chunks, bank_version="bench", metadata={})),
        round_id="round-000",
        skill_free_probability=0.2,
        rho_min=0.2,
        rho_max=0.9,
    )


def _turns(place: int) -> list[Turn]:
    """Thirty turns of one growing prompt."""
    held = list(range(FIRST_PROMPT))
    turns = []
    for number in range(TURNS):
        output = tuple(range(place, place + SAMPLED))
        turns.append(Turn(tuple(held), output, (-0.5,) * SAMPLED, "stop", "1", 0))
        held += [*output, *range(number, number + PER_TURN)]
    return turns


def _walk(episode: Episode, world: World, place: int) -> None:
    """Search and look around until the turns are spent."""
    task = episode.request.job.task_id
    queries = [word for word in world.task(task).name if word.strip()]
    while True:
        tools = episode.tools()
        if not tools:
            return
        name = tools[0]["function"]["name"]
        argument = "query" if name == "search" else "value"
        schema = tools[0]["function"]["parameters"]["properties"][argument]
        options: Sequence[str] = schema.get("enum") or queries
        usable = [text for text in options if text != "buy now"] or list(options)
        value = usable[(place + len(usable) // 2) % len(usable)]
        call = ToolCall(name, {argument: value})
        turn = ModelTurn(
            "", "stop", (call,), "想一想" * 40, tuple(range(SAMPLED)), (-0.5,) * SAMPLED
        )
        if episode.take(turn) is None:
            return


Clock = Callable[[], float]


def milliseconds(part: Callable[[], None], repeats: int, clock: Clock = time.process_time) -> float:
    """The median of ``repeats`` runs, after one to warm up."""
    part()
    times = []
    for _ in range(repeats):
        started = clock()
        part()
        times.append((clock() - started) * 1000)
    return statistics.median(times)


def measure(repeats: int) -> dict[str, Any]:
    """All figures."""
    with tempfile.TemporaryDirectory() as folder:
        group = Group(load_world("standard"), Path(folder))
        parts = ("mask", "filter", "normalise", "metrics", "traces")
        figures = {
            f"{name}_ms": _figure(milliseconds(getattr(group, name), repeats)) for name in parts
        }
        total = sum(figure["value"] for figure in figures.values())
        wall = sum(milliseconds(getattr(group, name), repeats, time.perf_counter) for name in parts)
        size = sum(len(json.dumps(r.trace, ensure_ascii=False).encode()) for r in group.results)
        figures["group_ms"] = _figure(total, peer=BUDGET_MS)
        figures["group_wall_ms"] = _figure(wall)
        figures["trace_kilobytes"] = {**_figure(size / 1000), "unit": "kB a group"}
        figures["episode_rows_ms"] = _figure(milliseconds(group.episode_rows, repeats))
        figures["turn_rows_ms"] = _figure(milliseconds(group.turn_rows, max(3, repeats // 5)))
        figures["publication_ms"] = _figure(milliseconds(group.publication, max(3, repeats // 5)))
        tokens = {
            layout: sum(
                len(row.tokens) for row in group.make_rows(0, contiguous=layout == "episode")
            )
            for layout in ("turn", "episode")
        }
        figures["trainer_tokens_turn"] = {**_figure(tokens["turn"]), "unit": "tokens an episode"}
        figures["trainer_tokens_episode"] = {
            **_figure(tokens["episode"], peer=tokens["turn"]),
            "unit": "tokens an episode",
        }
    return {"figures": figures, "siblings": SIBLINGS, "turns": TURNS}


def _figure(value: float, peer: float | None = None) -> dict[str, Any]:
    ratio = None if peer is None else round(value / peer, 4)
    return {"value": round(value, 4), "unit": "ms a group", "peer": peer, "ratio": ratio}


def main() -> int:
    """Measure and print; exit code 1 when the budget is exceeded."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--repeats", type=int, default=30)
    args = parser.parse_args()
    document = measure(args.repeats)
    if args.json:
        print(json.dumps(document))
    else:
        for name, figure in document["figures"].items():
            print(f"{name:24} {figure['value']:12.3f} {figure['unit']}")
    return 0 if document["figures"]["group_ms"]["value"] <= BUDGET_MS else 1


if __name__ == "__main__":
    raise SystemExit(main())
