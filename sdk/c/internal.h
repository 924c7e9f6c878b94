// What the files of the SDK share. Not for authors.
#ifndef BLOCKBASE_INTERNAL_H
#define BLOCKBASE_INTERNAL_H

#include "bindings/block.h"
#include "blockbase.h"

// Memory for as long as the call lives; where there is none left, the call ends.
void *bb_keep(size_t size);
// A NUL-terminated copy of what the host gave.
const char *bb_kept_text(block_string_t text);
bb_bytes bb_kept_bytes(block_list_u8_t bytes);

// A text for the host. Bytes that are not UTF-8 are replaced, since the host would end the call for them. NULL becomes the empty text.
block_string_t bb_host_text(const char *text);
block_list_u8_t bb_host_bytes(bb_bytes bytes);
block_list_tuple2_string_list_u8_t bb_host_headers(const bb_header *headers, size_t count);
const bb_header *bb_kept_headers(block_list_tuple2_string_list_u8_t headers);

#endif
