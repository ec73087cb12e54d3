/* n-grams of characters, and their min-wise sketches: see text/shingles.py. */

/* The n-grams of a text, and what they are hashed with. */
typedef struct {
    uint64_t base;
    uint64_t *sums; /* polynomials of the first 0, 1, 2, … characters */
    uint64_t *at;   /* hashes of n-grams, see ``hash_n_grams`` */
    Py_ssize_t length, count;
} Grams;

IN_CLONES static void mix_points(uint64_t *to, const Py_UCS4 *at, Py_ssize_t count, uint64_t offset)
{
    Py_ssize_t i;
    for (i = 0; i < count; i++)
        to[i] = mix(at[i] ^ offset);
}

/* Makes the sums, and room for hashes; 0 with an error, else release the sums. */
static int begin_grams(Grams *grams, const Py_UCS4 *at, Py_ssize_t length, uint64_t offset, uint64_t base)
{
    const uint64_t base2 = base * base, base3 = base2 * base, base4 = base2 * base2;
    uint64_t sum = 0, *sums, *mixed;
    Py_ssize_t i;
    grams->length = length;
    grams->base = base;
    if (!(sums = grams->sums = memory_for(length + 2, 2 * sizeof *sums)))
        return 0;
    mix_points(mixed = grams->at = sums + length + 1, at, length, offset);
    sums[0] = mixed[length] = mixed[length + 1] = mixed[length + 2] = 0;
    for (i = 0; i < length; i += 4) { /* four at once: a quarter of the chain. Those too many spoil the beginning of mixed */
        uint64_t one = mixed[i], two = one * base + mixed[i + 1], three = two * base + mixed[i + 2], last = mixed[i + 3];
        sums[i + 1] = sum * base + one;
        sums[i + 2] = sum * base2 + two;
        sums[i + 3] = sum * base3 + three;
        sums[i + 4] = sum = sum * base4 + (three * base + last);
    }
    return 1;
}

IN_CLONES static void mix_sums(uint64_t *to, const uint64_t *sums, Py_ssize_t count, Py_ssize_t n, uint64_t power)
{
    Py_ssize_t i;
    for (i = 0; i < count; i++)
        to[i] = mix(sums[i + n] - sums[i] * power);
}

/* Hashes every n-gram, in order: one if there are fewer characters than n, none of none. */
static void hash_n_grams(Grams *grams, Py_ssize_t n)
{
    uint64_t power = 1;
    Py_ssize_t i;
    n = n < grams->length ? n : grams->length;
    for (i = 0; i < n; i++)
        power *= grams->base;
    grams->count = grams->length ? grams->length - n + 1 : 0;
    mix_sums(grams->at, grams->sums, grams->count, n, power);
}

/* The hash of a text as one n-gram. */
static uint64_t gram_of(const Py_UCS4 *at, Py_ssize_t count, uint64_t offset, uint64_t base)
{
    uint64_t sum = 0;
    Py_ssize_t i;
    for (i = 0; i < count; i++)
        sum = sum * base + mix(at[i] ^ offset);
    return mix(sum);
}

/* Counts the different hashes, each looked for near a place of its own; -1 with an error. If somebody chose a text whose
 * hashes want one place, they are sorted, and their order is lost. */
static Py_ssize_t different(const Grams *grams)
{
    uint64_t *values = grams->at, *before = values - 1; /* a sum stands there */
    uint32_t *table; /* one more than the place of a hash, or 0 */
    size_t mask = 1, tries = 0;
    Py_ssize_t i, found = 0, count = grams->count;
    int shift = 64;
    for (; mask < 4 * (size_t)count; mask <<= 1)
        shift--;
    if (!(table = PyMem_Calloc(mask--, sizeof *table))) {
        PyErr_NoMemory();
        return -1;
    }
    for (i = 0; i < count && tries <= 16 * (size_t)count; i++) {
        size_t place = (size_t)(values[i] >> shift);
        uint32_t held;
        for (; (held = table[place]) && before[held] != values[i]; tries++)
            place = (place + 1) & mask;
        found += !held;
        if (!held) /* of most */
            table[place] = (uint32_t)i + 1;
    }
    PyMem_Free(table);
    return i < count ? sort_different(values, count) : found;
}

#define MOST_BINS 4096
#define MOST_KEYS 128
#define STEP UINT64_C(0x632BE59BD9B4E019)

/* See ``sketch``. */
static PyObject *sketch_of(const Grams *grams, Py_ssize_t bins, Py_ssize_t bits)
{
    uint64_t minima[MOST_BINS], mixed[MOST_BINS];
    uint8_t packed[MOST_BINS] = {0};
    Py_ssize_t i, at, size = bins * bits / 8;
    int shift = 0;
    if (!grams->count)
        return PyBytes_FromStringAndSize((const char *)packed, size);
    while (((Py_ssize_t)1 << shift) < bins)
        shift++;
    for (i = 0; i < bins; i++)
        minima[i] = UINT64_MAX; /* which no value is, as values are shifted */
    for (i = 0; i < grams->count; i++) {
        size_t bin = (size_t)(grams->at[i] & (uint64_t)(bins - 1));
        uint64_t value = grams->at[i] >> shift, least = minima[bin];
        minima[bin] = value < least ? value : least;
    }
    mix_sums(mixed, minima, bins, 0, 0); /* all at once */
    for (at = 0, i = 0; at < size; at++) {
        for (shift = 0; shift < 8; shift += (int)bits, i++) {
            size_t source = (size_t)i;
            uint64_t drawn = (uint64_t)i * STEP;
            while (minima[source] == UINT64_MAX)
                source = (size_t)(mix(++drawn) & (uint64_t)(bins - 1));
            packed[at] |= (uint8_t)((mixed[source] & ((UINT64_C(1) << bits) - 1)) << shift);
        }
    }
    return PyBytes_FromStringAndSize((const char *)packed, size);
}

/* See ``smallest``. */
static PyObject *smallest_of(const Grams *grams, Py_ssize_t most)
{
    uint64_t few[MOST_KEYS], limit = UINT64_MAX;
    Py_ssize_t i, held = 0;
    for (i = 0; i < grams->count; i++)
        if (grams->at[i] <= limit) {
            held = keep(few, held, most, &grams->at[i], sizeof *few, compare_words);
            limit = held < most ? UINT64_MAX : few[held - 1];
        }
    return list_of(number_item, few, sizeof *few, held);
}
