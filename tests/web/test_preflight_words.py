"""What the checks of both engines say is worded: of a slime launch, and in refusals and holds."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import pytest
from django.conf import settings
from django.test import Client
from django.utils.translation import override

from intraskill_web.experiments.models import Experiment
from intraskill_web.monitoring.preflight.items import Item, item_of
from intraskill_web.monitoring.preflight.red import refusal, worded_refusal
from intraskill_web.monitoring.preflight.words import KNOWN, TO_DO, WRONG
from tests.trainer.engines_slime.launch_files import make_launch, write_hooks
from tests.web.factories import Made
from trainer.engines.slime.preflight import check_slime
from trainer.engines.slime.variables import variables

TRAINER = Path(settings.BASE_DIR) / "trainer"
SLIME = TRAINER / "engines" / "slime"
CHECKS = ("refusals", "preflight", "preflight_inputs", "versions", "experiment_checks")
# what raises while something is checked, by functions
READERS = {
    SLIME / "checkpoints.py": {"latest_iteration", "first_step"},
    SLIME / "settings.py": {"environment_token"},
    SLIME / "experiment.py": {"_require_file", "require_weights"},
    SLIME / "command.py": {"model_arguments"},
    SLIME / "shops.py": {"check_wanted"},
    TRAINER / "shop" / "identity.py": {"check_served"},
    TRAINER / "grpo" / "tasks.py": {"read_split", "read_task_data", "_task_of_line"},
    TRAINER / "config_files.py": {"read_yaml"},
}
MAKERS = {"passed": (1,), "failed": (1, 2), "warning": (1, 2), "skipped": (1, 2), "require": (2, 3)}
CJK = re.compile("[\u4e00-\u9fff]")
Names = dict[str, ast.expr]


def texts(node: ast.expr, names: Names) -> list[str]:
    """Every text that an expression may be, with 7 for each value."""
    if isinstance(node, ast.Constant):
        return [str(node.value)]
    if isinstance(node, ast.JoinedStr):
        parts = [v.value if isinstance(v, ast.FormattedValue) else v for v in node.values]
        return ["".join(found) for found in product(*(texts(part, names) for part in parts))]
    if isinstance(node, ast.IfExp):
        return texts(node.body, names) + texts(node.orelse, names)
    if isinstance(node, ast.BoolOp):
        return [text for value in node.values for text in texts(value, names)]
    if isinstance(node, ast.BinOp):
        return [a + b for a in texts(node.left, names) for b in texts(node.right, names)]
    given = names.get(node.id) if isinstance(node, ast.Name) else None
    return texts(given, {}) if given else ["7"]


def functions(file: Path) -> Iterator[tuple[ast.FunctionDef, Names]]:
    """The functions of a file, and what their names are given."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef):
            given = [a for a in ast.walk(node) if isinstance(a, ast.Assign)]
            yield node, {t.id: a.value for a in given for t in a.targets if isinstance(t, ast.Name)}


def said() -> tuple[set[str], set[str], set[str]]:
    """Findings, refusals and remedies of a slime launch."""
    findings, faults, remedies = set[str](), set[str](), set[str]()
    for file in (*(SLIME / f"{name}.py" for name in CHECKS), *READERS):
        for function, names in functions(file):
            if function.name not in READERS.get(file, {function.name}):
                continue
            for node in ast.walk(function):
                if isinstance(node, ast.Tuple) and len(node.elts) == 3:  # a wanted file
                    name, _path, remedy = (texts(part, {}) for part in node.elts)
                    remedies |= set(remedy) if name[0].startswith("files.") else set()
                if not isinstance(node, ast.Call):
                    continue
                maker = getattr(node.func, "id", "")
                if maker in MAKERS:
                    found = [set(texts(node.args[at], names)) for at in MAKERS[maker]]
                    findings |= found[0]
                    remedies |= found[1] if found[1:] else set()
                elif maker in ("InputError", "OtherEnvironment"):
                    faults |= set(texts(node.args[0], names))
                    told = [k.value for k in node.keywords if k.arg == "remedy"]
                    remedies |= {text for value in told for text in texts(value, names)}
    values = re.compile(r"[7 :()]*|7/healthz: 7")  # "7: 7" and "7 (7)" hold values only
    left = [{t for t in found if not values.fullmatch(t)} for found in (findings, faults, remedies)]
    return left[0], left[1], left[2]


def test_every_sentence_of_a_slime_launch_is_known() -> None:
    findings, faults, remedies = said()
    assert len(findings) > 50 and len(faults) > 20 and len(remedies) > 50
    assert [text for text in findings if not any(p.fullmatch(text) for p, _ in KNOWN)] == []
    wrong = [text for text in findings | faults if not any(p.fullmatch(text) for p, _ in WRONG)]
    assert wrong == []
    fields = {item.name: item.field for item in variables()}
    named = {re.sub(r"\b[A-Z][A-Z_]+\b", lambda w: fields.get(w[0], w[0]), r) for r in remedies}
    assert [t for t in remedies | named if not any(p.fullmatch(t) for p, _ in TO_DO)] == []


def test_a_launch_file_is_checked_in_the_readers_language(tmp_path: Path) -> None:
    path = make_launch(tmp_path, batch={"global_batch_size": 48}, sampling={"top_p": 0.9})
    write_hooks(tmp_path, shopsim_skillbank_path="gone.json")
    items = [item_of(check) for check in check_slime(path, {"NUM_GPUS": "3"})["checks"]]
    assert {"batch.updates", "gpus.trainer_tp", "inputs.skillbank"} <= {
        item.name for item in items if item.red
    }
    english = {item.name: (item.found, item.to_do) for item in items}
    with override("zh-hans"):
        chinese = {item.name: (item.found, item.to_do) for item in items}
    values = re.compile(r"[\w./:{}-]*|[\d.]+ \(.*\)|--\S+ \S+")  # a path, a version, a flag
    left = [n for n, (found, _) in english.items() if not values.fullmatch(found)]
    assert [chinese[n] for n in left if not CJK.search(chinese[n][0])] == []
    to_do = [chinese[name][1] for name, (_, do) in english.items() if do]
    assert [text for text in to_do if not CJK.search(text)] == []
    assert {n: text for n, text in english.items() if CJK.search("".join(text))} == {}


RED = [
    Item(
        "checkpoint", "failed", "c.json: no such file. Free at least 3 GiB", "Free at least 3 GiB"
    ),
    Item("batch.wave", "failed", "batch.wave: 2 groups per wave, 4 kept", "choose one of the two"),
]


@pytest.mark.parametrize("made", [str, lambda error: f"{error.reason}. {error.remedy}"])
def test_the_refusal_of_a_red_preflight_is_worded_from_what_was_kept(made: type[str]) -> None:
    text = made(refusal(RED, 3))
    assert worded_refusal(text) == (
        "the preflight is red: Checkpoint: c.json: no such file (and 1 more). Free at least 3 GiB"
    )
    with override("zh-hans"):
        assert worded_refusal(text) == (
            "预检未通过：检查点：c.json: 没有此文件（另有 1 项）。至少腾出 3 GiB"
        )
        assert worded_refusal(made(refusal(RED[1:], 0))) == (
            "预检未通过：batch.wave：每波 2 组，保留 4 组。二者选一"
        )
        assert worded_refusal("the round could not begin: x") == "the round could not begin: x"
        assert worded_refusal("the preflight is red: disk: new. It is. So") == (
            "预检未通过：磁盘空间：new. It is. So"
        )


@pytest.mark.parametrize("language", ["en", "zh-hans"])
def test_holds_and_toasts_of_a_red_preflight_are_in_the_readers_language(
    made: Made, operator_client: Client, monkeypatch: pytest.MonkeyPatch, language: str
) -> None:
    reason = str(refusal(RED, 2))
    Experiment.objects.filter(pk=made.experiment.pk).update(hold_reason=reason)
    operator_client.cookies["django_language"] = language
    words = {"en": "no such file (and 1 more)", "zh-hans": "没有此文件（另有 1 项）"}[language]
    assert words in operator_client.get("/experiments/demo/").content.decode()

    def red(*_: object) -> None:
        raise refusal(RED, 2)

    monkeypatch.setattr("intraskill_web.experiments.views.perform", red)
    Experiment.objects.filter(pk=made.experiment.pk).update(hold_reason="")
    toast = operator_client.post("/experiments/demo/actions/start/", follow=True)
    assert words in toast.content.decode()
