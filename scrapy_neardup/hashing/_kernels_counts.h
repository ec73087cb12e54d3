/* Counts of sentences: see state/sentence_counts.py and state/boilerplate.py. */

#define WAYS 8
#define MOST_BUCKETS 0x10000

/* The memory of ``Recurrence``. */
typedef struct {
    uint8_t *newest, *repeats, *dirty;
    uint32_t *sentences, *sites;
    uint32_t buckets;
    Py_ssize_t in_block; /* buckets */
} Counted;

/* The parts of a table in one piece of memory; 0 with an error. */
static int read_table(PyObject *memory, Py_ssize_t in_block, Counted *table)
{
    int is_right = 1 <= in_block && in_block <= MOST_BUCKETS;
    Py_ssize_t all = PyByteArray_Size(memory), size = is_right ? in_block * (9 * WAYS + 1) + 1 : 1, blocks = all / size, ways;
    is_right = is_right && blocks && blocks * size == all && blocks <= MOST_BUCKETS / in_block &&
               !(blocks * in_block & (blocks * in_block - 1));
    if (!is_so(is_right, PyExc_ValueError, "the number of buckets must be a power of two, as many in every block"))
        return 0;
    table->in_block = in_block;
    table->buckets = (uint32_t)(blocks * in_block);
    ways = (Py_ssize_t)table->buckets * WAYS;
    table->sentences = (uint32_t *)(void *)PyByteArray_AsString(memory);
    table->sites = table->sentences + ways;
    table->repeats = (uint8_t *)(table->sites + ways);
    table->newest = table->repeats + ways;
    table->dirty = table->newest + table->buckets;
    return 1;
}

/* The sentences of a page in bytes; NULL with an error. */
static const uint32_t *sentences_in(PyObject *bytes, Py_ssize_t *count)
{
    Py_ssize_t size = PyBytes_Size(bytes);
    *count = size / 4;
    return is_so(size % 4 == 0, PyExc_ValueError, "the sentences have another size than is needed")
               ? (const uint32_t *)(const void *)PyBytes_AsString(bytes) /* aligned as the memory of every object */
               : NULL;
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

/* The number of sites of a sentence, with its repeats that of pages. */
static Py_ssize_t stood_on(const Counted *table, uint32_t sentence, int with_repeats)
{
    Py_ssize_t slot = slot_of(table, sentence), count = slot >= 0 && with_repeats ? table->repeats[slot] : 0;
    uint32_t sites = slot >= 0 ? table->sites[slot] : 0;
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

/* Sentences, buckets of a block, hash of the site, offset, base, and of each table the least number and the memory. */
KERNEL(are_common)
{
    Counted here, everywhere;
    PyObject *bytes, *of_site, *of_all, *found;
    const uint32_t *asked;
    Site site;
    Py_ssize_t i, count, in_block, pages, sites;
    if (!PyArg_ParseTuple(args, "SO&KKKO&YO&Y", &bytes, as_size, &in_block, &site.name, &site.offset, &site.base, as_size,
                          &pages, &of_site, as_size, &sites, &of_all) ||
        !read_table(of_site, in_block, &here) || !read_table(of_all, in_block, &everywhere) ||
        !(asked = sentences_in(bytes, &count)) || !(found = PyByteArray_FromStringAndSize(NULL, count)))
        return NULL;
    for (i = 0; i < count; i++) {
        SOON(&here.sentences[(on_site(&site, asked[i]) & (here.buckets - 1)) * WAYS]);
        SOON(&everywhere.sentences[(asked[i] & (everywhere.buckets - 1)) * WAYS]);
    }
    for (i = 0; i < count; i++)
        PyByteArray_AsString(found)[i] = stood_on(&here, on_site(&site, asked[i]), 1) >= pages ||
                                         stood_on(&everywhere, asked[i], 0) >= sites;
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

/* Sorts and counts the sentences of a page: see ``Recurrence.note``. ``is_known``: as many bytes. */
static void count_in(const Counted *table, uint32_t *noted, Py_ssize_t count, uint32_t bit, uint8_t *is_known)
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
    qsort(noted, (size_t)count, sizeof *noted, compare_halves);
    for (i = 0; i < count; i++) { /* the known ones are counted first */
        Py_ssize_t slot = slot_of(table, noted[i]);
        int is_twice = i && noted[i] == noted[i - 1];
        table->dirty[(noted[i] & (table->buckets - 1)) / (uint32_t)table->in_block] = 1;
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

/* Sentences, the page's number if it has one and it is the last of them, buckets of a block, hash of the site, offset, base,
 * memory of the site's table, bit of the site or None, memory of the table of all sites. */
KERNEL(count_page)
{
    Counted here, everywhere;
    PyObject *bytes, *of_site, *bit, *of_all;
    const uint32_t *asked;
    uint32_t *noted, bits = 0;
    Site site;
    Py_ssize_t i, count, in_block;
    int has_number, is_new;
    if (!PyArg_ParseTuple(args, "SpO&KKKYOY", &bytes, &has_number, as_size, &in_block, &site.name, &site.offset, &site.base,
                          &of_site, &bit, &of_all) ||
        !read_table(of_site, in_block, &here) || !read_table(of_all, in_block, &everywhere))
        return NULL;
    if (bit != Py_None)
        bits = UINT32_C(1) << (PyLong_AsUnsignedLongLongMask(bit) & 31);
    if (PyErr_Occurred() || !(asked = sentences_in(bytes, &count)) || !(noted = memory_for(count + 1, sizeof *noted + 1)))
        return NULL;
    is_new = !(has_number && count && slot_of(&here, on_site(&site, asked[count - 1])) >= 0);
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
