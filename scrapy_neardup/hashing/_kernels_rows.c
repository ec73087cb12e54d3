/* Rows of a state: see hashing/width.py, state/record.py, state/tally.py and state/tally.py. */
#include "_kernels.h"

#define MOST_BEFORE 16 /* bytes that stand before a key, at most */

/* The last bytes of a number, the first one first; 0, or -1 with an error. */
static int put_key(PyObject *number, Py_ssize_t size, char *at)
{
    uint64_t key;
    if (word_of(number, &key) < 0)
        return -1;
    for (at += size; size--; key >>= 8)
        *--at = (char)(key & 0xFF);
    return 0;
}

/* Numbers in a tuple or a list, bytes of each that are kept, and what stands before them: see ``pack_each``. */
KERNEL(packed_keys)
{
    char row[MOST_BEFORE + 8], *before;
    Py_ssize_t size, length, count, i;
    PyObject *keys, *found;
    if (!has(given, 3) || size_of(args[1], 1, 8, &size) < 0 || PyBytes_AsStringAndSize(args[2], &before, &length) < 0)
        return NULL;
    if (length > MOST_BEFORE) {
        PyErr_SetString(PyExc_ValueError, "there are too many bytes before a key");
        return NULL;
    }
    keys = PySequence_Tuple(args[0]);
    if (!keys)
        return NULL;
    count = PyTuple_Size(keys);
    memcpy(row, before, (size_t)length);
    found = PyList_New(count);
    for (i = 0; found && i < count; i++) {
        PyObject *one = NULL;
        if (put_key(PyTuple_GetItem(keys, i), size, row + length) == 0)
            one = PyBytes_FromStringAndSize(row, length + size);
        if (!one || PyList_SetItem(found, i, one) < 0)
            Py_CLEAR(found);
    }
    Py_DECREF(keys);
    return found;
}

/* Flags, keys, bytes of a key, URL, what stands behind that, sketch: see ``Record.pack``. */
KERNEL(packed_record)
{
    char *at, *parts[3];
    Py_ssize_t flags, size, count, i, lengths[3], length;
    PyObject *keys = NULL, *url = NULL, *found = NULL;
    if (!has(given, 6) || size_of(args[0], 0, 255, &flags) < 0 || size_of(args[2], 1, 8, &size) < 0 ||
        PyBytes_AsStringAndSize(args[4], &parts[1], &lengths[1]) < 0 ||
        PyBytes_AsStringAndSize(args[5], &parts[2], &lengths[2]) < 0)
        return NULL;
    keys = PySequence_Tuple(args[1]);
    url = keys ? PyUnicode_AsEncodedString(args[3], "utf-8", "surrogatepass") : NULL;
    if (!url || PyBytes_AsStringAndSize(url, &parts[0], &lengths[0]) < 0)
        goto done;
    count = PyTuple_Size(keys);
    if (count > 255 || lengths[0] > 65535) {
        PyErr_SetString(PyExc_ValueError, "a record has no room for that");
        goto done;
    }
    length = 4 + count * size + lengths[0] + lengths[1];
    if (lengths[2] > PY_SSIZE_T_MAX - length) {
        PyErr_NoMemory();
        goto done;
    }
    found = PyBytes_FromStringAndSize(NULL, length + lengths[2]);
    if (!found)
        goto done;
    at = PyBytes_AsString(found);
    *at++ = (char)flags;
    *at++ = (char)count;
    *at++ = (char)(lengths[0] >> 8);
    *at++ = (char)(lengths[0] & 0xFF);
    for (i = 0; i < count; i++, at += size)
        if (put_key(PyTuple_GetItem(keys, i), size, at) < 0) {
            Py_CLEAR(found);
            goto done;
        }
    for (i = 0; i < 3; at += lengths[i++])
        memcpy(at, parts[i], (size_t)lengths[i]);
done:
    Py_XDECREF(keys);
    Py_XDECREF(url);
    return found;
}

/* The last bytes of a key as a number, 8 at most, the first one the highest. */
static uint64_t id_of(const char *key, Py_ssize_t length)
{
    uint64_t id = 0;
    Py_ssize_t i;
    for (i = length > 8 ? length - 8 : 0; i < length; i++)
        id = id << 8 | (uint8_t)key[i];
    return id;
}

/* Rows, what hashes bytes, first bytes of those without a share, the key of one more, first bytes of those of a page,
 * of which the first is that of its record, the largest id: see ``of_rows``. */
KERNEL(shares_of_rows)
{
    char *without, *but, *of_pages, *at;
    Py_ssize_t few, length, pages, size, place = 0;
    uint64_t largest, hash, total = 0, added = 0;
    PyObject *key, *value, *unsure;
    int failed;
    if (!has(given, 6) || PyBytes_AsStringAndSize(args[2], &without, &few) < 0 ||
        PyBytes_AsStringAndSize(args[3], &but, &length) < 0 || PyBytes_AsStringAndSize(args[4], &of_pages, &pages) < 0 ||
        word_of(args[5], &largest) < 0)
        return NULL;
    if (!PyDict_Check(args[0])) {
        PyErr_SetString(PyExc_TypeError, "a dict is needed");
        return NULL;
    }
    unsure = PyList_New(0);
    if (!unsure)
        return NULL;
    while (PyDict_Next(args[0], &place, &key, &value)) {
        PyObject *row, *number;
        if (PyBytes_AsStringAndSize(key, &at, &size) < 0)
            break;
        if (memchr(without, *at, (size_t)few) || (size == length && !memcmp(at, but, (size_t)size)))
            continue;
        row = Py_NewRef(key);
        PyBytes_Concat(&row, value);
        number = row ? PyObject_CallFunctionObjArgs(args[1], row, NULL) : NULL;
        Py_XDECREF(row);
        failed = !number || word_of(number, &hash) < 0;
        Py_XDECREF(number);
        if (failed)
            break;
        total += hash + (uint64_t)size;
        if (memchr(of_pages, *at, (size_t)pages) && id_of(at, size) > largest)
            added += *at == *of_pages;
        else if (PyList_Append(unsure, key) < 0)
            break;
    }
    if (PyErr_Occurred())
        Py_CLEAR(unsure);
    return unsure ? Py_BuildValue("KKN", (unsigned long long)total, (unsigned long long)added, unsure) : NULL;
}

/* The checksum of zlib and of gzip, half a byte at a time. */
static uint32_t checksum_of(const char *at, size_t count)
{
    static const uint32_t SUMS[16] = {
        0x00000000, 0x1DB71064, 0x3B6E20C8, 0x26D930AC, 0x76DC4190, 0x6B6B51F4, 0x4DB26158, 0x5005713C,
        0xEDB88320, 0xF00F9344, 0xD6D6A3E8, 0xCB61B38C, 0x9B64C2B0, 0x86D3D2D4, 0xA00AE278, 0xBDBDF21C,
    };
    uint32_t sum = 0xFFFFFFFF;
    while (count--) {
        sum ^= (uint8_t)*at++;
        sum = sum >> 4 ^ SUMS[sum & 15];
        sum = sum >> 4 ^ SUMS[sum & 15];
    }
    return ~sum;
}

/* A number in so many digits at least, of a base of 16 at most; behind it. */
static char *put_number(char *at, uint64_t number, unsigned base, int digits)
{
    char found[20];
    int count = 0;
    for (; number || count < digits; number /= base)
        found[count++] = "0123456789abcdef"[number % base];
    while (count)
        *at++ = found[--count];
    return at;
}

static char *put_bytes(char *at, const char *bytes, Py_ssize_t count)
{
    memcpy(at, bytes, (size_t)count);
    return at + count;
}

/* Kind, the five of a tally, rest, length: a line of the witness. */
KERNEL(witness_line)
{
    char *kind, *state, *rest, *line, *at;
    uint64_t sequence, pages, total;
    Py_ssize_t kinds, states, rests, length;
    PyObject *found;
    int closed;
    if (!has(given, 8) || PyBytes_AsStringAndSize(args[0], &kind, &kinds) < 0 ||
        PyBytes_AsStringAndSize(args[1], &state, &states) < 0 || word_of(args[2], &sequence) < 0 ||
        word_of(args[3], &pages) < 0 || word_of(args[4], &total) < 0 || (closed = PyObject_IsTrue(args[5])) < 0 ||
        PyBytes_AsStringAndSize(args[6], &rest, &rests) < 0 || size_of(args[7], 1, 4096, &length) < 0)
        return NULL;
    if (states != 8 || kinds > length || rests > length || kinds + rests + 100 > length) { /* the others have 89 */
        PyErr_SetString(PyExc_ValueError, "a line of the witness has no room for that");
        return NULL;
    }
    found = PyBytes_FromStringAndSize(NULL, length);
    if (!found)
        return NULL;
    line = PyBytes_AsString(found);
    memset(line, ' ', (size_t)length);
    at = put_bytes(line, kind, kinds);
    at = put_number(at + 1, id_of(state, 8), 16, 16);
    at = put_number(at + 1, sequence, 10, 1);
    at = put_number(at + 1, pages, 10, 1);
    at = put_number(at + 1, total, 16, 16);
    at = put_number(at + 1, (uint64_t)closed, 10, 1);
    at = put_bytes(at + 1, rest, rests);
    put_number(at + 1, checksum_of(line, (size_t)(at - line)), 16, 8);
    line[length - 1] = '\n';
    return found;
}
