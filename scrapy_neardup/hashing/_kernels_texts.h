/* Characters: normal spelling and letters. */

/* The entry of a character, 32 bits; text/characters.py makes them. The highest eight are the kind of a character. */
#define FOLDED 0x1FFFFF
#define PLAIN 0x200000
#define IGNORED 0x400000
#define KATAKANA 0x800000
#define KIND(entry) ((uint8_t)((entry) >> 24))
#define LETTER 1
#define SPACE 2
#define MARK 4
#define CLOSING 8
#define ENDING 16
#define UNSPACED 32
#define HAN 64
#define POINT 128
#define BLOCKS 0x1100
#define IN_BLOCK 256

/* Blocks of 256 entries, each requested when one of its characters first occurs. */
struct Table {
    PyObject *ask, *held[BLOCKS];
    const uint32_t *blocks[BLOCKS]; /* inside the bytes of ``held`` */
};

#define ENTRY(table, c) ((table)->blocks[(c) >> 8][(c) & 0xFF])
#define KIND_OF(table, c) KIND(ENTRY(table, c))

static void forget_table(PyObject *capsule)
{
    Table *table = PyCapsule_GetPointer(capsule, TABLE);
    int i;
    for (i = 0; i < BLOCKS; i++)
        Py_XDECREF(table->held[i]);
    Py_XDECREF(table->ask);
    PyMem_Free(table);
}

KERNEL(characters)
{
    PyObject *ask, *capsule;
    Table *table;
    if (!PyArg_ParseTuple(args, "O", &ask))
        return NULL;
    if ((capsule = new_capsule(&table, sizeof *table, TABLE, forget_table)))
        table->ask = Py_NewRef(ask);
    return capsule;
}

/* Asks for a block; NULL with an error. */
static const uint32_t *ask_for(Table *table, Py_UCS4 number)
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
    return table->blocks[number];
}

/* The block of a character; NULL with an error. */
#define BLOCK_OF(table, c) ((table)->blocks[(c) >> 8] ? (table)->blocks[(c) >> 8] : ask_for(table, (c) >> 8))

/* Brings a text into its normal spelling, without invisible characters, unless it ``is_normal``. Writes the kind of each
 * character; 0 if not all of it is plain, or with an error. */
static int fold(Table *table, Points *points, int is_normal, uint8_t *kinds)
{
    Py_UCS4 *to = points->at;
    const Py_UCS4 *at = to, *end = at + points->count;
    for (; at < end; at++) {
        Py_UCS4 c = *at;
        const uint32_t *block = BLOCK_OF(table, c);
        uint32_t entry = block ? block[c & 0xFF] : 0;
        if (!block)
            return 0;
        if (!is_normal && (entry & (PLAIN | FOLDED)) != PLAIN) { /* few characters */
            if (entry & IGNORED)
                continue;
            if (!(entry & PLAIN))
                return 0;
            c ^= entry & FOLDED;
            if (!(block = BLOCK_OF(table, c)))
                return 0;
            entry = block[c & 0xFF];
        }
        *to++ = c;
        *kinds++ = KIND(entry);
    }
    points->count = to - points->at;
    return 1;
}

/* What was found; without an error None if that is nothing. */
static PyObject *or_none(PyObject *found)
{
    return found || PyErr_Occurred() ? found : Py_NewRef(Py_None);
}

KERNEL(folded)
{
    Points points;
    Table *table;
    uint8_t *kinds;
    PyObject *found = NULL;
    Py_ssize_t i, count = 0;
    int is_normal, are_letters;
    if (!PyArg_ParseTuple(args, "O&O&pp", as_table, &table, as_text, &points, &is_normal, &are_letters))
        return NULL;
    if ((kinds = memory_for(points.count, 1)) && fold(table, &points, is_normal, kinds)) {
        for (i = 0; i < points.count; i++) {
            points.at[count] = points.at[i];
            count += !are_letters || kinds[i] & LETTER;
        }
        found = str_of(points.at, count);
    }
    PyMem_Free(kinds);
    PyMem_Free(points.at);
    return or_none(found);
}

/* A word or a line, and how much it says. */
typedef struct {
    uint64_t hash;
    double weight;
    const Py_UCS4 *at;
    Py_ssize_t length;
} Word;

/* The smallest weight first, equals in order of characters. */
static int compare_weights(const void *one, const void *other)
{
    const Word *a = one, *b = other;
    Py_ssize_t i;
    if (a->weight != b->weight)
        return a->weight < b->weight ? -1 : 1;
    for (i = 0; i < a->length && i < b->length; i++)
        if (a->at[i] != b->at[i])
            return a->at[i] < b->at[i] ? -1 : 1;
    return (a->length > b->length) - (a->length < b->length);
}
