"""Settings come from the environment, strictly; secrets stay in closed files."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.test import Client

from intraskill_web import home
from intraskill_web.databases import database
from intraskill_web.env import envbool, envint, envlist, envsecret, envstr
from intraskill_web.queues import redis_url

ROOT = Path(__file__).resolve().parents[2]


def test_a_boolean_is_true_or_false_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    assert envbool("X_FLAG", True) is True
    monkeypatch.setenv("X_FLAG", "False")
    assert envbool("X_FLAG", True) is False
    monkeypatch.setenv("X_FLAG", "yes")
    with pytest.raises(ImproperlyConfigured, match="X_FLAG must be True or False"):
        envbool("X_FLAG", True)


def test_numbers_lists_and_texts_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("X_PORT", "8123")
    monkeypatch.setenv("X_HOSTS", "a.example, b.example,")
    assert envint("X_PORT", 1) == 8123
    assert envlist("X_HOSTS", []) == ["a.example", "b.example"]
    assert envstr("X_NOTHING", "default") == "default"
    monkeypatch.setenv("X_PORT", "http")
    with pytest.raises(ImproperlyConfigured, match="X_PORT must be a whole number"):
        envint("X_PORT", 1)


def test_a_secret_may_lie_in_a_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert envsecret("X_SECRET") is None
    (tmp_path / "secret").write_text("hush\n")
    monkeypatch.setenv("X_SECRET_FILE", str(tmp_path / "secret"))
    assert envsecret("X_SECRET") == "hush"
    monkeypatch.setenv("X_SECRET_FILE", str(tmp_path / "absent"))
    with pytest.raises(ImproperlyConfigured, match="X_SECRET_FILE cannot be read"):
        envsecret("X_SECRET")


def test_a_secret_is_made_once_and_only_the_owner_may_read_it(tmp_path: Path) -> None:
    home.prepare(tmp_path)
    first = home.secret(tmp_path, "key")
    assert home.secret(tmp_path, "key") == first and len(first) >= 40
    assert stat.S_IMODE((tmp_path / "secrets" / "key").stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "secrets").stat().st_mode) == 0o700
    assert home.secret(tmp_path / "other", "key") != first


def test_sqlite_is_the_default_with_immediate_transactions(tmp_path: Path) -> None:
    found = database(None, tmp_path)
    assert found["NAME"] == str(tmp_path / "db.sqlite3")
    assert found["OPTIONS"]["transaction_mode"] == "IMMEDIATE"
    assert found["OPTIONS"]["timeout"] == 20
    assert "journal_mode=WAL" in found["OPTIONS"]["init_command"]


def test_postgres_comes_from_a_url(tmp_path: Path) -> None:
    found = database("postgres://ann:p%40ss@db.example:5433/runs?sslmode=require", tmp_path)
    assert found["ENGINE"] == "django.db.backends.postgresql"
    assert (found["USER"], found["PASSWORD"]) == ("ann", "p@ss")
    assert (found["HOST"], found["PORT"], found["NAME"]) == ("db.example", "5433", "runs")
    assert found["OPTIONS"] == {"sslmode": "require"}
    with pytest.raises(ImproperlyConfigured, match="found 'mysql'"):
        database("mysql://x", tmp_path)


def test_the_queue_is_the_embedded_one_unless_configured(tmp_path: Path) -> None:
    assert redis_url("redis://queue.example/1", tmp_path) == "redis://queue.example/1"
    (tmp_path / "valkey").mkdir()
    (tmp_path / "valkey" / "port").write_text("4321\n")
    assert redis_url("", tmp_path).endswith("@127.0.0.1:4321/0")


def test_two_homes_have_different_cookies_and_keys(tmp_path: Path) -> None:
    code = (
        "from django.conf import settings as s;"
        "print(s.SESSION_COOKIE_NAME, s.CSRF_COOKIE_NAME, s.SECRET_KEY)"
    )
    seen = set()
    for name in ("one", "two"):
        environment = {
            **os.environ,
            "INTRASKILL_HOME": str(tmp_path / name),
            "DJANGO_SETTINGS_MODULE": "intraskill_web.settings",
        }
        answer = subprocess.run(
            [sys.executable, "-c", code],
            cwd=ROOT, env=environment, capture_output=True, text=True, check=True,
        )  # fmt: skip
        seen.update(answer.stdout.split())
    assert len(seen) == 6


@pytest.mark.django_db
def test_every_answer_carries_a_strict_policy(client: Client) -> None:
    answer = client.get("/login/")
    policy = answer.headers["Content-Security-Policy"]
    assert "script-src 'self'" in policy and "unsafe" not in policy
    assert answer.headers["X-Frame-Options"] == "DENY"
    assert answer.headers["X-Content-Type-Options"] == "nosniff"


@pytest.mark.django_db
def test_pages_need_a_login(client: Client) -> None:
    answer = client.get("/")
    assert answer.status_code == 302
    assert answer.headers["Location"].startswith("/login/")


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("INTRASKILL_PORT", "http", "INTRASKILL_PORT must be a whole number, 1 to 65535"),
        ("INTRASKILL_PORT", "99999", "1 to 65535 (found '99999')"),
        ("INTRASKILL_WORKERS", "0", "1 or more"),
        ("INTRASKILL_HOME", "/dev/null/home", "Name a folder that you may write"),
        ("DATABASE_URL", "mysql://x", "DATABASE_URL must begin with postgres:// or sqlite:///"),
        ("REDIS_URL", "http://x", "REDIS_URL must begin with redis://"),
        ("DEBUG", "yes", "DEBUG must be True or False"),
    ],
)
def test_a_slip_in_the_environment_is_one_line_that_names_it(
    name: str, value: str, words: str, tmp_path: Path
) -> None:
    environment = os.environ | {"INTRASKILL_HOME": str(tmp_path), name: value}
    environment["DJANGO_SETTINGS_MODULE"] = "intraskill_web.settings"
    found = subprocess.run(
        [sys.executable, ROOT / "manage.py", "check"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (found.returncode, found.stdout) == (2, "")
    [line] = found.stderr.splitlines()
    assert line.startswith("error: ") and words in line
