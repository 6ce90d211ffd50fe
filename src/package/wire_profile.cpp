/* wire_profile.cpp - Cap'n Proto messages of profiles (schemas/profile.capnp), and the parts of
 * them that packages hold too.
 *
 * Two forms of a file are read: ours, in which a sample names its step by number, and the
 * original's, in which every sample carries its step; equal steps of such a file become one on the
 * way in. */
#include "package/wire_parts.h"

#include "schemas/profile.capnp.h"

namespace
{

uint64_t pack_span(const ProfileSpan &span)
{
    uint32_t fanout = min_u32(span.fanout, SPAN_FANOUT_LIMIT);
    return span.start | (uint64_t)(span.end - span.start) << 24 | (uint64_t)span.kind << 48 |
           (uint64_t)span.paired << 50 | (uint64_t)fanout << 51;
}

void put_step(Step::Builder out, const ProfileStep &step)
{
    out.setPhase(step.phase);
    out.setOperation(step.operation);
    out.setKind(static_cast<StepKind>(step.kind));
    out.setKernel(step.kernel);
    out.setExchangeEventCycles(step.event_cycles);
    auto metadata = out.initMetadata(step.metadata_count);
    for (uint32_t i = 0; i < step.metadata_count; i++) {
        metadata[i].setName(step.metadata[i].name);
        metadata[i].setValue(step.metadata[i].text);
    }
}

/* The original's form of a sample: everything in place. */
void put_inline_step(Step::Builder out, const Profile &profile, const ProfileTile &tile,
                     uint32_t index)
{
    const ProfileSample &sample = tile.samples[index];
    const ProfileStep &step = profile.steps[sample.step];
    put_step(out, step);
    out.setLocalIndex(index);
    out.setEpoch(sample.epoch);
    const ProfileActivity *activity = profile_activity(&tile, sample.step);
    if (!activity)
        return;
    auto list = out.initExchangeActivities(activity->span_count);
    for (uint32_t i = 0; i < activity->span_count; i++) {
        const ProfileSpan &span = activity->spans[i];
        list[i].setKind(static_cast<ExchangeActivityKind>(span.kind));
        list[i].setStartCycle(span.start);
        list[i].setEndCycle(span.end);
        list[i].setFanout(span.fanout);
        list[i].setPaired(span.paired);
    }
}

void put_profile(ProfileFile::Builder out, const Profile &profile, bool inline_steps)
{
    out.setSchemaVersion(PROFILE_SCHEMA_VERSION);
    out.setClockHz(profile.clock_hz);
    out.setSource(profile.source);
    out.setProgram(profile.program);
    out.setTilesUsed(profile.tiles_used);
    if (!inline_steps)
        put_steps(out.initSteps(profile.step_count), profile.steps);
    put_predictions(out.initPredictions(profile.prediction_count), profile.predictions);
    auto tiles = out.initTiles(profile.tile_count);
    for (uint32_t t = 0; t < profile.tile_count; t++) {
        const ProfileTile &tile = profile.tiles[t];
        tiles[t].setPhysicalTile(tile.physical);
        auto samples = tiles[t].initSamples(tile.sample_count);
        for (uint32_t i = 0; i < tile.sample_count; i++) {
            samples[i].setStartCycle(tile.samples[i].start);
            samples[i].setEndCycle(tile.samples[i].end);
            samples[i].setEpoch(tile.samples[i].epoch);
            if (inline_steps)
                put_inline_step(samples[i].initStep(), profile, tile, i);
            else
                samples[i].setStepIndex(tile.samples[i].step + 1);
        }
        if (!inline_steps)
            put_activities(tiles[t].initActivities(tile.activity_count), tile.activities);
    }
}

size_t profile_words(const Profile &profile, bool inline_steps)
{
    size_t words = 1024 + text_words(profile.source) + text_words(profile.program);
    words += steps_words(profile.steps, profile.step_count);
    words += predictions_words(profile.predictions, profile.prediction_count);
    for (uint32_t t = 0; t < profile.tile_count; t++) {
        const ProfileTile &tile = profile.tiles[t];
        words += 16 + 4 * (size_t)tile.sample_count;
        words += activities_words(tile.activities, tile.activity_count);
        for (uint32_t i = 0; inline_steps && i < tile.sample_count; i++) {
            const ProfileActivity *activity = profile_activity(&tile, tile.samples[i].step);
            words += steps_words(&profile.steps[tile.samples[i].step], 1);
            words += activity ? 2 + 2 * (size_t)activity->span_count : 0;
        }
    }
    return words;
}

/* ---- reading ---- */

/* Steps of the original's form, as they come: equal ones get one number. */
struct StepTable {
    Arena *arena;
    OwnedMap numbers; /* text of a step -> number + 1 */
    kj::Vector<ProfileStep> steps;
    Text key = {};
    explicit StepTable(Arena *where) : arena(where)
    {
    }
    ~StepTable()
    {
        text_free(&key);
    }
    Status add(Step::Reader in, uint32_t *number);
};

Status StepTable::add(Step::Reader in, uint32_t *number)
{
    key.count = 0;
    text_printf(&key, "%u\n%u\n%u\n%s\n%s", in.getPhase(), (unsigned)in.getKind(),
                in.getExchangeEventCycles(), in.getOperation().cStr(), in.getKernel().cStr());
    for (auto metadata : in.getMetadata())
        text_printf(&key, "\n%s=%s", metadata.getName().cStr(), metadata.getValue().cStr());
    uint64_t *known = map_at_text(&numbers, text_string(&key), nullptr);
    if (!*known) {
        ProfileStep step = {};
        TRY(take_step(arena, in, &step));
        steps.add(step);
        *known = steps.size();
    }
    *number = (uint32_t)*known - 1;
    return STATUS_OK;
}

bool known_activity(const ProfileTile &tile, uint32_t step)
{
    for (uint32_t i = 0; i < tile.activity_count; i++)
        if (tile.activities[i].step == step)
            return true;
    return false;
}

int by_step(const void *a, const void *b)
{
    uint32_t x = static_cast<const ProfileActivity *>(a)->step;
    uint32_t y = static_cast<const ProfileActivity *>(b)->step;
    return x < y ? -1 : x > y;
}

Status take_inline_activity(Arena *arena, Step::Reader in, uint32_t step, ProfileTile *tile)
{
    auto list = in.getExchangeActivities();
    if (!list.size() || known_activity(*tile, step))
        return STATUS_OK;
    ProfileActivity activity = {step, in.getExchangeEventCycles(),
                                arena_list<ProfileSpan>(arena, list.size()), list.size()};
    for (uint32_t i = 0; i < list.size(); i++)
        activity.spans[i] = ProfileSpan{list[i].getStartCycle(), list[i].getEndCycle(),
                                        static_cast<uint8_t>(list[i].getKind()),
                                        list[i].getPaired(), list[i].getFanout()};
    ProfileActivity *old = tile->activities;
    tile->activities = arena_list<ProfileActivity>(arena, tile->activity_count + 1);
    if (tile->activity_count)
        memcpy(tile->activities, old, tile->activity_count * sizeof *old);
    tile->activities[tile->activity_count++] = activity;
    return STATUS_OK;
}

Status take_tile(Arena *arena, TileProfile::Reader in, StepTable *table, ProfileTile *out)
{
    out->physical = in.getPhysicalTile();
    auto samples = in.getSamples();
    out->sample_count = samples.size();
    out->samples = arena_list<ProfileSample>(arena, samples.size());
    TRY(take_activities(arena, in.getActivities(), &out->activities, &out->activity_count));
    bool carried = false; /* steps in the samples */
    for (uint32_t i = 0; i < samples.size(); i++) {
        ProfileSample &sample = out->samples[i];
        sample.start = samples[i].getStartCycle();
        sample.end = samples[i].getEndCycle();
        sample.epoch = samples[i].getEpoch();
        if (samples[i].getStepIndex()) {
            sample.step = samples[i].getStepIndex() - 1;
            continue;
        }
        if (!samples[i].hasStep())
            return status_error("tile %u: sample %u has no step", out->physical, i);
        auto step = samples[i].getStep();
        TRY(table->add(step, &sample.step));
        sample.epoch = step.getEpoch();
        TRY(take_inline_activity(arena, step, sample.step, out));
        carried = true;
    }
    if (carried)
        qsort(out->activities, out->activity_count, sizeof *out->activities, by_step);
    return STATUS_OK;
}

Status take_profile(Arena *arena, ProfileFile::Reader in, Profile *out)
{
    *out = {};
    if (in.getSchemaVersion() < 1 || in.getSchemaVersion() > PROFILE_SCHEMA_VERSION)
        return status_error("schemaVersion: %u, this program reads 1 to %d", in.getSchemaVersion(),
                            PROFILE_SCHEMA_VERSION);
    out->clock_hz = in.getClockHz();
    out->source = take_text(arena, in.getSource());
    out->program = take_text(arena, in.getProgram());
    out->tiles_used = in.getTilesUsed();
    TRY(take_steps(arena, in.getSteps(), &out->steps, &out->step_count));
    take_predictions(arena, in.getPredictions(), &out->predictions, &out->prediction_count);
    StepTable table(arena);
    auto tiles = in.getTiles();
    out->tile_count = tiles.size();
    out->tiles = arena_list<ProfileTile>(arena, tiles.size());
    for (uint32_t t = 0; t < tiles.size(); t++)
        TRY(take_tile(arena, tiles[t], &table, &out->tiles[t]));
    if (table.steps.size() && out->step_count)
        return status_error("some samples carry their step, others name it");
    if (table.steps.size()) {
        out->step_count = (uint32_t)table.steps.size();
        out->steps = static_cast<ProfileStep *>(
            arena_copy(arena, table.steps.begin(), table.steps.size() * sizeof(ProfileStep), 8));
    }
    return STATUS_OK;
}

} // namespace

/* ---- parts that packages hold too ---- */

void put_steps(capnp::List<Step>::Builder out, const ProfileStep *steps)
{
    for (uint32_t i = 0; i < out.size(); i++)
        put_step(out[i], steps[i]);
}

void put_activities(capnp::List<StepActivities>::Builder out, const ProfileActivity *activities)
{
    for (uint32_t i = 0; i < out.size(); i++) {
        out[i].setStep(activities[i].step);
        out[i].setEventCycles(activities[i].event_cycles);
        auto spans = out[i].initSpans(activities[i].span_count);
        for (uint32_t s = 0; s < activities[i].span_count; s++)
            spans.set(s, pack_span(activities[i].spans[s]));
    }
}

void put_predictions(capnp::List<Prediction>::Builder out, const ProfilePrediction *predictions)
{
    for (uint32_t i = 0; i < out.size(); i++) {
        out[i].setOperation(predictions[i].operation);
        out[i].setCycles(predictions[i].cycles);
        out[i].setExchangeCycles(predictions[i].exchange_cycles);
    }
}

size_t steps_words(const ProfileStep *steps, uint32_t count)
{
    size_t words = 4;
    for (uint32_t i = 0; i < count; i++) {
        words += 16 + text_words(steps[i].operation) + text_words(steps[i].kernel);
        for (uint32_t m = 0; m < steps[i].metadata_count; m++)
            words +=
                4 + text_words(steps[i].metadata[m].name) + text_words(steps[i].metadata[m].text);
    }
    return words;
}

size_t activities_words(const ProfileActivity *activities, uint32_t count)
{
    size_t words = 4;
    for (uint32_t i = 0; i < count; i++)
        words += 4 + activities[i].span_count;
    return words;
}

size_t predictions_words(const ProfilePrediction *predictions, uint32_t count)
{
    size_t words = 4;
    for (uint32_t i = 0; i < count; i++)
        words += 8 + text_words(predictions[i].operation);
    return words;
}

Status take_step(Arena *arena, Step::Reader in, ProfileStep *out)
{
    out->phase = in.getPhase();
    out->kind = static_cast<uint8_t>(in.getKind());
    out->operation = take_text(arena, in.getOperation());
    out->kernel = take_text(arena, in.getKernel());
    out->event_cycles = in.getExchangeEventCycles();
    auto metadata = in.getMetadata();
    out->metadata_count = metadata.size();
    out->metadata = arena_list<PackageText>(arena, metadata.size());
    for (uint32_t i = 0; i < metadata.size(); i++) {
        out->metadata[i].name = take_text(arena, metadata[i].getName());
        out->metadata[i].text = take_text(arena, metadata[i].getValue());
    }
    if (static_cast<uint16_t>(in.getKind()) >= PROFILE_KINDS)
        return status_error("step of %s: unknown kind %u", out->operation,
                            static_cast<unsigned>(in.getKind()));
    return STATUS_OK;
}

Status take_steps(Arena *arena, capnp::List<Step>::Reader in, ProfileStep **out, uint32_t *count)
{
    *count = in.size();
    *out = arena_list<ProfileStep>(arena, in.size());
    for (uint32_t i = 0; i < in.size(); i++)
        TRY(take_step(arena, in[i], &(*out)[i]));
    return STATUS_OK;
}

Status take_activities(Arena *arena, capnp::List<StepActivities>::Reader in, ProfileActivity **out,
                       uint32_t *count)
{
    *count = in.size();
    *out = arena_list<ProfileActivity>(arena, in.size());
    for (uint32_t i = 0; i < in.size(); i++) {
        ProfileActivity &activity = (*out)[i];
        activity.step = in[i].getStep();
        activity.event_cycles = in[i].getEventCycles();
        auto spans = in[i].getSpans();
        activity.span_count = spans.size();
        activity.spans = arena_list<ProfileSpan>(arena, spans.size());
        for (uint32_t s = 0; s < spans.size(); s++) {
            uint64_t packed = spans[s];
            ProfileSpan &span = activity.spans[s];
            span.start = packed & (SPAN_TIME_LIMIT - 1);
            span.end = span.start + (packed >> 24 & (SPAN_TIME_LIMIT - 1));
            span.kind = packed >> 48 & 3;
            span.paired = packed >> 50 & 1;
            span.fanout = packed >> 51 & SPAN_FANOUT_LIMIT;
        }
    }
    return STATUS_OK;
}

void take_predictions(Arena *arena, capnp::List<Prediction>::Reader in, ProfilePrediction **out,
                      uint32_t *count)
{
    *count = in.size();
    *out = arena_list<ProfilePrediction>(arena, in.size());
    for (uint32_t i = 0; i < in.size(); i++)
        (*out)[i] = ProfilePrediction{take_text(arena, in[i].getOperation()), in[i].getCycles(),
                                      in[i].getExchangeCycles()};
}

extern "C" Status wire_encode_profile(const Profile *profile, bool inline_steps, Bytes *out)
{
    try {
        FileMessage message(profile_words(*profile, inline_steps));
        put_profile(message.initRoot<ProfileFile>(), *profile, inline_steps);
        *out = message.take();
        return STATUS_OK;
    } catch (const kj::Exception &) {
        return status_error("profile: too large for one message");
    }
}

extern "C" Status wire_decode_profile(Arena *arena, const char *name, const uint8_t *data,
                                      size_t count, Profile *out)
{
    TRY(framing_check("profile", name, data, count));
    try {
        capnp::FlatArrayMessageReader message(words_of(data, count), reader_options(count));
        return status_context(take_profile(arena, message.getRoot<ProfileFile>(), out), "%s", name);
    } catch (const kj::Exception &) {
        return status_error("%s: damaged, or not a profile: " WIRE_DAMAGED, name);
    }
}
