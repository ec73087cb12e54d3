/* Words of a text and their weights: see ``Segmenter`` in text/tokens.py.
 *
 * A word is known by bits of a hash of its characters: in jieba's tables no two words, or beginnings of words, have the same
 * ones. A slot has 8 bytes and the table 8 MB, as nearly each look-up waits for memory. In dicts it takes 150 MB.
 */
#define MOST_NUMBERS 0x8000
#define MAYBE_BYTES (1 << 19)
#define HAS_LONGER 0x8000 /* with the number of a chance: longer words begin so */

typedef struct {
    uint32_t word;           /* 0 in an empty slot */
    uint16_t chance, weight; /* places of two numbers, 0 for none */
} Slot;

/* Different numbers; they are few, so they stay in the innermost caches. The first one is that of words without a number. */
typedef struct {
    double at[MOST_NUMBERS];
    uint16_t places[2 * MOST_NUMBERS], count; /* places by hash; 0 for none */
} Numbers;

/* The characters that jieba's pattern calls Chinese. */
#define IS_CUT(c) ((c) >= 0x4E00 && (c) <= 0x9FD5)

typedef struct {
    Slot *slots;
    uint8_t maybe[MAYBE_BYTES]; /* a bit of each word: most look-ups are of no word, and these bits stay in a cache */
    size_t size, count;
    double rare; /* the chance of a character that is no word */
    Numbers chances, weights; /* a chance is the logarithm of the share of all words */
} Lexicon;

#define MAYBE(lexicon, hash) (lexicon)->maybe[(hash) >> 20 & (MAYBE_BYTES - 1)]
#define MAYBE_BIT(hash) (1 << ((hash) >> 40 & 7))

static const char LEXICON[] = "scrapy_neardup lexicon";
OF_CAPSULE(as_lexicon, LEXICON)

/* The hash of a word is that of its beginning and its last character. */
static uint64_t longer(uint64_t hash, Py_UCS4 c)
{
    return mix(hash + c) | 1;
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

/* The place of a number, which is added if it is new; 0 with an error. */
static uint16_t add_number(Numbers *numbers, double number)
{
    uint64_t bits;
    uint16_t *place;
    memcpy(&bits, &number, sizeof bits);
    for (bits = mix(bits); *(place = &numbers->places[bits & (2 * MOST_NUMBERS - 1)]); bits++)
        if (numbers->at[*place] == number)
            return *place;
    if (is_so(numbers->count + 1 < MOST_NUMBERS, PyExc_ValueError, "there are too many different numbers"))
        numbers->at[*place = ++numbers->count] = number;
    return *place;
}

/* The next character of UTF-8 that ends with a zero; of other bytes any number. */
static Py_UCS4 next_point(const char **at)
{
    Py_UCS4 first = (uint8_t) * (*at)++, point = first < 0xC0 ? first : first & (first < 0xE0 ? 0x1F : first < 0xF0 ? 0xF : 7);
    while (first >= 0xC0 && (**at & 0xC0) == 0x80)
        point = point << 6 | ((uint8_t) * (*at)++ & 0x3F);
    return point;
}

/* Adds lines of a word, a space, and a number, which may have more behind it. Keeps the numbers of at most so many lines, in
 * their order; returns how many, or -1 with an error. Each beginning of a word has a slot. */
static Py_ssize_t read_lines(Lexicon *lexicon, const char *at, int are_weights, double *kept, Py_ssize_t most)
{
    Py_ssize_t count = 0;
    for (; *at; at += *at == '\n') {
        uint64_t hash = 1;
        Slot *slot = NULL;
        uint16_t place;
        char *end = NULL;
        double number;
        while (*at && *at != ' ' && *at != '\n') {
            if (slot)
                slot->chance |= HAS_LONGER;
            hash = longer(hash, next_point(&at));
            slot = slot_for(lexicon, hash);
            lexicon->count += !slot->word;
            slot->word = (uint32_t)(hash >> 32) | 1;
            MAYBE(lexicon, hash) |= MAYBE_BIT(hash);
            if (!is_so(lexicon->count < lexicon->size / 4 * 3, PyExc_ValueError, "there are too many words"))
                return -1;
        }
        number = PyOS_string_to_double(*at == ' ' ? ++at : "", &end, NULL);
        if (PyErr_Occurred() || !is_so((!*end || *end == ' ' || *end == '\n') && isfinite(number) && count < most,
                                       PyExc_ValueError, "a line is no word with a number, or there are too many lines"))
            return -1;
        for (at = end; *at && *at != '\n';)
            at++;
        kept[count++] = number;
        if (!slot || (!are_weights && number <= 0))
            continue;
        if (!(place = add_number(are_weights ? &lexicon->weights : &lexicon->chances, number)))
            return -1;
        if (are_weights)
            slot->weight = place;
        else
            slot->chance = (uint16_t)((slot->chance & HAS_LONGER) | place);
    }
    return count;
}

/* Reads both tables, maybe with an error. Words without a weight have the median, of two the larger. */
static void read_tables(Lexicon *lexicon, const char *dictionary, const char *weights, Py_ssize_t most)
{
    double total = 0, *numbers = memory_for(most, sizeof *numbers);
    Py_ssize_t i, count = numbers ? read_lines(lexicon, dictionary, 0, numbers, most) : -1;
    for (i = 0; i < count; i++)
        total += numbers[i];
    lexicon->rare = -log(total);
    for (i = 1; i <= lexicon->chances.count; i++)
        lexicon->chances.at[i] = log(lexicon->chances.at[i]) - log(total);
    if (count >= 0 && (count = read_lines(lexicon, weights, 1, numbers, most)) > 0) {
        qsort(numbers, (size_t)count, sizeof *numbers, compare_numbers);
        lexicon->weights.at[0] = numbers[count / 2];
    }
    PyMem_Free(numbers);
}

static void forget_lexicon(PyObject *capsule)
{
    Lexicon *lexicon = PyCapsule_GetPointer(capsule, LEXICON);
    PyMem_Free(lexicon->slots);
    PyMem_Free(lexicon);
}

KERNEL(lexicon)
{
    Lexicon *lexicon;
    PyObject *dictionary, *weights, *capsule;
    Py_ssize_t most;
    if (!PyArg_ParseTuple(args, "SSO&", &dictionary, &weights, as_size, &most) ||
        !(capsule = new_capsule(&lexicon, sizeof *lexicon, LEXICON, forget_lexicon)))
        return NULL;
    for (lexicon->size = 1024; lexicon->size / 4 * 3 < (size_t)most; lexicon->size *= 2)
        ;
    if (!(lexicon->slots = PyMem_Calloc(lexicon->size, sizeof *lexicon->slots)))
        PyErr_NoMemory();
    else
        read_tables(lexicon, PyBytes_AsString(dictionary), PyBytes_AsString(weights), most);
    if (PyErr_Occurred())
        Py_CLEAR(capsule);
    return capsule;
}

/* The best way to cut what begins at a character: the logarithm of its chance, and its first word. */
typedef struct {
    double chance;
    Py_ssize_t length;
    uint64_t hash;
    const Slot *slot;
} Step;

/* Cuts Chinese characters as jieba does without its hidden Markov model. The first of ``steps`` begins the result. */
static void cut_run(const Lexicon *lexicon, const Py_UCS4 *at, Py_ssize_t count, Step *steps, uint64_t *hashes)
{
    uint64_t *ones = hashes, *twos = hashes + count;
    Py_ssize_t i, k;
    for (i = 0; i < count; i++) {
        ones[i] = longer(1, at[i]);
        twos[i] = i + 1 < count ? longer(ones[i], at[i + 1]) : 0; /* 0 is of no word */
        SOON(&MAYBE(lexicon, twos[i]));
        SOON(&lexicon->slots[(size_t)ones[i] & (lexicon->size - 1)]);
    }
    steps[count].chance = 0.0;
    for (i = count; i-- > 0;) {
        Step best = {0.0, 0, 0, NULL};
        const Slot *slot = NULL;
        uint64_t hash = 0;
        if (i >= 16) /* most words have one or two characters, and their slots are fetched so early */
            SOON(&lexicon->slots[(size_t)twos[i - 16] & (lexicon->size - 1)]);
        for (k = i; k < count && IS_CUT(at[k]) && (!slot || slot->chance & HAS_LONGER); k++) {
            uint16_t place;
            hash = k == i ? ones[i] : k == i + 1 ? twos[i] : longer(hash, at[k]);
            if (k > i && !(MAYBE(lexicon, hash) & MAYBE_BIT(hash)))
                break; /* no word begins so */
            slot = slot_for(lexicon, hash);
            if ((place = slot->chance & (HAS_LONGER - 1))) {
                double chance = lexicon->chances.at[place] + steps[k + 1].chance;
                if (!best.length || chance >= best.chance) /* of equals the longer one */
                    best = (Step){chance, k + 1 - i, hash, slot};
            }
        }
        if (!best.length) { /* other characters stand alone, and what is before them does not depend on them */
            double chance = IS_CUT(at[i]) ? lexicon->rare + steps[i + 1].chance : 0.0;
            best = (Step){chance, 1, ones[i], slot_for(lexicon, ones[i])};
        }
        steps[i] = best;
    }
}

static uint32_t kind_of(const Table *table, Py_UCS4 c)
{
    uint32_t entry = ENTRY(table, c), kind = KIND(entry);
    return kind & HAN ? HAN : entry & KATAKANA ? KATAKANA : kind & (UNSPACED | LETTER);
}

/* Finds the words of a text, of Chinese ones with one character only ``singles``; their number, or -1 with an error. The
 * caller frees ``*words``. */
static Py_ssize_t find_words(const Lexicon *lexicon, Table *table, Points *points, int singles, Word **words)
{
    const Py_UCS4 *at = points->at, *all_end = at + points->count, *end;
    Step *steps = memory_for(points->count, sizeof *steps + 2 * sizeof(uint64_t));
    Py_ssize_t i, found = 0;
    if (!steps || !fold(table, points, 1, (uint8_t *)steps) || !(*words = memory_for(points->count, sizeof **words))) {
        PyMem_Free(steps);
        return -1;
    }
    for (; at < all_end; at = end) {
        uint32_t kind = kind_of(table, *at);
        const Step *step;
        end = at + 1;
        if (!kind)
            continue;
        while (end < all_end && kind_of(table, *end) == kind && !(kind & UNSPACED))
            end++;
        if (kind == HAN)
            cut_run(lexicon, at, end - at, steps, (uint64_t *)(void *)(steps + points->count + 1));
        else {
            uint64_t hash = 1;
            for (i = 0; i < end - at; i++)
                hash = longer(hash, at[i]);
            *steps = (Step){0.0, end - at, hash, slot_for(lexicon, hash)};
        }
        for (step = steps; at < end; at += step->length, step += step->length)
            if (singles || kind != HAN || step->length > 1)
                (*words)[found++] = (Word){step->hash, lexicon->weights.at[step->slot->weight], at, step->length};
    }
    PyMem_Free(steps);
    return found;
}

static PyObject *word_item(const void *place)
{
    const Word *word = place;
    return str_of(word->at, word->length);
}

/* Puts the different words that weigh most first; returns their number. */
static Py_ssize_t rank(Word *words, Py_ssize_t count, Py_ssize_t most)
{
    Py_ssize_t i, held = 0;
    qsort(words, (size_t)count, sizeof *words, compare_words); /* by hash, which comes first */
    for (i = 0; i < count; i++) {
        Word word = words[i];
        for (word.weight = -word.weight; i + 1 < count && words[i + 1].hash == word.hash; i++)
            word.weight -= words[i + 1].weight;
        held = keep(words, held, most, &word, sizeof word, compare_weights);
    }
    return held;
}

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
    if ((count = find_words(lexicon, table, &points, singles, &words)) >= 0 &&
        (all = list_of(word_item, words, sizeof *words, are_all_wanted ? count : 0)))
        core = list_of(word_item, words, sizeof *words, most ? rank(words, count, most) : 0);
    PyMem_Free(words);
    PyMem_Free(points.at);
    return Py_BuildValue("NN", all, core);
}
