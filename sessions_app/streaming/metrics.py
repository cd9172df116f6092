"""What this process has open, for `/metrics`."""

from __future__ import annotations

from prometheus_client import Gauge

streams_open = Gauge("sederunt_streams_open", "Server-Sent Event streams open in this process.")
sockets_open = Gauge("sederunt_sockets_open", "WebSockets open in this process.")
subscriptions_open = Gauge(
    "sederunt_subscriptions_open", "Sessions followed by the sockets of this process."
)
