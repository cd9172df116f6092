"""Approvals and questions in the transcript: what a line about them says."""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]


def wait_facts(data: Json) -> Json:
    """For the fragments of what asks, and of what people decided."""
    match data["type"]:
        case "agent.question":
            return {"questions": [question["text"] for question in data["questions"]]}
        case "user.tool_confirmation":
            return {
                "by": data["author"]["name"],
                "tool": data["tool_name"],
                "is_allowed": data["result"] == "allow",
                "for_session": data.get("scope") == "session",
                "reason": data.get("deny_message") or "",
            }
        case _:
            answers = [_answer(answer) for answer in data["answers"].values()]
            return {"by": data["author"]["name"], "skip": data["skip"], "answers": answers}


def _answer(answer: Json) -> str:
    written = [answer.get("text", ""), *answer.get("selected", ()), answer.get("other", "")]
    return ", ".join(text for text in written if text) or "none"
