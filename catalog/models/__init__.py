from catalog.models.agent import Agent
from catalog.models.provider import Model, Provider

__all__ = ["Agent", "Model", "Provider"]
