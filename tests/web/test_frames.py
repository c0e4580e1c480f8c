"""The frame of a table card: what it shows with rows, without, and what it refuses."""

from __future__ import annotations

from typing import Any

import pytest
from django.template import Context, Engine
from django.template.exceptions import TemplateSyntaxError

ENGINE = Engine.get_default()


def shown(source: str, **values: Any) -> str:
    template = ENGINE.from_string("{% load i18n frames %}" + source)
    return " ".join(template.render(Context(values)).split())


WHOLE = (
    '{% card id="x" title=name css="gap-t" table="co" rows=rows empty="None yet." %}beside'
    "{% rows %}<tr><td>{{ rows.0 }}</td></tr>{% foot %}<b>{{ rows|length }}</b>{% endcard %}"
)


def test_with_rows_the_table_stands_in_its_frame_and_texts_are_escaped() -> None:
    html = shown(WHOLE, name="<b>", rows=["<i>"])
    assert '<section class="card gap-t" aria-labelledby="x">' in html
    assert '<h2 id="x">&lt;b&gt;</h2> beside </header>' in html
    assert 'role="region" aria-label="&lt;b&gt;"> <table class="co"> <tr><td>&lt;i&gt;' in html
    assert "<footer><b>1</b></footer>" in html
    assert "None yet." not in html


def test_without_rows_it_says_so_and_keeps_its_footer() -> None:
    html = shown(WHOLE, name="Jobs", rows=[])
    assert '<div class="empty"> <p>None yet.</p> </div> <footer><b>0</b></footer>' in html
    assert "<table" not in html


def test_without_an_id_the_title_is_its_label_and_an_empty_footer_is_left_out() -> None:
    html = shown('{% card title="Jobs" %}{% rows %}<tr></tr>{% foot %} {% endcard %}')
    assert html.startswith('<section class="card" aria-label="Jobs"> <div class="scroll"')
    assert "<header" not in html and "<footer" not in html


@pytest.mark.parametrize("options", ["", 'id="x"', 'title="a" colour="red"', 'title="a" more'])
def test_options_it_does_not_know_are_refused(options: str) -> None:
    with pytest.raises(TemplateSyntaxError, match="card takes title="):
        shown("{% card " + options + " %}{% endcard %}")
