/* libraries: target */
/* test_target_tiles.c - tile map, routes, elements, names: the check values of exchange.md. */
#include "target/target.h"

#include "check.h"

#include <stdlib.h>

static void test_map_is_a_permutation(void **state)
{
    (void)state;
    static const struct {
        uint32_t logical, physical;
    } known[] = {{0, 0},     {1, 2},   {2, 64},   {45, 1410}, {46, 1409}, {91, 3},   {92, 4},
                 {100, 260}, {274, 9}, {736, 32}, {900, 613}, {1286, 53}, {1471, 63}};
    for (size_t i = 0; i < countof(known); i++) {
        assert_int_equal(target_physical(known[i].logical), known[i].physical);
        assert_int_equal(target_logical(known[i].physical), known[i].logical);
    }
    uint64_t sum = 0;
    for (uint32_t l = 0; l < TILES; l++) {
        uint32_t p = target_physical(l);
        assert_true(p < TILES);
        assert_int_equal(target_logical(p), l);
        assert_int_equal(target_physical(l ^ 1), target_partner(p));
        sum += (uint64_t)l * p;
    }
    assert_true(sum == 807822192);
}

static void test_route_vectors(void **state)
{
    (void)state;
    static const struct {
        uint32_t s, d;
        uint32_t direction;
        int time, latency;
    } known[] = {{0, 53, 1, -23, 30},    {32, 260, 2, 49, 110},   {53, 63, 2, -14, 39},
                 {1024, 0, 1, 3, 56},    {0, 9, 1, -23, 30},      {0, 64, 1, -31, 24},
                 {0, 1409, 1, -69, 28},  {64, 0, 1, -27, 26},     {0, 2, 1, -28, 25},
                 {2, 0, 1, -29, 24},     {0, 32, 1, -4, 49},      {32, 613, 2, -34, 37},
                 {32, 53, 2, 20, 73},    {1165, 11, 2, 19, 72},   {1099, 108, 1, 7, 62},
                 {40, 1451, 2, -70, 27}, {427, 1025, 2, 16, 101}, {1397, 128, 2, 45, 102},
                 {1470, 229, 1, 21, 80}, {220, 897, 2, 20, 101},  {1, 1412, 1, -78, 19},
                 {1440, 0, 2, 112, 165}, {1, 4, 1, -34, 19}};
    for (size_t i = 0; i < countof(known); i++) {
        uint32_t s = known[i].s, d = known[i].d;
        int time = target_route_time(s, d);
        if (i < 20) {
            assert_int_equal(target_direction(s, d), known[i].direction);
            assert_int_equal(time, known[i].time);
        }
        assert_int_equal(time + 53 + 2 * target_row(d), known[i].latency);
    }
}

static void test_route_properties(void **state)
{
    (void)state;
    int64_t sum = 0;
    uint32_t negative = 0, first = 0;
    int low = 1000, high = -1000;
    for (uint32_t s = 0; s < TILES; s++) {
        for (uint32_t d = 0; d < TILES; d++) {
            if (s == d)
                continue;
            int time = target_route_time(s, d);
            uint32_t direction = target_direction(s, d), partner = target_partner(d);
            sum += time;
            negative += time < 0;
            first += direction == 1;
            low = time < low ? time : low;
            high = time > high ? time : high;
            if (partner == s)
                continue;
            assert_int_equal(direction, target_direction(s, partner));
            int other = target_route_time(s, partner);
            assert_int_equal(abs(time - other), 1);
            assert_int_equal(target_early_member(s, d), time < other ? d : partner);
        }
    }
    assert_true(sum == -21355040);
    assert_int_equal(negative, 1438112);
    assert_int_equal(first, 1082656);
    assert_int_equal(low, -78);
    assert_int_equal(high, 112);
}

static void test_early_members_of_vendor_rows(void **state)
{
    (void)state; /* logical 0 -> {2,3}, 2 -> {0,1}, 0 -> {46,47}: early 2, 0 and 47 */
    uint32_t zero = target_physical(0), two = target_physical(2), p46 = target_physical(46);
    assert_int_equal(target_logical(target_early_member(zero, two)), 2);
    assert_int_equal(target_logical(target_early_member(two, zero)), 0);
    assert_int_equal(target_logical(target_early_member(zero, p46)), 47);
}

static void test_elements_and_names(void **state)
{
    (void)state;
    assert_int_equal(target_element(0x4c000), 19);
    assert_int_equal(target_element(0x4ffff), 19);
    assert_int_equal(target_element(0x50000), 20);
    assert_int_equal(target_element(0x7ffff), 31);
    assert_int_equal(target_element(0x80000), target_element(0x87fff));
    assert_true(target_element(0x87fff) != target_element(0x88000));
    assert_string_equal(target_exception_name(7), "EXCONF");
    assert_string_equal(target_exception_name(13), "EXERR");
    assert_string_equal(target_exception_name(99), "UNKNOWN");
    assert_string_equal(target_receive_error_name(2), "CLASH_IFETCH");
}

static void test_worker_slots(void **state)
{
    (void)state;
    assert_int_equal(target_worker_slots(FORM_add_mmmn), 1);
    assert_int_equal(target_worker_slots(FORM_f16v2tanh_aaan), 1);
    assert_int_equal(target_worker_slots(FORM_f16v2sigm_aaan), 2);
    assert_int_equal(target_worker_slots(FORM_f32oox_aaan), 1);
    assert_int_equal(target_worker_slots(FORM_f32oorx_aaan), 4);
    assert_int_equal(target_worker_slots(FORM_f32div_aaan), 5);
    assert_int_equal(target_worker_slots(FORM_f32log2_aaan), 6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_map_is_a_permutation),
        cmocka_unit_test(test_route_vectors),
        cmocka_unit_test(test_route_properties),
        cmocka_unit_test(test_early_members_of_vendor_rows),
        cmocka_unit_test(test_elements_and_names),
        cmocka_unit_test(test_worker_slots),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
