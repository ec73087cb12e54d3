/* Words: which are longer, which weigh the most. */
#include "_kernels.h"

#define MOST_CORE 64

typedef struct {
    double weight;
    PyObject *word;  /* borrowed */
    uint64_t number; /* 0 where it has none */
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
KERNEL(longer)
{
    PyObject *list;
    Py_ssize_t i, length;
    if (!has(given, 2) || size_of(args[1], 0, PY_SSIZE_T_MAX, &length) < 0 || !is_list(args[0]))
        return NULL;
    list = PyList_New(0);
    for (i = 0; list && i < PyList_Size(args[0]); i++) {
        PyObject *word = PyList_GetItem(args[0], i);
        if (!is_word(word) || (PyUnicode_GetLength(word) > length && PyList_Append(list, word) < 0))
            Py_CLEAR(list);
    }
    return list;
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
KERNEL(weights)
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
static double weight_of(const Weights *weights, const Weighted *one, double unknown)
{
    PyObject *told;
    if (one->number) {
        const Slot *slot = slot_for(weights, one->number);
        return slot->word ? slot->weight : unknown;
    }
    told = PyDict_GetItemWithError(weights->all, one->word);
    if (told)
        return PyFloat_AsDouble(told);
    return PyErr_Occurred() ? -1.0 : unknown;
}

/* By number; those that have none in the order of their characters. */
static int compared(const Weighted *one, const Weighted *other)
{
    if (one->number || other->number)
        return (one->number > other->number) - (one->number < other->number);
    return PyUnicode_Compare(one->word, other->word);
}

static int in_order(const void *one, const void *other)
{
    return compared(one, other);
}

#define FEW 64 /* words that are put in order sooner one by one */

/* Puts the same words side by side. */
static void sort_words(Weighted *words, Py_ssize_t count)
{
    Py_ssize_t i, place;
    if (count > FEW) {
        qsort(words, (size_t)count, sizeof *words, in_order);
        return;
    }
    for (i = 1; i < count; i++) {
        Weighted word = words[i];
        for (place = i; place && compared(&words[place - 1], &word) > 0; place--)
            words[place] = words[place - 1];
        words[place] = word;
    }
}

/* Reads the words of a list, and has their weights fetched meanwhile; 0, or -1 with an error. */
static int read_words(PyObject *list, const Weights *weights, Weighted *words)
{
    Py_ssize_t i;
    for (i = 0; i < PyList_Size(list); i++) {
        words[i].word = PyList_GetItem(list, i);
        words[i].weight = 0.0;
        if (!is_word(words[i].word))
            return -1;
        words[i].number = number_of(words[i].word);
        SOON(&weights->slots[(size_t)mix(words[i].number) & weights->mask]);
    }
    return PyErr_Occurred() ? -1 : 0;
}

/* See ``core_words``: words, how many, their weights, and the weight of all others. */
KERNEL(core_words)
{
    Weighted best[MOST_CORE], *words;
    Py_ssize_t i, most, count, held = 0;
    PyObject *list = NULL;
    const Weights *weights;
    double unknown;
    if (!has(given, 4) || size_of(args[1], 0, MOST_CORE, &most) < 0 || !is_list(args[0]) ||
        !(weights = PyCapsule_GetPointer(args[2], WEIGHTS)))
        return NULL;
    unknown = PyFloat_AsDouble(args[3]);
    if (unknown == -1.0 && PyErr_Occurred())
        return NULL;
    count = PyList_Size(args[0]);
    words = PyMem_Malloc((size_t)count * sizeof *words);
    if (!words)
        return PyErr_NoMemory();
    if (read_words(args[0], weights, words) < 0)
        goto done;
    sort_words(words, count);
    for (i = 0; i < count; i++) {
        words[i].weight -= weight_of(weights, &words[i], unknown);
        if (i + 1 < count && !compared(&words[i], &words[i + 1]))
            words[i + 1].weight = words[i].weight; /* what it has so far */
        else
            held = ranked(best, held, most, &words[i]);
    }
    list = PyErr_Occurred() ? NULL : list_of(best, held);
done:
    PyMem_Free(words);
    return list;
}
