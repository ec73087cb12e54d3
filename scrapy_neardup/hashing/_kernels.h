/* What the files of the compiled module share; _kernels.c says what the module is, compiled.py what each function does.
 *
 * Plain C99 on the limited API of Python 3.11, without state of its own. Texts are arrays of code points, so no string is
 * invalid: lone surrogates and zeros are characters like others. Every size is checked before memory is taken, a function
 * releases its memory in one place, and no loop takes quadratic time.
 */
#ifndef SCRAPY_NEARDUP_KERNELS_H
#define SCRAPY_NEARDUP_KERNELS_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* The names below are hidden from other modules, and theirs never replace ours. */
#if defined(__GNUC__)
#pragma GCC visibility push(hidden)
#endif

/* ---- arguments and results (_kernels.c) ------------------------------------------------------------------------ */

#define KERNEL(name) PyObject *name(PyObject *module, PyObject *const *args, Py_ssize_t given)

/* Whether the number of arguments is right; 0 with an error if not. */
int has(Py_ssize_t given, Py_ssize_t wanted);
/* Numbers: 0, or -1 with an error. */
int size_of(PyObject *number, Py_ssize_t least, Py_ssize_t most, Py_ssize_t *size);
int word_of(PyObject *number, uint64_t *word);
int is_list(PyObject *given);
/* Sets an item of a new list; 0, or -1 with an error. */
int put(PyObject *list, Py_ssize_t place, PyObject *item);
/* A list of numbers; NULL with an error. */
PyObject *list_of(const uint64_t *numbers, Py_ssize_t count);
/* Orders for qsort. */
int compare_words(const void *one, const void *other);
int compare_halves(const void *one, const void *other);

#define SMALL 2048 /* characters that need no memory of their own */

typedef struct {
    Py_UCS4 *at;
    Py_ssize_t count;
    Py_UCS4 small[SMALL];
} Points;

/* The code points of a str; 0, or -1 with an error. */
int points_of(PyObject *text, Points *points);
void release(Points *points);
/* A str of code points, which may be lone surrogates. */
PyObject *str_of(const Py_UCS4 *at, Py_ssize_t count);

/* Starts to fetch memory that is read soon: several places of a large table are then waited for at once. */
#if defined(__GNUC__)
#define SOON(at) __builtin_prefetch(at)
#else
#define SOON(at) ((void)(at))
#endif

/* ---- hashes of texts (_kernels_hashes.c) ----------------------------------------------------------------------- */

/* Eight bytes as a number, the lowest first. */
static inline uint64_t word_at(const uint8_t *p)
{
    return (uint64_t)p[0] | (uint64_t)p[1] << 8 | (uint64_t)p[2] << 16 | (uint64_t)p[3] << 24 | (uint64_t)p[4] << 32 |
           (uint64_t)p[5] << 40 | (uint64_t)p[6] << 48 | (uint64_t)p[7] << 56;
}

#define BLOCK 128

/* A prepared secret: the state before and after its block, and the block, which is the last one of an empty text. */
typedef struct {
    uint64_t before[8];
    uint64_t behind[8];
    uint8_t block[BLOCK];
    uint64_t is_keyed;
} Key;

int key_of(PyObject *packed, Key *key);
/* Writes the UTF-8 of characters, at most 4 bytes each; returns where the next ones go. A lone surrogate becomes a question
 * mark. */
uint8_t *encode(const Py_UCS4 *at, Py_ssize_t count, uint8_t *to);

/* The UTF-8 of a text. */
typedef struct {
    const uint8_t *at, *end;
    uint64_t hash;
} Text;

/* Hashes several texts, in less time than one by one. */
void hash_each(const Key *key, Text *texts, Py_ssize_t count);

/* ---- hashes of numbers and n-grams (_kernels_grams.c) ---------------------------------------------------------- */

static inline uint64_t mix(uint64_t value)
{
    value ^= value >> 33;
    value *= UINT64_C(0xFF51AFD7ED558CCD);
    value ^= value >> 33;
    value *= UINT64_C(0xC4CEB9FE1A85EC53);
    return value ^ value >> 33;
}

/* The n-grams of a text, and what they are hashed with. */
typedef struct {
    uint64_t offset, base;
    uint64_t *sums; /* polynomials of the first 0, 1, 2, … characters */
    uint64_t *at;   /* hashes of n-grams, see ``hash_n_grams`` */
    Py_ssize_t length, count;
} Grams;

/* Makes the sums, and room for hashes; 0, or -1 with an error. Release them. */
int begin_grams(Grams *grams, const Py_UCS4 *at, Py_ssize_t length);
void end_grams(Grams *grams);
/* Hashes every n-gram of the first characters, in order: one if there are fewer than n, none of none. */
void hash_n_grams(Grams *grams, Py_ssize_t length, Py_ssize_t n);
/* The hash of a text as one n-gram. */
uint64_t gram_of(const Py_UCS4 *at, Py_ssize_t count, uint64_t offset, uint64_t base);

#define MOST_BINS 4096
#define MOST_KEYS 128

/* See text/shingles.py: the min-wise sketch of hashes, their smallest different ones, and how many differ (-1 with an
 * error; the hashes are lost). */
PyObject *sketch_of(const Grams *grams, Py_ssize_t bins, Py_ssize_t bits);
PyObject *smallest_of(const Grams *grams, Py_ssize_t most);
Py_ssize_t different(Grams *grams);

/* ---- characters and strings (_kernels_texts.c) ----------------------------------------------------------------- */

/* The entry of a character, 32 bits; text/characters.py makes them. */
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
#define HAN 0x40000000
#define KATAKANA 0x80000000
#define BLOCKS 0x1100
#define IN_BLOCK 256

/* Blocks of 256 entries, each requested when one of its characters first occurs. Equal blocks are kept once, so that all of
 * Chinese stays in the innermost cache. */
typedef struct {
    PyObject *ask;
    uint32_t *blocks[BLOCKS], *own[BLOCKS];
    int count; /* of those in ``own`` */
} Table;

#define ENTRY(table, c) ((table)->blocks[(c) >> 8][(c) & 0xFF])

/* Table and text, the first two arguments of functions that read texts; NULL with an error, else release the points. */
Table *open_text(PyObject *const *args, Points *points);
/* The same with all blocks of the text. */
Table *open_known(PyObject *const *args, Points *points);

enum { NOT_PLAIN, SAME, CHANGED };

/* Brings a text into its normal spelling, without invisible characters, if all of it is plain; -1 with an error. All blocks
 * of the result are there then. */
int fold(Table *table, Points *points);

#define MOST_STRINGS 64
#define MOST_LETTERS 32
#define PLACES 4096

/* Strings to look for, in chains by their first two characters. */
typedef struct {
    Py_UCS4 at[MOST_STRINGS][MOST_LETTERS];
    Py_ssize_t lengths[MOST_STRINGS];
    uint8_t first[PLACES], next[MOST_STRINGS + 1]; /* one more than the number of a string, or 0 */
    Py_ssize_t count;
} Strings;

/* The strings of a sequence, at most 64. A shorter one than two characters, or a longer one than 32, is found in no text;
 * 0, or -1 with an error. */
int strings_of(PyObject *sequence, Strings *strings);
/* Adds to ``found`` a bit for each string that a text holds; with ``one_is_enough`` it stops at the first. */
uint64_t look_for(const Strings *strings, const Py_UCS4 *at, Py_ssize_t count, uint64_t found, int one_is_enough);

/* ---- the functions of the module ------------------------------------------------------------------------------- */

KERNEL(prepared);
KERNEL(hash_texts);
KERNEL(characters);
KERNEL(folded);
KERNEL(letters);
KERNEL(has_prose);
KERNEL(strings);
KERNEL(holds_any);
KERNEL(cut_text);
KERNEL(cut_without);
KERNEL(cut_sentences);
KERNEL(cut_lines);
KERNEL(cut_hashes);
KERNEL(cut_sketch);
KERNEL(cut_title);
KERNEL(cut_lacking);
KERNEL(lexicon);
KERNEL(words);
KERNEL(core_words);
KERNEL(are_common);
KERNEL(count_page);
KERNEL(fingerprint64);

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif
#endif
