/* The hot stages, compiled. The functions of Python beside each call define them, and do the work where this module was not
 * built. Tests compare the two. Each of the other files holds a part of it.
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
#define VERSION 23

#define FAST(name) {#name, (PyCFunction)(void (*)(void))name, METH_FASTCALL, "See compiled.py."}

static PyMethodDef METHODS[] = {
    FAST(hash_texts),    FAST(characters), FAST(folded),      FAST(letters),    FAST(has_prose),  FAST(strings),
    FAST(holds_any),     FAST(cut_text),   FAST(cut_without), FAST(cut_lines),  FAST(cut_hashes), FAST(cut_sentences),
    FAST(cut_sketch),    FAST(cut_title),  FAST(cut_lacking), FAST(lexicon),    FAST(words),      FAST(fingerprint64),
    FAST(are_common),    FAST(count_page), FAST(cut_lengths), {NULL, NULL, 0, NULL},
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
