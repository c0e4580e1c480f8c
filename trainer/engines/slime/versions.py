"""The versions that were tested together, and what is installed here.

The same table stands in ``docs/en/gpu-host.md``; a test compares the two. An untested version is a
warning, not a refusal: the contract tests are what decides.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import metadata, util
from pathlib import Path

from trainer.engines.slime.checks import Check, failed, passed, require, skipped, warning
from trainer.engines.slime.source import SlimeSource

#: commit (date, version) on which the contract tests pass
SLIME_COMMITS: Mapping[str, str] = {
    "624b824a898ab0ec1fcb4d373004c7f3852bf515": "2026-08-21, 0.3.1",
    "243773cfdfe6413f1d0d7693b217c9e1d88ecdbc": "2026-06-17, 0.3.0",
    "6961f5970e9dbb4716a10ba4a54a28fa3876d274": "2026-05-21, 0.2.4",
}


@dataclass(frozen=True, slots=True)
class Tested:
    """A package of the GPU host: ``versions`` that were tried, and where."""

    package: str
    versions: tuple[str, ...]
    where: str


TESTED = (
    Tested("sglang", ("0.5.15.post1",), "one H200, CPU engine; slime's image pins it"),
    Tested("sglang-router", ("0.3.2",), "one H200, with router_policy: manual"),
    Tested("ray", ("2.55.1",), "one H200, local cluster on CPU"),
    Tested("torch", ("2.11.0", "2.13.0"), "2.11.0 is what sglang 0.5.15.post1 wants"),
    Tested("megatron-core", ("0.16.1", "0.19.2"), "forward and backward on CPU"),
    Tested("wandb", ("0.31.0",), "offline mode"),
)


def installed(package: str) -> str | None:
    """The installed version without its local build tag, or None."""
    try:
        return metadata.version(package).partition("+")[0]
    except metadata.PackageNotFoundError:
        return None


def version_checks(source: SlimeSource | None) -> Iterator[Check]:
    """Installed versions and the slime checkout against the tested matrix."""
    for item in TESTED:
        found = installed(item.package)
        name = f"versions.{item.package}"
        tested = ", ".join(item.versions)
        if found is None:
            yield skipped(name, f"not installed here; tested: {tested}", "needed on GPU hosts only")
        elif found in item.versions:
            yield passed(name, f"{found} ({item.where})")
        else:
            yield warning(name, f"{found}; tested: {tested}", "run the contract tests with it")
    if installed("slime") is not None and source is None:
        yield failed(
            "versions.slime",
            "the package called slime on PyPI is an unrelated project",
            "uninstall it and install slime from its repository",
        )
    if source is not None:
        yield _slime(source)


def router_check(policy: str) -> Check:
    """Whether the installed router knows a launch's policy: slime's build of it has more of them
    than the package on PyPI, and slime ends at its arguments without it."""
    found = util.find_spec("sglang_router")  # imports nothing
    if found is None or not found.submodule_search_locations:
        return skipped(
            "versions.router_policy", "no router installed here", "needed on GPU hosts only"
        )
    arguments = Path(found.submodule_search_locations[0]) / "router_args.py"
    return require(
        "versions.router_policy",
        f'"{policy}"' in arguments.read_text(encoding="utf-8"),
        f"{policy}, sglang-router {installed('sglang-router')}",
        "set engines.router_policy: manual in the launch file, or install slime's build of the "
        "router, which its Dockerfile names",
    )


def _slime(source: SlimeSource) -> Check:
    commit = source.commit
    if commit is not None and commit in SLIME_COMMITS:
        return passed("versions.slime", f"{commit[:12]} ({SLIME_COMMITS[commit]})")
    return warning(
        "versions.slime",
        f"commit {commit or 'unknown'}, version {source.version}; "
        f"tested: {', '.join(key[:12] for key in SLIME_COMMITS)}",
        "run the contract tests: SLIME_SRC=<checkout> python -m pytest tests/contracts",
    )
