/* Words of a text and their weights: see text/segmenter.py.
 *
 * A word is known by bits of a hash of its characters: in jieba's tables no two words, or beginnings of words, have the same
 * ones. A slot has 8 bytes and the table 8 MB, as nearly each look-up waits for memory. In dicts it takes 150 MB.
 */
#define MOST_NUMBERS 0x8000
#define HAS_LONGER 0x8000 /* with the number of a chance: longer words begin so */

typedef struct {
    uint32_t word;           /* 0 in an empty slot */
    uint16_t chance, weight; /* places of two numbers, 0 for none */
} Slot;

/* Different numbers; they are few, so they stay in the innermost caches. The first one is that of words without a number. */
typedef struct {
    double at[MOST_NUMBERS];
    uint16_t places[2 * MOST_NUMBERS]; /* by hash; 0 for none */
    uint16_t count;
} Numbers;

typedef struct {
    Slot *slots;
    size_t size, count;
    double rare; /* the chance of a character that is no word */
    Numbers chances, weights; /* a chance is the logarithm of the share of all words */
} Lexicon;

static const char LEXICON[] = "scrapy_neardup lexicon";
OF_CAPSULE(as_lexicon, LEXICON)

/* The hash of a word is that of its beginning and its last character. */
static uint64_t longer(uint64_t hash, Py_UCS4 c)
{
    return mix(hash + c) | 1;
}

static uint64_t hash_word(const Py_UCS4 *at, Py_ssize_t count)
{
    uint64_t hash = 1;
    while (count--)
        hash = longer(hash, *at++);
    return hash;
}

/* The slot of a word, or the empty one where it could be. */
static Slot *slot_for(const Lexicon *lexicon, uint64_t hash)
{
    size_t place = (size_t)hash & (lexicon->size - 1);
    uint32_t word = (uint32_t)(hash >> 32) | 1;
    while (lexicon->slots[place].word && lexicon->slots[place].word != word)
        place = (place + 1) & (lexicon->size - 1);
    return &lexicon->slots[place];
}

/* The slot of a word, which is added if it is new; NULL with an error. */
static Slot *add_word(Lexicon *lexicon, uint64_t hash)
{
    Slot *slot;
    if (lexicon->count >= lexicon->size / 4 * 3) {
        PyErr_SetString(PyExc_ValueError, "there are too many words");
        return NULL;
    }
    slot = slot_for(lexicon, hash);
    if (!slot->word) {
        slot->word = (uint32_t)(hash >> 32) | 1;
        lexicon->count++;
    }
    return slot;
}

/* The place of a number, which is added if it is new; 0 with an error. */
static uint16_t add_number(Numbers *numbers, double number)
{
    uint64_t bits;
    uint16_t *place;
    memcpy(&bits, &number, sizeof bits);
    for (bits = mix(bits); *(place = &numbers->places[bits & (2 * MOST_NUMBERS - 1)]); bits++)
        if (numbers->at[*place] == number)
            return *place;
    if (numbers->count + 1 == MOST_NUMBERS) {
        PyErr_SetString(PyExc_ValueError, "there are too many different numbers");
        return 0;
    }
    numbers->at[*place = ++numbers->count] = number;
    return *place;
}

/* A line of a word, a space, and a number with another space or the end of the line behind it. */
typedef struct {
    const Py_UCS4 *word;
    Py_ssize_t length;
    double number;
} Entry;

#define LONGEST_NUMBER 400 /* digits */

/* Reads a line; returns where the next one begins, NULL with an error. */
static const Py_UCS4 *read_entry(const Py_UCS4 *at, const Py_UCS4 *end, Entry *entry)
{
    char number[LONGEST_NUMBER + 1], *stop = number;
    Py_ssize_t size = 0;
    for (entry->word = at; at < end && *at != ' ' && *at != '\n'; at++)
        ;
    entry->length = at - entry->word;
    for (at += at < end && *at == ' '; at < end && *at != ' ' && *at != '\n'; at++)
        if (size < LONGEST_NUMBER)
            number[size++] = (char)(*at < 128 ? *at : '?');
    number[size] = 0;
    entry->number = PyOS_string_to_double(number, &stop, NULL);
    if (stop != number + size || !size || size == LONGEST_NUMBER) {
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_ValueError, "a line is no word with a number");
        return NULL;
    }
    while (at < end && *at++ != '\n')
        ;
    return at;
}

/* Adds a dictionary of words and how often they occur; 0, or -1 with an error. */
static int read_dictionary(Lexicon *lexicon, const Points *points)
{
    const Py_UCS4 *at = points->at, *end = at + points->count;
    double total = 0;
    Py_ssize_t i;
    Entry entry;
    while (at < end) {
        uint64_t hash = 1;
        Slot *slot = NULL;
        if (!(at = read_entry(at, end, &entry)))
            return -1;
        for (i = 0; i < entry.length; i++) {
            if (slot)
                slot->chance |= HAS_LONGER;
            hash = longer(hash, entry.word[i]);
            if (!(slot = add_word(lexicon, hash)))
                return -1;
        }
        if (slot && entry.number > 0) {
            uint16_t place = add_number(&lexicon->chances, entry.number);
            if (!place)
                return -1;
            slot->chance = (uint16_t)((slot->chance & HAS_LONGER) | place);
        }
        total += entry.number;
    }
    lexicon->rare = -log(total);
    for (i = 1; i <= lexicon->chances.count; i++)
        lexicon->chances.at[i] = log(lexicon->chances.at[i]) - log(total);
    return 0;
}

static int compare_numbers(const void *one, const void *other)
{
    double a = *(const double *)one, b = *(const double *)other;
    return (a > b) - (a < b);
}

/* Adds weights of at most so many words, and their median, of two the larger, for all other words; 0, or -1 with an error. */
static int read_weights(Lexicon *lexicon, const Points *points, Py_ssize_t most)
{
    const Py_UCS4 *at = points->at, *end = at + points->count;
    double *all = memory_for(most, sizeof *all);
    Py_ssize_t count = 0;
    Entry entry;
    while (all && at < end && !PyErr_Occurred()) {
        Slot *slot = (at = read_entry(at, end, &entry)) ? add_word(lexicon, hash_word(entry.word, entry.length)) : NULL;
        if (slot && is_so(count < most, PyExc_ValueError, "there are too many words")) {
            slot->weight = add_number(&lexicon->weights, entry.number);
            all[count++] = entry.number;
        }
    }
    if (all && !PyErr_Occurred()) {
        qsort(all, (size_t)count, sizeof *all, compare_numbers);
        lexicon->weights.at[0] = count ? all[count / 2] : 0.0;
    }
    PyMem_Free(all);
    return PyErr_Occurred() ? -1 : 0;
}

static void forget_lexicon(PyObject *capsule)
{
    Lexicon *lexicon = PyCapsule_GetPointer(capsule, LEXICON);
    PyMem_Free(lexicon->slots);
    PyMem_Free(lexicon);
}

/* Dictionary, weights, and an upper limit for the number of different words in both. */
KERNEL(lexicon)
{
    Lexicon *lexicon;
    Points words, weights;
    PyObject *capsule = NULL;
    Py_ssize_t most;
    if (!PyArg_ParseTuple(args, "O&O&O&", as_text, &words, as_text, &weights, as_size, &most))
        return NULL;
    if ((lexicon = PyMem_Calloc(1, sizeof *lexicon))) {
        for (lexicon->size = 1024; lexicon->size / 4 * 3 < (size_t)most; lexicon->size *= 2)
            ;
        lexicon->slots = PyMem_Calloc(lexicon->size, sizeof *lexicon->slots);
        if (!(capsule = PyCapsule_New(lexicon, LEXICON, forget_lexicon)))
            PyMem_Free(lexicon);
    }
    if (!capsule || !lexicon->slots)
        PyErr_NoMemory();
    else if (read_dictionary(lexicon, &words) == 0)
        read_weights(lexicon, &weights, most);
    release(&words);
    release(&weights);
    if (PyErr_Occurred())
        Py_CLEAR(capsule);
    return capsule;
}

/* ---- words of a text --------------------------------------------------------------------------------------------- */

typedef struct {
    uint64_t hash;
    double weight;
    const Py_UCS4 *at;
    Py_ssize_t length;
} Word;

/* The best way to cut what begins at a character: the logarithm of its chance, and its first word. */
typedef struct {
    double chance;
    Py_ssize_t length;
    uint64_t hash;
    const Slot *slot;
} Step;

/* What jieba's pattern calls Chinese. */
static int is_cut(Py_UCS4 c)
{
    return c >= 0x4E00 && c <= 0x9FD5;
}

/* Hashes each character, and each with the next one. */
IN_CLONES static void hash_beginnings(const Py_UCS4 *at, Py_ssize_t count, uint64_t *ones, uint64_t *twos)
{
    Py_ssize_t i;
    for (i = 0; i < count; i++)
        ones[i] = longer(1, at[i]);
    for (i = 0; i + 1 < count; i++)
        twos[i] = longer(ones[i], at[i + 1]);
}

#define AHEAD 16 /* characters: most words have one or two, and their slots are fetched so early */

/* Cuts Chinese characters as jieba does without its hidden Markov model. The first of ``steps`` begins the result. */
static void cut_run(const Lexicon *lexicon, const Py_UCS4 *at, Py_ssize_t count, Step *steps, uint64_t *hashes)
{
    uint64_t *ones = hashes, *twos = hashes + count;
    Py_ssize_t i, k;
    hash_beginnings(at, count, ones, twos);
    twos[count - 1] = 0; /* of no word */
    steps[count].chance = 0.0;
    for (i = count + AHEAD; i-- > 0;) {
        Step best = {0.0, 0, 0, NULL};
        const Slot *slot = NULL;
        uint64_t hash = 0;
        if (i >= AHEAD) {
            SOON(&lexicon->slots[(size_t)ones[i - AHEAD] & (lexicon->size - 1)]);
            SOON(&lexicon->slots[(size_t)twos[i - AHEAD] & (lexicon->size - 1)]);
        }
        if (i >= count)
            continue;
        for (k = i; k < count && is_cut(at[k]) && (!slot || slot->chance & HAS_LONGER); k++) {
            uint16_t place;
            hash = k == i ? ones[i] : k == i + 1 ? twos[i] : longer(hash, at[k]);
            slot = slot_for(lexicon, hash);
            if ((place = slot->chance & (HAS_LONGER - 1))) {
                double chance = lexicon->chances.at[place] + steps[k + 1].chance;
                if (!best.length || chance >= best.chance) /* of equals the longer one */
                    best = (Step){chance, k + 1 - i, hash, slot};
            }
        }
        if (!best.length) { /* other characters stand alone, and what is before them does not depend on them */
            double chance = is_cut(at[i]) ? lexicon->rare + steps[i + 1].chance : 0.0;
            best = (Step){chance, 1, ones[i], slot_for(lexicon, ones[i])};
        }
        steps[i] = best;
    }
}

static uint32_t kind_of(const Table *table, Py_UCS4 c)
{
    uint32_t entry = ENTRY(table, c);
    return entry & HAN ? HAN : entry & KATAKANA ? KATAKANA : entry & (UNSPACED | LETTER);
}

static Word weigh(const Lexicon *lexicon, const Py_UCS4 *at, Py_ssize_t length, uint64_t hash, const Slot *slot)
{
    return (Word){hash, lexicon->weights.at[slot->weight], at, length};
}

/* Finds the words of a text, of Chinese ones with one character only ``singles``; their number, or -1 with an error. The
 * caller frees ``*words``. */
static Py_ssize_t find_words(const Lexicon *lexicon, const Table *table, const Points *points, int singles, Word **words)
{
    const Py_UCS4 *at = points->at, *all_end = at + points->count, *end;
    Step *steps = memory_for(points->count, sizeof *steps + 2 * sizeof(uint64_t));
    Py_ssize_t found = 0;
    if (!steps || !(*words = memory_for(points->count, sizeof **words))) {
        PyMem_Free(steps);
        return -1;
    }
    for (; at < all_end; at = end) {
        uint32_t kind = kind_of(table, *at);
        end = at + 1;
        if (!kind)
            continue;
        while (end < all_end && kind_of(table, *end) == kind && !(kind & UNSPACED))
            end++;
        if (kind != HAN) {
            uint64_t hash = hash_word(at, end - at);
            (*words)[found++] = weigh(lexicon, at, end - at, hash, slot_for(lexicon, hash));
        }
        else {
            const Step *step = steps;
            cut_run(lexicon, at, end - at, steps, (uint64_t *)(void *)(steps + points->count + 1));
            for (; at < end; at += step->length, step += step->length)
                if (singles || step->length > 1)
                    (*words)[found++] = weigh(lexicon, at, step->length, step->hash, step->slot);
        }
    }
    PyMem_Free(steps);
    return found;
}

static PyObject *word_item(const void *words, Py_ssize_t place)
{
    const Word *word = (const Word *)words + place;
    return str_of(word->at, word->length);
}

/* Whether a word comes before another one: the smallest weight first, equals in order of characters. */
static int is_before(const Word *one, const Word *other)
{
    Py_ssize_t i, both = one->length < other->length ? one->length : other->length;
    if (one->weight != other->weight)
        return one->weight < other->weight;
    for (i = 0; i < both; i++)
        if (one->at[i] != other->at[i])
            return one->at[i] < other->at[i];
    return one->length < other->length;
}

/* Puts the different words that weigh most first, see ``is_before``; returns their number. */
static Py_ssize_t rank(Word *words, Py_ssize_t count, Py_ssize_t most)
{
    Py_ssize_t i, held = 0;
    qsort(words, (size_t)count, sizeof *words, compare_words); /* by hash, which comes first */
    for (i = 0; i < count; i++) {
        Word word = words[i];
        Py_ssize_t place = held;
        for (word.weight = -word.weight; i + 1 < count && words[i + 1].hash == word.hash; i++)
            word.weight -= words[i + 1].weight;
        while (place && is_before(&word, &words[place - 1]))
            place--;
        if (place == most)
            continue;
        held += held < most;
        memmove(words + place + 1, words + place, (size_t)(held - 1 - place) * sizeof *words);
        words[place] = word;
    }
    return held;
}

/* Table of characters, text, lexicon, whether Chinese words of one character count, number of core words, whether all words
 * are wanted. Returns all words, and the core words. */
KERNEL(words)
{
    Lexicon *lexicon;
    Table *table;
    Points points;
    Word *words = NULL;
    PyObject *all = NULL, *core = NULL;
    Py_ssize_t count, most;
    int singles, are_all_wanted;
    if (!PyArg_ParseTuple(args, "O&O&O&pO&p", as_table, &table, as_text, &points, as_lexicon, &lexicon, &singles, as_size,
                          &most, &are_all_wanted))
        return NULL;
    if (knows_all(table, &points) && (count = find_words(lexicon, table, &points, singles, &words)) >= 0 &&
        (all = list_of(word_item, words, are_all_wanted ? count : 0)))
        core = list_of(word_item, words, most ? rank(words, count, most) : 0);
    PyMem_Free(words);
    release(&points);
    return Py_BuildValue("NN", all, core);
}
