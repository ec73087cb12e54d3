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

/* A text, read block by block. */
typedef struct {
    const uint8_t *at, *end; /* what is left of it */
    uint64_t counted;        /* bytes of all blocks up to this one; texts are shorter than 2**64 bytes */
    uint64_t last;           /* all bits in the last block */
    uint8_t block[BLOCK];
} Stream;

/* Eight bytes as a number, the lowest first. */
static uint64_t word_at(const uint8_t *p)
{
    return (uint64_t)p[0] | (uint64_t)p[1] << 8 | (uint64_t)p[2] << 16 | (uint64_t)p[3] << 24 | (uint64_t)p[4] << 32 |
           (uint64_t)p[5] << 40 | (uint64_t)p[6] << 48 | (uint64_t)p[7] << 56;
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

/* One of the twelve rounds, by its order of the words. Written out, they take a sixth less time. */
#define ROUND(s0, s1, s2, s3, s4, s5, s6, s7, s8, s9, s10, s11, s12, s13, s14, s15)                                 \
    do {                                                                                                               \
        G(v[0], v[4], v[8], v[12], m[s0], m[s1]);                                                                   \
        G(v[1], v[5], v[9], v[13], m[s2], m[s3]);                                                                   \
        G(v[2], v[6], v[10], v[14], m[s4], m[s5]);                                                                  \
        G(v[3], v[7], v[11], v[15], m[s6], m[s7]);                                                                  \
        G(v[0], v[5], v[10], v[15], m[s8], m[s9]);                                                                  \
        G(v[1], v[6], v[11], v[12], m[s10], m[s11]);                                                                \
        G(v[2], v[7], v[8], v[13], m[s12], m[s13]);                                                                 \
        G(v[3], v[4], v[9], v[14], m[s14], m[s15]);                                                                 \
    } while (0)

#define ROUNDS()                                                                                                      \
    do {                                                                                                               \
        ROUND(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);                                                \
        ROUND(14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3);                                                \
        ROUND(11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4);                                                \
        ROUND(7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8);                                                \
        ROUND(9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13);                                                \
        ROUND(2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9);                                                \
        ROUND(12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11);                                                \
        ROUND(13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10);                                                \
        ROUND(6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5);                                                \
        ROUND(10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0);                                                \
        ROUND(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);                                                \
        ROUND(14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3);                                                \
    } while (0)

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
    ROUNDS();
    for (i = 0; i < 8; i++)
        h[i] ^= v[i] ^ v[i + 8];
}

/* Writes the UTF-8 of characters, at most 4 bytes each; returns where the next ones go. A lone surrogate becomes a question
 * mark. */
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

/* A secret: the state before and after its block, and the block, which is the last one of an empty text. */
typedef struct {
    uint64_t before[8], behind[8];
    uint8_t block[BLOCK];
    int is_keyed;
} Key;

/* Converts an argument; 0 with an error. */
static int as_key(PyObject *secret, void *to)
{
    Key *key = to;
    Py_ssize_t i, size;
    Stream streams[LANES] = {{0}};
    Words h[8] = {0};
    if (!is_so(PyBytes_Check(secret), PyExc_TypeError, "a secret is bytes") ||
        !is_so((size = PyBytes_Size(secret)) <= 64, PyExc_ValueError, "a secret has 64 bytes at most"))
        return 0;
    memset(key, 0, sizeof *key);
    key->is_keyed = size > 0;
    memcpy(key->block, PyBytes_AsString(secret), (size_t)size);
    memcpy(streams[0].block, key->block, BLOCK);
    streams[0].counted = BLOCK;
    memcpy(key->before, IV, sizeof IV);
    key->before[0] ^= UINT64_C(0x01010000) ^ (uint64_t)size << 8 ^ 8;
    for (i = 0; i < 8; i++)
        LANE(h[i], 0) = key->before[i];
    if (size)
        compress(h, streams);
    for (i = 0; i < 8; i++)
        key->behind[i] = LANE(h[i], 0);
    return 1;
}

/* The UTF-8 of a text. */
typedef struct {
    const uint8_t *at, *end;
    uint64_t hash;
} Text;

/* Begins a text in a lane. */
static void begin(Stream *stream, Words h[8], int lane, const Key *key, Text *text)
{
    int i, is_key_last = text->at == text->end && key->is_keyed; /* of an empty text the block of the key is the last one */
    stream->at = is_key_last ? key->block : text->at;
    stream->end = is_key_last ? key->block + BLOCK : text->end;
    stream->counted = key->is_keyed && !is_key_last ? BLOCK : 0;
    text->hash = 0;
    for (i = 0; i < 8; i++)
        LANE(h[i], lane) = is_key_last ? key->before[i] : key->behind[i];
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

/* Hashes texts. Where one ends, the next one takes its lane. */
static void hash_each(const Key *key, Text *texts, Py_ssize_t count)
{
    Words h[8] = {0};
    Stream streams[LANES] = {{0}};
    Text *held[LANES] = {NULL}, *next = texts;
    int i, k, running;
    do {
        for (k = running = 0; k < LANES; k++) {
            if (!held[k] && next < texts + count)
                begin(&streams[k], h, k, key, held[k] = next++);
            if (held[k])
                fill(&streams[k]);
            running += held[k] != NULL;
        }
        if (running)
            compress(h, streams);
        for (k = 0; k < LANES; k++)
            if (held[k] && streams[k].last) {
                for (i = 0; i < 64; i += 8) /* the 8 bytes as a number, the first one the highest */
                    held[k]->hash = held[k]->hash << 8 | (LANE(h[0], k) >> i & 0xFF);
                held[k] = NULL;
            }
    } while (running);
}

static PyObject *hash_item(const void *texts, Py_ssize_t place)
{
    return PyLong_FromUnsignedLongLong(((const Text *)texts)[place].hash);
}

/* Finds the UTF-8 of each str of a list, which may get bytes in place of one with lone surrogates; 0 with an error. */
static int read_texts(PyObject *list, Text *texts)
{
    Py_ssize_t i, size;
    for (i = 0; i < PyList_Size(list); i++) {
        PyObject *text = PyList_GetItem(list, i);
        const char *at = PyUnicode_AsUTF8AndSize(text, &size);
        if (!at && PyErr_ExceptionMatches(PyExc_UnicodeEncodeError)) {
            PyErr_Clear();
            if (!(text = PyUnicode_AsEncodedString(text, "utf-8", "replace")) || PyList_SetItem(list, i, text) < 0)
                return 0;
            at = PyBytes_AsString(text);
            size = PyBytes_Size(text);
        }
        if (!at)
            return 0;
        texts[i].at = (const uint8_t *)at;
        texts[i].end = texts[i].at + size;
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
        found = list_of(hash_item, texts, PyList_Size(list));
    }
    PyMem_Free(texts);
    return found;
}
