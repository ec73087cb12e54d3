/* What all parts of the compiled module share: arguments, results, texts, and the hash of a number.
 *
 * One translation unit: _kernels.c includes the other files in their order. Plain C99 on the limited API of Python 3.11. Texts
 * are arrays of code points, so lone surrogates and zeros are characters like others. Every size is checked before memory is
 * taken, a function releases its memory in one place, and no loop takes quadratic time. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* A function of the module; compiled.py describes its arguments. */
#define KERNEL(name) static PyObject *name(PyObject *module, PyObject *args)

/* Starts to fetch memory that is read soon: several places of a large table are then waited for at once. */
#if defined(__GNUC__)
#define SOON(at) __builtin_prefetch(at)
#else
#define SOON(at) ((void)(at))
#endif

/* Compiles a function for several processors; the best one is chosen when the module is loaded. */
#if defined(__x86_64__) && defined(__GLIBC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__) && __GNUC__ >= 12
#define HAS_CLONES
#define IN_CLONES __attribute__((target_clones("arch=x86-64-v4", "avx2", "default")))
#else
#define IN_CLONES
#endif

/* 0, with an error if this is not so. */
static int is_so(int condition, PyObject *error, const char *sentence)
{
    if (!condition)
        PyErr_SetString(error, sentence);
    return condition;
}

/* Memory for at least one item; NULL with an error. */
static void *memory_for(Py_ssize_t count, size_t size)
{
    void *found = count < PY_SSIZE_T_MAX / 64 ? PyMem_Malloc(((size_t)count + 1) * size) : NULL;
    return found ? found : PyErr_NoMemory();
}

/* A list of ``count`` items, each made from a place of ``size`` bytes; NULL with an error. */
static PyObject *list_of(PyObject *(*item)(const void *place), const void *from, size_t size, Py_ssize_t count)
{
    PyObject *list = PyList_New(count);
    Py_ssize_t i;
    for (i = 0; list && i < count; i++) {
        PyObject *one = item((const char *)from + size * (size_t)i);
        if (!one || PyList_SetItem(list, i, one) < 0)
            Py_CLEAR(list);
    }
    return list;
}

/* The 64 bits with which a place begins. */
static PyObject *number_item(const void *place)
{
    return PyLong_FromUnsignedLongLong(*(const uint64_t *)place);
}

/* Orders for qsort. */
#define ORDER(name, type)                                                                                              \
    static int name(const void *one, const void *other)                                                               \
    {                                                                                                                  \
        type a = *(const type *)one, b = *(const type *)other;                                                        \
        return (a > b) - (a < b);                                                                                      \
    }

ORDER(compare_words, uint64_t)
ORDER(compare_halves, uint32_t)
ORDER(compare_numbers, double)

/* Sorts numbers and leaves each once; returns how many these are. */
static Py_ssize_t sort_different(uint64_t *numbers, Py_ssize_t count)
{
    Py_ssize_t i, found = 0;
    qsort(numbers, (size_t)count, sizeof *numbers, compare_words);
    for (i = 0; i < count; i++)
        if (!i || numbers[i] != numbers[found - 1])
            numbers[found++] = numbers[i];
    return found;
}

/* Puts an item at its place among the first ``most`` different ones so far, which are in order; returns their number. */
static Py_ssize_t keep(void *first, Py_ssize_t count, Py_ssize_t most, const void *item, size_t size,
                       int (*compare)(const void *, const void *))
{
    char *start = first, *place = start + (size_t)count * size;
    int order = 1;
    while (place > start && (order = compare(item, place - size)) < 0)
        place -= size;
    if (!order || place == start + (size_t)most * size)
        return count;
    count += count < most;
    memmove(place + size, place, (size_t)(start + (size_t)count * size - place) - size);
    memcpy(place, item, size);
    return count;
}

static uint64_t mix(uint64_t value)
{
    value ^= value >> 33;
    value *= UINT64_C(0xFF51AFD7ED558CCD);
    value ^= value >> 33;
    value *= UINT64_C(0xC4CEB9FE1A85EC53);
    return value ^ value >> 33;
}

typedef struct {
    Py_UCS4 *at;
    Py_ssize_t count;
} Points;

/* The code points of a str; 0 with an error, else free them. */
static int points_of(PyObject *text, Points *points)
{
    if (!is_so(PyUnicode_Check(text), PyExc_TypeError, "a str is needed"))
        return 0;
    points->count = PyUnicode_GetLength(text);
    points->at = PyUnicode_AsUCS4Copy(text);
    return points->at != NULL;
}

/* A str of code points, which may be lone surrogates. */
static PyObject *str_of(const Py_UCS4 *at, Py_ssize_t count)
{
    const uint16_t one = 1;
    int order = *(const unsigned char *)&one ? -1 : 1; /* that of this machine */
    return PyUnicode_DecodeUTF32((const char *)at, count * (Py_ssize_t)sizeof(Py_UCS4), "surrogatepass", &order);
}

/* What Python holds for us, in capsules. */
typedef struct Table Table;
typedef struct Cut Cut;

static const char TABLE[] = "scrapy_neardup characters", CUT[] = "scrapy_neardup cut text";

/* A capsule with empty memory; NULL with an error. */
static PyObject *new_capsule(void *to, size_t size, const char *name, PyCapsule_Destructor forget)
{
    PyObject *capsule = NULL;
    if (!(*(void **)to = PyMem_Calloc(1, size)))
        PyErr_NoMemory();
    else if (!(capsule = PyCapsule_New(*(void **)to, name, forget)))
        PyMem_Free(*(void **)to);
    return capsule;
}

/* Converters for PyArg_ParseTuple: 0 with an error. */
#define OF_CAPSULE(converter, name)                                                                                   \
    static int converter(PyObject *object, void *to)                                                                   \
    {                                                                                                                  \
        return (*(void **)to = PyCapsule_GetPointer(object, name)) != NULL;                                            \
    }

OF_CAPSULE(as_table, TABLE)
OF_CAPSULE(as_cut, CUT)

/* Called without an object if a later argument is wrong. */
static int as_text(PyObject *object, void *to)
{
    if (object)
        return points_of(object, to) ? Py_CLEANUP_SUPPORTED : 0;
    PyMem_Free(((Points *)to)->at);
    return 1;
}

static int as_size(PyObject *object, void *to)
{
    Py_ssize_t size = *(Py_ssize_t *)to = PyLong_AsSsize_t(object);
    return !PyErr_Occurred() && is_so(size >= 0, PyExc_ValueError, "a number is out of its range");
}
