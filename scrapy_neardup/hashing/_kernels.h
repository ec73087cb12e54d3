/* What the files of the compiled module share: see _kernels.c for what it is, and compiled.py for what it does.
 *
 * Plain C99 on the limited API of Python 3.11; no state but what is passed in. Texts are read as code points, so no
 * string is invalid: lone surrogates and zeros are characters like others. Every size is checked before memory is asked
 * for, what was taken is released at one place of each function, and no loop is worse than what it replaces.
 */
#ifndef SCRAPY_NEARDUP_KERNELS_H
#define SCRAPY_NEARDUP_KERNELS_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* No name of these is for others, nor may one of theirs take its place. */
#if defined(__GNUC__)
#pragma GCC visibility push(hidden)
#endif

/* ---- what is passed in, and handed back ------------------------------------------------------------------------ */

/* A function of the module. */
#define KERNEL(name) PyObject *name(PyObject *module, PyObject *const *args, Py_ssize_t given)

/* Whether so many arguments are there; if not, with an error. */
int has(Py_ssize_t given, Py_ssize_t wanted);
/* Numbers: 0, or -1 with an error. */
int size_of(PyObject *number, Py_ssize_t least, Py_ssize_t most, Py_ssize_t *size);
int word_of(PyObject *number, uint64_t *word);
/* Whether it is a list; 0 with an error if not. */
int is_list(PyObject *given);
/* Sets an item of a new list; 0, or -1 with an error. */
int put(PyObject *list, Py_ssize_t place, PyObject *item);
/* Adds one to a list; 0, or -1 with an error. */
int append(PyObject *list, PyObject *item);

#define SMALL 2048 /* characters that are read without asking for memory */

typedef struct {
    Py_UCS4 *at;
    Py_ssize_t count;
    Py_UCS4 small[SMALL];
} Points;

/* The code points of a str; 0, or -1 with an error. */
int points_of(PyObject *text, Points *points);
void release(Points *points);
/* A str of code points, lone surrogates among them. */
PyObject *str_of(const Py_UCS4 *at, Py_ssize_t count);

/* ---- memory that is waited for --------------------------------------------------------------------------------- */

/* Has what will be read soon be fetched meanwhile: of a table that is larger than the caches all places that are wanted
 * are waited for at once, and not one after the other. */
#if defined(__GNUC__)
#define SOON(at) __builtin_prefetch(at)
#else
#define SOON(at) ((void)(at))
#endif

/* ---- hashes of texts ------------------------------------------------------------------------------------------- */

#define BLOCK 128

/* What is kept of a key: the state before its block and behind it, and the block, which is the last of an empty text. */
typedef struct {
    uint64_t before[8];
    uint64_t behind[8];
    uint8_t block[BLOCK];
    uint64_t is_keyed;
    uint64_t in_lanes; /* whether several texts may be hashed at once */
} Key;

/* A text, and its hash. */
typedef struct {
    const Py_UCS4 *at;
    Py_ssize_t count;
    uint64_t hash;
} Text;

int key_of(PyObject *packed, Key *key);
/* The hash of the UTF-8 of a text; a lone surrogate counts as a question mark. */
uint64_t hash_of(const Key *key, const Py_UCS4 *at, Py_ssize_t count);
/* That of each of several texts, in less time. */
void hash_each(const Key *key, Text *texts, Py_ssize_t count);

/* ---- hashes of numbers and of n-grams -------------------------------------------------------------------------- */

static inline uint64_t mix(uint64_t value)
{
    value ^= value >> 33;
    value *= UINT64_C(0xFF51AFD7ED558CCD);
    value ^= value >> 33;
    value *= UINT64_C(0xC4CEB9FE1A85EC53);
    return value ^ value >> 33;
}

static inline unsigned ones_of(uint64_t bits)
{
    bits -= (bits >> 1) & UINT64_C(0x5555555555555555);
    bits = (bits & UINT64_C(0x3333333333333333)) + ((bits >> 2) & UINT64_C(0x3333333333333333));
    bits = (bits + (bits >> 4)) & UINT64_C(0x0F0F0F0F0F0F0F0F);
    return (unsigned)((bits * UINT64_C(0x0101010101010101)) >> 56);
}

typedef struct {
    uint64_t *at;
    Py_ssize_t count;
} Grams;

/* A sketch: n, bins, and bits of a bin. */
typedef struct {
    Py_ssize_t n, bins, bits;
} Form;

#define MOST_KEYS 4096

/* The three of a form that are passed in; 0, or -1 with an error. */
int form_of(PyObject *const *args, Form *form);
/* The polynomials of what a text begins with: of none of its characters, of one, up to all, so one more than there are
 * characters. What n-grams of any length are hashed by; NULL with an error. Release it. */
uint64_t *sums_of(const Py_UCS4 *at, Py_ssize_t count, uint64_t offset, uint64_t base);
/* The hash of every n-gram of a text, in their order, as many as are returned; of a text that is shorter one, of none
 * none. ``found`` has room for as many as there are characters, and may be ``sums`` itself: each hash takes the place
 * of the sum before its n-gram, which no later one needs. */
Py_ssize_t hash_n_grams(const uint64_t *sums, Py_ssize_t length, Py_ssize_t n, uint64_t base, uint64_t *found);
/* The hash of a text as one n-gram. */
uint64_t gram_of(const Points *points, uint64_t offset, uint64_t base);
/* How many different values there are, or -1 with an error; they are no more what they were. */
Py_ssize_t different(uint64_t *values, Py_ssize_t count);
/* See ``sketch`` in methods/minwise.py. */
PyObject *sketch_of(const Grams *grams, Py_ssize_t bins, Py_ssize_t bits);
/* The smallest different hashes of some, as a list; ``most`` is MOST_KEYS at most. */
PyObject *smallest_of(const Grams *grams, Py_ssize_t most);

/* ---- characters ------------------------------------------------------------------------------------------------ */

/* What is to be known of a character, in 32 bits; see text/characters.py, which says it. */
#define FOLDED 0x1FFFFF
#define PLAIN 0x200000
#define LETTER 0x400000
#define SPACE 0x800000
#define MARK 0x1000000
#define CLOSING 0x2000000
#define ENDING 0x4000000
#define UNSPACED 0x8000000
#define LINE 0x10000000
#define IGNORED 0x20000000
#define BLOCKS 0x1100
#define IN_BLOCK 256

/* Blocks of 256 characters, each asked for when a character of it is first met. Of those that say the same there is one:
 * so all of Chinese stays in the innermost cache. */
typedef struct {
    PyObject *ask;
    uint32_t *blocks[BLOCKS], *own[BLOCKS];
    int count; /* of those in ``own`` */
} Table;

#define TOLD(table, c) ((table)->blocks[(c) >> 8][(c) & 0xFF])

/* Table and text, the first two arguments of what reads texts; NULL with an error, else the points are to be released. */
Table *taken(PyObject *const *args, Points *points);
/* The same with all blocks that the text needs. */
Table *opened(PyObject *const *args, Py_ssize_t given, Points *points);

enum { NOT_PLAIN, SAME, CHANGED }; /* 0 and more */

/* Brings a text into the one spelling, without what shows nothing, if the rest is plain; -1 with an error.
 * All blocks of that are there then. */
int fold(Table *table, Points *points);
/* Whether a fiftieth of so many letters and more are of scripts that put no spaces between words; of none they are not. */
int are_many(Py_ssize_t unspaced, Py_ssize_t count);
/* The same of a text that was opened. */
int is_unspaced(const Table *table, const Points *points);

/* ---- strings that are looked for ------------------------------------------------------------------------------- */

#define MOST_SIGNS 64
#define MOST_LETTERS 32
#define PLACES 4096

/* Strings of two characters and more that are looked for, by what they begin with. */
typedef struct {
    Py_UCS4 at[MOST_SIGNS][MOST_LETTERS];
    Py_ssize_t lengths[MOST_SIGNS];
    uint8_t first[PLACES], next[MOST_SIGNS + 1]; /* one more than the number of a sign; 0 where there is none */
    Py_ssize_t count;
} Signs;

void no_signs(Signs *signs);
/* Adds one of 2 to MOST_LETTERS characters; 0, or -1 with an error. */
int add_sign(Signs *signs, PyObject *sign);
/* The strings of a tuple or list; 0, or -1 with an error. */
int signs_of(PyObject *strings, Signs *signs);
/* A bit for each of them that a text holds, beside those that were found before, until all or, if one is enough, one is. */
uint64_t look_for(const Signs *signs, const Py_UCS4 *at, Py_ssize_t count, uint64_t found, int one_is_enough);

/* ---- the functions of the module, by the file that each is in -------------------------------------------------- */

KERNEL(prepared);
KERNEL(hash_text);
KERNEL(hash_texts);
KERNEL(n_grams);
KERNEL(minwise);
KERNEL(word_grams);
KERNEL(smallest);
KERNEL(lacking);
KERNEL(equal_entries);
KERNEL(may_be_alike);
KERNEL(characters);
KERNEL(folded);
KERNEL(letters);
KERNEL(has_unspaced);
KERNEL(are_unspaced);
KERNEL(has_prose);
KERNEL(chinese_runs);
KERNEL(signs);
KERNEL(holds_any);
KERNEL(cut_text);
KERNEL(cut_without);
KERNEL(cut_sentences);
KERNEL(cut_letters);
KERNEL(cut_lines);
KERNEL(cut_shorts);
KERNEL(cut_counted);
KERNEL(cut_lengths);
KERNEL(cut_hash);
KERNEL(cut_ends);
KERNEL(cut_longest);
KERNEL(cut_shingled);
KERNEL(cut_standing);
KERNEL(cut_numbers);
KERNEL(cut_title);
KERNEL(longer);
KERNEL(weights);
KERNEL(core_words);
KERNEL(stood);
KERNEL(are_common);
KERNEL(note);
KERNEL(count_page);
KERNEL(upper_halves);
KERNEL(packed_keys);
KERNEL(packed_record);
KERNEL(shares_of_rows);
KERNEL(witness_line);

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif
#endif
