/* Counts of sentences: see state/boilerplate.py. */

#define WAYS 8
#define MOST_BUCKETS 0x10000

/* A bucket of ``Recurrence``: entries in the order in which they are replaced, behind them empty ways without sites. */
typedef struct {
    uint32_t sentences[WAYS], sites[WAYS];
    uint8_t repeats[WAYS];
    uint32_t is_changed;
} Bucket;

typedef struct {
    Bucket *buckets;
    uint32_t mask;
} Counted;

/* The buckets in the memory of a table; 0 with an error. */
static int read_table(PyObject *memory, Counted *table)
{
    Py_ssize_t size = PyByteArray_Size(memory), buckets = size / (Py_ssize_t)sizeof(Bucket);
    table->buckets = (Bucket *)(void *)PyByteArray_AsString(memory);
    table->mask = (uint32_t)buckets - 1;
    return is_so(0 < buckets && buckets <= MOST_BUCKETS && !(buckets & (buckets - 1)) &&
                     buckets * (Py_ssize_t)sizeof(Bucket) == size,
                 PyExc_ValueError, "the number of buckets must be a power of two");
}

static Bucket *bucket_of(const Counted *table, uint32_t sentence)
{
    return &table->buckets[sentence & table->mask];
}

/* A bucket lies in two lines of a cache. */
#define BOTH_SOON(bucket) (SOON((bucket)->sentences), SOON((bucket)->repeats))

/* The way of a sentence; -1 if it has none. */
static int way_of(const Bucket *bucket, uint32_t sentence)
{
    int way, found = -1;
    for (way = 0; way < WAYS; way++) /* always to the end: the processor cannot foresee another one */
        found = bucket->sentences[way] == sentence && bucket->sites[way] ? way : found;
    return found;
}

/* The number of sites of a sentence, with its repeats that of pages. */
static Py_ssize_t stood_on(const Counted *table, uint32_t sentence, int with_repeats)
{
    const Bucket *bucket = bucket_of(table, sentence);
    int way = way_of(bucket, sentence);
    Py_ssize_t count = way >= 0 && with_repeats ? bucket->repeats[way] : 0;
    uint32_t sites = way >= 0 ? bucket->sites[way] : 0;
    for (; sites; sites &= sites - 1)
        count++;
    return count;
}

/* A site: the hash of its name, and what numbers are hashed with. */
typedef struct {
    uint64_t name, offset, base;
} Site;

/* A sentence as the table of its site knows it. */
static uint32_t on_site(const Site *site, uint32_t sentence)
{
    return (uint32_t)(mix(mix(sentence ^ site->name ^ site->offset) * site->base) >> 32);
}

KERNEL(are_common)
{
    Counted here, everywhere;
    PyObject *of_site, *of_all, *found;
    const uint32_t *asked; /* the bytes of an object are aligned */
    Site site;
    Py_ssize_t i, count, pages, sites;
    if (!PyArg_ParseTuple(args, "y#KKKO&YO&Y", &asked, &count, &site.name, &site.offset, &site.base, as_size, &pages,
                          &of_site, as_size, &sites, &of_all) ||
        !read_table(of_site, &here) || !read_table(of_all, &everywhere) ||
        !(found = PyByteArray_FromStringAndSize(NULL, count /= 4)))
        return NULL;
    for (i = 0; i < count; i++) {
        BOTH_SOON(bucket_of(&here, on_site(&site, asked[i])));
        BOTH_SOON(bucket_of(&everywhere, asked[i]));
    }
    for (i = 0; i < count; i++)
        PyByteArray_AsString(found)[i] = stood_on(&here, on_site(&site, asked[i]), 1) >= pages ||
                                         stood_on(&everywhere, asked[i], 0) >= sites;
    return found;
}

/* Gives a new sentence an empty way, or the place of the first one without repeats, which is then behind the others.
 * If there is none, takes 1 off all counts and returns 0. */
static int is_admitted(Bucket *bucket, uint32_t sentence, uint32_t bit)
{
    int count = 0, first = 0, to;
    for (to = 0; to < WAYS; to++)
        count += bucket->sites[to] != 0;
    if (count == WAYS) {
        const Bucket old = *bucket;
        while (first < WAYS && old.repeats[first])
            first++;
        if (first == WAYS) {
            for (to = 0; to < WAYS; to++)
                bucket->repeats[to]--;
            return 0;
        }
        count--;
        for (to = 0; to < count; to++) {
            int from = (first + 1 + to) % WAYS;
            bucket->sentences[to] = old.sentences[from];
            bucket->sites[to] = old.sites[from];
            bucket->repeats[to] = old.repeats[from];
        }
    }
    bucket->sentences[count] = sentence;
    bucket->sites[count] = bit;
    bucket->repeats[count] = 0;
    return 1;
}

/* Counts the sentences of a page, whose order may change: see ``Recurrence.note``. ``is_known``: as many bytes. */
static void count_in(const Counted *table, uint32_t *noted, Py_ssize_t count, uint32_t bit, uint8_t *is_known)
{
    uint8_t full[MOST_BUCKETS / 8] = {0};
    Py_ssize_t i, shared = 0;
    for (i = 0; i < count; i++) {
        uint32_t at = noted[i] & table->mask;
        BOTH_SOON(&table->buckets[at]);
        shared |= full[at >> 3] >> (at & 7) & 1;
        full[at >> 3] |= (uint8_t)(1 << (at & 7));
    }
    memset(full, 0, table->mask / 8 + 1);
    if (shared) /* else their order does not matter */
        qsort(noted, (size_t)count, sizeof *noted, compare_halves);
    for (i = 0; i < count; i++) { /* the known ones are counted first */
        Bucket *bucket = bucket_of(table, noted[i]);
        int way = way_of(bucket, noted[i]), is_twice = i && noted[i] == noted[i - 1];
        bucket->is_changed = 1;
        is_known[i] = way >= 0 || is_twice;
        if (way < 0 || is_twice)
            continue;
        bucket->repeats[way] += bucket->sites[way] & bit && bucket->repeats[way] < 255;
        bucket->sites[way] |= bit;
    }
    /* The last of several gets a way first. A page takes at most 1 off each count of a bucket. */
    for (i = count; i-- > 0;) {
        uint32_t at = noted[i] & table->mask;
        if (is_known[i] || full[at >> 3] >> (at & 7) & 1)
            continue;
        if (!is_admitted(&table->buckets[at], noted[i], bit))
            full[at >> 3] |= (uint8_t)(1 << (at & 7));
    }
}

KERNEL(count_page)
{
    Counted here, everywhere;
    PyObject *of_site, *bit, *of_all;
    const uint32_t *asked;
    uint32_t *noted, bits = 0;
    Site site;
    Py_ssize_t i, count;
    int has_number, is_new;
    if (!PyArg_ParseTuple(args, "y#pKKKYOY", &asked, &count, &has_number, &site.name, &site.offset, &site.base, &of_site, &bit,
                          &of_all) ||
        !read_table(of_site, &here) || !read_table(of_all, &everywhere))
        return NULL;
    if (bit != Py_None)
        bits = UINT32_C(1) << (PyLong_AsUnsignedLongLongMask(bit) & 31);
    if (PyErr_Occurred() || !(noted = memory_for((count /= 4) + 1, sizeof *noted + 1)))
        return NULL;
    is_new = !(has_number && count && stood_on(&here, on_site(&site, asked[count - 1]), 0));
    if (is_new) {
        for (i = 0; i < count; i++)
            noted[i] = on_site(&site, asked[i]);
        noted[count] = on_site(&site, 0); /* one for all pages */
        count_in(&here, noted, count + 1, 1, (uint8_t *)(noted + count + 1));
    }
    if (is_new && bits) {
        memcpy(noted, asked, (size_t)count * sizeof *noted);
        count_in(&everywhere, noted, count, bits, (uint8_t *)(noted + count + 1));
    }
    PyMem_Free(noted);
    return PyBool_FromLong(is_new);
}
