/* A text cut into sentences once, and all that cascade keeps of it: see text/sentences.py. A str is made on request only. */

/* A sentence with letters. */
typedef struct {
    Py_ssize_t first, last;      /* its place in the normalised text */
    Py_UCS4 *letters;
    Py_ssize_t length, unspaced; /* letters in all, and those of scripts without spaces between words */
    uint64_t hash;               /* of its letters */
} Line;

struct Cut {
    Py_UCS4 *text, *letters; /* the normalised text, and behind it, in the same memory, the letters of all lines */
    uint8_t *kinds;          /* of the characters of the text, behind these */
    Py_ssize_t size, count;  /* characters of the text, and lines */
    Py_ssize_t total;        /* letters */
    Line *lines;
    uint64_t body; /* hash of all letters, if no line was left out */
    Key key;
    uint64_t offset, base; /* for n-grams */
};

static void forget_cut(PyObject *capsule)
{
    Cut *cut = PyCapsule_GetPointer(capsule, CUT);
    PyMem_Free(cut->lines);
    PyMem_Free(cut->text);
    PyMem_Free(cut);
}

/* A cut text with the hashes of another one, with room for a text of a size, and some lines; NULL with an error. */
static PyObject *make_cut(Cut **cut, const Cut *other, Py_ssize_t size, Py_ssize_t lines)
{
    PyObject *capsule = new_capsule(cut, sizeof **cut, CUT, forget_cut);
    if (capsule)
        **cut = (Cut){.key = other->key, .offset = other->offset, .base = other->base};
    if (capsule && ((*cut)->text = memory_for(size, 2 * sizeof(Py_UCS4) + 1)) &&
        ((*cut)->lines = memory_for(lines, sizeof *(*cut)->lines))) {
        (*cut)->letters = (*cut)->text + size;
        (*cut)->kinds = (uint8_t *)((*cut)->letters + size);
        (*cut)->size = size;
    }
    else
        Py_CLEAR(capsule);
    return capsule;
}

#define LINES 64 /* room at first */

/* Cuts a text as ``sentences`` does; 0 with an error. */
static int cut_lines_of(Cut *cut)
{
    const uint8_t *kinds = cut->kinds;
    Py_ssize_t i, count = cut->size, room = LINES;
    Py_UCS4 *end = cut->letters;
    for (i = 0; i < count; i++) {
        Line line = {.first = i, .letters = end};
        for (; i < count; i++) {
            uint8_t kind = kinds[i];
            *end = cut->text[i];
            end += kind & LETTER;
            line.unspaced += (kind & (LETTER | UNSPACED)) == (LETTER | UNSPACED);
            if (kind & (MARK | POINT) && (kind & MARK || (i + 1 < count && kinds[i + 1] & ENDING)))
                break;
        }
        line.last = i;
        line.length = end - line.letters;
        while (i + 1 < count && kinds[i + 1] & MARK)
            i++;
        while (i + 1 < count && kinds[i + 1] & CLOSING)
            i++;
        if (!line.length)
            continue;
        while (kinds[line.first] & SPACE)
            line.first++;
        while (kinds[line.last - 1] & SPACE)
            line.last--;
        if (cut->count == room) {
            Line *larger = PyMem_Realloc(cut->lines, (size_t)(room *= 2) * sizeof *larger);
            if (!larger)
                return PyErr_NoMemory() != NULL;
            cut->lines = larger;
        }
        cut->lines[cut->count++] = line;
    }
    cut->total = end - cut->letters;
    return 1;
}

/* Hashes all letters together, all lines, and other texts. Returns the hashes of these; NULL with an error. */
static PyObject *hash_lines(Cut *cut, PyObject *others)
{
    Py_ssize_t i, count = PyList_Size(others);
    Text *texts = memory_for(cut->count + count, sizeof *texts), *lines = texts + 1 + count;
    uint8_t *bytes = texts ? memory_for(cut->total, 4) : NULL, *to = bytes;
    PyObject *found = NULL;
    if (bytes && read_texts(others, texts + 1)) {
        for (i = 0; i < cut->count; i++) {
            lines[i].at = to;
            lines[i].end = to = encode(cut->lines[i].letters, cut->lines[i].length, to);
        }
        texts[0].at = bytes; /* the longest one first: the others take the lanes beside it */
        texts[0].end = to;
        hash_each(&cut->key, texts, 1 + count + cut->count);
        for (i = 0; i < cut->count; i++)
            cut->lines[i].hash = lines[i].hash;
        cut->body = texts[0].hash;
        found = list_of(number_item, texts + 1, sizeof *texts, count);
    }
    PyMem_Free(bytes);
    PyMem_Free(texts);
    return found;
}

KERNEL(cut_text)
{
    Cut *cut, has = {0};
    Table *table;
    Points points;
    PyObject *text, *others, *capsule, *hashes = NULL;
    int is_normal;
    if (!PyArg_ParseTuple(args, "O&UO&KKpO!", as_table, &table, &text, as_key, &has.key, &has.offset, &has.base, &is_normal,
                          &PyList_Type, &others) ||
        !(capsule = make_cut(&cut, &has, PyUnicode_GetLength(text), LINES)))
        return NULL;
    points = (Points){cut->text, cut->size};
    if (PyUnicode_AsUCS4(text, points.at, points.count, 0) && fold(table, &points, is_normal, cut->kinds)) {
        cut->size = points.count;
        if (cut_lines_of(cut))
            hashes = hash_lines(cut, others);
    }
    if (hashes)
        return Py_BuildValue("NnKN", capsule, cut->total, (unsigned long long)cut->body, hashes);
    Py_DECREF(capsule);
    return or_none(NULL);
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
        capsule = make_cut(&left, cut, cut->size, cut->count);
    if (capsule) {
        memcpy(left->text, cut->text, (size_t)cut->size * sizeof *cut->text);
        memcpy(left->kinds, cut->kinds, (size_t)cut->size);
    }
    qsort(halves, (size_t)count, sizeof *halves, compare_halves);
    for (i = 0; capsule && i < cut->count; i++) {
        Line line = cut->lines[i];
        uint32_t half = (uint32_t)line.hash;
        if (bsearch(&half, halves, (size_t)count, sizeof half, compare_halves))
            continue;
        line.letters = memcpy(left->letters + left->total, line.letters, (size_t)line.length * sizeof *cut->letters);
        left->total += line.length;
        left->lines[left->count++] = line;
    }
    PyMem_Free(halves);
    if (capsule && left->count == cut->count)
        Py_CLEAR(capsule);
    return capsule ? Py_BuildValue("NnK", capsule, left->total, (unsigned long long)0) : or_none(NULL);
}

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
        Py_ssize_t length = are_letters ? line->length : line->last - line->first;
        memcpy(to, are_letters ? line->letters : cut->text + line->first, (size_t)length * sizeof *to);
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
        int is_short = cut->lines[i].length < least;
        memcpy(PyByteArray_AsString(found) + 4 * count, &half, sizeof half);
        count += !is_short || was_short || (i + 1 < cut->count && cut->lines[i + 1].length < least);
        was_short = is_short;
    }
    if (count < cut->count && PyByteArray_Resize(found, count * 4) < 0)
        Py_CLEAR(found);
    return found;
}

#define MOST_KEPT 255 /* of any part of a sketch */

/* Finds the longest different lines, the longest first, equally long ones in order of characters; returns their number. */
static Py_ssize_t find_longest(const Cut *cut, Py_ssize_t at_least, Py_ssize_t most, Word *best)
{
    Py_ssize_t i, held = 0;
    for (i = 0; i < cut->count; i++) {
        const Line *line = &cut->lines[i];
        Word word = {line->hash, -(double)line->length, line->letters, line->length};
        if (word.length >= at_least && (held < most || word.weight <= best[held - 1].weight))
            held = keep(best, held, most, &word, sizeof word, compare_weights);
    }
    return held;
}

/* Packs the lowest 16 bits, big-endian; returns where the next ones go. */
static char *put_half(uint64_t value, char *to)
{
    *to++ = (char)(value >> 8);
    *to++ = (char)value;
    return to;
}

/* 32 bits of the hash of each of some lines, in ascending order, each once. */
static PyObject *sentences_of(const Word *lines, Py_ssize_t count)
{
    char packed[4 * MOST_KEPT], *to = packed;
    uint32_t halves[MOST_KEPT];
    Py_ssize_t i, held = 0;
    for (i = 0; i < count; i++) {
        uint32_t half = (uint32_t)lines[i].hash;
        held = keep(halves, held, MOST_KEPT, &half, sizeof half, compare_halves);
    }
    for (i = 0; i < held; i++)
        to = put_half(halves[i], put_half(halves[i] >> 16, to));
    return PyBytes_FromStringAndSize(packed, to - packed);
}

/* 16 bits of the hash of each of the first and last lines, or of all. */
static PyObject *ends_of(const Cut *cut, Py_ssize_t first, Py_ssize_t last)
{
    char packed[4 * MOST_KEPT], *to = packed;
    Py_ssize_t i;
    for (i = 0; i < cut->count; i++)
        if (first + last >= cut->count || i < first || i >= cut->count - last)
            to = put_half(cut->lines[i].hash, to);
    return PyBytes_FromStringAndSize(packed, to - packed);
}

/* 16 bits of the sum of the hashes of all different numbers in lines, and of each of the smallest ones. */
static PyObject *numbers_of(const Cut *cut, Py_ssize_t most)
{
    uint64_t sum = 0, *found = memory_for(cut->total, sizeof *found);
    Py_ssize_t line, i, count = 0;
    char packed[2 * MOST_KEPT + 2], *at = packed + 2;
    if (!found)
        return NULL;
    for (line = 0; line < cut->count; line++) {
        const Py_UCS4 *letters = cut->lines[line].letters;
        Py_ssize_t first, length = cut->lines[line].length;
        unsigned int digits = 0;
        for (i = 0; i < length; i++) /* most lines have none; without a branch this takes a tenth */
            digits |= letters[i] - '0' <= 9;
        for (first = digits ? 0 : length; first < length; first = i + 1) {
            for (i = first; i < length && letters[i] - '0' <= 9; i++)
                ; /* the normal spelling has no other digits */
            if (i > first)
                found[count++] = gram_of(letters + first, i - first, cut->offset, cut->base);
        }
    }
    count = sort_different(found, count);
    for (i = 0; i < count; i++) {
        sum += found[i];
        if (i < most)
            at = put_half(found[i] >> 48, at);
    }
    PyMem_Free(found);
    put_half(sum >> 48, packed);
    return PyBytes_FromStringAndSize(packed, count ? at - packed : 0);
}

/* The numbers of a ``SketchForm``, and their bounds. */
enum { N, BINS, BITS, KEY_N, KEY_N_SPACED, KEYS, AT_LEAST, LONGEST, SENTENCES, NUMBERS, FIRST, LAST, FORM };
#define ANY PY_SSIZE_T_MAX
static const Py_ssize_t LEAST[FORM] = {1, 8, 1, 1, 1, 1, 0, 1, 0, 0, 0, 0};
static const Py_ssize_t MOST[FORM] = {ANY, MOST_BINS, 8, ANY, ANY, MOST_KEYS, ANY,
                                      MOST_KEPT, MOST_KEPT, MOST_KEPT, MOST_KEPT, MOST_KEPT};

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
    Py_ssize_t form[FORM], i, unspaced = 0, count;
    Word longest[MOST_KEPT];
    PyObject *sketch, *keys, *long_ones, *sentences, *numbers, *ends;
    if (!PyArg_ParseTuple(args, "O&(nnnnnnnnnnnn)", as_cut, &cut, &form[N], &form[BINS], &form[BITS], &form[KEY_N],
                          &form[KEY_N_SPACED], &form[KEYS], &form[AT_LEAST], &form[LONGEST], &form[SENTENCES], &form[NUMBERS],
                          &form[FIRST], &form[LAST]) ||
        !is_valid(form) || !begin_grams(&grams, cut->letters, cut->total, cut->offset, cut->base))
        return NULL;
    for (i = 0; i < cut->count; i++)
        unspaced += cut->lines[i].unspaced;
    hash_n_grams(&grams, form[N]);
    sketch = sketch_of(&grams, form[BINS], form[BITS]);
    count = different(&grams);
    /* a fiftieth of letters without spaces: see ``has_unspaced`` */
    hash_n_grams(&grams, unspaced && 50 * unspaced >= grams.length ? form[KEY_N] : form[KEY_N_SPACED]);
    keys = smallest_of(&grams, form[KEYS]);
    i = find_longest(cut, form[AT_LEAST], form[LONGEST], longest);
    long_ones = list_of(number_item, longest, sizeof *longest, i);
    sentences = sentences_of(longest, i < form[SENTENCES] ? i : form[SENTENCES]);
    numbers = numbers_of(cut, form[NUMBERS]);
    ends = ends_of(cut, form[FIRST], form[LAST]);
    PyMem_Free(grams.sums);
    if (count < 0)
        Py_CLEAR(ends);
    /* It takes the parts over; one that is missing is an error. */
    return Py_BuildValue("nNNNNNN", count, sketch, keys, long_ones, sentences, numbers, ends);
}

#define MOST_WORDS 64
#define STARTS 1024
#define LONG 0x7FFFFF /* longer words count as equally long */

/* The words of a title, a bit for each: those without spaces around them, those with spaces, and the numbers among these. */
typedef struct {
    Points at[MOST_WORDS];
    uint64_t starts[STARTS]; /* which ones are looked for: by two characters, or one and 0 */
    uint64_t unspaced, spaced, numbers;
} Title;

#define START(one, other) (((one) * 31 + (other)) & (STARTS - 1))
#define IS_SPACED(kind) (((kind) & (LETTER | UNSPACED)) == LETTER)

/* Reads at most 64 words; unspaced ones are looked for up to a length. Returns 0 with an error. */
static int read_title(Title *title, Table *table, PyObject *list, Py_ssize_t longest)
{
    Py_ssize_t i, k;
    for (k = 0; k < PyList_Size(list); k++) {
        PyObject *item = PyList_GetItem(list, k), *is_number;
        Points *word = &title->at[k];
        uint64_t bit = UINT64_C(1) << k;
        Py_ssize_t unspaced = 0, spaced = 0;
        if (!points_of(item, word))
            return 0;
        for (i = 0; i < word->count && BLOCK_OF(table, word->at[i]); i++) {
            unspaced += (KIND_OF(table, word->at[i]) & UNSPACED) != 0;
            spaced += IS_SPACED(KIND_OF(table, word->at[i]));
        }
        if (i < word->count)
            return 0;
        if (unspaced && 50 * unspaced >= i) { /* see ``has_unspaced`` */
            title->unspaced |= bit;
            if (1 < i && i <= longest)
                title->starts[START(word->at[0], word->at[1])] |= bit;
            continue;
        }
        title->spaced |= bit;
        if (i && spaced == i)
            title->starts[START(word->at[0], 0)] |= bit;
        if (!(is_number = PyObject_CallMethod(item, "isdigit", NULL)))
            return 0;
        title->numbers |= is_number == Py_True ? bit : 0;
        Py_DECREF(is_number);
    }
    return 1;
}

/* A bit for each of the unspaced words in a text, or with the kinds of its characters for each of the spaced ones. */
static uint64_t look_for(const Title *title, const Py_UCS4 *at, Py_ssize_t count, const uint8_t *kinds)
{
    uint64_t left, found = 0, words = kinds ? title->spaced : title->unspaced;
    Py_ssize_t i, k, last = words ? count - !kinds : 0; /* an unspaced word has two characters */
    for (i = 0; i < last; i++) {
        if (!(left = title->starts[START(at[i], kinds ? 0 : at[i + 1])] & words) || (kinds && i && IS_SPACED(kinds[i - 1])))
            continue;
        for (k = 0; left; k++, left >>= 1) {
            Py_ssize_t length = title->at[k].count, end = i + length;
            if (left & 1 && end <= count && !(kinds && end < count && IS_SPACED(kinds[end])) &&
                !memcmp(at + i, title->at[k].at, (size_t)length * sizeof *at))
                found |= UINT64_C(1) << k;
        }
    }
    return found;
}

/* Packs the words of a title. ``words``: of each its hash, and from bit 8 on what decides between two with one hash. */
static PyObject *pack_title(uint64_t *words, Py_ssize_t count, uint64_t flag, Py_ssize_t most)
{
    char packed[3 * MOST_WORDS], *at = packed;
    Py_ssize_t i;
    qsort(words, (size_t)count, sizeof *words, compare_words);
    for (i = 0; i < count && most; i++) {
        uint64_t hash = words[i] >> 32 | (words[i] & 1 ? flag : 0);
        if (i + 1 < count && words[i + 1] >> 32 == words[i] >> 32)
            continue;
        *at++ = (char)(hash >> 16);
        at = put_half(hash, at);
        most--;
    }
    return PyBytes_FromStringAndSize(packed, at - packed);
}

KERNEL(cut_title)
{
    Cut *cut;
    Table *table;
    PyObject *list, *packed = NULL;
    Title title;
    Text texts[MOST_WORDS];
    uint64_t mask, number, flag, found = 0, words[MOST_WORDS];
    Py_ssize_t i, k, longest, most, count = 0;
    if (!PyArg_ParseTuple(args, "O&O&O!KKKO&O&", as_cut, &cut, as_table, &table, &PyList_Type, &list, &mask, &number, &flag,
                          as_size, &longest, as_size, &most) ||
        !is_so(PyList_Size(list) <= MOST_WORDS, PyExc_ValueError, "a number is out of its range"))
        return NULL;
    memset(&title, 0, sizeof title);
    if (read_title(&title, table, list, longest) && (!title.spaced || read_texts(list, texts))) {
        if (title.spaced)
            hash_each(&cut->key, texts, PyList_Size(list));
        for (i = 0; i < cut->count; i++) {
            const Line *line = &cut->lines[i];
            found |= look_for(&title, line->letters, line->length, NULL);
            found |= look_for(&title, cut->text + line->first, line->last - line->first, cut->kinds + line->first);
        }
        for (k = 0; k < PyList_Size(list); k++) {
            const Points *word = &title.at[k];
            uint64_t hash, rank = (uint64_t)k; /* of equal hashes the last one counts, or the longest of the unspaced ones */
            if (title.spaced >> k & 1)
                hash = (texts[k].hash & mask) | (title.numbers >> k & 1 ? number : 0);
            else if (word->count > 1) {
                hash = gram_of(word->at, word->count, cut->offset, cut->base) & mask;
                rank = LONG + (uint64_t)(word->count < LONG ? word->count : LONG);
            }
            else
                continue;
            words[count++] = hash << 32 | rank << 8 | (found >> k & 1);
        }
        packed = pack_title(words, count, flag, most);
    }
    for (k = 0; k < PyList_Size(list); k++)
        PyMem_Free(title.at[k].at);
    return packed;
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
    if (!PyArg_ParseTuple(args, "O&O&O&KO!", as_cut, &cut, as_size, &n, as_size, &longest, &mask, &PyList_Type, &list) ||
        !is_so(1 <= n && n <= longest && PyList_Size(list) <= MOST_ASKED, PyExc_ValueError, "a number is out of its range"))
        return NULL;
    for (count = PyList_Size(list), i = 0; i < count && !PyErr_Occurred(); i++) {
        asked[i] = PyLong_AsUnsignedLongLong(PyList_GetItem(list, i));
        MAY_BE(asked[i]) = 1;
    }
    if (PyErr_Occurred() || !begin_grams(&grams, cut->letters, cut->total, cut->offset, cut->base))
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
    return list_of(number_item, asked, sizeof *asked, count);
}
