/* report.c - the HTML report: a page with its style, its code and one block of data.
 *
 * The data is JSON; what there is much of is packed in base64. Samples, tile after tile, in LEB128:
 * zigzag difference of the step number * 2 + 1 when the epoch changes, then the new epoch if so,
 * the gap to the end of the sample before, the duration. Lanes of an exchange step: four bits for
 * each of LANE_BINS stretches of the phase, by tile. Sums that the page must find again go along.
 */
#include "profile/profile.h"

#include <stdlib.h>
#include <string.h>

enum { LANE_BINS = 64 };

typedef struct EmbeddedText {
    const char *name, *text;
} EmbeddedText;
extern const EmbeddedText ipu_report_sources[]; /* cmake/embed.cmake */

typedef ARRAY(uint8_t) ByteArray;

typedef struct Report {
    const View *view;
    json_t *data, *strings;
    Map string_index; /* text -> index + 1 */
} Report;

const char *report_source(const char *name)
{
    for (const EmbeddedText *s = ipu_report_sources; s->name; s++)
        if (strcmp(s->name, name) == 0)
            return s->text;
    return "";
}

static json_t *string_number(Report *r, const char *text)
{
    uint64_t *index = map_at_text(&r->string_index, text, NULL);
    if (!*index) {
        json_t *string = json_string(text);
        json_array_append_new(r->strings, string ? string : json_string("?"));
        *index = json_array_size(r->strings);
    }
    return json_integer((json_int_t)*index - 1);
}

static json_t *base64(const uint8_t *data, size_t count)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    char *text = xmalloc(count / 3 * 4 + 5), *to = text;
    for (size_t i = 0; i < count; i += 3) {
        uint32_t left = count - i < 3 ? (uint32_t)(count - i) : 3, bits = 0;
        for (uint32_t k = 0; k < 3; k++)
            bits = bits << 8 | (k < left ? data[i + k] : 0);
        for (uint32_t k = 0; k < 4; k++)
            *to++ = k <= left ? digits[bits >> (18 - 6 * k) & 63] : '=';
    }
    json_t *out = json_stringn(text, (size_t)(to - text));
    free(text);
    return out;
}

static void put_number(ByteArray *bytes, uint64_t value)
{
    for (; value >= 128; value >>= 7)
        array_push(bytes, (uint8_t)(value & 127) | 128);
    array_push(bytes, (uint8_t)value);
}

/* The view's samples tile by tile, in time. */
static const ViewSample **sort_by_tile(const View *view)
{
    const ViewSample **sorted = xmalloc(array_bytes(view->count, sizeof *sorted));
    size_t *next = xcalloc(view->profile->tile_count + 1, sizeof *next);
    for (size_t i = 0; i < view->count; i++)
        next[view->samples[i].tile + 1]++;
    for (uint32_t t = 0; t < view->profile->tile_count; t++)
        next[t + 1] += next[t];
    for (size_t i = 0; i < view->count; i++)
        sorted[next[view->samples[i].tile]++] = &view->samples[i];
    free(next);
    return sorted;
}

static void add_samples(Report *r)
{
    const View *view = r->view;
    const ViewSample **sorted = sort_by_tile(view);
    json_t *counts = json_array(), *cut = json_array(), *tiles = json_array();
    ByteArray bytes = {0};
    size_t at = 0;
    for (uint32_t t = 0; t < view->profile->tile_count; t++) {
        size_t first = at;
        int64_t step = 0;
        uint32_t now = 0, epoch = 0;
        for (; at < view->count && sorted[at]->tile == t; at++) {
            const ViewSample *s = sorted[at];
            int64_t change = s->step - step;
            uint64_t zigzag = (uint64_t)(change < 0 ? -2 * change - 1 : 2 * change);
            put_number(&bytes, zigzag * 2 + (s->epoch != epoch));
            if (s->epoch != epoch)
                put_number(&bytes, s->epoch);
            put_number(&bytes, s->offset - now);
            put_number(&bytes, s->duration);
            now = s->offset + s->duration;
            step = s->step;
            epoch = s->epoch;
        }
        json_array_append_new(counts, json_integer((json_int_t)(at - first)));
        json_array_append_new(tiles, json_integer(view->profile->tiles[t].physical));
        if (at > first && sorted[first]->cut)
            json_array_append_new(cut, json_integer(t));
    }
    json_object_set_new(r->data, "tiles", tiles);
    json_object_set_new(r->data, "counts", counts);
    json_object_set_new(r->data, "cut", cut);
    json_object_set_new(r->data, "samples", base64(bytes.items, bytes.count));
    array_free(&bytes);
    free(sorted);
}

static void add_steps(Report *r)
{
    const Profile *profile = r->view->profile;
    json_t *steps = json_array();
    for (uint32_t s = 0; s < profile->step_count; s++) {
        const ProfileStep *step = &profile->steps[s];
        json_t *metadata = json_array(), *item = json_array();
        for (uint32_t m = 0; m < step->metadata_count; m++) {
            json_array_append_new(metadata, string_number(r, step->metadata[m].name));
            json_array_append_new(metadata, string_number(r, step->metadata[m].text));
        }
        json_array_append_new(item, json_integer(step->phase));
        json_array_append_new(item, json_integer(step->kind));
        json_array_append_new(item, string_number(r, step->operation));
        json_array_append_new(item, string_number(r, step->kernel));
        json_array_append_new(item, json_integer(step->event_cycles));
        json_array_append_new(item, json_real(r->view->useful[s]));
        json_array_append_new(item, json_real(r->view->physical[s]));
        json_array_append_new(item, metadata);
        json_array_append_new(steps, item);
    }
    json_object_set_new(r->data, "steps", steps);
}

/* For every exchange step that has activities: own horizons and roles over time, by tile. */
static void add_lanes(Report *r)
{
    const Profile *profile = r->view->profile;
    json_t *lanes = json_object();
    size_t stride = LANE_BINS / 2, total = profile->tile_count * stride;
    for (uint32_t s = 0; s < profile->step_count; s++) {
        if (profile->steps[s].kind != PROFILE_EXCHANGE)
            continue;
        uint8_t *bytes = NULL;
        json_t *own = json_array();
        for (uint32_t t = 0; t < profile->tile_count; t++) {
            const ProfileActivity *found = profile_activity(&profile->tiles[t], s);
            json_array_append_new(own, json_integer(found ? found->event_cycles : 0));
            if (!found)
                continue;
            uint8_t bins[LANE_BINS];
            activity_bins(found, profile->steps[s].event_cycles, bins, LANE_BINS);
            bytes = bytes ? bytes : xcalloc(total, 1);
            for (uint32_t b = 0; b < LANE_BINS; b++)
                bytes[t * stride + b / 2] |= (uint8_t)(bins[b] << (b & 1 ? 4 : 0));
        }
        char name[16];
        snprintf(name, sizeof name, "%u", s);
        if (bytes)
            json_object_set_new(lanes, name,
                                json_pack("{s:O, s:o}", "own", own, "bins", base64(bytes, total)));
        json_decref(own);
        free(bytes);
    }
    json_object_set_new(r->data, "lanes", lanes);
    json_object_set_new(r->data, "laneBins", json_integer(LANE_BINS));
}

static void add_exchanges(Report *r)
{
    ExchangeList list;
    exchange_summaries(r->view, &list);
    json_t *out = json_array();
    for (size_t i = 0; i < list.count; i++) {
        const ExchangeSummary *e = &list.items[i];
        json_t *roles = json_array();
        for (int role = 0; role < ROLES; role++)
            json_array_append_new(roles, json_integer((json_int_t)e->roles[role]));
        json_array_append_new(
            out, json_pack("{s:I, s:I, s:I, s:o, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:o}", "phase",
                           (json_int_t)e->phase, "epoch", (json_int_t)e->epoch, "step",
                           (json_int_t)e->step, "operation", string_number(r, e->operation),
                           "tiles", (json_int_t)e->tiles, "first", (json_int_t)e->first, "measured",
                           (json_int_t)e->measured, "arrival", (json_int_t)e->arrival_wait,
                           "scheduled", (json_int_t)e->scheduled, "boundary",
                           (json_int_t)e->boundary, "bound", (json_int_t)e->bound, "roles", roles));
    }
    json_object_set_new(r->data, "exchanges", out);
    arena_free(&list.arena);
}

static Status add_operations(Report *r)
{
    Arena arena = {0};
    OperationCost *costs;
    size_t count;
    TRY(operation_costs(r->view, &arena, &costs, &count));
    json_t *out = json_array();
    for (size_t i = 0; i < count; i++)
        json_array_append_new(
            out, json_pack("[o, f, f, I, I]", string_number(r, costs[i].operation),
                           costs[i].predicted, costs[i].predicted_exchange,
                           (json_int_t)costs[i].cycles, (json_int_t)costs[i].exchange_cycles));
    json_object_set_new(r->data, "operations", out);
    arena_free(&arena);
    return STATUS_OK;
}

static Status add_totals(Report *r)
{
    Query query = QUERY_DEFAULT;
    QueryResult result;
    TRY(query_run(r->view, &query, &result));
    uint64_t work = 0;
    json_t *kernels = json_array();
    for (size_t g = 0; g < result.group_count; g++) {
        const Group *group = &result.groups[g];
        bool none = strcmp(group->name, "(no kernel)") == 0;
        work += group->work_cycles;
        json_array_append_new(
            kernels, json_pack("[s, I, I, I, I]", none ? "" : group->name,
                               (json_int_t)group->samples, (json_int_t)group->work_cycles,
                               (json_int_t)group->phase_cycles, (json_int_t)group->wait_cycles));
    }
    json_object_set_new(r->data, "totals",
                        json_pack("{s:I, s:I, s:o}", "work", (json_int_t)work, "samples",
                                  (json_int_t)r->view->count, "kernels", kernels));
    query_free(&result);
    return STATUS_OK;
}

static json_t *text_or_empty(const char *text)
{
    json_t *out = json_string(text);
    return out ? out : json_string("");
}

static Status build_data(Report *r, const char *title)
{
    const View *view = r->view;
    r->data = json_object();
    r->strings = json_array();
    json_object_set_new(r->data, "title", text_or_empty(title));
    json_object_set_new(r->data, "source", text_or_empty(view->profile->source));
    json_object_set_new(r->data, "program", text_or_empty(view->profile->program));
    json_object_set_new(r->data, "clockHz", json_integer((json_int_t)view->profile->clock_hz));
    json_object_set_new(r->data, "span", json_integer(view->span));
    json_object_set_new(r->data, "cropped", json_integer(view->cropped));
    json_object_set_new(r->data, "sampleCount", json_integer((json_int_t)view->count));
    add_steps(r);
    add_samples(r);
    add_lanes(r);
    add_exchanges(r);
    TRY(add_operations(r));
    TRY(add_totals(r));
    json_object_set(r->data, "strings", r->strings);
    return STATUS_OK;
}

/* Text that is safe inside an element, and inside a script element of JSON. */
static void put_escaped(Text *out, const char *text, bool json)
{
    for (; *text; text++) {
        if (*text == '<' || *text == '>' || *text == '&')
            text_printf(out, json ? "\\u%04x" : "&#%d;", *text);
        else
            array_push(out, *text);
    }
}

/* One pass over the page: text that is put in is not looked at again. */
void report_fill(Text *out, const char *page, const ReportPart *parts, size_t count)
{
    const char *from = report_source(page);
    while (*from) {
        const char *at = strchr(from, '@');
        size_t part = 0;
        if (!at)
            break;
        while (part < count && strncmp(at, parts[part].mark, strlen(parts[part].mark)) != 0)
            part++;
        array_append(out, from, (size_t)(at - from) + (part == count));
        from = at + 1;
        if (part == count)
            continue;
        if (parts[part].kind == PART_RAW)
            array_append(out, parts[part].text, strlen(parts[part].text));
        else
            put_escaped(out, parts[part].text, parts[part].kind == PART_JSON);
        from = at + strlen(parts[part].mark);
    }
    text_append(out, from); /* which ends the text with its zero */
}

Status report_render(const View *view, const char *title, Text *out)
{
    Report r = {.view = view};
    Status status = build_data(&r, title);
    if (status_ok(status)) {
        char *data = json_dumps(r.data, JSON_COMPACT | JSON_PRESERVE_ORDER);
        const ReportPart parts[] = {{"@TITLE@", title, PART_TEXT},
                                    {"@CSS@", report_source("report.css"), PART_RAW},
                                    {"@DATA@", data ? data : "{}", PART_JSON},
                                    {"@JS_DATA@", report_source("report_data.js"), PART_RAW},
                                    {"@JS_VIEWS@", report_source("report_views.js"), PART_RAW}};
        report_fill(out, "report.html", parts, countof(parts));
        free(data);
    }
    json_decref(r.data);
    json_decref(r.strings);
    map_free(&r.string_index);
    return status;
}
