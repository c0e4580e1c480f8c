"""slime's own plugin-contract tests, with our hooks plugged in."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from tests.contracts.harness import checkout_path

REPOSITORY = Path(__file__).resolve().parents[2]
PLUGGED = {
    "CUSTOM_GENERATE_FUNCTION_PATH": "tests.contracts.plugged.generate",
    "DYNAMIC_SAMPLING_FILTER_PATH": "tests.contracts.plugged.filter_group",
    "ROLLOUT_ALL_SAMPLES_PROCESS_PATH": "tests.contracts.plugged.record_groups",
    "CUSTOM_ROLLOUT_LOG_FUNCTION_PATH": "tests.contracts.plugged.log_rollout",
    "CUSTOM_REWARD_POST_PROCESS_PATH": "tests.contracts.plugged.normalise_rewards",
}
STUBS = """
import importlib.util, sys, types
for name, attributes in {
    "transformers": ("AutoTokenizer", "AutoProcessor", "PreTrainedTokenizerBase", "ProcessorMixin"),
    "sglang_router": (),
}.items():
    if importlib.util.find_spec(name) is None:
        module = types.ModuleType(name)
        module.__version__ = "0.3.2"
        for attribute in attributes:
            setattr(module, attribute, type(attribute, (), {}))
        sys.modules[name] = module
import pytest
raise SystemExit(pytest.main(sys.argv[1:]))
"""


def test_slimes_plugin_contracts_pass_with_our_hooks(tmp_path):
    path = checkout_path()
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(path), str(path / "tests"), str(REPOSITORY)]),
        "PYTHONDONTWRITEBYTECODE": "1",
        **{f"SLIME_CONTRACT_{name}": value for name, value in PLUGGED.items()},
    }
    done = subprocess.run(
        [
            *(sys.executable, "-c", STUBS, "-q", "-p", "no:cacheprovider"),
            *("-p", "no:django", "-c", str(path / "pyproject.toml"), f"--rootdir={path}"),
            *("--override-ini", "addopts=", f"--basetemp={tmp_path / 'base'}"),
            *sorted(str(file) for file in (path / "tests/plugin_contracts").glob("test_*.py")),
        ],
        cwd=path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    passed = re.search(r"(\d+) passed", done.stdout)
    assert passed is not None
    assert int(passed[1]) >= 30
    assert "failed" not in done.stdout
    assert "skipped" not in done.stdout
