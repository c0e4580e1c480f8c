"""TRL's ``GRPOTrainer`` on a CPU, with the work of ``embedded.py``: the peer of its figures.

The same shape of episode through ``environment_factory``: a prompt, turns of ``act WORD <end>``,
pages of fixed length. An untrained model makes no tool call, so a logits processor allows only that
shape; every token is still sampled. The network has the size of ours (Llama, width 128, 3 layers, 4
heads). Only imported where TRL is installed (``pip install trl``).
"""

from __future__ import annotations

import os
import random
import tempfile
import time
import warnings
from dataclasses import dataclass
from typing import Any

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
os.environ.setdefault("TRL_EXPERIMENTAL_SILENCE", "1")
warnings.filterwarnings("ignore")

import torch  # noqa: E402
import transformers  # type: ignore[import-not-found, unused-ignore]  # noqa: E402
import trl  # noqa: E402
from datasets import Dataset  # type: ignore[import-not-found, unused-ignore]  # noqa: E402
from tokenizers import Tokenizer, models, pre_tokenizers  # type: ignore[import-not-found, unused-ignore]  # noqa: E402
from transformers import (  # noqa: E402
    LlamaConfig,
    LlamaForCausalLM,
    LogitsProcessor,
    LogitsProcessorList,
    PreTrainedTokenizerFast,
)

from benchmarks.embedded_work import EpisodeShape  # noqa: E402

transformers.logging.set_verbosity_error()

SPECIAL = ("<pad>", "<unk>", "<s>", "<act>", "<end>", "act")
CHAT_TEMPLATE = (
    "{% for m in messages %}{% if m.role == 'user' %}<s> {{ m.content }} "
    "{% elif m.role == 'assistant' %}<act> {% if m.tool_calls %}{% for t in m.tool_calls %}"
    "{{ t.function.name }}{% for k, v in t.function.arguments.items() %} {{ k }} {{ v }}"
    "{% endfor %} {% endfor %}{% else %}{{ m.content }} {% endif %}<end> "
    "{% elif m.role == 'tool' %}{{ m.content }} {% endif %}{% endfor %}"
    "{% if add_generation_prompt %}<act> {% endif %}"
)
TOOL_CALL = {
    "open_pattern": r"\s*(?P<name>act)\s+",
    "close_pattern": r"\s*<end>\s*",
    "content": "text",
    "repeats": True,
    "transform": {
        "type": "function",
        "function": {"name": "{name}", "arguments": {"word": "{content}"}},
    },
}
RESPONSE_TEMPLATE = {
    "defaults": {"role": "assistant"},
    "start_anchor": "<act>",
    "fields": {
        "tool_calls": TOOL_CALL,
        "content": {"close_pattern": r"<end>\s*", "content": "text"},
    },
}


@dataclass(frozen=True, slots=True)
class TrlSetting:
    """Episodes generated at once, episodes a micro-batch, micro-batches an optimiser step."""

    generated: int
    micro_batch: int
    accumulated: int

    @property
    def updates(self) -> int:
        """Optimiser steps for one generation."""
        return self.generated // (self.micro_batch * self.accumulated)


@dataclass(frozen=True, slots=True)
class TrlTimes:
    """Seconds of each generation and of the training on it; the first, a warm-up, is left out."""

    rollout: list[float]
    update: list[float]
    tokens: int


class _Shape(LogitsProcessor):  # type: ignore[misc]
    """Only ``act WORD <end>`` after a prompt of ``length`` tokens."""

    def __init__(self, length: int) -> None:
        self.length = length

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        place = input_ids.shape[1] - self.length
        allowed = slice(5, 6) if place == 0 else slice(6, None) if place == 1 else slice(4, 5)
        mask = torch.full_like(scores, float("-inf"))
        mask[:, allowed] = 0
        return scores + mask


def measure(shape: EpisodeShape, setting: TrlSetting, generations: int) -> TrlTimes:
    """Train for ``generations`` and one more to warm up; seconds of each part."""
    tokenizer = _tokenizer(shape)
    model = _model(shape)
    trainer = trl.GRPOTrainer(
        model=model,
        args=_config(shape, setting, generations + 1),
        processing_class=tokenizer,
        train_dataset=_prompts(shape),
        environment_factory=_environment(shape),
    )
    rollouts: list[tuple[float, float]] = []
    tokens = 0
    generate = trainer._generate_and_score_completions

    def timed(inputs: Any) -> Any:
        nonlocal tokens
        started = time.perf_counter()
        output = generate(inputs)
        rollouts.append((started, time.perf_counter()))
        tokens = int(output["prompt_ids"].shape[1] + output["completion_ids"].shape[1])
        return output

    trainer._generate_and_score_completions = timed
    trainer.train()
    ends = [started for started, _ in rollouts[1:]] + [time.perf_counter()]
    updates = [end - ended for end, (_, ended) in zip(ends, rollouts, strict=True)]
    return TrlTimes([ended - started for started, ended in rollouts[1:]], updates[1:], tokens)


def version() -> str:
    """What was measured."""
    return f"trl {trl.__version__}, transformers {transformers.__version__}"


def _tokenizer(shape: EpisodeShape) -> Any:
    words = [*SPECIAL, *(f"w{number}" for number in range(shape.words))]
    vocabulary = {word: number for number, word in enumerate(words)}
    raw = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    raw.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=raw,
        pad_token="<pad>",
        unk_token="<unk>",
        bos_token="<s>",
        eos_token="<end>",
        padding_side="left",
    )
    tokenizer.chat_template = CHAT_TEMPLATE
    tokenizer.response_template = RESPONSE_TEMPLATE
    return tokenizer


def _model(shape: EpisodeShape) -> Any:
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=len(SPECIAL) + shape.words,
        hidden_size=128,
        num_hidden_layers=3,
        num_attention_heads=4,
        num_key_value_heads=4,
        intermediate_size=384,
        max_position_embeddings=512,
        tie_word_embeddings=False,
        pad_token_id=0,
        bos_token_id=2,
        eos_token_id=4,
    )
    model = LlamaForCausalLM(config)
    generate = model.generate

    def shaped(**arguments: Any) -> Any:
        processor = _Shape(arguments["input_ids"].shape[1])
        return generate(**arguments, logits_processor=LogitsProcessorList([processor]))

    model.generate = shaped
    return model


def _prompts(shape: EpisodeShape) -> Any:
    rng = random.Random(1)
    texts = [shape.text(rng, shape.prompt) for _ in range(512)]
    return Dataset.from_list([{"prompt": [{"role": "user", "content": text}]} for text in texts])


def _environment(shape: EpisodeShape) -> type:
    class Environment:
        """Answers every word with a page; the words' numbers are the reward."""

        def __init__(self) -> None:
            self.rng = random.Random(0)
            self.numbers = 0

        def reset(self, **arguments: Any) -> None:
            """Begin an episode."""
            self.numbers = 0

        def act(self, word: str) -> str:
            """Act.

            Args:
                word: a word.
            """
            number = word.strip().removeprefix("w")
            self.numbers += int(number) if number.isdecimal() else 0
            return shape.text(self.rng, shape.page)

        def get_reward(self) -> float:
            """The mean of the words' numbers, between 0 and 1."""
            return self.numbers / shape.turns / shape.words

    return Environment


def _config(shape: EpisodeShape, setting: TrlSetting, generations: int) -> Any:
    return trl.GRPOConfig(
        output_dir=tempfile.mkdtemp(),
        use_cpu=True,
        bf16=False,
        gradient_checkpointing=False,
        per_device_train_batch_size=setting.micro_batch,
        gradient_accumulation_steps=setting.accumulated,
        generation_batch_size=setting.generated,
        num_generations=shape.group,
        max_completion_length=shape.turns * (shape.page + 4) + 8,
        max_tool_calling_iterations=shape.turns - 1,
        max_steps=generations * setting.updates,
        learning_rate=5e-5,
        lr_scheduler_type="constant",
        beta=0.0,
        epsilon_high=0.28,
        scale_rewards="none",
        temperature=1.0,
        logging_steps=10**6,
        save_strategy="no",
        report_to=[],
        disable_tqdm=True,
        dataloader_num_workers=0,
        seed=0,
    )
