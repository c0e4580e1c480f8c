"""The real SGLang server with a small real model, on its CPU engine or on a GPU: an optional job.

Set ``SGLANG_PYTHON`` to an interpreter that has SGLang and ``SGLANG_MODEL`` to a Hugging Face
folder whose chat template knows tools (docs/design/slime.md says how both are made). On a GPU set
``SGLANG_FLAGS`` too, to the server's further flags or to nothing; without it the server runs on its
CPU engine. Minutes on two cores.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml

from jobs import process
from jobs.launchers.sglang_http import answers, check_serving, model_path, probe, update_weights
from jobs.launchers.sglang_server import ServerSpec, SglangServer
from tests.ports import free_port
from tests.trainer.engines_slime.launch_files import write_bank
from trainer.files import read_json, read_jsonl, write_json
from trainer.http_library import http

ROOT = Path(__file__).resolve().parents[2]
PYTHON, MODEL = os.environ.get("SGLANG_PYTHON", ""), os.environ.get("SGLANG_MODEL", "")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not (PYTHON and MODEL), reason="needs a real SGLang: set SGLANG_PYTHON and SGLANG_MODEL"
    ),
]
GPU_FLAGS = os.environ.get("SGLANG_FLAGS")
CPU = (
    *("--device", "cpu", "--attention-backend", "torch_native"),
    *("--sampling-backend", "pytorch", "--grammar-backend", "none"),
    *("--disable-overlap-schedule", "--disable-cuda-graph", "--max-total-tokens", "16384"),
)
FLAGS = CPU if GPU_FLAGS is None else tuple(shlex.split(GPU_FLAGS))
ENVIRONMENT = {
    **({"SGLANG_USE_CPU_ENGINE": "1"} if GPU_FLAGS is None else {}),
    "HF_HUB_OFFLINE": "1",
    "TOKENIZERS_PARALLELISM": "false",
    "GLOO_SOCKET_IFNAME": "lo",
    "HOST_IP": "127.0.0.1",
    "SGLANG_HOST_IP": "127.0.0.1",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("sglang")


@pytest.fixture(scope="module")
def exports(folder):
    """Two exports of the model: as it is, and with its last layers turned around."""
    return {"real": copy_model(folder / "real"), "other": disturbed(folder / "other")}


def copy_model(target):
    target.mkdir()
    for path in Path(MODEL).iterdir():
        shutil.copy(path, target / path.name)
    return target


def disturbed(target):
    copy_model(target)
    code = (
        "import sys\nfrom safetensors.torch import load_file, save_file\n"
        "path = sys.argv[1] + '/model.safetensors'\nweights = load_file(path)\n"
        "name = 'model.norm.weight'\nweights[name] = -weights[name]\n"
        "save_file(weights, path, metadata={'format': 'pt'})"
    )
    subprocess.run([PYTHON, "-c", code, str(target)], check=True)
    return target


def spec_for(export, port):
    return ServerSpec(
        export,
        "small",
        port=port,
        mem_fraction=0.2,
        tool_call_parser="qwen",
        reasoning_parser=None,
        extra=FLAGS,
        python=PYTHON,
        environ=ENVIRONMENT,
    )


@pytest.fixture(scope="module")
def server(folder, exports):
    """One running server; at the end nothing of it is left."""
    made = SglangServer(spec_for(exports["real"], free_port()), folder / "server.json")
    made.start()
    ref = made._ref
    yield made
    made.stop()
    assert not process.is_alive(ref)
    assert not answers(made.spec.base_url)


def test_the_server_serves_the_export_it_was_given(server, exports):
    record = read_json(server.state.with_name("serving.json"))
    assert record["loaded"] == str(exports["real"])
    assert record["weights_sha256"] == read_json(exports["real"] / "export.json")["weights_sha256"]
    check_serving(record)


def test_ids_and_log_probabilities_come_as_they_were_drawn(server):
    reply = http().post(
        f"{server.spec.base_url}/generate",
        json={
            "input_ids": [1, 4093, 198, 504, 3575, 282, 4649, 314],
            "sampling_params": {"temperature": 0.6, "max_new_tokens": 12},
            "return_logprob": True,
        },
        timeout=300,
    )
    from trainer.engines.slime.sglang_client import read_generation

    drawn = read_generation(reply.json(), latency_ms=0.0)
    assert list(drawn.output_ids) == reply.json()["output_ids"]
    assert len(drawn.log_probs) == len(drawn.output_ids)
    assert all(value <= 0.0 for value in drawn.log_probs)
    assert drawn.weight_version is not None


def test_a_function_call_of_the_model_is_parsed_by_the_server_and_read_by_us(server):
    """The smallest models call a function only after worked examples."""
    from trainer.engines.endpoint.replies import turn_of
    from trainer.shop.tools import tools_for

    messages = [{"role": "system", "content": "You shop by calling functions."}]
    for number, wanted in enumerate(("red lamp", "green table", "white cup", "black shoes")):
        call = {
            "id": f"call-{number}",
            "type": "function",
            "function": {"name": "search", "arguments": json.dumps({"query": wanted})},
        }
        messages += [
            {"role": "user", "content": f"I want a {wanted}."},
            {"role": "assistant", "content": "", "tool_calls": [call]},
            {"role": "tool", "tool_call_id": f"call-{number}", "content": "Done."},
            {"role": "assistant", "content": "Next."},
        ]
    messages.append({"role": "user", "content": "I want a blue chair."})
    body = {
        "model": "small",
        "messages": messages,
        "tools": tools_for({"search_available": True, "actions": []}),
        "temperature": 0.0,
        "max_tokens": 40,
    }
    reply = http().post(f"{server.spec.base_url}/v1/chat/completions", json=body, timeout=600)
    turn = turn_of(reply.json(), latency_ms=0.0)
    assert [call.name for call in turn.tool_calls] == ["search"], reply.text
    assert "blue" in turn.tool_calls[0].arguments["query"]
    assert turn.decode_error is None


def test_weights_are_updated_from_disk_and_back(server, exports):
    record = read_json(server.state.with_name("serving.json"))
    url = server.spec.base_url
    update_weights(url, exports["other"])
    assert model_path(url) == str(exports["other"])
    assert probe(url, "small") != record["probe_sha256"]
    update_weights(url, exports["real"])
    check_serving(record)


def configuration(folder, name, port, export, skills):
    path = folder / f"{name}.yaml"
    path.write_text(
        yaml.safe_dump(
            {
                "stage": "evaluate",
                "name": name,
                "output_dir": str(folder / name),
                "world": {"profile": "standard"},
                "policy": {
                    "engine": "endpoint",
                    "checkpoint": str(export),
                    "temperature": 0.6,
                    "max_new_tokens": 40,
                    "endpoint": {
                        "base_url": f"http://127.0.0.1:{port}/v1",
                        "model": "small",
                        "concurrency": 2,
                        "timeout_seconds": 600,
                    },
                },
                "tasks": {"split": "val", "limit": 2},
                "skills": skills,
                "max_turns": 2,
                "batch_size": 2,
            }
        )
    )
    return path


def test_tasks_are_evaluated_bare_and_masked_by_the_command_a_stage_starts(folder, exports):
    """with_server is the process of a stage; evaluate is what it guards."""
    write_bank(folder)
    port = free_port()
    rows = [
        {"split": "val", "task_id": task, "sample_id": 0, "included_chunk_ids": ids}
        for task, ids in zip(val_tasks(), (["chunk-a"], ["chunk-b"]), strict=True)
    ]
    write_json(folder / "assignment.json", {"assignments": rows})
    bank, assignment = str(folder / "bank.json"), str(folder / "assignment.json")
    configs = [
        configuration(folder, "bare", port, exports["real"], {"provider": "none"}),
        configuration(
            folder,
            "masked",
            port,
            exports["real"],
            {"provider": "assigned", "bank": bank, "assignment": assignment},
        ),
    ]
    argv = [
        *(sys.executable, "-m", "jobs.launchers.with_server"),
        *("--export", str(exports["real"]), "--state", str(folder / "stage.json")),
        *("--served-name", "small", "--port", str(port), "--python", PYTHON),
        *("--mem-fraction", "0.2", "--tool-call-parser", "qwen", "--reasoning-parser", ""),
        *(f"--extra={text}" for text in FLAGS),
        *("--", sys.executable, "-m", "trainer", "evaluate", "run", *map(str, configs)),
    ]
    results = run_as_a_stage(argv, folder)
    weights = read_json(exports["real"] / "export.json")["weights_sha256"]
    shown = {}
    for name in ("bare", "masked"):
        summary = read_json(folder / name / "summary.json")
        assert summary["counts"]["completed"] == summary["counts"]["requested"] == 2
        assert summary["cost"]["tokens"]["completion_tokens"] > 0
        traces = list(read_jsonl(folder / name / "traces.jsonl"))
        assert all(t["provenance"]["model"]["weights_sha256"] == weights for t in traces)
        shown[name] = [[c["skill_id"] for c in trace["selected_skills"]] for trace in traces]
    assert shown == {"bare": [[], []], "masked": [["chunk-a"], ["chunk-b"]]}
    assert not answers(f"http://127.0.0.1:{port}")
    assert json.loads(results.splitlines()[-1])["status"] == "complete"


def run_as_a_stage(argv, folder):
    """Start a command as the queue's runner does, under a keeper, and wait for its word."""
    log, results, ended = folder / "stage.log", folder / "stage.out", folder / "stage.exit"
    ref = process.start(
        argv,
        cwd=ROOT,
        log=log,
        results=results,
        exit_file=ended,
        register=lambda _: None,
        env={**os.environ, **ENVIRONMENT},
    )
    deadline = time.monotonic() + 1500
    while process.is_alive(ref) and time.monotonic() < deadline:
        process.reap(ref)
        time.sleep(0.5)
    found = process.exit_of(ended)
    assert found is not None and found.code == 0, log.read_text()[-4000:]
    return results.read_text()


def val_tasks():
    from trainer.shop.world import load_world

    return load_world("standard").split("val")[:2]


def test_a_training_episode_on_the_real_engine_keeps_every_drawn_token(server, folder, monkeypatch):
    """The hooks, the real tokenizer, the real template, in both layouts."""
    transformers = pytest.importorskip("transformers", reason="needs the model's tokenizer here")
    from tests.contracts.harness import harness_of

    tokenizer = transformers.AutoTokenizer.from_pretrained(MODEL)
    for layout in ("turn", "episode"):
        place = folder / layout
        place.mkdir()
        with harness_of("double", place, monkeypatch) as slime, monkeypatch.context() as patch:
            state = slime.module("slime.rollout.sglang_rollout").GenerateState
            patch.setattr(
                state, "__init__", lambda self, args: setattr(self, "tokenizer", tokenizer)
            )
            slime.address = ("127.0.0.1", server.spec.port)
            args = slime.args(
                shopsim_sample_layout=layout,
                shopsim_max_steps=2,
                shopsim_full_skill_retry=False,
                shopsim_tool_parser="qwen",
                rollout_max_response_len=24,
                rollout_max_context_len=8000,
            )
            rollouts = slime.generate(slime.group(0), args)
        for rows in rollouts:
            trace = read_json(Path(rows[0].metadata["shopsim_trace_path"]))
            assert trace["status"] == "completed", trace["error"]
            sampled = sum(sum(row.loss_mask) for row in rows)
            assert sampled == trace["tokens"]["sampled"] > 0
            if layout == "episode":
                assert len(rows) == 1


def test_an_appended_prompt_reads_as_the_real_template_renders_it():
    """Layout ``episode`` never renders a turn again, and shows the model the same text."""
    transformers = pytest.importorskip("transformers", reason="needs the model's tokenizer here")
    from trainer.engines.slime.history import AppendedPrompt, fixed_tools, render
    from trainer.rollout.policy import Message, ModelTurn, ToolCall

    tokenizer = transformers.AutoTokenizer.from_pretrained(MODEL)
    opening = (Message("system", "You shop."), Message("user", "Buy a red cup."))
    prompt = AppendedPrompt(tokenizer, opening)
    said = '<tool_call>\n{"name": "search", "arguments": {"query": "red cup"}}\n</tool_call>'
    sampled = [*tokenizer.encode(said, add_special_tokens=False), tokenizer.eos_token_id]
    call = ToolCall("search", {"query": "red cup"}, "call-0")
    turn = ModelTurn(text="", finish_reason="stop", tool_calls=(call,), token_ids=tuple(sampled))
    before = prompt.token_ids(())
    prompt.add(turn, sampled, (Message("tool", "Two cups.", tool_call_id="call-0"),))
    after = prompt.token_ids(())
    assert after[: len(before) + len(sampled)] == [*before, *sampled]
    rendered = render(tokenizer, prompt.messages, fixed_tools())
    assert tokenizer.decode(after) == tokenizer.decode(rendered)
