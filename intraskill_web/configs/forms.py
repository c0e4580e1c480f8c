"""Forms of configurations, made from their schema. The model alone decides what is valid."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from intraskill_web.configs.kinds import Problem
from intraskill_web.configs.schema import Group, Leaf, assemble, fill


class ReasonForm(forms.Form):
    """Why the configuration changes; asked for every revision."""

    reason = forms.CharField(
        label=gettext_lazy("Reason"),
        max_length=2000,
        widget=forms.Textarea({"rows": 2, "class": "vLargeTextField"}),
        help_text=gettext_lazy("What changes, and why. It stays beside the revision for good."),
    )


class TextForm(ReasonForm):
    """A configuration as YAML, typed in or as a file; the file wins."""

    yaml = forms.CharField(
        label="YAML",
        required=False,
        widget=forms.Textarea({"rows": 24, "class": "vLargeTextField mono", "spellcheck": "false"}),
    )
    file = forms.FileField(
        label=gettext_lazy("or a file"),
        required=False,
        widget=forms.FileInput({"accept": ".yaml,.yml,.json"}),
    )
    field_order = ["yaml", "file", "reason"]

    def clean(self) -> dict[str, Any]:
        data = super().clean() or {}
        file = data.get("file")
        if file is not None:
            try:
                data["yaml"] = file.read(256 * 1024).decode("utf-8")
            except UnicodeDecodeError:
                self.add_error("file", _("the file is not UTF-8 text"))
        elif "yaml" in self.data:  # a field would strip it and change its line ends
            data["yaml"] = str(self.data["yaml"]).replace("\r\n", "\n")
        if not data.get("yaml", "").strip() and not self.errors:
            self.add_error("yaml", _("is missing"))
        return data


class SchemaForm(ReasonForm):
    """One field a value, grouped as the schema is."""

    def __init__(
        self,
        found: Sequence[Group],
        document: Mapping[str, Any],
        data: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(data, initial=fill(found, document))
        self.found = found
        for group in found:
            if group.optional:
                self.fields[group.path] = forms.BooleanField(
                    label=_("use %(group)s") % {"group": group.path}, required=False
                )
            for leaf in group.leaves:
                self.fields[leaf.path] = field_of(leaf)
        self.order_fields([name for name in self.fields if name != "reason"] + ["reason"])

    def sections(self) -> list[tuple[Group, forms.BoundField | None, list[forms.BoundField]]]:
        """For the template: each group with its switch and its fields."""
        return [
            (
                group,
                self[group.path] if group.optional else None,
                [self[leaf.path] for leaf in group.leaves],
            )
            for group in self.found
        ]

    def document(self) -> dict[str, Any]:
        """What was filled in, unchecked; call after ``is_valid`` has run."""
        return assemble(self.found, self.cleaned_data)

    def blame(self, problems: Sequence[Problem]) -> None:
        """Show each problem at its field, or above the form."""
        for problem in problems:
            where = _nearest(problem.path, self.fields)
            text = problem.message
            if problem.path and where != problem.path:
                text = f"{problem.path}: {text}"
            self.add_error(where, text)


def field_of(leaf: Leaf) -> forms.Field:
    """The field of one value. All texts pass: ``kinds.check`` judges them."""
    notes = [leaf.range] if leaf.range else []
    if leaf.nullable:
        notes.append(_("may be empty"))
    if leaf.default is not None:
        notes.append(_("default %(value)s") % {"value": leaf.default})
    common: dict[str, Any] = {
        "label": leaf.key,
        "required": False,
        "help_text": " · ".join(notes),
    }
    if leaf.kind == "boolean":
        return forms.BooleanField(**common)
    if leaf.kind == "choice":
        choices = [(c, c) for c in leaf.choices]
        if leaf.nullable:
            choices.insert(0, ("", "–"))
        return forms.CharField(widget=forms.Select(choices=choices), **common)
    if leaf.kind in ("integer", "number"):
        limits = {"min": leaf.low, "max": leaf.high}
        attributes = {k: f"{v:g}" for k, v in limits.items() if v is not None}
        attributes["step"] = "1" if leaf.kind == "integer" else "any"
        return forms.CharField(widget=forms.NumberInput(attributes), **common)
    return forms.CharField(widget=forms.TextInput({"class": "vTextField"}), **common)


def _nearest(path: str, fields: Mapping[str, Any]) -> str | None:
    """The field of a path, or of the object around it; None for the whole form."""
    while path:
        if path in fields:
            return path
        path = path.rpartition(".")[0]
    return None
