// JSON values: every one belongs to one document that lives as long as the call.

#include <stdlib.h>
#include <string.h>

#include "internal.h"
#include "yyjson/yyjson.h"

static yyjson_mut_doc *document(void) {
    static yyjson_mut_doc *only;
    if (only == NULL) {
        only = yyjson_mut_doc_new(NULL);
    }
    if (only == NULL) {
        abort();
    }
    return only;
}

static bb_json made(yyjson_mut_val *value) {
    if (value == NULL) {
        abort();
    }
    return value;
}

bb_json bb_parse_bytes(const void *text, size_t size) {
    // Numbers that no C type holds stay as they are written.
    yyjson_doc *read = yyjson_read_opts((char *)text, size, YYJSON_READ_BIGNUM_AS_RAW, NULL, NULL);
    if (read == NULL) {
        return NULL;
    }
    bb_json value = made(yyjson_val_mut_copy(document(), yyjson_doc_get_root(read)));
    yyjson_doc_free(read);
    return value;
}

bb_json bb_parse(const char *text) { return text == NULL ? NULL : bb_parse_bytes(text, strlen(text)); }

char *bb_write(bb_json value) {
    return yyjson_mut_val_write_opts(value == NULL ? bb_null() : value, YYJSON_WRITE_INF_AND_NAN_AS_NULL, NULL, NULL, NULL);
}

bb_kind bb_kind_of(bb_json value) {
    switch (yyjson_mut_get_type(value)) {
        case YYJSON_TYPE_NULL: return BB_NULL;
        case YYJSON_TYPE_BOOL: return BB_BOOL;
        case YYJSON_TYPE_RAW:
        case YYJSON_TYPE_NUM: return BB_NUMBER;
        case YYJSON_TYPE_STR: return BB_TEXT;
        case YYJSON_TYPE_ARR: return BB_ARRAY;
        case YYJSON_TYPE_OBJ: return BB_OBJECT;
        default: return BB_NONE;
    }
}

bb_json bb_get(bb_json object, const char *key) { return yyjson_mut_obj_get(object, key); }
bb_json bb_at(bb_json array, size_t index) { return yyjson_mut_arr_get(array, index); }

size_t bb_length(bb_json value) { return yyjson_mut_is_obj(value) ? yyjson_mut_obj_size(value) : yyjson_mut_arr_size(value); }

const char *bb_text(bb_json value) { return yyjson_mut_get_str(value); }
size_t bb_text_size(bb_json value) { return yyjson_mut_get_len(value); }
bool bb_bool(bb_json value, bool fallback) { return yyjson_mut_is_bool(value) ? yyjson_mut_get_bool(value) : fallback; }

int64_t bb_int(bb_json value, int64_t fallback) {
    if (yyjson_mut_is_sint(value)) {
        return yyjson_mut_get_sint(value);
    }
    if (yyjson_mut_is_uint(value)) {
        return yyjson_mut_get_uint(value) <= INT64_MAX ? (int64_t)yyjson_mut_get_uint(value) : fallback;
    }
    if (yyjson_mut_is_real(value)) {
        double real = yyjson_mut_get_real(value);
        // Whole numbers within the bounds where a double holds each one.
        if (real >= -9007199254740992.0 && real <= 9007199254740992.0 && (double)(int64_t)real == real) {
            return (int64_t)real;
        }
    }
    return fallback;
}

double bb_double(bb_json value, double fallback) {
    if (yyjson_mut_is_raw(value)) {
        return strtod(yyjson_mut_get_raw(value), NULL);
    }
    return yyjson_mut_is_num(value) ? yyjson_mut_get_num(value) : fallback;
}

const char *bb_get_text(bb_json object, const char *key) { return bb_text(bb_get(object, key)); }
int64_t bb_get_int(bb_json object, const char *key, int64_t fallback) { return bb_int(bb_get(object, key), fallback); }
double bb_get_double(bb_json object, const char *key, double fallback) { return bb_double(bb_get(object, key), fallback); }
bool bb_get_bool(bb_json object, const char *key, bool fallback) { return bb_bool(bb_get(object, key), fallback); }

bb_iterator bb_iterate(bb_json value) { return (bb_iterator){.container = value, .left = bb_length(value)}; }

bool bb_next(bb_iterator *iterator) {
    if (iterator->left == 0) {
        return false;
    }
    iterator->left--;
    // Containers are rings whose pointer is the last item; an object's ring goes from key to value to the next key.
    yyjson_mut_val *place = iterator->place == NULL ? iterator->container->uni.ptr : iterator->place;
    place = place->next;
    if (yyjson_mut_is_obj(iterator->container)) {
        if (iterator->place == NULL) {
            // The pointer of an object is its last key, behind which its value stands.
            place = place->next;
        }
        iterator->key = yyjson_mut_get_str(place);
        place = place->next;
    }
    iterator->value = place;
    iterator->place = place;
    return true;
}

bb_json bb_null(void) { return made(yyjson_mut_null(document())); }
bb_json bb_from_bool(bool value) { return made(yyjson_mut_bool(document(), value)); }
bb_json bb_from_int(int64_t value) { return made(yyjson_mut_sint(document(), value)); }
bb_json bb_from_double(double value) { return made(yyjson_mut_real(document(), value)); }
bb_json bb_array(void) { return made(yyjson_mut_arr(document())); }
bb_json bb_object(void) { return made(yyjson_mut_obj(document())); }

bb_json bb_from_text(const char *text) { return text == NULL ? bb_null() : bb_from_text_bytes(text, strlen(text)); }
bb_json bb_from_text_bytes(const void *text, size_t size) { return made(yyjson_mut_strncpy(document(), text == NULL ? "" : text, size)); }

// Puts a value that is in no container yet.
static bb_json put(bb_json object, const char *key, bb_json value) {
    if (yyjson_mut_is_obj(object) && !yyjson_mut_obj_put(object, bb_from_text(key), value)) {
        abort();
    }
    return object;
}

static bb_json copied(bb_json value) { return value == NULL ? bb_null() : made(yyjson_mut_val_mut_copy(document(), value)); }

bb_json bb_set(bb_json object, const char *key, bb_json value) { return put(object, key, copied(value)); }
bb_json bb_set_text(bb_json object, const char *key, const char *text) { return put(object, key, bb_from_text(text)); }
bb_json bb_set_int(bb_json object, const char *key, int64_t value) { return put(object, key, bb_from_int(value)); }
bb_json bb_set_double(bb_json object, const char *key, double value) { return put(object, key, bb_from_double(value)); }
bb_json bb_set_bool(bb_json object, const char *key, bool value) { return put(object, key, bb_from_bool(value)); }

bb_json bb_append(bb_json array, bb_json value) {
    if (yyjson_mut_is_arr(array) && !yyjson_mut_arr_append(array, copied(value))) {
        abort();
    }
    return array;
}
