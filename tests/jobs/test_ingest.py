"""Trace files become an index: once, whatever happens to them, and again to the same rows."""

from __future__ import annotations

import gzip
import json
import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import zstandard

from intraskill_web.episodes import bodies
from intraskill_web.episodes.filters import EpisodeFilter
from intraskill_web.episodes.models import BadLine, Episode, IngestedFile, Replay
from intraskill_web.episodes.order import Order
from intraskill_web.episodes.search import search
from intraskill_web.episodes.traces import read_trace
from intraskill_web.experiments.models import Experiment
from jobs.episodes import ingest as module
from jobs.episodes.ingest import Report, Tick, ingest
from tests.jobs.traces import trace
from trainer.errors import InputError
from trainer.files import append_jsonl, write_json

WORDS = ["便携", "迷你", "冰箱", "家用", "wireless", "bottle", "水杯", "雨伞", "leather", "真空"]


@pytest.fixture
def foreign(transactional_db: None, home: Path) -> Experiment:
    return Experiment.objects.create(name="foreign")


def some(count: int, seed: int = 3) -> list[dict[str, Any]]:
    """Traces with texts of their own, in both languages."""
    rng = random.Random(seed)
    made = []
    for number in range(count):
        text = " ".join(rng.choices(WORDS, k=8)) + f" needle-{number:05d}"
        steps = [{"step_index": 1, "model": {"content": text}, "environment": None}]
        made.append(trace(number, success=rng.random() < 0.5, steps=steps))
    return made


def rows() -> list[tuple[Any, ...]]:
    """Every column but the place of the body and the id."""
    left_out = ("id", "pack", "body_at", "body_size")
    names = [f.attname for f in Episode._meta.concrete_fields if f.attname not in left_out]
    return list(Episode.objects.order_by("path", "line").values_list(*names))


def test_two_processes_make_the_rows_that_one_makes(foreign: Experiment, tmp_path: Path) -> None:
    file = tmp_path / "traces.jsonl"
    append_jsonl(file, some(700))
    assert ingest(file, foreign, processes=0).episodes == 700
    alone = rows()
    ticks: list[Tick] = []
    report = ingest(file, foreign, rebuild=True, processes=2, tell=ticks.append)
    assert (report.episodes, report.turns, report.files) == (700, 700, 1)
    assert rows() == alone
    assert [t.done for t in ticks] == sorted(t.done for t in ticks)
    assert ticks[-1].done == ticks[-1].total and ticks[-1].eta == 0


def test_a_file_is_skipped_by_its_time_or_else_by_its_hash(
    foreign: Experiment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "step.jsonl.gz"
    text = "".join(json.dumps(t) + "\n" for t in some(20)).encode()
    file.write_bytes(gzip.compress(text))
    assert ingest(file, foreign).episodes == 20
    os.utime(file, ns=(1, 1))  # copied: another time, the same bytes
    assert ingest(file, foreign).skipped == 1
    monkeypatch.setattr("jobs.episodes.take.sha256_file", lambda path: pytest.fail("hashed"))
    os.utime(file, ns=(IngestedFile.objects.get().file_mtime_ns,) * 2)
    assert ingest(file, foreign).skipped == 1
    assert Episode.objects.count() == 20


@pytest.mark.parametrize(
    ("name", "compress"),
    [("step.jsonl.gz", gzip.compress), ("step.jsonl.zst", zstandard.compress)],
)
def test_a_compressed_file_grows_or_is_taken_anew(
    foreign: Experiment, tmp_path: Path, name: str, compress: Callable[[bytes], bytes]
) -> None:
    file = tmp_path / name
    for count, seed, made in ((20, 3, 20), (30, 3, 10), (7, 4, 7)):
        text = "".join(json.dumps(t) + "\n" for t in some(30, seed)[:count]).encode()
        file.write_bytes(compress(text))
        assert ingest(file, foreign).episodes == made
        assert Episode.objects.count() == count
    assert read_trace(Episode.objects.order_by("line")[6])["job"]["task_id"] == 6


def test_a_torn_last_line_waits_and_is_said(foreign: Experiment, tmp_path: Path) -> None:
    file = tmp_path / "traces.jsonl"
    append_jsonl(file, some(3))
    whole = file.read_bytes()
    file.write_bytes(whole[:-30])
    report = ingest(file, foreign)
    assert (report.episodes, report.torn, report.bad_lines) == (2, 1, 0)
    file.write_bytes(whole)
    assert (ingest(file, foreign).episodes, Episode.objects.count()) == (1, 3)


def test_an_archive_that_ends_early_gives_what_it_holds_and_is_named(
    foreign: Experiment, tmp_path: Path
) -> None:
    file = tmp_path / "step.jsonl.gz"
    text = "".join(json.dumps(t) + "\n" for t in some(2000)).encode()
    file.write_bytes(gzip.compress(text)[:-2000])
    report = ingest(file, foreign)
    assert 0 < report.episodes < 2000
    assert len(report.problems) == 1 and "step.jsonl.gz" in report.problems[0]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"not json", "is not JSON"),
        (b"\x00\xff\xfe", "is not JSON"),
        (b"[1, 2]", "must be an object"),
        (b"[" * 100_000, "is not JSON"),
        (b'{"schema_version": "other"}', "is not shopsimrl-episode-v4"),
        (json.dumps(trace(1) | {"job": None}).encode(), "job"),
        (json.dumps(trace(2**40)).encode(), "job.task_id"),
        (json.dumps(trace(1) | {"episode_id": ""}).encode(), "episode_id"),
    ],
)
def test_a_line_that_is_no_episode_is_listed_with_its_reason(
    foreign: Experiment, tmp_path: Path, line: bytes, reason: str
) -> None:
    file = tmp_path / "traces.jsonl"
    append_jsonl(file, some(1))
    with file.open("ab") as handle:
        handle.write(line + b"\n")
    append_jsonl(file, some(1, seed=9))
    report = ingest(file, foreign)
    assert (report.episodes, report.bad_lines) == (2, 1)
    bad = BadLine.objects.get()
    assert bad.line == 1 and reason in bad.reason
    assert "\0" not in bad.excerpt
    ingest(file, foreign, rebuild=True)
    assert BadLine.objects.count() == 1


@pytest.mark.parametrize(
    "odd",
    [
        {"steps": [[], None, {"model": "x"}, {"environment": [], "observation": 7}]},
        {"steps": "none", "selected_skills": [None, {"skill_id": 7}], "final": []},
        {"reset": {"task_instruction": "a\0b\ud800", "user_persona": [1, {"a": None}]}},
        {"error": {"type": None, "message": ["x"]}, "provenance": "p", "tokens": "t"},
        {"final": {"done": True, "reward": float("nan"), "reward_detail": {"r_strict": 1}}},
        {"started_at": "yesterday", "duration_ms": "long", "training": {"group_index": -4}},
        {"reset": {"task_instruction": "\u202e\x1b[31m<b>" * 1000}},
    ],
)
def test_an_odd_trace_becomes_a_row_and_can_be_read(
    foreign: Experiment, tmp_path: Path, odd: dict[str, Any]
) -> None:
    file = tmp_path / "traces.jsonl"
    file.write_text(json.dumps(trace(1, **odd)) + "\n")
    assert ingest(file, foreign).episodes == 1
    assert read_trace(Episode.objects.get())["schema_version"] == trace(1)["schema_version"]


def test_a_turn_of_ten_megabytes_is_a_row_and_found_by_its_words(
    foreign: Experiment, tmp_path: Path
) -> None:
    long = "水杯 " * 1_000_000 + "needle-in-hay " + "x" * 6_000_000
    steps = [{"step_index": 1, "model": {"content": long}, "environment": None}]
    append_jsonl(tmp_path / "traces.jsonl", [trace(1, steps=steps), *some(3)])
    report = ingest(tmp_path, foreign)
    assert (report.episodes, report.bad_lines) == (4, 0)


def test_the_published_training_layout_is_read_with_its_groups(
    foreign: Experiment, tmp_path: Path
) -> None:
    group = tmp_path / "round-001" / "group-000000857"
    group.mkdir(parents=True)
    for sample in (6856, 6857):
        name = f"train-group-000000857-sample-{sample:09d}"
        write_json(group / f"rollout-{sample}.json", published(name, sample))
    name = "train-group-000000857-sample-000006858-full-skill-retry"
    write_json(group / "full-skill-retry.json", published(name, 6858, retry=True))
    write_json(group / "triage.json", {"group_index": 857, "classification": "not_frontier"})
    assert ingest(tmp_path, foreign).episodes == 3
    found = Episode.objects.order_by("sample_id")
    assert [e.purpose for e in found] == ["train", "train", "retry"]
    assert {(e.group_index, e.step, e.triage) for e in found} == {(857, 27, "not_frontier")}
    assert ingest(tmp_path, foreign) == Report(skipped=3, seconds=pytest.approx(0, abs=60))


def published(name: str, sample: int, *, retry: bool = False) -> dict[str, Any]:
    """A training trace of the published layout: no tokens, no ``training`` section."""
    skills = {"assignment": {"mode": "assisted"}, "curriculum_state_id": "s"}
    if retry:
        skills["diagnostic_full_skill"] = True  # type: ignore[assignment]
    made = trace(7, sample=sample, split="train", episode_id=name, provenance={"skills": skills})
    del made["tokens"]
    return made


def test_bodies_are_copies_that_outlive_their_file_and_the_other_way_round(
    foreign: Experiment, home: Path
) -> None:
    file = foreign.folder / "round-000" / "validate" / "bare" / "traces.jsonl"
    append_jsonl(file, some(5))
    ingest(file, foreign)
    episode = Episode.objects.order_by("line")[3]
    whole = read_trace(episode)
    bodies.pack_file(1).rename(home / "away")
    assert read_trace(episode) == whole
    (home / "away").rename(bodies.pack_file(1))
    file.unlink()
    assert read_trace(episode) == whole
    damaged = bytearray(bodies.pack_file(1).read_bytes())
    damaged[episode.body_at + 20] ^= 0xFF
    bodies.pack_file(1).write_bytes(damaged)
    with pytest.raises(InputError, match="cannot be read"):
        read_trace(episode)


def test_packs_grow_up_to_their_size_and_then_a_new_one_begins(
    foreign: Experiment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bodies, "PACK_SIZE", 1000)
    for part in range(3):
        append_jsonl(tmp_path / "traces.jsonl", some(10, seed=part))
        ingest(tmp_path, foreign)
    assert len(list(bodies.folder().glob("pack-*.zst"))) == 3
    for episode in Episode.objects.all():
        assert read_trace(episode)["job"]["task_id"] == episode.task_id


def test_a_kill_between_body_and_row_loses_and_doubles_nothing(
    foreign: Experiment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    append_jsonl(tmp_path / "traces.jsonl", some(600))
    calls = []

    def dies(*arguments: Any) -> None:
        calls.append(arguments)
        if len(calls) == 2:
            raise KeyboardInterrupt

    real = module.store
    monkeypatch.setattr(module, "store", lambda *a: (dies(*a), real(*a)))
    with pytest.raises(KeyboardInterrupt):
        ingest(tmp_path, foreign)
    assert Episode.objects.count() == 512
    monkeypatch.setattr(module, "store", real)
    assert ingest(tmp_path, foreign).episodes == 88
    assert sorted(Episode.objects.values_list("line", flat=True)) == list(range(600))


def ids() -> dict[int, int]:
    return dict(Episode.objects.values_list("line", "pk"))


def found(words: str) -> list[int]:
    """The lines in which a search finds the words, newest first."""
    filter_ = EpisodeFilter({"q": words})
    return [row.line for row in search(filter_, Order(), wanted=50).rows]


@pytest.mark.parametrize("count", [40, 512])
def test_a_rebuild_keeps_ids_and_replays_and_finds_each_episode_once(
    foreign: Experiment, tmp_path: Path, count: int
) -> None:
    file = tmp_path / "traces.jsonl"
    append_jsonl(file, some(count))
    ingest(file, foreign)
    before, alone = ids(), rows()
    played = Replay.objects.create(episode_id=before[7], checkpoint="start/checkpoint", n=1)
    Episode.objects.filter(pk=before[7]).update(turns=99)
    for _ in range(2):
        assert ingest(file, foreign, rebuild=True).episodes == count
    assert (ids(), rows()) == (before, alone)
    assert list(Replay.objects.all()) == [played]
    assert found("needle-00007") == [7] and len(found("needle")) == min(count, 50)


def test_a_file_that_began_anew_keeps_the_episodes_that_are_still_there(
    foreign: Experiment, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "traces.jsonl"
    made = some(600)
    append_jsonl(file, made)
    ingest(file, foreign)
    before = ids()
    for line in (3, 5, 599):
        Replay.objects.create(episode_id=before[line], checkpoint="start/checkpoint", n=1)
    other = some(1, seed=9)[0] | {"episode_id": "another"}
    file.unlink()
    append_jsonl(file, [*made[:5], other, *made[6:512]])
    ingest(file, foreign)
    after = ids()
    assert sorted(after) == list(range(512)) and after[5] > max(before.values())
    assert all(after[line] == before[line] for line in after if line != 5)
    assert list(Replay.objects.values_list("episode__line", flat=True)) == [3]
    assert caplog.text.count("is gone, and with it the replay") == 2  # never silently
    assert found("needle-00005") == [] and found("needle-00000") == [5, 0]
    assert found("needle-00006") == [6] and found("needle-00550") == []


def test_a_kill_while_a_file_is_taken_anew_loses_no_id(
    foreign: Experiment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    append_jsonl(tmp_path / "traces.jsonl", some(1100))
    ingest(tmp_path, foreign)
    before, real, calls = ids(), module.store, []

    def dies(*arguments: Any) -> None:
        calls.append(arguments)
        if len(calls) == 2:
            raise KeyboardInterrupt
        real(*arguments)

    monkeypatch.setattr(module, "store", dies)
    with pytest.raises(KeyboardInterrupt):
        ingest(tmp_path, foreign, rebuild=True)
    monkeypatch.setattr(module, "store", real)
    assert ingest(tmp_path, foreign).episodes == 588
    assert ids() == before
