"""Export: everything is made in memory, checked for private values, and put in place at once.

The same input gives the same bytes: nothing in an export knows the time, the machine or its place.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from django.conf import settings

from intraskill_web.core.finders import plotly_folder
from intraskill_web.core.po import compile_stale
from intraskill_web.experiments.models import Experiment
from intraskill_web.reports.site.conduct import behaviour_data
from intraskill_web.reports.site.curves import curves_data
from intraskill_web.reports.site.inputs import Inputs
from jobs.environment import snapshot, version_of
from jobs.reports import tables
from jobs.reports.library import dumps, gate_numbers, library
from jobs.reports.manifest import NAME, manifest_bytes
from jobs.reports.pages import languages_named, pages
from jobs.reports.placing import Exported, finish, refuse_overwriting
from jobs.reports.samples import samples
from trainer.analysis import Analysis, Material, read_material
from trainer.canonical import canonical_json, fingerprint
from trainer.errors import InputError

STATIC = Path("static")
STYLES = ("tokens", "base", "components", "charts", "pages")
SCRIPTS = ("report.js", "curves.js", "behaviour.js", "library.js")
PACKAGES = ("django", "numpy", "pandas", "plotly", "pyarrow", "pydantic", "scipy", "statsmodels")
PARTS = ("analysis", "library", "tables", "pages", "files")
Tell = Callable[[int, int, str], None]


def export_report(
    experiment: Experiment,
    out: Path,
    *,
    languages: Sequence[str] = ("en", "zh"),
    archive: bool = False,
    force: bool = False,
    tell: Tell = lambda done, total, message: None,
) -> Exported:
    """Write the report of an experiment to ``out``.

    Raises InputError when ``out`` exists (unless ``force`` and it holds an export), when a language
    is unknown, or when the run folder is damaged. ``tell`` hears (done, total, what).
    """
    began = time.monotonic()
    chosen = languages_named(languages)
    refuse_overwriting(out, force)
    compile_stale(Path(folder) for folder in settings.LOCALE_PATHS)
    tell(0, len(PARTS), PARTS[0])
    material = read_material(experiment.folder, experiment.name)
    found = material.analysis
    tell(1, len(PARTS), PARTS[1])
    shelf = library(experiment.folder, found.kind)
    files: dict[str, bytes] = {d.href: d.text.encode() for d in shelf}
    files |= {
        name: (canonical_json(document) + "\n").encode()
        for name, document in gate_numbers(experiment.folder, found.kind)
    }
    tell(2, len(PARTS), PARTS[2])
    files |= _data(material)
    tell(3, len(PARTS), PARTS[3])
    made_with = versions()
    inputs = Inputs.of(
        experiment,
        material,
        library=shelf,
        samples=samples(experiment.folder, material) if found.kind == "own" else [],
        downloads=[(n, len(d)) for n, d in sorted(files.items())
                   if not n.startswith("data/library/") and not n.endswith(".js")],
        versions=made_with,
    )  # fmt: skip
    facts = {"name": experiment.name, "version": made_with["intraskill"],
             "commit": made_with.get("commit", "")}  # fmt: skip
    made = {path: html.encode() for path, html in pages(inputs, chosen, facts)}
    files |= made
    files |= assets(with_plotly=any(b"plotly.min.js" in html for html in made.values()))
    files |= publishing(inputs.title)
    tell(4, len(PARTS), PARTS[4])
    head = _head(experiment, found, [each.key for each in chosen], made_with, len(made))
    files[NAME] = manifest_bytes(head, files)
    made_here = finish(out, files, archive=archive, began=began)
    tell(5, len(PARTS), "")
    return made_here


def _data(material: Material) -> dict[str, bytes]:
    found = material.analysis
    files = {
        "data/analysis.json": dumps(found.model_dump(mode="json")).encode(),
        "data/analysis.schema.json": dumps(Analysis.model_json_schema()).encode(),
    }
    for name, rows in tables.tables(material).items():
        data = tables.frame(rows)
        files[f"data/{name}.csv"] = tables.csv_bytes(data)
        files[f"data/parquet/{name}.parquet"] = tables.parquet_bytes(data)
    curves, behaviour = curves_data(found), behaviour_data(found)
    if curves:
        files["data/curves.js"] = _script("reportCurves", curves)
    if behaviour:
        files["data/behaviour.js"] = _script("reportBehaviour", behaviour)
    return files


def _script(name: str, value: Any) -> bytes:
    """Data as a script: a page opened from disk may load it, and may not read a JSON file."""
    text = canonical_json(value).replace("<", "\\u003c")
    return f"window.{name} = {text};\n".encode()


def assets(*, with_plotly: bool) -> dict[str, bytes]:
    """Styles, scripts, icon and, once, plotly."""
    base = Path(settings.BASE_DIR) / STATIC
    styles = [base / "intraskill" / "css" / f"{name}.css" for name in STYLES]
    styles.append(base / "reports" / "report.css")
    files = {
        "assets/report.css": b"\n".join(path.read_bytes() for path in styles),
        "assets/favicon.svg": (base / "intraskill" / "favicon.svg").read_bytes(),
    }
    files |= {f"assets/{n}": (base / "reports" / n).read_bytes() for n in SCRIPTS}
    if with_plotly:
        folder = plotly_folder()
        if folder is None:
            raise InputError("plotly is not installed", remedy="pip install plotly")
        files["assets/plotly.min.js"] = (folder / "plotly.min.js").read_bytes()
    return files


def publishing(title: str) -> dict[str, bytes]:
    """A workflow that publishes the folder as GitHub Pages, and a word to who finds the folder."""
    base = Path(settings.BASE_DIR) / STATIC / "reports"
    readme = (base / "README.md").read_text(encoding="utf-8").replace("TITLE", title)
    return {
        ".github/workflows/pages.yml": (base / "pages.yml").read_bytes(),
        ".nojekyll": b"",
        "README.md": readme.encode(),
    }


def versions() -> dict[str, str]:
    """The software that made an export: package → version, and the commit."""
    known = snapshot()
    found = {"intraskill": version_of("intraskill") or "0.1.0", "python": str(known["python"])}
    if known["commit"]:
        found["commit"] = str(known["commit"])
    return found | {name: v for name in PACKAGES if (v := version_of(name))}


def _head(
    experiment: Experiment,
    found: Analysis,
    languages: Sequence[str],
    made_with: Mapping[str, str],
    page_count: int,
) -> dict[str, Any]:
    return {
        "experiment": experiment.name,
        "kind": found.kind,
        "languages": list(languages),
        "commit": made_with.get("commit", ""),
        "versions": {k: v for k, v in made_with.items() if k != "commit"},
        "settings_sha256": fingerprint(found.settings),
        "sources_sha256": fingerprint(found.sources),
        "counts": {
            "pages": page_count,
            "rounds": len(found.rounds),
            "gates": len(found.gates),
            "coefficients": len(found.coefficients),
            "skill_versions": len(found.banks),
            "candidates": len(found.candidates),
            "training_steps": len(found.training.rows),
            "updates": len(found.updates.rows),
            "arms": sum(len(test.arms) for test in found.tests),
            "cohorts": len(found.cohorts),
            "cases": len(found.cases),
            "missing": len(found.missing),
        },
    }
