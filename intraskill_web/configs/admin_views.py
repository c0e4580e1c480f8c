"""The pages behind ``ConfigRevisionAdmin``. Each parses, asks the services, and renders."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import messages
from django.contrib.admin.utils import unquote
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect, JsonResponse
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.translation import gettext as _

from intraskill_web.configs.forms import SchemaForm, TextForm
from intraskill_web.configs.kinds import MODELS, groups_of, read_text, with_lines, write_text
from intraskill_web.configs.models import KIND_CHOICES, ConfigRevision
from intraskill_web.configs.notes import power_note
from intraskill_web.configs.schema import changes
from intraskill_web.configs.services import add_revision, launch, problems_of
from intraskill_web.core.access import actor_of
from intraskill_web.core.parameters import choice
from trainer.errors import InputError

if TYPE_CHECKING:
    from intraskill_web.configs.admin import ConfigRevisionAdmin

ADMIN = "admin:configs_configrevision"


def add(site: ConfigRevisionAdmin, request: HttpRequest) -> HttpResponse:
    """``?kind=&from=&as=yaml``: the form of the next revision, as fields or as YAML."""
    if not site.has_add_permission(request):
        raise PermissionDenied
    kind, base = _asked(request)
    if kind is None:
        newest = {r.kind: r for r in ConfigRevision.objects.order_by("number")}
        kinds = [(key, label, newest.get(key)) for key, label in KIND_CHOICES]
        return _render(site, request, "choose", {"kinds": kinds, "title": _("Which kind?")})
    as_text = request.GET.get("as") == "yaml"
    form = (_text_form if as_text else _schema_form)(request, kind, base)
    if request.method == "POST":
        made = _save(request, form, kind, base)
        if made is not None:
            site.log_addition(request, made, made.reason)
            messages.success(request, _("%(revision)s is on record.") % {"revision": made})
            return HttpResponseRedirect(reverse(f"{ADMIN}_change", args=[made.pk]))
    query = f"kind={kind}" + (f"&from={base.pk}" if base else "")
    context = {
        "title": _("New revision: %(kind)s") % {"kind": dict(KIND_CHOICES)[kind]},
        "form": form,
        "kind": kind,
        "base": base,
        "as_text": as_text,
        "other_url": f"?{query}" if as_text else f"?{query}&as=yaml",
        "check_url": reverse("admin:configs_check") + f"?{query}",
    }
    return _render(site, request, "add", context)


def show(site: ConfigRevisionAdmin, request: HttpRequest, object_id: str) -> HttpResponse:
    """One revision: values, who used it, and its difference to another (``?against=``)."""
    if not site.has_view_permission(request):
        raise PermissionDenied
    revision: Any = site.get_object(request, unquote(object_id))
    if revision is None:
        raise Http404(object_id)
    others = ConfigRevision.objects.filter(kind=revision.kind).exclude(pk=revision.pk)
    before = others.filter(number__lt=revision.number).order_by("-number").first()
    wanted = choice(request.GET, "against", map(str, others.values_list("pk", flat=True)))
    against = others.get(pk=wanted) if wanted else before
    context = {
        "title": str(revision),
        "revision": revision,
        "against": against,
        "others": others.order_by("-number"),
        "changes": changes(against.document, revision.document) if against else [],
        "uses": [
            (use.experiment, use.experiment.rounds.count())
            for use in revision.uses.select_related("experiment")
        ],
        "may_add": site.has_add_permission(request),
        "may_delete": site.has_delete_permission(request, revision),
    }
    return _render(site, request, "show", context)


def live(site: ConfigRevisionAdmin, request: HttpRequest) -> HttpResponse:
    """What the form as it stands would say: problems by field, changes, and a note on power."""
    if not site.has_add_permission(request):
        raise PermissionDenied
    kind, base = _asked(request)
    if kind is None or request.method != "POST":
        return JsonResponse({"problems": [], "changes": [], "note": ""}, status=400)
    form = SchemaForm(groups_of(kind), base.document if base else {}, request.POST)
    form.is_valid()  # the reason may still be missing
    document, problems = problems_of(kind, form.document())
    old = base.document if base else None
    return JsonResponse(
        {
            "problems": [{"path": p.path, "message": p.message} for p in problems],
            "changes": []
            if problems or old is None
            else [[p, text_of(a), text_of(b)] for p, a, b in changes(old, document)],
            "note": "" if problems else power_note(kind, document, old),
        }
    )


def download(site: ConfigRevisionAdmin, request: HttpRequest, pk: int) -> HttpResponse:
    """The YAML, byte by byte as it was handed in."""
    revision = ConfigRevision.objects.filter(pk=pk).first()
    if revision is None or not site.has_view_permission(request):
        raise Http404(str(pk))
    response = HttpResponse(revision.text, content_type="application/yaml; charset=utf-8")
    name = f"{revision.kind}-r{revision.number}.yaml"
    response["Content-Disposition"] = f'attachment; filename="{name}"'
    return response


def start(site: ConfigRevisionAdmin, request: HttpRequest, pk: int) -> HttpResponse:
    """POST ``name``: a new experiment from a launch revision."""
    revision = ConfigRevision.objects.filter(pk=pk, kind="launch").first()
    if revision is None or request.method != "POST":
        raise Http404(str(pk))
    if not site.has_add_permission(request):
        raise PermissionDenied
    try:
        made = launch(revision, request.POST.get("name", "").strip(), actor=actor_of(request))
    except InputError as error:
        messages.error(request, str(error))
        return HttpResponseRedirect(reverse(f"{ADMIN}_change", args=[pk]))
    messages.success(request, _("The experiment is ready; start its first round here."))
    return HttpResponseRedirect(reverse("experiments:detail", args=[made.name]))


def text_of(value: Any) -> str:
    """A value in a difference."""
    return "–" if value is None else str(value)


def _asked(request: HttpRequest) -> tuple[str | None, ConfigRevision | None]:
    """The kind, and the revision to start from: the one named, else the newest of the kind.

    Raises ParameterError.
    """
    kind = choice(request.GET, "kind", MODELS)
    known = ConfigRevision.objects.values_list("pk", flat=True)
    wanted = choice(request.GET, "from", map(str, known))
    base = ConfigRevision.objects.get(pk=wanted) if wanted else None
    if base is not None and kind in ("", base.kind):
        return base.kind, base
    if not kind:
        return None, None
    return kind, ConfigRevision.objects.filter(kind=kind).order_by("-number").first()


def _schema_form(request: HttpRequest, kind: str, base: ConfigRevision | None) -> SchemaForm:
    data = request.POST if request.method == "POST" else None
    return SchemaForm(groups_of(kind), base.document if base else {}, data)


def _text_form(request: HttpRequest, kind: str, base: ConfigRevision | None) -> TextForm:
    if request.method == "POST":
        return TextForm(request.POST, request.FILES)
    return TextForm(initial={"yaml": base.text if base else ""})


def _save(
    request: HttpRequest, form: TextForm | SchemaForm, kind: str, base: ConfigRevision | None
) -> ConfigRevision | None:
    """The new revision, or None with all errors of the form set."""
    whole = form.is_valid()  # a missing reason hides no other mistake
    try:
        if isinstance(form, TextForm):
            text = form.cleaned_data.get("yaml", "")
            document = read_text(text) if text else {}
        else:
            document, text = form.document(), ""
    except InputError as error:
        form.add_error("yaml", error.reason)
        return None
    checked, problems = problems_of(kind, document)
    if problems and isinstance(form, SchemaForm):
        form.blame(problems)
    for problem in with_lines(text, problems) if problems and text else []:
        where = _("line %(n)d") % {"n": problem.line} + ": " if problem.line else ""
        form.add_error("yaml", f"{where}{problem.path} {problem.message}")
    if problems or not whole:
        return None
    try:
        return add_revision(
            kind,
            checked,
            text or write_text(checked),
            reason=form.cleaned_data["reason"],
            based_on=base,
            actor=actor_of(request),
        )
    except InputError as error:
        form.add_error(None, error.reason)
        return None


def _render(
    site: ConfigRevisionAdmin, request: HttpRequest, name: str, context: dict[str, Any]
) -> HttpResponse:
    full = {
        **site.admin_site.each_context(request),
        "opts": ConfigRevision._meta,
        "has_view_permission": True,
        **context,
    }
    return TemplateResponse(request, f"admin/configs/{name}.html", full)
