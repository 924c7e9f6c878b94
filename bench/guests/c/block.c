// What the benchmark calls of a block in C.

#include "blockbase.h"

static bb_result echo(const bb_context *context, bb_json input) {
    (void)context;
    return bb_ok(input);
}

static bb_result get(const bb_context *context, bb_json input) {
    (void)context;
    return bb_data_get("task", bb_get_text(input, "id"));
}

static bb_result increase(const bb_context *context, bb_json input) {
    (void)context;
    const char *id = bb_get_text(input, "id");
    BB_CHECK(bb_data_get("task", id));
    return bb_data_update("task", id, bb_parse(BB_JSON({ "priority": { "$inc": 1 } })));
}

static bb_result wait(const bb_context *context, bb_json input) {
    (void)context;
    bb_http_request request = {.url = bb_get_text(input, "url")};
    bb_response response;
    BB_CHECK(bb_http_send(&request, &response));
    return bb_ok(bb_from_int(response.status));
}

BB_BLOCK(
    BB_ACTION(echo, "Answers with its input.", BB_JSON({ "type": "object" })),
    BB_ACTION(get, "Answers with a task.", BB_JSON({
        "type": "object",
        "properties": { "id": { "type": "string" } },
        "required": ["id"]
    })),
    BB_ACTION(increase, "Reads a task, and then increases its priority.", BB_JSON({
        "type": "object",
        "properties": { "id": { "type": "string" } },
        "required": ["id"]
    })),
    BB_ACTION(wait, "Waits for the answer of whoever listens there.", BB_JSON({
        "type": "object",
        "properties": { "url": { "type": "string" } },
        "required": ["url"]
    }))
);
