/* libraries: profile */
/* Profile files: both forms there and back, every rule, damaged copies through every reader. */
#include "check.h"

#include "hostile.h"
#include "profile/profile.h"
#include "profile_sample.h"

static void compare(const Profile *a, const Profile *b, bool own_horizons)
{
    assert_int_equal(a->clock_hz, b->clock_hz);
    assert_string_equal(a->source, b->source);
    assert_int_equal(a->tile_count, b->tile_count);
    for (uint32_t t = 0; t < a->tile_count; t++) {
        const ProfileTile *x = &a->tiles[t], *y = &b->tiles[t];
        assert_int_equal(x->physical, y->physical);
        assert_int_equal(x->sample_count, y->sample_count);
        for (uint32_t i = 0; i < x->sample_count; i++) {
            const ProfileStep *p = &a->steps[x->samples[i].step];
            const ProfileStep *q = &b->steps[y->samples[i].step];
            assert_int_equal(x->samples[i].start, y->samples[i].start);
            assert_int_equal(x->samples[i].end, y->samples[i].end);
            assert_int_equal(x->samples[i].epoch, y->samples[i].epoch);
            assert_int_equal(p->phase, q->phase);
            assert_int_equal(p->kind, q->kind);
            assert_string_equal(p->operation, q->operation);
            assert_string_equal(p->kernel, q->kernel);
            assert_int_equal(p->metadata_count, q->metadata_count);
            assert_int_equal(p->event_cycles, q->event_cycles);
            const ProfileActivity *m = profile_activity(x, x->samples[i].step);
            const ProfileActivity *n = profile_activity(y, y->samples[i].step);
            assert_int_equal(m != NULL, n != NULL);
            if (!m)
                continue;
            assert_int_equal(m->span_count, n->span_count);
            if (own_horizons)
                assert_int_equal(m->event_cycles, n->event_cycles);
            for (uint32_t s = 0; s < m->span_count; s++) {
                assert_int_equal(m->spans[s].start, n->spans[s].start);
                assert_int_equal(m->spans[s].end, n->spans[s].end);
                assert_int_equal(m->spans[s].kind, n->spans[s].kind);
                assert_int_equal(m->spans[s].paired, n->spans[s].paired);
                assert_int_equal(m->spans[s].fanout, n->spans[s].fanout);
            }
        }
    }
}

static void both_forms(void **state)
{
    (void)state;
    ProfileFixture f;
    make_profile(&f);
    for (int inline_steps = 0; inline_steps < 2; inline_steps++) {
        Arena arena = {0};
        Bytes bytes;
        Profile read;
        assert_ok(profile_encode(&f.profile, inline_steps, &bytes));
        assert_ok(profile_decode(&arena, "copy", bytes.data, bytes.count, &read));
        compare(&f.profile, &read, !inline_steps);
        assert_int_equal(read.step_count, 3);
        assert_int_equal(read.prediction_count, 1);
        bytes_free(&bytes);
        arena_free(&arena);
    }
}

static void refused(const ProfileFixture *f, const char *part)
{
    Status status = profile_check(&f->profile);
    if (status_ok(status))
        fail_msg("accepted, \"%s\" expected", part);
    if (!strstr(status_message(status), part))
        fail_msg("\"%s\", \"%s\" expected", status_message(status), part);
    status_free(status);
}

static void rules(void **state)
{
    (void)state;
    ProfileFixture f;
    make_profile(&f);
    f.samples[0][1].step = 3;
    refused(&f, "step 3 is unknown");
    make_profile(&f);
    f.samples[0][1].end = 1109;
    refused(&f, "ends before it begins");
    make_profile(&f);
    f.samples[0][1].start = 1109;
    refused(&f, "before the end of the one before");
    make_profile(&f);
    f.tiles[1].physical = 64;
    refused(&f, "stands twice");
    make_profile(&f);
    f.tiles[1].physical = 1472;
    refused(&f, "does not exist");
    make_profile(&f);
    f.steps[1].kind = 4;
    refused(&f, "unknown kind");
    make_profile(&f);
    f.samples[1][0].start = f.samples[1][0].end = 0x60000000;
    f.samples[1][1].start = f.samples[1][1].end = 0x60000000;
    refused(&f, "clock");
    make_profile(&f);
    f.spans[1].end = 1;
    refused(&f, "no span");
    make_profile(&f);
    f.activities[2].step = 9;
    refused(&f, "step 9 of 3");
    make_profile(&f);
    f.steps[1].kernel = "\xff";
    refused(&f, "UTF-8");
    make_profile(&f);
    f.profile.clock_hz = 0;
    refused(&f, "clockHz");
    make_profile(&f);
    f.profile.tile_count = 0;
    refused(&f, "tiles");
}

static void wrapped_counters(void **state)
{
    (void)state;
    ProfileFixture f;
    make_profile(&f);
    for (int t = 0; t < 3; t++)
        for (int i = 0; i < 3; i++) {
            f.samples[t][i].start -= 1150;
            f.samples[t][i].end -= 1150;
        }
    View view;
    assert_ok(view_open(&f.profile, true, &view));
    assert_int_equal(view.span, 310);
    view_close(&view);
}

/* Everything that reads a profile, on whatever still decodes. */
static void use(const Profile *profile)
{
    View view;
    Text text = {0};
    assert_ok(view_open(profile, false, &view));
    for (uint8_t by = 0; by < GROUP_METADATA; by++) {
        Query query = QUERY_DEFAULT;
        query.group_by = by;
        QueryResult result;
        assert_ok(query_run(&view, &query, &result));
        json_decref(query_json(&view, &query, &result, 0, 10));
        query_print(&text, &view, &result, 0, 10);
        query_free(&result);
    }
    assert_ok(report_render(&view, "damaged", &text));
    text_free(&text);
    view_close(&view);
}

static void damaged(void **state)
{
    (void)state;
    ProfileFixture f;
    make_profile(&f);
    Bytes good[2];
    assert_ok(profile_encode(&f.profile, false, &good[0]));
    assert_ok(profile_encode(&f.profile, true, &good[1]));
    Hostile hostile = hostile_begin(3000);
    uint32_t accepted = 0;
    while (hostile_more(&hostile)) {
        const Bytes *from = &good[hostile.round & 1];
        Text copy = {0};
        array_append(&copy, (const char *)from->data, from->count);
        hostile_damage(&hostile, &copy);
        Arena arena = {0};
        Profile profile;
        Status status =
            profile_decode(&arena, "damaged", (const uint8_t *)copy.items, copy.count, &profile);
        if (status_ok(status)) {
            accepted++;
            use(&profile);
        } else if (!strstr(status_message(status), "damaged")) {
            fail_msg("\"%s\" does not name the file", status_message(status));
        }
        status_free(status);
        arena_free(&arena);
        text_free(&copy);
    }
    assert_true(accepted > 10);
    bytes_free(&good[0]);
    bytes_free(&good[1]);
}

static void cut_short(void **state)
{
    (void)state;
    ProfileFixture f;
    make_profile(&f);
    Bytes bytes;
    assert_ok(profile_encode(&f.profile, false, &bytes));
    for (size_t count = 0; count < bytes.count; count++) {
        Arena arena = {0};
        Profile profile;
        assert_true(status_discard(profile_decode(&arena, "cut", bytes.data, count, &profile)));
        arena_free(&arena);
    }
    bytes_free(&bytes);
}

static void other_versions(void **state)
{
    (void)state;
    ProfileFixture f;
    make_profile(&f);
    Bytes bytes;
    assert_ok(profile_encode(&f.profile, false, &bytes));
    /* framing word, root pointer, then the version in the root's first word */
    for (uint32_t version = 0; version < 8; version++) {
        store_u32(bytes.data + 16, version);
        Arena arena = {0};
        Profile profile;
        Status status = profile_decode(&arena, "other", bytes.data, bytes.count, &profile);
        assert_int_equal(status_ok(status), version >= 1 && version <= 5);
        if (!status_ok(status))
            assert_non_null(strstr(status_message(status), "schemaVersion"));
        status_free(status);
        arena_free(&arena);
    }
    bytes_free(&bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_forms),       cmocka_unit_test(rules),
        cmocka_unit_test(wrapped_counters), cmocka_unit_test(damaged),
        cmocka_unit_test(cut_short),        cmocka_unit_test(other_versions)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
