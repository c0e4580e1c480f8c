"""The export of a comparison: one page in each language, its data and the outcomes behind it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from django.conf import settings

from intraskill_web.core.po import compile_stale
from intraskill_web.experiments.models import Experiment
from intraskill_web.reports.site.comparison import comparison
from jobs.reports import build, placing, tables
from jobs.reports.library import dumps
from jobs.reports.manifest import NAME, manifest_bytes
from jobs.reports.pages import languages_named, render
from trainer.analysis import Material, read_material
from trainer.analysis.several import compare_runs
from trainer.analysis.several_schema import Comparison
from trainer.canonical import fingerprint

DOCUMENT = "data/comparison.json"


def export_comparison(
    experiments: Sequence[Experiment],
    out: Path,
    *,
    languages: Sequence[str] = ("en", "zh"),
    archive: bool = False,
    force: bool = False,
    tell: build.Tell = lambda done, total, message: None,
) -> placing.Exported:
    """Write the comparison of experiments to ``out``. Raises InputError as ``export_report``."""
    began = time.monotonic()
    chosen = languages_named(languages)
    placing.refuse_overwriting(out, force)
    compile_stale(Path(folder) for folder in settings.LOCALE_PATHS)
    total = len(experiments) + 2
    materials = []
    for place, experiment in enumerate(experiments):
        tell(place, total, experiment.name)
        materials.append(read_material(experiment.folder, experiment.name))
    found = compare_runs(materials)
    tell(total - 2, total, "pages")
    files = _data(found, materials)
    versions = build.versions()
    names = [each.name for each in experiments]
    facts = {"name": " ".join(names), "version": versions["intraskill"],
             "commit": versions.get("commit", "")}  # fmt: skip
    made = render(lambda: [comparison(found)], chosen, facts, title=None)
    files |= {path: html.encode() for path, html in made}
    files |= build.assets(with_plotly=False)
    files |= build.publishing(", ".join(names))
    head = {
        "experiment": "",
        "experiments": names,
        "kind": "comparison",
        "languages": [each.key for each in chosen],
        "commit": versions.get("commit", ""),
        "versions": {k: v for k, v in versions.items() if k != "commit"},
        "settings_sha256": fingerprint(found.settings),
        "counts": {"runs": len(found.runs), "arms": len(found.settings),
                   "run_pairs": len(found.run_pairs), "seed_pairs": len(found.seed_pairs)},
    }  # fmt: skip
    files[NAME] = manifest_bytes(head, files)
    tell(total - 1, total, "files")
    return placing.finish(out, files, archive=archive, began=began)


def _data(found: Comparison, materials: Sequence[Material]) -> dict[str, bytes]:
    files = {
        DOCUMENT: dumps(found.model_dump(mode="json")).encode(),
        "data/comparison.schema.json": dumps(Comparison.model_json_schema()).encode(),
    }
    for name, rows in _tables(found, materials).items():
        if rows:
            data = tables.frame(rows)
            files[f"data/{name}.csv"] = tables.csv_bytes(data)
            files[f"data/parquet/{name}.parquet"] = tables.parquet_bytes(data)
    return files


def _tables(found: Comparison, materials: Sequence[Material]) -> dict[str, list[dict[str, Any]]]:
    outcomes = [
        {"run": m.analysis.name, "split": split, "condition": condition, "task_id": task,
         **{name: float(values[i]) for name, values in sorted(arm.values.items())
            if name in ("reward", "r_success")}}
        for m in materials
        for split, arms in m.outcomes.items()
        for condition, arm in arms.items()
        for i, task in enumerate(arm.task_ids)
    ]  # fmt: skip
    return {
        "runs": [
            {**run.model_dump(exclude={"figures"}),
             **{key: figure.value for key, figure in run.figures.items()}}
            for run in found.runs
        ],
        "arms": [
            tables.flat({**row.model_dump(), "runs": " ".join(row.runs)}) for row in found.arms
        ],
        "seed_pairs": [
            tables.flat({**row.model_dump(), "seeds": " ".join(map(str, row.seeds))})
            for row in found.seed_pairs
        ],
        "run_pairs": [
            {"pair": pair.contrast.name, "split": pair.contrast.split,
             "condition": pair.condition, "p_holm_all": pair.p_holm.get(d.metric),
             **tables.flat(d.model_dump())}
            for pair in found.run_pairs
            for d in pair.contrast.differences
        ],
        "outcomes": outcomes,
    }  # fmt: skip
