/* The hot stages, compiled. The functions of Python beside each call define them, and do the work where this module was not
 * built. Tests compare the two.
 *
 * What each saves of a page of 1,500 letters, in µs (a fingerprint takes about 90; python benchmarks/kernels.py):
 *     cut_text, cut_without, cut_sentences, cut_lines, cut_hashes   86 of 104
 *     cut_sketch                                                   292 of 308
 *     cut_title                                                     40 of 43
 *     cut_lacking                                                  635 of 658, when two pages with other titles are compared
 *     hash_texts                                                     3 of 5 (three texts); more with words between spaces
 *     folded, letters                                                3 of 4, in title, keywords and description
 *     has_prose                                                      6 of 7
 *     strings, holds_any                                             5 of 6 in Chinese, 20 of 21 in English
 *     lexicon, words, core_words                                   358 of 374; and 0.5 s in each process
 *     are_common, count_page                                       112 of 116
 *     fingerprint64                                                300 of 302, in 17 rows of the state, where pyfarmhash is missing
 */
#include "_kernels.h"

/* Raised with every change of a signature or result: compiled.py uses no module of another version. */
#define VERSION 20

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

int put(PyObject *list, Py_ssize_t place, PyObject *item)
{
    return item ? PyList_SetItem(list, place, item) : -1;
}

PyObject *list_of(const uint64_t *numbers, Py_ssize_t count)
{
    PyObject *list = PyList_New(count);
    Py_ssize_t i;
    for (i = 0; list && i < count; i++)
        if (put(list, i, PyLong_FromUnsignedLongLong(numbers[i])) < 0)
            Py_CLEAR(list);
    return list;
}

int compare_words(const void *one, const void *other)
{
    uint64_t a = *(const uint64_t *)one, b = *(const uint64_t *)other;
    return (a > b) - (a < b);
}

int compare_halves(const void *one, const void *other)
{
    uint32_t a = *(const uint32_t *)one, b = *(const uint32_t *)other;
    return (a > b) - (a < b);
}

#define FAST(name) {#name, (PyCFunction)(void (*)(void))name, METH_FASTCALL, "See compiled.py."}

static PyMethodDef METHODS[] = {
    FAST(prepared),   FAST(hash_texts), FAST(characters),  FAST(folded),      FAST(letters),    FAST(has_prose),
    FAST(strings),    FAST(holds_any),  FAST(cut_text),    FAST(cut_without), FAST(cut_lines),  FAST(cut_sentences),
    FAST(cut_hashes), FAST(cut_sketch), FAST(cut_title),   FAST(cut_lacking), FAST(lexicon),    FAST(words),
    FAST(core_words), FAST(are_common), FAST(count_page),  FAST(fingerprint64), {NULL, NULL, 0, NULL},
};

static struct PyModuleDef MODULE = {
    PyModuleDef_HEAD_INIT, "_kernels", "The hot stages, compiled; see compiled.py.", -1, METHODS, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__kernels(void)
{
    PyObject *module = PyModule_Create(&MODULE);
    if (module && PyModule_AddIntConstant(module, "VERSION", VERSION) < 0)
        Py_CLEAR(module);
    return module;
}
