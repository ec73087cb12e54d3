/* Characters: normal spelling, letters, and strings in a text. */

/* The entry of a character, 32 bits; text/characters.py makes them. */
#define FOLDED 0x1FFFFF
#define PLAIN 0x200000
#define LETTER 0x400000
#define SPACE 0x800000
#define MARK 0x1000000
#define CLOSING 0x2000000
#define ENDING 0x4000000
#define UNSPACED 0x8000000
#define IGNORED 0x10000000
#define HAN 0x20000000
#define KATAKANA 0x40000000
#define BLOCKS 0x1100
#define IN_BLOCK 256

/* Blocks of 256 entries, each requested when one of its characters first occurs. */
struct Table {
    PyObject *ask, *held[BLOCKS];
    const uint32_t *blocks[BLOCKS]; /* inside the bytes of ``held`` */
};

#define ENTRY(table, c) ((table)->blocks[(c) >> 8][(c) & 0xFF])

static void forget_table(PyObject *capsule)
{
    Table *table = PyCapsule_GetPointer(capsule, TABLE);
    int i;
    for (i = 0; i < BLOCKS; i++)
        Py_XDECREF(table->held[i]);
    Py_DECREF(table->ask);
    PyMem_Free(table);
}

KERNEL(characters)
{
    PyObject *ask, *capsule;
    Table *table;
    if (!PyArg_ParseTuple(args, "O", &ask))
        return NULL;
    if (!(table = PyMem_Calloc(1, sizeof *table)))
        return PyErr_NoMemory();
    table->ask = Py_NewRef(ask);
    if (!(capsule = PyCapsule_New(table, TABLE, forget_table))) {
        Py_DECREF(ask);
        PyMem_Free(table);
    }
    return capsule;
}

/* Asks for a block; 0 with an error. */
static int ask_for(Table *table, Py_UCS4 number)
{
    PyObject *block = PyObject_CallFunction(table->ask, "I", (unsigned int)number);
    if (block && is_so(PyBytes_Check(block), PyExc_TypeError, "a block of characters must be bytes") &&
        is_so(PyBytes_Size(block) == IN_BLOCK * (Py_ssize_t)sizeof(uint32_t), PyExc_ValueError,
              "this is no block of characters") &&
        !table->held[number]) { /* the call runs Python, which may have filled the block already */
        table->blocks[number] = (const uint32_t *)(const void *)PyBytes_AsString(block);
        table->held[number] = Py_NewRef(block);
    }
    Py_XDECREF(block);
    return table->held[number] != NULL;
}

/* Whether the block of a character is there; 0 with an error. */
#define KNOWS(table, c) ((table)->blocks[(c) >> 8] || ask_for(table, (c) >> 8))

static int knows_all(Table *table, const Points *points)
{
    Py_ssize_t i;
    for (i = 0; i < points->count; i++)
        if (!KNOWS(table, points->at[i]))
            return 0;
    return 1;
}

enum { NOT_PLAIN, SAME, CHANGED };

/* Brings a text into its normal spelling, without invisible characters, if all of it is plain; -1 with an error. All blocks
 * of the result are there then. */
static int fold(Table *table, Points *points)
{
    Py_ssize_t i, count = 0;
    Py_UCS4 changed = 0;
    for (i = 0; i < points->count; i++) {
        Py_UCS4 c = points->at[i], folded;
        uint32_t entry;
        if (!KNOWS(table, c))
            return -1;
        entry = ENTRY(table, c);
        if (!(entry & PLAIN)) {
            if (entry & IGNORED)
                continue;
            return NOT_PLAIN;
        }
        folded = c ^ (entry & FOLDED);
        if (!KNOWS(table, folded))
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
    Table *table;
    PyObject *text, *found = NULL;
    int is_plain;
    if (!PyArg_ParseTuple(args, "O&O", as_table, &table, &text) || !points_of(text, &points))
        return NULL;
    is_plain = fold(table, &points);
    if (is_plain == NOT_PLAIN)
        found = Py_NewRef(Py_None);
    else if (is_plain >= 0)
        found = is_plain == CHANGED ? str_of(points.at, points.count) : Py_NewRef(text);
    release(&points);
    return found;
}

KERNEL(letters)
{
    Points points;
    Table *table;
    PyObject *found = NULL;
    Py_ssize_t i, count = 0;
    if (!PyArg_ParseTuple(args, "O&O&", as_table, &table, as_text, &points))
        return NULL;
    if (knows_all(table, &points)) {
        for (i = 0; i < points.count; i++)
            if (ENTRY(table, points.at[i]) & LETTER)
                points.at[count++] = points.at[i];
        found = str_of(points.at, count);
    }
    release(&points);
    return found;
}

#define MOST_STRINGS 64
#define MOST_LETTERS 32
#define PLACES 4096

/* Strings to look for, in chains by their first two characters. */
typedef struct {
    Py_UCS4 at[MOST_STRINGS][MOST_LETTERS];
    Py_ssize_t lengths[MOST_STRINGS];
    uint8_t first[PLACES], next[MOST_STRINGS + 1]; /* one more than the number of a string, or 0 */
    Py_ssize_t count;
} Strings;

/* The chain of the strings that begin with these two characters, and of some others. */
static Py_ssize_t chain_of(const Py_UCS4 *at)
{
    return (Py_ssize_t)((at[0] * 31 + at[1]) & (PLACES - 1));
}

/* The strings of a list. A shorter one than two characters, or a longer one than 32, is found in no text; 0 with an error. */
static int prepare(Strings *strings, PyObject *list)
{
    Py_ssize_t i, length, count = PyList_Size(list);
    if (!is_so(count <= MOST_STRINGS, PyExc_ValueError, "at most 64 strings are searched at once"))
        return 0;
    memset(strings->first, 0, sizeof strings->first);
    strings->count = count;
    for (i = 0; i < count; i++) {
        PyObject *one = PyList_GetItem(list, i);
        if (!is_so(PyUnicode_Check(one), PyExc_TypeError, "a str is needed"))
            return 0;
        length = PyUnicode_GetLength(one);
        if (length > 1 && length <= MOST_LETTERS && PyUnicode_AsUCS4(one, strings->at[i], MOST_LETTERS, 0)) {
            uint8_t *first = &strings->first[chain_of(strings->at[i])];
            strings->lengths[i] = length;
            strings->next[i + 1] = *first;
            *first = (uint8_t)(i + 1);
        }
    }
    return 1;
}

/* A bit for each string that a text holds. */
static uint64_t look_for(const Strings *strings, const Py_UCS4 *at, Py_ssize_t count)
{
    uint64_t found = 0;
    Py_ssize_t i, k;
    for (i = 0; i + 1 < count; i++) {
        uint8_t one;
        for (one = strings->first[chain_of(at + i)]; one; one = strings->next[one]) {
            const Py_UCS4 *string = strings->at[one - 1];
            Py_ssize_t length = strings->lengths[one - 1];
            if (length > count - i)
                continue;
            for (k = 0; k < length && at[i + k] == string[k]; k++)
                ;
            if (k == length)
                found |= UINT64_C(1) << (one - 1);
        }
    }
    return found;
}
