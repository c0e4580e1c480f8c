"""Exports: whole, the same each time, private values left out, and every changed byte found."""

from __future__ import annotations

import json
import random
import shutil
import zipfile
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from django.core.management import call_command
from django.db import transaction
from django.test import override_settings

from intraskill_web.core.models import AuditEvent
from intraskill_web.experiments.models import Experiment
from jobs.imports.run import import_run
from jobs.reports.build import export_report
from jobs.reports.check import check_report
from jobs.reports.manifest import NAME, files_of
from tests.web.report_run import CANARIES, write_run
from trainer.analysis import Analysis
from trainer.errors import InputError

pytestmark = pytest.mark.django_db
CHAPTERS = ("index", "method", "protocol", "results", "skills", "behaviour", "optimisation",
            "reproduce", "library", "episodes")  # fmt: skip


@pytest.fixture
def experiment(home: Path) -> Experiment:
    write_run(home / "runs" / "small")
    return Experiment.objects.create(name="small", config={"title": "A small run"})


@pytest.fixture(scope="module")
def exported(
    django_db_setup: None, django_db_blocker: Any, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """The report as it is written, made once."""
    home = tmp_path_factory.mktemp("home")
    write_run(home / "runs" / "small")
    with django_db_blocker.unblock(), transaction.atomic(), override_settings(INTRASKILL_HOME=home):
        experiment = Experiment.objects.create(name="small", config={"title": "A small run"})
        folder = export_report(experiment, home / "site").folder
        transaction.set_rollback(True)
    return folder


@pytest.fixture
def site(exported: Path, tmp_path: Path) -> Path:
    """A copy, to be read or damaged."""
    return shutil.copytree(exported, tmp_path / "site")


def test_every_chapter_is_there_in_both_languages(site: Path) -> None:
    for chapter in CHAPTERS:
        assert (site / f"{chapter}.html").is_file(), chapter
        assert (site / "zh" / f"{chapter}.html").is_file(), chapter
    assert '<html lang="zh-CN">' in (site / "zh/index.html").read_text(encoding="utf-8")


def test_the_table_of_rounds_says_what_brought_the_cards(site: Path) -> None:
    english = (site / "index.html").read_text(encoding="utf-8")
    assert "Analysed because" in english and "retry failed too 1, rarely succeeded 2" in english
    chinese = (site / "zh/index.html").read_text(encoding="utf-8")
    assert "重试也失败 1, 很少成功 2" in chinese
    rounds = (site / "data/rounds.csv").read_text(encoding="utf-8")
    assert "triggered_all_wrong,triggered_low_mean" in rounds


def test_the_check_finds_nothing_and_computes_gates_and_differences_again(site: Path) -> None:
    found = check_report(site)
    assert found["problems"] == []
    assert found["ok"] is True
    assert found["checks"]["gates_refitted"] == 2
    document = json.loads((site / "data/analysis.json").read_bytes())
    assert found["checks"]["coefficients"] == len(document["coefficients"]) >= 6
    assert found["checks"]["contrasts"] == 6  # five on validation, one on the test split
    assert found["checks"]["printed"] == 6


def test_no_private_value_is_in_any_byte(site: Path) -> None:
    for name in [*files_of(site), NAME]:
        data = (site / name).read_bytes()
        if name.endswith(".parquet"):
            data = pd.read_parquet(site / name).to_csv().encode()
        for canary in CANARIES:
            assert canary.encode() not in data, f"{canary} in {name}"


def test_the_canaries_are_really_in_the_run(experiment: Experiment) -> None:
    files = [p for p in experiment.folder.rglob("*") if p.is_file() and p.suffix != ".gz"]
    text = "".join(p.read_text(encoding="utf-8") for p in files)
    assert [c for c in CANARIES if c not in text and c != "canary-error"] == []


def test_the_same_input_gives_the_same_bytes(experiment: Experiment, tmp_path: Path) -> None:
    one = export_report(experiment, tmp_path / "one" / "site", archive=True)
    two = export_report(experiment, tmp_path / "two" / "site", archive=True)
    assert one.manifest_sha256 == two.manifest_sha256
    assert one.zip is not None and two.zip is not None
    assert one.zip.read_bytes() == two.zip.read_bytes()


def test_any_changed_byte_is_found_and_named(site: Path) -> None:
    rng = random.Random(1)
    for name in [*files_of(site), NAME]:
        path = site / name
        data = path.read_bytes()
        if not data:
            path.write_bytes(b"x")
        else:
            at = rng.randrange(len(data))
            path.write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
        found = check_report(site)
        assert not found["ok"], name
        assert name in [problem["file"] for problem in found["problems"]]
        path.write_bytes(data)
    assert check_report(site)["ok"]


def test_added_missing_and_linked_files_are_found(site: Path) -> None:
    (site / "more.html").write_text("<html></html>")
    (site / "data/rounds.csv").rename(site / "data/rounds.bak")
    named = {(p["file"], p["problem"]) for p in check_report(site)["problems"]}
    assert ("more.html", "is not in the manifest") in named
    assert ("data/rounds.csv", "is missing") in named
    (site / "data/rounds.csv").symlink_to(site / "data/rounds.bak")
    named = {(p["file"], p["problem"]) for p in check_report(site)["problems"]}
    assert ("data/rounds.csv", "is a link, not a file") in named


def reseal(site: Path) -> None:
    """Write the manifest anew, as somebody would who covers up a change."""
    from jobs.reports.manifest import manifest_bytes

    former = json.loads((site / NAME).read_bytes())
    head = {
        k: v for k, v in former.items() if k not in ("files", "manifest_sha256", "schema_version")
    }
    files = {name: (site / name).read_bytes() for name in files_of(site)}
    (site / NAME).write_bytes(manifest_bytes(head, files))


def test_a_coefficient_that_was_improved_is_found_behind_a_new_manifest(site: Path) -> None:
    path = site / "data/analysis.json"
    document = json.loads(path.read_bytes())
    document["coefficients"][0]["coefficient"] += 0.01
    path.write_text(json.dumps(document))
    reseal(site)
    problems = check_report(site)["problems"]
    assert [p["file"] for p in problems] == ["data/analysis.json"]
    assert document["coefficients"][0]["intervention_id"] in problems[0]["problem"]


def test_a_difference_that_was_improved_is_found_behind_a_new_manifest(site: Path) -> None:
    path = site / "data/outcomes_test.csv"
    lines = path.read_text().splitlines()
    at = lines[0].split(",").index("reward")
    cells = lines[1].split(",")
    cells[at] = "1.0" if float(cells[at]) < 1 else "0.0"
    path.write_text("\n".join([lines[0], ",".join(cells), *lines[2:]]) + "\n")
    reseal(site)
    problems = [p["problem"] for p in check_report(site)["problems"]]
    assert "final_skill, reward: not what its outcomes give" in problems


def test_broken_pages_are_found_behind_a_new_manifest(site: Path) -> None:
    path = site / "method.html"
    text = path.read_text(encoding="utf-8")
    text = text.replace('href="protocol.html"', 'href="nowhere.html"', 1)
    text = text.replace("</main>", '<img src="assets/favicon.svg"><a href="#lost">x</a>'
                        '<a href="https://example.org/">y</a><i id="main"></i></main>')  # fmt: skip
    path.write_text(text, encoding="utf-8")
    (site / "zh/results.html").unlink()
    reseal(site)
    problems = {(p["file"], p["problem"]) for p in check_report(site)["problems"]}
    assert ("method.html", "leads to nothing: nowhere.html") in problems
    assert ("method.html", "leads to an anchor that is not there: #lost") in problems
    assert ("method.html", "leads to another origin: https://example.org/") in problems
    assert ("method.html", "the id 'main' stands 2 times") in problems
    assert ("method.html", "an image has no alternative text: assets/favicon.svg") in problems
    assert ("zh/results.html", "is missing in zh") in problems


def test_an_export_is_not_overwritten_without_force_and_other_folders_never(
    experiment: Experiment, tmp_path: Path
) -> None:
    out = tmp_path / "site"
    export_report(experiment, out, languages=["en"])
    with pytest.raises(InputError, match="--force"):
        export_report(experiment, out)
    export_report(experiment, out, languages=["zh"], force=True)
    assert '<html lang="zh-CN">' in (out / "index.html").read_text(encoding="utf-8")
    assert not (out / "zh").exists()
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "thesis.tex").write_text("years of work")
    with pytest.raises(InputError, match="is no export"):
        export_report(experiment, mine, force=True)
    assert (mine / "thesis.tex").read_text() == "years of work"


def test_the_first_page_is_small_and_asks_for_nothing_elsewhere(site: Path) -> None:
    class Loads(HTMLParser):
        found: list[str] = []

        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            given = dict(attrs)
            if tag in ("script", "img") and given.get("src"):
                self.found.append(str(given["src"]))
            if tag == "link":
                self.found.append(str(given["href"]))

    page = Loads()
    page.feed((site / "index.html").read_text(encoding="utf-8"))
    assert all("//" not in name and not name.startswith("/") for name in page.found)
    names = [n for n in page.found if not n.endswith("plotly.min.js")]
    weight = sum((site / name).stat().st_size for name in ["index.html", *names])
    assert weight < 1_500_000
    assert list(site.rglob("plotly*.js")) == [site / "assets/plotly.min.js"]


def test_numbers_carry_n_what_they_count_in_and_their_file(site: Path) -> None:
    found = Analysis.model_validate_json((site / "data/analysis.json").read_bytes())
    figures = [f for t in found.tests for a in t.arms for f in a.figures.values()]
    figures += [f for r in found.rounds for f in r.funnel.values()]
    assert len(figures) > 100
    assert all(f.of and f.source and f.n is not None for f in figures)
    assert all((d.n, d.source) for t in found.tests for c in t.contrasts for d in c.differences)


def test_downloads_are_the_same_in_csv_and_parquet(site: Path) -> None:
    csv = pd.read_csv(site / "data/coefficients.csv")
    parquet = pd.read_parquet(site / "data/parquet/coefficients.parquet")
    assert list(csv["coefficient"]) == list(parquet["coefficient"])
    assert len(csv) >= 6


def test_hostile_titles_and_texts_are_escaped_everywhere(home: Path, tmp_path: Path) -> None:
    write_run(home / "runs" / "hostile")
    path = home / "runs/hostile/round-000/skillbank.json"
    bank = json.loads(path.read_bytes())
    bank["skills"][0]["metadata"]["title"] = "</pre><script>alert(1)</script>"
    bank["skills"][0]["content"] = "</pre><img src=x onerror=alert(1)>"
    path.write_text(json.dumps(bank))
    experiment = Experiment.objects.create(name="hostile", config={"title": "<script>t</script>"})
    site = export_report(experiment, tmp_path / "site").folder
    for name in ("index.html", "skills.html", "library.html"):
        text = (site / name).read_text(encoding="utf-8")
        assert "<script>alert" not in text
        assert "<script>t<" not in text
        assert "<img src=x" not in text
    assert check_report(site)["ok"]


def test_the_commands_speak_json_and_leave_a_trail(
    experiment: Experiment, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "site"
    call_command("export_report", "small", out=out, zip=True, json=True)
    made = json.loads(capsys.readouterr().out)
    assert made["files"] == len(files_of(out)) + 1
    assert {"bytes", "manifest_sha256", "seconds"} <= made.keys()
    with zipfile.ZipFile(made["zip"]) as archive:
        assert "site/index.html" in archive.namelist()
    assert AuditEvent.objects.filter(action="report.export", experiment="small").count() == 1
    for path in (out, Path(made["zip"])):
        call_command("check_report", path, json=True)
        assert json.loads(capsys.readouterr().out)["problems"] == []
    (out / "data/rounds.csv").write_text("round\n")
    with pytest.raises(SystemExit) as ended:
        call_command("check_report", out, json=True)
    assert ended.value.code == 1
    assert json.loads(capsys.readouterr().out)["problems"][0]["file"] == "data/rounds.csv"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"name": "nobody"}, "no such experiment"),
        ({"lang": "de"}, "known: en, zh"),
        ({"lang": "en,en"}, "known: en, zh"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(
    experiment: Experiment, tmp_path: Path, capsys: pytest.CaptureFixture[str],
    options: dict[str, Any], said: str,
) -> None:  # fmt: skip
    given = {"name": "small", "lang": "en,zh", **options}
    with pytest.raises(SystemExit) as ended:
        call_command(
            "export_report", given["name"], out=tmp_path / "x", lang=given["lang"], json=True
        )
    assert ended.value.code == 2
    assert said in capsys.readouterr().err
    assert not (tmp_path / "x").exists()


def test_the_published_run_is_exported_with_its_figures(
    published: Path, home: Path, tmp_path: Path
) -> None:
    import_run(published, "published")
    site = export_report(Experiment.objects.get(name="published"), tmp_path / "site").folder
    found = check_report(site)
    assert found["problems"] == []
    assert found["checks"]["contrasts"] == 5
    pages = "".join(
        (site / f"{n}.html").read_text() for n in ("index", "results", "skills", "protocol")
    )
    for figure in ("51.75 %", "54.50 %", "84.25 %", "86.25 %", "712,183", "20,115,784", "0.307893",
                   "[0.259726, 0.35756]", "e-31", "+0.0739", "−0.0557", "20,480", "110,997",
                   "0.765952", "692abcce", "38db2dc5"):  # fmt: skip
        assert figure in pages or figure in (site / "method.html").read_text(), figure
    assert "/root/" not in pages
    assert not (site / "episodes.html").exists()  # its traces were never published
