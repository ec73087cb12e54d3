/* The hot stages, compiled. The functions of Python beside each call define them, and do the work where this module was not
 * built; a page takes 20 times as long there. Tests compare the two. */
#include "_kernels.h"
#include "_kernels_hashes.h"
#include "_kernels_grams.h"
#include "_kernels_texts.h"
#include "_kernels_cut.h"
#include "_kernels_words.h"
#include "_kernels_counts.h"
#include "_kernels_farmhash.h"

/* Raised with every change of a signature or result: compiled.py uses no module of another version. */
#define VERSION 31

#define METHOD(name) {#name, name, METH_VARARGS, "See compiled.py."}

static PyMethodDef METHODS[] = {
    METHOD(hash_texts), METHOD(characters), METHOD(folded), METHOD(cut_text), METHOD(cut_without), METHOD(cut_strings),
    METHOD(cut_hashes), METHOD(cut_sketch), METHOD(cut_title), METHOD(cut_lacking), METHOD(lexicon), METHOD(words),
    METHOD(are_common), METHOD(count_page), METHOD(fingerprint64),
    {NULL, NULL, 0, NULL},
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
