"""Language models: what one is asked, what it answers, and the providers that carry a turn there and back."""

from luthier.models.messages import Answer, Message, Turn, Usage
from luthier.models.model import Model
from luthier.models.prices import Price
from luthier.models.scripted import ScriptedModel
from luthier.models.tool import model_tool, model_uri

__all__ = [
    "Answer",
    "Message",
    "Model",
    "Price",
    "ScriptedModel",
    "Turn",
    "Usage",
    "model_tool",
    "model_uri",
]
