#include "blockbase.h"

// POST /api/v1/blocks/{{name}}/actions/greet
static bb_result greet(const bb_context *context, bb_json input) {
    (void)context;
    // The input fits the schema below: there is a name, and it is a text.
    const char *name = bb_get_text(input, "name");
    const char *greeting = bb_get_text(bb_config(), "greeting");
    return bb_ok(bb_set_text(bb_object(), "message", bb_format("%s, %s!", greeting, name)));
}

// Any request to /api/v1/hooks/{{name}}/ping
static bb_result ping(const bb_context *context, const bb_request *request, bb_response *response) {
    (void)context;
    bb_json answer = bb_object();
    bb_set_text(answer, "method", request->method);
    bb_set_int(answer, "bytes", (int64_t)request->body.size);
    return bb_respond_json(response, 200, answer);
}

// Every change of a record of the object `task`.
static bb_result on_task(const bb_context *context, const bb_event *event, bb_json config) {
    (void)context;
    (void)config;
    bb_log_info("%s", event->topic);
    return bb_ok(NULL);
}

BB_BLOCK(
    BB_ACTION(greet, "Greets somebody by name.", BB_JSON({
        "type": "object",
        "properties": { "name": { "type": "string", "minLength": 1 } },
        "required": ["name"],
        "additionalProperties": false
    })),
    BB_HOOK(ping, "Tells what came."),
    BB_SUBSCRIPTION(on_task, "data.task.#", "{{name}}:tasks")
);
