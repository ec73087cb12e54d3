/* Texts: one spelling, letters, sentences, and what stands in them. */
#include "_kernels.h"

static const char *TABLE = "scrapy_neardup characters";

static void forget(PyObject *capsule)
{
    Table *table = PyCapsule_GetPointer(capsule, TABLE);
    int i;
    for (i = 0; i < BLOCKS; i++)
        PyMem_Free(table->blocks[i]);
    Py_DECREF(table->ask);
    PyMem_Free(table);
}

KERNEL(characters)
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

Table *opened(PyObject *const *args, Py_ssize_t given, Points *points)
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
KERNEL(folded)
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

KERNEL(letters)
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

KERNEL(cut)
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
KERNEL(read_text)
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

KERNEL(has_unspaced)
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
KERNEL(are_unspaced)
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
KERNEL(shingled)
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
KERNEL(has_prose)
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

KERNEL(holds_any)
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
KERNEL(which_stand)
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
