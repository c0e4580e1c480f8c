"""The thread count is chosen by timing, can be forced, and is what torch then uses."""

from __future__ import annotations

import os

import pytest
import torch

from trainer.engines.local import threads
from trainer.engines.local.threads import ThreadChoice, best, probe, use_threads
from trainer.errors import InputError


@pytest.mark.parametrize(
    ("milliseconds", "expected"),
    [
        ({1: 10.0, 2: 6.0}, 2),
        ({1: 10.0, 2: 7.0}, 1),  # not worth the risk of a barrier that waits
        ({1: 10.0, 2: 300.0}, 1),
        ({1: 10.0}, 1),
    ],
)
def test_more_threads_must_be_clearly_faster(milliseconds: dict[int, float], expected: int) -> None:
    assert best(milliseconds) == expected


def test_a_forced_count_is_used_and_not_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    monkeypatch.setattr(threads, "probe", lambda: pytest.fail("timed although it was given"))
    assert use_threads(1) == ThreadChoice(1, {})
    assert torch.get_num_threads() == 1
    assert os.environ["OMP_NUM_THREADS"] == "1"
    with pytest.raises(InputError, match="at least 1"):
        use_threads(0)


def test_one_core_leaves_nothing_to_choose(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "cores", lambda: 1)
    assert probe() == ThreadChoice(1, {})


def test_the_timing_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "cores", lambda: 8)
    monkeypatch.setattr(threads, "_one_pass", lambda model: 10.0 / torch.get_num_threads())
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    assert use_threads() == ThreadChoice(2, {1: 10.0, 2: 5.0})
    assert torch.get_num_threads() == 2
