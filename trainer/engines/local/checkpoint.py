"""Frozen checkpoints and resume points of the embedded policy.

A checkpoint is a folder: ``weights.pt`` holds the named tensors, ``checkpoint.json`` the rest. The
document is written last and names the weights by their hash, so that a folder whose writing was cut
short is noticed. A checkpoint is bound to the catalogue it learned on; another one is refused.

The identity of weights is the SHA-256 over the tensors in order of their names, each with name,
dtype, shape and bytes; it does not depend on the container or the version that wrote it.
"""

from __future__ import annotations

import hashlib
import io
import pickle
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from trainer.engines.local.model import ModelConfig, TinyTransformer
from trainer.engines.local.tokenizer import WordTokenizer
from trainer.errors import InputError
from trainer.files import read_json, write_bytes, write_json

SCHEMA = "intraskill-local-checkpoint-v1"
STATE_SCHEMA = "intraskill-local-state-v1"
DOCUMENT, WEIGHTS = "checkpoint.json", "weights.pt"


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A loaded checkpoint; ``document`` is the content of ``checkpoint.json``."""

    model: TinyTransformer
    tokenizer: WordTokenizer
    document: Mapping[str, Any]


def weights_sha256(model: TinyTransformer) -> str:
    """Identity of a model's weights."""
    digest = hashlib.sha256()
    for name, tensor in sorted(model.state_dict().items()):
        value = tensor.detach().cpu().contiguous()
        shape = ",".join(map(str, value.shape))
        digest.update(f"{name}|{str(value.dtype).removeprefix('torch.')}|{shape}\n".encode())
        digest.update(value.numpy().tobytes())
    return digest.hexdigest()


def checkpoint_id(digest: str) -> str:
    """The short name of weights, by which traces and plans call them."""
    return f"local-{digest[:16]}"


def save_checkpoint(
    folder: Path,
    model: TinyTransformer,
    tokenizer: WordTokenizer,
    *,
    catalogue_sha256: str,
    recipe: Mapping[str, Any],
    record: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Publish a checkpoint and return its document.

    ``recipe`` says how the first weights were made and travels along; ``record`` is merged into the
    document (where the experiment stands).
    """
    digest = weights_sha256(model)
    document = {
        **(record or {}),
        "schema_version": SCHEMA,
        "checkpoint_id": checkpoint_id(digest),
        "weights_sha256": digest,
        "catalogue_sha256": catalogue_sha256,
        "vocabulary_sha256": tokenizer.sha256,
        "model": model.config.to_record(),
        "recipe": dict(recipe),
        "vocabulary": list(tokenizer.words),
    }
    tensors = {name: tensor.detach().cpu() for name, tensor in model.state_dict().items()}
    write_bytes(folder / WEIGHTS, _packed(tensors))
    write_json(folder / DOCUMENT, document)
    return document


def load_checkpoint(folder: Path, *, catalogue_sha256: str) -> Checkpoint:
    """Read a checkpoint for the world with this catalogue.

    Raises InputError when it is missing, damaged, or made for another catalogue.
    """
    path = folder / DOCUMENT
    document = read_json(path)
    if document.get("schema_version") != SCHEMA:
        found = document.get("schema_version")
        raise InputError(f"is no {SCHEMA}", file=path, field="schema_version", value=found)
    if document["catalogue_sha256"] != catalogue_sha256:
        raise InputError(
            f"the checkpoint was made for another catalogue than {catalogue_sha256}",
            file=path,
            field="catalogue_sha256",
            value=document["catalogue_sha256"],
            remedy="Use the checkpoint that belongs to this world, or make one by the warm start",
        )
    tokenizer = WordTokenizer(document["vocabulary"])
    model = TinyTransformer(ModelConfig(**document["model"]))
    weights = folder / WEIGHTS
    try:
        model.load_state_dict(_unpacked(weights))
    except RuntimeError as error:
        raise InputError(f"does not fit the model: {error}", file=weights) from error
    digest = weights_sha256(model)
    if digest != document["weights_sha256"]:
        raise InputError(
            f"the weights are not those of {DOCUMENT} ({document['weights_sha256']})",
            file=weights,
            field="weights_sha256",
            value=digest,
            remedy="Restore the checkpoint, or let its stage write it again",
        )
    return Checkpoint(model, tokenizer, document)


def save_state(path: Path, state: Mapping[str, Any]) -> None:
    """Publish a resume point: nested mappings and lists of tensors, numbers and strings."""
    write_bytes(path, _packed({"schema_version": STATE_SCHEMA, **state}))


def load_state(path: Path) -> dict[str, Any]:
    """Read a resume point. Raises InputError when it is missing or damaged."""
    state = _unpacked(path)
    if state.get("schema_version") != STATE_SCHEMA:
        found = state.get("schema_version")
        raise InputError(f"is no {STATE_SCHEMA}", file=path, field="schema_version", value=found)
    return state


def _packed(value: Mapping[str, Any]) -> bytes:
    buffer = io.BytesIO()
    torch.save(dict(value), buffer)
    return buffer.getvalue()


def _unpacked(path: Path) -> dict[str, Any]:
    try:
        value: dict[str, Any] = torch.load(path, map_location="cpu", weights_only=True)
    except FileNotFoundError as error:
        raise InputError("no such file", file=path) from error
    except (RuntimeError, EOFError, pickle.UnpicklingError) as error:
        raise InputError(f"cannot be read: {error}", file=path) from error
    return value
