"""What a log may never say."""

from __future__ import annotations

import logging
import time

import pytest
from django.test import Client

from core.log_lines import LineFormatter
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


def test_a_line_of_any_shape_is_written_at_once() -> None:
    formatter = LineFormatter("%(message)s", ["/invitation/", "/password-reset/"])
    for text in ("/" * 65_536, "?" * 65_536, "/?" * 32_768, "/invitation/" * 5_000, "a" * 65_536):
        record = logging.LogRecord("x", logging.WARNING, "", 0, "Not Found: %s", (text,), None)
        began = time.process_time()
        formatter.format(record)
        assert time.process_time() - began < 0.5, text[:20]


def test_no_line_has_what_stands_behind_a_question_mark() -> None:
    formatter = LineFormatter("%(message)s", ["/invitation/"])
    record = logging.LogRecord(
        "x", logging.WARNING, "", 0, 'Refused: "/v1/ws?key=sed_w_secret HTTP/1.1"', (), None
    )
    assert formatter.format(record) == 'Refused: "/v1/ws?… HTTP/1.1"'


def test_a_foreign_host_leaves_no_traceback(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        assert Client().get("/v1/sessions", headers={"host": "evil.example"}).status_code == 400
    assert not [record for record in caplog.records if record.exc_info]
