/* A text cut into sentences once, and all that cascade keeps of it: see text/sentences.py. No str is made of a sentence until
 * one is asked for. */
#include "_kernels.h"

static const char *CUT = "scrapy_neardup cut text";

/* A sentence with letters. */
typedef struct {
    Py_ssize_t first, last; /* its place in the normalised text */
    Py_ssize_t end;         /* behind its last letter, among the letters of all lines */
    Py_ssize_t unspaced;    /* letters of scripts without spaces between words */
    uint64_t hash;          /* of its letters */
} Line;

typedef struct {
    PyObject *table, *text; /* character table, and the text as it was given */
    int is_folded;          /* whether it must be brought into its normal spelling */
    Line *lines;
    Py_ssize_t count;
    Py_UCS4 *letters;
    uint64_t body; /* hash of all letters, if no line was left out */
} Cut;

static Py_ssize_t all_letters(const Cut *cut)
{
    return cut->count ? cut->lines[cut->count - 1].end : 0;
}

static const Py_UCS4 *letters_of(const Cut *cut, Py_ssize_t line)
{
    return cut->letters + (line ? cut->lines[line - 1].end : 0);
}

static Py_ssize_t length_of(const Cut *cut, Py_ssize_t line)
{
    return cut->lines[line].end - (line ? cut->lines[line - 1].end : 0);
}

/* ---- cutting ----------------------------------------------------------------------------------------------------- */

static void drop(Cut *cut)
{
    Py_XDECREF(cut->table);
    Py_XDECREF(cut->text);
    PyMem_Free(cut->lines);
    PyMem_Free(cut->letters);
    PyMem_Free(cut);
}

static void forget(PyObject *capsule)
{
    drop(PyCapsule_GetPointer(capsule, CUT));
}

/* A cut text without lines, with room for some; NULL with an error. */
static Cut *make(PyObject *table, PyObject *text, int is_folded, Py_ssize_t lines, Py_ssize_t letters)
{
    Cut *cut = PyMem_Calloc(1, sizeof *cut);
    if (cut) {
        cut->table = Py_NewRef(table);
        cut->text = Py_NewRef(text);
        cut->is_folded = is_folded;
        cut->lines = PyMem_Malloc((size_t)lines * sizeof *cut->lines);
        cut->letters = PyMem_Malloc((size_t)letters * sizeof *cut->letters);
        if (cut->lines && cut->letters)
            return cut;
        drop(cut);
    }
    PyErr_NoMemory();
    return NULL;
}

/* The capsule, the number of letters, and their hash. */
static PyObject *wrap(Cut *cut)
{
    PyObject *capsule = PyCapsule_New(cut, CUT, forget);
    if (!capsule) {
        drop(cut);
        return NULL;
    }
    return Py_BuildValue("NnK", capsule, all_letters(cut), (unsigned long long)cut->body);
}

/* Adds a line if it has letters, which are in place; 0, or -1 with an error. */
static int add_line(Cut *cut, Py_ssize_t *room, const Line *line)
{
    if (line->end == all_letters(cut))
        return 0;
    if (cut->count == *room) {
        Line *larger = PyMem_Realloc(cut->lines, (size_t)(*room *= 2) * sizeof *larger);
        if (!larger) {
            PyErr_NoMemory();
            return -1;
        }
        cut->lines = larger;
    }
    cut->lines[cut->count++] = *line;
    return 0;
}

/* Reads a sentence up to its end mark, and puts its letters behind those of all before. */
static void read_line(Cut *cut, Line *line, const Table *table, const Points *points)
{
    Py_ssize_t i, count = points->count, end = line->end, unspaced = 0;
    for (i = line->first; i < count; i++) {
        Py_UCS4 c = points->at[i];
        uint32_t entry = ENTRY(table, c);
        cut->letters[end] = c;
        end += (entry & LETTER) != 0;
        unspaced += (entry & (LETTER | UNSPACED)) == (LETTER | UNSPACED);
        if (c == '.' ? i + 1 < count && ENTRY(table, points->at[i + 1]) & ENDING : entry & MARK)
            break;
    }
    line->last = i;
    line->end = end;
    line->unspaced = unspaced;
}

/* Cuts a text whose blocks of the table are all there, as ``sentences`` does; 0, or -1 with an error. */
static int cut_lines_of(Cut *cut, Py_ssize_t room, const Table *table, const Points *points)
{
    Py_ssize_t i, count = points->count;
    Line line = {0};
    for (i = 0; i < count; i++) {
        line.first = i;
        read_line(cut, &line, table, points);
        i = line.last;
        while (i + 1 < count && ENTRY(table, points->at[i + 1]) & MARK)
            i++;
        while (i + 1 < count && ENTRY(table, points->at[i + 1]) & CLOSING)
            i++;
        while (line.first < line.last && ENTRY(table, points->at[line.first]) & SPACE)
            line.first++;
        while (line.first < line.last && ENTRY(table, points->at[line.last - 1]) & SPACE)
            line.last--;
        if (add_line(cut, &room, &line) < 0)
            return -1;
    }
    return 0;
}

/* Hashes all lines, and all letters together; 0, or -1 with an error. */
static int hash_lines(Cut *cut, const Key *key)
{
    Text *texts = PyMem_Malloc((size_t)(cut->count + 1) * sizeof *texts);
    uint8_t *bytes = PyMem_Malloc((size_t)all_letters(cut) * 4), *to = bytes;
    Py_ssize_t i;
    int has_room = texts && bytes;
    if (has_room) {
        for (i = 0; i < cut->count; i++) {
            texts[i + 1].at = to;
            texts[i + 1].end = to = encode(letters_of(cut, i), length_of(cut, i), to);
        }
        texts[0] = (Text){bytes, to, 0};
        hash_each(key, texts, cut->count + 1);
        for (i = 0; i < cut->count; i++)
            cut->lines[i].hash = texts[i + 1].hash;
        cut->body = texts[0].hash;
    }
    PyMem_Free(bytes);
    PyMem_Free(texts);
    if (has_room)
        return 0;
    PyErr_NoMemory();
    return -1;
}

#define LINES 64 /* room at first */

KERNEL(cut_text)
{
    Key key;
    Points points;
    Table *table;
    Cut *cut = NULL;
    int is_plain = SAME, is_folded;
    if (!has(given, 4) || key_of(args[2], &key) < 0 || (is_folded = PyObject_IsTrue(args[3])) < 0 ||
        !(table = is_folded ? open_text(args, &points) : open_known(args, &points)))
        return NULL;
    if (is_folded)
        is_plain = fold(table, &points);
    if (is_plain > NOT_PLAIN)
        cut = make(args[0], args[1], is_plain == CHANGED, LINES, points.count + 1);
    if (cut && (cut_lines_of(cut, LINES, table, &points) < 0 || hash_lines(cut, &key) < 0)) {
        drop(cut);
        cut = NULL;
    }
    release(&points);
    if (!cut)
        return is_plain == NOT_PLAIN ? Py_NewRef(Py_None) : NULL;
    return wrap(cut);
}

static const Cut *cut_from(PyObject *capsule)
{
    return PyCapsule_GetPointer(capsule, CUT);
}

KERNEL(cut_without)
{
    const Cut *cut;
    Cut *left = NULL;
    uint32_t *halves;
    Py_ssize_t i, count;
    if (!has(given, 2) || !(cut = cut_from(args[0])) || !is_list(args[1]))
        return NULL;
    count = PyList_Size(args[1]);
    if (!(halves = PyMem_Malloc((size_t)count * sizeof *halves)))
        return PyErr_NoMemory();
    for (i = 0; i < count; i++)
        halves[i] = (uint32_t)PyLong_AsUnsignedLongLongMask(PyList_GetItem(args[1], i));
    if (!PyErr_Occurred())
        left = make(cut->table, cut->text, cut->is_folded, cut->count, all_letters(cut));
    qsort(halves, (size_t)count, sizeof *halves, compare_halves);
    for (i = 0; left && i < cut->count; i++) {
        Py_ssize_t end = all_letters(left), length = length_of(cut, i);
        uint32_t half = (uint32_t)cut->lines[i].hash;
        if (bsearch(&half, halves, (size_t)count, sizeof half, compare_halves))
            continue;
        memcpy(left->letters + end, letters_of(cut, i), (size_t)length * sizeof *cut->letters);
        left->lines[left->count] = cut->lines[i];
        left->lines[left->count++].end = end + length;
    }
    PyMem_Free(halves);
    if (left && left->count == cut->count) {
        drop(left);
        return Py_NewRef(Py_None);
    }
    return left ? wrap(left) : NULL;
}

/* ---- strings and hashes ------------------------------------------------------------------------------------------ */

KERNEL(cut_sentences)
{
    const Cut *cut;
    Points points;
    Table *table;
    Py_UCS4 *joined;
    Py_ssize_t i, size = 0;
    PyObject *found = NULL;
    if (!has(given, 1) || !(cut = cut_from(args[0])) ||
        !(table = open_known((PyObject *[]){cut->table, cut->text}, &points)))
        return NULL;
    joined = PyMem_Malloc((size_t)(points.count + 1) * sizeof *joined);
    if (!joined)
        PyErr_NoMemory();
    if (joined && (!cut->is_folded || fold(table, &points) >= 0)) {
        for (i = 0; i < cut->count; i++) { /* the end mark of a sentence has left room for the break */
            Py_ssize_t length = cut->lines[i].last - cut->lines[i].first;
            if (i)
                joined[size++] = '\n';
            memcpy(joined + size, points.at + cut->lines[i].first, (size_t)length * sizeof *joined);
            size += length;
        }
        found = str_of(joined, size);
    }
    PyMem_Free(joined);
    release(&points);
    return found;
}

KERNEL(cut_lines)
{
    const Cut *cut;
    PyObject *list;
    Py_ssize_t i;
    if (!has(given, 1) || !(cut = cut_from(args[0])))
        return NULL;
    list = PyList_New(cut->count);
    for (i = 0; list && i < cut->count; i++)
        if (put(list, i, str_of(letters_of(cut, i), length_of(cut, i))) < 0)
            Py_CLEAR(list);
    return list;
}

static int is_short(const Cut *cut, Py_ssize_t line, Py_ssize_t least)
{
    return line >= 0 && line < cut->count && length_of(cut, line) < least;
}

KERNEL(cut_hashes)
{
    const Cut *cut;
    PyObject *found;
    uint32_t *halves;
    Py_ssize_t i, least, count = 0;
    if (!has(given, 2) || !(cut = cut_from(args[0])) || size_of(args[1], 0, PY_SSIZE_T_MAX, &least) < 0 ||
        !(found = PyByteArray_FromStringAndSize(NULL, cut->count * 4)))
        return NULL;
    halves = (uint32_t *)(void *)PyByteArray_AsString(found);
    for (i = 0; i < cut->count; i++) {
        halves[count] = (uint32_t)cut->lines[i].hash;
        count += !is_short(cut, i, least) || is_short(cut, i - 1, least) || is_short(cut, i + 1, least);
    }
    if (count < cut->count && PyByteArray_Resize(found, count * 4) < 0)
        Py_CLEAR(found);
    return found;
}

/* ---- the sketch -------------------------------------------------------------------------------------------------- */

/* Which of two lines comes first: the longer one, then in order of characters; 0 for equal ones. */
static int compare_lines(const Cut *cut, Py_ssize_t one, Py_ssize_t other)
{
    const Py_UCS4 *a = letters_of(cut, one), *b = letters_of(cut, other);
    Py_ssize_t i, length = length_of(cut, one), others = length_of(cut, other);
    if (length != others)
        return length > others ? -1 : 1;
    for (i = 0; i < length; i++)
        if (a[i] != b[i])
            return a[i] < b[i] ? -1 : 1;
    return 0;
}

#define MOST_LONGEST 255

/* The hashes of the longest different lines, the longest first. */
static PyObject *longest_of(const Cut *cut, Py_ssize_t at_least, Py_ssize_t most)
{
    Py_ssize_t best[MOST_LONGEST], i, held = 0;
    uint64_t hashes[MOST_LONGEST];
    for (i = 0; i < cut->count; i++) {
        Py_ssize_t place = held;
        if (length_of(cut, i) < at_least)
            continue;
        while (place && compare_lines(cut, i, best[place - 1]) < 0)
            place--;
        if (place == most || (place && !compare_lines(cut, i, best[place - 1])))
            continue;
        held += held < most;
        memmove(best + place + 1, best + place, (size_t)(held - 1 - place) * sizeof *best);
        best[place] = i;
    }
    for (i = 0; i < held; i++)
        hashes[i] = cut->lines[best[i]].hash;
    return list_of(hashes, held);
}

/* Packs the lowest 16 bits, big-endian; returns where the next ones go. */
static char *put_half(uint64_t value, char *to)
{
    *to++ = (char)(value >> 8);
    *to++ = (char)value;
    return to;
}

#define MOST_ENDS 255

/* 16 bits of the hash of each of the first and last lines, or of all. */
static PyObject *ends_of(const Cut *cut, Py_ssize_t first, Py_ssize_t last)
{
    char packed[4 * MOST_ENDS], *to = packed;
    Py_ssize_t i;
    for (i = 0; i < cut->count; i++)
        if (first + last >= cut->count || i < first || i >= cut->count - last)
            to = put_half(cut->lines[i].hash, to);
    return PyBytes_FromStringAndSize(packed, to - packed);
}

static int is_digit(Py_UCS4 c)
{
    return c >= '0' && c <= '9'; /* the normal spelling has no others */
}

#define MOST_NUMBERS 255

/* 16 bits of the sum of the hashes of all different numbers in lines, and of each of the smallest ones. */
static PyObject *numbers_of(const Cut *cut, const Grams *grams, Py_ssize_t most)
{
    uint64_t sum = 0, *found = PyMem_Malloc((size_t)(all_letters(cut) + 1) * sizeof *found);
    Py_ssize_t line, i, count = 0, kept = 0;
    char packed[2 * MOST_NUMBERS + 2], *at = packed + 2;
    if (!found)
        return PyErr_NoMemory();
    for (line = 0; line < cut->count; line++) {
        const Py_UCS4 *letters = letters_of(cut, line);
        Py_ssize_t first, length = length_of(cut, line);
        if (cut->lines[line].unspaced == length)
            continue; /* a digit is none of these letters */
        for (first = 0; first < length; first = i + 1) {
            for (i = first; i < length && is_digit(letters[i]); i++)
                ;
            if (i > first)
                found[count++] = gram_of(letters + first, i - first, grams->offset, grams->base);
        }
    }
    qsort(found, (size_t)count, sizeof *found, compare_words);
    for (i = 0; i < count; i++) {
        if (i && found[i] == found[i - 1])
            continue;
        sum += found[i];
        if (kept++ < most)
            at = put_half(found[i] >> 48, at);
    }
    PyMem_Free(found);
    put_half(sum >> 48, packed);
    return PyBytes_FromStringAndSize(packed, count ? at - packed : 0);
}

enum { N, BINS, BITS, OPENING, OPENING_BINS, OPENING_BITS, KEY_N, KEY_N_SPACED, KEYS, AT_LEAST, LONGEST, NUMBERS, FIRST, LAST };

static const Py_ssize_t LIMITS[][2] = {
    {1, PY_SSIZE_T_MAX}, {8, MOST_BINS},      {1, 8}, {0, PY_SSIZE_T_MAX}, {8, MOST_BINS},
    {1, 8},              {1, PY_SSIZE_T_MAX}, {1, PY_SSIZE_T_MAX}, {1, MOST_KEYS}, {0, PY_SSIZE_T_MAX},
    {1, MOST_LONGEST},   {0, MOST_NUMBERS},   {0, MOST_ENDS}, {0, MOST_ENDS},
};

/* Number, sketch, opening and keys of n-grams: the polynomials are made once. 0, or -1 with an error. */
static int shingle(const Cut *cut, const Py_ssize_t *form, Grams *grams, Py_ssize_t *count, PyObject **found)
{
    Py_ssize_t i, all = all_letters(cut), unspaced = 0;
    for (i = 0; i < cut->count; i++)
        unspaced += cut->lines[i].unspaced;
    hash_n_grams(grams, form[OPENING], form[N]);
    found[1] = sketch_of(grams, form[OPENING_BINS], form[OPENING_BITS]);
    hash_n_grams(grams, all, form[N]);
    found[0] = found[1] ? sketch_of(grams, form[BINS], form[BITS]) : NULL;
    if (!found[0] || (*count = different(grams)) < 0)
        return -1;
    /* a fiftieth of letters without spaces: see ``has_unspaced`` */
    hash_n_grams(grams, all, unspaced && 50 * unspaced >= all ? form[KEY_N] : form[KEY_N_SPACED]);
    found[2] = smallest_of(grams, form[KEYS]);
    return found[2] ? 0 : -1;
}

KERNEL(cut_sketch)
{
    Grams grams;
    const Cut *cut;
    Py_ssize_t form[LAST + 1], i, count;
    PyObject *parts[6] = {NULL}, *found = NULL;
    if (!has(given, 3 + LAST + 1) || !(cut = cut_from(args[0])) || word_of(args[1], &grams.offset) < 0 ||
        word_of(args[2], &grams.base) < 0)
        return NULL;
    for (i = 0; i <= LAST; i++)
        if (size_of(args[3 + i], LIMITS[i][0], LIMITS[i][1], &form[i]) < 0)
            return NULL;
    if (form[BINS] & (form[BINS] - 1) || form[BITS] & (form[BITS] - 1) || form[OPENING_BINS] & (form[OPENING_BINS] - 1) ||
        form[OPENING_BITS] & (form[OPENING_BITS] - 1)) {
        PyErr_SetString(PyExc_ValueError, "bins and bits must be powers of two");
        return NULL;
    }
    if (begin_grams(&grams, cut->letters, all_letters(cut)) < 0)
        return NULL;
    if (shingle(cut, form, &grams, &count, parts) == 0 && (parts[3] = longest_of(cut, form[AT_LEAST], form[LONGEST])) &&
        (parts[4] = numbers_of(cut, &grams, form[NUMBERS])) && (parts[5] = ends_of(cut, form[FIRST], form[LAST])))
        found = Py_BuildValue("nOOOOOO", count, parts[0], parts[1], parts[2], parts[3], parts[4], parts[5]);
    for (i = 0; i < 6; i++)
        Py_XDECREF(parts[i]);
    end_grams(&grams);
    return found;
}

/* ---- the words of a title ---------------------------------------------------------------------------------------- */

/* Reads a word: its hash as one n-gram in the upper half, then its length. 0 if it has spaces around it, or with an error. */
static uint64_t read_word(PyObject *table, PyObject *word, const Grams *grams, uint64_t mask)
{
    Points points;
    Py_ssize_t i, unspaced = 0;
    uint64_t found = 0;
    Table *known = open_known((PyObject *[]){table, word}, &points);
    if (!known)
        return 0;
    for (i = 0; i < points.count; i++)
        unspaced += (ENTRY(known, points.at[i]) & UNSPACED) != 0;
    if (unspaced && 50 * unspaced >= points.count) /* see ``has_unspaced`` */
        found = (gram_of(points.at, points.count, grams->offset, grams->base) & mask) << 32 |
                (uint64_t)(points.count < SMALL ? points.count : SMALL) << 8;
    release(&points);
    return found;
}

/* Cut text, words, offset, base, bits of a hash, a flag for words in the text, longest word to look for, number of words. */
KERNEL(cut_title)
{
    const Cut *cut;
    Strings strings;
    Grams grams;
    uint64_t mask, flag, found = 0, words[MOST_STRINGS];
    Py_ssize_t i, longest, most, count = 0;
    char packed[3 * MOST_STRINGS], *at = packed;
    if (!has(given, 8) || !(cut = cut_from(args[0])) || !is_list(args[1]) || strings_of(args[1], &strings) < 0 ||
        word_of(args[2], &grams.offset) < 0 || word_of(args[3], &grams.base) < 0 || word_of(args[4], &mask) < 0 ||
        word_of(args[5], &flag) < 0 || size_of(args[6], 2, MOST_LETTERS, &longest) < 0 ||
        size_of(args[7], 0, PY_SSIZE_T_MAX, &most) < 0)
        return NULL;
    for (i = 0; i < cut->count; i++)
        found = look_for(&strings, letters_of(cut, i), length_of(cut, i), found, 0);
    for (i = 0; i < strings.count; i++) {
        uint64_t word = read_word(cut->table, PyList_GetItem(args[1], i), &grams, mask & UINT32_MAX);
        Py_ssize_t length = (Py_ssize_t)(word >> 8 & 0xFFFFFF);
        if (!word)
            return PyErr_Occurred() ? NULL : Py_NewRef(Py_None);
        if (length > 1)
            words[count++] = word | (length <= longest && found >> i & 1);
    }
    qsort(words, (size_t)count, sizeof *words, compare_words);
    for (i = 0; i < count && most; i++) {
        uint64_t hash = words[i] >> 32 | (words[i] & 1 ? flag : 0);
        if (i + 1 < count && words[i + 1] >> 32 == words[i] >> 32)
            continue; /* of two words with one hash the longer one counts, then one in the text */
        *at++ = (char)(hash >> 16);
        at = put_half(hash, at);
        most--;
    }
    return PyBytes_FromStringAndSize(packed, at - packed);
}

#define MOST_ASKED 256

/* Hashes to look for among many others. Bits rule out nearly all of these. */
typedef struct {
    uint64_t values[MOST_ASKED], bits[64];
    Py_ssize_t count;
} Sought;

static uint64_t *bits_for(Sought *sought, uint64_t value, uint64_t *bit)
{
    *bit = UINT64_C(1) << (value >> 2 & 63);
    return &sought->bits[value >> 8 & 63];
}

/* Reads a list; 0, or -1 with an error. */
static int seek(PyObject *list, Sought *sought)
{
    Py_ssize_t i;
    uint64_t bit;
    memset(sought, 0, sizeof *sought);
    sought->count = PyList_Check(list) ? PyList_Size(list) : MOST_ASKED + 1;
    if (sought->count > MOST_ASKED) {
        PyErr_SetString(PyExc_ValueError, "a list of at most 256 numbers is needed");
        return -1;
    }
    for (i = 0; i < sought->count; i++) {
        if (word_of(PyList_GetItem(list, i), &sought->values[i]) < 0)
            return -1;
        *bits_for(sought, sought->values[i], &bit) |= bit;
    }
    return 0;
}

KERNEL(cut_lacking)
{
    const Cut *cut;
    Grams grams;
    Sought sought;
    Py_ssize_t n, longest, i, k;
    uint64_t mask, bit;
    PyObject *list;
    if (!has(given, 7) || !(cut = cut_from(args[0])) || size_of(args[1], 1, PY_SSIZE_T_MAX, &n) < 0 ||
        size_of(args[2], n, PY_SSIZE_T_MAX, &longest) < 0 || word_of(args[3], &grams.offset) < 0 ||
        word_of(args[4], &grams.base) < 0 || word_of(args[5], &mask) < 0 || seek(args[6], &sought) < 0 ||
        begin_grams(&grams, cut->letters, all_letters(cut)) < 0)
        return NULL;
    for (; sought.count && n <= longest && n <= grams.length; n++) {
        hash_n_grams(&grams, grams.length, n);
        for (i = 0; i < grams.count; i++) {
            uint64_t value = grams.at[i] & mask;
            if (!(*bits_for(&sought, value, &bit) & bit))
                continue;
            for (k = sought.count; k--;)
                if (sought.values[k] == value)
                    sought.values[k] = sought.values[--sought.count];
        }
    }
    list = list_of(sought.values, sought.count);
    end_grams(&grams);
    return list;
}
