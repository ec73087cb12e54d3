/* A text cut into sentences once, and all that cascade keeps of it: see text/sentences.py. No str is made of a sentence until
 * one is asked for. */

/* A sentence with letters. */
typedef struct {
    Py_ssize_t first, last; /* its place in the normalised text */
    Py_ssize_t end;         /* behind its last letter, among the letters of all lines */
    Py_ssize_t unspaced;    /* letters of scripts without spaces between words */
    uint64_t hash;          /* of its letters */
} Line;

struct Cut {
    Py_UCS4 *text, *letters; /* the normalised text, and behind it, in the same memory, the letters of all lines */
    Py_ssize_t size, count;  /* characters of the text, and lines */
    Line *lines;
    uint64_t body; /* hash of all letters, if no line was left out */
};

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

static void drop(Cut *cut)
{
    PyMem_Free(cut->lines);
    PyMem_Free(cut->text);
    PyMem_Free(cut);
}

static void forget_cut(PyObject *capsule)
{
    drop(PyCapsule_GetPointer(capsule, CUT));
}

/* A cut text without lines, with room for some, and for a text of a size; NULL with an error. */
static Cut *make_cut(Py_ssize_t size, Py_ssize_t lines)
{
    Cut *cut = PyMem_Calloc(1, sizeof *cut);
    if (!cut)
        PyErr_NoMemory();
    else if ((cut->text = memory_for(size, 2 * sizeof *cut->text)) && (cut->lines = memory_for(lines, sizeof *cut->lines))) {
        cut->letters = cut->text + size;
        cut->size = size;
        return cut;
    }
    else
        drop(cut);
    return NULL;
}

/* The capsule, the number of letters, and their hash; NULL with an error. */
static PyObject *wrap(Cut *cut)
{
    PyObject *capsule = PyCapsule_New(cut, CUT, forget_cut);
    if (!capsule)
        drop(cut);
    return capsule ? Py_BuildValue("NnK", capsule, all_letters(cut), (unsigned long long)cut->body) : NULL;
}

/* Reads a sentence up to its end mark, and puts its letters behind those of all before. */
static void read_line(Cut *cut, Line *line, const Table *table)
{
    Py_ssize_t i, count = cut->size, end = line->end, unspaced = 0;
    for (i = line->first; i < count; i++) {
        Py_UCS4 c = cut->text[i];
        uint32_t entry = ENTRY(table, c);
        cut->letters[end] = c;
        end += (entry & LETTER) != 0;
        unspaced += (entry & (LETTER | UNSPACED)) == (LETTER | UNSPACED);
        if (c == '.' ? i + 1 < count && ENTRY(table, cut->text[i + 1]) & ENDING : entry & MARK)
            break;
    }
    line->last = i;
    line->end = end;
    line->unspaced = unspaced;
}

#define LINES 64 /* room at first */

/* Cuts a text whose blocks of the table are all there, as ``sentences`` does; 0 with an error. */
static int cut_lines_of(Cut *cut, const Table *table)
{
    Py_ssize_t i, count = cut->size, room = LINES;
    Line line = {0};
    for (i = 0; i < count; i++) {
        line.first = i;
        read_line(cut, &line, table);
        i = line.last;
        while (i + 1 < count && ENTRY(table, cut->text[i + 1]) & MARK)
            i++;
        while (i + 1 < count && ENTRY(table, cut->text[i + 1]) & CLOSING)
            i++;
        while (line.first < line.last && ENTRY(table, cut->text[line.first]) & SPACE)
            line.first++;
        while (line.first < line.last && ENTRY(table, cut->text[line.last - 1]) & SPACE)
            line.last--;
        if (line.end == all_letters(cut))
            continue; /* without letters */
        if (cut->count == room) {
            Line *larger = memory_for(room *= 2, sizeof *larger);
            if (!larger)
                return 0;
            memcpy(larger, cut->lines, (size_t)cut->count * sizeof *larger);
            PyMem_Free(cut->lines);
            cut->lines = larger;
        }
        cut->lines[cut->count++] = line;
    }
    return 1;
}

/* Hashes all lines, and all letters together; 0 with an error. */
static int hash_lines(Cut *cut, const Key *key)
{
    Text *texts = memory_for(cut->count, sizeof *texts);
    uint8_t *bytes = texts ? memory_for(all_letters(cut), 4) : NULL, *to = bytes;
    Py_ssize_t i;
    if (bytes) {
        for (i = 0; i < cut->count; i++) {
            texts[i + 1].at = to;
            texts[i + 1].end = to = encode(letters_of(cut, i), length_of(cut, i), to);
        }
        texts[0].at = bytes;
        texts[0].end = to;
        hash_each(key, texts, cut->count + 1);
        for (i = 0; i < cut->count; i++)
            cut->lines[i].hash = texts[i + 1].hash;
        cut->body = texts[0].hash;
    }
    PyMem_Free(bytes);
    PyMem_Free(texts);
    return bytes != NULL;
}

/* Table of characters, text in its normal spelling, secret. */
KERNEL(cut_text)
{
    Key key;
    Points points;
    Table *table;
    Cut *cut = NULL;
    if (!PyArg_ParseTuple(args, "O&O&O&", as_table, &table, as_text, &points, as_key, &key))
        return NULL;
    if (knows_all(table, &points) && (cut = make_cut(points.count, LINES)))
        memcpy(cut->text, points.at, (size_t)points.count * sizeof *points.at);
    release(&points);
    if (cut && !(cut_lines_of(cut, table) && hash_lines(cut, &key))) {
        drop(cut);
        cut = NULL;
    }
    return cut ? wrap(cut) : NULL;
}

KERNEL(cut_without)
{
    Cut *cut, *left = NULL;
    PyObject *list;
    uint32_t *halves;
    Py_ssize_t i, count;
    if (!PyArg_ParseTuple(args, "O&O!", as_cut, &cut, &PyList_Type, &list) ||
        !(halves = memory_for(count = PyList_Size(list), sizeof *halves)))
        return NULL;
    for (i = 0; i < count; i++)
        halves[i] = (uint32_t)PyLong_AsUnsignedLongLongMask(PyList_GetItem(list, i));
    if (!PyErr_Occurred() && (left = make_cut(cut->size, cut->count)))
        memcpy(left->text, cut->text, (size_t)cut->size * sizeof *cut->text);
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

/* Cut text, whether to return the letters of the sentences only. Returns them with line breaks between them. */
KERNEL(cut_strings)
{
    Cut *cut;
    Py_UCS4 *joined;
    Py_ssize_t i, size = 0;
    PyObject *found;
    int are_letters;
    if (!PyArg_ParseTuple(args, "O&p", as_cut, &cut, &are_letters) || !(joined = memory_for(cut->size, sizeof *joined)))
        return NULL;
    for (i = 0; i < cut->count; i++) { /* the end mark of a sentence has left room for the break */
        const Line *line = &cut->lines[i];
        Py_ssize_t length = are_letters ? length_of(cut, i) : line->last - line->first;
        if (i)
            joined[size++] = '\n';
        memcpy(joined + size, are_letters ? letters_of(cut, i) : cut->text + line->first, (size_t)length * sizeof *joined);
        size += length;
    }
    found = str_of(joined, size);
    PyMem_Free(joined);
    return found;
}

static int is_short(const Cut *cut, Py_ssize_t line, Py_ssize_t least)
{
    return line >= 0 && line < cut->count && length_of(cut, line) < least;
}

KERNEL(cut_hashes)
{
    Cut *cut;
    PyObject *found;
    char *to;
    Py_ssize_t i, least, count = 0;
    if (!PyArg_ParseTuple(args, "O&O&", as_cut, &cut, as_size, &least) ||
        !(found = PyByteArray_FromStringAndSize(NULL, cut->count * 4)))
        return NULL;
    to = PyByteArray_AsString(found);
    for (i = 0; i < cut->count; i++) {
        uint32_t half = (uint32_t)cut->lines[i].hash;
        memcpy(to + 4 * count, &half, sizeof half);
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
    return list_of(number_item, hashes, held);
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

#define MOST_IN_TEXT 255

/* 16 bits of the sum of the hashes of all different numbers in lines, and of each of the smallest ones. */
static PyObject *numbers_of(const Cut *cut, const Grams *grams, Py_ssize_t most)
{
    uint64_t sum = 0, *found = memory_for(all_letters(cut), sizeof *found);
    Py_ssize_t line, i, count = 0, kept = 0;
    char packed[2 * MOST_IN_TEXT + 2], *at = packed + 2;
    if (!found)
        return NULL;
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

enum { N, BINS, BITS, KEY_N, KEY_N_SPACED, KEYS, AT_LEAST, LONGEST, NUMBERS, FIRST, LAST, FORM };

/* Whether a number is a power of two in these bounds. */
static int is_power(Py_ssize_t number, Py_ssize_t least, Py_ssize_t most)
{
    return least <= number && number <= most && !(number & (number - 1));
}

/* Reads a ``SketchForm``; 0 with an error. */
static int read_form(PyObject *given, Py_ssize_t *form)
{
    Py_ssize_t i;
    if (!PyArg_ParseTuple(given, "nnnnnnnnnnn", &form[N], &form[BINS], &form[BITS], &form[KEY_N], &form[KEY_N_SPACED],
                          &form[KEYS], &form[AT_LEAST], &form[LONGEST], &form[NUMBERS], &form[FIRST], &form[LAST]))
        return 0;
    for (i = 0; i < FORM && form[i] >= 0; i++)
        ;
    return is_so(i == FORM && form[N] && form[KEY_N] && form[KEY_N_SPACED] && form[KEYS] && form[LONGEST] &&
                     is_power(form[BINS], 8, MOST_BINS) && is_power(form[BITS], 1, 8) && form[KEYS] <= MOST_KEYS &&
                     form[LONGEST] <= MOST_LONGEST && form[NUMBERS] <= MOST_IN_TEXT && form[FIRST] <= MOST_ENDS &&
                     form[LAST] <= MOST_ENDS,
                 PyExc_ValueError, "a number of the form is out of its range");
}

KERNEL(cut_sketch)
{
    Grams grams;
    Cut *cut;
    Py_ssize_t form[FORM], i, all, unspaced = 0, count = 0;
    PyObject *given_form, *sketch = NULL, *keys = NULL, *longest = NULL, *numbers = NULL, *ends = NULL;
    if (!PyArg_ParseTuple(args, "O&KKO!", as_cut, &cut, &grams.offset, &grams.base, &PyTuple_Type, &given_form) ||
        !read_form(given_form, form) ||
        !begin_grams(&grams, cut->letters, all = all_letters(cut)))
        return NULL;
    for (i = 0; i < cut->count; i++)
        unspaced += cut->lines[i].unspaced;
    hash_n_grams(&grams, all, form[N]);
    sketch = sketch_of(&grams, form[BINS], form[BITS]);
    count = different(&grams);
    /* a fiftieth of letters without spaces: see ``has_unspaced`` */
    hash_n_grams(&grams, all, unspaced && 50 * unspaced >= all ? form[KEY_N] : form[KEY_N_SPACED]);
    keys = smallest_of(&grams, form[KEYS]);
    longest = longest_of(cut, form[AT_LEAST], form[LONGEST]);
    numbers = numbers_of(cut, &grams, form[NUMBERS]);
    ends = ends_of(cut, form[FIRST], form[LAST]);
    PyMem_Free(grams.sums);
    if (count < 0)
        Py_CLEAR(ends);
    /* It takes the parts over; one that is missing is an error. */
    return Py_BuildValue("nNNNNN", count, sketch, keys, longest, numbers, ends);
}

/* ---- the words of a title ---------------------------------------------------------------------------------------- */

#define LONG 2048 /* longer words count as equally long */

/* Reads a word: its hash as one n-gram in the upper half, then its length. 0 if it has spaces around it, or with an error. */
static uint64_t read_word(Table *table, PyObject *word, const Grams *grams, uint64_t mask)
{
    Points points;
    Py_ssize_t i, unspaced = 0;
    uint64_t found = 0;
    if (!points_of(word, &points))
        return 0;
    for (i = 0; i < points.count && KNOWS(table, points.at[i]); i++)
        unspaced += (ENTRY(table, points.at[i]) & UNSPACED) != 0;
    if (i == points.count && unspaced && 50 * unspaced >= i) /* see ``has_unspaced`` */
        found = (gram_of(points.at, i, grams->offset, grams->base) & mask) << 32 | (uint64_t)(i < LONG ? i : LONG) << 8;
    release(&points);
    return found;
}

/* Cut text, table, words, offset, base, bits of a hash, a flag for words in the text, longest word to look for, number of
 * words. */
KERNEL(cut_title)
{
    Cut *cut;
    Table *table;
    PyObject *list;
    Strings strings;
    Grams grams;
    uint64_t mask, flag, found = 0, words[MOST_STRINGS];
    Py_ssize_t i, longest, most, count = 0;
    char packed[3 * MOST_STRINGS], *at = packed;
    if (!PyArg_ParseTuple(args, "O&O&O!KKKKO&O&", as_cut, &cut, as_table, &table, &PyList_Type, &list, &grams.offset,
                          &grams.base, &mask, &flag, as_size, &longest, as_size, &most) ||
        !is_so(longest <= MOST_LETTERS, PyExc_ValueError, "a number is out of its range") || !prepare(&strings, list))
        return NULL;
    for (i = 0; i < cut->count; i++)
        found |= look_for(&strings, letters_of(cut, i), length_of(cut, i));
    for (i = 0; i < strings.count; i++) {
        uint64_t word = read_word(table, PyList_GetItem(list, i), &grams, mask & UINT32_MAX);
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

KERNEL(cut_lacking)
{
    Cut *cut;
    Grams grams;
    Sought sought;
    PyObject *list;
    Py_ssize_t n, longest, i, k;
    uint64_t mask, bit;
    if (!PyArg_ParseTuple(args, "O&O&O&KKKO!", as_cut, &cut, as_size, &n, as_size, &longest, &grams.offset, &grams.base,
                          &mask, &PyList_Type, &list) ||
        !is_so(1 <= n && n <= longest && PyList_Size(list) <= MOST_ASKED, PyExc_ValueError, "a number is out of its range"))
        return NULL;
    memset(&sought, 0, sizeof sought);
    for (sought.count = PyList_Size(list), i = 0; i < sought.count && !PyErr_Occurred(); i++) {
        sought.values[i] = PyLong_AsUnsignedLongLong(PyList_GetItem(list, i));
        *bits_for(&sought, sought.values[i], &bit) |= bit;
    }
    if (PyErr_Occurred() || !begin_grams(&grams, cut->letters, all_letters(cut)))
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
    PyMem_Free(grams.sums);
    return list_of(number_item, sought.values, sought.count);
}
