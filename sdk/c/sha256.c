// SHA-256 (FIPS 180-4), HMAC (RFC 2104) and comparison in constant time, for the signatures of hooks.

#include <stdlib.h>
#include <string.h>

#include "blockbase.h"

#define CHUNK_SIZE 64

typedef struct {
    uint32_t state[8];
    uint64_t size;
    uint8_t rest[CHUNK_SIZE];
} sha256;

static const uint32_t ROUNDS[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be,
    0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa,
    0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85,
    0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3,
    0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f,
    0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static uint32_t rotated(uint32_t word, int bits) { return word >> bits | word << (32 - bits); }

static void take_chunk(uint32_t state[8], const uint8_t *chunk) {
    uint32_t words[64];
    for (int i = 0; i < 16; i++) {
        words[i] = (uint32_t)chunk[4 * i] << 24 | (uint32_t)chunk[4 * i + 1] << 16 | (uint32_t)chunk[4 * i + 2] << 8 | chunk[4 * i + 3];
    }
    for (int i = 16; i < 64; i++) {
        uint32_t low = rotated(words[i - 15], 7) ^ rotated(words[i - 15], 18) ^ words[i - 15] >> 3;
        uint32_t high = rotated(words[i - 2], 17) ^ rotated(words[i - 2], 19) ^ words[i - 2] >> 10;
        words[i] = words[i - 16] + low + words[i - 7] + high;
    }
    uint32_t a = state[0], b = state[1], c = state[2], d = state[3], e = state[4], f = state[5], g = state[6], h = state[7];
    for (int i = 0; i < 64; i++) {
        uint32_t first = h + (rotated(e, 6) ^ rotated(e, 11) ^ rotated(e, 25)) + ((e & f) ^ (~e & g)) + ROUNDS[i] + words[i];
        uint32_t second = (rotated(a, 2) ^ rotated(a, 13) ^ rotated(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
        h = g, g = f, f = e, e = d + first, d = c, c = b, b = a, a = first + second;
    }
    state[0] += a, state[1] += b, state[2] += c, state[3] += d, state[4] += e, state[5] += f, state[6] += g, state[7] += h;
}

static void start(sha256 *hash) {
    *hash = (sha256){
        .state = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19},
    };
}

static void take(sha256 *hash, const void *data, size_t size) {
    const uint8_t *bytes = data;
    for (size_t i = 0; i < size; i++) {
        hash->rest[hash->size++ % CHUNK_SIZE] = bytes[i];
        if (hash->size % CHUNK_SIZE == 0) {
            take_chunk(hash->state, hash->rest);
        }
    }
}

static void finish(sha256 *hash, uint8_t digest[BB_SHA256_SIZE]) {
    uint64_t bits = hash->size * 8;
    take(hash, "\x80", 1);
    while (hash->size % CHUNK_SIZE != CHUNK_SIZE - 8) {
        take(hash, "", 1);
    }
    for (int i = 7; i >= 0; i--) {
        uint8_t byte = (uint8_t)(bits >> 8 * i);
        take(hash, &byte, 1);
    }
    for (int i = 0; i < BB_SHA256_SIZE; i++) {
        digest[i] = (uint8_t)(hash->state[i / 4] >> 8 * (3 - i % 4));
    }
}

void bb_sha256(const void *data, size_t size, uint8_t digest[BB_SHA256_SIZE]) {
    sha256 hash;
    start(&hash);
    take(&hash, data, size);
    finish(&hash, digest);
}

void bb_hmac_sha256(const void *key, size_t key_size, const void *data, size_t size, uint8_t code[BB_SHA256_SIZE]) {
    uint8_t block[CHUNK_SIZE] = {0};
    if (key_size > CHUNK_SIZE) {
        bb_sha256(key, key_size, block);
    } else if (key_size > 0) {
        memcpy(block, key, key_size);
    }
    uint8_t inner[CHUNK_SIZE], outer[CHUNK_SIZE];
    for (int i = 0; i < CHUNK_SIZE; i++) {
        inner[i] = block[i] ^ 0x36;
        outer[i] = block[i] ^ 0x5c;
    }
    sha256 hash;
    start(&hash);
    take(&hash, inner, CHUNK_SIZE);
    take(&hash, data, size);
    finish(&hash, code);
    start(&hash);
    take(&hash, outer, CHUNK_SIZE);
    take(&hash, code, BB_SHA256_SIZE);
    finish(&hash, code);
}

char *bb_hex(const void *data, size_t size) {
    static const char DIGITS[] = "0123456789abcdef";
    const uint8_t *bytes = data;
    char *text = malloc(2 * size + 1);
    if (text == NULL) {
        abort();
    }
    for (size_t i = 0; i < size; i++) {
        text[2 * i] = DIGITS[bytes[i] >> 4];
        text[2 * i + 1] = DIGITS[bytes[i] & 15];
    }
    text[2 * size] = '\0';
    return text;
}

bool bb_equal(const void *left, const void *right, size_t size) {
    // Volatile, so that no compiler ends the loop at the first difference.
    const volatile uint8_t *one = left, *other = right;
    uint8_t different = 0;
    for (size_t i = 0; i < size; i++) {
        different |= one[i] ^ other[i];
    }
    return different == 0;
}

bool bb_signature_fits(const char *secret, bb_bytes body, const char *signature) {
    if (secret == NULL || signature == NULL || strlen(signature) != 2 * BB_SHA256_SIZE) {
        return false;
    }
    uint8_t code[BB_SHA256_SIZE];
    bb_hmac_sha256(secret, strlen(secret), body.data, body.size, code);
    char given[2 * BB_SHA256_SIZE];
    for (size_t i = 0; i < sizeof(given); i++) {
        char digit = signature[i];
        given[i] = digit >= 'A' && digit <= 'F' ? (char)(digit - 'A' + 'a') : digit;
    }
    return bb_equal(bb_hex(code, sizeof(code)), given, sizeof(given));
}
