// What a block written in C includes: handlers are plain functions over JSON values, and BB_BLOCK lists them.
//
// Each call gets an instance of its own, whose memory is dropped after the call. So you need not free anything, and variables do not
// keep their values. But if the manifest asks for `instances.reuse`, an instance serves several calls: free what you allocate, and
// expect values of earlier calls in variables. The texts that the functions return are NUL-terminated UTF-8, and they stay valid until
// the call ends.
#ifndef BLOCKBASE_H
#define BLOCKBASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// ---- JSON ----

// A JSON value. NULL stands for "none": functions that read take it and answer with nothing, functions that write take it as null.
typedef struct yyjson_mut_val *bb_json;

typedef enum { BB_NONE, BB_NULL, BB_BOOL, BB_NUMBER, BB_TEXT, BB_ARRAY, BB_OBJECT } bb_kind;

// Reads JSON text; NULL where it is not JSON.
bb_json bb_parse(const char *text);
bb_json bb_parse_bytes(const void *text, size_t size);
// The JSON text of a value; NULL where it holds text that is not UTF-8.
char *bb_write(bb_json value);

bb_kind bb_kind_of(bb_json value);
// The member of an object, or NULL.
bb_json bb_get(bb_json object, const char *key);
// The item of an array, or NULL. Walking a long array is what bb_next is for.
bb_json bb_at(bb_json array, size_t index);
// How many items or members there are; 0 for what is neither array nor object.
size_t bb_length(bb_json value);

// The text, or NULL where the value is none.
const char *bb_text(bb_json value);
// The size of a text in bytes, for texts that may hold NUL characters.
size_t bb_text_size(bb_json value);
// The number or the truth value, or the fallback where the value is none or does not fit.
int64_t bb_int(bb_json value, int64_t fallback);
double bb_double(bb_json value, double fallback);
bool bb_bool(bb_json value, bool fallback);

// The same of an object's member.
const char *bb_get_text(bb_json object, const char *key);
int64_t bb_get_int(bb_json object, const char *key, int64_t fallback);
double bb_get_double(bb_json object, const char *key, double fallback);
bool bb_get_bool(bb_json object, const char *key, bool fallback);

// A walk over an array or an object:
//   for (bb_iterator each = bb_iterate(value); bb_next(&each);) { each.key, each.value }
typedef struct {
    const char *key;  // NULL in an array
    bb_json value;
    bb_json container;
    bb_json place;
    size_t left;
} bb_iterator;
bb_iterator bb_iterate(bb_json value);
bool bb_next(bb_iterator *iterator);

bb_json bb_null(void);
bb_json bb_from_bool(bool value);
bb_json bb_from_int(int64_t value);
bb_json bb_from_double(double value);
// A copy of the text; null where it is NULL.
bb_json bb_from_text(const char *text);
bb_json bb_from_text_bytes(const void *text, size_t size);
bb_json bb_array(void);
bb_json bb_object(void);

// What is put into an object or an array is copied, so that a value may be put into many: build from the inside out.
// Each function answers with the object or the array.
bb_json bb_set(bb_json object, const char *key, bb_json value);
bb_json bb_set_text(bb_json object, const char *key, const char *text);
bb_json bb_set_int(bb_json object, const char *key, int64_t value);
bb_json bb_set_double(bb_json object, const char *key, double value);
bb_json bb_set_bool(bb_json object, const char *key, bool value);
bb_json bb_append(bb_json array, bb_json value);

// JSON written in C without escapes: BB_JSON({ "type": "object" }).
#define BB_JSON(...) #__VA_ARGS__

// ---- Results ----

// A value, or an error where `code` is not NULL.
typedef struct {
    const char *code;
    const char *message;
    bb_json details;  // or NULL
    bb_json value;    // or NULL
} bb_result;

bb_result bb_ok(bb_json value);
// An error whose message is made as by printf. The codes "not_found", "invalid_request", "forbidden", "conflict" and "unavailable"
// become the status of their name; every other code is a failed action.
bb_result bb_fail(const char *code, const char *format, ...) __attribute__((format(printf, 2, 3)));
static inline bool bb_failed(bb_result result) { return result.code != NULL; }

// Assigns the value of a result, or returns from the handler with its error:
//   bb_json task;
//   BB_TRY(task, bb_data_get("task", id));
#define BB_TRY(target, result)                     \
    do {                                           \
        bb_result bb_try_result = (result);        \
        if (bb_failed(bb_try_result)) {            \
            return bb_try_result;                  \
        }                                          \
        (target) = bb_try_result.value;            \
    } while (0)
// The same where the value does not matter.
#define BB_CHECK(result)                           \
    do {                                           \
        bb_result bb_check_result = (result);      \
        if (bb_failed(bb_check_result)) {          \
            return bb_check_result;                \
        }                                          \
    } while (0)

// ---- Handlers ----

typedef struct {
    const char *user_id;     // or NULL
    const char *api_key_id;  // or NULL
    const char *via;
} bb_actor;

// What is true of one call.
typedef struct {
    const char *call_id;
    const char *block;
    const bb_actor *actor;  // NULL for the system and for anonymous callers
} bb_context;

// Bytes. There is always a NUL behind them, which `size` does not count.
typedef struct {
    const uint8_t *data;
    size_t size;
} bb_bytes;

bb_bytes bb_bytes_of(const char *text);

typedef struct {
    const char *name;
    bb_bytes value;
} bb_header;

// An HTTP request to a hook.
typedef struct {
    const char *method;
    const char *path;
    const char *query;
    const bb_header *headers;
    size_t headers_count;
    bb_bytes body;
    const char *remote_address;
} bb_request;

// An HTTP response; of a hook, or what bb_http_send got. `headers` may be NULL where there are none.
typedef struct {
    uint16_t status;
    const bb_header *headers;
    size_t headers_count;
    bb_bytes body;
} bb_response;

typedef struct {
    const char *id;
    const char *topic;
    bb_json payload;
    const char *occurred_at;
    uint32_t attempt;
} bb_event;

// The value of the first header of a name, whatever its case; NULL where there is none.
const char *bb_header_text(const bb_header *headers, size_t headers_count, const char *name);

// An action gets its input, which fits the input's schema, and answers with its output.
typedef bb_result (*bb_action_function)(const bb_context *context, bb_json input);
// A hook fills in the response; where it leaves the status 0, the service answers 200 `{ "received": true }`.
typedef bb_result (*bb_hook_function)(const bb_context *context, const bb_request *request, bb_response *response);
// A subscription handler gets an event and the subscription's config; an error is a failed delivery.
typedef bb_result (*bb_subscription_function)(const bb_context *context, const bb_event *event, bb_json config);

// Fills in a response whose body is JSON.
bb_result bb_respond_json(bb_response *response, uint16_t status, bb_json body);
bb_result bb_respond_text(bb_response *response, uint16_t status, const char *body);

typedef struct {
    const char *kind;
    const char *name;
    const char *description;
    const char *input;
    const char *event;
    const char *consumer;
    bb_action_function action;
    bb_hook_function hook;
    bb_subscription_function subscription;
} bb_handler;

// Each takes the function, whose name is the handler's.
// An action: what it does, and the JSON Schema of its input, of type object.
#define BB_ACTION(function, about, schema) { .kind = "action", .name = #function, .description = (about), .input = (schema), .action = (function) }
#define BB_HOOK(function, about) { .kind = "hook", .name = #function, .description = (about), .hook = (function) }
// A handler of the events whose topic matches, under the name of a consumer ("block:what").
#define BB_SUBSCRIPTION(function, topic, as) { .kind = "subscription", .name = #function, .event = (topic), .consumer = (as), .subscription = (function) }

// Makes the block of its handlers; once in all its files.
#define BB_BLOCK(...)                                   \
    const bb_handler bb_handlers[] = {__VA_ARGS__};     \
    const size_t bb_handlers_count = sizeof(bb_handlers) / sizeof(bb_handlers[0])

extern const bb_handler bb_handlers[];
extern const size_t bb_handlers_count;

// ---- Records. Each call is checked against `permissions.data` of block.json. ----

// Lists records: `{ search?, filters?: [{ field, operator?, value? }], where?, sort?, page?, pageSize?, limit?, offset?, after?,
// before?, select?, expand?, count? }` to `{ data, pagination }`. `where` is a condition, with and, or, not and relations. `after`
// and `before` are cursors, instead of `page` and `offset`; `"after": ""` reads the first page. `query` may be NULL.
bb_result bb_data_query(const char *object, bb_json query);
// One record; an error with the code "not_found" where there is none that the block may see.
bb_result bb_data_get(const char *object, const char *id);
// The same with related records: `expand` names relation keys, comma-separated.
bb_result bb_data_get_expanded(const char *object, const char *id, const char *expand);
// `{ fn: "count" | "sum" | "avg" | "min" | "max", field?, search?, filters?, where? }` to `{ value, filteredCount }`.
bb_result bb_data_aggregate(const char *object, bb_json query);
// The new record.
bb_result bb_data_create(const char *object, bb_json values);
// An array of records to `{ count, ids }`, all or none.
bb_result bb_data_create_many(const char *object, bb_json values);
// The record as it is afterwards. A numeric field takes `{ "$inc": n }` and `{ "$dec": n }`.
bb_result bb_data_update(const char *object, const char *id, bb_json changes);
// Inserts, or updates the record with the same values of a unique target, whose fields end with a NULL:
// `{ created, data }`.
bb_result bb_data_upsert(const char *object, bb_json values, const char *const *on_conflict);
// true, or false where there was none to delete.
bb_result bb_data_delete(const char *object, const char *id);
// `ids` is an array of texts here and below. The ids of those that were deleted.
bb_result bb_data_delete_many(const char *object, bb_json ids);
// Links by a many_to_many relation key: how many links are new, or how many were removed.
bb_result bb_data_link(const char *object, const char *id, const char *relation, bb_json ids);
bb_result bb_data_unlink(const char *object, const char *id, const char *relation, bb_json ids);
// Several writes, all or none: `[{ op: "create" | "update" | "upsert" | "delete" | "link" | "unlink", object, id?, values?, onConflict?, relation?,
// ids? }]` to their results in order. `{ "$ref": "0.id" }` is a field of an earlier result.
bb_result bb_data_batch(bb_json operations);

// ---- The rest of the service ----

// The configuration, checked against the manifest's schema, defaults filled in.
bb_json bb_config(void);

// A secret that `permissions.secrets` names; the value is a text.
bb_result bb_secret(const char *name);

// A line of the block's log, made as by printf.
void bb_log_error(const char *format, ...) __attribute__((format(printf, 1, 2)));
void bb_log_warn(const char *format, ...) __attribute__((format(printf, 1, 2)));
void bb_log_info(const char *format, ...) __attribute__((format(printf, 1, 2)));
void bb_log_debug(const char *format, ...) __attribute__((format(printf, 1, 2)));
// A line with fields, a JSON object or NULL. Levels: error, warn, info, debug, trace.
void bb_log(const char *level, const char *message, bb_json fields);

// An outgoing request, to what `permissions.http` names.
typedef struct {
    const char *method;  // NULL for GET
    const char *url;
    const bb_header *headers;
    size_t headers_count;
    bb_bytes body;       // `data` NULL for none
    uint32_t timeout_ms; // 0 for what is left of the call
} bb_http_request;
// Sends a request and waits for the whole response. Whatever status it has, it is no error.
bb_result bb_http_send(const bb_http_request *request, bb_response *response);

// Milliseconds until the call is stopped.
uint64_t bb_remaining_ms(void);
// Whether the caller has hung up or the call's time is over.
bool bb_is_cancelled(void);

// Text made as by printf.
char *bb_format(const char *format, ...) __attribute__((format(printf, 1, 2)));

// ---- Signatures ----

#define BB_SHA256_SIZE 32

void bb_sha256(const void *data, size_t size, uint8_t digest[BB_SHA256_SIZE]);
void bb_hmac_sha256(const void *key, size_t key_size, const void *data, size_t size, uint8_t code[BB_SHA256_SIZE]);
// Lowercase hexadecimal digits.
char *bb_hex(const void *data, size_t size);
// Compares in a time that does not depend on where the bytes differ.
bool bb_equal(const void *left, const void *right, size_t size);
// Whether `signature`, hexadecimal digits, is the HMAC-SHA256 of the body under the secret. Any of them may be NULL: then it is not.
bool bb_signature_fits(const char *secret, bb_bytes body, const char *signature);

#ifdef __cplusplus
}
#endif

#endif
