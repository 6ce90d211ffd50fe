/* npy.c - NumPy's .npy files: "\x93NUMPY", version, header length, a Python dict as text, data. */
#include "models/models.h"

#include <string.h>

enum { NPY_PREFIX = 10, HEADER_LIMIT = 1 << 16 };

typedef struct Header {
    const char *text, *end;
    char descr[8];
    bool fortran;
    Shape shape;
} Header;

/* The text after 'key': in the dict, blanks skipped; NULL when there is none. */
static const char *find_key(const Header *h, const char *key)
{
    size_t length = strlen(key);
    for (const char *p = h->text; p + length + 2 <= h->end; p++) {
        if ((*p != '\'' && *p != '"') || memcmp(p + 1, key, length) != 0 || p[length + 1] != *p)
            continue;
        p += length + 2;
        while (p < h->end && (*p == ' ' || *p == ':'))
            p++;
        return p;
    }
    return NULL;
}

static Status parse_descr(Header *h)
{
    const char *p = find_key(h, "descr");
    if (!p || p >= h->end || (*p != '\'' && *p != '"'))
        return status_error("the header has no 'descr'");
    char quote = *p++;
    size_t n = 0;
    while (p < h->end && *p != quote && n + 1 < sizeof h->descr)
        h->descr[n++] = *p++;
    if (p >= h->end || *p != quote)
        return status_error("the header's 'descr' is not supported");
    return STATUS_OK;
}

static Status parse_shape(Header *h)
{
    const char *p = find_key(h, "shape");
    if (!p || p >= h->end || *p++ != '(')
        return status_error("the header has no 'shape'");
    while (p < h->end && *p != ')') {
        uint64_t extent = 0;
        if (*p == ' ' || *p == ',') {
            p++;
            continue;
        }
        if (*p < '0' || *p > '9')
            return status_error("the header's 'shape' is malformed");
        for (; p < h->end && *p >= '0' && *p <= '9'; p++)
            if ((extent = extent * 10 + (uint64_t)(*p - '0')) > UINT32_MAX)
                return status_error("the header's 'shape' is too large");
        if (h->shape.rank == MAX_RANK)
            return status_error("rank above %d", MAX_RANK);
        h->shape.extent[h->shape.rank++] = (uint32_t)extent;
    }
    if (p >= h->end)
        return status_error("the header's 'shape' does not end");
    if (h->shape.rank == 0)
        h->shape = (Shape){1, {1}};
    return STATUS_OK;
}

static Status parse_header(const Bytes *file, Header *h, size_t *data)
{
    if (file->count < NPY_PREFIX || memcmp(file->data, "\x93NUMPY", 6) != 0)
        return status_error("not a .npy file");
    bool wide = file->data[6] >= 2; /* versions 2 and 3: 32-bit header length */
    size_t start = wide ? 12 : NPY_PREFIX;
    if (file->data[6] < 1 || file->data[6] > 3 || file->count < start)
        return status_error("unknown .npy version %u", file->data[6]);
    size_t length =
        wide ? load_u32(file->data + 8) : (size_t)file->data[8] | (size_t)file->data[9] << 8;
    if (length > file->count - start || length > HEADER_LIMIT)
        return status_error("the header is cut off");
    *h = (Header){.text = (const char *)file->data + start};
    h->end = h->text + length;
    TRY(parse_descr(h));
    TRY(parse_shape(h));
    const char *order = find_key(h, "fortran_order");
    if (!order || order >= h->end || *order != 'F')
        return status_error("only C order is supported");
    *data = start + length;
    return STATUS_OK;
}

static Status read_data(const Bytes *file, const Header *h, size_t at, Arena *arena, float **out)
{
    static const struct {
        const char *descr;
        const char *dtype;
        uint32_t bytes;
    } kinds[] = {
        {"<f4", "F32", 4}, {"<f2", "F16", 2}, {"<f8", "F64", 8},
        {"<i4", "I32", 4}, {"|u1", "U8", 1},
    };
    for (uint32_t i = 0; i < countof(kinds); i++) {
        if (strcmp(kinds[i].descr, h->descr) != 0)
            continue;
        uint64_t elements = 1, limit = file->count - at;
        for (uint32_t a = 0; a < h->shape.rank; a++) {
            elements *= h->shape.extent[a];
            if (elements > limit / kinds[i].bytes)
                return status_error("the data is cut off");
        }
        if (elements * kinds[i].bytes != limit)
            return status_error("%llu bytes of data, the shape takes %llu",
                                (unsigned long long)limit,
                                (unsigned long long)(elements * kinds[i].bytes));
        *out = arena_array(arena, float, elements);
        TensorEntry entry = {"data", kinds[i].dtype, h->shape, file->data + at, limit};
        return tensor_floats(&entry, *out);
    }
    return status_error("element type %s is not supported", h->descr);
}

Status npy_read(const char *path, Arena *arena, Shape *shape, float **out)
{
    Bytes file;
    TRY(file_read(path, FILE_LIMIT_DATA, &file));
    Header header = {0};
    size_t data = 0;
    Status status = parse_header(&file, &header, &data);
    if (status_ok(status))
        status = read_data(&file, &header, data, arena, out);
    if (status_ok(status))
        *shape = header.shape;
    bytes_free(&file);
    return status_context(status, "%s", path);
}

Status npy_write(const char *path, const Shape *shape, const float *data)
{
    Text dict = {0};
    text_append(&dict, "{'descr': '<f4', 'fortran_order': False, 'shape': (");
    for (uint32_t a = 0; a < shape->rank; a++)
        text_printf(&dict, "%u%s", shape->extent[a], a + 1 < shape->rank ? ", " : "");
    text_append(&dict, shape->rank == 1 ? ",), }" : "), }");
    while ((NPY_PREFIX + dict.count + 1) % 64) /* data starts at a multiple of 64 */
        text_append(&dict, " ");
    text_append(&dict, "\n");
    size_t header = NPY_PREFIX + dict.count, bytes = shape_elements(shape) * sizeof *data;
    uint8_t *file = xmalloc(header + bytes);
    memcpy(file, "\x93NUMPY\x01\x00", 8);
    file[8] = (uint8_t)dict.count;
    file[9] = (uint8_t)(dict.count >> 8);
    memcpy(file + NPY_PREFIX, dict.items, dict.count);
    memcpy(file + header, data, bytes);
    Status status = file_write(path, file, header + bytes);
    free(file);
    text_free(&dict);
    return status;
}
