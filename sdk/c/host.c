// The calls of the host's interfaces. Each takes its arguments as C has them and keeps what it gets for as long as the call lives.

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "internal.h"

// ---- Memory and texts ----

void *bb_keep(size_t size) {
    void *memory = calloc(1, size == 0 ? 1 : size);
    if (memory == NULL) {
        abort();
    }
    return memory;
}

const char *bb_kept_text(block_string_t text) {
    char *copy = bb_keep(text.len + 1);
    if (text.len > 0) {
        memcpy(copy, text.ptr, text.len);
    }
    return copy;
}

bb_bytes bb_kept_bytes(block_list_u8_t bytes) {
    uint8_t *copy = bb_keep(bytes.len + 1);
    if (bytes.len > 0) {
        memcpy(copy, bytes.ptr, bytes.len);
    }
    return (bb_bytes){copy, bytes.len};
}

bb_bytes bb_bytes_of(const char *text) { return (bb_bytes){(const uint8_t *)text, text == NULL ? 0 : strlen(text)}; }

// The size of the UTF-8 character that begins here, or 0 where none does.
static size_t character_size(const uint8_t *at) {
    static const struct {
        uint8_t mask, lead;
        uint32_t least;
    } SIZES[] = {{0x80, 0x00, 0}, {0xe0, 0xc0, 0x80}, {0xf0, 0xe0, 0x800}, {0xf8, 0xf0, 0x10000}};
    for (size_t more = 0; more < 4; more++) {
        if ((at[0] & SIZES[more].mask) != SIZES[more].lead) {
            continue;
        }
        uint32_t character = at[0] & (uint8_t)~SIZES[more].mask;
        for (size_t i = 1; i <= more; i++) {
            if ((at[i] & 0xc0) != 0x80) {
                return 0;
            }
            character = character << 6 | (at[i] & 0x3f);
        }
        bool surrogate = character >= 0xd800 && character < 0xe000;
        return character < SIZES[more].least || character > 0x10ffff || surrogate ? 0 : more + 1;
    }
    return 0;
}

block_string_t bb_host_text(const char *text) {
    static const char REPLACEMENT[] = "\xef\xbf\xbd";
    const uint8_t *at = (const uint8_t *)(text == NULL ? "" : text);
    uint8_t *copy = bb_keep(strlen((const char *)at) * (sizeof(REPLACEMENT) - 1));
    size_t size = 0;
    while (*at != '\0') {
        size_t taken = character_size(at);
        if (taken == 0) {
            memcpy(copy + size, REPLACEMENT, sizeof(REPLACEMENT) - 1);
            size += sizeof(REPLACEMENT) - 1;
            at++;
        } else {
            memcpy(copy + size, at, taken);
            size += taken;
            at += taken;
        }
    }
    return (block_string_t){copy, size};
}

block_list_u8_t bb_host_bytes(bb_bytes bytes) {
    uint8_t *copy = bb_keep(bytes.size);
    if (bytes.data != NULL && bytes.size > 0) {
        memcpy(copy, bytes.data, bytes.size);
    }
    return (block_list_u8_t){copy, bytes.data == NULL ? 0 : bytes.size};
}

block_list_tuple2_string_list_u8_t bb_host_headers(const bb_header *headers, size_t count) {
    count = headers == NULL ? 0 : count;
    block_tuple2_string_list_u8_t *list = bb_keep(count * sizeof(*list));
    for (size_t i = 0; i < count; i++) {
        list[i] = (block_tuple2_string_list_u8_t){bb_host_text(headers[i].name), bb_host_bytes(headers[i].value)};
    }
    return (block_list_tuple2_string_list_u8_t){list, count};
}

const bb_header *bb_kept_headers(block_list_tuple2_string_list_u8_t headers) {
    bb_header *list = bb_keep(headers.len * sizeof(*list));
    for (size_t i = 0; i < headers.len; i++) {
        list[i] = (bb_header){bb_kept_text(headers.ptr[i].f0), bb_kept_bytes(headers.ptr[i].f1)};
    }
    return list;
}

const char *bb_header_text(const bb_header *headers, size_t headers_count, const char *name) {
    for (size_t i = 0; headers != NULL && i < headers_count; i++) {
        if (strcasecmp(headers[i].name, name) == 0) {
            return (const char *)headers[i].value.data;
        }
    }
    return NULL;
}

static char *formatted(const char *format, va_list arguments) {
    char *text = NULL;
    if (vasprintf(&text, format, arguments) < 0) {
        abort();
    }
    return text;
}

char *bb_format(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    char *text = formatted(format, arguments);
    va_end(arguments);
    return text;
}

// ---- Results ----

bb_result bb_ok(bb_json value) { return (bb_result){.value = value}; }

bb_result bb_fail(const char *code, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    char *message = formatted(format, arguments);
    va_end(arguments);
    return (bb_result){.code = code == NULL ? "action_failed" : code, .message = message};
}

static bb_result refused(blockbase_block_types_error_t error) {
    bb_result result = {.code = bb_kept_text(error.code), .message = bb_kept_text(error.message)};
    if (error.details.is_some) {
        result.details = bb_parse_bytes(error.details.val.ptr, error.details.val.len);
    }
    return result;
}

static bb_result parsed(blockbase_block_data_result_json_error_t *answer) {
    return answer->is_err ? refused(answer->val.err) : bb_ok(bb_parse_bytes(answer->val.ok.ptr, answer->val.ok.len));
}

// The JSON text of an argument; false where it cannot be written.
static bool written(bb_json value, block_string_t *text) {
    char *bytes = bb_write(value);
    *text = (block_string_t){(uint8_t *)bytes, bytes == NULL ? 0 : strlen(bytes)};
    return bytes != NULL;
}

static bb_result unwritable(void) { return bb_fail("invalid_request", "A value that was to be sent holds text that is not UTF-8."); }

// ---- Records ----

bb_result bb_data_query(const char *object, bb_json query) {
    block_string_t name = bb_host_text(object), text;
    if (!written(query == NULL ? bb_object() : query, &text)) {
        return unwritable();
    }
    blockbase_block_data_result_json_error_t answer;
    blockbase_block_data_query(&name, &text, &answer);
    return parsed(&answer);
}

static bb_result get(const char *object, const char *id, blockbase_block_data_option_json_t options) {
    block_string_t name = bb_host_text(object), key = bb_host_text(id);
    blockbase_block_data_result_option_json_error_t answer;
    blockbase_block_data_get(&name, &key, &options, &answer);
    if (answer.is_err) {
        return refused(answer.val.err);
    }
    if (!answer.val.ok.is_some) {
        return bb_fail("not_found", "No such %s.", object);
    }
    return bb_ok(bb_parse_bytes(answer.val.ok.val.ptr, answer.val.ok.val.len));
}

bb_result bb_data_get(const char *object, const char *id) { return get(object, id, (blockbase_block_data_option_json_t){0}); }

bb_result bb_data_get_expanded(const char *object, const char *id, const char *expand) {
    blockbase_block_data_option_json_t options = {.is_some = true};
    if (!written(bb_set_text(bb_object(), "expand", expand), &options.val)) {
        return unwritable();
    }
    return get(object, id, options);
}

bb_result bb_data_aggregate(const char *object, bb_json query) {
    block_string_t name = bb_host_text(object), text;
    if (!written(query, &text)) {
        return unwritable();
    }
    blockbase_block_data_result_json_error_t answer;
    blockbase_block_data_aggregate(&name, &text, &answer);
    return parsed(&answer);
}

bb_result bb_data_create(const char *object, bb_json values) {
    block_string_t name = bb_host_text(object), text;
    if (!written(values, &text)) {
        return unwritable();
    }
    blockbase_block_data_result_json_error_t answer;
    blockbase_block_data_create(&name, &text, &answer);
    return parsed(&answer);
}

bb_result bb_data_create_many(const char *object, bb_json values) {
    block_string_t name = bb_host_text(object), text;
    if (!written(values, &text)) {
        return unwritable();
    }
    blockbase_block_data_result_json_error_t answer;
    blockbase_block_data_create_many(&name, &text, &answer);
    return parsed(&answer);
}

bb_result bb_data_update(const char *object, const char *id, bb_json changes) {
    block_string_t name = bb_host_text(object), key = bb_host_text(id), text;
    if (!written(changes, &text)) {
        return unwritable();
    }
    blockbase_block_data_result_json_error_t answer;
    blockbase_block_data_update(&name, &key, &text, &answer);
    return parsed(&answer);
}

bb_result bb_data_upsert(const char *object, bb_json values, const char *const *on_conflict) {
    block_string_t name = bb_host_text(object), text;
    if (!written(values, &text)) {
        return unwritable();
    }
    block_list_string_t target = {0};
    while (on_conflict != NULL && on_conflict[target.len] != NULL) {
        target.len++;
    }
    target.ptr = bb_keep(target.len * sizeof(*target.ptr));
    for (size_t i = 0; i < target.len; i++) {
        target.ptr[i] = bb_host_text(on_conflict[i]);
    }
    blockbase_block_data_result_json_error_t answer;
    blockbase_block_data_upsert(&name, &text, &target, &answer);
    return parsed(&answer);
}

bb_result bb_data_delete(const char *object, const char *id) {
    block_string_t name = bb_host_text(object), key = bb_host_text(id);
    blockbase_block_data_result_bool_error_t answer;
    blockbase_block_data_delete(&name, &key, &answer);
    return answer.is_err ? refused(answer.val.err) : bb_ok(bb_from_bool(answer.val.ok));
}

static block_list_string_t host_texts(bb_json texts) {
    block_list_string_t list = {.ptr = bb_keep(bb_length(texts) * sizeof(*list.ptr))};
    for (bb_iterator each = bb_iterate(texts); bb_next(&each);) {
        list.ptr[list.len++] = bb_host_text(bb_text(each.value));
    }
    return list;
}

bb_result bb_data_delete_many(const char *object, bb_json ids) {
    block_string_t name = bb_host_text(object);
    block_list_string_t keys = host_texts(ids);
    blockbase_block_data_result_list_string_error_t answer;
    blockbase_block_data_delete_many(&name, &keys, &answer);
    if (answer.is_err) {
        return refused(answer.val.err);
    }
    bb_json deleted = bb_array();
    for (size_t i = 0; i < answer.val.ok.len; i++) {
        bb_append(deleted, bb_from_text_bytes(answer.val.ok.ptr[i].ptr, answer.val.ok.ptr[i].len));
    }
    return bb_ok(deleted);
}

static bb_result counted(const blockbase_block_data_result_u32_error_t *answer) {
    return answer->is_err ? refused(answer->val.err) : bb_ok(bb_from_int(answer->val.ok));
}

bb_result bb_data_link(const char *object, const char *id, const char *relation, bb_json ids) {
    block_string_t name = bb_host_text(object), key = bb_host_text(id), relation_key = bb_host_text(relation);
    block_list_string_t keys = host_texts(ids);
    blockbase_block_data_result_u32_error_t answer;
    blockbase_block_data_link(&name, &key, &relation_key, &keys, &answer);
    return counted(&answer);
}

bb_result bb_data_unlink(const char *object, const char *id, const char *relation, bb_json ids) {
    block_string_t name = bb_host_text(object), key = bb_host_text(id), relation_key = bb_host_text(relation);
    block_list_string_t keys = host_texts(ids);
    blockbase_block_data_result_u32_error_t answer;
    blockbase_block_data_unlink(&name, &key, &relation_key, &keys, &answer);
    return counted(&answer);
}

bb_result bb_data_batch(bb_json operations) {
    block_string_t text;
    if (!written(operations, &text)) {
        return unwritable();
    }
    blockbase_block_data_result_json_error_t answer;
    blockbase_block_data_batch(&text, &answer);
    return parsed(&answer);
}

// ---- The rest of the service ----

bb_json bb_config(void) {
    block_string_t text;
    blockbase_block_config_get(&text);
    return bb_parse_bytes(text.ptr, text.len);
}

bb_result bb_secret(const char *name) {
    block_string_t key = bb_host_text(name);
    blockbase_block_secrets_result_string_error_t answer;
    blockbase_block_secrets_get(&key, &answer);
    return answer.is_err ? refused(answer.val.err) : bb_ok(bb_from_text_bytes(answer.val.ok.ptr, answer.val.ok.len));
}

void bb_log(const char *level, const char *message, bb_json fields) {
    block_string_t name = bb_host_text(level), line = bb_host_text(message);
    blockbase_block_log_option_json_t with = {.is_some = false};
    if (fields != NULL) {
        with.is_some = written(fields, &with.val);
    }
    blockbase_block_log_log(&name, &line, &with);
}

#define LOG_FUNCTION(level)                             \
    void bb_log_##level(const char *format, ...) {      \
        va_list arguments;                              \
        va_start(arguments, format);                    \
        bb_log(#level, formatted(format, arguments), NULL); \
        va_end(arguments);                              \
    }

LOG_FUNCTION(error)
LOG_FUNCTION(warn)
LOG_FUNCTION(info)
LOG_FUNCTION(debug)

bb_result bb_http_send(const bb_http_request *request, bb_response *response) {
    blockbase_block_http_request_t sent = {
        .method = bb_host_text(request->method == NULL ? "GET" : request->method),
        .url = bb_host_text(request->url),
        .headers = bb_host_headers(request->headers, request->headers_count),
        .body = {.is_some = request->body.data != NULL, .val = bb_host_bytes(request->body)},
        .timeout_ms = {.is_some = request->timeout_ms != 0, .val = request->timeout_ms},
    };
    blockbase_block_http_result_response_error_t answer;
    blockbase_block_http_send(&sent, &answer);
    if (answer.is_err) {
        return refused(answer.val.err);
    }
    *response = (bb_response){
        .status = answer.val.ok.status,
        .headers = bb_kept_headers(answer.val.ok.headers),
        .headers_count = answer.val.ok.headers.len,
        .body = bb_kept_bytes(answer.val.ok.body),
    };
    return bb_ok(NULL);
}

uint64_t bb_remaining_ms(void) { return blockbase_block_deadline_remaining_ms(); }
bool bb_is_cancelled(void) { return blockbase_block_deadline_is_cancelled(); }
