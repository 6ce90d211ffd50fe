/* query_print.c - results of queries as JSON and as tables. Ratios are memory-boot-package.md 5.6.
 */
#include "profile/profile.h"

#include <string.h>

static size_t limited(size_t count, size_t limit)
{
    return limit && limit < count ? limit : count;
}

static void set_ratio(json_t *out, const char *name, double part, double whole)
{
    if (whole > 0)
        json_object_set_new(out, name, json_real(part / whole));
}

static void set_integer(json_t *out, const char *name, uint64_t value)
{
    json_object_set_new(out, name, json_integer((json_int_t)value));
}

static double milliseconds(const View *view, uint64_t cycles)
{
    return (double)cycles / (double)view->profile->clock_hz * 1e3;
}

static json_t *group_json(const View *view, const Query *query, const Group *g)
{
    static const char *const dimensions[] = {"kind",  "kernel", "operation",
                                             "phase", "tile",   "metadata"};
    json_t *out = json_object(), *dimension = json_object();
    json_object_set_new(out, "name", json_string(g->name));
    json_object_set_new(dimension, dimensions[query->group_by], json_string(g->name));
    if (query->group_by == GROUP_METADATA)
        json_object_set_new(dimension, "key", json_string(query->metadata_key));
    json_object_set_new(out, "dimensions", dimension);
    set_integer(out, "sampleCount", g->samples);
    set_integer(out, "tileCount", g->tiles);
    set_integer(out, "phaseCount", g->phases);
    set_integer(out, "phaseCycles", g->phase_cycles);
    json_object_set_new(out, "phaseMs", json_real(milliseconds(view, g->phase_cycles)));
    set_integer(out, "workCycles", g->work_cycles);
    set_integer(out, "waitCycles", g->wait_cycles);
    set_ratio(out, "averageActiveTiles", (double)g->work_cycles, g->phase_cycles);
    set_ratio(out, "meanCycles", (double)g->work_cycles, (double)g->samples);
    set_integer(out, "p50Cycles", g->p50);
    set_integer(out, "p95Cycles", g->p95);
    set_integer(out, "maximumCycles", g->maximum);
    set_integer(out, "firstOffset", g->first);
    set_integer(out, "lastOffset", g->last);
    if (g->measured) {
        json_object_set_new(out, "usefulCycles", json_real(g->useful));
        json_object_set_new(out, "physicalWorkCycles", json_real(g->physical));
        set_ratio(out, "usefulEfficiency", g->useful, (double)g->measured);
        set_ratio(out, "workFraction", g->physical, (double)g->measured);
        set_ratio(out, "laneOccupancy", g->useful, g->physical);
        set_ratio(out, "deviceUtilisation", g->useful,
                  (double)g->phase_cycles * view->profile->tile_count);
    }
    return out;
}

static json_t *sample_json(const View *view, const ViewSample *s)
{
    const ProfileStep *step = &view->profile->steps[s->step];
    json_t *out = json_object(), *metadata = json_array();
    set_integer(out, "physicalTile", view->profile->tiles[s->tile].physical);
    set_integer(out, "offset", s->offset);
    set_integer(out, "duration", s->duration);
    set_integer(out, "phase", step->phase);
    set_integer(out, "epoch", s->epoch);
    json_object_set_new(out, "kind", json_string(profile_kind_names[step->kind]));
    json_object_set_new(out, "operation", json_string(step->operation));
    json_object_set_new(out, "kernel", json_string(step->kernel));
    for (uint32_t i = 0; i < step->metadata_count; i++) {
        json_t *pair = json_object();
        json_object_set_new(pair, "name", json_string(step->metadata[i].name));
        json_object_set_new(pair, "value", json_string(step->metadata[i].text));
        json_array_append_new(metadata, pair);
    }
    json_object_set_new(out, "metadata", metadata);
    return out;
}

json_t *query_json(const View *view, const Query *query, const QueryResult *result,
                   size_t group_limit, size_t sample_limit)
{
    json_t *out = json_object(), *groups = json_array(), *samples = json_array();
    set_integer(out, "clockHz", view->profile->clock_hz);
    set_integer(out, "tileCount", view->profile->tile_count);
    set_integer(out, "sampleCount", view->count);
    set_integer(out, "matchedSampleCount", result->matched_count);
    set_integer(out, "profileSpanCycles", view->span);
    json_object_set_new(out, "profileSpanMs", json_real(milliseconds(view, view->span)));
    if (query->at >= 0)
        set_integer(out, "atOffset", (uint64_t)query->at);
    json_object_set_new(out, "source", json_string(view->profile->source));
    for (size_t i = 0; i < limited(result->group_count, group_limit); i++)
        json_array_append_new(groups, group_json(view, query, &result->groups[i]));
    for (size_t i = 0;
         i < (sample_limit < result->matched_count ? sample_limit : result->matched_count); i++)
        json_array_append_new(samples, sample_json(view, result->matched[i]));
    json_object_set_new(out, "groups", groups);
    json_object_set_new(out, "samples", samples);
    return out;
}

static void put_percent(Text *text, double part, double whole)
{
    if (whole > 0)
        text_printf(text, " %6.1f%%", 100 * part / whole);
    else
        text_append(text, "       -");
}

static void print_group(Text *text, const View *view, const Group *g)
{
    text_printf(text, "%-42.42s %8llu %5u %10u", g->name, (unsigned long long)g->samples, g->tiles,
                g->phase_cycles);
    put_percent(text, g->phase_cycles, view->span);
    text_printf(text, " %13llu", (unsigned long long)g->work_cycles);
    put_percent(text, (double)g->wait_cycles, (double)g->work_cycles);
    text_printf(text, " %7.1f %8u %8u %8u",
                g->phase_cycles ? (double)g->work_cycles / g->phase_cycles : 0, g->p50, g->p95,
                g->maximum);
    put_percent(text, g->useful, (double)g->measured);
    put_percent(text, g->useful, g->measured ? g->physical : 0);
    put_percent(text, g->useful,
                g->measured ? (double)g->phase_cycles * view->profile->tile_count : 0);
    text_append(text, "\n");
}

void query_print(Text *text, const View *view, const QueryResult *result, size_t group_limit,
                 size_t sample_limit)
{
    text_printf(text, "%u tiles, %zu samples, %zu matched, %u cycles (%.3f us), source %s\n",
                view->profile->tile_count, view->count, result->matched_count, view->span,
                milliseconds(view, view->span) * 1e3,
                *view->profile->source ? view->profile->source : "unknown");
    text_printf(text, "%-42s %8s %5s %10s %7s %13s %7s %7s %8s %8s %8s %7s %7s %7s\n", "group",
                "samples", "tiles", "cycles", "of run", "work", "waits", "active", "p50", "p95",
                "max", "useful", "lanes", "device");
    size_t shown = limited(result->group_count, group_limit);
    for (size_t i = 0; i < shown; i++)
        print_group(text, view, &result->groups[i]);
    if (shown < result->group_count)
        text_printf(text, "... %zu more groups\n", result->group_count - shown);
    for (size_t i = 0;
         i < (sample_limit < result->matched_count ? sample_limit : result->matched_count); i++) {
        const ViewSample *s = result->matched[i];
        const ProfileStep *step = &view->profile->steps[s->step];
        text_printf(text, "tile %4u at %9u for %8u  %-15s %-16s %s",
                    view->profile->tiles[s->tile].physical, s->offset, s->duration,
                    profile_kind_names[step->kind], step->kernel, step->operation);
        if (s->epoch)
            text_printf(text, " iteration %u", s->epoch);
        const char *spec = profile_metadata(step, "kernelSpec");
        text_printf(text, "%s%s\n", spec ? "  " : "", spec ? spec : "");
    }
}
