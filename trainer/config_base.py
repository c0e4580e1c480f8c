"""What all settings have in common: immutable values that refuse unknown keys, and their types."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationInfo

from trainer.canonical import safe_name

MOST = 2**31 - 1  # of anything that is counted: what a database holds as a whole number
LARGEST_SEED = 2**63 - 1


def _from_config_folder(path: Path, info: ValidationInfo) -> Path:
    base = (info.context or {}).get("base")
    return path if base is None or path.is_absolute() else (Path(base) / path).resolve()


def _file_name(text: str) -> str:
    if safe_name(text) != text:
        raise ValueError("use only letters, digits, dot, underscore and hyphen")
    return text


ConfigPath = Annotated[Path, AfterValidator(_from_config_folder)]
Name = Annotated[str, AfterValidator(_file_name)]
Probability = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=1, le=MOST)]
Seed = Annotated[int, Field(ge=-LARGEST_SEED, le=LARGEST_SEED)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class Config(BaseModel):
    """Base of all settings: immutable, and a key it does not know is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=False)
