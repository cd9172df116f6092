"""What EMAIL_URL means."""

from __future__ import annotations

import pytest
from django.core.exceptions import ImproperlyConfigured

from config.mail import settings_of


def test_without_a_url_mail_goes_to_the_log() -> None:
    for url in ("", "console:"):
        assert settings_of(url) == {
            "EMAIL_BACKEND": "django.core.mail.backends.console.EmailBackend"
        }


@pytest.mark.parametrize(
    ("url", "port", "ssl", "tls"),
    [
        ("smtps://mail.example", 465, True, False),
        ("smtp://mail.example", 587, False, True),
        ("smtp://mail.example:25?tls=no", 25, False, False),
    ],
)
def test_a_url_says_how_the_line_is_kept_secret(url: str, port: int, ssl: bool, tls: bool) -> None:
    made = settings_of(url)
    assert made["EMAIL_BACKEND"].endswith("smtp.EmailBackend")
    assert (made["EMAIL_HOST"], made["EMAIL_PORT"]) == ("mail.example", port)
    assert (made["EMAIL_USE_SSL"], made["EMAIL_USE_TLS"]) == (ssl, tls)


def test_a_password_may_have_any_character() -> None:
    made = settings_of("smtps://ada%40moreau.example:p%2Fw%3A%25@mail.example")
    assert made["EMAIL_HOST_USER"] == "ada@moreau.example"
    assert made["EMAIL_HOST_PASSWORD"] == "p/w:%"


@pytest.mark.parametrize(
    "url",
    ["mail.example", "http://mail.example", "smtp://", "smtp://h?ssl=1", "smtp://h?tls=maybe"],
)
def test_what_cannot_be_meant_stops_the_start(url: str) -> None:
    with pytest.raises(ImproperlyConfigured, match="EMAIL_URL"):
        settings_of(url)
