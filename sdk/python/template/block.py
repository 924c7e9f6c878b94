"""The block {{name}}. What a handler gets and gives stands in .blockbase/sdk/README.md."""

from dataclasses import dataclass

from blockbase import Context, Event, HandlerError, Request, action, data, hook, log, subscription


@dataclass
class Greet:
    name: str
    times: int = 1


@action(description="Greets somebody.")
def greet(input: Greet, context: Context):
    if not 1 <= input.times <= 10:
        raise HandlerError("invalid_request", "Nobody wants to be greeted that often.")
    return {"greetings": [f"Hello, {input.name}!"] * input.times}


@hook(description="Answers with what it was sent.")
def ping(request: Request, context: Context):
    return {"method": request.method, "agent": request.headers.get("user-agent"), "body": request.text()}


@subscription("data.task.created", consumer="{{name}}:tasks")
def on_task(event: Event, config: dict, context: Context):
    """Marks new tasks titled "Say hello" as done, where the object `task` has `title` and `done`. Others are left alone: an event that
    a handler raises at is tried again, and is dead in the end."""
    task = data.get("task", event.payload["id"])
    if not task or task.get("title") != "Say hello" or task.get("done") is not False:
        return
    try:
        data.update("task", task["id"], {"done": True})
        log.info("said hello", task=task["id"])
    except HandlerError as error:
        # Only what may go better the next time is worth another attempt. The task may be gone, or a rule of its object may be against it.
        if error.code == "unavailable":
            raise
        log.warn("not done", task=task["id"], error=str(error))
