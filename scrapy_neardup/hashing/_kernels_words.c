/* Weights of words: see text/lexicon.py.
 *
 * A word is known by a hash of its bytes: of jieba's 260,000 words no two have one hash. The table takes 8 MB. In a dict of
 * 40 MB, with each word and weight elsewhere in memory, a look-up takes four times as long.
 */
#include "_kernels.h"

typedef struct {
    uint64_t word; /* 0 in an empty slot */
    double weight;
} Slot;

typedef struct {
    Slot *slots;
    size_t mask;
} Weights;

static const char *WEIGHTS = "scrapy_neardup weights";

static uint64_t hash_bytes(const char *at, Py_ssize_t count)
{
    uint64_t hash = (uint64_t)count;
    while (count--)
        hash = hash * UINT64_C(0x9E3779B97F4A7C15) + (uint8_t)*at++;
    return mix(hash) | 1;
}

/* The slot of a word, or the empty one where it could be. */
static Slot *slot_for(const Weights *weights, uint64_t word)
{
    size_t place = (size_t)(word >> 20) & weights->mask;
    while (weights->slots[place].word && weights->slots[place].word != word)
        place = (place + 1) & weights->mask;
    return &weights->slots[place];
}

static void forget(PyObject *capsule)
{
    Weights *weights = PyCapsule_GetPointer(capsule, WEIGHTS);
    PyMem_Free(weights->slots);
    PyMem_Free(weights);
}

/* Reads lines of a word, a space and its weight, and copies the weights; 0, or -1 with an error. */
static int read_lines(Weights *weights, const char *at, const char *end, double *copies)
{
    while (at < end) {
        const char *last = memchr(at, '\n', (size_t)(end - at)), *space;
        char *stop = NULL;
        Slot *slot;
        double weight;
        last = last ? last : end;
        for (space = last; space > at && *space != ' '; space--)
            ;
        weight = PyOS_string_to_double(space + 1, &stop, NULL); /* bytes of Python end in a zero */
        if (stop != last) {
            if (!PyErr_Occurred())
                PyErr_SetString(PyExc_ValueError, "a line is no word with a weight");
            return -1;
        }
        slot = slot_for(weights, hash_bytes(at, space - at));
        slot->word = hash_bytes(at, space - at);
        slot->weight = *copies++ = weight;
        at = last + 1;
    }
    return 0;
}

KERNEL(weights)
{
    Weights *made;
    PyObject *capsule, *copies = NULL, *found = NULL;
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
    capsule = made && made->slots ? PyCapsule_New(made, WEIGHTS, forget) : NULL;
    if (!capsule) {
        if (made)
            PyMem_Free(made->slots);
        PyMem_Free(made);
        return PyErr_Occurred() ? NULL : PyErr_NoMemory();
    }
    made->mask = size - 1;
    copies = PyByteArray_FromStringAndSize(NULL, lines * (Py_ssize_t)sizeof(double));
    if (copies && read_lines(made, text, text + length, (double *)(void *)PyByteArray_AsString(copies)) == 0)
        found = PyTuple_Pack(2, capsule, copies);
    Py_XDECREF(copies);
    Py_DECREF(capsule);
    return found;
}

typedef struct {
    uint64_t hash;
    double weight;
    PyObject *word; /* borrowed */
} Weighted;

/* Hashes the words of a list, and has their slots fetched meanwhile; 0, or -1 with an error. */
static int read_words(PyObject *list, const Weights *weights, Weighted *words)
{
    Py_ssize_t i, k;
    for (i = 0; i < PyList_Size(list); i++) {
        Points points;
        uint8_t bytes[4 * SMALL], *to = bytes;
        words[i].word = PyList_GetItem(list, i);
        if (points_of(words[i].word, &points) < 0)
            return -1;
        for (k = 0; k < points.count && k < SMALL; k++)
            to = encode(points.at[k], to);
        release(&points);
        words[i].hash = hash_bytes((const char *)bytes, to - bytes);
        SOON(&weights->slots[(size_t)(words[i].hash >> 20) & weights->mask]);
    }
    return 0;
}

/* Puts a word among the first ones: the smallest weight first, equals in order of characters; returns their number. */
static Py_ssize_t rank(Weighted *best, Py_ssize_t held, Py_ssize_t most, const Weighted *one)
{
    Py_ssize_t place = held;
    while (place && (one->weight < best[place - 1].weight || (one->weight == best[place - 1].weight &&
                                                              PyUnicode_Compare(one->word, best[place - 1].word) < 0)))
        place--;
    if (place == most)
        return held;
    held += held < most;
    memmove(best + place + 1, best + place, (size_t)(held - 1 - place) * sizeof *best);
    best[place] = *one;
    return held;
}

KERNEL(core_words)
{
    Weighted *words, *best;
    Py_ssize_t i, most, count, held = 0;
    PyObject *list = NULL;
    const Weights *weights;
    double unknown;
    if (!has(given, 4) || !is_list(args[0]) || size_of(args[1], 0, PY_SSIZE_T_MAX, &most) < 0 ||
        !(weights = PyCapsule_GetPointer(args[2], WEIGHTS)))
        return NULL;
    unknown = PyFloat_AsDouble(args[3]);
    count = PyList_Size(args[0]);
    words = PyMem_Malloc((size_t)count * 2 * sizeof *words);
    if (!words)
        return PyErr_NoMemory();
    best = words + count;
    if (!PyErr_Occurred() && read_words(args[0], weights, words) == 0) {
        qsort(words, (size_t)count, sizeof *words, compare_words); /* by hash, which comes first */
        for (i = 0; i < count; i++) {
            const Slot *slot = slot_for(weights, words[i].hash);
            double sum = i && words[i].hash == words[i - 1].hash ? words[i - 1].weight : 0.0;
            words[i].weight = sum - (slot->word ? slot->weight : unknown);
            if (i + 1 == count || words[i].hash != words[i + 1].hash)
                held = rank(best, held, most, &words[i]);
        }
        list = PyList_New(held);
        for (i = 0; list && i < held; i++)
            if (put(list, i, Py_NewRef(best[i].word)) < 0)
                Py_CLEAR(list);
    }
    PyMem_Free(words);
    return list;
}
