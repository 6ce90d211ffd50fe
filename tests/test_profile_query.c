/* libraries: profile */
/* Queries: the definitions on a profile whose numbers are worked out by hand (profile_sample.h). */
#include "check.h"

#include "profile/profile.h"
#include "profile_sample.h"

#include <string.h>

static ProfileFixture fixture;
static View view;

static const Group *group(const QueryResult *result, const char *name)
{
    for (size_t g = 0; g < result->group_count; g++)
        if (strcmp(result->groups[g].name, name) == 0)
            return &result->groups[g];
    fail_msg("no group %s", name);
    return NULL;
}

/* Crop: the last tile enters at 1010, the first at 990. */
static void crop(void **state)
{
    (void)state;
    assert_int_equal(view.cropped, 20);
    assert_int_equal(view.span, 290);
    assert_int_equal(view.count, 8);
    View shared;
    assert_ok(view_open(&fixture.profile, true, &shared));
    assert_int_equal(shared.cropped, 0);
    assert_int_equal(shared.span, 310);
    view_close(&shared);
}

static void kernels(void **state)
{
    (void)state;
    Query query = QUERY_DEFAULT;
    QueryResult result;
    assert_ok(query_run(&view, &query, &result));
    assert_int_equal(result.group_count, 3);
    const Group *gemm = group(&result, "gemm");
    assert_int_equal(gemm->samples, 4);
    assert_int_equal(gemm->work_cycles, 380);
    assert_int_equal(gemm->phase_cycles, 200); /* 1100 .. 1300 */
    assert_int_equal(gemm->first, 90);
    assert_int_equal(gemm->last, 290);
    assert_int_equal(gemm->tiles, 2);
    assert_int_equal(gemm->phases, 2); /* one step in two iterations */
    assert_int_equal(gemm->maximum, 100);
    assert_int_equal(gemm->p50, 90);  /* sorted[3 * 50 / 100] of 90 90 100 100 */
    assert_int_equal(gemm->p95, 100); /* sorted[2] */
    assert_true(gemm->useful == 160 && gemm->physical == 200 && gemm->measured == 380);
    const Group *exchange = group(&result, "exchange");
    assert_int_equal(exchange->work_cycles, 100 + 140 + 90); /* beginnings before 1010 cut off */
    assert_int_equal(exchange->phase_cycles, 140);
    assert_int_equal(exchange->wait_cycles, 20 + 80 + 10); /* own horizons 80, 60, 80 */
    assert_int_equal(group(&result, "sync")->wait_cycles, 150);
    assert_string_equal(result.groups[0].name, "gemm"); /* by phase cycles */
    query_free(&result);
}

static void filters(void **state)
{
    (void)state;
    Query query = QUERY_DEFAULT;
    QueryResult result;
    query.at = 145; /* cycle 1155 */
    assert_ok(query_run(&view, &query, &result));
    assert_int_equal(result.matched_count, 3);
    assert_int_equal(group(&result, "gemm")->samples, 2);
    query_free(&result);
    query = (Query)QUERY_DEFAULT;
    query.tile = 2;
    query.group_by = GROUP_KIND;
    assert_ok(query_run(&view, &query, &result));
    assert_int_equal(result.group_count, 2);
    assert_int_equal(group(&result, "synchronization")->samples, 1);
    query_free(&result);
    query = (Query)QUERY_DEFAULT;
    query.kind = "compute";
    query.group_by = GROUP_METADATA;
    query.metadata_key = "kernelSpec";
    assert_ok(query_run(&view, &query, &result));
    assert_int_equal(result.group_count, 1);
    assert_int_equal(group(&result, "gemm rows=4")->samples, 4);
    query_free(&result);
    query = (Query)QUERY_DEFAULT;
    query.operation = "down";
    assert_ok(query_run(&view, &query, &result));
    assert_int_equal(result.matched_count, 1);
    query_free(&result);
    query = (Query)QUERY_DEFAULT;
    query.group_by = GROUP_PHASE;
    query.sort_by = SORT_NAME;
    assert_ok(query_run(&view, &query, &result));
    assert_int_equal(result.group_count, 4);
    assert_string_equal(result.groups[0].name, "exchange 0/0");
    query_free(&result);
    query = (Query)QUERY_DEFAULT;
    query.kind = "computation";
    assert_true(status_discard(query_run(&view, &query, &result)));
    query_free(&result);
    query = (Query)QUERY_DEFAULT;
    query.tile = 5;
    assert_true(status_discard(query_run(&view, &query, &result)));
    query_free(&result);
}

/* Sums over any grouping are the same. */
static void sums(void **state)
{
    (void)state;
    for (uint8_t by = 0; by <= GROUP_METADATA; by++) {
        Query query = QUERY_DEFAULT;
        query.group_by = by;
        query.metadata_key = "bound";
        QueryResult result;
        uint64_t work = 0, samples = 0;
        assert_ok(query_run(&view, &query, &result));
        for (size_t g = 0; g < result.group_count; g++) {
            work += result.groups[g].work_cycles;
            samples += result.groups[g].samples;
        }
        assert_int_equal(work, 330 + 380 + 150);
        assert_int_equal(samples, 8);
        query_free(&result);
    }
}

static void exchanges(void **state)
{
    (void)state;
    ExchangeList list;
    exchange_summaries(&view, &list);
    assert_int_equal(list.count, 1);
    const ExchangeSummary *e = &list.items[0];
    assert_int_equal(e->tiles, 3);
    assert_int_equal(e->measured, 140);
    assert_int_equal(e->arrival_wait, 0); /* cropped: all there at 0 */
    assert_int_equal(e->scheduled, 80);
    assert_int_equal(e->boundary, 60);
    assert_int_equal(e->bound, 70);
    /* send 0..40, receive 30..60 in own horizons of 80, 60, 80 */
    assert_int_equal(e->roles[ROLE_SEND], 90);
    assert_int_equal(e->roles[ROLE_BOTH], 30);
    assert_int_equal(e->roles[ROLE_RECEIVE], 60);
    assert_int_equal(e->roles[ROLE_IDLE], 40);
    arena_free(&list.arena);
    uint8_t bins[8];
    activity_bins(&fixture.activities[0], 80, bins, 8);
    static const uint8_t expected[8] = {1, 1, 1, 3, 2, 2, 0, 0};
    assert_memory_equal(bins, expected, 8);
}

static void plan(void **state)
{
    (void)state;
    Arena arena = {0};
    OperationCost *costs;
    size_t count;
    assert_ok(operation_costs(&view, &arena, &costs, &count));
    assert_int_equal(count, 2);
    assert_string_equal(costs[0].operation, "a/up");
    assert_int_equal(costs[0].cycles, 290);
    assert_int_equal(costs[0].exchange_cycles, 140);
    assert_true(costs[0].predicted == 200 && costs[0].predicted_exchange == 50);
    assert_true(costs[1].predicted == -1);
    arena_free(&arena);
}

static void difference(void **state)
{
    (void)state;
    ProfileFixture later;
    make_profile(&later);
    later.samples[0][2].end = 1400;
    View other;
    assert_ok(view_open(&later.profile, false, &other));
    Query query = QUERY_DEFAULT;
    QueryResult a, b;
    assert_ok(query_run(&view, &query, &a));
    assert_ok(query_run(&other, &query, &b));
    Arena arena = {0};
    Difference *differences;
    size_t count;
    assert_ok(profile_difference(&a, &b, &arena, &differences, &count));
    assert_int_equal(count, 3);
    assert_string_equal(differences[0].name, "gemm");
    assert_int_equal(differences[0].after->phase_cycles - differences[0].before->phase_cycles, 100);
    query_free(&a);
    query_free(&b);
    arena_free(&arena);
    view_close(&other);
}

static int set_up(void **state)
{
    (void)state;
    make_profile(&fixture);
    return !status_ok(view_open(&fixture.profile, false, &view));
}

static int tear_down(void **state)
{
    (void)state;
    view_close(&view);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(crop),      cmocka_unit_test(kernels),
                                       cmocka_unit_test(filters),   cmocka_unit_test(sums),
                                       cmocka_unit_test(exchanges), cmocka_unit_test(plan),
                                       cmocka_unit_test(difference)};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
