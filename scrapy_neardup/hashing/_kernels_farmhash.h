/* fingerprint64 of FarmHash, see farmhash.py. */

#define K0 UINT64_C(0xC3A5C85C97CB3127)
#define K1 UINT64_C(0xB492B66FBE98F273)
#define K2 UINT64_C(0x9AE16A3B2F90404F)

typedef struct {
    uint64_t x, y, z, v[2], w[2];
} Mixed;

static uint64_t shift(uint64_t value)
{
    return value ^ value >> 47;
}

static uint64_t join(uint64_t one, uint64_t other, uint64_t factor)
{
    one = shift((one ^ other) * factor);
    return shift((other ^ one) * factor) * factor;
}

static uint64_t hash_16(const uint8_t *data, size_t size)
{
    uint64_t factor = K2 + size * 2;
    if (size >= 8) {
        uint64_t a = word_at(data) + K2, b = word_at(data + size - 8);
        return join(TURNED(b, 37) * factor + a, (TURNED(a, 25) + b) * factor, factor);
    }
    if (size >= 4)
        return join(size + (half_at(data) << 3), half_at(data + size - 4), factor);
    if (!size)
        return K2;
    return shift((data[0] + ((uint64_t)data[size >> 1] << 8)) * K2 ^ (size + ((uint64_t)data[size - 1] << 2)) * K0) * K2;
}

static uint64_t hash_64(const uint8_t *data, size_t size)
{
    uint64_t factor = K2 + size * 2, a = word_at(data) * (size <= 32 ? K1 : K2), b = word_at(data + 8);
    uint64_t c = word_at(data + size - 8) * factor, d = word_at(data + size - 16) * K2, e, f, g, h;
    uint64_t y = TURNED(a + b, 43) + TURNED(c, 30) + d, z = join(y, a + TURNED(b + K2, 18) + c, factor);
    if (size <= 32)
        return z;
    e = word_at(data + 16) * factor;
    f = word_at(data + 24);
    g = (y + word_at(data + size - 32)) * factor;
    h = (z + word_at(data + size - 24)) * factor;
    return join(TURNED(e + f, 43) + TURNED(g, 30) + h, e + TURNED(f + a, 18) + g, factor);
}

/* Mixes 32 bytes into two numbers. */
static void mix_half(uint64_t to[2], const uint8_t *data, uint64_t a, uint64_t b)
{
    uint64_t last = word_at(data + 24), c;
    a += word_at(data);
    b += a + last;
    c = a + word_at(data + 8) + word_at(data + 16);
    to[0] = c + last;
    to[1] = TURNED(b, 21) + TURNED(c, 44) + a;
}

/* Mixes 64 bytes in; ``weight`` multiplies the parts of w and v that go into x and y. */
static void mix_block(Mixed *m, const uint8_t *data, uint64_t factor, uint64_t weight)
{
    uint64_t x = TURNED(m->x + m->y + m->v[0] + word_at(data + 8), 37) * factor ^ m->w[1] * weight;
    uint64_t y = TURNED(m->y + m->v[1] + word_at(data + 48), 42) * factor + m->v[0] * weight + word_at(data + 40);
    uint64_t z = TURNED(m->z + m->w[0], 33) * factor;
    mix_half(m->v, data, m->v[1] * factor, x + m->w[0]);
    mix_half(m->w, data + 32, z + m->w[1], y + word_at(data + 16));
    m->x = z;
    m->y = y;
    m->z = x;
}

static uint64_t hash_long(const uint8_t *data, size_t size)
{
    Mixed m = {.x = 81 * K2, .y = 81 * K1 + 113};
    size_t at, rest = (size - 1) & 63;
    uint64_t factor;
    m.x += word_at(data);
    m.z = shift(m.y * K2 + 113) * K2;
    for (at = 0; at < size - 1 - rest; at += 64)
        mix_block(&m, data + at, K1, 1);
    factor = K1 + ((m.z & 0xFF) << 1);
    m.w[0] += rest;
    m.v[0] += m.w[0];
    m.w[0] += m.v[0];
    mix_block(&m, data + size - 64, factor, 9);
    return join(join(m.v[0], m.w[0], factor) + shift(m.y) * K0 + m.z, join(m.v[1], m.w[1], factor) + m.x, factor);
}

KERNEL(fingerprint64)
{
    const uint8_t *data;
    size_t size; /* as large as a Py_ssize_t */
    if (!PyArg_ParseTuple(args, "y#", &data, &size))
        return NULL;
    return PyLong_FromUnsignedLongLong(size <= 16 ? hash_16(data, size) : size <= 64 ? hash_64(data, size)
                                                                                     : hash_long(data, size));
}
