/* What the hot stages do, compiled: the same output as the functions of Python that stand beside each call, which are
 * the definition (see compiled.py). Where this was not built they do the work.
 *
 * One file for each idea, _kernels_*.c; here is what they share (see _kernels.h), and the module itself.
 */
#include "_kernels.h"

/* Changed with every change of a signature or of what is returned: a module of another one is not used. */
#define VERSION 15

/* ---- texts that are passed in ------------------------------------------------------------------------------------ */

int points_of(PyObject *text, Points *points)
{
    points->at = points->small;
    if (!PyUnicode_Check(text)) {
        PyErr_SetString(PyExc_TypeError, "a str is needed");
        return -1;
    }
    points->count = PyUnicode_GetLength(text);
    if (points->count < 0)
        return -1;
    if (points->count <= SMALL)
        return PyUnicode_AsUCS4(text, points->small, SMALL, 0) ? 0 : -1;
    points->at = PyUnicode_AsUCS4Copy(text);
    return points->at ? 0 : -1;
}

void release(Points *points)
{
    if (points->at != points->small)
        PyMem_Free(points->at);
}

PyObject *str_of(const Py_UCS4 *at, Py_ssize_t count)
{
    const uint16_t one = 1;
    int order = *(const unsigned char *)&one ? -1 : 1; /* that of this machine */
    return PyUnicode_DecodeUTF32((const char *)at, count * (Py_ssize_t)sizeof(Py_UCS4), "surrogatepass", &order);
}

/* ---- numbers that are passed in -------------------------------------------------------------------------------- */

int size_of(PyObject *number, Py_ssize_t least, Py_ssize_t most, Py_ssize_t *size)
{
    *size = PyLong_AsSsize_t(number);
    if (*size == -1 && PyErr_Occurred())
        return -1;
    if (*size < least || *size > most) {
        PyErr_SetString(PyExc_ValueError, "a number is out of its range");
        return -1;
    }
    return 0;
}

int word_of(PyObject *number, uint64_t *word)
{
    *word = PyLong_AsUnsignedLongLong(number);
    return *word == UINT64_MAX && PyErr_Occurred() ? -1 : 0;
}

int has(Py_ssize_t given, Py_ssize_t wanted)
{
    if (given == wanted)
        return 1;
    PyErr_Format(PyExc_TypeError, "%zd arguments are needed, not %zd", wanted, given);
    return 0;
}

int is_list(PyObject *given)
{
    if (PyList_Check(given))
        return 1;
    PyErr_SetString(PyExc_TypeError, "a list is needed");
    return 0;
}

/* ---- lists that are handed back ---------------------------------------------------------------------------------- */

int put(PyObject *list, Py_ssize_t place, PyObject *item)
{
    return item ? PyList_SetItem(list, place, item) : -1;
}

int append(PyObject *list, PyObject *item)
{
    int failed = item ? PyList_Append(list, item) : -1;
    Py_XDECREF(item);
    return failed;
}

/* ---- the module ------------------------------------------------------------------------------------------------ */

#define FAST(name, text) {#name, (PyCFunction)(void (*)(void))name, METH_FASTCALL, text}

static PyMethodDef METHODS[] = {
    FAST(prepared, "A secret, of 64 bytes at most, as what hashes texts takes it: secret, whether several are hashed at once."),
    FAST(hash_text, "The hash of a text under a prepared secret."),
    FAST(hash_texts, "The hash of each text of a list: key, list."),
    FAST(word_grams, "The hash of each word of a list as one n-gram: words, offset, base."),
    FAST(n_grams, "The hash of every n-gram of a text, 8 bytes each: text, n, offset, base."),
    FAST(minwise, "How many different n-grams a text has, and the sketch of them: text, n, offset, base, bins, bits."),
    FAST(smallest, "The smallest different hashes of n-grams of a text: text, n, offset, base, how many."),
    FAST(lacking, "Which numbers no n-gram has for its hash: text, least n, greatest n, offset, base, mask, numbers."),
    FAST(equal_entries, "In how many entries two sketches are equal: sketch, sketch, bits of an entry."),
    FAST(may_be_alike, "Whether two pages may be alike, by a sketch and the head of another: see cascade_bound.py."),
    FAST(signs, "At most 64 strings of 2 to 32 characters, as the next one takes them."),
    FAST(holds_any, "Whether a text holds one of them: text, signs."),
    FAST(longer, "The strings of a list that are longer than a number of characters."),
    FAST(weights, "Lines of a word and its weight as the next one takes them, and all weights."),
    FAST(core_words, "The words whose weights add up to the most, 64 at most: words, how many, weights, that of others."),
    FAST(has_unspaced, "Whether a fiftieth of the letters and more are of scripts without spaces: characters, letters."),
    FAST(are_unspaced, "The same of each word of a list: characters, words."),
    FAST(chinese_runs, "The runs of Chinese characters, a line each, or None if there are other words: characters, text."),
    FAST(has_prose, "Whether lines of some letters hold enough of them: characters, text, letters of a line, enough."),
    FAST(characters, "What is to be known of characters, by a function that tells of 256 at a time."),
    FAST(folded, "A text in one spelling, or None if it takes more to tell: characters, text."),
    FAST(letters, "The letters and digits of a text: characters, text."),
    FAST(cut_text, "A text that is cut, and how many letters it has: characters, text, key, whether it is to be spelt."),
    FAST(cut_without, "The same without the lines of some hashes, or None if all stay: cut text, list."),
    FAST(cut_sentences, "The sentences of a cut text, one a line."),
    FAST(cut_letters, "The letters of a cut text."),
    FAST(cut_lines, "The letters of each sentence of a cut text."),
    FAST(cut_shorts, "4 bytes of the hash of each line that is worth counting: cut text, letters of a line."),
    FAST(cut_counted, "Those of strings, and of the first and last such lines: cut text, letters, key, list, lines of an end."),
    FAST(cut_lengths, "How many letters each line of a cut text has, 4 bytes each."),
    FAST(cut_hash, "The hash of all letters: cut text, key."),
    FAST(cut_ends, "2 bytes of the hash of each of the first and last lines: cut text, how many of these, of those."),
    FAST(cut_longest, "The hashes of the longest different lines: cut text, the letters they must have, 64 at most."),
    FAST(cut_shingled, "All that is made of n-grams: how many, sketch, that of the opening, smallest ones."),
    FAST(cut_title, "The words of a title as a sketch has them, or None if some have spaces around them: see there."),
    FAST(cut_numbers, "What all numbers come to, and some of them, 16 bits each: cut text, offset, base, how many."),
    FAST(cut_standing, "Which of at most 64 strings of 2 to 32 characters stand in a line: cut text, strings."),
    FAST(stood, "On how many sites or pages sentences stood: asked, buckets of a block, table, whether pages."),
    FAST(are_common, "Which sentences are common: asked, buckets, site, offset, base, least and table of both."),
    FAST(note, "Count sentences: with buckets of a block, bit, table."),
    FAST(count_page, "Count those of a page, for its site and, with a bit, for all: see there."),
    FAST(packed_keys, "The bytes of keys, behind some that come before each: keys, bytes of a key, those before."),
    FAST(packed_record, "A record of a state: flags, keys, bytes of a key, URL, what stands behind that, sketch."),
    FAST(shares_of_rows, "What a tally says of rows that are written: see there."),
    FAST(witness_line, "A line of the witness: kind, what a tally says, rest, length."),
    FAST(upper_halves, "Hashes of 32-bit numbers, mixed with another one, with offset and base."),
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef MODULE = {
    PyModuleDef_HEAD_INIT, "_kernels", "What the hot stages do, compiled; see compiled.py.", -1, METHODS,
    NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__kernels(void)
{
    PyObject *module = PyModule_Create(&MODULE);
    if (module && PyModule_AddIntConstant(module, "VERSION", VERSION) < 0)
        Py_CLEAR(module);
    return module;
}
