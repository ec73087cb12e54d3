/* BLAKE2b of 8 bytes, RFC 7693: the hashes of texts. */

/* Several texts are hashed in the lanes of vectors, if the processor has these: four take less than twice the time of one. */
#ifdef HAS_CLONES
typedef uint64_t Words __attribute__((vector_size(32)));
#define LANES 4
#define LANE(words, lane) (words)[lane]
#else
typedef uint64_t Words;
#define LANES 1
#define LANE(words, lane) (words)
#endif

#define BLOCK 128

typedef struct {
    uint64_t hash;
    const uint8_t *at, *end; /* what is left of its UTF-8 */
} Text;

/* A text, read block by block. */
typedef struct {
    Text *text;
    uint64_t counted;        /* bytes of all blocks up to this one; texts are shorter than 2**64 bytes */
    uint64_t last;           /* all bits in the last block */
    uint8_t block[BLOCK];
} Stream;

/* Four or eight bytes as a number, the lowest first. */
static uint64_t half_at(const uint8_t *p)
{
    return (uint64_t)p[0] | (uint64_t)p[1] << 8 | (uint64_t)p[2] << 16 | (uint64_t)p[3] << 24;
}

static uint64_t word_at(const uint8_t *p)
{
    return half_at(p) | half_at(p + 4) << 32;
}

static const uint64_t IV[8] = {
    UINT64_C(0x6A09E667F3BCC908), UINT64_C(0xBB67AE8584CAA73B), UINT64_C(0x3C6EF372FE94F82B),
    UINT64_C(0xA54FF53A5F1D36F1), UINT64_C(0x510E527FADE682D1), UINT64_C(0x9B05688C2B3E6C1F),
    UINT64_C(0x1F83D9ABFB41BD6B), UINT64_C(0x5BE0CD19137E2179),
};

#define TURNED(x, n) (((x) >> (n)) | ((x) << (64 - (n))))

#define G(a, b, c, d, x, y)                                                                                    \
    do {                                                                                                               \
        a += b + (x);                                                                                                  \
        d = TURNED(d ^ a, 32);                                                                                         \
        c += d;                                                                                                        \
        b = TURNED(b ^ c, 24);                                                                                         \
        a += b + (y);                                                                                                  \
        d = TURNED(d ^ a, 16);                                                                                         \
        c += d;                                                                                                        \
        b = TURNED(b ^ c, 63);                                                                                         \
    } while (0)

/* The words of each round; the last two of the twelve are as the first two. */
static const uint8_t ORDERS[10][16] = {
    {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}, {14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3},
    {11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4}, {7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8},
    {9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13}, {2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9},
    {12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11}, {13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10},
    {6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5}, {10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0},
};

IN_CLONES static void compress(Words h[8], const Stream *streams)
{
    Words m[16] = {0}, v[16] = {0};
    int i, k;
    for (i = 0; i < 16; i++)
        for (k = 0; k < LANES; k++)
            LANE(m[i], k) = word_at(streams[k].block + 8 * i);
    for (i = 0; i < 8; i++) {
        v[i] = h[i];
        v[i + 8] += IV[i];
    }
    for (k = 0; k < LANES; k++) {
        LANE(v[12], k) ^= streams[k].counted;
        LANE(v[14], k) ^= streams[k].last;
    }
    /* Written out, the rounds take less time. */
#pragma GCC unroll 12
    for (i = 0; i < 12; i++) {
        const uint8_t *at = ORDERS[i % 10];
#pragma GCC unroll 4
        for (k = 0; k < 4; k++)
            G(v[k], v[k + 4], v[k + 8], v[k + 12], m[at[2 * k]], m[at[2 * k + 1]]);
#pragma GCC unroll 4
        for (k = 0; k < 4; k++)
            G(v[k], v[4 + (k + 1) % 4], v[8 + (k + 2) % 4], v[12 + (k + 3) % 4], m[at[2 * k + 8]], m[at[2 * k + 9]]);
    }
    for (i = 0; i < 8; i++)
        h[i] ^= v[i] ^ v[i + 8];
}

/* Writes the UTF-8 of characters, at most 4 bytes each, ? for a lone surrogate; returns where the next ones go. */
static uint8_t *encode(const Py_UCS4 *at, Py_ssize_t count, uint8_t *to)
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
        else if (c < 0x80 || (c >= 0x800 && c < 0x10000))
            *to++ = c < 0x80 ? (uint8_t)c : '?';
        else {
            int shift = c < 0x800 ? 6 : 18;
            *to++ = (uint8_t)((c < 0x800 ? 0xC0 : 0xF0) | c >> shift);
            while (shift)
                *to++ = (uint8_t)(0x80 | (c >> (shift -= 6) & 0x3F));
        }
    }
    return to;
}

/* A secret: the state after its block, the number of its bytes, and the hash of an empty text, whose last block this is. */
typedef struct {
    uint64_t behind[8], counted, empty;
} Key;

/* The hash of the text in a lane: the 8 bytes as a number, the first one the highest. */
static uint64_t hash_in(const Words h[8], int lane)
{
    uint64_t found = 0;
    int i;
    for (i = 0; i < 64; i += 8)
        found = found << 8 | (LANE(h[0], lane) >> i & 0xFF);
    return found;
}

/* Converts an argument; 0 with an error. */
static int as_key(PyObject *secret, void *to)
{
    Key *key = to;
    char *bytes;
    Py_ssize_t i, size;
    Stream streams[LANES] = {{0}};
    Words before[8] = {0}, h[8], empty[8];
    if (PyBytes_AsStringAndSize(secret, &bytes, &size) < 0 ||
        !is_so(size <= 64, PyExc_ValueError, "a secret has 64 bytes at most"))
        return 0;
    key->counted = size ? BLOCK : 0;
    streams[0].counted = key->counted;
    memcpy(streams[0].block, bytes, (size_t)size);
    for (i = 0; i < 8; i++)
        LANE(before[i], 0) = i ? IV[i] : IV[0] ^ UINT64_C(0x01010008) ^ (uint64_t)size << 8;
    memcpy(h, before, sizeof h);
    memcpy(empty, before, sizeof h);
    if (size)
        compress(h, streams);
    streams[0].last = UINT64_MAX;
    compress(empty, streams);
    key->empty = hash_in(empty, 0);
    for (i = 0; i < 8; i++)
        key->behind[i] = LANE(h[i], 0);
    return 1;
}

static void fill(Stream *stream)
{
    size_t left = (size_t)(stream->text->end - stream->text->at), size = left < BLOCK ? left : BLOCK;
    memcpy(stream->block, stream->text->at, size);
    memset(stream->block + size, 0, BLOCK - size);
    stream->text->at += size;
    stream->counted += size;
    stream->last = left > BLOCK ? 0 : UINT64_MAX;
}

/* Hashes texts. Where one ends, the next one takes its lane. */
static void hash_each(const Key *key, Text *texts, Py_ssize_t count)
{
    Words h[8] = {0};
    Stream streams[LANES] = {{0}};
    Text *next = texts;
    int i, k, running;
    do {
        for (k = running = 0; k < LANES; k++) {
            for (; !streams[k].text && next < texts + count; next++) {
                next->hash = key->empty;
                if (next->at == next->end)
                    continue;
                streams[k].text = next;
                streams[k].counted = key->counted;
                for (i = 0; i < 8; i++)
                    LANE(h[i], k) = key->behind[i];
            }
            if (streams[k].text)
                fill(&streams[k]);
            running += streams[k].text != NULL;
        }
        if (running)
            compress(h, streams);
        for (k = 0; k < LANES; k++)
            if (streams[k].text && streams[k].last) {
                streams[k].text->hash = hash_in(h, k);
                streams[k].text = NULL;
            }
    } while (running);
}

/* Puts UTF-8 in place of each str of a list; 0 with an error. */
static int read_texts(PyObject *list, Text *texts)
{
    Py_ssize_t i;
    for (i = 0; i < PyList_Size(list); i++) {
        PyObject *bytes = PyUnicode_AsEncodedString(PyList_GetItem(list, i), "utf-8", "replace");
        if (!bytes || PyList_SetItem(list, i, bytes) < 0)
            return 0;
        texts[i].at = (const uint8_t *)PyBytes_AsString(bytes);
        texts[i].end = texts[i].at + PyBytes_Size(bytes);
    }
    return 1;
}

KERNEL(hash_texts)
{
    Key key;
    PyObject *list, *found = NULL;
    Text *texts;
    if (!PyArg_ParseTuple(args, "O&O!", as_key, &key, &PyList_Type, &list) ||
        !(texts = memory_for(PyList_Size(list), sizeof *texts)))
        return NULL;
    if (read_texts(list, texts)) {
        hash_each(&key, texts, PyList_Size(list));
        found = list_of(number_item, texts, sizeof *texts, PyList_Size(list));
    }
    PyMem_Free(texts);
    return found;
}
