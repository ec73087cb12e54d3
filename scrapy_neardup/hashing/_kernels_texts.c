/* Characters: normal spelling, letters, and strings in a text. */
#include "_kernels.h"

static const char *TABLE = "scrapy_neardup characters";

static void forget(PyObject *capsule)
{
    Table *table = PyCapsule_GetPointer(capsule, TABLE);
    while (table->count)
        PyMem_Free(table->own[--table->count]);
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

/* A block with these entries, which other characters may have already; NULL with an error. */
static uint32_t *block_of(Table *table, const char *data)
{
    const size_t size = IN_BLOCK * sizeof(uint32_t);
    uint32_t *block;
    int i;
    for (i = 0; i < table->count; i++)
        if (!memcmp(table->own[i], data, size))
            return table->own[i];
    block = PyMem_Malloc(size);
    if (block)
        table->own[table->count++] = memcpy(block, data, size);
    else
        PyErr_NoMemory();
    return block;
}

static int ask_for(Table *table, Py_UCS4 number)
{
    PyObject *block = PyObject_CallFunction(table->ask, "I", (unsigned int)number);
    char *data;
    Py_ssize_t size;
    int failed = -1;
    if (block && PyBytes_AsStringAndSize(block, &data, &size) == 0) {
        if (size != IN_BLOCK * (Py_ssize_t)sizeof(uint32_t))
            PyErr_SetString(PyExc_ValueError, "this is no block of characters");
        else if (table->blocks[number] || (table->blocks[number] = block_of(table, data)))
            failed = 0; /* the call runs Python, which may have filled the block already */
    }
    Py_XDECREF(block);
    return failed;
}

Table *open_text(PyObject *const *args, Points *points)
{
    Table *table = PyCapsule_GetPointer(args[0], TABLE);
    return table && points_of(args[1], points) == 0 ? table : NULL;
}

Table *open_known(PyObject *const *args, Points *points)
{
    Table *table = open_text(args, points);
    Py_ssize_t i;
    for (i = 0; table && i < points->count; i++) {
        Py_UCS4 number = points->at[i] >> 8;
        if (!table->blocks[number] && ask_for(table, number) < 0) {
            release(points);
            return NULL;
        }
    }
    return table;
}

int fold(Table *table, Points *points)
{
    Py_ssize_t i, count = 0;
    Py_UCS4 changed = 0;
    for (i = 0; i < points->count; i++) {
        Py_UCS4 c = points->at[i], folded;
        if (!table->blocks[c >> 8] && ask_for(table, c >> 8) < 0)
            return -1;
        if (!(ENTRY(table, c) & PLAIN)) {
            if (ENTRY(table, c) & IGNORED)
                continue;
            return NOT_PLAIN;
        }
        folded = c ^ (ENTRY(table, c) & FOLDED);
        if (!table->blocks[folded >> 8] && ask_for(table, folded >> 8) < 0)
            return -1;
        points->at[count++] = folded;
        changed |= folded ^ c;
    }
    changed |= count < points->count;
    points->count = count;
    return changed ? CHANGED : SAME;
}

KERNEL(folded)
{
    Points points;
    PyObject *found = NULL;
    int is_plain;
    Table *table = has(given, 2) ? open_text(args, &points) : NULL;
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
    Table *table = has(given, 2) ? open_known(args, &points) : NULL;
    if (!table)
        return NULL;
    for (i = 0; i < points.count; i++)
        if (ENTRY(table, points.at[i]) & LETTER)
            points.at[count++] = points.at[i];
    found = str_of(points.at, count);
    release(&points);
    return found;
}

KERNEL(has_prose)
{
    Points points;
    Table *table;
    Py_ssize_t i, line = 0, found = 0, least, needed;
    int is_found = 0; /* -1 with an error */
    if (!has(given, 4) || size_of(args[2], 0, PY_SSIZE_T_MAX, &least) < 0 ||
        size_of(args[3], PY_SSIZE_T_MIN, PY_SSIZE_T_MAX, &needed) < 0 || !(table = open_text(args, &points)))
        return NULL;
    for (i = 0; i < points.count && !is_found; i++) {
        Py_UCS4 c = points.at[i];
        if (!table->blocks[c >> 8] && ask_for(table, c >> 8) < 0) {
            is_found = -1;
            break;
        }
        line += (ENTRY(table, c) & LETTER) != 0;
        if (!(ENTRY(table, c) & LINE) && i + 1 < points.count)
            continue;
        found += line >= least ? line : 0;
        is_found = found >= needed;
        line = 0;
    }
    release(&points);
    return is_found < 0 ? NULL : PyBool_FromLong(is_found);
}

/* The chain of the strings that begin with these two characters, and of some others. */
static Py_ssize_t place_of(const Py_UCS4 *at)
{
    return (Py_ssize_t)((at[0] * 31 + at[1]) & (PLACES - 1));
}

int strings_of(PyObject *sequence, Strings *strings)
{
    Py_ssize_t i, length, count = PySequence_Size(sequence);
    strings->count = 0;
    memset(strings->first, 0, sizeof strings->first);
    if (count > MOST_STRINGS)
        PyErr_SetString(PyExc_ValueError, "at most 64 strings are searched at once");
    for (i = 0; i < count && !PyErr_Occurred(); i++) {
        PyObject *one = PySequence_GetItem(sequence, i);
        length = one ? PyUnicode_GetLength(one) : -1;
        if (length > 1 && length <= MOST_LETTERS && PyUnicode_AsUCS4(one, strings->at[i], MOST_LETTERS, 0)) {
            uint8_t *first = &strings->first[place_of(strings->at[i])];
            strings->lengths[i] = length;
            strings->next[i + 1] = *first;
            *first = (uint8_t)(i + 1);
        }
        Py_XDECREF(one);
    }
    strings->count = count;
    return PyErr_Occurred() ? -1 : 0;
}

uint64_t look_for(const Strings *strings, const Py_UCS4 *at, Py_ssize_t count, uint64_t found, int one_is_enough)
{
    Py_ssize_t i, k;
    for (i = 0; i + 1 < count; i++) {
        uint8_t one;
        for (one = strings->first[place_of(at + i)]; one; one = strings->next[one]) {
            const Py_UCS4 *string = strings->at[one - 1];
            Py_ssize_t length = strings->lengths[one - 1];
            if (length > count - i)
                continue;
            for (k = 0; k < length && at[i + k] == string[k]; k++)
                ;
            if (k < length)
                continue;
            found |= UINT64_C(1) << (one - 1);
            if (one_is_enough)
                return found;
        }
    }
    return found;
}

static const char *STRINGS = "scrapy_neardup strings";

static void forget_strings(PyObject *capsule)
{
    PyMem_Free(PyCapsule_GetPointer(capsule, STRINGS));
}

KERNEL(strings)
{
    Strings *strings;
    PyObject *capsule = NULL;
    if (!has(given, 1))
        return NULL;
    if (!(strings = PyMem_Malloc(sizeof *strings)))
        return PyErr_NoMemory();
    if (strings_of(args[0], strings) == 0)
        capsule = PyCapsule_New(strings, STRINGS, forget_strings);
    if (!capsule)
        PyMem_Free(strings);
    return capsule;
}

KERNEL(holds_any)
{
    Points points;
    const Strings *strings;
    uint64_t found;
    if (!has(given, 2) || !(strings = PyCapsule_GetPointer(args[1], STRINGS)) || points_of(args[0], &points) < 0)
        return NULL;
    found = look_for(strings, points.at, points.count, 0, 1);
    release(&points);
    return PyBool_FromLong(found != 0);
}
