from __future__ import annotations

from django.urls import URLPattern, path

from intraskill_web.skills import chunk_views, internalisation_views, mask_views, views

app_name = "skills"
urlpatterns: list[URLPattern] = [
    path("skills/", views.version_list, name="list"),
    path("experiments/<slug:name>/skills/<int:number>/", views.version_detail, name="version"),
    path(
        "experiments/<slug:name>/skills/<int:number>/bank.json",
        chunk_views.version_file,
        {"kind": "bank.json"},
        name="bank_file",
    ),
    path(
        "experiments/<slug:name>/skills/<int:number>/skill.md",
        chunk_views.version_file,
        {"kind": "skill.md"},
        name="markdown_file",
    ),
    path(
        "experiments/<slug:name>/internalisation/",
        internalisation_views.internalisation,
        name="internalisation",
    ),
    path("experiments/<slug:name>/rounds/<int:number>/masks/", mask_views.masks, name="masks"),
    path("experiments/<slug:name>/chunks/<path:skill_id>/", chunk_views.chunk_detail, name="chunk"),
]
