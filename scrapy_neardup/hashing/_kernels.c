/* The hot stages, compiled. The functions of Python beside each call define them, and do the work where this module was not
 * built. Tests compare the two. What each saves of the 1,150 µs that a page of 1,520 letters takes without them (70 with
 * them): lexicon and words 286, cut_sketch 257, are_common and count_page 112, cut_text 90, cut_title 54, cut_hashes 40,
 * cut_without 12, folded and letters 6, hash_texts 4; cut_lacking 755 when a page with another title is compared;
 * fingerprint64 35 where pyfarmhash has no wheel.
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
#define VERSION 29

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
