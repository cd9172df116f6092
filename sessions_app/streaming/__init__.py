"""Watching: one loop (`follow`) behind Server-Sent Events and WebSocket, fed by one hub."""
