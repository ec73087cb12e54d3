/* What the hot stages do, compiled: the same output as the functions of Python that stand beside each call, which are
 * the definition (see compiled.py). Where this was not built they do the work.
 *
 * Plain C99 on the limited API of Python 3.11; no state but what is passed in. Texts are read as code points, so no
 * string is invalid: lone surrogates and zeros are characters like others. Every size is checked before memory is asked
 * for, what was taken is released at one place of each function, and no loop is worse than what it replaces.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Changed with every change of a signature or of what is returned: a module of another one is not used. */
#define VERSION 7

/* ---- characters ------------------------------------------------------------------------------------------------ */

#define SMALL 2048 /* characters that are read without asking for memory */

typedef struct {
    Py_UCS4 *at;
    Py_ssize_t count;
    Py_UCS4 small[SMALL];
} Points;

/* The code points of a str; 0, or -1 with an error. */
static int points_of(PyObject *text, Points *points)
{
    points->at = points->small;
    if (!PyUnicode_Check(text)) {
        PyErr_SetString(PyExc_TypeError, "a str is needed");
        return -1;
    }
    points->count = PyUnicode_GetLength(text);
    if (points->count < 0)
        return -1;
    if (points->count <= SMALL)
        return PyUnicode_AsUCS4(text, points->small, SMALL, 0) ? 0 : -1;
    points->at = PyUnicode_AsUCS4Copy(text);
    return points->at ? 0 : -1;
}

static void release(Points *points)
{
    if (points->at != points->small)
        PyMem_Free(points->at);
}

/* A str of code points without surrogates. */
static PyObject *str_of(const Py_UCS4 *at, Py_ssize_t count)
{
    const uint16_t one = 1;
    int order = *(const unsigned char *)&one ? -1 : 1; /* that of this machine */
    return PyUnicode_DecodeUTF32((const char *)at, count * (Py_ssize_t)sizeof(Py_UCS4), NULL, &order);
}

/* ---- numbers that are passed in -------------------------------------------------------------------------------- */

static int size_of(PyObject *number, Py_ssize_t least, Py_ssize_t most, Py_ssize_t *size)
{
    *size = PyLong_AsSsize_t(number);
    if (*size == -1 && PyErr_Occurred())
        return -1;
    if (*size < least || *size > most) {
        PyErr_SetString(PyExc_ValueError, "a number is out of its range");
        return -1;
    }
    return 0;
}

static int word_of(PyObject *number, uint64_t *word)
{
    *word = PyLong_AsUnsignedLongLong(number);
    return *word == UINT64_MAX && PyErr_Occurred() ? -1 : 0;
}

static int has(Py_ssize_t given, Py_ssize_t wanted)
{
    if (given == wanted)
        return 1;
    PyErr_Format(PyExc_TypeError, "%zd arguments are needed, not %zd", wanted, given);
    return 0;
}

/* ---- memory that is waited for ----------------------------------------------------------------------------------- */

/* Has what will be read soon be fetched meanwhile: of a table that is larger than the caches all places that are wanted
 * are waited for at once, and not one after the other. */
#if defined(__GNUC__)
#define SOON(at) __builtin_prefetch(at)
#else
#define SOON(at) ((void)(at))
#endif

/* ---- BLAKE2b of 8 bytes, RFC 7693 ------------------------------------------------------------------------------ */

#define BLOCK 128

static const uint64_t IV[8] = {
    UINT64_C(0x6A09E667F3BCC908), UINT64_C(0xBB67AE8584CAA73B), UINT64_C(0x3C6EF372FE94F82B),
    UINT64_C(0xA54FF53A5F1D36F1), UINT64_C(0x510E527FADE682D1), UINT64_C(0x9B05688C2B3E6C1F),
    UINT64_C(0x1F83D9ABFB41BD6B), UINT64_C(0x5BE0CD19137E2179),
};

/* What is kept of a key: the state before its block and behind it, and the block, which is the last of an empty text. */
typedef struct {
    uint64_t before[8];
    uint64_t behind[8];
    uint8_t block[BLOCK];
    uint64_t is_keyed;
} Key;

#define ROTATED(x, n) (((x) >> (n)) | ((x) << (64 - (n))))
#define G(a, b, c, d, x, y)                                                                                            \
    do {                                                                                                               \
        a += b + (x);                                                                                                  \
        d = ROTATED(d ^ a, 32);                                                                                        \
        c += d;                                                                                                        \
        b = ROTATED(b ^ c, 24);                                                                                        \
        a += b + (y);                                                                                                  \
        d = ROTATED(d ^ a, 16);                                                                                        \
        c += d;                                                                                                        \
        b = ROTATED(b ^ c, 63);                                                                                        \
    } while (0)

/* One of the twelve rounds, by the order in which it takes the words; written out, which takes a sixth less time. */
#define ROUND(s0, s1, s2, s3, s4, s5, s6, s7, s8, s9, s10, s11, s12, s13, s14, s15)                                    \
    do {                                                                                                               \
        G(v[0], v[4], v[8], v[12], m[s0], m[s1]);                                                                      \
        G(v[1], v[5], v[9], v[13], m[s2], m[s3]);                                                                      \
        G(v[2], v[6], v[10], v[14], m[s4], m[s5]);                                                                     \
        G(v[3], v[7], v[11], v[15], m[s6], m[s7]);                                                                     \
        G(v[0], v[5], v[10], v[15], m[s8], m[s9]);                                                                     \
        G(v[1], v[6], v[11], v[12], m[s10], m[s11]);                                                                   \
        G(v[2], v[7], v[8], v[13], m[s12], m[s13]);                                                                    \
        G(v[3], v[4], v[9], v[14], m[s14], m[s15]);                                                                    \
    } while (0)

/* Texts are shorter than 2**64 bytes, so the upper word of the counter stays 0. */
static void compress(uint64_t h[8], const uint8_t *block, uint64_t counted, int is_last)
{
    uint64_t m[16], v[16];
    int i;
    for (i = 0; i < 16; i++) {
        const uint8_t *p = block + 8 * i;
        m[i] = (uint64_t)p[0] | (uint64_t)p[1] << 8 | (uint64_t)p[2] << 16 | (uint64_t)p[3] << 24 |
               (uint64_t)p[4] << 32 | (uint64_t)p[5] << 40 | (uint64_t)p[6] << 48 | (uint64_t)p[7] << 56;
    }
    for (i = 0; i < 8; i++) {
        v[i] = h[i];
        v[i + 8] = IV[i];
    }
    v[12] ^= counted;
    if (is_last)
        v[14] = ~v[14];
    ROUND(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    ROUND(14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3);
    ROUND(11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4);
    ROUND(7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8);
    ROUND(9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13);
    ROUND(2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9);
    ROUND(12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11);
    ROUND(13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10);
    ROUND(6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5);
    ROUND(10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0);
    ROUND(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    ROUND(14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3);
    for (i = 0; i < 8; i++)
        h[i] ^= v[i] ^ v[i + 8];
}

/* The hash of the UTF-8 of a text; a lone surrogate counts as a question mark. */
static uint64_t hash_of(const Key *key, const Py_UCS4 *at, Py_ssize_t count)
{
    uint64_t h[8], counted = key->is_keyed ? BLOCK : 0, reversed = 0;
    uint8_t block[BLOCK + 4];
    size_t filled = 0;
    Py_ssize_t i;
    if (!count && key->is_keyed) {
        memcpy(h, key->before, sizeof h);
        compress(h, key->block, BLOCK, 1);
    }
    else {
        memcpy(h, key->behind, sizeof h);
        for (i = 0; i < count; i++) {
            Py_UCS4 c = at[i];
            if (c < 0x80)
                block[filled++] = (uint8_t)c;
            else if (c < 0x800) {
                block[filled++] = (uint8_t)(0xC0 | c >> 6);
                block[filled++] = (uint8_t)(0x80 | (c & 0x3F));
            }
            else if (c >= 0xD800 && c < 0xE000)
                block[filled++] = '?';
            else if (c < 0x10000) {
                block[filled++] = (uint8_t)(0xE0 | c >> 12);
                block[filled++] = (uint8_t)(0x80 | (c >> 6 & 0x3F));
                block[filled++] = (uint8_t)(0x80 | (c & 0x3F));
            }
            else {
                block[filled++] = (uint8_t)(0xF0 | c >> 18);
                block[filled++] = (uint8_t)(0x80 | (c >> 12 & 0x3F));
                block[filled++] = (uint8_t)(0x80 | (c >> 6 & 0x3F));
                block[filled++] = (uint8_t)(0x80 | (c & 0x3F));
            }
            if (filled > BLOCK) { /* only what others follow is no last block */
                counted += BLOCK;
                compress(h, block, counted, 0);
                filled -= BLOCK;
                memcpy(block, block + BLOCK, filled);
            }
        }
        memset(block + filled, 0, BLOCK - filled);
        compress(h, block, counted + filled, 1);
    }
    for (i = 0; i < 8; i++) /* the 8 bytes as a number, the first one the highest */
        reversed = reversed << 8 | (h[0] >> (8 * i) & 0xFF);
    return reversed;
}

static int key_of(PyObject *packed, Key *key)
{
    char *data;
    Py_ssize_t size;
    if (PyBytes_AsStringAndSize(packed, &data, &size) < 0)
        return -1;
    if (size != (Py_ssize_t)sizeof(Key)) {
        PyErr_SetString(PyExc_ValueError, "this is no key");
        return -1;
    }
    memcpy(key, data, sizeof(Key)); /* the bytes may stand anywhere */
    return 0;
}

static PyObject *prepared(PyObject *module, PyObject *const *args, Py_ssize_t given)
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

static PyObject *hash_text(PyObject *module, PyObject *const *args, Py_ssize_t given)
{
    Key key;
    Points points;
    uint64_t found;
    if (!has(given, 2) || key_of(args[0], &key) < 0 || points_of(args[1], &points) < 0)
        return NULL;
    found = hash_of(&key, points.at, points.count);
    release(&points);
    return PyLong_FromUnsignedLongLong(found);
}

/* Sets an item of a new list; 0, or -1 with an error. */
static int put(PyObject *list, Py_ssize_t place, PyObject *item)
{
    return item ? PyList_SetItem(list, place, item) : -1;
}

/* The hash of a text as an int, which ``known`` remembers if that is a dict. */
static PyObject *remembered(const Key *key, PyObject *known, PyObject *text)
{
    Points points;
    PyObject *found = NULL;
    if (known && (found = PyDict_GetItemWithError(known, text)))
        return Py_NewRef(found);
    if (PyErr_Occurred() || points_of(text, &points) < 0)
        return NULL;
    found = PyLong_FromUnsignedLongLong(hash_of(key, points.at, points.count));
    release(&points);
    if (found && known && PyDict_SetItem(known, text, found) < 0)
        Py_CLEAR(found);
    return found;
}

static PyObject *hash_texts(PyObject *module, PyObject *const *args, Py_ssize_t given)
{
    Key key;
    PyObject *list, *known;
    Py_ssize_t i, count;
    if (!has(given, 3) || key_of(args[0], &key) < 0)
        return NULL;
    known = PyDict_Check(args[2]) ? args[2] : NULL;
    if (!PyList_Check(args[1]) || (!known && args[2] != Py_None)) {
        PyErr_SetString(PyExc_TypeError, "a list is needed, and a dict or None");
        return NULL;
    }
    count = PyList_Size(args[1]);
    list = PyList_New(count);
    for (i = 0; list && i < count; i++) {
        PyObject *text = PyList_GetItem(args[1], i), *found; /* an error where a str of somebody's own has cut the list */
        if (!text) {
            Py_CLEAR(list);
            break;
        }
        Py_INCREF(text);
        found = remembered(&key, known, text);
        Py_DECREF(text);
        if (put(list, i, found) < 0)
            Py_CLEAR(list);
    }
    return list;
}

/* The same as the lower 32 bits of each, 4 bytes each as this machine has them. */
static PyObject *short_hashes(PyObject *module, PyObject *const *args, Py_ssize_t given)
{
    PyObject *hashes = hash_texts(module, args, given), *found = NULL;
    Py_ssize_t i, count = hashes ? PyList_Size(hashes) : 0;
    if (hashes && (found = PyByteArray_FromStringAndSize(NULL, count * 4))) {
        uint32_t *halves = (uint32_t *)(void *)PyByteArray_AsString(found);
        for (i = 0; i < count; i++)
            halves[i] = (uint32_t)PyLong_AsUnsignedLongLongMask(PyList_GetItem(hashes, i));
        if (PyErr_Occurred()) /* the dict held something else */
            Py_CLEAR(found);
    }
    Py_XDECREF(hashes);
    return found;
}

/* ---- n-grams --------------------------------------------------------------------------------------------------- */

static uint64_t mix(uint64_t value)
{
    value ^= value >> 33;
    value *= UINT64_C(0xFF51AFD7ED558CCD);
    value ^= value >> 33;
    value *= UINT64_C(0xC4CEB9FE1A85EC53);
    return value ^ value >> 33;
}

typedef struct {
    uint64_t *at;
    Py_ssize_t count;
} Grams;

/* What the characters of a text are hashed by, which all n-grams of it are made of; NULL with an error. Release it. */
static uint64_t *mixed_of(const Points *points, uint64_t offset)
{
    uint64_t *mixed = NULL;
    Py_ssize_t i;
    if (points->count <= PY_SSIZE_T_MAX / 16)
        mixed = PyMem_Malloc((size_t)points->count * sizeof *mixed);
    if (!mixed) {
        PyErr_NoMemory();
        return NULL;
    }
    for (i = 0; i < points->count; i++)
        mixed[i] = mix(points->at[i] ^ offset);
    return mixed;
}

/* The hash of every n-gram of a text, in their order, as many as are returned; of a text that is shorter one, of none
 * none. ``found`` has room for as many as there are characters, and may be ``mixed`` itself: each hash takes the place
 * of the number with which its n-gram begins, which the next one no more holds. */
static Py_ssize_t rolled(const uint64_t *mixed, Py_ssize_t length, Py_ssize_t n, uint64_t base, uint64_t *found)
{
    uint64_t sum = 0, power = 1;
    Py_ssize_t i;
    if (!length)
        return 0;
    if (n > length)
        n = length;
    for (i = 0; i < n; i++) {
        sum = sum * base + mixed[i];
        power *= base;
    }
    for (i = 0; i + n < length; i++) {
        uint64_t first = mixed[i];
        found[i] = mix(sum);
        sum = sum * base + mixed[i + n] - first * power;
    }
    found[i] = mix(sum);
    return length - n + 1;
}

/* The same of the characters of a text. Release ``at``. */
static int grams_of(const Points *points, Py_ssize_t n, uint64_t offset, uint64_t base, Grams *grams)
{
    grams->count = 0;
    grams->at = mixed_of(points, offset);
    if (!grams->at)
        return -1;
    grams->count = rolled(grams->at, points->count, n, base, grams->at);
    return 0;
}

/* The values in order, eight bits at a time; ``other`` is as large, and -1 says that there was no memory for it. */
static int sort(uint64_t *values, Py_ssize_t count)
{
    uint64_t *other = PyMem_Malloc((size_t)count * sizeof *other), *from = values, *to = other;
    int shift;
    if (!other) {
        PyErr_NoMemory();
        return -1;
    }
    for (shift = 0; shift < 64; shift += 8) { /* an even number of rounds: they end where they began */
        Py_ssize_t starts[256] = {0}, i, sum = 0;
        uint64_t *swapped = from;
        for (i = 0; i < count; i++)
            starts[from[i] >> shift & 0xFF]++;
        for (i = 0; i < 256; i++) {
            Py_ssize_t many = starts[i];
            starts[i] = sum;
            sum += many;
        }
        for (i = 0; i < count; i++)
            to[starts[from[i] >> shift & 0xFF]++] = from[i];
        from = to;
        to = swapped;
    }
    PyMem_Free(other);
    return 0;
}

/* How many different values there are, or -1 with an error; may change their order.
 *
 * A hash table, unless somebody has chosen values that all want one place of it: then they are put in order. */
static Py_ssize_t different_in_table(uint64_t *values, Py_ssize_t count)
{
    uint64_t *table;
    Py_ssize_t i, found = 0, steps = 0;
    int bits = 4, has_zero = 0;
    if (!count)
        return 0;
    while (((Py_ssize_t)1 << bits) < 2 * count)
        bits++;
    table = PyMem_Calloc((size_t)1 << bits, sizeof *table);
    if (!table) {
        PyErr_NoMemory();
        return -1;
    }
    for (i = 0; i < count && steps <= 16 * count; i++) {
        uint64_t value = values[i];
        size_t mask = ((size_t)1 << bits) - 1, place = (size_t)(value * UINT64_C(0x9E3779B97F4A7C15) >> (64 - bits));
        if (!value) {
            has_zero = 1;
            continue;
        }
        while (table[place] && table[place] != value) {
            place = (place + 1) & mask;
            steps++;
        }
        found += !table[place];
        table[place] = value;
    }
    PyMem_Free(table);
    if (steps <= 16 * count)
        return found + has_zero;
    if (sort(values, count) < 0)
        return -1;
    for (found = 1, i = 1; i < count; i++)
        found += values[i] != values[i - 1];
    return found;
}

#define MARKS 0x10000 /* places of the two sets of bits, 8 kilobytes each */

/* The same, for the few thousand hashes of a page: most have a place of their own among those of a set of bits, and
 * only what shares one has to be looked at. It is moved to the beginning. */
static Py_ssize_t different(uint64_t *values, Py_ssize_t count)
{
    uint64_t once[MARKS / 64] = {0}, twice[MARKS / 64] = {0};
    Py_ssize_t i, shared = 0, found;
    if (count > MARKS / 8)
        return different_in_table(values, count);
    for (i = 0; i < count; i++) {
        size_t place = (size_t)(values[i] >> 48);
        uint64_t bit = UINT64_C(1) << (place & 63);
        twice[place >> 6] |= once[place >> 6] & bit;
        once[place >> 6] |= bit;
    }
    for (i = 0; i < count; i++) {
        size_t place = (size_t)(values[i] >> 48);
        uint64_t value = values[i];
        values[i] = values[shared];
        values[shared] = value;
        shared += (Py_ssize_t)(twice[place >> 6] >> (place & 63) & 1);
    }
    found = different_in_table(values, shared);
    return found < 0 ? -1 : count - shared + found;
}

#define MOST_BINS 4096
#define STEP UINT64_C(0x632BE59BD9B4E019)

/* See ``sketch`` in methods/minwise.py. */
static PyObject *sketch_of(const Grams *grams, Py_ssize_t bins, Py_ssize_t bits)
{
    uint64_t minima[MOST_BINS];
    uint8_t packed[MOST_BINS];
    Py_ssize_t i, size = bins * bits / 8;
    int shift = 0;
    if (!grams->count) {
        memset(packed, 0, (size_t)size);
        return PyBytes_FromStringAndSize((const char *)packed, size);
    }
    while (((Py_ssize_t)1 << shift) < bins)
        shift++;
    for (i = 0; i < bins; i++)
        minima[i] = UINT64_MAX; /* which no value is, as it is shifted */
    for (i = 0; i < grams->count; i++) {
        size_t bin = (size_t)(grams->at[i] & (uint64_t)(bins - 1));
        uint64_t value = grams->at[i] >> shift, least = minima[bin];
        minima[bin] = value < least ? value : least;
    }
    memset(packed, 0, (size_t)size);
    for (i = 0; i < bins; i++) {
        size_t source = (size_t)i;
        uint64_t drawn = (uint64_t)i * STEP;
        while (minima[source] == UINT64_MAX)
            source = (size_t)(mix(++drawn) & (uint64_t)(bins - 1));
        packed[i * bits / 8] |= (uint8_t)((mix(minima[source]) & ((UINT64_C(1) << bits) - 1)) << (i * bits % 8));
    }
    return PyBytes_FromStringAndSize((const char *)packed, size);
}

/* The first four arguments of what is made of n-grams: text, n, offset and base. */
static int grams_from(PyObject *const *args, Grams *grams)
{
    Points points;
    Py_ssize_t n;
    uint64_t offset, base;
    int failed;
    if (size_of(args[1], 1, PY_SSIZE_T_MAX, &n) < 0 || word_of(args[2], &offset) < 0 || word_of(args[3], &base) < 0)
        return -1;
    if (points_of(args[0], &points) < 0)
        return -1;
    failed = grams_of(&points, n, offset, base, grams);
    release(&points);
    return failed;
}

static PyObject *n_grams(PyObject *module, PyObject *const *args, Py_ssize_t given)
{
    Grams grams;
    PyObject *found;
    if (!has(given, 4) || grams_from(args, &grams) < 0)
        return NULL;
    found = PyByteArray_FromStringAndSize((const char *)grams.at, grams.count * (Py_ssize_t)sizeof *grams.at);
    PyMem_Free(grams.at);
    return found;
}

/* A sketch: n, bins, and bits of a bin. */
typedef struct {
    Py_ssize_t n, bins, bits;
} Form;

static int form_of(PyObject *const *args, Form *form)
{
    if (size_of(args[0], 1, PY_SSIZE_T_MAX, &form->n) < 0 || size_of(args[1], 8, MOST_BINS, &form->bins) < 0 ||
        size_of(args[2], 1, 8, &form->bits) < 0)
        return -1;
    if (form->bins & (form->bins - 1) || form->bits & (form->bits - 1)) {
        PyErr_SetString(PyExc_ValueError, "bins and bits must be powers of two");
        return -1;
    }
    return 0;
}

static PyObject *minwise(PyObject *module, PyObject *const *args, Py_ssize_t given)
{
    Grams grams;
    Form form;
    PyObject *packed, *found = NULL;
    Py_ssize_t count;
    if (!has(given, 6) || form_of((PyObject *[]){args[1], args[4], args[5]}, &form) < 0 || grams_from(args, &grams) < 0)
        return NULL;
    packed = sketch_of(&grams, form.bins, form.bits);
    count = packed ? different(grams.at, grams.count) : -1;
    if (count >= 0)
        found = Py_BuildValue("nO", count, packed);
    Py_XDECREF(packed);
    PyMem_Free(grams.at);
    return found;
}

/* Words, offset, base: the hash of each as one n-gram; an empty word has none, and may not be there. */
static PyObject *word_grams(PyObject *module, PyObject *const *args, Py_ssize_t given)
{
    uint64_t offset, base;
    PyObject *list;
    Py_ssize_t i, count;
    if (!has(given, 3) || word_of(args[1], &offset) < 0 || word_of(args[2], &base) < 0)
        return NULL;
    if (!PyList_Check(args[0])) {
        PyErr_SetString(PyExc_TypeError, "a list is needed");
        return NULL;
    }
    count = PyList_Size(args[0]);
    list = PyList_New(count);
    for (i = 0; list && i < count; i++) {
        Points points;
        uint64_t sum = 0;
        Py_ssize_t k;
        if (points_of(PyList_GetItem(args[0], i), &points) < 0) {
            Py_CLEAR(list);
            break;
        }
        for (k = 0; k < points.count; k++)
            sum = sum * base + mix(points.at[k] ^ offset);
        release(&points);
        if (put(list, i, PyLong_FromUnsignedLongLong(mix(sum))) < 0)
            Py_CLEAR(list);
    }
    return list;
}

#define MOST_KEYS 4096

/* The smallest different hashes of some, as a list. */
static PyObject *smallest_of(const Grams *grams, Py_ssize_t most)
{
    PyObject *list;
    uint64_t few[MOST_KEYS];
    Py_ssize_t i, j, held = 0;
    for (i = 0; i < grams->count; i++) {
        uint64_t value = grams->at[i];
        if (held == most && value >= few[held - 1])
            continue;
        for (j = held; j && few[j - 1] > value; j--)
            ;
        if (j && few[j - 1] == value)
            continue;
        held += held < most;
        memmove(few + j + 1, few + j, (size_t)(held - 1 - j) * sizeof *few);
        few[j] = value;
    }
    list = PyList_New(held);
    for (i = 0; list && i < held; i++)
        if (put(list, i, PyLong_FromUnsignedLongLong(few[i])) < 0)
            Py_CLEAR(list);
    return list;
}

static PyObject *smallest(PyObject *module, PyObject *const *args, Py_ssize_t given)
{
    Grams grams;
    PyObject *list;
    Py_ssize_t most;
    if (!has(given, 5) || size_of(args[4], 1, MOST_KEYS, &most) < 0 || grams_from(args, &grams) < 0)
        return NULL;
    list = smallest_of(&grams, most);
    PyMem_Free(grams.at);
    return list;
}

#define MOST_ASKED 256

/* Values that are looked for among many others; the bits of a set tell of nearly all of these that they are none. */
typedef struct {
    uint64_t values[MOST_ASKED];
    Py_ssize_t count;
    uint64_t bits[64];
} Sought;

static uint64_t *bits_for(Sought *sought, uint64_t value, uint64_t *bit)
{
    *bit = UINT64_C(1) << (value >> 2 & 63);
    return &sought->bits[value >> 8 & 63];
}

/* The numbers of a list; 0, or -1 with an error. */
static int seek(PyObject *list, Sought *sought)
{
    Py_ssize_t i;
    uint64_t bit;
    sought->count = PyList_Check(list) ? PyList_Size(list) : MOST_ASKED + 1;
    if (sought->count > MOST_ASKED) {
        PyErr_SetString(PyExc_ValueError, "a list of 256 numbers at most is needed");
        return -1;
    }
    memset(sought->bits, 0, sizeof sought->bits);
    for (i = 0; i < sought->count; i++) {
        if (word_of(PyList_GetItem(list, i), &sought->values[i]) < 0)
            return -1;
        *bits_for(sought, sought->values[i], &bit) |= bit;
    }
    return 0;
}

/* A value was met: it is looked for no more. */
static void met(Sought *sought, uint64_t value)
{
    uint64_t bit;
    Py_ssize_t i;
    if (!(*bits_for(sought, value, &bit) & bit))
        return;
    for (i = sought->count; i--;)
        if (sought->values[i] == value)
            sought->values[i] = sought->values[--sought->count];
}

/* Text, the least and the greatest n, offset, base, a mask, a list of numbers: those of them that no n-gram of the text
 * has for its hash, of which the mask keeps some bits. */
static PyObject *lacking(PyObject *module, PyObject *const *args, Py_ssize_t given)
{
    Points points;
    Sought sought;
    Py_ssize_t n, longest, i, count;
    uint64_t offset, base, mask, *mixed, *found = NULL;
    PyObject *list = NULL;
    if (!has(given, 7) || size_of(args[1], 1, PY_SSIZE_T_MAX, &n) < 0 ||
        size_of(args[2], n, PY_SSIZE_T_MAX, &longest) < 0 || word_of(args[3], &offset) < 0 ||
        word_of(args[4], &base) < 0 || word_of(args[5], &mask) < 0 || seek(args[6], &sought) < 0 ||
        points_of(args[0], &points) < 0)
        return NULL;
    mixed = mixed_of(&points, offset);
    if (mixed)
        found = PyMem_Malloc((size_t)points.count * sizeof *found);
    if (mixed && !found)
        PyErr_NoMemory();
    for (; found && sought.count && n <= longest && n <= points.count; n++) {
        count = rolled(mixed, points.count, n, base, found);
        for (i = 0; i < count; i++)
            met(&sought, found[i] & mask);
    }
    if (found)
        list = PyList_New(sought.count);
    for (i = 0; list && i < sought.count; i++)
        if (put(list, i, PyLong_FromUnsignedLongLong(sought.values[i])) < 0)
            Py_CLEAR(list);
    PyMem_Free(found);
    PyMem_Free(mixed);
    release(&points);
    return list;
}

static unsigned ones_of(uint64_t bits)
{
    bits -= (bits >> 1) & UINT64_C(0x5555555555555555);
    bits = (bits & UINT64_C(0x3333333333333333)) + ((bits >> 2) & UINT64_C(0x3333333333333333));
    bits = (bits + (bits >> 4)) & UINT64_C(0x0F0F0F0F0F0F0F0F);
    return (unsigned)((bits * UINT64_C(0x0101010101010101)) >> 56);
}

/* In how many entries of so many bits two sketches are equal. What the second one lacks is taken for zeros. */
static Py_ssize_t equal_in(const char *one, Py_ssize_t length, const char *other, Py_ssize_t others, Py_ssize_t bits)
{
    Py_ssize_t at, shift, differing = 0;
    uint64_t lowest = UINT64_MAX / ((UINT64_C(1) << bits) - 1);
    others = others < length ? others : length;
    for (at = 0; at < length; at += 8) {
        uint64_t ours = 0, theirs = 0;
        memcpy(&ours, one + at, (size_t)(length - at < 8 ? length - at : 8));
        if (at < others)
            memcpy(&theirs, other + at, (size_t)(others - at < 8 ? others - at : 8));
        ours ^= theirs; /* in whatever order this machine has the bytes of a number: no entry is in two of them */
        for (shift = 1; shift < bits; shift *= 2)
            ours |= ours >> shift;
        differing += ones_of(ours & lowest);
    }
    return length * 8 / bits - differing;
}

static int bits_of(PyObject *number, Py_ssize_t *bits)
{
    if (size_of(number, 1, 8, bits) < 0)
        return -1;
    if (!(*bits & (*bits - 1)))
        return 0;
    PyErr_SetString(PyExc_ValueError, "an entry has 1, 2, 4 or 8 bits");
    return -1;
}

/* Two sketches, bits of an entry. */
static PyObject *equal_entries(PyObject *module, PyObject *const *args, Py_ssize_t given)
{
    char *one, *other;
    Py_ssize_t length, others, bits;
    if (!has(given, 3) || PyBytes_AsStringAndSize(args[0], &one, &length) < 0 ||
        PyBytes_AsStringAndSize(args[1], &other, &others) < 0 || bits_of(args[2], &bits) < 0)
        return NULL;
    return PyLong_FromSsize_t(equal_in(one, length, other, others, bits));
}

static double larger(double one, double other)
{
    return one > other ? one : other;
}

static double smaller(double one, double other)
{
    return one < other ? one : other;
}

/* How many of two sets both have, by a sketch of each, as long as the other, and the sum of their sizes. */
static double in_both(const char *one, const char *other, Py_ssize_t length, Py_ssize_t bits, double sizes)
{
    double chance = 1.0 / (double)(1 << bits);
    double equal = (double)equal_in(one, length, other, length, bits) / (double)(length * 8 / bits);
    double similarity = larger(0.0, (equal - chance) / (1.0 - chance));
    return similarity / (1.0 + similarity) * sizes;
}

/* So many bytes as a number, the first one the greatest. */
static uint64_t number_at(const char *at, int bytes)
{
    uint64_t number = 0;
    while (bytes--)
        number = number << 8 | (uint8_t)*at++;
    return number;
}

#define HEAD_BYTES 27 /* see cascade_sketch.py, as for what follows */
#define OPENING_BYTES 8

/* Of a new page body, title, sketch, shingles, and with boilerplate, the sketch of these or none; the packed sketch of an
 * earlier page; bits of an entry; and three bounds: see methods/cascade_bound.py. */
static PyObject *may_be_alike(PyObject *module, PyObject *const *args, Py_ssize_t given)
{
    uint64_t body, title;
    char *one, *whole, *old;
    Py_ssize_t length, wholes, size, ours, all, bits, order;
    double bounds[3], theirs, both, similarity;
    int i;
    if (!has(given, 11) || word_of(args[0], &body) < 0 || word_of(args[1], &title) < 0 ||
        PyBytes_AsStringAndSize(args[2], &one, &length) < 0 || size_of(args[3], 0, UINT32_MAX, &ours) < 0 ||
        size_of(args[4], 0, UINT32_MAX, &all) < 0 || PyBytes_AsStringAndSize(args[5], &whole, &wholes) < 0 ||
        PyBytes_AsStringAndSize(args[6], &old, &size) < 0 || bits_of(args[7], &bits) < 0)
        return NULL;
    for (i = 0; i < 3; i++) {
        bounds[i] = PyFloat_AsDouble(args[8 + i]);
        if (bounds[i] == -1.0 && PyErr_Occurred())
            return NULL;
    }
    if (!length || (wholes && wholes != length)) {
        PyErr_SetString(PyExc_ValueError, "a sketch has another size than is needed");
        return NULL;
    }
    if (size < HEAD_BYTES || number_at(old, 8) == body || (title && number_at(old + 8, 4) == title))
        return PyBool_FromLong(1);
    order = HEAD_BYTES + length + OPENING_BYTES;
    order += 4 * (uint8_t)old[24] + 2 * (uint8_t)old[25] + 3 * (uint8_t)old[26];
    if (size <= order || size != order + 1 + 2 * (uint8_t)old[order])
        return PyBool_FromLong(1);
    theirs = (double)number_at(old + 20, 4);
    both = in_both(one, old + HEAD_BYTES, length, bits, (double)ours + theirs);
    if (wholes) {
        double more = larger(0.0, in_both(whole, old + HEAD_BYTES, length, bits, (double)all + theirs) - both);
        theirs -= smaller(more, larger(0.0, (double)(all - ours) - ((double)number_at(old + 16, 4) - theirs)));
    }
    similarity = both / larger(1.0, (double)ours + theirs - both);
    return PyBool_FromLong(similarity >= bounds[0] ||
                           (similarity >= bounds[1] && both / larger(1.0, smaller((double)ours, theirs)) >= bounds[2]));
}

/* ---- texts ----------------------------------------------------------------------------------------------------- */

/* What is to be known of a character, in 32 bits; see text/characters.py, which says it. */
#define FOLDED 0x1FFFFF
#define PLAIN 0x200000
#define LETTER 0x400000
#define SPACE 0x800000
#define MARK 0x1000000
#define CLOSING 0x2000000
#define ENDING 0x4000000
#define UNSPACED 0x8000000
#define LINE 0x10000000
#define BLOCKS 0x1100
#define IN_BLOCK 256
static const char *TABLE = "scrapy_neardup characters";

/* Blocks of 256 characters, each asked for when a character of it is first met. */
typedef struct {
    PyObject *ask;
    uint32_t *blocks[BLOCKS];
} Table;

static void forget(PyObject *capsule)
{
    Table *table = PyCapsule_GetPointer(capsule, TABLE);
    int i;
    for (i = 0; i < BLOCKS; i++)
        PyMem_Free(table->blocks[i]);
    Py_DECREF(table->ask);
    PyMem_Free(table);
}

static PyObject *characters(PyObject *module, PyObject *const *args, Py_ssize_t given)
{
    PyObject *capsule;
    Table *table;
    if (!has(given, 1))
        return NULL;
    table = PyMem_Calloc(1, sizeof *table);
    if (!table)
        return PyErr_NoMemory();
    table->ask = Py_NewRef(args[0]);
    capsule = PyCapsule_New(table, TABLE, forget);
    if (!capsule) {
        Py_DECREF(table->ask);
        PyMem_Free(table);
    }
    return capsule;
}

static int ask_for(Table *table, Py_UCS4 number)
{
    PyObject *told = PyObject_CallFunction(table->ask, "I", (unsigned int)number);
    char *data;
    Py_ssize_t size;
    int failed = -1;
    if (told && PyBytes_AsStringAndSize(told, &data, &size) == 0) {
        if (size != IN_BLOCK * (Py_ssize_t)sizeof(uint32_t))
            PyErr_SetString(PyExc_ValueError, "this is no block of characters");
        else {
            if (!table->blocks[number]) /* asking runs code of Python, which may have asked as well */
                table->blocks[number] = PyMem_Malloc((size_t)size);
            if (table->blocks[number]) {
                memcpy(table->blocks[number], data, (size_t)size);
                failed = 0;
            }
            else
                PyErr_NoMemory();
        }
    }
    Py_XDECREF(told);
    return failed;
}

/* Has all blocks there that a text needs; 0, or -1 with an error. */
static int ready(Table *table, const Points *points)
{
    Py_ssize_t i;
    for (i = 0; i < points->count; i++) {
        Py_UCS4 number = points->at[i] >> 8;
        if (!table->blocks[number] && ask_for(table, number) < 0)
            return -1;
    }
    return 0;
}

#define TOLD(table, c) ((table)->blocks[(c) >> 8][(c) & 0xFF])

/* Table and text, the two arguments of what follows; then the points are to be released. */
static Table *opened(PyObject *const *args, Py_ssize_t given, Points *points)
{
    Table *table = has(given, 2) ? PyCapsule_GetPointer(args[0], TABLE) : NULL;
    if (!table || points_of(args[1], points) < 0)
        return NULL;
    if (ready(table, points) < 0) {
        release(points);
        return NULL;
    }
    return table;
}

enum { NOT_PLAIN, SAME, CHANGED }; /* 0 and more */

/* Brings a text into the one spelling, as far as all of it is plain; -1 with an error. All blocks it needs are there. */
static int fold(Table *table, Points *points)
{
    Py_ssize_t i;
    int found = SAME;
    for (i = 0; i < points->count; i++) {
        Py_UCS4 c = points->at[i], folded = TOLD(table, c) & FOLDED;
        if (!(TOLD(table, c) & PLAIN))
            return NOT_PLAIN;
        if (folded == c)
            continue;
        if (!table->blocks[folded >> 8] && ask_for(table, folded >> 8) < 0)
            return -1;
        points->at[i] = folded;
        found = CHANGED;
    }
    return found;
}

/* The text in the one spelling, if all of it is plain; None if it takes more to tell. */
static PyObject *folded(PyObject *module, PyObject *const *args, Py_ssize_t given)
{
    Points points;
    PyObject *found = NULL;
    int is_plain;
    Table *table = opened(args, given, &points);
    if (!table)
        return NULL;
    is_plain = fold(table, &points);
    if (is_plain == NOT_PLAIN)
        found = Py_NewRef(Py_None);
    else if (is_plain >= 0)
        found = is_plain == CHANGED ? str_of(points.at, points.count) : Py_NewRef(args[1]);
    release(&points);
    return found;
}

static PyObject *letters(PyObject *module, PyObject *const *args, Py_ssize_t given)
{
    Points points;
    PyObject *found;
    Py_ssize_t i, count = 0;
    Table *table = opened(args, given, &points);
    if (!table)
        return NULL;
    for (i = 0; i < points.count; i++)
        if (TOLD(table, points.at[i]) & LETTER)
            points.at[count++] = points.at[i];
    found = str_of(points.at, count);
    release(&points);
    return found;
}

static int append(PyObject *list, PyObject *item)
{
    int failed = item ? PyList_Append(list, item) : -1;
    Py_XDECREF(item);
    return failed;
}

/* The letters of sentences as str, of which the hash is remembered if there is a key; NULL with an error. */
static PyObject *lines_of(const Py_UCS4 *letters, const Py_ssize_t *ends, Py_ssize_t cuts, const Key *key, PyObject *known)
{
    PyObject *joined = str_of(letters, cuts ? ends[cuts - 1] : 0), *lines = joined ? PyList_New(cuts) : NULL;
    Py_ssize_t i;
    for (i = 0; lines && i < cuts; i++) {
        Py_ssize_t start = i ? ends[i - 1] : 0;
        PyObject *line = PyUnicode_Substring(joined, start, ends[i]), *hashed = NULL;
        if (put(lines, i, line) < 0)
            Py_CLEAR(lines);
        else if (key && !PyDict_GetItemWithError(known, line) && !PyErr_Occurred()) {
            hashed = PyLong_FromUnsignedLongLong(hash_of(key, letters + start, ends[i] - start));
            if (hashed)
                PyDict_SetItem(known, line, hashed);
            Py_XDECREF(hashed);
        }
        if (lines && PyErr_Occurred())
            Py_CLEAR(lines);
    }
    Py_XDECREF(joined);
    return lines;
}

/* The sentences of a text, stripped, and the letters of each: see ``sentences`` and ``letters_each``.
 *
 * ``points`` are those of the text; the letters take the places of those that have been read. */
static PyObject *sentences_of(PyObject *text, Table *table, Points *points, const Key *key, PyObject *known)
{
    PyObject *pieces = NULL, *lines = NULL, *found = NULL;
    Py_ssize_t i, count = points->count, start = 0, letters = 0, *ends = NULL, cuts = 0, room = 64;
    pieces = PyList_New(0);
    ends = PyMem_Malloc((size_t)room * sizeof *ends);
    if (!pieces || !ends)
        goto done;
    for (i = 0; i <= count; i++) {
        Py_ssize_t first = start, last = i, at;
        if (i < count) {
            uint32_t told = TOLD(table, points->at[i]);
            if (points->at[i] == '.') {
                if (i + 1 == count || !(TOLD(table, points->at[i + 1]) & ENDING))
                    continue;
            }
            else if (!(told & MARK))
                continue;
            while (i + 1 < count && TOLD(table, points->at[i + 1]) & MARK)
                i++;
            while (i + 1 < count && TOLD(table, points->at[i + 1]) & CLOSING)
                i++;
        }
        start = i + 1;
        while (first < last && TOLD(table, points->at[first]) & SPACE)
            first++;
        while (first < last && TOLD(table, points->at[last - 1]) & SPACE)
            last--;
        if (first == last)
            continue;
        if (append(pieces, PyUnicode_Substring(text, first, last)) < 0)
            goto done;
        for (at = first; at < last; at++)
            if (TOLD(table, points->at[at]) & LETTER)
                points->at[letters++] = points->at[at];
        if (cuts == room) {
            Py_ssize_t *larger = PyMem_Realloc(ends, (size_t)(room *= 2) * sizeof *ends);
            if (!larger)
                goto done;
            ends = larger;
        }
        ends[cuts++] = letters;
    }
    lines = lines_of(points->at, ends, cuts, key, known);
    if (lines)
        found = Py_BuildValue("OO", pieces, lines);
done:
    if (!found && !PyErr_Occurred())
        PyErr_NoMemory();
    PyMem_Free(ends);
    Py_XDECREF(pieces);
    Py_XDECREF(lines);
    return found;
}

static PyObject *cut(PyObject *module, PyObject *const *args, Py_ssize_t given)
{
    Points points;
    PyObject *found;
    Table *table = opened(args, given, &points);
    if (!table)
        return NULL;
    found = sentences_of(args[1], table, &points, NULL, NULL);
    release(&points);
    return found;
}

/* Characters, text, key, and a dict that remembers hashes: the same of the text in the one spelling, or None. */
static PyObject *read_text(PyObject *module, PyObject *const *args, Py_ssize_t given)
{
    Key key;
    Points points;
    PyObject *found = NULL, *text;
    int is_plain;
    Table *table;
    if (!has(given, 4) || key_of(args[2], &key) < 0)
        return NULL;
    if (!PyDict_CheckExact(args[3])) {
        PyErr_SetString(PyExc_TypeError, "a dict is needed");
        return NULL;
    }
    if (!(table = opened(args, 2, &points)))
        return NULL;
    is_plain = fold(table, &points);
    text = is_plain == CHANGED ? str_of(points.at, points.count) : Py_NewRef(args[1]);
    if (is_plain == NOT_PLAIN)
        found = Py_NewRef(Py_None);
    else if (text && is_plain >= 0)
        found = sentences_of(text, table, &points, &key, args[3]);
    Py_XDECREF(text);
    release(&points);
    return found;
}

/* Whether a fiftieth of the letters and more are of scripts that put no spaces between words; of none they are not. */
static int is_unspaced(const Table *table, const Points *points)
{
    Py_ssize_t i, found = 0, count = points->count;
    for (i = 0; i < count; i++)
        found += (TOLD(table, points->at[i]) & UNSPACED) != 0;
    return count > 0 && found >= count / 50 + (count % 50 != 0);
}

static PyObject *has_unspaced(PyObject *module, PyObject *const *args, Py_ssize_t given)
{
    Points points;
    int found;
    Table *table = opened(args, given, &points);
    if (!table)
        return NULL;
    found = is_unspaced(table, &points);
    release(&points);
    return PyBool_FromLong(found);
}

/* Characters, words: for each word of a list the same. */
static PyObject *are_unspaced(PyObject *module, PyObject *const *args, Py_ssize_t given)
{
    PyObject *list;
    Py_ssize_t i, count;
    if (!has(given, 2))
        return NULL;
    if (!PyList_Check(args[1])) {
        PyErr_SetString(PyExc_TypeError, "a list is needed");
        return NULL;
    }
    count = PyList_Size(args[1]);
    list = PyList_New(count);
    for (i = 0; list && i < count; i++) {
        PyObject *one[] = {args[0], PyList_GetItem(args[1], i)};
        if (!one[1] || put(list, i, has_unspaced(module, one, 2)) < 0)
            Py_CLEAR(list);
    }
    return list;
}

/* Characters, letters, offset, base; n, bins, bits; letters of the opening, its bins, its bits; n of keys, n where words
 * have spaces, how many: see ``Shingles.of``. The numbers that the characters are hashed by are made once. */
static PyObject *shingled(PyObject *module, PyObject *const *args, Py_ssize_t given)
{
    Points points;
    Grams grams;
    Form form, opening;
    PyObject *sketch = NULL, *first = NULL, *keys = NULL, *found = NULL;
    Table *table;
    uint64_t offset, base, *mixed = NULL;
    Py_ssize_t few, length, spaced, most, count;
    if (!has(given, 13) || word_of(args[2], &offset) < 0 || word_of(args[3], &base) < 0 || form_of(args + 4, &form) < 0 ||
        size_of(args[7], 0, PY_SSIZE_T_MAX, &few) < 0 || form_of((PyObject *[]){args[4], args[8], args[9]}, &opening) < 0 ||
        size_of(args[10], 1, PY_SSIZE_T_MAX, &length) < 0 || size_of(args[11], 1, PY_SSIZE_T_MAX, &spaced) < 0 ||
        size_of(args[12], 1, MOST_KEYS, &most) < 0)
        return NULL;
    if (!(table = opened(args, 2, &points)))
        return NULL;
    mixed = mixed_of(&points, offset);
    grams.at = mixed ? PyMem_Malloc((size_t)points.count * sizeof *mixed) : NULL;
    if (!grams.at) {
        if (mixed)
            PyErr_NoMemory();
        goto done;
    }
    grams.count = rolled(mixed, points.count < few ? points.count : few, form.n, base, grams.at);
    first = sketch_of(&grams, opening.bins, opening.bits);
    grams.count = rolled(mixed, points.count, form.n, base, grams.at);
    sketch = first ? sketch_of(&grams, form.bins, form.bits) : NULL;
    count = sketch ? different(grams.at, grams.count) : -1;
    if (count < 0)
        goto done;
    grams.count = rolled(mixed, points.count, is_unspaced(table, &points) ? length : spaced, base, grams.at);
    keys = smallest_of(&grams, most);
    if (keys)
        found = Py_BuildValue("nOOO", count, sketch, first, keys);
done:
    Py_XDECREF(sketch);
    Py_XDECREF(first);
    Py_XDECREF(keys);
    PyMem_Free(grams.at);
    PyMem_Free(mixed);
    release(&points);
    return found;
}

/* Whether so many letters stand in lines that have a number of them at least: characters, text, that number, so many. */
static PyObject *has_prose(PyObject *module, PyObject *const *args, Py_ssize_t given)
{
    Points points;
    Table *table;
    Py_ssize_t i, line = 0, found = 0, least, needed;
    int is_found = 0;
    if (!has(given, 4) || size_of(args[2], 0, PY_SSIZE_T_MAX, &least) < 0 ||
        size_of(args[3], PY_SSIZE_T_MIN, PY_SSIZE_T_MAX, &needed) < 0 || !(table = opened(args, 2, &points)))
        return NULL;
    for (i = 0; i < points.count && !is_found; i++) {
        uint32_t told = TOLD(table, points.at[i]);
        line += (told & LETTER) != 0;
        if (!(told & LINE) && i + 1 < points.count)
            continue;
        found += line >= least ? line : 0;
        is_found = found >= needed;
        line = 0;
    }
    release(&points);
    return PyBool_FromLong(is_found);
}

#define MOST_SIGNS 64
#define MOST_LETTERS 32
#define PLACES 1024

/* Strings of two characters and more that are looked for, by what they begin with. */
typedef struct {
    Py_UCS4 at[MOST_SIGNS][MOST_LETTERS];
    Py_ssize_t lengths[MOST_SIGNS];
    uint8_t first[PLACES], next[MOST_SIGNS + 1]; /* one more than the number of a sign; 0 where there is none */
    Py_ssize_t count;
    uint64_t found; /* a bit for each */
} Signs;

/* Where the strings stand that begin with these two characters, and some others. */
static Py_ssize_t place_of(const Py_UCS4 *at)
{
    return (Py_ssize_t)((at[0] * 31 + at[1]) & (PLACES - 1));
}

/* The strings of a tuple or list; 0, or -1 with an error. */
static int signs_of(PyObject *strings, Signs *signs)
{
    Py_ssize_t i;
    signs->count = PySequence_Size(strings);
    signs->found = 0;
    if (signs->count < 0 || signs->count > MOST_SIGNS) {
        PyErr_SetString(PyExc_ValueError, "a few signs are needed");
        return -1;
    }
    memset(signs->first, 0, sizeof signs->first);
    for (i = 0; i < signs->count; i++) {
        PyObject *sign = PySequence_GetItem(strings, i);
        int failed = !sign || !PyUnicode_Check(sign);
        signs->lengths[i] = failed ? 0 : PyUnicode_GetLength(sign);
        failed = signs->lengths[i] < 2 || signs->lengths[i] > MOST_LETTERS;
        if (failed && !PyErr_Occurred())
            PyErr_SetString(PyExc_ValueError, "a sign is no str, or too long, or too short");
        failed = failed || !PyUnicode_AsUCS4(sign, signs->at[i], MOST_LETTERS, 0);
        Py_XDECREF(sign);
        if (failed)
            return -1;
        signs->next[i + 1] = signs->first[place_of(signs->at[i])];
        signs->first[place_of(signs->at[i])] = (uint8_t)(i + 1);
    }
    return 0;
}

/* Notes which of them a text holds, until all or, if one is enough, one is found. */
static void look_for(Signs *signs, const Points *points, int one_is_enough)
{
    uint64_t all = signs->count == 64 ? UINT64_MAX : (UINT64_C(1) << signs->count) - 1;
    Py_ssize_t i, k;
    for (i = 0; i + 1 < points->count && signs->found != all; i++) {
        uint8_t one;
        for (one = signs->first[place_of(points->at + i)]; one; one = signs->next[one]) {
            const Py_UCS4 *sign = signs->at[one - 1];
            Py_ssize_t length = signs->lengths[one - 1];
            if (length > points->count - i)
                continue;
            for (k = 0; k < length && points->at[i + k] == sign[k]; k++)
                ;
            if (k < length)
                continue;
            signs->found |= UINT64_C(1) << (one - 1);
            if (one_is_enough)
                return;
        }
    }
}

static PyObject *holds_any(PyObject *module, PyObject *const *args, Py_ssize_t given)
{
    Points points;
    Signs signs;
    if (!has(given, 2) || signs_of(args[1], &signs) < 0 || points_of(args[0], &points) < 0)
        return NULL;
    look_for(&signs, &points, 1);
    release(&points);
    return PyBool_FromLong(signs.found != 0);
}

/* Those of the strings of a list that stand in one of a list of texts. */
static PyObject *which_stand(PyObject *module, PyObject *const *args, Py_ssize_t given)
{
    Points points;
    Signs signs;
    PyObject *list;
    Py_ssize_t i;
    if (!has(given, 2))
        return NULL;
    if (!PyList_Check(args[0]) || !PyList_Check(args[1])) {
        PyErr_SetString(PyExc_TypeError, "two lists are needed");
        return NULL;
    }
    if (signs_of(args[1], &signs) < 0)
        return NULL;
    for (i = 0; i < PyList_Size(args[0]); i++) {
        if (points_of(PyList_GetItem(args[0], i), &points) < 0)
            return NULL;
        look_for(&signs, &points, 0);
        release(&points);
    }
    list = PyList_New(0);
    for (i = 0; list && i < signs.count; i++)
        if (signs.found >> i & 1 && PyList_Append(list, PyList_GetItem(args[1], i)) < 0)
            Py_CLEAR(list);
    return list;
}

/* ---- words ----------------------------------------------------------------------------------------------------- */

#define MOST_CORE 64

typedef struct {
    double weight;
    PyObject *word; /* borrowed */
} Weighted;

static int is_word(PyObject *word)
{
    if (PyUnicode_CheckExact(word))
        return 1;
    PyErr_SetString(PyExc_TypeError, "a str is needed");
    return 0;
}

/* Whether one comes before the other: the smaller weight first, equals in the order of their characters. */
static int is_before(const Weighted *one, const Weighted *other)
{
    if (one->weight != other->weight)
        return one->weight < other->weight;
    return PyUnicode_Compare(one->word, other->word) < 0;
}

/* Puts one more among the first ones, in their order and each of them once; how many these are then. */
static Py_ssize_t ranked(Weighted *best, Py_ssize_t held, Py_ssize_t most, const Weighted *one)
{
    Py_ssize_t i, place = held;
    while (place && is_before(one, &best[place - 1]))
        place--;
    if (place == most || (place && !is_before(&best[place - 1], one)))
        return held;
    held += held < most;
    for (i = held - 1; i > place; i--)
        best[i] = best[i - 1];
    best[place] = *one;
    return held;
}

static PyObject *list_of(const Weighted *best, Py_ssize_t held)
{
    PyObject *list = PyList_New(held);
    Py_ssize_t i;
    for (i = 0; list && i < held; i++)
        if (put(list, i, Py_NewRef(best[i].word)) < 0)
            Py_CLEAR(list);
    return list;
}

/* Words, a length: those of a list that are longer, in their order. */
static PyObject *longer(PyObject *module, PyObject *const *args, Py_ssize_t given)
{
    PyObject *list;
    Py_ssize_t i, length;
    if (!has(given, 2) || size_of(args[1], 0, PY_SSIZE_T_MAX, &length) < 0)
        return NULL;
    if (!PyList_Check(args[0])) {
        PyErr_SetString(PyExc_TypeError, "a list is needed");
        return NULL;
    }
    list = PyList_New(0);
    for (i = 0; list && i < PyList_Size(args[0]); i++) {
        PyObject *word = PyList_GetItem(args[0], i);
        if (!is_word(word) || (PyUnicode_GetLength(word) > length && PyList_Append(list, word) < 0))
            Py_CLEAR(list);
    }
    return list;
}

/* See ``longest_lines``: lines, the letters that they must have, and how many. */
static PyObject *longest_lines(PyObject *module, PyObject *const *args, Py_ssize_t given)
{
    Weighted best[MOST_CORE];
    Py_ssize_t i, at_least, most, held = 0;
    if (!has(given, 3) || size_of(args[1], 0, PY_SSIZE_T_MAX, &at_least) < 0 ||
        size_of(args[2], 0, MOST_CORE, &most) < 0)
        return NULL;
    if (!PyList_Check(args[0])) {
        PyErr_SetString(PyExc_TypeError, "a list is needed");
        return NULL;
    }
    for (i = 0; i < PyList_Size(args[0]); i++) {
        PyObject *line = PyList_GetItem(args[0], i);
        Weighted one = {0, line};
        if (!is_word(line))
            return NULL;
        one.weight = -(double)PyUnicode_GetLength(line);
        if (-one.weight >= (double)at_least)
            held = ranked(best, held, most, &one);
    }
    return list_of(best, held);
}

/* Weights of words. A word of a few characters is a number, and stands with its weight in a table of its own: in a dict
 * of 40 megabytes, each of whose words, hashes and weights are somewhere else, one takes four times as long to fetch. */
typedef struct {
    uint64_t word; /* 0 where there is none */
    double weight;
} Slot;

typedef struct {
    PyObject *all;
    Slot *slots;
    size_t mask;
} Weights;

static const char *WEIGHTS = "scrapy_neardup weights";

/* A word of one to four characters of the basic plane as a number; 0 for another one, or with an error. */
static uint64_t number_of(PyObject *word)
{
    Py_UCS4 points[4];
    uint64_t number = 0;
    Py_ssize_t i, length = PyUnicode_GetLength(word);
    if (length < 1 || length > 4 || !PyUnicode_AsUCS4(word, points, 4, 0))
        return 0;
    for (i = 0; i < length; i++) {
        if (!points[i] || points[i] > 0xFFFF)
            return 0;
        number = number << 16 | points[i];
    }
    return number;
}

/* Where a word stands in the table, or could. */
static Slot *slot_for(const Weights *weights, uint64_t word)
{
    size_t place = (size_t)mix(word) & weights->mask;
    while (weights->slots[place].word && weights->slots[place].word != word)
        place = (place + 1) & weights->mask;
    return &weights->slots[place];
}

static void forget_weights(PyObject *capsule)
{
    Weights *weights = PyCapsule_GetPointer(capsule, WEIGHTS);
    Py_XDECREF(weights->all);
    PyMem_Free(weights->slots);
    PyMem_Free(weights);
}

/* The word of one to four characters of the basic plane that these bytes of UTF-8 are, as a number; 0 for another one. */
static uint64_t number_in(const uint8_t *at, const uint8_t *end)
{
    uint64_t number = 0;
    for (; at < end; at++) {
        uint32_t point = *at;
        int more = point < 0x80 ? 0 : point >= 0xC2 && point < 0xE0 ? 1 : point >= 0xE0 && point < 0xF0 ? 2 : -1;
        if (more < 0 || end - at <= more || number >> 48 || !point)
            return 0;
        point &= more ? 0x3F >> more : 0x7F;
        if (more == 2) {
            if ((*++at & 0xC0) != 0x80)
                return 0;
            point = point << 6 | (*at & 0x3F);
            if (point < 0x20 || (point >= 0x360 && point < 0x380))
                return 0; /* too many bytes for it, or a surrogate: no UTF-8, as Python will say */
        }
        if (more) {
            if ((*++at & 0xC0) != 0x80)
                return 0;
            point = point << 6 | (*at & 0x3F);
        }
        number = number << 16 | point;
    }
    return number;
}

/* A number as Python reads it: of few digits at once, as the division of two that a double holds is exact. */
static double read_number(const char *at, const char *end)
{
    char copy[64];
    const char *first = at;
    double whole = 0, parts = 1;
    int digits = 0, has_point = 0;
    for (; at < end && digits < 16; at++) {
        if (*at == '.' && !has_point)
            has_point = 1;
        else if (*at >= '0' && *at <= '9') {
            whole = whole * 10 + (*at - '0');
            parts = has_point ? parts * 10 : 1;
            digits++;
        }
        else
            break;
    }
    if (at == end && digits && digits < 16)
        return whole / parts;
    if (end - first >= (Py_ssize_t)sizeof copy) {
        PyErr_SetString(PyExc_ValueError, "a weight is no number");
        return -1.0;
    }
    memcpy(copy, first, (size_t)(end - first));
    copy[end - first] = 0;
    return PyOS_string_to_double(copy, NULL, NULL);
}

/* Puts the words of lines, each with a space and its weight behind, into a table that has room; 0, or -1 with an error. */
static int read_weights(Weights *made, const char *at, const char *end, double *told)
{
    while (at < end) {
        const char *last = memchr(at, '\n', (size_t)(end - at)), *space;
        uint64_t number;
        double weight;
        last = last ? last : end;
        for (space = last; space > at && *space != ' '; space--)
            ;
        weight = read_number(*space == ' ' ? space + 1 : space, last);
        if (PyErr_Occurred())
            return -1;
        number = number_in((const uint8_t *)at, (const uint8_t *)space);
        if (number) {
            Slot *slot = slot_for(made, number);
            slot->word = number;
            slot->weight = weight;
        }
        else {
            PyObject *word = PyUnicode_DecodeUTF8(at, space - at, NULL), *value = PyFloat_FromDouble(weight);
            int failed = word && value ? PyDict_SetItem(made->all, word, value) : -1;
            Py_XDECREF(word);
            Py_XDECREF(value);
            if (failed < 0)
                return -1;
        }
        *told++ = weight;
        at = last + 1;
    }
    return 0;
}

/* Bytes of lines, in UTF-8, of a word, a space and its weight: the table of them, and all weights, 8 bytes each. */
static PyObject *weights(PyObject *module, PyObject *const *args, Py_ssize_t given)
{
    Weights *made;
    PyObject *capsule, *told = NULL, *found = NULL;
    char *text;
    Py_ssize_t length, i, lines;
    size_t size = 16;
    if (!has(given, 1) || PyBytes_AsStringAndSize(args[0], &text, &length) < 0)
        return NULL;
    lines = length && text[length - 1] != '\n';
    for (i = 0; i < length; i++)
        lines += text[i] == '\n';
    while (size / 4 * 3 < (size_t)lines + 1)
        size *= 2;
    made = PyMem_Calloc(1, sizeof *made);
    if (made)
        made->slots = PyMem_Calloc(size, sizeof *made->slots);
    capsule = made && made->slots ? PyCapsule_New(made, WEIGHTS, forget_weights) : NULL;
    if (!capsule) {
        if (made)
            PyMem_Free(made->slots);
        PyMem_Free(made);
        return PyErr_Occurred() ? NULL : PyErr_NoMemory();
    }
    made->mask = size - 1;
    made->all = PyDict_New();
    if (made->all)
        told = PyByteArray_FromStringAndSize(NULL, lines * (Py_ssize_t)sizeof(double));
    if (told && read_weights(made, text, text + length, (double *)(void *)PyByteArray_AsString(told)) == 0)
        found = PyTuple_Pack(2, capsule, told);
    Py_XDECREF(told);
    Py_DECREF(capsule);
    return found;
}

/* The weight of a word in the table, or one for all that it lacks; -1 with an error. */
static double weight_of(const Weights *weights, PyObject *word, double unknown)
{
    uint64_t number = number_of(word);
    PyObject *told;
    if (number) {
        const Slot *slot = slot_for(weights, number);
        return slot->word ? slot->weight : unknown;
    }
    told = PyErr_Occurred() ? NULL : PyDict_GetItemWithError(weights->all, word);
    if (told)
        return PyFloat_AsDouble(told);
    return PyErr_Occurred() ? -1.0 : unknown;
}

/* Has a word's weight taken off what it has so far; 0, or -1 with an error. */
static int take_off(PyObject *sums, PyObject *word, const Weights *weights, double unknown)
{
    PyObject *so_far, *sum;
    double weight;
    int failed;
    if (!is_word(word))
        return -1;
    weight = weight_of(weights, word, unknown);
    so_far = PyErr_Occurred() ? NULL : PyDict_GetItemWithError(sums, word);
    if (PyErr_Occurred())
        return -1;
    sum = PyFloat_FromDouble((so_far ? PyFloat_AsDouble(so_far) : 0.0) - weight);
    failed = sum ? PyDict_SetItem(sums, word, sum) : -1;
    Py_XDECREF(sum);
    return failed;
}

/* See ``core_words``: words, how many, their weights, and the weight of all others. */
static PyObject *core_words(PyObject *module, PyObject *const *args, Py_ssize_t given)
{
    Weighted best[MOST_CORE];
    Py_ssize_t i, most, held = 0, place = 0;
    PyObject *sums, *word, *weight, *list = NULL;
    const Weights *weights;
    double unknown;
    if (!has(given, 4) || size_of(args[1], 0, MOST_CORE, &most) < 0)
        return NULL;
    if (!PyList_Check(args[0])) {
        PyErr_SetString(PyExc_TypeError, "a list is needed");
        return NULL;
    }
    if (!(weights = PyCapsule_GetPointer(args[2], WEIGHTS)))
        return NULL;
    unknown = PyFloat_AsDouble(args[3]);
    if ((unknown == -1.0 && PyErr_Occurred()) || !(sums = PyDict_New()))
        return NULL;
    for (i = 0; i < PyList_Size(args[0]); i++) { /* so that it is waited for once, and not for each */
        PyObject *asked = PyList_GetItem(args[0], i);
        if (!is_word(asked))
            goto done;
        SOON(&weights->slots[(size_t)mix(number_of(asked)) & weights->mask]);
    }
    for (i = 0; i < PyList_Size(args[0]); i++)
        if (take_off(sums, PyList_GetItem(args[0], i), weights, unknown) < 0)
            goto done;
    while (PyDict_Next(sums, &place, &word, &weight)) {
        Weighted one = {PyFloat_AsDouble(weight), word};
        held = ranked(best, held, most, &one);
    }
    list = PyErr_Occurred() ? NULL : list_of(best, held);
done:
    Py_DECREF(sums);
    return list;
}

/* ---- counted sentences ----------------------------------------------------------------------------------------- */

#define WAYS 8
#define MOST_BUCKETS 0x10000

/* Arrays that are passed in, each as the functions here need it. */
typedef struct {
    Py_buffer views[12];
    int opened;
} Arrays;

static void close_all(Arrays *arrays)
{
    while (arrays->opened)
        PyBuffer_Release(&arrays->views[--arrays->opened]);
}

/* One more array, of ``count`` items or any number if that is -1; its items, or NULL with an error. */
static void *open_one(Arrays *arrays, PyObject *array, size_t size, Py_ssize_t count, int flags)
{
    Py_buffer *view = &arrays->views[arrays->opened];
    if (PyObject_GetBuffer(array, view, flags) < 0)
        return NULL;
    arrays->opened++;
    if ((count >= 0 && view->len != count * (Py_ssize_t)size) || view->len % (Py_ssize_t)size ||
        (view->len && (uintptr_t)view->buf % size)) { /* what is empty may stand anywhere */
        PyErr_SetString(PyExc_ValueError, "an array has another size than is needed");
        return NULL;
    }
    return view->buf;
}

/* See ``Recurrence``, whose arrays these are. */
typedef struct {
    uint8_t *newest, *repeats, *dirty;
    uint32_t *sentences, *sites;
    uint32_t buckets;
} Counted;

/* Newest, sentences, sites: a table that is read; 0, or -1 with an error. */
static int table_of(Arrays *arrays, PyObject *const *args, int flags, Counted *table)
{
    Py_ssize_t count;
    table->repeats = NULL;
    table->newest = open_one(arrays, args[0], 1, -1, flags);
    if (!table->newest)
        return -1;
    count = arrays->views[arrays->opened - 1].len;
    if (count < 1 || count > MOST_BUCKETS || count & (count - 1)) {
        PyErr_SetString(PyExc_ValueError, "the number of buckets must be a power of two");
        return -1;
    }
    table->buckets = (uint32_t)count;
    table->sentences = open_one(arrays, args[1], 4, count * WAYS, flags);
    table->sites = table->sentences ? open_one(arrays, args[2], 4, count * WAYS, flags) : NULL;
    return table->sites ? 0 : -1;
}

/* The same, and repeats. */
static int table_with_repeats(Arrays *arrays, PyObject *const *args, int flags, Counted *table)
{
    if (table_of(arrays, args, flags, table) < 0)
        return -1;
    table->repeats = open_one(arrays, args[3], 1, (Py_ssize_t)table->buckets * WAYS, flags);
    return table->repeats ? 0 : -1;
}

/* The same, and a flag for each block of so many buckets: a table that is written to. */
static int table_to_write(Arrays *arrays, PyObject *const *args, Py_ssize_t in_block, Counted *table)
{
    if (table_with_repeats(arrays, args, PyBUF_WRITABLE, table) < 0)
        return -1;
    if (table->buckets % in_block) {
        PyErr_SetString(PyExc_ValueError, "there must be as many buckets in every block");
        return -1;
    }
    table->dirty = open_one(arrays, args[4], 1, (Py_ssize_t)table->buckets / in_block, PyBUF_WRITABLE);
    return table->dirty ? 0 : -1;
}

/* Where a sentence stands in its bucket; -1 if it does not. */
static Py_ssize_t slot_of(const Counted *table, uint32_t sentence)
{
    Py_ssize_t slot = (Py_ssize_t)(sentence & (table->buckets - 1)) * WAYS, end = slot + WAYS;
    for (; slot < end; slot++)
        if (table->sentences[slot] == sentence)
            return slot;
    return -1;
}

/* On how many pages a sentence stood, where there are repeats, and else on how many sites. */
static unsigned stood_on(const Counted *table, uint32_t sentence)
{
    Py_ssize_t slot = slot_of(table, sentence);
    return slot < 0 ? 0 : ones_of(table->sites[slot]) + (table->repeats ? table->repeats[slot] : 0);
}

/* ``asked``, newest, sentences, sites, and repeats or None: for each sentence the bits of its sites and its repeats. */
static PyObject *stood(PyObject *module, PyObject *const *args, Py_ssize_t given)
{
    Arrays arrays;
    Counted table;
    const uint32_t *asked;
    PyObject *found = NULL;
    arrays.opened = 0;
    if (!has(given, 5))
        return NULL;
    asked = open_one(&arrays, args[0], 4, -1, PyBUF_SIMPLE);
    if (asked && (args[4] == Py_None ? table_of(&arrays, args + 1, PyBUF_SIMPLE, &table)
                                     : table_with_repeats(&arrays, args + 1, PyBUF_SIMPLE, &table)) == 0) {
        Py_ssize_t i, count = arrays.views[0].len / 4;
        uint16_t *counts;
        found = PyByteArray_FromStringAndSize(NULL, count * 2);
        counts = found ? (uint16_t *)(void *)PyByteArray_AsString(found) : NULL;
        for (i = 0; found && i < count; i++)
            counts[i] = (uint16_t)stood_on(&table, asked[i]);
    }
    close_all(&arrays);
    return found;
}

/* The upper half of the hash of a number. */
static uint32_t upper_half(uint32_t number, uint64_t with, uint64_t offset, uint64_t base)
{
    return (uint32_t)(mix(mix(number ^ with ^ offset) * base) >> 32);
}

/* ``asked``, what they are mixed with for their site, offset, base; pages from which on one is common, newest,
 * sentences, sites, repeats; sites from which on, newest, sentences, sites of the other table: a byte for each. */
static PyObject *are_common(PyObject *module, PyObject *const *args, Py_ssize_t given)
{
    Arrays arrays;
    Counted here, everywhere;
    const uint32_t *asked;
    uint64_t with, offset, base;
    Py_ssize_t i, pages, sites;
    PyObject *found = NULL;
    arrays.opened = 0;
    if (!has(given, 13) || word_of(args[1], &with) < 0 || word_of(args[2], &offset) < 0 ||
        word_of(args[3], &base) < 0 || size_of(args[4], 0, 1024, &pages) < 0 || size_of(args[9], 0, 1024, &sites) < 0)
        return NULL;
    asked = open_one(&arrays, args[0], 4, -1, PyBUF_SIMPLE);
    if (asked && table_with_repeats(&arrays, args + 5, PyBUF_SIMPLE, &here) == 0 &&
        table_of(&arrays, args + 10, PyBUF_SIMPLE, &everywhere) == 0)
        found = PyByteArray_FromStringAndSize(NULL, arrays.views[0].len / 4);
    if (found) {
        char *common = PyByteArray_AsString(found);
        for (i = 0; i < arrays.views[0].len / 4; i++) {
            SOON(&here.sentences[(upper_half(asked[i], with, offset, base) & (here.buckets - 1)) * WAYS]);
            SOON(&everywhere.sentences[(asked[i] & (everywhere.buckets - 1)) * WAYS]);
        }
        for (i = 0; i < arrays.views[0].len / 4; i++)
            common[i] = (Py_ssize_t)stood_on(&here, upper_half(asked[i], with, offset, base)) >= pages ||
                        (Py_ssize_t)stood_on(&everywhere, asked[i]) >= sites;
    }
    close_all(&arrays);
    return found;
}

/* See ``_admit``: gives a new sentence the next way without repeats; 0 if there is none, and the counts are one less. */
static int admitted(const Counted *table, uint32_t sentence, uint32_t bit, Py_ssize_t bucket)
{
    uint8_t *counts = table->repeats + bucket * WAYS;
    int turn, way = 0, best = -1;
    for (turn = 1; turn <= WAYS && best != 0; turn++) { /* that which was filled last comes last */
        int one = (table->newest[bucket] + turn) % WAYS;
        if (best < 0 || counts[one] < best) {
            best = counts[one];
            way = one;
        }
    }
    if (best > 0) {
        for (way = 0; way < WAYS; way++)
            counts[way]--;
        return 0;
    }
    table->sentences[bucket * WAYS + way] = sentence;
    table->sites[bucket * WAYS + way] = bit;
    table->newest[bucket] = (uint8_t)way;
    return 1;
}

static int in_order(const void *one, const void *other)
{
    uint32_t a = *(const uint32_t *)one, b = *(const uint32_t *)other;
    return (a > b) - (a < b);
}

#define FEW 64 /* numbers that are put in order sooner one by one */

static void sort_halves(uint32_t *numbers, Py_ssize_t count)
{
    Py_ssize_t i, place;
    if (count > FEW) {
        qsort(numbers, (size_t)count, sizeof *numbers, in_order);
        return;
    }
    for (i = 1; i < count; i++) {
        uint32_t number = numbers[i];
        for (place = i; place && numbers[place - 1] > number; place--)
            numbers[place] = numbers[place - 1];
        numbers[place] = number;
    }
}

/* Counts the sentences of a page, which are put in order: see ``Recurrence.note``. ``is_known``: as many bytes. */
static void count_in(const Counted *table, uint32_t *noted, Py_ssize_t count, uint32_t bit, Py_ssize_t in_block,
                     uint8_t *is_known)
{
    uint8_t full[MOST_BUCKETS / 8];
    Py_ssize_t i;
    memset(full, 0, (table->buckets + 7) / 8);
    for (i = 0; i < count; i++) {
        size_t slot = (size_t)(noted[i] & (table->buckets - 1)) * WAYS;
        SOON(&table->sentences[slot]);
        SOON(&table->sites[slot]);
        SOON(&table->repeats[slot]);
    }
    sort_halves(noted, count);
    for (i = 0; i < count; i++) { /* the known ones are counted first */
        Py_ssize_t slot = slot_of(table, noted[i]);
        int is_twice = i && noted[i] == noted[i - 1];
        table->dirty[(noted[i] & (table->buckets - 1)) / in_block] = 1;
        is_known[i] = slot >= 0 || is_twice;
        if (slot < 0 || is_twice)
            continue;
        table->repeats[slot] += table->sites[slot] & bit && table->repeats[slot] < 255;
        table->sites[slot] |= bit;
    }
    /* Of several that want one way the last one gets it first; a page takes one off each count of a bucket at most. */
    for (i = count; i-- > 0;) {
        Py_ssize_t bucket = (Py_ssize_t)(noted[i] & (table->buckets - 1));
        if (is_known[i] || full[bucket >> 3] >> (bucket & 7) & 1)
            continue;
        if (!admitted(table, noted[i], bit, bucket))
            full[bucket >> 3] |= (uint8_t)(1 << (bucket & 7));
    }
}

/* Sentences, buckets of a block; bit, newest, sentences, sites, repeats, dirty of a table. */
static PyObject *note(PyObject *module, PyObject *const *args, Py_ssize_t given)
{
    Arrays arrays;
    Counted table;
    const uint32_t *asked;
    uint32_t *noted = NULL;
    Py_ssize_t count, in_block, bit;
    PyObject *found = NULL;
    arrays.opened = 0;
    if (!has(given, 8) || size_of(args[1], 1, MOST_BUCKETS, &in_block) < 0 || size_of(args[2], 0, 31, &bit) < 0)
        return NULL;
    asked = open_one(&arrays, args[0], 4, -1, PyBUF_SIMPLE);
    if (asked && table_to_write(&arrays, args + 3, in_block, &table) == 0) {
        count = arrays.views[0].len / 4;
        noted = PyMem_Malloc((size_t)count * (sizeof *noted + 1));
        if (noted) {
            memcpy(noted, asked, (size_t)count * sizeof *noted);
            count_in(&table, noted, count, UINT32_C(1) << bit, in_block, (uint8_t *)(noted + count));
            found = Py_NewRef(Py_None);
        }
        else
            PyErr_NoMemory();
    }
    PyMem_Free(noted);
    close_all(&arrays);
    return found;
}

/* Numbers of 32 bits, with room behind them for as many once more, a byte for each, and that for some more; NULL with an
 * error. */
static uint32_t *halves_of(PyObject *sequence, Py_ssize_t room, Py_ssize_t *count)
{
    PyObject *numbers = PySequence_Tuple(sequence);
    uint32_t *halves = NULL;
    Py_ssize_t i;
    if (!numbers)
        return NULL;
    *count = PyTuple_Size(numbers);
    halves = PyMem_Malloc((size_t)(*count + room) * (2 * sizeof *halves + 1));
    if (!halves)
        PyErr_NoMemory();
    for (i = 0; halves && i < *count; i++) {
        uint64_t number;
        PyObject *one = PyNumber_Index(PyTuple_GetItem(numbers, i)); /* which may be one of numpy's */
        int is_one = one && word_of(one, &number) == 0;
        Py_XDECREF(one);
        if (is_one && number <= UINT32_MAX) {
            halves[i] = (uint32_t)number;
            continue;
        }
        if (is_one)
            PyErr_SetString(PyExc_OverflowError, "a number has more than 32 bits");
        PyMem_Free(halves);
        halves = NULL;
    }
    Py_DECREF(numbers);
    return halves;
}

/* Sentences as numbers, buckets of a block; what they are mixed with for their site, offset, base, and the arrays of the table in
 * which all have one bit; a bit, or None for a page that counts for its site alone, and the arrays of the other table;
 * whether nothing is to be done where the last sentence is known of the site. Whether they were counted: see
 * ``Counts.note``. */
static PyObject *count_page(PyObject *module, PyObject *const *args, Py_ssize_t given)
{
    Arrays arrays;
    Counted here, everywhere;
    uint32_t *asked, *noted;
    uint64_t with, offset, base;
    Py_ssize_t i, count, in_block, bit = -1;
    PyObject *found = NULL;
    int once;
    arrays.opened = 0;
    if (!has(given, 17) || size_of(args[1], 1, MOST_BUCKETS, &in_block) < 0 || word_of(args[2], &with) < 0 ||
        word_of(args[3], &offset) < 0 || word_of(args[4], &base) < 0 ||
        (args[10] != Py_None && size_of(args[10], 0, 31, &bit) < 0) || (once = PyObject_IsTrue(args[16])) < 0)
        return NULL;
    asked = halves_of(args[0], 1, &count);
    if (!asked || table_to_write(&arrays, args + 5, in_block, &here) < 0 ||
        table_to_write(&arrays, args + 11, in_block, &everywhere) < 0)
        goto done;
    if (once && count && slot_of(&here, upper_half(asked[count - 1], with, offset, base)) >= 0) {
        found = Py_NewRef(Py_False);
        goto done;
    }
    noted = asked + count + 1;
    for (i = 0; i < count; i++)
        noted[i] = upper_half(asked[i], with, offset, base);
    noted[count] = upper_half(0, with, offset, base); /* the page itself */
    count_in(&here, noted, count + 1, 1, in_block, (uint8_t *)(noted + count + 1));
    if (bit >= 0)
        count_in(&everywhere, asked, count, UINT32_C(1) << bit, in_block, (uint8_t *)(noted + count + 1));
    found = Py_NewRef(Py_True);
done:
    PyMem_Free(asked);
    close_all(&arrays);
    return found;
}

/* Sentences, a number that they are mixed with, offset, base: the upper halves of the hashes of numbers. */
static PyObject *upper_halves(PyObject *module, PyObject *const *args, Py_ssize_t given)
{
    Arrays arrays;
    const uint32_t *asked;
    uint64_t with, offset, base;
    PyObject *found = NULL;
    arrays.opened = 0;
    if (!has(given, 4) || word_of(args[1], &with) < 0 || word_of(args[2], &offset) < 0 || word_of(args[3], &base) < 0)
        return NULL;
    asked = open_one(&arrays, args[0], 4, -1, PyBUF_SIMPLE);
    if (asked)
        found = PyByteArray_FromStringAndSize(NULL, arrays.views[0].len);
    if (found) {
        uint32_t *halves = (uint32_t *)(void *)PyByteArray_AsString(found);
        Py_ssize_t i;
        for (i = 0; i < arrays.views[0].len / 4; i++)
            halves[i] = upper_half(asked[i], with, offset, base);
    }
    close_all(&arrays);
    return found;
}

/* ---- rows of a state ------------------------------------------------------------------------------------------- */

#define MOST_BEFORE 16 /* bytes that stand before a key, at most */

/* The last bytes of a number, the first one first; 0, or -1 with an error. */
static int put_key(PyObject *number, Py_ssize_t size, char *at)
{
    uint64_t key;
    if (word_of(number, &key) < 0)
        return -1;
    for (at += size; size--; key >>= 8)
        *--at = (char)(key & 0xFF);
    return 0;
}

/* Numbers in a tuple or a list, bytes of each that are kept, and what stands before them: see ``pack_each``. */
static PyObject *packed_keys(PyObject *module, PyObject *const *args, Py_ssize_t given)
{
    char row[MOST_BEFORE + 8], *before;
    Py_ssize_t size, length, count, i;
    PyObject *keys, *found;
    if (!has(given, 3) || size_of(args[1], 1, 8, &size) < 0 || PyBytes_AsStringAndSize(args[2], &before, &length) < 0)
        return NULL;
    if (length > MOST_BEFORE) {
        PyErr_SetString(PyExc_ValueError, "there are too many bytes before a key");
        return NULL;
    }
    keys = PySequence_Tuple(args[0]);
    if (!keys)
        return NULL;
    count = PyTuple_Size(keys);
    memcpy(row, before, (size_t)length);
    found = PyList_New(count);
    for (i = 0; found && i < count; i++) {
        PyObject *one = NULL;
        if (put_key(PyTuple_GetItem(keys, i), size, row + length) == 0)
            one = PyBytes_FromStringAndSize(row, length + size);
        if (!one || PyList_SetItem(found, i, one) < 0)
            Py_CLEAR(found);
    }
    Py_DECREF(keys);
    return found;
}

/* Flags, keys, bytes of a key, URL, what stands behind that, sketch: see ``Record.pack``. */
static PyObject *packed_record(PyObject *module, PyObject *const *args, Py_ssize_t given)
{
    char *at, *parts[3];
    Py_ssize_t flags, size, count, i, lengths[3], length;
    PyObject *keys = NULL, *url = NULL, *found = NULL;
    if (!has(given, 6) || size_of(args[0], 0, 255, &flags) < 0 || size_of(args[2], 1, 8, &size) < 0 ||
        PyBytes_AsStringAndSize(args[4], &parts[1], &lengths[1]) < 0 ||
        PyBytes_AsStringAndSize(args[5], &parts[2], &lengths[2]) < 0)
        return NULL;
    keys = PySequence_Tuple(args[1]);
    url = keys ? PyUnicode_AsEncodedString(args[3], "utf-8", "surrogatepass") : NULL;
    if (!url || PyBytes_AsStringAndSize(url, &parts[0], &lengths[0]) < 0)
        goto done;
    count = PyTuple_Size(keys);
    if (count > 255 || lengths[0] > 65535) {
        PyErr_SetString(PyExc_ValueError, "a record has no room for that");
        goto done;
    }
    length = 4 + count * size + lengths[0] + lengths[1];
    if (lengths[2] > PY_SSIZE_T_MAX - length) {
        PyErr_NoMemory();
        goto done;
    }
    found = PyBytes_FromStringAndSize(NULL, length + lengths[2]);
    if (!found)
        goto done;
    at = PyBytes_AsString(found);
    *at++ = (char)flags;
    *at++ = (char)count;
    *at++ = (char)(lengths[0] >> 8);
    *at++ = (char)(lengths[0] & 0xFF);
    for (i = 0; i < count; i++, at += size)
        if (put_key(PyTuple_GetItem(keys, i), size, at) < 0) {
            Py_CLEAR(found);
            goto done;
        }
    for (i = 0; i < 3; at += lengths[i++])
        memcpy(at, parts[i], (size_t)lengths[i]);
done:
    Py_XDECREF(keys);
    Py_XDECREF(url);
    return found;
}

/* The checksum of zlib and of gzip, half a byte at a time. */
static uint32_t checksum_of(const char *at, size_t count)
{
    static const uint32_t SUMS[16] = {
        0x00000000, 0x1DB71064, 0x3B6E20C8, 0x26D930AC, 0x76DC4190, 0x6B6B51F4, 0x4DB26158, 0x5005713C,
        0xEDB88320, 0xF00F9344, 0xD6D6A3E8, 0xCB61B38C, 0x9B64C2B0, 0x86D3D2D4, 0xA00AE278, 0xBDBDF21C,
    };
    uint32_t sum = 0xFFFFFFFF;
    while (count--) {
        sum ^= (uint8_t)*at++;
        sum = sum >> 4 ^ SUMS[sum & 15];
        sum = sum >> 4 ^ SUMS[sum & 15];
    }
    return ~sum;
}

/* Kind, the five of a tally, rest, length: a line of the witness. */
static PyObject *witness_line(PyObject *module, PyObject *const *args, Py_ssize_t given)
{
    char *kind, *state, *rest, *line, name[17];
    uint64_t sequence, pages, total;
    Py_ssize_t kinds, states, rests, length, i;
    PyObject *found;
    int closed, told;
    if (!has(given, 8) || PyBytes_AsStringAndSize(args[0], &kind, &kinds) < 0 ||
        PyBytes_AsStringAndSize(args[1], &state, &states) < 0 || word_of(args[2], &sequence) < 0 ||
        word_of(args[3], &pages) < 0 || word_of(args[4], &total) < 0 || (closed = PyObject_IsTrue(args[5])) < 0 ||
        PyBytes_AsStringAndSize(args[6], &rest, &rests) < 0 || size_of(args[7], 1, 4096, &length) < 0)
        return NULL;
    if (states != 8 || kinds > length || rests > length || kinds + rests + 100 > length) { /* the others have 89 */
        PyErr_SetString(PyExc_ValueError, "a line of the witness has no room for that");
        return NULL;
    }
    for (i = 0; i < 16; i++)
        name[i] = "0123456789abcdef"[(uint8_t)state[i / 2] >> (i % 2 ? 0 : 4) & 15];
    name[16] = 0;
    found = PyBytes_FromStringAndSize(NULL, length);
    if (!found)
        return NULL;
    line = PyBytes_AsString(found);
    told = sprintf(line, "%.*s %s %" PRIu64 " %" PRIu64 " %016" PRIx64 " %d %.*s", (int)kinds, kind, name, sequence,
                   pages, total, closed, (int)rests, rest);
    told += sprintf(line + told, " %08" PRIx32, checksum_of(line, (size_t)told));
    memset(line + told, ' ', (size_t)(length - told - 1));
    line[length - 1] = '\n';
    return found;
}

/* ---- the module ------------------------------------------------------------------------------------------------ */

#define FAST(name, text) {#name, (PyCFunction)(void (*)(void))name, METH_FASTCALL, text}

static PyMethodDef METHODS[] = {
    FAST(prepared, "A secret, of 64 bytes at most, as the functions that hash texts take it."),
    FAST(hash_text, "The hash of a text under a prepared secret."),
    FAST(hash_texts, "The hash of each text of a list: key, list, and None or a dict that remembers them."),
    FAST(short_hashes, "The lower 32 bits of the same, 4 bytes each."),
    FAST(word_grams, "The hash of each word of a list as one n-gram: words, offset, base."),
    FAST(n_grams, "The hash of every n-gram of a text, 8 bytes each: text, n, offset, base."),
    FAST(minwise, "How many different n-grams a text has, and the sketch of them: text, n, offset, base, bins, bits."),
    FAST(smallest, "The smallest different hashes of n-grams of a text: text, n, offset, base, how many."),
    FAST(shingled, "All that is made of the n-grams of a text: how many, sketch, that of the opening, smallest ones."),
    FAST(lacking, "Which numbers no n-gram has for its hash: text, least n, greatest n, offset, base, mask, numbers."),
    FAST(equal_entries, "In how many entries two sketches are equal: sketch, sketch, bits of an entry."),
    FAST(may_be_alike, "Whether two pages may be alike, by a sketch and the head of another: see cascade_bound.py."),
    FAST(holds_any, "Whether a text holds one of at most 64 strings of 2 to 32 characters: text, strings."),
    FAST(which_stand, "Which of at most 64 strings of 2 to 32 characters stand in one of some texts: texts, strings."),
    FAST(longer, "The strings of a list that are longer than a number of characters."),
    FAST(longest_lines, "The longest different strings of a list: list, the characters they must have, 64 at most."),
    FAST(weights, "Lines of a word and its weight as the next one takes them, and all weights."),
    FAST(core_words, "The words whose weights add up to the most, 64 at most: words, how many, weights, that of others."),
    FAST(has_unspaced, "Whether a fiftieth of the letters and more are of scripts without spaces: characters, letters."),
    FAST(are_unspaced, "The same of each word of a list: characters, words."),
    FAST(has_prose, "Whether lines of some letters hold enough of them: characters, text, letters of a line, enough."),
    FAST(characters, "What is to be known of characters, by a function that tells of 256 at a time."),
    FAST(folded, "A text in one spelling, or None if it takes more to tell: characters, text."),
    FAST(letters, "The letters and digits of a text: characters, text."),
    FAST(cut, "The sentences of a text, and the letters of each: characters, text."),
    FAST(read_text, "The same of the text in the one spelling, or None: characters, text, key, dict that remembers."),
    FAST(stood, "On how many pages sentences stood: asked, newest, sentences, sites, repeats or None."),
    FAST(are_common, "Which sentences are common: asked, site, offset, base, and least and arrays of both tables."),
    FAST(note, "Count sentences: with buckets of a block, bit, newest, sentences, sites, repeats, dirty."),
    FAST(count_page, "Count those of a page, for its site and, with a bit, for all: see there."),
    FAST(packed_keys, "The bytes of keys, behind some that come before each: keys, bytes of a key, those before."),
    FAST(packed_record, "A record of a state: flags, keys, bytes of a key, URL, what stands behind that, sketch."),
    FAST(witness_line, "A line of the witness: kind, what a tally says, rest, length."),
    FAST(upper_halves, "Hashes of 32-bit numbers, mixed with another one, with offset and base."),
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef MODULE = {
    PyModuleDef_HEAD_INIT, "_kernels", "What the hot stages do, compiled; see compiled.py.", -1, METHODS,
    NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__kernels(void)
{
    PyObject *module = PyModule_Create(&MODULE);
    if (module && PyModule_AddIntConstant(module, "VERSION", VERSION) < 0)
        Py_CLEAR(module);
    return module;
}
