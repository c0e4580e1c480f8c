"""Words that come from elsewhere are in the reader's language: trainer, queue, gate, records."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from django.conf import settings
from django.template.loader import render_to_string
from django.test import Client
from django.utils.translation import override

from intraskill_web.configs.models import ConfigRevision
from intraskill_web.core.labels import GATE_STATES, WORKER_STATES, word
from intraskill_web.core.tables import Column
from intraskill_web.episodes.counting import Counted
from intraskill_web.episodes.facets import FacetBar, FacetValue
from intraskill_web.experiments.models import Experiment
from intraskill_web.experiments.states import STAGE_LABELS
from intraskill_web.ledger.cards import STATUSES
from intraskill_web.monitoring.preflight.items import Item
from intraskill_web.monitoring.preflight.words import KNOWN, TO_DO, WRONG, worded
from trainer.errors import InputError

TRAINER = Path(settings.BASE_DIR) / "trainer"
CHECKS = TRAINER / "preflight" / "checks.py"
READERS = (TRAINER / "skills" / "bank.py", TRAINER / "shop" / "world.py")


def sentences() -> list[str]:
    """What the trainer's checks say they found, with 7 for every value."""
    found = []
    for node in ast.walk(ast.parse(CHECKS.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Return) and node.value is not None:
            for part in (node.value, *ast.walk(node.value)):
                if isinstance(part, ast.JoinedStr):
                    found.append("".join(_piece(value) for value in part.values))
                    break
                if isinstance(part, ast.Constant) and " " in str(part.value):
                    found.append(str(part.value))
                    break
    return found


def _piece(value: ast.expr) -> str:
    return str(value.value) if isinstance(value, ast.Constant) else "7"


def test_every_finding_of_the_trainers_checks_is_known() -> None:
    said = [text for text in sentences() if text.strip("7, ")]
    assert len(said) > 12
    unknown = [text for text in said if not any(p.fullmatch(text) for p, _words in KNOWN)]
    assert unknown == []


def refusals() -> tuple[set[str], set[str]]:
    """What the checks and what they read with refuse, and the remedies, with 7 for every value."""
    faults, remedies = set(), set()
    for file in (CHECKS, *READERS):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "InputError":
                faults.add(_text(node.args[0]))
                remedies |= {_text(k.value) for k in node.keywords if k.arg == "remedy"}
    return faults, remedies


def _text(value: ast.expr) -> str:
    parts = value.values if isinstance(value, ast.JoinedStr) else [value]
    return "".join(map(_piece, parts))


def test_every_refusal_of_the_trainers_checks_is_known_with_its_remedy() -> None:
    faults, remedies = refusals()
    assert len(faults) > 15 and len(remedies) > 10
    assert [text for text in faults if not any(p.fullmatch(text) for p, _w in WRONG)] == []
    assert [text for text in remedies if not any(p.fullmatch(text) for p, _w in TO_DO)] == []


def test_a_refusal_is_worded_with_file_field_and_value() -> None:
    error = InputError(
        "the checkpoint was made for another catalogue than abc", file="start/c.json",
        field="catalogue_sha256", value="d: (found e)",
        remedy="Use the checkpoint that belongs to this world",
    )  # fmt: skip
    item = Item("checkpoint", "failed", str(error), str(error.remedy))
    assert f"{item.found}. {item.to_do}" == str(error), "nothing is lost"
    with override("zh-hans"):
        assert item.found == (
            "start/c.json: catalogue_sha256: 检查点属于另一商品目录，而非 abc"
            "（实际为 'd: (found e)'）"
        )
        assert item.to_do == "使用属于此世界的检查点"
        assert worded("x/bank.json: no such file") == "x/bank.json: 没有此文件"
        assert worded("not checked: needs the world") == "未检查：需要商店世界"


@pytest.mark.parametrize(
    ("said", "chinese"),
    [
        ("3726 train, 1600 val, 400 test", "训练 3726，验证 1600，测试 400"),
        ("bound to this catalogue, start-0", "属于该商品目录，start-0"),
        ("gpt at http://127.0.0.1:9", "http://127.0.0.1:9 上的 gpt"),
        ("something new in 5 % of cases", "something new in 5 % of cases"),
    ],
)
def test_findings_are_worded_where_they_are_shown_and_kept_as_they_were_said(
    said: str, chinese: str
) -> None:
    with override("zh-hans"):
        item = Item("splits", "passed", said)
        assert item.found == worded(said) == chinese
        assert item.data()["detail"] == said


def test_states_arms_and_stages_have_chinese_words() -> None:
    with override("zh-hans"):
        assert [word(WORKER_STATES, s) for s in ("busy", "idle")] == ["工作中", "空闲"]
        assert word(GATE_STATES, "complete") == "已完成"
        assert Column("contrast", "", "arms").show("full \u2212 bare") == "全部技能 \u2212 裸"
        assert str(STAGE_LABELS["analyse"]) == "失败分析"
        assert str(STATUSES["ANALYST_ERROR"]) == "分析失败"


def test_the_reason_of_a_configuration_that_nobody_wrote_down_is_worded(db: None) -> None:
    mine = ConfigRevision(reason="As experiment mine began")
    typed = ConfigRevision(reason="As experiment")
    assert mine.why == "As experiment mine began"
    with override("zh-hans"):
        assert mine.why == "实验 mine 开始时的配置"
        assert typed.why == "As experiment"


def test_facets_of_a_long_list_say_above_all_of_them_what_they_count(db: None) -> None:
    counting = Counted(2001, capped=False, facets={}, sampled=True)
    bars = [FacetBar("outcome", [FacetValue("success", 7, "outcome=success")], 0)]
    shown = {"counted": counting, "bars": bars, "facet_limit": 2000}
    text = render_to_string("episodes/_facets.html", shown)
    assert text.index("counted among the newest 2,000 episodes of this list") < text.index("<b>")
    whole = Counted(2, capped=False, facets={})
    assert "newest" not in render_to_string("episodes/_facets.html", shown | {"counted": whole})


def test_the_name_of_a_sweep_says_what_it_may_hold(db: None, operator_client: Client) -> None:
    text = operator_client.get("/sweeps/").content.decode()
    assert text.count("Letters, digits, - and _, at most 40") == 2  # help, and the refusal's words


@pytest.mark.parametrize(
    ("path", "there", "not_there"),
    [
        ("/episodes/behaviour/", "按", "作者"),
        ("/experiments/mine/evaluations/", "", "计算</button>"),
        ("/reports/", "在上方选择实验并比较", "从运行"),
    ],
)
def test_pages_say_what_is_meant(
    db: None, operator_client: Client, path: str, there: str, not_there: str
) -> None:
    Experiment.objects.create(name="mine", rounds_planned=2)
    answer = operator_client.get(path, headers={"Accept-Language": "zh-CN"})
    assert answer.status_code == 200
    text = answer.content.decode()
    assert there in text and not_there not in text
