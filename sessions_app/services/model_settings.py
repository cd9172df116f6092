"""Which model, effort and speed a turn uses: from what was asked for to what is frozen."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from catalog.kinds import ModelRef, ReasoningEffort, Speed
from catalog.selectors import (
    find_available_model,
    find_default_model,
    find_model,
    resolve_model,
)
from core.errors import InvalidInput, Unprocessable
from sessions_app.domain.settings import PartialSettings, Source, TurnSettings, settle
from sessions_app.models import Session, Turn


@dataclass(frozen=True, slots=True)
class RequestedSettings:
    """As it came: `model` is an id, alias or display name, `provider` may qualify it."""

    model: str = ""
    provider: str = ""
    reasoning_effort: str | None = None
    speed: str | None = None


def resolve_request(*, organization_id: UUID, requested: RequestedSettings) -> PartialSettings:
    """Canonical ids for what was asked. Without a model no catalogue is consulted.

    Raises Unprocessable `model_unavailable`, `model_ambiguous`; InvalidInput for the others.
    """
    _require_known(requested.reasoning_effort, ReasoningEffort, "reasoning_effort")
    _require_known(requested.speed, Speed, "speed")
    model = None
    if requested.model:
        ref = resolve_model(
            organization_id=organization_id, choice=requested.model, provider_id=requested.provider
        )
        model = (ref.provider_id, ref.model_id)
    return PartialSettings(model, requested.reasoning_effort, requested.speed)


def settle_turn(*, session: Session, turn: Turn) -> tuple[TurnSettings, Source, ModelRef]:
    """What a turn that starts now will use, who chose its model, and how that is called.

    Raises Unprocessable `model_unavailable` where no source names a model, or it is gone or
    switched off.
    """
    requested = PartialSettings.from_json(turn.requested_settings)
    return _settle(session, [(Source.PROMPT, requested), *_sources(session)])


def require_available(
    *, session: Session, requested: PartialSettings, param: str | None = None
) -> None:
    """Before a prompt is accepted: what it would start with may be used now. Raises as
    `settle_turn` does.
    """
    _settle(session, [(Source.PROMPT, requested), *_sources(session)], param)


def effective_settings(*, session: Session, change: PartialSettings) -> TurnSettings | None:
    """What the session would use next with `change`; None where no source names a model."""
    settings, _ = settle([(Source.NEXT_SEND, change), *_sources(session)])
    return settings


def label_of(*, organization_id: UUID, settings: PartialSettings) -> str:
    """How people read these settings; empty where they name no model, or one that is gone."""
    if settings.model is None:
        return ""
    provider_id, model_id = settings.model
    ref = find_model(organization_id=organization_id, provider_id=provider_id, model_id=model_id)
    if ref is None:
        return ""
    effort = settings.reasoning_effort
    return f"{ref.display_name} · {effort}" if effort else ref.display_name


def _settle(
    session: Session, sources: list[tuple[Source, PartialSettings]], param: str | None = None
) -> tuple[TurnSettings, Source, ModelRef]:
    settings, source = settle(sources)
    if settings is None:
        raise Unprocessable(
            "model_unavailable",
            "No model is set up; an owner can add a provider with one.",
            param=param,
        )
    ref = find_available_model(
        organization_id=session.organization_id,
        provider_id=settings.provider_id,
        model_id=settings.model_id,
    )
    if ref is None:
        raise Unprocessable(
            "model_unavailable",
            f"The model {settings.provider_id}/{settings.model_id} was removed or switched off; "
            "choose another one.",
            param=param,
        )
    return settings, source, ref


def _sources(session: Session) -> list[tuple[Source, PartialSettings]]:
    agent = session.agent_snapshot
    return [
        (Source.NEXT_SEND, PartialSettings.from_json(session.next_settings)),
        (Source.LATEST_TURN, PartialSettings.from_json(session.model_settings)),
        (Source.SESSION, PartialSettings.from_json(session.initial_settings)),
        (Source.AGENT, PartialSettings.from_json(agent.get("settings"))),
        (Source.ORGANIZATION, _organization_default(session)),
    ]


def _organization_default(session: Session) -> PartialSettings:
    ref = find_default_model(organization_id=session.organization_id)
    return PartialSettings((ref.provider_id, ref.model_id)) if ref else PartialSettings()


def _require_known(
    value: str | None, enum: type[ReasoningEffort] | type[Speed], param: str
) -> None:
    allowed = [member.value for member in enum]
    if value is not None and value not in allowed:
        raise InvalidInput(f"invalid_{param}", f"Use one of {', '.join(allowed)}.", param=param)
