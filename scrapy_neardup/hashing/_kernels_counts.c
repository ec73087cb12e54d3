/* Counts of sentences: see state/sentence_counts.py and state/boilerplate.py. */
#include "_kernels.h"

#define WAYS 8
#define MOST_BUCKETS 0x10000

/* Arrays that are passed in. */
typedef struct {
    Py_buffer views[3];
    int opened;
} Arrays;

static void close_all(Arrays *arrays)
{
    while (arrays->opened)
        PyBuffer_Release(&arrays->views[--arrays->opened]);
}

/* The beginning of an array of items of 4 bytes; NULL with an error. */
static void *open_one(Arrays *arrays, PyObject *array, int flags)
{
    Py_buffer *view = &arrays->views[arrays->opened];
    if (PyObject_GetBuffer(array, view, flags) < 0)
        return NULL;
    arrays->opened++;
    if (view->len % 4 || (view->len && (uintptr_t)view->buf % 4)) { /* an empty one needs no alignment */
        PyErr_SetString(PyExc_ValueError, "an array has another size than is needed");
        return NULL;
    }
    return view->buf;
}

/* The memory of ``Recurrence``. */
typedef struct {
    uint8_t *newest, *repeats, *dirty;
    uint32_t *sentences, *sites;
    uint32_t buckets;
} Counted;

/* The parts of a table in one piece of memory; 0, or -1 with an error. */
static int table_of(Arrays *arrays, PyObject *memory, Py_ssize_t in_block, int flags, Counted *table)
{
    Py_ssize_t size = in_block * (9 * WAYS + 1) + 1, blocks, ways;
    uint8_t *at = open_one(arrays, memory, flags);
    if (!at)
        return -1;
    blocks = arrays->views[arrays->opened - 1].len / size;
    table->buckets = (uint32_t)(blocks * in_block);
    if (!blocks || blocks > MOST_BUCKETS / in_block || blocks * size != arrays->views[arrays->opened - 1].len ||
        table->buckets & (table->buckets - 1)) {
        PyErr_SetString(PyExc_ValueError, "the number of buckets must be a power of two, as many in every block");
        return -1;
    }
    ways = (Py_ssize_t)table->buckets * WAYS;
    table->sentences = (uint32_t *)(void *)at;
    table->sites = table->sentences + ways;
    table->repeats = (uint8_t *)(table->sites + ways);
    table->newest = table->repeats + ways;
    table->dirty = table->newest + table->buckets;
    return 0;
}

/* The slot of a sentence; -1 if it has none. */
static Py_ssize_t slot_of(const Counted *table, uint32_t sentence)
{
    Py_ssize_t slot = (Py_ssize_t)(sentence & (table->buckets - 1)) * WAYS, end = slot + WAYS;
    for (; slot < end; slot++)
        if (table->sentences[slot] == sentence)
            return slot;
    return -1;
}

static unsigned ones_of(uint32_t bits)
{
    bits -= (bits >> 1) & 0x55555555;
    bits = (bits & 0x33333333) + ((bits >> 2) & 0x33333333);
    return (((bits + (bits >> 4)) & 0x0F0F0F0F) * 0x01010101) >> 24;
}

/* The number of sites of a sentence, with its repeats that of pages. */
static Py_ssize_t stood_on(const Counted *table, uint32_t sentence, int with_repeats)
{
    Py_ssize_t slot = slot_of(table, sentence);
    return slot < 0 ? 0 : (Py_ssize_t)ones_of(table->sites[slot]) + (with_repeats ? table->repeats[slot] : 0);
}

/* The upper half of the hash of a number. */
static uint32_t upper_half(uint32_t number, uint64_t with, uint64_t offset, uint64_t base)
{
    return (uint32_t)(mix(mix(number ^ with ^ offset) * base) >> 32);
}

KERNEL(are_common)
{
    Arrays arrays;
    Counted here, everywhere;
    const uint32_t *asked;
    uint64_t with, offset, base;
    Py_ssize_t i, in_block, pages, sites;
    PyObject *found = NULL;
    arrays.opened = 0;
    if (!has(given, 9) || size_of(args[1], 1, MOST_BUCKETS, &in_block) < 0 || word_of(args[2], &with) < 0 ||
        word_of(args[3], &offset) < 0 || word_of(args[4], &base) < 0 || size_of(args[5], 0, 1024, &pages) < 0 ||
        size_of(args[7], 0, 1024, &sites) < 0)
        return NULL;
    asked = open_one(&arrays, args[0], PyBUF_SIMPLE);
    if (asked && table_of(&arrays, args[6], in_block, PyBUF_SIMPLE, &here) == 0 &&
        table_of(&arrays, args[8], in_block, PyBUF_SIMPLE, &everywhere) == 0)
        found = PyByteArray_FromStringAndSize(NULL, arrays.views[0].len / 4);
    if (found) {
        char *common = PyByteArray_AsString(found);
        for (i = 0; i < arrays.views[0].len / 4; i++) {
            SOON(&here.sentences[(upper_half(asked[i], with, offset, base) & (here.buckets - 1)) * WAYS]);
            SOON(&everywhere.sentences[(asked[i] & (everywhere.buckets - 1)) * WAYS]);
        }
        for (i = 0; i < arrays.views[0].len / 4; i++)
            common[i] = stood_on(&here, upper_half(asked[i], with, offset, base), 1) >= pages ||
                        stood_on(&everywhere, asked[i], 0) >= sites;
    }
    close_all(&arrays);
    return found;
}

/* See ``_admit``: gives a new sentence the next way without repeats; without one takes 1 off all counts and returns 0. */
static int admitted(const Counted *table, uint32_t sentence, uint32_t bit, Py_ssize_t bucket)
{
    uint8_t *counts = table->repeats + bucket * WAYS;
    int turn, way = 0, best = -1;
    for (turn = 1; turn <= WAYS && best != 0; turn++) { /* the way that was filled last comes last */
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

#define FEW 64 /* numbers that insertion sorts faster */

static void sort_halves(uint32_t *numbers, Py_ssize_t count)
{
    Py_ssize_t i, place;
    if (count > FEW) {
        qsort(numbers, (size_t)count, sizeof *numbers, compare_halves);
        return;
    }
    for (i = 1; i < count; i++) {
        uint32_t number = numbers[i];
        for (place = i; place && numbers[place - 1] > number; place--)
            numbers[place] = numbers[place - 1];
        numbers[place] = number;
    }
}

/* Sorts and counts the sentences of a page: see ``Recurrence.note``. ``is_known``: as many bytes. */
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
    /* The last of several gets a way first. A page takes at most 1 off each count of a bucket. */
    for (i = count; i-- > 0;) {
        Py_ssize_t bucket = (Py_ssize_t)(noted[i] & (table->buckets - 1));
        if (is_known[i] || full[bucket >> 3] >> (bucket & 7) & 1)
            continue;
        if (!admitted(table, noted[i], bit, bucket))
            full[bucket >> 3] |= (uint8_t)(1 << (bucket & 7));
    }
}

KERNEL(count_page)
{
    Arrays arrays;
    Counted here, everywhere;
    const uint32_t *sentences;
    uint32_t *asked = NULL, *noted;
    uint64_t with, offset, base, page = 0;
    Py_ssize_t i, count, in_block, bit = -1;
    PyObject *found = NULL;
    int has_page;
    arrays.opened = 0;
    if (!has(given, 9) || size_of(args[1], 1, MOST_BUCKETS, &in_block) < 0 || word_of(args[2], &with) < 0 ||
        word_of(args[3], &offset) < 0 || word_of(args[4], &base) < 0 ||
        (args[6] != Py_None && size_of(args[6], 0, 31, &bit) < 0) ||
        ((has_page = args[8] != Py_None) && word_of(args[8], &page) < 0))
        return NULL;
    if (page > UINT32_MAX) {
        PyErr_SetString(PyExc_OverflowError, "a number has more than 32 bits");
        return NULL;
    }
    sentences = open_one(&arrays, args[0], PyBUF_SIMPLE);
    if (!sentences || table_of(&arrays, args[5], in_block, PyBUF_WRITABLE, &here) < 0 ||
        table_of(&arrays, args[7], in_block, PyBUF_WRITABLE, &everywhere) < 0)
        goto done;
    if (has_page && slot_of(&here, upper_half((uint32_t)page, with, offset, base)) >= 0) {
        found = Py_NewRef(Py_False);
        goto done;
    }
    count = arrays.views[0].len / 4;
    asked = PyMem_Malloc((size_t)(count + 2) * (2 * sizeof *asked + 1)); /* and behind them a byte for each */
    if (!asked) {
        PyErr_NoMemory();
        goto done;
    }
    memcpy(asked, sentences, (size_t)count * sizeof *asked);
    if (has_page)
        asked[count++] = (uint32_t)page;
    noted = asked + count;
    for (i = 0; i < count; i++)
        noted[i] = upper_half(asked[i], with, offset, base);
    noted[count] = upper_half(0, with, offset, base); /* one for all pages */
    count_in(&here, noted, count + 1, 1, in_block, (uint8_t *)(noted + count + 1));
    if (bit >= 0)
        count_in(&everywhere, asked, count, UINT32_C(1) << bit, in_block, (uint8_t *)(noted + count + 1));
    found = Py_NewRef(Py_True);
done:
    PyMem_Free(asked);
    close_all(&arrays);
    return found;
}
