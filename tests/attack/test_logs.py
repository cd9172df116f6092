"""What a log may never say."""

from __future__ import annotations

import logging

import pytest
from django.test import Client

from engine.logs import get_logger


def test_a_traceback_tells_no_values(capsys: pytest.CaptureFixture[str]) -> None:
    prompt = "a confidential " + "prompt"
    try:
        raise ValueError(len(prompt))
    except ValueError:
        get_logger(__name__).exception("turn_failed")
    told = "".join(capsys.readouterr())
    assert "turn_failed" in told
    assert "ValueError: 21" in told
    assert "a confidential prompt" not in told


def test_a_foreign_host_leaves_no_traceback(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        assert Client().get("/v1/sessions", headers={"host": "evil.example"}).status_code == 400
    assert not [record for record in caplog.records if record.exc_info]
