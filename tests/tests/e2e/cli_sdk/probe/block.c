#include <time.h>
#include <unistd.h>

#include "blockbase.h"

static bb_result echo(const bb_context *context, bb_json input) {
    (void)context;
    return bb_ok(input);
}

static bb_result refuse(const bb_context *context, bb_json input) {
    (void)context;
    return bb_fail(bb_get_text(input, "code"), "refused: %s", bb_get_text(input, "message"));
}

static bb_result fail(const bb_context *context, bb_json input) {
    (void)context;
    (void)input;
    return bb_fail(NULL, "it broke");
}

static bb_result crash(const bb_context *context, bb_json input) {
    (void)context;
    (void)input;
    __builtin_trap();
}

static bb_result tidy(const bb_context *context, bb_json input) {
    bb_json made = bb_array(), created, first, query, page, either, found, counted, deleted;
    for (bb_iterator each = bb_iterate(bb_get(input, "titles")); bb_next(&each);) {
        bb_append(made, bb_set(bb_object(), "title", each.value));
    }
    BB_TRY(created, bb_data_create_many("task", made));
    bb_json ids = bb_get(created, "ids");
    const char *id = bb_text(bb_at(ids, 0));
    BB_TRY(first, bb_data_update("task", id, bb_set_bool(bb_object(), "done", true)));
    bb_json filter = bb_set_bool(bb_set_text(bb_object(), "field", "done"), "value", false);
    query = bb_set(bb_object(), "filters", bb_append(bb_array(), filter));
    BB_TRY(page, bb_data_query("task", query));
    either = bb_append(bb_array(), bb_set_bool(bb_object(), "done", true));
    either = bb_append(either, bb_set_text(bb_object(), "title", "b"));
    BB_TRY(found, bb_data_query("task", bb_set(bb_object(), "where", bb_set(bb_object(), "_or", either))));
    BB_TRY(counted, bb_data_aggregate("task", bb_set_text(bb_object(), "fn", "count")));
    BB_TRY(deleted, bb_data_delete_many("task", ids));
    bb_result gone = bb_data_get("task", id);
    bb_result wrong = bb_data_create("task", bb_set_int(bb_object(), "priority", 99));

    bb_json answer = bb_object();
    bb_set(answer, "done", bb_get(first, "done"));
    bb_set_int(answer, "open", (int64_t)bb_length(bb_get(page, "data")));
    bb_set_int(answer, "either", (int64_t)bb_length(bb_get(found, "data")));
    bb_set(answer, "all", bb_get(counted, "value"));
    bb_set_int(answer, "deleted", (int64_t)bb_length(deleted));
    bb_set_text(answer, "gone", gone.code);
    bb_set_text(answer, "wrong", wrong.code);
    bb_set_text(answer, "mark", bb_get_text(bb_config(), "mark"));
    bb_set_text(answer, "block", context->block);
    bb_set_text(answer, "via", context->actor == NULL ? NULL : context->actor->via);
    bb_set_bool(answer, "hasTime", bb_remaining_ms() > 0 && !bb_is_cancelled());
    bb_log("info", "tidied", bb_set_int(bb_object(), "open", 2));
    return bb_ok(answer);
}

static bb_json column(bb_json page, const char *name) {
    bb_json values = bb_array();
    for (bb_iterator record = bb_iterate(bb_get(page, "data")); bb_next(&record);) {
        bb_append(values, bb_get(record.value, name));
    }
    return values;
}

static bb_result conditions(const bb_context *context, bb_json input) {
    (void)context;
    (void)input;
    bb_json open = bb_parse(BB_JSON({ "done": false, "project.owner.name": { "ilike": "an" } }));
    bb_result page = bb_data_query("task", bb_set(bb_object(), "where", open));
    if (bb_failed(page)) {
        return page;
    }
    bb_json books, projects, idle, counted;
    BB_TRY(books, bb_data_query("book", bb_parse(BB_JSON({ "where": { "_not": { "lent": true } } }))));
    bb_json some = bb_parse(BB_JSON({ "where": { "task_by_project": { "some": { "done": true } } } }));
    BB_TRY(projects, bb_data_query("project", some));
    bb_json both = bb_parse(BB_JSON({ "every": { "title": { "ilike": "a" } }, "none": { "done": true } }));
    bb_json condition = bb_set(bb_object(), "task_by_project", both);
    BB_TRY(idle, bb_data_query("project", bb_set(bb_object(), "where", condition)));
    bb_json count = bb_parse(BB_JSON({ "fn": "count", "where": { "project.owner.name": "Ann" } }));
    BB_TRY(counted, bb_data_aggregate("task", count));

    bb_json answer = bb_object();
    bb_set(answer, "open", column(page.value, "title"));
    bb_set(answer, "books", column(books, "title"));
    bb_set(answer, "projects", column(projects, "name"));
    bb_set(answer, "idle", column(idle, "name"));
    bb_set(answer, "counted", bb_get(counted, "value"));
    return bb_ok(answer);
}

static bb_result chance(const bb_context *context, bb_json input) {
    (void)context;
    (void)input;
    uint8_t bytes[16];
    if (getentropy(bytes, sizeof(bytes)) != 0) {
        return bb_fail(NULL, "no randomness");
    }
    return bb_ok(bb_set_text(bb_set_int(bb_object(), "seconds", time(NULL)), "random", bb_hex(bytes, sizeof(bytes))));
}

static bb_result sign(const bb_context *context, bb_json input) {
    (void)context;
    bb_json key = bb_get(input, "key"), text = bb_get(input, "text");
    uint8_t code[BB_SHA256_SIZE];
    bb_hmac_sha256(bb_text(key), bb_text_size(key), bb_text(text), bb_text_size(text), code);
    const char *hex = bb_hex(code, sizeof(code));
    bb_bytes body = {(const uint8_t *)bb_text(text), bb_text_size(text)};
    bool fits = bb_signature_fits(bb_text(key), body, hex) && !bb_signature_fits("other", body, hex);
    return bb_ok(bb_set_bool(bb_set_text(bb_object(), "hmac", hex), "fits", fits));
}

static bb_result fetch(const bb_context *context, bb_json input) {
    (void)context;
    bb_header headers[] = {{"x-from", bb_bytes_of("probe")}};
    bb_http_request request = {
        .method = "POST",
        .url = bb_get_text(input, "url"),
        .headers = headers,
        .headers_count = 1,
        .body = bb_bytes_of("hello"),
    };
    bb_response response;
    BB_CHECK(bb_http_send(&request, &response));
    bb_json answer = bb_set_int(bb_object(), "status", response.status);
    return bb_ok(bb_set_text(answer, "body", (const char *)response.body.data));
}

static bb_result signed_only(const bb_context *context, const bb_request *request, bb_response *response) {
    (void)context;
    bb_json key;
    BB_TRY(key, bb_secret("HOOK_KEY"));
    const char *signature = bb_header_text(request->headers, request->headers_count, "X-Signature");
    if (!bb_signature_fits(bb_text(key), request->body, signature)) {
        return bb_respond_text(response, 401, "wrong signature");
    }
    return bb_respond_json(response, 201, bb_set_text(bb_set_text(bb_object(), "method", request->method), "query", request->query));
}

static bb_result silent(const bb_context *context, const bb_request *request, bb_response *response) {
    (void)context;
    (void)request;
    (void)response;
    return bb_ok(NULL);
}

static bb_result on_task(const bb_context *context, const bb_event *event, bb_json config) {
    (void)context;
    (void)config;
    bb_json seen = bb_object();
    bb_set(seen, "source", bb_get(event->payload, "id"));
    bb_set(seen, "title", bb_get(bb_get(event->payload, "after"), "title"));
    BB_CHECK(bb_data_upsert("seen", seen, (const char *const[]){"source", NULL}));
    return bb_ok(NULL);
}

#define ANYTHING BB_JSON({ "type": "object" })

BB_BLOCK(
    BB_ACTION(echo, "Answers with its input.", ANYTHING),
    BB_ACTION(refuse, "Fails with a code.", ANYTHING),
    BB_ACTION(fail, "Fails without one.", ANYTHING),
    BB_ACTION(crash, "Ends badly.", ANYTHING),
    BB_ACTION(tidy, "Makes tasks and deletes them.", BB_JSON({
        "type": "object",
        "properties": { "titles": { "type": "array", "items": { "type": "string" } } },
        "required": ["titles"]
    })),
    BB_ACTION(conditions, "Asks with conditions.", ANYTHING),
    BB_ACTION(chance, "The time, and randomness.", ANYTHING),
    BB_ACTION(sign, "Signs a text.", ANYTHING),
    BB_ACTION(fetch, "Sends a request.", ANYTHING),
    BB_HOOK(signed_only, "Takes what is signed."),
    BB_HOOK(silent, "Says nothing."),
    BB_SUBSCRIPTION(on_task, "data.task.created", "probe:tasks")
);
