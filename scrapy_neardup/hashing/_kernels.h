/* What all parts of the compiled module share: arguments, results, texts, and the hash of a number.
 *
 * The module is one translation unit: _kernels.c includes the other files, so each part sees those before it, and nothing has
 * to be declared twice. Plain C99 on the limited API of Python 3.11, without state of its own. Texts are arrays of code
 * points, so no string is invalid: lone surrogates and zeros are characters like others. Every size is checked before memory
 * is taken, a function releases its memory in one place, and no loop takes quadratic time.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <math.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define KERNEL(name) static PyObject *name(PyObject *module, PyObject *const *args, Py_ssize_t given)

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

/* ---- results ----------------------------------------------------------------------------------------------------- */

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

/* Sets an item of a new list; 0, or -1 with an error. */
static int put(PyObject *list, Py_ssize_t place, PyObject *item)
{
    return item ? PyList_SetItem(list, place, item) : -1;
}

/* A list of numbers; NULL with an error. */
static PyObject *list_of(const uint64_t *numbers, Py_ssize_t count)
{
    PyObject *list = PyList_New(count);
    Py_ssize_t i;
    for (i = 0; list && i < count; i++)
        if (put(list, i, PyLong_FromUnsignedLongLong(numbers[i])) < 0)
            Py_CLEAR(list);
    return list;
}

/* Orders for qsort. */
static int compare_words(const void *one, const void *other)
{
    uint64_t a = *(const uint64_t *)one, b = *(const uint64_t *)other;
    return (a > b) - (a < b);
}

static int compare_halves(const void *one, const void *other)
{
    uint32_t a = *(const uint32_t *)one, b = *(const uint32_t *)other;
    return (a > b) - (a < b);
}

static uint64_t mix(uint64_t value)
{
    value ^= value >> 33;
    value *= UINT64_C(0xFF51AFD7ED558CCD);
    value ^= value >> 33;
    value *= UINT64_C(0xC4CEB9FE1A85EC53);
    return value ^ value >> 33;
}

/* ---- texts ------------------------------------------------------------------------------------------------------- */

#define SMALL 2048 /* characters that need no memory of their own */

typedef struct {
    Py_UCS4 *at;
    Py_ssize_t count;
    Py_UCS4 small[SMALL];
} Points;

/* The code points of a str; 0, or -1 with an error. Release them. */
static int points_of(PyObject *text, Points *points)
{
    points->at = points->small;
    points->count = is_so(PyUnicode_Check(text), PyExc_TypeError, "a str is needed") ? PyUnicode_GetLength(text) : -1;
    if (points->count < 0)
        return -1;
    if (points->count <= SMALL)
        return PyUnicode_AsUCS4(text, points->small, SMALL, 0) ? 0 : -1;
    points->at = PyUnicode_AsUCS4Copy(text);
    return points->at ? 0 : -1;
}

static void release(Points *points)
{
    if (points->at != points->small)
        PyMem_Free(points->at);
}

/* A str of code points, which may be lone surrogates. */
static PyObject *str_of(const Py_UCS4 *at, Py_ssize_t count)
{
    const uint16_t one = 1;
    int order = *(const unsigned char *)&one ? -1 : 1; /* that of this machine */
    return PyUnicode_DecodeUTF32((const char *)at, count * (Py_ssize_t)sizeof(Py_UCS4), "surrogatepass", &order);
}

/* ---- arguments --------------------------------------------------------------------------------------------------- */

/* What Python holds for us, in capsules. */
typedef struct Table Table;
typedef struct Strings Strings;
typedef struct Cut Cut;
typedef struct Lexicon Lexicon;

static const char TABLE[] = "scrapy_neardup characters", STRINGS[] = "scrapy_neardup strings";
static const char CUT[] = "scrapy_neardup cut text", LEXICON[] = "scrapy_neardup lexicon";

#define CAPSULE(type, name) (*va_arg(to, type **) = PyCapsule_GetPointer(*args, name)) != NULL
#define MOST_TEXTS 2

/* Reads arguments: one letter each, and where it goes. 0 with an error; then nothing is to be released. */
static int take(PyObject *const *args, Py_ssize_t given, const char *kinds, ...)
{
    Points *texts[MOST_TEXTS] = {NULL};
    Py_ssize_t *size, wanted = (Py_ssize_t)strlen(kinds);
    PyObject **object;
    int *truth, opened = 0, is_right = given == wanted;
    va_list to;
    if (!is_right)
        PyErr_Format(PyExc_TypeError, "%zd arguments are needed, not %zd", wanted, given);
    va_start(to, kinds);
    for (; is_right && *kinds; kinds++, args++) {
        switch (*kinds) {
        case 'T': is_right = CAPSULE(Table, TABLE); break;
        case 'S': is_right = CAPSULE(Strings, STRINGS); break;
        case 'C': is_right = CAPSULE(Cut, CUT); break;
        case 'X': is_right = CAPSULE(Lexicon, LEXICON); break;
        case 't': /* a text */
            texts[opened] = va_arg(to, Points *);
            is_right = points_of(*args, texts[opened]) == 0;
            opened += is_right;
            break;
        case 'n': /* a size */
            size = va_arg(to, Py_ssize_t *);
            *size = PyLong_AsSsize_t(*args);
            is_right = !PyErr_Occurred() && is_so(*size >= 0, PyExc_ValueError, "a number is out of its range");
            break;
        case 'w': /* 64 bits */
            *va_arg(to, uint64_t *) = PyLong_AsUnsignedLongLong(*args);
            is_right = !PyErr_Occurred();
            break;
        case 'd':
            *va_arg(to, double *) = PyFloat_AsDouble(*args);
            is_right = !PyErr_Occurred();
            break;
        case 'p': /* True or False */
            truth = va_arg(to, int *);
            *truth = PyObject_IsTrue(*args);
            is_right = *truth >= 0;
            break;
        default: /* any (o), a list (l), bytes (b), an array of bytes (a) */
            object = va_arg(to, PyObject **);
            *object = *args;
            is_right = is_so(*kinds == 'o' || (*kinds == 'l' && PyList_Check(*args)) ||
                                 (*kinds == 'b' && PyBytes_Check(*args)) || (*kinds == 'a' && PyByteArray_Check(*args)),
                             PyExc_TypeError, "an argument is of another type than is needed");
        }
    }
    va_end(to);
    while (!is_right && opened)
        release(texts[--opened]);
    return is_right;
}

#define TAKE(...) take(args, given, __VA_ARGS__)
