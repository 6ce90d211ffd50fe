/* shape.c - shapes, precisions, formats as values: comparing, printing, JSON. */
#include "tensor/tensor.h"

#include <string.h>

static const char *const precision_names[] = {"f16", "f32", "f8", "u32"};
static const char *const order_names[] = {
    "row-major", "left", "trans-left", "trans-right", "block-major", "trans-block-major",
};
static const char *const memory_names[] = {"standard", "interleaved"};

uint64_t shape_elements(const Shape *shape)
{
    uint64_t elements = 1;
    for (uint32_t a = 0; a < shape->rank; a++)
        elements *= shape->extent[a];
    return elements;
}

bool shape_equal(const Shape *a, const Shape *b)
{
    return a->rank == b->rank && memcmp(a->extent, b->extent, a->rank * sizeof a->extent[0]) == 0;
}

uint32_t precision_bytes(Precision precision)
{
    return precision.kind == F8F143 ? 1 : precision.kind == F16 ? 2 : 4;
}

uint32_t precision_inner(Precision precision)
{
    return 32 / precision_bytes(precision);
}

Format format_on_one_tile(Precision precision, uint32_t tile)
{
    return (Format){.precision = precision, .first_tile = tile, .tile_count = 1, .replicas = 1};
}

/* Zero fields mean defaults: fill them in, so that equal meanings compare equal. */
static AxisTiling with_defaults(AxisTiling axis)
{
    axis.groups = max_u32(axis.groups, 1);
    axis.block = max_u32(axis.block, 1);
    axis.pad_multiple = axis.pad_multiple ? axis.pad_multiple : axis.block;
    axis.shard_multiple = max_u32(axis.shard_multiple, 1);
    axis.parts = max_u32(axis.parts, 1);
    axis.part_block = axis.parts > 1 ? max_u32(axis.part_block, 1) : 1;
    axis.near = max_u32(axis.near, 1);
    axis.near_stride = axis.near > 1 ? axis.near_stride : 0;
    return axis;
}

static bool axis_equal(AxisTiling a, AxisTiling b)
{
    a = with_defaults(a);
    b = with_defaults(b);
    return a.axis == b.axis && a.pad == b.pad && a.partitions == b.partitions &&
           a.groups == b.groups && a.block == b.block && a.pad_multiple == b.pad_multiple &&
           a.shard_multiple == b.shard_multiple && a.parts == b.parts &&
           a.part_block == b.part_block && a.stride == b.stride && a.near == b.near &&
           a.near_stride == b.near_stride;
}

static bool order_has_blocks(const Order *order)
{
    return order->kind == ORDER_BLOCK_MAJOR || order->kind == ORDER_TRANSPOSED_BLOCK_MAJOR;
}

static bool shares_equal(const Format *a, const Format *b)
{
    if (format_shares(a) != format_shares(b))
        return false;
    return format_shares(a) == 1 || (max_u32(a->share_grain, 4) == max_u32(b->share_grain, 4) &&
                                     max_u32(a->share_every, 1) == max_u32(b->share_every, 1));
}

bool format_equal(const Format *a, const Format *b)
{
    if (a->precision.kind != b->precision.kind || a->order.kind != b->order.kind ||
        a->memory_class != b->memory_class || a->first_tile != b->first_tile ||
        a->tile_count != b->tile_count || a->replicas != b->replicas ||
        a->axis_count != b->axis_count || !shares_equal(a, b))
        return false;
    if (a->precision.kind == F8F143 && a->precision.scale != b->precision.scale)
        return false;
    if (order_has_blocks(&a->order) && (a->order.row_block != b->order.row_block ||
                                        a->order.column_block != b->order.column_block))
        return false;
    for (uint32_t i = 0; i < a->axis_count; i++)
        if (!axis_equal(a->axes[i], b->axes[i]))
            return false;
    return true;
}

/* ---- printing ---- */

void shape_print(Text *text, const Shape *shape)
{
    for (uint32_t a = 0; a < shape->rank; a++)
        text_printf(text, a ? "x%u" : "%u", shape->extent[a]);
}

static const char *name_of(const char *const *names, size_t count, uint32_t value)
{
    return value < count ? names[value] : "?";
}
#define NAME(names, value) name_of(names, countof(names), value)

static void axis_print(Text *text, const AxisTiling *given)
{
    AxisTiling axis = with_defaults(*given);
    if (axis.axis == AXIS_LINEAR)
        text_printf(text, "linear/%u", axis.partitions);
    else
        text_printf(text, "S%u/%u", axis.axis, axis.partitions);
    if (axis.groups != 1)
        text_printf(text, " g%u", axis.groups);
    if (axis.block != 1)
        text_printf(text, " b%u", axis.block);
    if (axis.pad_multiple != axis.block)
        text_printf(text, " pm%u", axis.pad_multiple);
    if (axis.shard_multiple != 1)
        text_printf(text, " sm%u", axis.shard_multiple);
    if (axis.parts != 1)
        text_printf(text, " p%ux%u", axis.parts, axis.part_block);
    if (axis.pad)
        text_append(text, " pad");
    if (axis.stride)
        text_printf(text, " ts%u", axis.stride);
    if (axis.near > 1)
        text_printf(text, " n%ux%u", axis.near, axis.near_stride);
}

void format_print(Text *text, const Format *format)
{
    text_append(text, NAME(precision_names, format->precision.kind));
    if (format->precision.kind == F8F143)
        text_printf(text, "(%d)", format->precision.scale);
    text_printf(text, " %s", NAME(order_names, format->order.kind));
    if (order_has_blocks(&format->order))
        text_printf(text, "(%u,%u)", format->order.row_block, format->order.column_block);
    text_append(text, " [");
    for (uint32_t i = 0; i < format->axis_count && i < MAX_TILED_AXES; i++) {
        if (i)
            text_append(text, "; ");
        axis_print(text, &format->axes[i]);
    }
    text_append(text, "]");
    if (format->shares > 1) {
        text_printf(text, "/%u by %u", format->shares, max_u32(format->share_grain, 4));
        if (format->share_every > 1)
            text_printf(text, " every %u", format->share_every);
    }
    if (format->replicas != 1)
        text_printf(text, " x%u", format->replicas);
    text_printf(text, " %s @%u", NAME(memory_names, format->memory_class), format->first_tile);
}

/* ---- JSON ---- */

static void set_unless(json_t *object, const char *key, uint32_t value, uint32_t fallback)
{
    if (value != fallback)
        json_object_set_new(object, key, json_integer(value));
}

static json_t *axis_to_json(const AxisTiling *given)
{
    AxisTiling axis = with_defaults(*given);
    json_t *object = json_object();
    if (axis.axis == AXIS_LINEAR)
        json_object_set_new(object, "axis", json_string("linear"));
    else
        json_object_set_new(object, "axis", json_integer(axis.axis));
    json_object_set_new(object, "partitions", json_integer(axis.partitions));
    set_unless(object, "groups", axis.groups, 1);
    set_unless(object, "block", axis.block, 1);
    set_unless(object, "padMultiple", axis.pad_multiple, axis.block);
    set_unless(object, "shardMultiple", axis.shard_multiple, 1);
    set_unless(object, "parts", axis.parts, 1);
    set_unless(object, "partBlock", axis.part_block, 1);
    set_unless(object, "stride", axis.stride, 0);
    set_unless(object, "near", axis.near, 1);
    set_unless(object, "nearStride", axis.near_stride, 0);
    if (axis.pad)
        json_object_set_new(object, "pad", json_true());
    return object;
}

json_t *format_to_json(const Format *format)
{
    json_t *object = json_object(), *axes = json_array();
    json_object_set_new(object, "precision",
                        json_string(NAME(precision_names, format->precision.kind)));
    if (format->precision.kind == F8F143)
        json_object_set_new(object, "scale", json_integer(format->precision.scale));
    json_object_set_new(object, "order", json_string(NAME(order_names, format->order.kind)));
    if (order_has_blocks(&format->order)) {
        json_object_set_new(object, "rowBlock", json_integer(format->order.row_block));
        json_object_set_new(object, "columnBlock", json_integer(format->order.column_block));
    }
    json_object_set_new(object, "memory", json_string(NAME(memory_names, format->memory_class)));
    json_object_set_new(object, "firstTile", json_integer(format->first_tile));
    json_object_set_new(object, "replicas", json_integer(format->replicas));
    for (uint32_t i = 0; i < format->axis_count; i++)
        json_array_append_new(axes, axis_to_json(&format->axes[i]));
    json_object_set_new(object, "axes", axes);
    if (format->shares > 1) {
        json_object_set_new(object, "shares", json_integer(format->shares));
        set_unless(object, "shareGrain", max_u32(format->share_grain, 4), 4);
        set_unless(object, "shareEvery", max_u32(format->share_every, 1), 1);
    }
    return object;
}

static Status read_name(const JsonPlace *place, const char *key, const char *const *names,
                        size_t count, uint8_t *out)
{
    const char *text;
    TRY(json_text(place, key, &text));
    for (size_t i = 0; i < count; i++)
        if (strcmp(text, names[i]) == 0) {
            *out = (uint8_t)i;
            return STATUS_OK;
        }
    return status_error("%s: unknown %s \"%s\"", place->path, key, text);
}

static Status read_optional(const JsonPlace *place, const char *key, uint32_t fallback,
                            uint32_t *out)
{
    *out = fallback;
    return json_has(place, key) ? json_u32(place, key, 1, 1u << 20, out) : STATUS_OK;
}

static Status axis_from_json(const JsonPlace *place, AxisTiling *out)
{
    static const char *const keys[] = {"axis",        "partitions",    "groups",     "block",
                                       "padMultiple", "shardMultiple", "parts",      "partBlock",
                                       "stride",      "near",          "nearStride", "pad",
                                       NULL};
    *out = (AxisTiling){0};
    TRY(json_only(place, keys));
    JsonPlace axis;
    uint32_t number = AXIS_LINEAR;
    TRY(json_member(place, "axis", &axis));
    if (!json_is_string(axis.value))
        TRY(json_u32(place, "axis", 0, MAX_RANK - 1, &number));
    else if (strcmp(json_string_value(axis.value), "linear") != 0)
        return status_error("%s: a number or \"linear\" is expected", axis.path);
    out->axis = (uint8_t)number;
    TRY(json_u32(place, "partitions", 1, 1u << 20, &out->partitions));
    TRY(read_optional(place, "groups", 0, &out->groups));
    TRY(read_optional(place, "block", 0, &out->block));
    TRY(read_optional(place, "padMultiple", 0, &out->pad_multiple));
    TRY(read_optional(place, "shardMultiple", 0, &out->shard_multiple));
    TRY(read_optional(place, "parts", 0, &out->parts));
    TRY(read_optional(place, "partBlock", 0, &out->part_block));
    TRY(read_optional(place, "stride", 0, &out->stride));
    TRY(read_optional(place, "near", 0, &out->near));
    TRY(read_optional(place, "nearStride", 0, &out->near_stride));
    return json_has(place, "pad") ? json_bool(place, "pad", &out->pad) : STATUS_OK;
}

static Status read_axes(const JsonPlace *place, Format *format)
{
    JsonPlace axes, item;
    size_t count;
    uint64_t tiles = (uint64_t)format->replicas * format_shares(format);
    TRY(json_member(place, "axes", &axes));
    TRY(json_count(&axes, &count));
    if (count > MAX_TILED_AXES)
        return status_error("%s: %zu axes, at most %d are possible", axes.path, count,
                            MAX_TILED_AXES);
    for (size_t i = 0; i < count; i++) {
        TRY(json_item(&axes, i, &item));
        TRY(axis_from_json(&item, &format->axes[i]));
        tiles *= format->axes[i].partitions;
        if (tiles > 1u << 20)
            return status_error("%s: too many tiles", axes.path);
    }
    format->axis_count = (uint8_t)count;
    format->tile_count = (uint32_t)tiles;
    return STATUS_OK;
}

Status format_from_json(const JsonPlace *place, Format *out)
{
    static const char *const keys[] = {
        "precision", "scale", "order",  "rowBlock",   "columnBlock", "memory", "firstTile",
        "replicas",  "axes",  "shares", "shareGrain", "shareEvery",  NULL};
    *out = (Format){0};
    Format format = {0};
    TRY(json_only(place, keys));
    TRY(read_name(place, "precision", precision_names, countof(precision_names),
                  &format.precision.kind));
    TRY(read_name(place, "order", order_names, countof(order_names), &format.order.kind));
    TRY(read_name(place, "memory", memory_names, countof(memory_names), &format.memory_class));
    if (format.precision.kind == F8F143) {
        int64_t scale;
        TRY(json_integer_in(place, "scale", -32, 31, &scale));
        format.precision.scale = (int8_t)scale;
    }
    if (order_has_blocks(&format.order)) {
        uint32_t row, column;
        TRY(json_u32(place, "rowBlock", 1, UINT16_MAX, &row));
        TRY(json_u32(place, "columnBlock", 1, UINT16_MAX, &column));
        format.order.row_block = (uint16_t)row;
        format.order.column_block = (uint16_t)column;
    }
    TRY(json_u32(place, "firstTile", 0, 1u << 20, &format.first_tile));
    TRY(json_u32(place, "replicas", 1, 1u << 20, &format.replicas));
    TRY(read_optional(place, "shares", 0, &format.shares));
    TRY(read_optional(place, "shareGrain", 0, &format.share_grain));
    TRY(read_optional(place, "shareEvery", 0, &format.share_every));
    TRY(read_axes(place, &format));
    *out = format;
    return STATUS_OK;
}
