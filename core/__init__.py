"""The floor: what every other room stands on. It knows no organization and no session."""
