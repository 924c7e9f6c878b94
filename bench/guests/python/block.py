"""What the benchmark calls of a block in Python."""

from dataclasses import dataclass

from blockbase import action, data, http


@action(description="Answers with its input.")
def echo(input: dict):
    return input


@dataclass
class Get:
    id: str


@action(description="Answers with a task.")
def get(input: Get):
    return data.get("task", input.id)


@action(description="Reads a task, and then increases its priority.")
def increase(input: Get):
    data.get("task", input.id)
    return data.update("task", input.id, {"priority": {"$inc": 1}})


@dataclass
class Wait:
    url: str


@action(description="Waits for the answer of whoever listens there.")
def wait(input: Wait):
    return http.get(input.url).status
