/* picture.c - pictures in, patches out. Decoding is libpng's and libjpeg's; a file that they only
 * warn about is damaged and refused. What is transparent in a PNG is laid over white paper. */
#include "models/models.h"

#include <jpeglib.h>
#include <math.h>
#include <png.h>
#include <setjmp.h>
#include <stdio.h>
#include <string.h>

enum { MAX_EDGE = 16384 };

static Status check_size(uint64_t width, uint64_t height)
{
    if (width == 0 || height == 0 || width > MAX_EDGE || height > MAX_EDGE)
        return status_error("%llu x %llu pixels: at most %d each way", (unsigned long long)width,
                            (unsigned long long)height, MAX_EDGE);
    return STATUS_OK;
}

static Status decode_png(png_image *image, Picture *out)
{
    static const png_color white = {255, 255, 255};
    TRY(check_size(image->width, image->height));
    out->channels = image->format & PNG_FORMAT_FLAG_COLOR ? 3 : 1;
    image->format = out->channels == 3 ? PNG_FORMAT_RGB : PNG_FORMAT_GRAY;
    out->width = image->width;
    out->height = image->height;
    out->pixels = xmalloc(PNG_IMAGE_SIZE(*image));
    if (!png_image_finish_read(image, &white, out->pixels, 0, NULL) || PNG_IMAGE_FAILED(*image) ||
        image->warning_or_error) {
        picture_free(out);
        return status_error("%s", image->message);
    }
    return STATUS_OK;
}

static Status read_png(const Bytes *file, Picture *out)
{
    png_image image = {.version = PNG_IMAGE_VERSION};
    if (!png_image_begin_read_from_memory(&image, file->data, file->count))
        return status_error("%s", image.message);
    Status status = decode_png(&image, out);
    png_image_free(&image);
    return status;
}

/* libjpeg reports by calling: errors jump out, warnings are counted. */
typedef struct JpegErrors {
    struct jpeg_error_mgr base;
    jmp_buf jump;
    char message[JMSG_LENGTH_MAX];
} JpegErrors;

static void jpeg_fail(j_common_ptr info)
{
    JpegErrors *errors = (JpegErrors *)info->err;
    info->err->format_message(info, errors->message);
    longjmp(errors->jump, 1);
}

static void jpeg_warn(j_common_ptr info, int level)
{
    JpegErrors *errors = (JpegErrors *)info->err;
    if (level < 0) {
        info->err->format_message(info, errors->message);
        info->err->num_warnings++;
    }
}

/* Runs under setjmp: nothing here owns memory but *out, which the caller frees. */
static Status decode_jpeg(struct jpeg_decompress_struct *info, const Bytes *file, Picture *out)
{
    jpeg_mem_src(info, file->data, (unsigned long)file->count);
    jpeg_read_header(info, TRUE);
    TRY(check_size(info->image_width, info->image_height));
    info->out_color_space = info->jpeg_color_space == JCS_GRAYSCALE ? JCS_GRAYSCALE : JCS_RGB;
    jpeg_start_decompress(info);
    out->width = info->output_width;
    out->height = info->output_height;
    out->channels = (uint32_t)info->output_components;
    size_t pitch = (size_t)out->width * out->channels;
    out->pixels = xmalloc(array_bytes(out->height, pitch));
    while (info->output_scanline < info->output_height) {
        JSAMPROW row = out->pixels + info->output_scanline * pitch;
        jpeg_read_scanlines(info, &row, 1);
    }
    jpeg_finish_decompress(info);
    return STATUS_OK;
}

static Status read_jpeg(const Bytes *file, Picture *out)
{
    JpegErrors errors;
    struct jpeg_decompress_struct info;
    Status status;
    info.err = jpeg_std_error(&errors.base);
    errors.base.error_exit = jpeg_fail;
    errors.base.emit_message = jpeg_warn;
    errors.message[0] = 0;
    jpeg_create_decompress(&info);
    if (setjmp(errors.jump) == 0)
        status = decode_jpeg(&info, file, out);
    else
        status = status_error("%s", errors.message);
    if (status_ok(status) && errors.base.num_warnings)
        status = status_error("%s", errors.message);
    jpeg_destroy_decompress(&info);
    if (!status_ok(status))
        picture_free(out);
    return status;
}

Status picture_read(const char *path, Picture *out)
{
    Bytes file;
    TRY(file_read(path, (size_t)1 << 30, &file));
    Status status;
    *out = (Picture){0};
    if (file.count >= 8 && memcmp(file.data, "\x89PNG", 4) == 0)
        status = read_png(&file, out);
    else if (file.count >= 3 && memcmp(file.data, "\xff\xd8\xff", 3) == 0)
        status = read_jpeg(&file, out);
    else
        status = status_error("neither PNG nor JPEG");
    bytes_free(&file);
    return status_context(status, "%s", path);
}

void picture_free(Picture *picture)
{
    free(picture->pixels);
    *picture = (Picture){0};
}

/* ---- resizing ---- */

/* Output i of n along an axis of m is a weighted sum of inputs: the area it covers when the picture
 * shrinks, two neighbours when it grows. Equal sizes give one weight of 1. */
typedef struct Filter {
    uint32_t first, count;
    const float *weights;
} Filter;

static Filter *make_filters(Arena *arena, uint32_t m, uint32_t n)
{
    Filter *filters = arena_array(arena, Filter, n);
    double ratio = (double)m / n;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t capacity = (uint32_t)ratio + 3;
        float *weights = arena_array(arena, float, capacity);
        uint32_t first, count = 0;
        if (m >= n) {
            double low = i * ratio, high = (i + 1) * ratio;
            first = (uint32_t)low;
            for (uint32_t s = first; s < m && s < high && count < capacity; s++)
                weights[count++] = (float)((fmin(high, s + 1.0) - fmax(low, s)) / ratio);
        } else {
            double centre = (i + 0.5) * ratio - 0.5;
            double at = fmin(fmax(centre, 0), m - 1.0);
            first = (uint32_t)at;
            float part = (float)(at - first);
            weights[count++] = 1 - part;
            if (part > 0)
                weights[count++] = part;
        }
        filters[i] = (Filter){first, count, weights};
    }
    return filters;
}

/* Columns, then rows. out: [n][n][channels], values 0..255. */
static void resize(Arena *arena, const Picture *picture, uint32_t n, float *out)
{
    uint32_t channels = picture->channels, height = picture->height;
    const Filter *across = make_filters(arena, picture->width, n);
    const Filter *down = make_filters(arena, height, n);
    float *narrow = arena_array(arena, float, (size_t)height *n *channels);
    for (uint32_t y = 0; y < height; y++)
        for (uint32_t x = 0; x < n; x++)
            for (uint32_t c = 0; c < channels; c++) {
                const uint8_t *from = picture->pixels + (size_t)y * picture->width * channels;
                float sum = 0;
                for (uint32_t k = 0; k < across[x].count; k++)
                    sum += across[x].weights[k] * from[(across[x].first + k) * channels + c];
                narrow[((size_t)y * n + x) * channels + c] = sum;
            }
    for (uint32_t y = 0; y < n; y++)
        for (uint32_t i = 0; i < n * channels; i++) {
            float sum = 0;
            for (uint32_t k = 0; k < down[y].count; k++)
                sum += down[y].weights[k] * narrow[(size_t)(down[y].first + k) * n * channels + i];
            out[(size_t)y * n * channels + i] = sum;
        }
}

/* ITU-R BT.601 weights. */
static float luma(const float *rgb)
{
    return 0.299f * rgb[0] + 0.587f * rgb[1] + 0.114f * rgb[2];
}

Status picture_patches(const Picture *picture, const Preprocess *p, float *out)
{
    if (picture->width == 0 || picture->height == 0 || p->patch == 0 || p->image % p->patch)
        return status_error("a picture of %u x %u cannot be cut into patches", picture->width,
                            picture->height);
    Arena arena = {0};
    uint32_t n = p->image, from = picture->channels, edge = n / p->patch;
    float *square = arena_array(&arena, float, (size_t)n *n *from);
    resize(&arena, picture, n, square);
    for (uint32_t token = 0; token < edge * edge; token++)
        for (uint32_t y = 0; y < p->patch; y++)
            for (uint32_t x = 0; x < p->patch; x++) {
                uint32_t row = token / edge * p->patch + y, column = token % edge * p->patch + x;
                const float *pixel = square + ((size_t)row * n + column) * from;
                for (uint32_t c = 0; c < p->channels; c++) {
                    float value = from == p->channels ? pixel[c]
                                  : from == 1         ? pixel[0]
                                                      : luma(pixel);
                    value = p->invert ? 255 - value : value;
                    *out++ = (value / 255 - p->mean) / p->deviation;
                }
            }
    arena_free(&arena);
    return STATUS_OK;
}
