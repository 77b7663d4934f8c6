"""A model that answers as a test says."""

import json
from collections.abc import Callable
from typing import Any


class ScriptedModel:
    """A client whose replies are made by a function of the prompt and the request.

    Attributes:
        requests: The requests so far.
    """

    def __init__(self, answer: Callable[[str, dict[str, Any]], Any]) -> None:
        self.requests: list[dict[str, Any]] = []
        self._answer = answer

    async def complete(self, request: dict[str, Any]) -> dict[str, Any]:
        self.requests.append(request)
        if "input" in request:
            return self._answer("", request)
        found = self._answer(request["messages"][-1]["content"], request)
        text = found if isinstance(found, str) else json.dumps(found)
        return {"choices": [{"message": {"content": text}, "finish_reason": "stop"}]}

    @property
    def prompts(self) -> list[str]:
        return [request["messages"][-1]["content"] for request in self.requests]
