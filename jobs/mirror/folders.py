"""Which folders of a round hold evaluations, what for, and of which stage."""

from __future__ import annotations

# folder of a round → what its episodes are for, and the arm
EVALUATIONS: dict[str, tuple[str, str]] = {
    "baseline/bare": ("baseline", "bare"),
    "baseline/full": ("baseline", "full"),
    "validate/bare": ("bare", "bare"),
    "validate/full": ("full", "full"),
    "gate": ("masked", "masked"),
    "gate/confirm/new": ("confirm", "new"),
    "gate/confirm/old": ("confirm", "old"),
    "gate/confirm/bare": ("confirm", "bare"),
    "test/bare": ("test", "bare"),
    "test/full": ("test", "full"),
}
FOLDERS = {
    "freeze": ("baseline/bare", "baseline/full"),
    "validate": ("validate/bare", "validate/full"),
    "gate": ("gate", "gate/confirm/new", "gate/confirm/old", "gate/confirm/bare"),
    "select": ("test/bare", "test/full"),
}
