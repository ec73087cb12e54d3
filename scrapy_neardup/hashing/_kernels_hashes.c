/* BLAKE2b of 8 bytes, RFC 7693: the hashes of texts. */
#include "_kernels.h"

static const uint64_t IV[8] = {
    UINT64_C(0x6A09E667F3BCC908), UINT64_C(0xBB67AE8584CAA73B), UINT64_C(0x3C6EF372FE94F82B),
    UINT64_C(0xA54FF53A5F1D36F1), UINT64_C(0x510E527FADE682D1), UINT64_C(0x9B05688C2B3E6C1F),
    UINT64_C(0x1F83D9ABFB41BD6B), UINT64_C(0x5BE0CD19137E2179),
};

#define TURNED(x, n) (((x) >> (n)) | ((x) << (64 - (n))))

/* Of words, or of vectors of words; ``turned`` rotates them to the right. */
#define G(turned, a, b, c, d, x, y)                                                                                    \
    do {                                                                                                               \
        a += b + (x);                                                                                                  \
        d = turned(d ^ a, 32);                                                                                         \
        c += d;                                                                                                        \
        b = turned(b ^ c, 24);                                                                                         \
        a += b + (y);                                                                                                  \
        d = turned(d ^ a, 16);                                                                                         \
        c += d;                                                                                                        \
        b = turned(b ^ c, 63);                                                                                         \
    } while (0)

/* One of the twelve rounds, by its order of the words. Written out, they take a sixth less time. */
#define ROUND(t, s0, s1, s2, s3, s4, s5, s6, s7, s8, s9, s10, s11, s12, s13, s14, s15)                                 \
    do {                                                                                                               \
        G(t, v[0], v[4], v[8], v[12], m[s0], m[s1]);                                                                   \
        G(t, v[1], v[5], v[9], v[13], m[s2], m[s3]);                                                                   \
        G(t, v[2], v[6], v[10], v[14], m[s4], m[s5]);                                                                  \
        G(t, v[3], v[7], v[11], v[15], m[s6], m[s7]);                                                                  \
        G(t, v[0], v[5], v[10], v[15], m[s8], m[s9]);                                                                  \
        G(t, v[1], v[6], v[11], v[12], m[s10], m[s11]);                                                                \
        G(t, v[2], v[7], v[8], v[13], m[s12], m[s13]);                                                                 \
        G(t, v[3], v[4], v[9], v[14], m[s14], m[s15]);                                                                 \
    } while (0)

#define ROUNDS(t)                                                                                                      \
    do {                                                                                                               \
        ROUND(t, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);                                                \
        ROUND(t, 14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3);                                                \
        ROUND(t, 11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4);                                                \
        ROUND(t, 7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8);                                                \
        ROUND(t, 9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13);                                                \
        ROUND(t, 2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9);                                                \
        ROUND(t, 12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11);                                                \
        ROUND(t, 13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10);                                                \
        ROUND(t, 6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5);                                                \
        ROUND(t, 10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0);                                                \
        ROUND(t, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);                                                \
        ROUND(t, 14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3);                                                \
    } while (0)

/* Texts are shorter than 2**64 bytes, so the upper word of the counter stays 0; ``last`` has all bits of a last block. */
static void compress(uint64_t h[8], const uint8_t *block, uint64_t counted, uint64_t last)
{
    uint64_t m[16], v[16];
    int i;
    for (i = 0; i < 16; i++)
        m[i] = word_at(block + 8 * i);
    for (i = 0; i < 8; i++) {
        v[i] = h[i];
        v[i + 8] = IV[i];
    }
    v[12] ^= counted;
    v[14] ^= last;
    ROUNDS(TURNED);
    for (i = 0; i < 8; i++)
        h[i] ^= v[i] ^ v[i + 8];
}

uint8_t *encode(const Py_UCS4 *at, Py_ssize_t count, uint8_t *to)
{
    const Py_UCS4 *end = at + count;
    for (; at < end; at++) {
        Py_UCS4 c = *at;
        if (c >= 0x800 && c < 0x10000 && c >> 11 != 0xD800 >> 11) {
            to[0] = (uint8_t)(0xE0 | c >> 12);
            to[1] = (uint8_t)(0x80 | (c >> 6 & 0x3F));
            to[2] = (uint8_t)(0x80 | (c & 0x3F));
            to += 3;
        }
        else if (c < 0x80)
            *to++ = (uint8_t)c;
        else if (c < 0x800) {
            *to++ = (uint8_t)(0xC0 | c >> 6);
            *to++ = (uint8_t)(0x80 | (c & 0x3F));
        }
        else if (c < 0x10000)
            *to++ = '?';
        else {
            *to++ = (uint8_t)(0xF0 | c >> 18);
            *to++ = (uint8_t)(0x80 | (c >> 12 & 0x3F));
            *to++ = (uint8_t)(0x80 | (c >> 6 & 0x3F));
            *to++ = (uint8_t)(0x80 | (c & 0x3F));
        }
    }
    return to;
}

/* A text, read block by block. */
typedef struct {
    const uint8_t *at, *end; /* what is left of it */
    uint64_t counted;        /* bytes of all blocks up to this one */
    uint64_t last;           /* all bits in the last block */
    uint8_t block[BLOCK];
} Stream;

/* Begins a text, without a block; returns the first state. */
static const uint64_t *begin(Stream *stream, const Key *key, const Text *text)
{
    int is_key_last = text->at == text->end && key->is_keyed; /* of an empty text the block of the key is the last one */
    stream->at = is_key_last ? key->block : text->at;
    stream->end = is_key_last ? key->block + BLOCK : text->end;
    stream->counted = key->is_keyed && !is_key_last ? BLOCK : 0;
    return is_key_last ? key->before : key->behind;
}

static void fill(Stream *stream)
{
    size_t left = (size_t)(stream->end - stream->at), size = left < BLOCK ? left : BLOCK;
    memcpy(stream->block, stream->at, size);
    memset(stream->block + size, 0, BLOCK - size);
    stream->at += size;
    stream->counted += size;
    stream->last = left > BLOCK ? 0 : UINT64_MAX;
}

/* The 8 bytes of a hash as a number, the first one the highest. */
static uint64_t reversed(uint64_t word)
{
    uint64_t found = 0;
    int i;
    for (i = 0; i < 8; i++)
        found = found << 8 | (word >> (8 * i) & 0xFF);
    return found;
}

static void hash_one(const Key *key, Text *text)
{
    Stream stream;
    uint64_t h[8];
    memcpy(h, begin(&stream, key, text), sizeof h);
    do {
        fill(&stream);
        compress(h, stream.block, stream.counted, stream.last);
    } while (!stream.last);
    text->hash = reversed(h[0]);
}

/* A processor with AVX2 hashes four texts in vectors in less than twice the time of one. Where a text ends, the next one takes
 * its lane. On Windows, GCC does not align vectors. */
#if defined(__GNUC__) && defined(__x86_64__) && !defined(_WIN32)
#include <immintrin.h>
#define LANES 4

typedef uint64_t Four __attribute__((vector_size(32)));

/* Rotations by whole bytes take one step, that by 63 bits three. */
#define FOUR_TURNED(x, n)                                                                                              \
    ((n) == 63   ? TURNED(x, 63)                                                                                       \
     : (n) == 32 ? (Four)_mm256_shuffle_epi32((__m256i)(x), 0xB1)                                                      \
                 : (Four)_mm256_shuffle_epi8((__m256i)(x), (n) == 24 ? by_24 : by_16))

__attribute__((target("avx2"))) static void compress_four(Four h[8], const Stream *s)
{
    const __m256i by_16 = _mm256_set_epi64x(0x09080F0E0D0C0B0A, 0x0100070605040302, 0x09080F0E0D0C0B0A, 0x0100070605040302);
    const __m256i by_24 = _mm256_set_epi64x(0x0A09080F0E0D0C0B, 0x0201000706050403, 0x0A09080F0E0D0C0B, 0x0201000706050403);
    Four m[16], v[16];
    int i;
    for (i = 0; i < 16; i++)
        m[i] = (Four){word_at(s[0].block + 8 * i), word_at(s[1].block + 8 * i), word_at(s[2].block + 8 * i),
                      word_at(s[3].block + 8 * i)};
    for (i = 0; i < 8; i++) {
        v[i] = h[i];
        v[i + 8] = (Four){IV[i], IV[i], IV[i], IV[i]};
    }
    v[12] ^= (Four){s[0].counted, s[1].counted, s[2].counted, s[3].counted};
    v[14] ^= (Four){s[0].last, s[1].last, s[2].last, s[3].last};
    ROUNDS(FOUR_TURNED);
    for (i = 0; i < 8; i++)
        h[i] ^= v[i] ^ v[i + 8];
}

static void hash_in_lanes(const Key *key, Text *texts, Py_ssize_t count)
{
    Four h[8] = {{0}};
    Stream streams[LANES] = {{0}};
    Text *held[LANES] = {0}, *next = texts;
    int i, k, running = 0;
    do {
        for (k = 0; k < LANES; k++) {
            if (!held[k] && next < texts + count) {
                const uint64_t *first = begin(&streams[k], key, next);
                for (i = 0; i < 8; i++)
                    h[i][k] = first[i];
                held[k] = next++;
                running++;
            }
            if (held[k])
                fill(&streams[k]);
        }
        compress_four(h, streams);
        for (k = 0; k < LANES; k++)
            if (held[k] && streams[k].last) {
                held[k]->hash = reversed(h[0][k]);
                held[k] = NULL;
                running--;
            }
    } while (running || next < texts + count);
}
#endif

void hash_each(const Key *key, Text *texts, Py_ssize_t count)
{
    Py_ssize_t i;
#ifdef LANES
    if (count > 1 && __builtin_cpu_supports("avx2")) {
        hash_in_lanes(key, texts, count);
        return;
    }
#endif
    for (i = 0; i < count; i++)
        hash_one(key, &texts[i]);
}

int key_of(PyObject *packed, Key *key)
{
    char *data;
    Py_ssize_t size;
    if (PyBytes_AsStringAndSize(packed, &data, &size) < 0)
        return -1;
    if (size != (Py_ssize_t)sizeof(Key)) {
        PyErr_SetString(PyExc_ValueError, "this is no key");
        return -1;
    }
    memcpy(key, data, sizeof(Key)); /* the bytes need not be aligned */
    return 0;
}

KERNEL(prepared)
{
    Key key;
    char *secret;
    Py_ssize_t size;
    if (!has(given, 1) || PyBytes_AsStringAndSize(args[0], &secret, &size) < 0)
        return NULL;
    if (size > 64) {
        PyErr_SetString(PyExc_ValueError, "a secret has 64 bytes at most");
        return NULL;
    }
    memset(&key, 0, sizeof key);
    memcpy(key.before, IV, sizeof IV);
    key.before[0] ^= UINT64_C(0x01010000) ^ (uint64_t)size << 8 ^ 8;
    memcpy(key.behind, key.before, sizeof key.before);
    if (size) {
        key.is_keyed = 1;
        memcpy(key.block, secret, (size_t)size);
        compress(key.behind, key.block, BLOCK, 0);
    }
    return PyBytes_FromStringAndSize((const char *)&key, sizeof key);
}

KERNEL(hash_texts)
{
    Key key;
    PyObject *list;
    Py_ssize_t i, count;
    if (!has(given, 2) || key_of(args[0], &key) < 0 || !is_list(args[1]))
        return NULL;
    count = PyList_Size(args[1]);
    list = PyList_New(count);
    for (i = 0; list && i < count; i++) {
        Points points;
        Text text = {NULL, NULL, 0};
        uint8_t small[4 * SMALL], *bytes = small;
        if (points_of(PyList_GetItem(args[1], i), &points) < 0) {
            Py_CLEAR(list);
            break;
        }
        if (points.count > SMALL && !(bytes = PyMem_Malloc((size_t)points.count * 4))) {
            PyErr_NoMemory();
            Py_CLEAR(list);
        }
        else {
            text.at = bytes;
            text.end = encode(points.at, points.count, bytes);
            hash_one(&key, &text);
            if (put(list, i, PyLong_FromUnsignedLongLong(text.hash)) < 0)
                Py_CLEAR(list);
        }
        if (bytes != small)
            PyMem_Free(bytes);
        release(&points);
    }
    return list;
}
