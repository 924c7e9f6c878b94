// What the service calls: finds the handler, gives it its arguments, and turns its result into the service's.

#include <string.h>

#include "internal.h"

// The generated code refers to it where the component's type is an object file of its own; `blockbase block build` puts the type in.
void __component_type_object_force_link_block(void) {}

static const bb_handler *find(const char *kind, block_string_t name) {
    const char *wanted = bb_kept_text(name);
    for (size_t i = 0; i < bb_handlers_count; i++) {
        if (strcmp(bb_handlers[i].kind, kind) == 0 && strcmp(bb_handlers[i].name, wanted) == 0) {
            return &bb_handlers[i];
        }
    }
    return NULL;
}

static blockbase_block_types_error_t host_error(bb_result result) {
    blockbase_block_types_error_t error = {.code = bb_host_text(result.code), .message = bb_host_text(result.message)};
    char *details = result.details == NULL ? NULL : bb_write(result.details);
    if (details != NULL) {
        error.details = (blockbase_block_types_option_json_t){.is_some = true, .val = {(uint8_t *)details, strlen(details)}};
    }
    return error;
}

static const char *option_text(block_option_string_t option) { return option.is_some ? bb_kept_text(option.val) : NULL; }

static bb_context kept_context(const blockbase_block_types_context_t *given) {
    bb_context context = {.call_id = bb_kept_text(given->call_id), .block = bb_kept_text(given->block)};
    if (given->actor.is_some) {
        bb_actor *actor = bb_keep(sizeof(*actor));
        *actor = (bb_actor){
            .user_id = option_text(given->actor.val.user_id),
            .api_key_id = option_text(given->actor.val.api_key_id),
            .via = bb_kept_text(given->actor.val.via),
        };
        context.actor = actor;
    }
    return context;
}

void exports_blockbase_block_registry_handlers(exports_blockbase_block_registry_list_handler_t *ret) {
    ret->ptr = bb_keep(bb_handlers_count * sizeof(*ret->ptr));
    ret->len = bb_handlers_count;
    for (size_t i = 0; i < bb_handlers_count; i++) {
        ret->ptr[i].name = bb_host_text(bb_handlers[i].name);
        ret->ptr[i].kind = bb_host_text(bb_handlers[i].kind);
    }
}

void exports_blockbase_block_actions_call(exports_blockbase_block_actions_context_t *context, block_string_t *name,
                                          exports_blockbase_block_actions_json_t *input,
                                          exports_blockbase_block_actions_result_json_error_t *ret) {
    const bb_handler *handler = find("action", *name);
    bb_context kept = kept_context(context);
    bb_result result = handler == NULL ? bb_fail("not_found", "No such action.")
                                       : handler->action(&kept, bb_parse_bytes(input->ptr, input->len));
    char *output = bb_failed(result) ? NULL : bb_write(result.value);
    if (!bb_failed(result) && output == NULL) {
        result = bb_fail("action_failed", "The output of %s holds text that is not UTF-8.", handler->name);
    }
    ret->is_err = bb_failed(result);
    if (ret->is_err) {
        ret->val.err = host_error(result);
    } else {
        ret->val.ok = (block_string_t){(uint8_t *)output, strlen(output)};
    }
}

void exports_blockbase_block_hooks_receive(exports_blockbase_block_hooks_context_t *context, block_string_t *name,
                                           exports_blockbase_block_hooks_request_t *request,
                                           exports_blockbase_block_hooks_result_option_response_error_t *ret) {
    const bb_handler *handler = find("hook", *name);
    bb_context kept = kept_context(context);
    bb_request given = {
        .method = bb_kept_text(request->method),
        .path = bb_kept_text(request->path),
        .query = bb_kept_text(request->query),
        .headers = bb_kept_headers(request->headers),
        .headers_count = request->headers.len,
        .body = bb_kept_bytes(request->body),
        .remote_address = bb_kept_text(request->remote_address),
    };
    bb_response response = {0};
    bb_result result = handler == NULL ? bb_fail("not_found", "No such hook.") : handler->hook(&kept, &given, &response);
    ret->is_err = bb_failed(result);
    if (ret->is_err) {
        ret->val.err = host_error(result);
        return;
    }
    ret->val.ok.is_some = response.status != 0;
    ret->val.ok.val = (exports_blockbase_block_hooks_response_t){
        .status = response.status,
        .headers = bb_host_headers(response.headers, response.headers_count),
        .body = bb_host_bytes(response.body),
    };
}

void exports_blockbase_block_subscriptions_deliver(exports_blockbase_block_subscriptions_context_t *context, block_string_t *name,
                                                   exports_blockbase_block_subscriptions_event_t *event,
                                                   exports_blockbase_block_subscriptions_json_t *config,
                                                   exports_blockbase_block_subscriptions_result_void_error_t *ret) {
    const bb_handler *handler = find("subscription", *name);
    bb_context kept = kept_context(context);
    bb_event given = {
        .id = bb_kept_text(event->id),
        .topic = bb_kept_text(event->topic),
        .payload = bb_parse_bytes(event->payload.ptr, event->payload.len),
        .occurred_at = bb_kept_text(event->occurred_at),
        .attempt = event->attempt,
    };
    bb_result result = handler == NULL ? bb_fail("not_found", "No such subscription handler.")
                                       : handler->subscription(&kept, &given, bb_parse_bytes(config->ptr, config->len));
    ret->is_err = bb_failed(result);
    if (ret->is_err) {
        ret->val.err = host_error(result);
    }
}

void exports_blockbase_sdk_describe_manifest(block_string_t *ret) {
    bb_json actions = bb_array(), hooks = bb_array(), subscriptions = bb_array();
    for (size_t i = 0; i < bb_handlers_count; i++) {
        const bb_handler *handler = &bb_handlers[i];
        bb_json entry = bb_object();
        bb_set_text(entry, handler->subscription == NULL ? "name" : "handler", handler->name);
        if (handler->description != NULL) {
            bb_set_text(entry, "description", handler->description);
        }
        if (handler->input != NULL) {
            bb_json schema = bb_parse(handler->input);
            // What is no JSON stays a text, which the build refuses with the action's name.
            bb_set(entry, "input", schema == NULL ? bb_from_text(handler->input) : schema);
        }
        if (handler->event != NULL) {
            bb_set_text(entry, "event", handler->event);
            bb_set_text(entry, "consumer", handler->consumer);
        }
        bb_append(handler->action != NULL ? actions : handler->hook != NULL ? hooks : subscriptions, entry);
    }
    bb_json manifest = bb_object();
    bb_set(manifest, "actions", actions);
    bb_set(manifest, "hooks", hooks);
    bb_set(manifest, "subscriptions", subscriptions);
    *ret = bb_host_text(bb_write(manifest));
}

static bb_result respond(bb_response *response, uint16_t status, const char *type, const char *body) {
    static bb_header headers[1];
    headers[0] = (bb_header){"content-type", bb_bytes_of(type)};
    *response = (bb_response){.status = status, .headers = headers, .headers_count = 1, .body = bb_bytes_of(body)};
    return bb_ok(NULL);
}

bb_result bb_respond_json(bb_response *response, uint16_t status, bb_json body) {
    char *text = bb_write(body);
    if (text == NULL) {
        return bb_fail("action_failed", "The response holds text that is not UTF-8.");
    }
    return respond(response, status, "application/json", text);
}

bb_result bb_respond_text(bb_response *response, uint16_t status, const char *body) {
    return respond(response, status, "text/plain; charset=utf-8", body);
}
