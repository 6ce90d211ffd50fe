/* libraries: kernel sim */
#include "kernel_bench.h"

static KernelSpec pack(KernelFamily family, int32_t order, int32_t matrices, int32_t rows,
                       int32_t columns, int32_t physical_rows, int32_t pitch)
{
    return (KernelSpec){.family = family,
                        .p = {[PACK_ORDER] = order,
                              [PACK_MATRICES] = matrices,
                              [PACK_ROWS] = rows,
                              [PACK_COLUMNS] = columns,
                              [PACK_PHYSICAL_ROWS] = physical_rows,
                              [PACK_PHYSICAL_COLUMNS] = (columns + 15) / 16 * 16,
                              [PACK_ROW_BLOCK] = 16,
                              [PACK_PITCH] = pitch}};
}

static const int32_t widths[] = {2, 4, 7, 16, 17, 18, 31, 36, 48, 61, 72, 144};
static const int32_t heights[] = {1, 3, 4, 6, 7, 13, 16, 25, 30};

static void rows_orders(void **state)
{
    (void)state;
    for (size_t w = 0; w < countof(widths); w++)
        for (size_t h = 0; h < countof(heights); h++) {
            int32_t turn = (int32_t)(w + h), height = heights[h];
            int32_t padded = (height + 15) / 16 * 16, pitch = widths[w] + turn % 4;
            KernelSpec left = pack(KERNEL_PACK, ORDER_LEFT, 1 + turn % 3, height, widths[w],
                                   height + turn % 2 * 3, pitch);
            KernelSpec right = pack(KERNEL_PACK, ORDER_TRANSPOSED_RIGHT, 1 + turn % 2, height,
                                    widths[w], padded, pitch);
            if (turn % 5 == 0)
                left.p[PACK_PHYSICAL_COLUMNS] += 32;
            bench_kernel(&left, NULL, NULL);
            bench_kernel(&right, NULL, NULL);
        }
}

static void block_major(void **state)
{
    (void)state;
    for (size_t w = 0; w < countof(widths); w++)
        for (size_t h = 0; h < countof(heights); h++) {
            int32_t turn = (int32_t)(w + h), height = heights[h];
            int32_t padded = (height + 15) / 16 * 16 + turn % 3 / 2 * 16;
            KernelSpec spec = pack(KERNEL_PACK, ORDER_BLOCK_MAJOR, 1 + turn % 2, height, widths[w],
                                   padded, widths[w] + turn % 4);
            spec.p[PACK_ROW_BLOCK] = turn % 2 ? padded : 16;
            if (turn % 5 == 0)
                spec.p[PACK_PHYSICAL_COLUMNS] += 16;
            bench_kernel(&spec, NULL, NULL);
        }
    KernelSpec blocks = pack(KERNEL_PACK, ORDER_BLOCK_MAJOR, 1, 190, 48, 192, 48);
    for (int32_t block = 32; block <= 96; block += 32) {
        blocks.p[PACK_ROW_BLOCK] = block;
        bench_kernel(&blocks, NULL, NULL);
    }
}

/* Rows on 8 bytes and columns in fours: blocks in streams. */
static void block_major_quads(void **state)
{
    (void)state;
    static const int32_t columns[] = {4, 8, 16, 20, 24, 28, 48, 144};
    for (size_t i = 0; i < countof(columns); i++)
        for (int32_t rows = 1; rows <= 50; rows += rows < 17 ? 1 : 7) {
            int32_t turn = (int32_t)i + rows, padded = (rows + 15) / 16 * 16 + turn % 4 / 3 * 32;
            KernelSpec spec = pack(KERNEL_PACK, ORDER_BLOCK_MAJOR, 1 + turn % 2, rows, columns[i],
                                   padded, columns[i] + turn % 3 * 4);
            spec.p[PACK_ROW_BLOCK] = turn % 3 ? padded : 16;
            if (turn % 5 == 0)
                spec.p[PACK_PHYSICAL_COLUMNS] += 16;
            bench_kernel(&spec, NULL, NULL);
        }
    KernelSpec large = pack(KERNEL_PACK, ORDER_BLOCK_MAJOR, 2, 64, 512, 64, 544);
    bench_kernel(&large, NULL, NULL);
}

static void unpacked(void **state)
{
    (void)state;
    for (size_t w = 0; w < countof(widths); w++)
        for (size_t h = 0; h < countof(heights); h++) {
            int32_t turn = (int32_t)(w + h), height = heights[h], width = widths[w] / 2 * 2;
            int32_t pitch = width + turn % 3 * 2;
            KernelSpec left = pack(KERNEL_UNPACK, ORDER_LEFT, 1 + turn % 3, height, width,
                                   height + turn % 2 * 3, pitch);
            KernelSpec transposed = pack(KERNEL_UNPACK, ORDER_TRANSPOSED_LEFT, 1 + turn % 2, height,
                                         width, (height + 15) / 16 * 16, pitch);
            bench_kernel(&left, NULL, NULL);
            bench_kernel(&transposed, NULL, NULL);
        }
}

/* Blocks of 16 x 16, and rows of whole words: transposed in streams. */
static void unpacked_streams(void **state)
{
    (void)state;
    for (int32_t blocks = 1; blocks <= 13; blocks++) {
        KernelSpec spec =
            pack(KERNEL_UNPACK, ORDER_TRANSPOSED_LEFT, 1, 16 * blocks, 16, 16 * blocks, 16);
        bench_kernel(&spec, NULL, NULL);
    }
    static const int32_t columns[] = {8, 12, 16, 20, 48, 144};
    for (size_t i = 0; i < countof(columns); i++)
        for (int32_t rows = 1; rows <= 33; rows += rows < 9 ? 1 : 8) {
            KernelSpec spec = pack(KERNEL_UNPACK, ORDER_TRANSPOSED_LEFT, 1 + rows % 2, rows,
                                   columns[i], (rows + 15) / 16 * 16, columns[i] + rows % 3 * 4);
            bench_kernel(&spec, NULL, NULL);
        }
}

static void refused(void **state)
{
    (void)state;
    KernelContract contract;
    KernelSpec specs[] = {
        pack(KERNEL_PACK, ORDER_ROW_MAJOR, 1, 4, 16, 4, 16),
        pack(KERNEL_PACK, ORDER_TRANSPOSED_RIGHT, 1, 4, 16, 4, 16),
        pack(KERNEL_PACK, ORDER_LEFT, 1, 4, 16, 3, 16),
        pack(KERNEL_PACK, ORDER_LEFT, 1, 4, 16, 4, 15),
        pack(KERNEL_PACK, ORDER_LEFT, 100, 1000, 16, 1000, 16),
        pack(KERNEL_UNPACK, ORDER_LEFT, 1, 4, 15, 4, 16),
        pack(KERNEL_UNPACK, ORDER_BLOCK_MAJOR, 1, 16, 16, 16, 16),
    };
    for (size_t i = 0; i < countof(specs); i++)
        assert_true(status_discard(kernel_contract(&specs[i], &contract)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_orders),       cmocka_unit_test(block_major),
        cmocka_unit_test(block_major_quads), cmocka_unit_test(unpacked),
        cmocka_unit_test(unpacked_streams),  cmocka_unit_test(refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
