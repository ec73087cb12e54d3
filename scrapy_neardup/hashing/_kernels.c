/* The hot stages, compiled. The functions of Python beside each call define them, and do the work where this module was not
 * built. Tests compare the two. Each of the other files holds a part of it.
 *
 * What each saves of a page of 1,520 letters, in µs of processor time (a fingerprint takes 70 instead of 1,150):
 *     cut_text                            90 of 106
 *     cut_hashes                          40 of 42
 *     cut_without                         12 of 16, once lines are boilerplate
 *     cut_strings                         makes strings of a cut text, when a comparison asks for them
 *     cut_sketch                         257 of 268
 *     cut_title                           54 of 57
 *     cut_lacking                        755 of 768, when a page with another title is compared
 *     hash_texts                           4 of 5; 13 of a page from HTML
 *     folded, letters                      6 of 7; letters also of each line of HTML
 *     lexicon, words                     286 of 298; and 0.5 s in each process
 *     are_common, count_page             112 of 115
 *     fingerprint64                       35 of 35, where pyfarmhash has no wheel
 */
#include "_kernels.h"
#include "_kernels_hashes.h"
#include "_kernels_grams.h"
#include "_kernels_texts.h"
#include "_kernels_cut.h"
#include "_kernels_words.h"
#include "_kernels_counts.h"
#include "_kernels_farmhash.h"

/* Raised with every change of a signature or result: compiled.py uses no module of another version. */
#define VERSION 26

#define METHOD(name) {#name, name, METH_VARARGS, "See compiled.py."}

static PyMethodDef METHODS[] = {
    METHOD(hash_texts), METHOD(characters),  METHOD(folded),      METHOD(letters),       METHOD(cut_text),
    METHOD(cut_without), METHOD(cut_strings), METHOD(cut_hashes), METHOD(cut_sketch),    METHOD(cut_title),
    METHOD(cut_lacking), METHOD(lexicon),     METHOD(words),      METHOD(are_common),    METHOD(count_page),
    METHOD(fingerprint64), {NULL, NULL, 0, NULL},
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
