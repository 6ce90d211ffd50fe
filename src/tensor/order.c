/* order.c - element orders as mixed radices (amp-kernels.md 3): the only place that knows them. */
#include "tensor/internal.h"

/* Digits as they come from the order's definition; order_digits cleans them up. */
static void add_digit(AxisDigits *digits, uint64_t block, uint64_t stride)
{
    digits->block[digits->count] = block;
    digits->stride[digits->count++] = stride;
}

/* The matrix orders, for a matrix of `rows` x `columns`; the transposed ones call it with the two
 * exchanged. all_rows is the row count of all matrices together. */
static void matrix_digits(uint8_t kind, const Order *order, uint64_t inner, uint64_t columns,
                          uint64_t all_rows, AxisDigits *row, AxisDigits *column)
{
    uint64_t rb = order->row_block, cb = order->column_block;
    switch (kind) {
    case ORDER_LEFT:
        add_digit(column, 1, 1);
        add_digit(column, inner, all_rows * inner);
        add_digit(row, 1, inner);
        break;
    case ORDER_TRANSPOSED_RIGHT:
        add_digit(column, 1, 1);
        add_digit(column, inner, 16 * inner);
        add_digit(row, 1, inner);
        add_digit(row, 16, 16 * columns);
        break;
    case ORDER_BLOCK_MAJOR:
        add_digit(row, 1, 1);
        add_digit(row, inner, inner * cb);
        add_digit(row, rb, columns * rb);
        add_digit(column, 1, inner);
        add_digit(column, cb, rb * cb);
        break;
    default:
        add_digit(column, 1, 1);
        add_digit(row, 1, columns);
    }
}

/* Drops digits that an axis of this extent never reaches or that continue the digit below. */
static void tidy_digits(AxisDigits *digits, uint64_t extent)
{
    uint32_t kept = 1;
    for (uint32_t d = 1; d < digits->count; d++) {
        if (digits->block[d] >= extent)
            continue;
        uint64_t ratio = digits->block[d] / digits->block[kept - 1];
        if (digits->stride[d] == digits->stride[kept - 1] * ratio)
            continue;
        digits->block[kept] = digits->block[d];
        digits->stride[kept++] = digits->stride[d];
    }
    digits->count = kept;
}

void order_digits(const Format *format, uint32_t rank, const uint32_t *physical, AxisDigits *out)
{
    const Order *order = &format->order;
    uint64_t inner = precision_inner(format->precision);
    uint64_t columns = physical[rank - 1], rows = rank > 1 ? physical[rank - 2] : 1, outer = 1;
    for (uint32_t a = 0; a + 2 < rank; a++)
        outer *= physical[a];

    AxisDigits row = {0}, column = {0};
    switch (order->kind) {
    case ORDER_TRANSPOSED_LEFT:
        matrix_digits(ORDER_LEFT, order, inner, rows, columns, &column, &row);
        break;
    case ORDER_TRANSPOSED_BLOCK_MAJOR:
        matrix_digits(ORDER_BLOCK_MAJOR, order, inner, rows, columns, &column, &row);
        break;
    default:
        matrix_digits(order->kind, order, inner, columns, outer * rows, &row, &column);
    }
    tidy_digits(&column, columns);
    out[rank - 1] = column;
    if (rank < 2)
        return;
    tidy_digits(&row, rows);
    out[rank - 2] = row;
    uint64_t stride = order->kind == ORDER_LEFT ? rows * inner : rows * columns;
    for (uint32_t a = rank - 2; a-- > 0; stride *= physical[a]) {
        out[a] = (AxisDigits){0};
        add_digit(&out[a], 1, stride);
    }
}
