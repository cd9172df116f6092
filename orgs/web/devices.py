"""What a browser calls itself, in plain words."""

from __future__ import annotations

from dataclasses import dataclass

# The first that is found counts: most call themselves by their forerunners' names as well.
BROWSERS = {
    "Edg": "Edge",
    "OPR/": "Opera",
    "SamsungBrowser": "Samsung Internet",
    "Firefox/": "Firefox",
    "FxiOS": "Firefox",
    "CriOS": "Chrome",
    "Chrome/": "Chrome",
    "Safari/": "Safari",
}
SYSTEMS = {
    "iPhone": "iPhone",
    "iPad": "iPad",
    "Android": "Android",
    "CrOS": "ChromeOS",
    "Windows": "Windows",
    "Macintosh": "Mac",
    "Linux": "Linux",
}
HELD_IN_THE_HAND = {"iPhone", "iPad", "Android"}


@dataclass(frozen=True, slots=True)
class Device:
    name: str
    is_mobile: bool


def device_of(user_agent: str) -> Device:
    """`Firefox on Windows`; never more than what it says of itself."""
    browser = next((name for mark, name in BROWSERS.items() if mark in user_agent), "")
    system = next((name for mark, name in SYSTEMS.items() if mark in user_agent), "")
    name = " on ".join(filter(None, [browser, system]))
    return Device(name or "Unknown device", system in HELD_IN_THE_HAND)
