from catalog.models.agent import Agent
from catalog.models.provider import Model, Provider
from catalog.models.worker import LiveWorker

__all__ = ["Agent", "LiveWorker", "Model", "Provider"]
