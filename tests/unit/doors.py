"""The public functions of services and selectors that are called without a caller's access, and
why each may be. A module stands for all that is in it.
"""

from __future__ import annotations

AT_SET_UP = "sets up, before anybody could have an access"
BY_TOKEN = "the token in a mail is what admits; whoever holds it is not signed in"
CHORE = "a chore of the worker: it acts for nobody"
FOR_OTHERS = "a step of a service that was asked with an access"
OF_VALUES = "looks at values alone"
OF_WORKERS = "a worker acts, and proves itself by its leases"

DOORS: dict[str, str] = {
    "catalog.selectors.find_agent": FOR_OTHERS,
    "catalog.selectors.find_available_model": FOR_OTHERS,
    "catalog.selectors.find_default_model": FOR_OTHERS,
    "catalog.selectors.find_model": FOR_OTHERS,
    "catalog.selectors.list_models": FOR_OTHERS,
    "catalog.selectors.provider_connection": OF_WORKERS,
    "catalog.selectors.resolve_model": FOR_OTHERS,
    "catalog.selectors.served_kinds": "tells of workers, which are the server's",
    "catalog.services.agents.get_or_create_default_agent": FOR_OTHERS,
    "catalog.services.defaults": FOR_OTHERS,
    "catalog.services.validation": OF_VALUES,
    "catalog.services.workers": OF_WORKERS,
    "orgs.selectors.invitations.find_invitation": BY_TOKEN,
    "orgs.selectors.passwords.find_reset": BY_TOKEN,
    "orgs.selectors.passwords.people": FOR_OTHERS,
    "orgs.services.audit.target_of": OF_VALUES,
    "orgs.services.audit.time_of": OF_VALUES,
    "orgs.services.epochs": FOR_OTHERS,
    "orgs.services.founding": AT_SET_UP,
    "orgs.services.holding.lock_organization": FOR_OTHERS,
    "orgs.services.holding.lock_organizations": FOR_OTHERS,
    "orgs.services.invitations.accept_as_newcomer": BY_TOKEN,
    "orgs.services.operators": "an operator acts, who stands outside all organizations",
    "orgs.services.passwords.make_reset_mail": "nobody can sign in who asks for it",
    "orgs.services.passwords.require_password": OF_VALUES,
    "orgs.services.passwords.reset_password": BY_TOKEN,
    "orgs.services.sweeping": CHORE,
    "orgs.services.validation": OF_VALUES,
    "sessions_app.services.attempts": OF_WORKERS,
    "sessions_app.services.composer_drafts.consume_draft": FOR_OTHERS,
    "sessions_app.services.model_settings": FOR_OTHERS,
    "sessions_app.services.open_waits": FOR_OTHERS,
    "sessions_app.services.settling.expire_waits": CHORE,
    "sessions_app.services.validation": OF_VALUES,
    "sessions_app.services.verification.verify_session": CHORE,
}
