"""What the engine does to sessions. Every write carries a lease and is refused when it is stale."""

from sessions_app.services.attempts.claiming import claim_turn, find_claim
from sessions_app.services.attempts.effects import record_effect
from sessions_app.services.attempts.ending import Completed, Failed, finish_turn, hand_over
from sessions_app.services.attempts.lease import Claim, Lease, LeaseLost
from sessions_app.services.attempts.leases import (
    Heartbeats,
    acknowledge_quiet,
    heartbeat,
    reap_expired,
)
from sessions_app.services.attempts.recording import (
    GroupRecord,
    mark_rescheduling,
    mark_running,
    open_step,
    read_own_log,
    read_turn_log,
    record,
    record_groups,
)
from sessions_app.services.attempts.waiting import record_ask, suspend_turn

__all__ = [
    "Claim",
    "Completed",
    "Failed",
    "GroupRecord",
    "Heartbeats",
    "Lease",
    "LeaseLost",
    "acknowledge_quiet",
    "claim_turn",
    "find_claim",
    "finish_turn",
    "hand_over",
    "heartbeat",
    "mark_rescheduling",
    "mark_running",
    "open_step",
    "read_own_log",
    "read_turn_log",
    "reap_expired",
    "record",
    "record_ask",
    "record_effect",
    "record_groups",
    "suspend_turn",
]
