/* A text that is cut into sentences once, for all that is asked of it: see text/sentences.py, which says what each function
 * does. No str is made of a sentence until one is asked for. */
#include "_kernels.h"

static const char *CUT = "scrapy_neardup cut text";

typedef struct {
    Py_ssize_t first, last; /* where its sentence stands in the text, in the one spelling */
    Py_ssize_t end;         /* behind its last letter, among those of all lines */
    Py_ssize_t unspaced;    /* letters of scripts that put no spaces between words */
    uint64_t hash;          /* of its letters */
} Line;

/* Lines are those that have letters. */
typedef struct {
    PyObject *table, *text; /* what is known of characters, and the text as it was given */
    int is_folded;          /* 0: it was in the one spelling already */
    Line *lines;
    Py_ssize_t count;
    Py_UCS4 *letters;
} Cut;

static Py_ssize_t all_letters(const Cut *cut)
{
    return cut->count ? cut->lines[cut->count - 1].end : 0;
}

/* Where the letters of a line begin, among those of all lines. */
static Py_ssize_t start_of(const Cut *cut, Py_ssize_t line)
{
    return line ? cut->lines[line - 1].end : 0;
}

static Py_ssize_t length_of(const Cut *cut, Py_ssize_t line)
{
    return cut->lines[line].end - start_of(cut, line);
}

/* ---- making one ------------------------------------------------------------------------------------------------ */

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

/* One without lines, that has room for so many, and for so many letters; NULL with an error. */
static Cut *made(PyObject *table, PyObject *text, int is_folded, Py_ssize_t lines, Py_ssize_t letters)
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

/* As it is passed on, with the number of its letters. */
static PyObject *handed(Cut *cut)
{
    PyObject *capsule = PyCapsule_New(cut, CUT, forget);
    if (!capsule) {
        drop(cut);
        return NULL;
    }
    return Py_BuildValue("Nn", capsule, all_letters(cut));
}

/* Adds a line if it has letters, which are there; 0, or -1 with an error. */
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

/* Reads a sentence up to what ends it, and puts its letters behind those of all before. */
static void read_line(Cut *cut, Line *line, const Table *table, const Points *points)
{
    Py_ssize_t i, count = points->count, end = line->end, unspaced = 0;
    for (i = line->first; i < count; i++) {
        Py_UCS4 c = points->at[i];
        uint32_t told = TOLD(table, c);
        cut->letters[end] = c;
        end += (told & LETTER) != 0;
        unspaced += (told & (LETTER | UNSPACED)) == (LETTER | UNSPACED);
        if (c == '.' ? i + 1 < count && TOLD(table, points->at[i + 1]) & ENDING : told & MARK)
            break;
    }
    line->last = i;
    line->end = end;
    line->unspaced = unspaced;
}

/* Cuts a text of which all blocks of the table are there: see ``sentences`` in text/sentences.py; 0, or -1 with an error. */
static int cut_up(Cut *cut, Py_ssize_t room, const Table *table, const Points *points)
{
    Py_ssize_t i, count = points->count;
    Line line = {0};
    for (i = 0; i < count; i++) {
        line.first = i;
        read_line(cut, &line, table, points);
        i = line.last;
        while (i + 1 < count && TOLD(table, points->at[i + 1]) & MARK)
            i++;
        while (i + 1 < count && TOLD(table, points->at[i + 1]) & CLOSING)
            i++;
        while (line.first < line.last && TOLD(table, points->at[line.first]) & SPACE)
            line.first++;
        while (line.first < line.last && TOLD(table, points->at[line.last - 1]) & SPACE)
            line.last--;
        if (add_line(cut, &room, &line) < 0)
            return -1;
    }
    return 0;
}

/* Hashes all lines; 0, or -1 with an error. */
static int hash_lines(Cut *cut, const Key *key)
{
    Text *texts = PyMem_Malloc((size_t)cut->count * sizeof *texts);
    Py_ssize_t i;
    if (!texts) {
        PyErr_NoMemory();
        return -1;
    }
    for (i = 0; i < cut->count; i++)
        texts[i] = (Text){cut->letters + start_of(cut, i), length_of(cut, i), 0};
    hash_each(key, texts, cut->count);
    for (i = 0; i < cut->count; i++)
        cut->lines[i].hash = texts[i].hash;
    PyMem_Free(texts);
    return 0;
}

#define LINES 64 /* that there is room for at first */

/* Characters, text, key, and whether it is to be brought into the one spelling: None if that takes more to tell. */
KERNEL(cut_text)
{
    Key key;
    Points points;
    Table *table;
    Cut *cut = NULL;
    int is_plain = SAME, is_folded;
    if (!has(given, 4) || key_of(args[2], &key) < 0 || (is_folded = PyObject_IsTrue(args[3])) < 0 ||
        !(table = is_folded ? taken(args, &points) : opened(args, 2, &points)))
        return NULL;
    if (is_folded)
        is_plain = fold(table, &points);
    if (is_plain > NOT_PLAIN)
        cut = made(args[0], args[1], is_plain == CHANGED, LINES, points.count + 1);
    if (cut && (cut_up(cut, LINES, table, &points) < 0 || hash_lines(cut, &key) < 0)) {
        drop(cut);
        cut = NULL;
    }
    release(&points);
    if (!cut)
        return is_plain == NOT_PLAIN ? Py_NewRef(Py_None) : NULL;
    return handed(cut);
}

static const Cut *cut_from(PyObject *capsule)
{
    return PyCapsule_GetPointer(capsule, CUT);
}

static int in_order(const void *one, const void *other)
{
    uint32_t a = *(const uint32_t *)one, b = *(const uint32_t *)other;
    return (a > b) - (a < b);
}

/* The numbers of a list, as 32 bits each and in order; NULL with an error. Release them. */
static uint32_t *halves_of(PyObject *list, Py_ssize_t *count)
{
    uint32_t *halves;
    Py_ssize_t i;
    if (!is_list(list))
        return NULL;
    *count = PyList_Size(list);
    halves = PyMem_Malloc((size_t)*count * sizeof *halves);
    if (!halves) {
        PyErr_NoMemory();
        return NULL;
    }
    for (i = 0; i < *count; i++)
        halves[i] = (uint32_t)PyLong_AsUnsignedLongLongMask(PyList_GetItem(list, i));
    if (PyErr_Occurred()) {
        PyMem_Free(halves);
        return NULL;
    }
    qsort(halves, (size_t)*count, sizeof *halves, in_order);
    return halves;
}

/* Cut text, a list of the lower halves of hashes: the text without lines that have one of these, or None if all stay. */
KERNEL(cut_without)
{
    const Cut *cut;
    Cut *left = NULL;
    uint32_t *halves;
    Py_ssize_t i, count;
    if (!has(given, 2) || !(cut = cut_from(args[0])) || !(halves = halves_of(args[1], &count)))
        return NULL;
    left = made(cut->table, cut->text, cut->is_folded, cut->count, all_letters(cut));
    for (i = 0; left && i < cut->count; i++) {
        Py_ssize_t end = all_letters(left), length = length_of(cut, i);
        uint32_t half = (uint32_t)cut->lines[i].hash;
        if (bsearch(&half, halves, (size_t)count, sizeof half, in_order))
            continue;
        memcpy(left->letters + end, cut->letters + start_of(cut, i), (size_t)length * sizeof *cut->letters);
        left->lines[left->count] = cut->lines[i];
        left->lines[left->count++].end = end + length;
    }
    PyMem_Free(halves);
    if (!left)
        return NULL;
    if (left->count == cut->count) {
        drop(left);
        return Py_NewRef(Py_None);
    }
    return handed(left);
}

/* ---- its strings ----------------------------------------------------------------------------------------------- */

/* Cut text: its sentences in the one spelling, with a line break between two of them. */
KERNEL(cut_sentences)
{
    const Cut *cut;
    Points points;
    Table *table;
    Py_UCS4 *told;
    Py_ssize_t i, size = 0;
    PyObject *found = NULL;
    if (!has(given, 1) || !(cut = cut_from(args[0])) ||
        !(table = opened((PyObject *[]){cut->table, cut->text}, 2, &points)))
        return NULL;
    told = PyMem_Malloc((size_t)(points.count + 1) * sizeof *told);
    if (!told)
        PyErr_NoMemory();
    if (told && (!cut->is_folded || fold(table, &points) >= 0)) {
        for (i = 0; i < cut->count; i++) { /* what ends a sentence has left room for the break */
            Py_ssize_t length = cut->lines[i].last - cut->lines[i].first;
            if (i)
                told[size++] = '\n';
            memcpy(told + size, points.at + cut->lines[i].first, (size_t)length * sizeof *told);
            size += length;
        }
        found = str_of(told, size);
    }
    PyMem_Free(told);
    release(&points);
    return found;
}

/* Cut text: the letters of all lines. */
KERNEL(cut_letters)
{
    const Cut *cut;
    if (!has(given, 1) || !(cut = cut_from(args[0])))
        return NULL;
    return str_of(cut->letters, all_letters(cut));
}

/* Cut text: the letters of each line. */
KERNEL(cut_lines)
{
    const Cut *cut;
    PyObject *list;
    Py_ssize_t i;
    if (!has(given, 1) || !(cut = cut_from(args[0])))
        return NULL;
    list = PyList_New(cut->count);
    for (i = 0; list && i < cut->count; i++)
        if (put(list, i, str_of(cut->letters + start_of(cut, i), length_of(cut, i))) < 0)
            Py_CLEAR(list);
    return list;
}

/* ---- its hashes ------------------------------------------------------------------------------------------------ */

static int is_short(const Cut *cut, Py_ssize_t line, Py_ssize_t least)
{
    return line >= 0 && line < cut->count && length_of(cut, line) < least;
}

/* Puts 32 bits of the hashes of the lines behind each other that have so many letters, or stand beside another that has
 * not; how many these are. There is room for all lines. */
static Py_ssize_t worth_counting(const Cut *cut, Py_ssize_t least, uint32_t *shorts)
{
    Py_ssize_t i, count = 0;
    for (i = 0; i < cut->count; i++) {
        shorts[count] = (uint32_t)cut->lines[i].hash;
        count += !is_short(cut, i, least) || is_short(cut, i - 1, least) || is_short(cut, i + 1, least);
    }
    return count;
}

/* Cut text, a number of letters: 4 bytes of the hash of each such line. */
KERNEL(cut_shorts)
{
    const Cut *cut;
    PyObject *found;
    Py_ssize_t least, count;
    if (!has(given, 2) || !(cut = cut_from(args[0])) || size_of(args[1], 0, PY_SSIZE_T_MAX, &least) < 0)
        return NULL;
    found = PyByteArray_FromStringAndSize(NULL, cut->count * 4);
    if (found) {
        count = worth_counting(cut, least, (uint32_t *)(void *)PyByteArray_AsString(found));
        if (count < cut->count && PyByteArray_Resize(found, count * 4) < 0)
            Py_CLEAR(found);
    }
    return found;
}

/* Cut text, a number of letters, key, a list of strings, a number of lines: 4 bytes of the hash of each string, and of
 * each such line, of many the first and the last ones. */
KERNEL(cut_counted)
{
    Key key;
    const Cut *cut;
    PyObject *found;
    uint32_t *shorts;
    Py_ssize_t i, least, titles, lines, end;
    if (!has(given, 5) || !(cut = cut_from(args[0])) || size_of(args[1], 0, PY_SSIZE_T_MAX, &least) < 0 ||
        key_of(args[2], &key) < 0 || !is_list(args[3]) || size_of(args[4], 0, UINT16_MAX, &end) < 0)
        return NULL;
    titles = PyList_Size(args[3]);
    if (!(found = PyByteArray_FromStringAndSize(NULL, (titles + cut->count) * 4)))
        return NULL;
    shorts = (uint32_t *)(void *)PyByteArray_AsString(found);
    for (i = 0; i < titles; i++) {
        Points points;
        if (points_of(PyList_GetItem(args[3], i), &points) < 0) {
            Py_DECREF(found);
            return NULL;
        }
        *shorts++ = (uint32_t)hash_of(&key, points.at, points.count);
        release(&points);
    }
    lines = worth_counting(cut, least, shorts);
    if (lines > 2 * end) {
        memmove(shorts + end, shorts + lines - end, (size_t)end * sizeof *shorts);
        lines = 2 * end;
    }
    if (lines < cut->count && PyByteArray_Resize(found, (titles + lines) * 4) < 0)
        Py_CLEAR(found);
    return found;
}

/* Cut text: how many letters each line has, 4 bytes each. */
KERNEL(cut_lengths)
{
    const Cut *cut;
    PyObject *found;
    Py_ssize_t i;
    if (!has(given, 1) || !(cut = cut_from(args[0])))
        return NULL;
    found = PyByteArray_FromStringAndSize(NULL, cut->count * 4);
    for (i = 0; found && i < cut->count; i++)
        ((uint32_t *)(void *)PyByteArray_AsString(found))[i] = (uint32_t)length_of(cut, i);
    return found;
}

/* Cut text, key: the hash of the letters of all lines. */
KERNEL(cut_hash)
{
    Key key;
    const Cut *cut;
    if (!has(given, 2) || !(cut = cut_from(args[0])) || key_of(args[1], &key) < 0)
        return NULL;
    return PyLong_FromUnsignedLongLong(hash_of(&key, cut->letters, all_letters(cut)));
}

/* Which of two lines comes first: the longer one, equals in order of their characters; 0 if they are the same. */
static int compared(const Cut *cut, Py_ssize_t one, Py_ssize_t other)
{
    const Py_UCS4 *a = cut->letters + start_of(cut, one), *b = cut->letters + start_of(cut, other);
    Py_ssize_t i, length = length_of(cut, one), others = length_of(cut, other);
    if (length != others)
        return length > others ? -1 : 1;
    for (i = 0; i < length; i++)
        if (a[i] != b[i])
            return a[i] < b[i] ? -1 : 1;
    return 0;
}

/* Puts the lowest 16 bits there, big-endian; returns where the next ones go. */
static char *put_half(uint64_t value, char *to)
{
    *to++ = (char)(value >> 8);
    *to++ = (char)value;
    return to;
}

/* Puts 16 bits of the hashes of lines behind each other. */
static char *halved(const Cut *cut, Py_ssize_t first, Py_ssize_t last, char *to)
{
    for (; first < last; first++)
        to = put_half(cut->lines[first].hash, to);
    return to;
}

/* Cut text, two numbers of lines: 2 bytes of the hash of each of so many from the beginning and from the end, or of all. */
KERNEL(cut_ends)
{
    const Cut *cut;
    PyObject *found;
    Py_ssize_t first, last;
    char *at;
    if (!has(given, 3) || !(cut = cut_from(args[0])) || size_of(args[1], 0, UINT16_MAX, &first) < 0 ||
        size_of(args[2], 0, UINT16_MAX, &last) < 0)
        return NULL;
    if (first + last >= cut->count) {
        first = cut->count;
        last = 0;
    }
    found = PyBytes_FromStringAndSize(NULL, 2 * (first + last));
    at = found ? PyBytes_AsString(found) : NULL;
    if (at)
        halved(cut, cut->count - last, cut->count, halved(cut, 0, first, at));
    return found;
}

#define MOST_LONGEST 64

/* Cut text, letters that a line must have, a number: the hashes of so many of the longest different lines. */
KERNEL(cut_longest)
{
    const Cut *cut;
    PyObject *list;
    Py_ssize_t best[MOST_LONGEST], i, at_least, most, held = 0;
    if (!has(given, 3) || !(cut = cut_from(args[0])) || size_of(args[1], 0, PY_SSIZE_T_MAX, &at_least) < 0 ||
        size_of(args[2], 1, MOST_LONGEST, &most) < 0)
        return NULL;
    for (i = 0; i < cut->count; i++) {
        Py_ssize_t place = held;
        if (length_of(cut, i) < at_least)
            continue;
        while (place && compared(cut, i, best[place - 1]) < 0)
            place--;
        if (place == most || (place && !compared(cut, i, best[place - 1])))
            continue;
        held += held < most;
        memmove(best + place + 1, best + place, (size_t)(held - 1 - place) * sizeof *best);
        best[place] = i;
    }
    list = PyList_New(held);
    for (i = 0; list && i < held; i++)
        if (put(list, i, PyLong_FromUnsignedLongLong(cut->lines[best[i]].hash)) < 0)
            Py_CLEAR(list);
    return list;
}

/* Cut text, offset, base; n, bins, bits; letters of the opening, its bins, its bits; n of keys, n where words have spaces,
 * how many: see ``Shingles.of``. The sums that n-grams are hashed by are made once. */
KERNEL(cut_shingled)
{
    Grams grams;
    Form form, opening;
    PyObject *sketch = NULL, *first = NULL, *keys = NULL, *found = NULL;
    const Cut *cut;
    uint64_t offset, base, *sums = NULL;
    Py_ssize_t few, length, spaced, most, count, all, i, unspaced = 0;
    if (!has(given, 12) || !(cut = cut_from(args[0])) || word_of(args[1], &offset) < 0 || word_of(args[2], &base) < 0 ||
        form_of(args + 3, &form) < 0 || size_of(args[6], 0, PY_SSIZE_T_MAX, &few) < 0 ||
        form_of((PyObject *[]){args[3], args[7], args[8]}, &opening) < 0 ||
        size_of(args[9], 1, PY_SSIZE_T_MAX, &length) < 0 || size_of(args[10], 1, PY_SSIZE_T_MAX, &spaced) < 0 ||
        size_of(args[11], 1, MOST_KEYS, &most) < 0)
        return NULL;
    all = all_letters(cut);
    sums = sums_of(cut->letters, all, offset, base);
    grams.at = sums ? PyMem_Malloc((size_t)all * sizeof *sums) : NULL;
    if (!grams.at) {
        if (sums)
            PyErr_NoMemory();
        goto done;
    }
    grams.count = hash_n_grams(sums, all < few ? all : few, form.n, base, grams.at);
    first = sketch_of(&grams, opening.bins, opening.bits);
    grams.count = hash_n_grams(sums, all, form.n, base, grams.at);
    sketch = first ? sketch_of(&grams, form.bins, form.bits) : NULL;
    count = sketch ? different(grams.at, grams.count) : -1;
    if (count < 0)
        goto done;
    for (i = 0; i < cut->count; i++)
        unspaced += cut->lines[i].unspaced;
    grams.count = hash_n_grams(sums, all, are_many(unspaced, all) ? length : spaced, base, grams.at);
    keys = smallest_of(&grams, most);
    if (keys)
        found = Py_BuildValue("nOOO", count, sketch, first, keys);
done:
    Py_XDECREF(sketch);
    Py_XDECREF(first);
    Py_XDECREF(keys);
    PyMem_Free(grams.at);
    PyMem_Free(sums);
    return found;
}

/* ---- what stands in it ----------------------------------------------------------------------------------------- */

/* A bit for each of some strings that stands in a line. */
static uint64_t found_in(const Cut *cut, const Signs *signs)
{
    uint64_t found = 0;
    Py_ssize_t i;
    for (i = 0; i < cut->count; i++)
        found = look_for(signs, cut->letters + start_of(cut, i), length_of(cut, i), found, 0);
    return found;
}

/* Cut text, a list of words: those of them that stand in a line. */
KERNEL(cut_standing)
{
    const Cut *cut;
    Signs signs;
    PyObject *list;
    Py_ssize_t i;
    uint64_t found;
    if (!has(given, 2) || !(cut = cut_from(args[0])) || signs_of(args[1], &signs) < 0)
        return NULL;
    found = found_in(cut, &signs);
    list = PyList_New(0);
    for (i = 0; list && i < signs.count; i++)
        if (found >> i & 1 && append(list, PySequence_GetItem(args[1], i)) < 0)
            Py_CLEAR(list);
    return list;
}

static int is_larger(const void *one, const void *other)
{
    uint64_t a = *(const uint64_t *)one, b = *(const uint64_t *)other;
    return (a > b) - (a < b);
}

/* Of the one spelling, which has no others. */
static int is_digit(Py_UCS4 c)
{
    return c >= '0' && c <= '9';
}

/* The hash of each number in a line, as one n-gram; as many as are returned. */
static Py_ssize_t hash_numbers(const Cut *cut, Py_ssize_t line, uint64_t offset, uint64_t base, uint64_t *found)
{
    const Py_UCS4 *at = cut->letters + start_of(cut, line);
    Py_ssize_t i, count = 0, length = length_of(cut, line);
    uint64_t sum = 0;
    for (i = 0; i < length; i++) {
        if (!is_digit(at[i]))
            continue;
        sum = sum * base + mix(at[i] ^ offset);
        if (i + 1 == length || !is_digit(at[i + 1])) {
            found[count++] = mix(sum);
            sum = 0;
        }
    }
    return count;
}

#define MOST_NUMBERS 255

/* Cut text, offset, base, a number: 16 bits for all different numbers in it, and of so many with the smallest hashes. */
KERNEL(cut_numbers)
{
    const Cut *cut;
    uint64_t offset, base, *found, sum = 0;
    Py_ssize_t i, most, count = 0, kept = 0;
    char packed[2 * MOST_NUMBERS + 2], *at = packed + 2;
    if (!has(given, 4) || !(cut = cut_from(args[0])) || word_of(args[1], &offset) < 0 || word_of(args[2], &base) < 0 ||
        size_of(args[3], 0, MOST_NUMBERS, &most) < 0)
        return NULL;
    found = PyMem_Malloc((size_t)(all_letters(cut) / 2 + cut->count + 1) * sizeof *found);
    if (!found)
        return PyErr_NoMemory();
    for (i = 0; i < cut->count; i++)
        count += hash_numbers(cut, i, offset, base, found + count);
    qsort(found, (size_t)count, sizeof *found, is_larger);
    for (i = 0; i < count; i++) {
        if (i && found[i] == found[i - 1])
            continue;
        sum += found[i];
        if (kept < most) {
            at = put_half(found[i] >> 48, at);
            kept++;
        }
    }
    PyMem_Free(found);
    put_half(sum >> 48, packed);
    return PyBytes_FromStringAndSize(packed, count ? at - packed : 0);
}

/* ---- the words of a title -------------------------------------------------------------------------------------- */

typedef struct {
    uint64_t hash;
    Py_ssize_t number; /* among all words */
    Py_ssize_t length;
} TitleWord;

/* By hash; of two words that have one hash the longer one comes last, of equals the later one. */
static int is_behind(const TitleWord *one, const TitleWord *other)
{
    if (one->hash != other->hash)
        return one->hash > other->hash;
    return one->length != other->length ? one->length > other->length : one->number > other->number;
}

static int is_same(PyObject *list, const TitleWord *one, const TitleWord *other)
{
    return one->hash == other->hash &&
           !PyUnicode_Compare(PyList_GetItem(list, one->number), PyList_GetItem(list, other->number));
}

/* Hashes the different words that are long enough, in the order of these hashes; how many these are, -1 with an error, or
 * -2 if one of all words has spaces around it. */
static Py_ssize_t hashed_words(PyObject *const *args, Py_ssize_t shortest, uint64_t offset, uint64_t base, uint64_t mask,
                               TitleWord *words)
{
    Py_ssize_t i, k, held = 0, count = PyList_Size(args[1]);
    for (i = 0; i < count; i++) {
        Points points;
        TitleWord word = {0, i, 0};
        PyObject *told[] = {args[0], PyList_GetItem(args[1], i)};
        Table *table = opened(told, 2, &points);
        int unspaced;
        if (!table)
            return -1;
        unspaced = is_unspaced(table, &points);
        word.length = points.count;
        word.hash = gram_of(&points, offset, base) & mask;
        release(&points);
        if (!unspaced)
            return -2;
        if (word.length < shortest)
            continue;
        for (k = 0; k < held && !is_same(args[1], &words[k], &word); k++)
            ;
        if (k < held)
            continue;
        for (k = held++; k && is_behind(&words[k - 1], &word); k--)
            words[k] = words[k - 1];
        words[k] = word;
    }
    return held;
}

/* Cut text, a list of words, offset, base, how many, the letters that one must have, and up to which it is looked for, the
 * bits of its hash, and one that says that it stands in a line: see ``TitleWords.packed``. */
KERNEL(cut_title)
{
    const Cut *cut;
    Signs signs;
    TitleWord words[MOST_SIGNS];
    uint64_t offset, base, mask, stands, found;
    Py_ssize_t i, most, shortest, longest, held, kept = 0;
    char packed[3 * MOST_SIGNS], *at = packed;
    if (!has(given, 9) || !(cut = cut_from(args[0])) || word_of(args[2], &offset) < 0 || word_of(args[3], &base) < 0 ||
        size_of(args[4], 0, PY_SSIZE_T_MAX, &most) < 0 || size_of(args[5], 2, MOST_LETTERS, &shortest) < 0 ||
        size_of(args[6], 2, MOST_LETTERS, &longest) < 0 || word_of(args[7], &mask) < 0 || word_of(args[8], &stands) < 0)
        return NULL;
    if (!PyList_Check(args[1]) || PyList_Size(args[1]) > MOST_SIGNS) {
        PyErr_SetString(PyExc_ValueError, "a list of 64 words at most is needed");
        return NULL;
    }
    held = hashed_words((PyObject *[]){cut->table, args[1]}, shortest, offset, base, mask, words);
    if (held < 0)
        return held == -2 ? Py_NewRef(Py_None) : NULL;
    for (i = 0; i < held; i++) /* the last one of each hash stays */
        if (i + 1 == held || words[i + 1].hash != words[i].hash)
            words[kept++] = words[i];
    kept = kept < most ? kept : most;
    no_signs(&signs);
    for (i = 0; i < kept; i++)
        if (words[i].length <= longest && add_sign(&signs, PyList_GetItem(args[1], words[i].number)) < 0)
            return NULL;
    found = found_in(cut, &signs);
    for (i = 0; i < kept; i++) {
        uint64_t word = words[i].hash;
        if (words[i].length <= longest) {
            word |= found & 1 ? stands : 0;
            found >>= 1; /* in the order in which they were added */
        }
        *at++ = (char)(word >> 16);
        *at++ = (char)(word >> 8);
        *at++ = (char)word;
    }
    return PyBytes_FromStringAndSize(packed, at - packed);
}
