"""What Django itself can check about the project."""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
from pathlib import Path

import pytest
from cryptography.fernet import Fernet
from django.core.management import call_command

ROOT = Path(__file__).resolve().parents[2]
PRODUCTION = {
    "SEDERUNT_ENV": "production",
    "SEDERUNT_SECRET_KEY": secrets.token_urlsafe(64),
    "SEDERUNT_ENCRYPTION_KEY": Fernet.generate_key().decode(),
    "ALLOWED_HOSTS": "sederunt.example",
}


@pytest.mark.django_db
def test_no_migration_is_missing() -> None:
    call_command("makemigrations", check=True, dry_run=True, verbosity=1)


@pytest.mark.slow
def test_the_deployment_check_finds_nothing_in_production() -> None:
    done = _check(PRODUCTION)
    assert done.returncode == 0, done.stderr
    assert "no issues" in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("name", ["SEDERUNT_SECRET_KEY", "SEDERUNT_ENCRYPTION_KEY"])
def test_production_without_a_key_refuses_with_a_sentence(name: str) -> None:
    done = _check({**PRODUCTION, name: ""})
    assert done.returncode != 0
    assert f"Set {name}:" in done.stderr


@pytest.mark.slow
def test_production_names_its_hosts() -> None:
    """Or whoever asks for a new password chooses where its link leads."""
    done = _check({**PRODUCTION, "ALLOWED_HOSTS": "sederunt.example,*"})
    assert done.returncode != 0
    assert "ALLOWED_HOSTS must name the hosts" in done.stderr


@pytest.mark.slow
def test_production_refuses_the_demo() -> None:
    done = _manage(["create_demo"], PRODUCTION)
    assert done.returncode != 0
    assert "The demo is for development" in done.stderr


def _check(environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return _manage(["check", "--deploy", "--fail-level", "WARNING"], environment)


def _manage(command: list[str], environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "manage.py", *command],
        env={**os.environ, **environment},
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
    )
