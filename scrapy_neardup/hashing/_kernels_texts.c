/* Texts: one spelling, letters, sentences, and what stands in them. */
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

/* A block that says this, which may be there for other characters already; NULL with an error. */
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
    PyObject *told = PyObject_CallFunction(table->ask, "I", (unsigned int)number);
    char *data;
    Py_ssize_t size;
    int failed = -1;
    if (told && PyBytes_AsStringAndSize(told, &data, &size) == 0) {
        if (size != IN_BLOCK * (Py_ssize_t)sizeof(uint32_t))
            PyErr_SetString(PyExc_ValueError, "this is no block of characters");
        else if (table->blocks[number] || (table->blocks[number] = block_of(table, data)))
            failed = 0; /* asking runs code of Python, which may have asked as well */
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

Table *taken(PyObject *const *args, Points *points)
{
    Table *table = PyCapsule_GetPointer(args[0], TABLE);
    return table && points_of(args[1], points) == 0 ? table : NULL;
}

Table *opened(PyObject *const *args, Py_ssize_t given, Points *points)
{
    Table *table = has(given, 2) ? taken(args, points) : NULL;
    if (table && ready(table, points) < 0) {
        release(points);
        return NULL;
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
        if (!(TOLD(table, c) & PLAIN)) {
            if (TOLD(table, c) & IGNORED)
                continue;
            return NOT_PLAIN;
        }
        folded = c ^ (TOLD(table, c) & FOLDED);
        if (!table->blocks[folded >> 8] && ask_for(table, folded >> 8) < 0)
            return -1;
        points->at[count++] = folded; /* most are what they were, which takes longer to ask */
        changed |= folded ^ c;
    }
    changed |= count < points->count;
    points->count = count;
    return changed ? CHANGED : SAME;
}

/* The text in the one spelling, if all of it is plain; None if it takes more to tell. */
KERNEL(folded)
{
    Points points;
    PyObject *found = NULL;
    int is_plain;
    Table *table = has(given, 2) ? taken(args, &points) : NULL;
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

int are_many(Py_ssize_t unspaced, Py_ssize_t count)
{
    return count > 0 && unspaced >= count / 50 + (count % 50 != 0);
}

int is_unspaced(const Table *table, const Points *points)
{
    Py_ssize_t i, found = 0;
    for (i = 0; i < points->count; i++)
        found += (TOLD(table, points->at[i]) & UNSPACED) != 0;
    return are_many(found, points->count);
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
    if (!has(given, 2) || !is_list(args[1]))
        return NULL;
    count = PyList_Size(args[1]);
    list = PyList_New(count);
    for (i = 0; list && i < count; i++) {
        PyObject *one[] = {args[0], PyList_GetItem(args[1], i)};
        if (!one[1] || put(list, i, has_unspaced(module, one, 2)) < 0)
            Py_CLEAR(list);
    }
    return list;
}

/* Whether a character of a script without spaces is a Chinese one. */
static int is_chinese(Py_UCS4 c)
{
    return (c >= 0x3400 && c < 0xA000) || c >= 0x20000;
}

/* Characters, text: its runs of Chinese characters with a line break between two of them, or None if it has other words. */
KERNEL(chinese_runs)
{
    Points points;
    PyObject *found = NULL;
    Py_ssize_t i, count = 0;
    int is_run = 0, has_others = 0;
    Table *table = opened(args, given, &points);
    if (!table)
        return NULL;
    for (i = 0; i < points.count && !has_others; i++) {
        Py_UCS4 c = points.at[i];
        uint32_t told = TOLD(table, c);
        int is_one = told & UNSPACED && is_chinese(c);
        has_others = !is_one && told & (LETTER | UNSPACED);
        if (is_one && !is_run && count)
            points.at[count++] = '\n';
        if (is_one)
            points.at[count++] = c;
        is_run = is_one;
    }
    found = has_others ? Py_NewRef(Py_None) : str_of(points.at, count);
    release(&points);
    return found;
}

/* Whether so many letters stand in lines that have a number of them at least: characters, text, that number, so many. */
KERNEL(has_prose)
{
    Points points;
    Table *table;
    Py_ssize_t i, line = 0, found = 0, least, needed;
    int is_found = 0; /* -1 with an error */
    if (!has(given, 4) || size_of(args[2], 0, PY_SSIZE_T_MAX, &least) < 0 ||
        size_of(args[3], PY_SSIZE_T_MIN, PY_SSIZE_T_MAX, &needed) < 0 || !(table = taken(args, &points)))
        return NULL;
    for (i = 0; i < points.count && !is_found; i++) {
        Py_UCS4 c = points.at[i];
        if (!table->blocks[c >> 8] && ask_for(table, c >> 8) < 0) {
            is_found = -1;
            break;
        }
        line += (TOLD(table, c) & LETTER) != 0;
        if (!(TOLD(table, c) & LINE) && i + 1 < points.count)
            continue;
        found += line >= least ? line : 0;
        is_found = found >= needed;
        line = 0;
    }
    release(&points);
    return is_found < 0 ? NULL : PyBool_FromLong(is_found);
}

/* Where the strings stand that begin with these two characters, and some others. */
static Py_ssize_t place_of(const Py_UCS4 *at)
{
    return (Py_ssize_t)((at[0] * 31 + at[1]) & (PLACES - 1));
}

void no_signs(Signs *signs)
{
    signs->count = 0;
    memset(signs->first, 0, sizeof signs->first);
}

int add_sign(Signs *signs, PyObject *sign)
{
    Py_ssize_t i = signs->count, length = sign && PyUnicode_Check(sign) ? PyUnicode_GetLength(sign) : 0;
    uint8_t *first;
    if (i == MOST_SIGNS || length < 2 || length > MOST_LETTERS) {
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_ValueError, "a sign is no str, too long, too short, or one too many");
        return -1;
    }
    if (!PyUnicode_AsUCS4(sign, signs->at[i], MOST_LETTERS, 0))
        return -1;
    first = &signs->first[place_of(signs->at[i])];
    signs->lengths[i] = length;
    signs->count++;
    signs->next[signs->count] = *first;
    *first = (uint8_t)signs->count;
    return 0;
}

int signs_of(PyObject *strings, Signs *signs)
{
    Py_ssize_t i, count = PySequence_Size(strings);
    int failed = count < 0;
    no_signs(signs);
    for (i = 0; i < count && !failed; i++) {
        PyObject *sign = PySequence_GetItem(strings, i);
        failed = add_sign(signs, sign) < 0;
        Py_XDECREF(sign);
    }
    return failed ? -1 : 0;
}

uint64_t look_for(const Signs *signs, const Py_UCS4 *at, Py_ssize_t count, uint64_t found, int one_is_enough)
{
    uint64_t all = signs->count == 64 ? UINT64_MAX : (UINT64_C(1) << signs->count) - 1;
    Py_ssize_t i, k;
    if (found == all)
        return found;
    for (i = 0; i + 1 < count; i++) {
        uint8_t one;
        for (one = signs->first[place_of(at + i)]; one; one = signs->next[one]) {
            const Py_UCS4 *sign = signs->at[one - 1];
            Py_ssize_t length = signs->lengths[one - 1];
            if (length > count - i)
                continue;
            for (k = 0; k < length && at[i + k] == sign[k]; k++)
                ;
            if (k < length)
                continue;
            found |= UINT64_C(1) << (one - 1);
            if (one_is_enough || found == all)
                return found;
        }
    }
    return found;
}

static const char *SIGNS = "scrapy_neardup signs";

static void forget_signs(PyObject *capsule)
{
    PyMem_Free(PyCapsule_GetPointer(capsule, SIGNS));
}

/* The strings of a tuple or list, as the next one takes them. */
KERNEL(signs)
{
    Signs *signs;
    PyObject *capsule = NULL;
    if (!has(given, 1))
        return NULL;
    if (!(signs = PyMem_Malloc(sizeof *signs)))
        return PyErr_NoMemory();
    if (signs_of(args[0], signs) == 0)
        capsule = PyCapsule_New(signs, SIGNS, forget_signs);
    if (!capsule)
        PyMem_Free(signs);
    return capsule;
}

/* Text, signs: whether one of them stands in it. */
KERNEL(holds_any)
{
    Points points;
    const Signs *signs;
    uint64_t found;
    if (!has(given, 2) || !(signs = PyCapsule_GetPointer(args[1], SIGNS)) || points_of(args[0], &points) < 0)
        return NULL;
    found = look_for(signs, points.at, points.count, 0, 1);
    release(&points);
    return PyBool_FromLong(found != 0);
}
