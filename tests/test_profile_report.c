/* libraries: profile */
/* Reports: complete pages with well-formed data, also for a million samples on all tiles.
 * IPU_REPORT_OUT=FILE keeps the large page, for tests/report_chromium.sh. */
#include "check.h"

#include "profile/profile.h"
#include "profile_sample.h"

#include <string.h>

enum { MANY_TILES = 1472, MANY_STEPS = 60, ITERATIONS = 12, LIMIT_BYTES = 15000000 };

/* The JSON between the marks of the page's data element. */
static json_t *data_of(const Text *page)
{
    static const char begin[] = "<script id=\"data\" type=\"application/json\">";
    const char *from = strstr(page->items, begin);
    assert_non_null(from);
    from += sizeof begin - 1;
    const char *end = strstr(from, "</script>");
    assert_non_null(end);
    json_t *data = json_loadb(from, (size_t)(end - from), 0, NULL);
    assert_non_null(data);
    return data;
}

static void small(void **state)
{
    (void)state;
    ProfileFixture f;
    make_profile(&f);
    f.steps[1].operation = "</script><b>&";
    View view;
    Text page = {0};
    assert_ok(view_open(&f.profile, false, &view));
    assert_ok(report_render(&view, "a <title>", &page));
    assert_null(strstr(text_string(&page), "@DATA@"));
    assert_null(strstr(text_string(&page), "@JS_"));
    assert_null(strstr(text_string(&page), "</script><b>"));
    assert_non_null(strstr(text_string(&page), "a &#60;title&#62;"));
    assert_null(strstr(text_string(&page), "http://")); /* opens offline */
    assert_null(strstr(text_string(&page), "https://"));
    json_t *data = data_of(&page), *totals = json_object_get(data, "totals");
    assert_int_equal(json_integer_value(json_object_get(totals, "work")), 860);
    assert_int_equal(json_integer_value(json_object_get(totals, "samples")), 8);
    json_decref(data);
    text_free(&page);
    view_close(&view);
}

/* Every tile: an exchange, then products, over and over; a little out of step with each other. */
static void fill_tile(ProfileTile *tile, Arena *arena, uint32_t number)
{
    uint32_t now = 1000 + number % 7;
    *tile = (ProfileTile){.physical = number,
                          .samples = arena_array(arena, ProfileSample, MANY_STEPS * ITERATIONS)};
    for (uint32_t e = 1; e <= ITERATIONS; e++)
        for (uint32_t s = 0; s < MANY_STEPS; s++) {
            uint32_t duration = s % 4 == 0 ? 700 : 200 + (number * 31 + s * 17) % 150;
            tile->samples[tile->sample_count++] = (ProfileSample){s, e, now, now + duration};
            now += duration;
        }
    tile->activity_count = MANY_STEPS / 4;
    tile->activities = arena_array(arena, ProfileActivity, tile->activity_count);
    for (uint32_t a = 0; a < tile->activity_count; a++) {
        ProfileSpan *spans = arena_array(arena, ProfileSpan, 2);
        spans[0] = (ProfileSpan){number % 100, number % 100 + 200, SPAN_SEND, false, 3};
        spans[1] = (ProfileSpan){150, 500, SPAN_RECEIVE, a & 1, 1};
        tile->activities[a] = (ProfileActivity){4 * a, 550, spans, 2};
    }
}

static void million(void **state)
{
    (void)state;
    Arena arena = {0};
    Profile profile = {.clock_hz = 1500000000, .source = "simulator", .program = ""};
    profile.step_count = MANY_STEPS;
    profile.steps = arena_array(&arena, ProfileStep, MANY_STEPS);
    for (uint32_t s = 0; s < MANY_STEPS; s++) {
        const char *operation = arena_printf(&arena, "layer[*]/part%u", s / 8);
        PackageText work[] = {{"usefulCycles", "90"}, {"physicalWorkCycles", "100"}};
        bool exchange = s % 4 == 0;
        profile.steps[s] = (ProfileStep){exchange ? PROFILE_EXCHANGE_PHASE + s / 4 : s,
                                         exchange ? PROFILE_EXCHANGE : PROFILE_COMPUTE,
                                         operation,
                                         exchange     ? "exchange"
                                         : s % 4 == 1 ? "gemm"
                                                      : "add",
                                         exchange ? NULL : arena_copy(&arena, work, sizeof work, 8),
                                         exchange ? 0 : 2,
                                         exchange ? 600 : 0};
    }
    profile.tile_count = profile.tiles_used = MANY_TILES;
    profile.tiles = arena_array(&arena, ProfileTile, MANY_TILES);
    for (uint32_t t = 0; t < MANY_TILES; t++)
        fill_tile(&profile.tiles[t], &arena, t);
    View view;
    Text page = {0};
    assert_ok(view_open(&profile, false, &view));
    assert_true(view.count > 1000000);
    assert_ok(report_render(&view, "a million samples", &page));
    print_message("%zu samples, %zu bytes\n", view.count, page.count);
    assert_true(page.count < LIMIT_BYTES);
    json_decref(data_of(&page));
    const char *keep = getenv("IPU_REPORT_OUT");
    if (keep)
        assert_ok(file_write(keep, page.items, page.count));
    text_free(&page);
    view_close(&view);
    arena_free(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(small), cmocka_unit_test(million)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
