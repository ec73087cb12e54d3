/* n-grams of characters, and the min-wise sketches of them. */
#include "_kernels.h"

uint64_t *sums_of(const Py_UCS4 *at, Py_ssize_t count, uint64_t offset, uint64_t base)
{
    uint64_t *sums = NULL, sum = 0;
    Py_ssize_t i;
    if (count < PY_SSIZE_T_MAX / 16)
        sums = PyMem_Malloc((size_t)(count + 1) * sizeof *sums);
    if (!sums) {
        PyErr_NoMemory();
        return NULL;
    }
    for (i = 0; i < count; i++) {
        sums[i] = sum;
        sum = sum * base + mix(at[i] ^ offset);
    }
    sums[count] = sum;
    return sums;
}

Py_ssize_t hash_n_grams(const uint64_t *sums, Py_ssize_t length, Py_ssize_t n, uint64_t base, uint64_t *found)
{
    uint64_t power = 1;
    Py_ssize_t i;
    if (!length)
        return 0;
    if (n > length)
        n = length;
    for (i = 0; i < n; i++)
        power *= base;
    for (i = 0; i + n <= length; i++)
        found[i] = mix(sums[i + n] - sums[i] * power);
    return length - n + 1;
}

/* The same of the characters of a text. Release ``at``. */
static int grams_of(const Points *points, Py_ssize_t n, uint64_t offset, uint64_t base, Grams *grams)
{
    grams->count = 0;
    grams->at = sums_of(points->at, points->count, offset, base);
    if (!grams->at)
        return -1;
    grams->count = hash_n_grams(grams->at, points->count, n, base, grams->at);
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

/* See ``different``: a hash table, unless somebody has chosen values that all want one place of it: then they are put in order. */
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

/* Of the few thousand hashes of a page most have a place of their own among those of a set of bits, and
 * only what shares one has to be looked at. It is moved to the beginning, where it takes the place of others. */
Py_ssize_t different(uint64_t *values, Py_ssize_t count)
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
        values[shared] = values[i];
        shared += (Py_ssize_t)(twice[place >> 6] >> (place & 63) & 1);
    }
    found = different_in_table(values, shared);
    return found < 0 ? -1 : count - shared + found;
}

#define MOST_BINS 4096
#define STEP UINT64_C(0x632BE59BD9B4E019)

PyObject *sketch_of(const Grams *grams, Py_ssize_t bins, Py_ssize_t bits)
{
    uint64_t minima[MOST_BINS];
    uint8_t packed[MOST_BINS];
    Py_ssize_t i, at, size = bins * bits / 8;
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
    for (at = 0, i = 0; at < size; at++) {
        uint64_t byte = 0;
        for (shift = 0; shift < 8; shift += (int)bits, i++) {
            size_t source = (size_t)i;
            uint64_t drawn = (uint64_t)i * STEP;
            while (minima[source] == UINT64_MAX)
                source = (size_t)(mix(++drawn) & (uint64_t)(bins - 1));
            byte |= (mix(minima[source]) & ((UINT64_C(1) << bits) - 1)) << shift;
        }
        packed[at] = (uint8_t)byte;
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

KERNEL(n_grams)
{
    Grams grams;
    PyObject *found;
    if (!has(given, 4) || grams_from(args, &grams) < 0)
        return NULL;
    found = PyByteArray_FromStringAndSize((const char *)grams.at, grams.count * (Py_ssize_t)sizeof *grams.at);
    PyMem_Free(grams.at);
    return found;
}

int form_of(PyObject *const *args, Form *form)
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

KERNEL(minwise)
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

uint64_t gram_of(const Points *points, uint64_t offset, uint64_t base)
{
    uint64_t sum = 0;
    Py_ssize_t i;
    for (i = 0; i < points->count; i++)
        sum = sum * base + mix(points->at[i] ^ offset);
    return mix(sum);
}

/* Words, offset, base: the hash of each as one n-gram; an empty word has none, and may not be there. */
KERNEL(word_grams)
{
    uint64_t offset, base;
    PyObject *list;
    Py_ssize_t i, count;
    if (!has(given, 3) || word_of(args[1], &offset) < 0 || word_of(args[2], &base) < 0 || !is_list(args[0]))
        return NULL;
    count = PyList_Size(args[0]);
    list = PyList_New(count);
    for (i = 0; list && i < count; i++) {
        Points points;
        if (points_of(PyList_GetItem(args[0], i), &points) < 0) {
            Py_CLEAR(list);
            break;
        }
        if (put(list, i, PyLong_FromUnsignedLongLong(gram_of(&points, offset, base))) < 0)
            Py_CLEAR(list);
        release(&points);
    }
    return list;
}

PyObject *smallest_of(const Grams *grams, Py_ssize_t most)
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

KERNEL(smallest)
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
KERNEL(lacking)
{
    Points points;
    Sought sought;
    Py_ssize_t n, longest, i, count;
    uint64_t offset, base, mask, *sums, *found = NULL;
    PyObject *list = NULL;
    if (!has(given, 7) || size_of(args[1], 1, PY_SSIZE_T_MAX, &n) < 0 ||
        size_of(args[2], n, PY_SSIZE_T_MAX, &longest) < 0 || word_of(args[3], &offset) < 0 ||
        word_of(args[4], &base) < 0 || word_of(args[5], &mask) < 0 || seek(args[6], &sought) < 0 ||
        points_of(args[0], &points) < 0)
        return NULL;
    sums = sums_of(points.at, points.count, offset, base);
    if (sums)
        found = PyMem_Malloc((size_t)points.count * sizeof *found);
    if (sums && !found)
        PyErr_NoMemory();
    for (; found && sought.count && n <= longest && n <= points.count; n++) {
        count = hash_n_grams(sums, points.count, n, base, found);
        for (i = 0; i < count; i++)
            met(&sought, found[i] & mask);
    }
    if (found)
        list = PyList_New(sought.count);
    for (i = 0; list && i < sought.count; i++)
        if (put(list, i, PyLong_FromUnsignedLongLong(sought.values[i])) < 0)
            Py_CLEAR(list);
    PyMem_Free(found);
    PyMem_Free(sums);
    release(&points);
    return list;
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
KERNEL(equal_entries)
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
 * earlier page; bits of an entry; and three bounds: see methods/cascade/rules.py. */
KERNEL(may_be_alike)
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
