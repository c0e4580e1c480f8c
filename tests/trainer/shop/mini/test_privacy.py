"""What a chunk is good for stays unknown to everything that trains, judges or shows it."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from trainer.shop.mini.habits import HABITS, HASTE, INERT

ROOT = Path(__file__).resolve().parents[4]
SECRET = re.compile(r"mini[./ ](import )?\(?(habits|demonstrator|episodes|generate)\b")
#: what makes demonstrations, and the analyst, which looks for missing habits by acting them out
MAY_KNOW = (
    "trainer/shop/mini/",
    "trainer/engines/local/demonstrations.py",
    "trainer/engines/local/feed.py",
    "trainer/engines/local/warm_start.py",
    "trainer/analyst/",
)


def sources() -> list[Path]:
    folders = ("trainer", "jobs", "intraskill_web")
    return [
        path
        for folder in folders
        for path in (ROOT / folder).rglob("*.py")
        if not str(path.relative_to(ROOT)).startswith(MAY_KNOW)
    ]


def test_nothing_else_reads_the_demonstrator_or_its_habits() -> None:
    assert len(sources()) > 50
    for path in sources():
        assert not SECRET.search(path.read_text(encoding="utf-8")), path


def test_no_other_source_holds_a_sentence_of_the_bank() -> None:
    sentences = [text for habit in HABITS for text in (*habit.firm, *habit.vague)]
    for path in sources():
        text = path.read_text(encoding="utf-8")
        assert not [sentence for sentence in (*sentences, *INERT, *HASTE) if sentence in text], path


def test_opening_the_world_and_the_policy_does_not_load_the_habits() -> None:
    program = """
import sys
import trainer.engines.local.engine, trainer.gate.run, trainer.grpo.loop
from trainer.shop.world import load_world
load_world("mini")
print([name for name in sys.modules if name.startswith("trainer.shop.mini.")])
"""
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert "trainer.shop.mini.language" in done.stdout
    assert "habits" not in done.stdout
    assert "demonstrator" not in done.stdout
