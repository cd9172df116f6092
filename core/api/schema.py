"""What every operation of the OpenAPI document has: the error body, and how one signs in."""

from __future__ import annotations

from typing import Any

from drf_spectacular.extensions import OpenApiAuthenticationExtension

ERROR_TYPES = [
    "invalid_request_error",
    "authentication_error",
    "permission_error",
    "not_found_error",
    "rate_limit_error",
    "api_error",
    "overloaded_error",
]
ERROR: dict[str, Any] = {
    "type": "object",
    "description": "One body for all errors. Branch on `error.code`; it is stable.",
    "properties": {
        "type": {"type": "string", "const": "error"},
        "error": {
            "type": "object",
            "properties": {
                "type": {"type": "string", "enum": ERROR_TYPES},
                "code": {"type": "string"},
                "message": {"type": "string"},
                "param": {
                    "type": ["string", "null"],
                    "description": "The path of the field at fault: `events[0].content`.",
                },
                "details": {
                    "type": "object",
                    "properties": {"error_code": {"type": "string"}},
                    "required": ["error_code"],
                    "additionalProperties": {},
                },
            },
            "required": ["type", "code", "message", "param", "details"],
        },
        "request_id": {"type": "string"},
    },
    "required": ["type", "error", "request_id"],
}
RESPONSES = {"4XX": "The request was refused.", "5XX": "The server could not do it now."}


class AccessScheme(OpenApiAuthenticationExtension):
    """An API key in either header, or a browser's login."""

    target_class = "orgs.api.authentication.AccessAuthentication"
    name = ["bearer", "apiKey", "login"]  # noqa: RUF012 (the base class declares it so)

    def get_security_requirement(self, auto_schema: Any) -> list[dict[str, list[Any]]]:
        return [{name: []} for name in self.name]

    def get_security_definition(self, auto_schema: Any) -> list[dict[str, Any]]:
        return [
            {"type": "http", "scheme": "bearer", "description": "Authorization: Bearer sed_w_…"},
            {"type": "apiKey", "in": "header", "name": "x-api-key"},
            {
                "type": "apiKey",
                "in": "cookie",
                "name": "sederunt_login",
                "description": "With the header X-CSRFToken where something changes.",
            },
        ]


def add_error_responses(result: Any, generator: Any, request: Any, public: bool) -> Any:
    """A postprocessing hook: the error body for every operation."""
    components = result.setdefault("components", {})
    components.setdefault("schemas", {})["Error"] = ERROR
    for operations in result["paths"].values():
        for operation in operations.values():
            operation["responses"] |= {
                status: {
                    "description": text,
                    "content": {
                        "application/json": {"schema": {"$ref": "#/components/schemas/Error"}}
                    },
                }
                for status, text in RESPONSES.items()
            }
    _drop_marks(result)
    return result


def _drop_marks(value: Any) -> None:
    """The generator's own marks at enums, which mean nothing to readers."""
    if isinstance(value, dict):
        value.pop("x-spec-enum-id", None)
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            _drop_marks(item)
