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

static void forget_cut(PyObject *capsule)
{
    Cut *cut = PyCapsule_GetPointer(capsule, CUT);
    PyMem_Free(cut->lines);
    PyMem_Free(cut->text);
    PyMem_Free(cut);
}

/* A cut text without lines, with room for some, and its text of a size; NULL with an error. */
static PyObject *make_cut(Cut **cut, const Py_UCS4 *text, Py_ssize_t size, Py_ssize_t lines)
{
    PyObject *capsule = new_capsule(cut, sizeof **cut, CUT, forget_cut);
    if (capsule && ((*cut)->text = memory_for(size, 2 * sizeof *text)) &&
        ((*cut)->lines = memory_for(lines, sizeof *(*cut)->lines))) {
        memcpy((*cut)->text, text, (size_t)size * sizeof *text);
        (*cut)->letters = (*cut)->text + size;
        (*cut)->size = size;
    }
    else
        Py_CLEAR(capsule);
    return capsule;
}

/* The capsule, the number of letters, and their hash. */
static PyObject *describe(PyObject *capsule, const Cut *cut)
{
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
            Line *larger = PyMem_Realloc(cut->lines, (size_t)(room *= 2) * sizeof *larger);
            if (!larger)
                return PyErr_NoMemory() != NULL;
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

/* Table of characters, text, secret, whether the text is in its normal spelling; None if it is not, and not plain. */
KERNEL(cut_text)
{
    Key key;
    Points points;
    Table *table;
    Cut *cut;
    PyObject *capsule = NULL;
    int is_normal;
    if (!PyArg_ParseTuple(args, "O&O&O&p", as_table, &table, as_text, &points, as_key, &key, &is_normal))
        return NULL;
    if (is_normal ? knows_all(table, &points) : fold(table, &points))
        capsule = make_cut(&cut, points.at, points.count, LINES);
    release(&points);
    if (capsule && !(cut_lines_of(cut, table) && hash_lines(cut, &key)))
        Py_CLEAR(capsule);
    return or_none(describe(capsule, cut));
}

KERNEL(cut_without)
{
    Cut *cut, *left;
    PyObject *list, *capsule = NULL;
    uint32_t *halves;
    Py_ssize_t i, count;
    if (!PyArg_ParseTuple(args, "O&O!", as_cut, &cut, &PyList_Type, &list) ||
        !(halves = memory_for(count = PyList_Size(list), sizeof *halves)))
        return NULL;
    for (i = 0; i < count; i++)
        halves[i] = (uint32_t)PyLong_AsUnsignedLongLongMask(PyList_GetItem(list, i));
    if (!PyErr_Occurred())
        capsule = make_cut(&left, cut->text, cut->size, cut->count);
    qsort(halves, (size_t)count, sizeof *halves, compare_halves);
    for (i = 0; capsule && i < cut->count; i++) {
        Py_ssize_t end = all_letters(left), length = length_of(cut, i);
        uint32_t half = (uint32_t)cut->lines[i].hash;
        if (bsearch(&half, halves, (size_t)count, sizeof half, compare_halves))
            continue;
        memcpy(left->letters + end, letters_of(cut, i), (size_t)length * sizeof *cut->letters);
        left->lines[left->count] = cut->lines[i];
        left->lines[left->count++].end = end + length;
    }
    PyMem_Free(halves);
    if (capsule && left->count == cut->count)
        Py_CLEAR(capsule);
    return or_none(describe(capsule, left));
}

/* Cut text, whether to return the letters of the sentences only. Returns them with line breaks between them. */
KERNEL(cut_strings)
{
    Cut *cut;
    Py_UCS4 *joined, *to;
    Py_ssize_t i;
    PyObject *found;
    int are_letters;
    if (!PyArg_ParseTuple(args, "O&p", as_cut, &cut, &are_letters) || !(to = joined = memory_for(cut->size, sizeof *joined)))
        return NULL;
    for (i = 0; i < cut->count; i++) { /* the end mark of a sentence has left room for the break */
        const Line *line = &cut->lines[i];
        Py_ssize_t length = are_letters ? length_of(cut, i) : line->last - line->first;
        memcpy(to, are_letters ? letters_of(cut, i) : cut->text + line->first, (size_t)length * sizeof *to);
        to += length;
        *to++ = '\n';
    }
    found = str_of(joined, to - joined - (cut->count > 0));
    PyMem_Free(joined);
    return found;
}

KERNEL(cut_hashes)
{
    Cut *cut;
    PyObject *found;
    Py_ssize_t i, least, count = 0;
    int was_short = 0;
    if (!PyArg_ParseTuple(args, "O&O&", as_cut, &cut, as_size, &least) ||
        !(found = PyByteArray_FromStringAndSize(NULL, cut->count * 4)))
        return NULL;
    for (i = 0; i < cut->count; i++) {
        uint32_t half = (uint32_t)cut->lines[i].hash;
        int is_short = length_of(cut, i) < least;
        memcpy(PyByteArray_AsString(found) + 4 * count, &half, sizeof half);
        count += !is_short || was_short || (i + 1 < cut->count && length_of(cut, i + 1) < least);
        was_short = is_short;
    }
    if (count < cut->count && PyByteArray_Resize(found, count * 4) < 0)
        Py_CLEAR(found);
    return found;
}

#define MOST_LONGEST 255

/* The hashes of the longest different lines, the longest first; equally long ones in order of characters. */
static PyObject *longest_of(const Cut *cut, Py_ssize_t at_least, Py_ssize_t most)
{
    Word best[MOST_LONGEST];
    uint64_t hashes[MOST_LONGEST];
    Py_ssize_t i, held = 0;
    for (i = 0; i < cut->count; i++) {
        Word line = {cut->lines[i].hash, -(double)length_of(cut, i), letters_of(cut, i), length_of(cut, i)};
        if (line.length >= at_least)
            held = keep(best, held, most, &line, sizeof line, compare_weights);
    }
    for (i = 0; i < held; i++)
        hashes[i] = best[i].hash;
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
        unsigned int digits = 0;
        for (i = 0; i < length; i++) /* most lines have none; without a branch this takes a tenth */
            digits |= letters[i] - '0' <= 9;
        for (first = digits ? 0 : length; first < length; first = i + 1) {
            for (i = first; i < length && letters[i] - '0' <= 9; i++)
                ; /* the normal spelling has no other digits */
            if (i > first)
                found[count++] = gram_of(letters + first, i - first, grams->offset, grams->base);
        }
    }
    qsort(found, (size_t)count, sizeof *found, compare_words);
    for (i = 0; i < count; i++)
        if (!i || found[i] != found[i - 1]) {
            sum += found[i];
            if (kept++ < most)
                at = put_half(found[i] >> 48, at);
        }
    PyMem_Free(found);
    put_half(sum >> 48, packed);
    return PyBytes_FromStringAndSize(packed, count ? at - packed : 0);
}

/* The numbers of a ``SketchForm``, and their bounds. */
enum { N, BINS, BITS, KEY_N, KEY_N_SPACED, KEYS, AT_LEAST, LONGEST, NUMBERS, FIRST, LAST, FORM };
#define ANY PY_SSIZE_T_MAX
static const Py_ssize_t LEAST[FORM] = {1, 8, 1, 1, 1, 1, 0, 1, 0, 0, 0};
static const Py_ssize_t MOST[FORM] = {ANY, MOST_BINS,    8,            ANY,       ANY,      MOST_KEYS,
                                      ANY, MOST_LONGEST, MOST_IN_TEXT, MOST_ENDS, MOST_ENDS};

/* 0 with an error. */
static int is_valid(const Py_ssize_t form[FORM])
{
    int i, is_right = !(form[BINS] & (form[BINS] - 1)) && !(form[BITS] & (form[BITS] - 1));
    for (i = 0; i < FORM; i++)
        is_right &= LEAST[i] <= form[i] && form[i] <= MOST[i];
    return is_so(is_right, PyExc_ValueError, "a number of the form is out of its range");
}

KERNEL(cut_sketch)
{
    Grams grams;
    Cut *cut;
    Py_ssize_t form[FORM], i, all, unspaced = 0, count = 0;
    PyObject *sketch, *keys, *longest, *numbers, *ends;
    if (!PyArg_ParseTuple(args, "O&KK(nnnnnnnnnnn)", as_cut, &cut, &grams.offset, &grams.base, &form[N], &form[BINS],
                          &form[BITS], &form[KEY_N], &form[KEY_N_SPACED], &form[KEYS], &form[AT_LEAST], &form[LONGEST],
                          &form[NUMBERS], &form[FIRST], &form[LAST]) ||
        !is_valid(form) || !begin_grams(&grams, cut->letters, all = all_letters(cut)))
        return NULL;
    for (i = 0; i < cut->count; i++)
        unspaced += cut->lines[i].unspaced;
    hash_n_grams(&grams, form[N]);
    sketch = sketch_of(&grams, form[BINS], form[BITS]);
    count = different(&grams);
    /* a fiftieth of letters without spaces: see ``has_unspaced`` */
    hash_n_grams(&grams, unspaced && 50 * unspaced >= all ? form[KEY_N] : form[KEY_N_SPACED]);
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

#define MOST_STRINGS 64
#define MOST_LETTERS 32
#define STARTS 1024
#define LONG 0xFFFFFF /* longer words count as equally long */

/* Strings to look for, with a bit for each. */
typedef struct {
    Py_UCS4 at[MOST_STRINGS][MOST_LETTERS];
    Py_ssize_t lengths[MOST_STRINGS];
    uint64_t starts[STARTS]; /* by their first two characters */
} Strings;

#define START(at) (((at)[0] * 31 + (at)[1]) & (STARTS - 1))

/* A bit for each string that a text holds. */
static uint64_t look_for(const Strings *strings, const Py_UCS4 *at, Py_ssize_t count)
{
    uint64_t found = 0, left;
    Py_ssize_t i, k;
    for (i = 0; i + 1 < count; i++)
        for (k = 0, left = strings->starts[START(at + i)]; left; k++, left >>= 1)
            if (left & 1 && strings->lengths[k] <= count - i &&
                !memcmp(at + i, strings->at[k], (size_t)strings->lengths[k] * sizeof *at))
                found |= UINT64_C(1) << k;
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
    uint64_t mask, flag, found = 0, words[MOST_STRINGS]; /* upper half: hash; then length, number in the list, is found */
    Py_ssize_t i, k, longest, most, count = 0;
    char packed[3 * MOST_STRINGS], *at = packed;
    if (!PyArg_ParseTuple(args, "O&O&O!KKKKO&O&", as_cut, &cut, as_table, &table, &PyList_Type, &list, &grams.offset,
                          &grams.base, &mask, &flag, as_size, &longest, as_size, &most) ||
        !is_so(longest <= MOST_LETTERS && PyList_Size(list) <= MOST_STRINGS, PyExc_ValueError,
               "a number is out of its range"))
        return NULL;
    memset(strings.starts, 0, sizeof strings.starts);
    for (k = 0; k < PyList_Size(list); k++) {
        Points word;
        Py_ssize_t unspaced = 0;
        if (!points_of(PyList_GetItem(list, k), &word))
            return NULL;
        for (i = 0; i < word.count && KNOWS(table, word.at[i]); i++)
            unspaced += (ENTRY(table, word.at[i]) & UNSPACED) != 0;
        if (i < word.count || !unspaced || 50 * unspaced < i) { /* see ``has_unspaced`` */
            release(&word);
            return PyErr_Occurred() ? NULL : Py_NewRef(Py_None);
        }
        if (i > 1)
            words[count++] = (gram_of(word.at, i, grams.offset, grams.base) & mask) << 32 |
                             (uint64_t)(i < LONG ? i : LONG) << 8 | (uint64_t)k << 1;
        if (i > 1 && i <= longest) {
            memcpy(strings.at[k], word.at, (size_t)i * sizeof *word.at);
            strings.lengths[k] = i;
            strings.starts[START(word.at)] |= UINT64_C(1) << k;
        }
        release(&word);
    }
    for (i = 0; i < cut->count; i++)
        found |= look_for(&strings, letters_of(cut, i), length_of(cut, i));
    for (i = 0; i < count; i++)
        words[i] = (words[i] & ~UINT64_C(0xFF)) | (found >> (words[i] >> 1 & 63) & 1);
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
#define MAY_BE(value) maybe[(value) >> 2 & 0xFFF]

KERNEL(cut_lacking)
{
    Cut *cut;
    Grams grams;
    PyObject *list;
    Py_ssize_t n, longest, i, k, count;
    uint64_t mask, asked[MOST_ASKED];
    uint8_t maybe[0x1000] = {0}; /* rules out nearly all others */
    if (!PyArg_ParseTuple(args, "O&O&O&KKKO!", as_cut, &cut, as_size, &n, as_size, &longest, &grams.offset, &grams.base,
                          &mask, &PyList_Type, &list) ||
        !is_so(1 <= n && n <= longest && PyList_Size(list) <= MOST_ASKED, PyExc_ValueError, "a number is out of its range"))
        return NULL;
    for (count = PyList_Size(list), i = 0; i < count && !PyErr_Occurred(); i++) {
        asked[i] = PyLong_AsUnsignedLongLong(PyList_GetItem(list, i));
        MAY_BE(asked[i]) = 1;
    }
    if (PyErr_Occurred() || !begin_grams(&grams, cut->letters, all_letters(cut)))
        return NULL;
    for (; count && n <= longest && n <= grams.length; n++) {
        hash_n_grams(&grams, n);
        for (i = 0; i < grams.count; i++) {
            uint64_t value = grams.at[i] & mask;
            for (k = MAY_BE(value) ? count : 0; k--;)
                if (asked[k] == value)
                    asked[k] = asked[--count];
        }
    }
    PyMem_Free(grams.sums);
    return list_of(number_item, asked, count);
}
