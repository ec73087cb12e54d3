/* The hot stages, compiled. The functions of Python beside each call define them, and do the work where this module was not
 * built. Tests compare the two. Each of the other files holds a part of it.
 *
 * What each saves of a page of 1,520 letters, in µs (a fingerprint takes 85 instead of 1,400; python benchmarks/kernels.py):
 *     cut_text                            90 of 106
 *     cut_hashes, cut_lengths             40 of 42
 *     cut_without                         12 of 16, once lines are boilerplate
 *     cut_sentences, cut_lines            make strings of a cut text, when a comparison asks for them
 *     cut_sketch                         257 of 268
 *     cut_title                           54 of 57
 *     cut_lacking                        755 of 768, when a page with another title is compared
 *     hash_texts                           2 of 3; 13 of a page from HTML
 *     folded, letters                      4 of 5; letters also of each line of HTML
 *     has_prose                            7 of 8
 *     strings, holds_any                   6 of 8
 *     lexicon, words                     286 of 298; and 0.5 s in each process
 *     are_common, count_page             112 of 115
 *     fingerprint64                       17 of 17
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
