"""The forms of the channels. A wrong value is refused beside its field, with what is allowed."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo, available_timezones

from django import forms
from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from intraskill_web.monitoring.models import Channel

MAX_ADDRESSES = 20


class LanguageSelect(forms.Select):
    """Languages, each named in itself and said to be, so that it is read out rightly."""

    def create_option(self, name: str, value: Any, *args: Any, **kwargs: Any) -> dict[str, Any]:
        option = super().create_option(name, value, *args, **kwargs)
        option["attrs"]["lang"] = str(value)
        return option


class ChannelForm(forms.ModelForm):  # type: ignore[type-arg]
    """A channel of one kind; the kind is the view's, not the form's."""

    class Meta:
        model = Channel
        fields = [
            "target", "language", "with_info", "quiet_from", "quiet_to", "time_zone", "enabled",
        ]  # fmt: skip
        labels = {
            "target": gettext_lazy("Address"),
            "language": gettext_lazy("Language"),
            "with_info": gettext_lazy("Also what only waits for somebody, such as a gate"),
            "quiet_from": gettext_lazy("Quiet from"),
            "quiet_to": gettext_lazy("Quiet until"),
            "time_zone": gettext_lazy("Time zone"),
            "enabled": gettext_lazy("Send signals here"),
        }
        widgets = {
            "target": forms.TextInput(attrs={"class": "in"}),
            "language": LanguageSelect(attrs={"class": "in"}),
            "quiet_from": forms.TimeInput(attrs={"class": "in", "type": "time"}, format="%H:%M"),
            "quiet_to": forms.TimeInput(attrs={"class": "in", "type": "time"}, format="%H:%M"),
            "time_zone": forms.TextInput(attrs={"class": "in", "list": "zones"}),
        }

    def __init__(self, *args: Any, kind: str, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.kind = kind
        self.instance.kind = kind
        for name in self.errors if self.is_bound else ():
            widget = self.fields[name].widget if name in self.fields else None
            if widget is not None:
                widget.attrs |= {"aria-invalid": "true", "aria-describedby": f"id_{name}-error"}

    def clean_target(self) -> str:
        """One URL, or e-mail addresses separated by commas."""
        text = str(self.cleaned_data["target"]).strip()
        text = _url(text) if self.kind == "webhook" else _addresses(text)
        same = Channel.objects.filter(kind=self.kind, target=text).exclude(pk=self.instance.pk)
        if same.exists():
            raise ValidationError(_("There is a channel to this address already."))
        return text

    def clean_time_zone(self) -> str:
        """A name of the IANA database."""
        name = str(self.cleaned_data["time_zone"]).strip()
        if name not in available_timezones():
            raise ValidationError(
                _("“%(name)s” is no time zone. Write one such as Europe/Berlin or Asia/Shanghai.")
                % {"name": name}
            )
        ZoneInfo(name)
        return name

    def clean(self) -> dict[str, Any]:
        """Quiet hours have a beginning and an end, and these differ."""
        data = super().clean() or {}
        start, end = data.get("quiet_from"), data.get("quiet_to")
        if (start is None) != (end is None) and not self.errors:
            missing = "quiet_from" if start is None else "quiet_to"
            self.add_error(missing, _("Quiet hours need both times; leave both empty for none."))
        elif start is not None and start == end:
            self.add_error("quiet_to", _("Both times are the same; leave both empty for none."))
        return data


def _url(text: str) -> str:
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        port, parts = None, urlsplit("")
    if parts.scheme not in ("http", "https") or not parts.hostname or port == 0:
        raise ValidationError(
            _("“%(text)s” is no address of a webhook. Write one such as https://example.org/hook.")
            % {"text": text}
        )
    if parts.username or parts.password:
        raise ValidationError(_("The address holds a password. Messages are signed; leave it out."))
    return text


def _addresses(text: str) -> str:
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if len(parts) > MAX_ADDRESSES:
        raise ValidationError(
            _("%(n)d addresses are too many; use a list of at most %(max)d, or a mailing list.")
            % {"n": len(parts), "max": MAX_ADDRESSES}
        )
    for part in parts:
        try:
            validate_email(part)
        except ValidationError:
            raise ValidationError(_("“%(part)s” is no e-mail address.") % {"part": part}) from None
    if not parts:
        raise ValidationError(_("Write at least one e-mail address."))
    return ", ".join(dict.fromkeys(parts))
