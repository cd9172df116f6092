"""The browser's window onto sessions: views, view models and live fragments."""
